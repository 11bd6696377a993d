#include "weir/web/encoding/detail/encoding_core.hpp"

#include "weir/loop/detail/slots.hpp"

namespace weir::http::detail {

EncodingCore& EncodingCore::of(Loop& loop) {
  return loop.slots().get<EncodingCore>(loop);
}

EncodingCore::EncodingCore(Loop& loop) {
  loop.metrics().add(*this);
}

EncodingCore::~EncodingCore() {
  detach();
}

void EncodingCore::collect(MetricSnapshot& sum) const {
  sum.add({"compressed responses", compressors_.contents()});
  sum.add({"responses without a free compressor", compressors_.refusals()});
  sum.add({"compressors of streams in use", compressors_.borrowed(), Metric::Kind::gauge});
  sum.add({"decompressors of requests in use", decompressors_.value(), Metric::Kind::gauge});
  sum.add({"requests that cannot be decompressed", rejected_requests_.value()});
}

}  // namespace weir::http::detail

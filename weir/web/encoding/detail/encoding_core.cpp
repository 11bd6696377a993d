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
  static constexpr MetricInfo responses{
      .name = "weir.compression.responses", .unit = "{response}", .help = "Compressed responses."};
  static constexpr MetricInfo refused{
      .name = "weir.compression.responses.uncompressed",
      .unit = "{response}",
      .help = "Responses sent as they are because no compressor was free."};
  static constexpr MetricInfo compressing{.name = "weir.compression.compressors",
                                          .unit = "{compressor}",
                                          .help = "Compressors of streams in use."};
  static constexpr MetricInfo decompressing{.name = "weir.compression.decompressors",
                                            .unit = "{decompressor}",
                                            .help = "Decompressors of requests in use."};
  static constexpr MetricInfo rejected{.name = "weir.compression.requests.rejected",
                                       .unit = "{request}",
                                       .help = "Requests that cannot be decompressed."};
  sum.add({"compressed responses", compressors_.contents(), Metric::Kind::counter, &responses});
  sum.add({"responses without a free compressor", compressors_.refusals(), Metric::Kind::counter,
           &refused});
  sum.add({"compressors of streams in use", compressors_.borrowed(), Metric::Kind::gauge,
           &compressing});
  sum.add({"decompressors of requests in use", decompressors_.value(), Metric::Kind::gauge,
           &decompressing});
  sum.add({"requests that cannot be decompressed", rejected_requests_.value(),
           Metric::Kind::counter, &rejected});
}

}  // namespace weir::http::detail

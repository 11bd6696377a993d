#include "weir/web/encoding/detail/encoding_core.hpp"

#include "weir/loop/detail/metric_row.hpp"
#include "weir/loop/detail/slots.hpp"

namespace weir::http::detail {

EncodingCore& EncodingCore::of(Loop& loop) {
  return loop.slots().get<EncodingCore>(loop);
}

EncodingCore::EncodingCore(Loop& loop) : loop_(loop) {
  loop.metrics().add(*this);
}

EncodingCore::~EncodingCore() {
  detach();
}

ClientSlots& EncodingCore::find_or_add(SlotsByLimits& all, const ClientSlots::Limits& limits) {
  for (const auto& each : all) {
    if (each->limits() == limits) return *each;
  }
  return *all.emplace_back(std::make_unique<ClientSlots>(loop_, limits));
}

void EncodingCore::collect(MetricSnapshot& sum) const {
  using Row = weir::detail::MetricRow<EncodingCore>;
  using weir::detail::count_of;
  constexpr auto now = Metric::Kind::gauge;
  static constexpr Row rows[]{
      {"compressed responses",
       [](const EncodingCore& core) { return core.compressors_.contents(); },
       {"weir.compression.responses", "{response}", "Compressed responses."}},
      {"responses without a free compressor",
       [](const EncodingCore& core) { return core.compressors_.refusals(); },
       {"weir.compression.responses.uncompressed", "{response}",
        "Responses sent as they are because no compressor was free."}},
      {"compressors of streams in use",
       [](const EncodingCore& core) -> std::uint64_t { return core.compressors_.borrowed(); },
       {"weir.compression.compressors", "{compressor}", "Compressors of streams in use."},
       now},
      {"decompressors of requests in use",
       count_of<&EncodingCore::decompressors_>,
       {"weir.compression.decompressors", "{decompressor}", "Decompressors of requests in use."},
       now},
      {"requests that cannot be decompressed",
       count_of<&EncodingCore::rejected_requests_>,
       {"weir.compression.requests.rejected", "{request}",
        "Requests that cannot be decompressed."}},
  };
  weir::detail::collect_rows<EncodingCore>(sum, rows, *this);
}

}  // namespace weir::http::detail

// The compressors and decompressors of one core, with their metrics.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "weir/compression/compressor_pool.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/metrics.hpp"
#include "weir/web/clients/detail/client_slots.hpp"

namespace weir::http::detail {

/// The state of the middleware compress() and decompress_requests() on one core.
/// Threads: its core's; any for the counters.
class EncodingCore final : public MetricSource {
 public:
  /// Returns the state of the loop's core, which the first call makes.
  static EncodingCore& of(Loop& loop);
  explicit EncodingCore(Loop& loop);
  ~EncodingCore();

  compression::CompressorPool& compressors() noexcept { return compressors_; }
  weir::detail::Counter& decompressors() noexcept { return decompressors_; }
  weir::detail::Counter& rejected_requests() noexcept { return rejected_requests_; }
  /// Returns the slots of requests that are decompressed. Middleware with the same limits shares
  /// them. Errors: throws std::bad_alloc.
  ClientSlots& decompressor_slots(const ClientSlots::Limits& limits) {
    return find_or_add(decompressor_slots_, limits);
  }
  /// Returns the slots of streams that are compressed, for which nothing waits.
  /// Errors: throws std::bad_alloc.
  ClientSlots& compressor_slots(std::size_t slots) {
    return find_or_add(compressor_slots_, {.slots = {.slots = slots, .waiting_max = 0}});
  }

 private:
  using SlotsByLimits = std::vector<std::unique_ptr<ClientSlots>>;
  ClientSlots& find_or_add(SlotsByLimits& all, const ClientSlots::Limits& limits);
  void collect(MetricSnapshot& sum) const override;

  Loop& loop_;
  compression::CompressorPool compressors_;
  SlotsByLimits compressor_slots_;
  SlotsByLimits decompressor_slots_;
  weir::detail::Counter decompressors_;      // of requests, now
  weir::detail::Counter rejected_requests_;  // with a body that cannot be decompressed
};

}  // namespace weir::http::detail

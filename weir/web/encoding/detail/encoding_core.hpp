// The compressors and decompressors of one core, with their metrics.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "weir/compression/compressor_pool.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/metrics.hpp"
#include "weir/task/sync/detail/fair_slots.hpp"

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
  /// Returns the slots of requests that are decompressed. Middleware with the same limit shares
  /// them. Errors: throws std::bad_alloc.
  weir::detail::FairSlots& decompressor_slots(std::size_t slots);

 private:
  void collect(MetricSnapshot& sum) const override;

  Loop& loop_;
  compression::CompressorPool compressors_;
  std::vector<std::unique_ptr<weir::detail::FairSlots>> decompressor_slots_;
  weir::detail::Counter decompressors_;      // of requests, now
  weir::detail::Counter rejected_requests_;  // with a body that cannot be decompressed
};

}  // namespace weir::http::detail

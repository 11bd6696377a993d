// The counters of TLS on one core, by reason.
#pragma once

#include <array>
#include <system_error>

#include "weir/base/detail/counter.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/tls/certificate/error.hpp"

namespace weir::tls::detail {

/// Counts the handshakes of a core, and reports the counts as metrics of the core.
/// Threads: the loop's, except for reading.
class TlsCounters final : MetricSource {
 public:
  explicit TlsCounters(Loop& loop) { loop.metrics().add(*this); }
  ~TlsCounters() { detach(); }
  /// Returns the counters of the core of `loop`. The first call makes them.
  /// Errors: throws std::bad_alloc.
  static TlsCounters& of(Loop& loop) { return loop.slots().get<TlsCounters>(loop); }

  void count_success(const TlsInfo& info) noexcept;
  /// Counts a failed handshake: an Error, Errc::cancelled, or another failure of the stream.
  void count_failure(const std::error_code& code) noexcept;

  weir::detail::Counter begun;  ///< handshakes that have begun, on either side
  weir::detail::Counter resumed;
  std::array<weir::detail::Counter, 2> finished;  ///< by TlsVersion
  weir::detail::Counter cancelled;
  std::array<weir::detail::Counter, error_count> failed;  ///< by Error; index 0: other codes

 private:
  void collect(MetricSnapshot& sum) const override;
};

}  // namespace weir::tls::detail

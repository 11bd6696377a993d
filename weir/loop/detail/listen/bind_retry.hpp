// Retries of listening on an address that is in use.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/os/address.hpp"

namespace weir::loop {

/// BindRetry decides when to retry to listen on, or to bind to, an address that is in use. A
/// killed process may keep its sockets for a moment after its parent has learned of its end. The
/// cause is a kernel thread that ends the io_uring requests of the process on these sockets. A
/// process that starts in its place immediately would find the address in use. Use one object per
/// attempt to get an address. The pauses double from 1 ms to 50 ms, or from 50 ms to 400 ms for a
/// path. They sum up to at least a second.
/// Threads: one.
class BindRetry {
 public:
  /// Each attempt on a path makes a connection to its owner, so the pauses for paths are longer.
  explicit BindRetry(os::AddressFamily family) noexcept
      : pause_max_(family == os::AddressFamily::local ? std::chrono::milliseconds(400)
                                                      : std::chrono::milliseconds(50)),
        next_(family == os::AddressFamily::local ? std::chrono::milliseconds(50)
                                                 : std::chrono::milliseconds(1)) {}

  /// Returns the pause before the next attempt; nullopt if `error` is final.
  std::optional<Duration> next_pause(std::error_code error) noexcept {
    if (error != system_error(EADDRINUSE) || waited_ >= total_max) return std::nullopt;
    const Duration pause = next_;
    waited_ += pause;
    next_ = std::min(next_ * 2, pause_max_);
    return pause;
  }

 private:
  static constexpr Duration total_max = std::chrono::seconds(1);

  Duration pause_max_;
  Duration next_;
  Duration waited_{};
};

}  // namespace weir::loop

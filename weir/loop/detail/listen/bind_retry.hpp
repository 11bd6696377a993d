// How long to try an address that somebody else has.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/os/address.hpp"

namespace weir {

/// When to try again to listen on, or to bind to, an address that is taken. A process that was
/// killed may have its sockets for a moment after its end has been told to its parent: what its
/// io_uring was doing with them ends on a thread of the kernel's own. Whoever begins in its place
/// at once would find them taken. One per attempt to get an address; about a second in all.
/// Threads: one.
class AddressPatience {
 public:
  /// Whoever has a path has a connection of each who tries it, so that is not tried often.
  explicit AddressPatience(os::AddressFamily family) noexcept
      : longest_(family == os::AddressFamily::local ? std::chrono::milliseconds(400)
                                                    : std::chrono::milliseconds(50)),
        next_(family == os::AddressFamily::local ? std::chrono::milliseconds(50)
                                                 : std::chrono::milliseconds(1)) {}

  /// How long to wait before trying again; nothing: what has failed is final.
  std::optional<Duration> after(std::error_code error) noexcept {
    if (error != system_error(EADDRINUSE) || waited_ >= in_all) return std::nullopt;
    const Duration pause = next_;
    waited_ += pause;
    next_ = std::min(next_ * 2, longest_);
    return pause;
  }

 private:
  static constexpr Duration in_all = std::chrono::seconds(1);

  Duration longest_;
  Duration next_;
  Duration waited_{};
};

}  // namespace weir

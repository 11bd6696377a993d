// The origins that the clients of a core connect to, and if they can be reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"

namespace weir {

/// An origin, such as "http://store:8080", or the path of a Unix socket.
struct ConnectTarget {
  std::string origin;
  std::uint64_t opened = 0;       ///< connections that were opened
  std::uint64_t failed = 0;       ///< connections that could not be opened
  Instant failing_since = never;  ///< the first failure after the last success; never: none
  std::error_code last_error = {};
  std::uint64_t requests_failed = 0;  ///< requests that failed on an open connection, or waiting
  Instant request_failed_at = never;  ///< the last of them; never: none
  std::error_code request_error = {};
};

/// Counts the connections that the clients of a core open, by origin. A request over an open
/// connection costs nothing.
/// Threads: the loop's.
/// Lifetime: that of the loop, whose slot it is.
class ConnectTargets {
 public:
  /// Limit of origins; connections to further ones count as "(others)".
  static constexpr std::size_t targets_max = 64;

  /// Returns the targets of a core. The first call makes them.
  /// Errors: throws std::bad_alloc.
  static ConnectTargets& of(Loop& loop) { return loop.slots().get<ConnectTargets>(); }

  /// Counts a connection to `origin`. Without memory for another origin, it is not counted. A
  /// cancelled one is none.
  static void on_opened(Loop& loop, std::string_view origin) noexcept;
  static void on_failed(Loop& loop, std::string_view origin, std::error_code error) noexcept;
  /// Counts a request that failed for another reason than a connection that could not be opened.
  static void on_request_failed(Loop& loop, std::string_view origin,
                                std::error_code error) noexcept;

  const std::vector<ConnectTarget>& all() const noexcept { return targets_; }

 private:
  ConnectTarget& find(std::string_view origin);

  std::vector<ConnectTarget> targets_;
};

}  // namespace weir

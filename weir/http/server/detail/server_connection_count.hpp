// The number of open connections of one server on all cores.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "weir/loop/loop.hpp"
#include "weir/os/address.hpp"

namespace weir::http {

class Router;

/// The number of open connections of one server on all cores of its runtime, which
/// Limits::connections_max limits. The server of a core is known by its router and its endpoint.
/// Threads: any.
struct ServerConnectionCount {
  /// Returns the count of the servers of the group of `loop` with this router and endpoint.
  /// Errors: throws std::bad_alloc.
  static std::shared_ptr<ServerConnectionCount> of(Loop& loop, const Router& router,
                                                   const Endpoint& endpoint);

  std::atomic<std::size_t> open{0};  // relaxed: only the number matters
};

}  // namespace weir::http

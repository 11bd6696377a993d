// Counts of connections. Streams, listeners and servers of higher floors write them, and
// Runtime::report() reads them.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>

#include "weir/base/detail/counter.hpp"
#include "weir/loop/loop.hpp"

namespace weir {

/// Counts of the connections of one core. The thread of its loop writes them. All counts except
/// `open` only grow.
struct ConnectionCounters {
  /// Returns the counters of the core of `loop`. The first call makes them.
  /// Errors: throws std::bad_alloc.
  /// Threads: any.
  static ConnectionCounters& of(Loop& loop) { return loop.slots().get<ConnectionCounters>(); }
  /// Returns the counters that a call of of() has made.
  /// Threads: any.
  static ConnectionCounters& made(Loop& loop) noexcept {
    ConnectionCounters* const counters = loop.slots().find<ConnectionCounters>();
    assert(counters != nullptr);
    return *counters;
  }

  detail::Counter
      open;  ///< open streams: accepted here, handed over to this core, or connected by it
  /// Accepted connections that were closed because memory ran out.
  detail::Counter dropped;
  detail::Counter handed_over;  ///< connections accepted here and given to other cores
  detail::Counter taken_over;   ///< connections accepted by other cores and given to this one
};

/// The number of connections that the servers on all loops of a group have open. A limit for the
/// whole process therefore holds even if connections are spread unevenly over cores.
struct ServerConnections {
  /// Returns the number for the group of `loop`. The first call makes it.
  /// Errors: throws std::bad_alloc.
  /// Threads: any.
  static ServerConnections& of(Loop& loop) { return loop.group().slots().get<ServerConnections>(); }

  std::atomic<std::size_t> open{0};  // relaxed: only the count matters
};

}  // namespace weir

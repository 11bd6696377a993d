// How much memory a server can be made to hold by its peers: what its limits imply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/http/limits.hpp"

namespace weir::http {

/// What the limits do not say.
struct MemoryBoundOptions {
  unsigned cores = 1;  ///< Runtime::core_count()
  /// Where Limits::connections_max is 0: how many there may be; Host::descriptor_limit() tells.
  std::size_t connections_max = 0;
  /// The largest body_max of any route, where it is larger than that of the limits.
  std::uint64_t body_max = 0;
  /// What one call of a handler holds at most beside the request: its frames, what it allocates,
  /// and its response. Weir cannot know it.
  std::size_t handler_bytes = 4 * 1024;
};

/// Upper bounds, in bytes, of the memory of this process that a server's connections and cores
/// hold. The kernel's socket buffers are not in it (net.ipv4.tcp_mem bounds those of all
/// processes), nor what the program itself holds.
struct MemoryBound {
  std::uint64_t idle_connection;  ///< that waits for its next request
  std::uint64_t connection;       ///< at the worst moment of the worst request
  std::uint64_t core;             ///< of each core, for all of its connections together
  std::uint64_t kept;             ///< of each core: free blocks that it keeps for later
  std::size_t connections;        ///< that are open at once
  unsigned cores;

  /// When every connection is at its worst moment at once.
  std::uint64_t in_use() const noexcept { return connections * connection + cores * core; }
  /// When none has a request.
  std::uint64_t idle() const noexcept { return connections * idle_connection + cores * core; }
  /// What the server adds to the size of its process, sooner or later.
  std::uint64_t total() const noexcept { return in_use() + cores * kept; }
  /// A line for people: "at most 305.1 MiB: 100 connections of 1.6 MiB (2.0 KiB while idle), ...".
  std::string to_text() const;
};

/// The bound of a server with these limits. It is what must hold, not what is to be expected: that
/// all connections are at once where each of them needs most takes an attack. A service that wants
/// a lower one lowers `body_max` and `connections_max` first.
MemoryBound memory_bound(const Limits& limits, const MemoryBoundOptions& options = {}) noexcept;

}  // namespace weir::http

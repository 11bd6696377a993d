// The limits of an HTTP server, with their defaults. A peer beyond a limit gets an answer or is
// closed; it never waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "weir/base/time.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/ws/websocket_limits.hpp"

namespace weir::tls {
struct ServerOptions;
}

namespace weir::http {

/// The minimum rate of a peer while the server waits for it. The peer's time budget starts with
/// `grace`. Waiting spends the budget and bytes earn it back. The budget never exceeds
/// `stall_max`, or `grace` if that is longer, however fast the peer was. A rate of 0 bytes per
/// second counts as 1.
struct MinimumRate {
  Duration grace;
  std::uint32_t bytes_per_second;
  Duration stall_max;
};

/// The limits of a server. Each comment ends with the reaction to a peer beyond the limit: a
/// status, a close of the connection, or both.
struct Limits {
  HeadLimits head = {};  ///< size limits; 414, 431, 400 for empty lines
  /// Limits of chunks, and of trailers also in HTTP/2; 400, 431 for trailers.
  ChunkLimits chunks = {};
  Duration head_timeout = std::chrono::seconds(10);  ///< time for a whole head; 408 and close
  Duration idle_timeout = std::chrono::seconds(60);  ///< time between requests; close
  /// Time until the first byte of a connection, and then until the first stream of HTTP/2, if it is
  /// shorter than idle_timeout; close.
  Duration first_request_timeout = std::chrono::seconds(15);
  std::uint64_t body_max = 1024 * 1024;  ///< bytes of a body, unless the route sets them; 413
  /// Minimum rate of a request's body; 408 and close, or only close after an early response.
  MinimumRate body_rate{std::chrono::seconds(5), 240, std::chrono::seconds(20)};
  /// Minimum rate at which a client reads; close. Bytes that only fill the kernel's own buffers
  /// do not count.
  MinimumRate write_rate{std::chrono::seconds(10), 240, std::chrono::seconds(10)};
  /// Bytes of an unread body that the server reads and drops. If more are left, or if the request
  /// began while the server drains, the connection closes instead.
  std::uint64_t unread_body_max = 64 * 1024;
  /// Time for which a closing connection still reads, so that a reset does not destroy its last
  /// response. Bytes that still arrive do not extend this time.
  Duration linger_timeout = std::chrono::seconds(1);
  /// Maximum number of bytes that a closing connection still reads; one more byte closes it early.
  std::uint64_t linger_bytes_max = 64 * 1024;
  /// The limits for the rest of a body whose request was answered before its end. They replace the
  /// two limits above if they are larger. A client that reads nothing before its body is sent then
  /// gets the answer (RFC 9112 §9.6). A body without progress for linger_timeout ends the wait, and
  /// so does a drain; close. Over HTTP/2 they hold for the stream, which the server looks at once
  /// per second; RST_STREAM with NO_ERROR.
  Duration rejected_body_timeout = std::chrono::seconds(30);
  std::uint64_t rejected_body_max = 64 * 1024 * 1024;
  WebSocketLimits websocket = {};  ///< limits of a WebSocket; close
  H2Limits h2 = {};                ///< limits of a connection of HTTP/2; RST_STREAM or GOAWAY
  /// Open connections of the server on all cores of a runtime together. Servers with the same
  /// router and the same endpoint count as one. Servers of a runtime with 0 share the descriptor
  /// limit less 64, but at least 1. A full server closes an idle connection of the same core for a
  /// new one; 503 if there is none. An idle connection has sent no request for 1 s; a TLS handshake
  /// counts too, and so does HTTP/1 whose head is incomplete for 2 s. HTTP/1 gets 503 if a request
  /// may be on its way; HTTP/2 gets GOAWAY. The
  /// connection belongs to the same client, or to one with at least two more connections and an
  /// eighth of those of the core. A client is an IPv4 address or 64 bits of an IPv6 address.
  std::size_t connections_max = 0;
};

// The memory that peers can make a server hold, as its limits imply.

/// The values for memory_bound() that Limits does not contain.
struct MemoryBoundOptions {
  unsigned cores = 1;  ///< cores that serve; see Runtime::core_count()
  /// Number of connections if Limits::connections_max is 0; see Platform::descriptor_limit().
  std::size_t connections_max = 0;
  /// Largest body_max of any route, if it is larger than Limits::body_max.
  std::uint64_t body_max = 0;
  /// Largest number of bytes that each call of a handler holds in addition to the request: its
  /// frames, its arguments, its allocations and its response. Weir cannot measure this value.
  std::size_t handler_bytes = 4 * 1024;
  /// Bytes that handlers and middleware hold on each core for all of their requests together, such
  /// as those of compress_bytes_max() and ProxyMemoryBound::core.
  std::uint64_t core_bytes = 0;
  /// Options of ServeOptions::tls, such as `&server->options()`; nullptr: a server without TLS.
  const tls::ServerOptions* tls = nullptr;
  /// True if plain connections may use HTTP/2; see PlainHttp2. Those over TLS may if the protocols
  /// of `tls` include it. Each stream may hold a window of its body, and all windows together may
  /// grow by half of connection_window. H2Limits::streams_max, stream_window, connection_window and
  /// bodies_max are the next values to lower.
  bool http2 = false;
  /// True if the server has WebSockets; see Limits::websocket. A message may need three times its
  /// bytes while it is collected.
  bool websockets = false;
  /// The compression of WebSockets, the one with the largest windows if routes differ.
  std::optional<WebSocketCompression> websocket_compression = {};
  bool proxy_protocol = false;  ///< true if ServeOptions::proxy_protocol names proxies
};

/// Upper bounds, in bytes, of the memory of this process that a server's connections and cores
/// hold. They exclude the kernel's socket buffers, which net.ipv4.tcp_mem bounds for all
/// processes. They also exclude the memory that the program itself holds, such as certificates. A
/// bound that does not fit its type is the largest number of that type.
///
/// With TLS, `core` has tls::HandshakeLimits::concurrency_max handshakes, and three sets of the
/// objects that OpenSSL makes of the certificates. Certificates of clients cost most, because one
/// with very many names holds many times its size.
struct MemoryBound {
  /// A connection that waits for its next request. One whose client has sent a part of a head, or
  /// of a frame of HTTP/2, may hold as much as `connection` until Limits::head_timeout.
  std::uint64_t idle_connection;
  std::uint64_t connection;     ///< a connection at the worst moment of the worst request
  std::uint64_t core;           ///< one core, for all of its connections together
  std::uint64_t cached_blocks;  ///< free blocks of one core, kept for later
  std::size_t connections;      ///< number of connections open at the same time
  unsigned cores;
  /// What an idle connection over TLS holds in addition while its client has sent a part of a
  /// record. `connection` contains it.
  std::uint64_t incomplete_record = 0;

  /// Returns the bound when all connections are at their worst moment at the same time.
  std::uint64_t in_use() const noexcept;
  /// Returns the bound when no connection has a request or a part of one. Clients may have sent a
  /// part of a record of TLS on each.
  std::uint64_t idle() const noexcept;
  /// Returns the bytes that the server adds to the size of its process in the long run.
  std::uint64_t total() const noexcept;
  /// Returns a line for people: "at most 305.1 MiB: 100 connections of 1.6 MiB (2.0 KiB while
  /// idle), ...".
  std::string to_text() const;
};

/// Returns the bound of a server with these limits. The bound always holds and is no estimate:
/// only an attack brings all connections to their worst moment together. `body_max` and
/// `connections_max` are the first values to lower for a lower bound.
MemoryBound memory_bound(const Limits& limits, const MemoryBoundOptions& options = {}) noexcept;

}  // namespace weir::http

// The memory that the limits of a client imply.
#include "weir/http/client/client_limits.hpp"

#include <cstdint>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/memory_sizes.hpp"
#include "weir/http/client/client.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/client/detail/h1/h1_client_exchange.hpp"
#include "weir/http/client/detail/h2/h2_client_connection.hpp"
#include "weir/http/client/detail/h2/h2_client_exchange.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/detail/h2/response_fields.hpp"
#include "weir/http/ws/detail/connection.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/tls/options.hpp"

namespace weir::http {
namespace {

using weir::detail::block;
using weir::detail::product;
using weir::detail::sum;

// Coroutine frames have no size that a program could query; see memory_bound() of a server.
constexpr std::uint64_t frames_bytes = 16 * 1024;
constexpr std::uint64_t stream_bytes = 2 * 1024;

/// Returns the bytes of a text that doubles its memory while the old memory still exists.
std::uint64_t growing(std::uint64_t bytes) noexcept {
  return product(3, bytes);
}

/// Returns the bytes of the longest head: while it arrives in pieces, and its copy.
std::uint64_t head_bytes(const HeadLimits& limits) noexcept {
  constexpr std::uint64_t copies = 2;
  const std::uint64_t longest = sum({limits.request_line_max, limits.headers_bytes_max});
  return product(copies, growing(sum({longest, Buffer::default_capacity})));
}

/// Returns the bytes that io_uring has read ahead, each arrival in a quarter of its buffer.
std::uint64_t unread_bytes() noexcept {
  constexpr std::uint64_t unused = 4;
  return product(unused, loop::SocketOptions().unread_max) + 2 * block(Buffer::default_capacity);
}

}  // namespace

ClientMemoryBound memory_bound(const ClientLimits& limits) noexcept {
  const H2Limits http2 = in_range(limits.http2);
  ClientMemoryBound bound{};
  bound.idle_connection = sum({stream_bytes, block(sizeof(PooledConnection)), unread_bytes()});
  bound.connection =
      sum({bound.idle_connection, frames_bytes, block(sizeof(H1ClientExchange)),
           block(Buffer::default_capacity), head_bytes(limits.response.head),
           header_slots_bytes_max(limits.response.head),
           growing(limits.response.chunks.trailers_bytes_max), growing(limits.body_max)});
  const std::uint64_t response =
      sum({frames_bytes, block(sizeof(H2ClientExchange)), block(http2.field_list_max),
           header_slots_bytes_max(limits.response.head), growing(http2.field_list_max),
           growing(limits.body_max), H2ClientExchange::interim_bytes_max(limits)});
  bound.http2_connection =
      sum({bound.idle_connection, block(sizeof(H2ClientConnection)), block(HpackTable::memory_max),
           block(Buffer::default_capacity), session_bytes_max(http2, response)});
  bound.waiting_request = frames_bytes;
  const std::uint64_t waiting = product(limits.waiting_max, bound.waiting_request);
  bound.total = sum({product(limits.connections_max, bound.connection), waiting});
  ResponseFieldLimits of_fields;
  of_fields.list_bytes_max = http2.field_list_max;
  bound.http2_total = sum({product(limits.connections_max, bound.http2_connection), waiting,
                           ResponseFieldReader::memory(of_fields)});
  // Proxies and WebSockets have another connector, because they need HTTP/1.1.
  constexpr std::uint64_t connectors = 2;
  bound.tls_sessions = connectors * tls::kept_sessions_bytes_max(tls::ClientOptions());
  return bound;
}

std::uint64_t memory_bound(const ClientWebSocketOptions& options, const HeadLimits& head) noexcept {
  return sum({stream_bytes, unread_bytes(), frames_bytes, head_bytes(head),
              block(Buffer::default_capacity),
              websocket_bytes_max(options.limits, options.compression)});
}

}  // namespace weir::http

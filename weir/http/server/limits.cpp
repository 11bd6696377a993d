#include "weir/http/server/limits.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/memory_sizes.hpp"
#include "weir/http/detail/h2/request_fields.hpp"
#include "weir/http/server/detail/h1/h1_connection.hpp"
#include "weir/http/server/detail/h2/h2_connection.hpp"
#include "weir/http/server/detail/open_connections.hpp"
#include "weir/http/server/detail/served_websocket.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/net/proxy_protocol.hpp"
#include "weir/tls/options.hpp"

namespace weir::http {
namespace {

// Coroutine frames have no size that a program could query; the tests measure both values. The
// first is the longest chain of frames of a connection. The second is an idle connection with the
// state of its backend.
constexpr std::uint64_t frames_bytes = 16 * 1024;
constexpr std::uint64_t idle_bytes = 2 * 1024;
// Receive buffers that io_uring provides; see uring::Buffers.
constexpr std::uint64_t lent_buffers = 256;
// Other memory of a core: its scopes, its listener, its server, and the lingering streams.
constexpr std::uint64_t core_bytes = 64 * 1024;

using weir::detail::block;
using weir::detail::buffer;
using weir::detail::product;
using weir::detail::sum;

/// Returns the size of the longest head, with the empty lines that may precede it.
std::uint64_t head_bytes(const HeadLimits& limits) noexcept {
  constexpr std::uint64_t line_end = 2;
  return limits.request_line_max + line_end + limits.headers_bytes_max +
         line_end * limits.empty_lines_max;
}

/// Returns the bytes for a head that arrives in small pieces. Its buffer doubles while the old
/// one still exists. The head is copied when its handler waits.
std::uint64_t input_bytes(std::uint64_t head) noexcept {
  constexpr std::uint64_t worth_reading = 2048;
  return 2 * buffer(std::max(2 * head, head + worth_reading)) + block(head);
}

/// Returns the bytes for a body that is collected; its buffer doubles in the same way.
std::uint64_t body_bytes(std::uint64_t body) noexcept {
  return body == 0 ? 0 : sum({buffer(body), buffer(product(2, body))});
}

/// Returns the bytes for a growing line, the lines before it, and their copy.
std::uint64_t trailers_bytes(const ChunkLimits& limits) noexcept {
  constexpr std::uint64_t copies = 5;
  constexpr std::uint64_t each = 16;
  return copies * limits.trailers_bytes_max + each * limits.trailers_max;
}

/// Returns the bytes that io_uring has read ahead. Each arrival may use only a quarter of its
/// buffer.
std::uint64_t unread_bytes() noexcept {
  constexpr std::uint64_t unused = 4;
  constexpr std::uint64_t more = 2;  // the buffer that reached the limit, and the list's nodes
  return unused * loop::SocketOptions().unread_max + more * buffer(0);
}

/// Returns the bytes of one WebSocket, without those of its stream.
std::uint64_t websocket_bytes(const WebSocketLimits& limits,
                              const std::optional<WebSocketCompression>& compression) noexcept {
  return sum({block(sizeof(ServedWebSocket)), websocket_bytes_max(limits, compression)});
}

/// Raises the bounds to those of connections with HTTP/2.
void add_http2(MemoryBound& bound, const Limits& limits, std::uint64_t body,
               const MemoryBoundOptions& options) noexcept {
  constexpr std::uint64_t frames_of_stream = 4 * 1024;
  constexpr std::uint64_t grown = 3;  // a list of twice the size, and the one before it
  const std::uint64_t fields = limits.h2.field_list_max;
  constexpr std::uint64_t doubled = 2;  // the capacity of a buffer that has grown
  const std::uint64_t first = options.websockets
                                  ? limits.h2.stream_window
                                  : std::min<std::uint64_t>(body, limits.h2.stream_window);
  const std::uint64_t stream = sum(
      {block(sizeof(H2Carrier)), block(fields), product(grown, block(fields)),
       header_slots_bytes_max(limits.head), first == 0 ? 0 : buffer(product(doubled, first)),
       options.websockets ? websocket_bytes(limits.websocket, options.websocket_compression) : 0,
       frames_of_stream, options.handler_bytes});
  // The bytes of bodies beyond the first windows of their streams: those that handlers collect, and
  // those in windows that have grown.
  const std::uint64_t bodies =
      body == 0 ? 0
                : sum({product(doubled,
                               sum({limits.h2.bodies_max, limits.h2.connection_window / 2, body})),
                       buffer(body)});
  const std::uint64_t kept = sum({block(sizeof(H2ConnectionState)), block(HpackTable::memory_max)});
  // A connection has a spare exchange.
  const std::uint64_t own = sum({idle_bytes, frames_bytes, kept, block(sizeof(H2Connection)),
                                 block(sizeof(H2Carrier)), buffer(0), unread_bytes()});
  bound.connection =
      std::max(bound.connection, sum({own, bodies, session_bytes_max(limits.h2, stream)}));
  bound.idle_connection = sum({idle_bytes, kept});
  RequestFieldLimits of_fields;
  of_fields.head = limits.head;
  of_fields.list_bytes_max = limits.h2.field_list_max;
  bound.core = sum({bound.core, RequestFieldReader::memory(of_fields)});
}

/// Returns true if clients of a server with these options may choose HTTP/2.
bool chooses_http2(const tls::ServerOptions* options) noexcept {
  return options != nullptr &&
         std::ranges::find(options->protocols, "h2") != options->protocols.end();
}

/// Adds the bytes of TLS. A connection either performs the handshake or serves requests.
void add_tls(MemoryBound& bound, const tls::ServerOptions& options) noexcept {
  const tls::ServerMemoryBound tls = tls::memory_bound(options);
  bound.idle_connection = sum({bound.idle_connection, tls.idle_connection});
  bound.incomplete_record = tls.incomplete_record;
  bound.connection = std::max(sum({bound.connection, tls.connection}),
                              sum({idle_bytes, frames_bytes, unread_bytes(), tls.first_message}));
  const std::uint64_t handshakes =
      std::min<std::uint64_t>(options.limits.concurrency_max, bound.connections);
  // Evicted connections that read their 503; those without TLS count as rejected ones.
  const std::uint64_t evicted =
      product(OpenConnections::rejections_max, sum({tls.idle_connection, tls.incomplete_record}));
  bound.core = sum({bound.core, tls.core, product(handshakes, tls.handshake), evicted});
}

std::string in_words(std::uint64_t bytes) {
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  auto amount = static_cast<double>(bytes);
  for (; amount >= 1024 && unit + 1 < units.size(); ++unit) amount /= 1024;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", unit == 0 ? 0 : 1, amount, units[unit]);
  return text.data();
}

}  // namespace

MemoryBound memory_bound(const Limits& given, const MemoryBoundOptions& options) noexcept {
  Limits limits = given;
  limits.h2 = in_range(given.h2);
  const std::uint64_t head = head_bytes(limits.head);
  const std::uint64_t body = std::max(limits.body_max, options.body_max);
  const std::uint64_t output = buffer(0);
  MemoryBound bound{};
  bound.idle_connection = idle_bytes;
  bound.connection =
      sum({idle_bytes, frames_bytes, block(sizeof(H1Connection)), input_bytes(head),
           header_slots_bytes_max(limits.head), body_bytes(body), trailers_bytes(limits.chunks),
           unread_bytes(), output, options.handler_bytes});
  // Rejected connections, each with the buffer of its response.
  constexpr std::uint64_t late = 2 * OpenConnections::rejections_max;
  bound.core =
      core_bytes + lent_buffers * buffer(0) + late * (idle_bytes + frames_bytes + buffer(0));
  if (options.http2 || chooses_http2(options.tls)) add_http2(bound, limits, body, options);
  if (options.websockets) {
    bound.connection = std::max(
        bound.connection, sum({idle_bytes, frames_bytes, unread_bytes(),
                               websocket_bytes(limits.websocket, options.websocket_compression),
                               options.handler_bytes}));
  }
  if (options.websocket_compression) bound.core = sum({bound.core, WsDeflateCore::bytes_max()});
  bound.cached_blocks = BlockPool::caches_free_blocks ? BlockPool::cached_bytes_max : 0;
  bound.cores = std::max(options.cores, 1U);
  // Each core checks before it opens a connection, so the other cores may each be one ahead.
  bound.connections = sum({bound.cores - 1, limits.connections_max != 0 ? limits.connections_max
                                                                        : options.connections_max});
  if (options.tls != nullptr) add_tls(bound, *options.tls);
  if (options.proxy_protocol) {
    const std::uint64_t proxied = block(ProxyProtocol::stream_bytes);
    bound.idle_connection = sum({bound.idle_connection, proxied});
    bound.connection = sum({bound.connection, proxied});
  }
  const std::uint64_t evicted =
      sum({bound.idle_connection, bound.incomplete_record, frames_bytes, buffer(0)});
  bound.core =
      sum({bound.core, options.core_bytes, product(OpenConnections::evictions_max, evicted)});
  return bound;
}

std::uint64_t MemoryBound::in_use() const noexcept {
  return sum({product(connections, connection), product(cores, core)});
}

std::uint64_t MemoryBound::idle() const noexcept {
  return sum(
      {product(connections, sum({idle_connection, incomplete_record})), product(cores, core)});
}

std::uint64_t MemoryBound::total() const noexcept {
  return sum({in_use(), product(cores, cached_blocks)});
}

std::string MemoryBound::to_text() const {
  std::string text = "at most " + in_words(total()) + ": " + std::to_string(connections) +
                     " connections of " + in_words(connection) + " each (" +
                     in_words(sum({idle_connection, incomplete_record})) + " while idle), ";
  text += std::to_string(cores) + (cores == 1 ? " core of " : " cores of ") + in_words(core) +
          " and " + in_words(cached_blocks) + " of free blocks each";
  return text;
}

}  // namespace weir::http

// WebSockets of clients: the opening handshake over HTTP/1.1 (RFC 6455 §4.1) and over HTTP/2 (RFC
// 8441).
#include "weir/http/client/detail/client_websocket.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/http/client/detail/h1/h1_client_exchange.hpp"
#include "weir/http/client/detail/h2/h2_client_connection.hpp"
#include "weir/http/client/detail/h2/h2_client_exchange.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/ws/detail/connection.hpp"
#include "weir/http/ws/detail/extension.hpp"
#include "weir/http/ws/detail/handshake.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

// The time for the end of a stream of HTTP/2 behind the closing handshake.
constexpr Duration end_timeout = std::chrono::seconds(1);

/// Returns a key of unpredictable bytes.
std::string new_key(Loop& loop) {
  const std::array<std::uint64_t, 2> random{loop.platform().random(), loop.platform().random()};
  const WsKey key = websocket_key(std::bit_cast<std::array<std::byte, 16>>(random));
  return {key.data(), key.size()};
}

/// Returns true for a header of a response that only the handshake has.
bool is_of_handshake(std::string_view name) noexcept {
  return equals_ignoring_case(name, "upgrade") ||
         equals_ignoring_case(name, "sec-websocket-accept") ||
         equals_ignoring_case(name, "sec-websocket-protocol") ||
         equals_ignoring_case(name, "sec-websocket-extensions");
}

/// Returns the request for a WebSocket: of HTTP/1.1 with a key, or the extended CONNECT of HTTP/2
/// without one.
/// Errors: Errc::bad_input for a header of the handshake, and for a subprotocol that is no token;
/// Errc::bad_configuration for a compression that this build cannot do.
Result<std::string> websocket_request(const Url& url, std::string_view key,
                                      const ClientWebSocketOptions& options) {
  for (const std::string_view name :
       {"connection", "upgrade", "te", "content-length", "transfer-encoding", "sec-websocket-key",
        "sec-websocket-version", "sec-websocket-protocol", "sec-websocket-extensions"}) {
    if (options.headers.contains(name)) return fail(Errc::bad_input);
  }
  const bool is_http2 = key.empty();
  std::string request;
  request.append(is_http2 ? "CONNECT " : "GET ").append(url.target()).append(" HTTP/1.1\r\n");
  if (!options.headers.contains("host")) {
    request.append("Host: ").append(url.authority()).append("\r\n");
  }
  request.append("Sec-WebSocket-Version: 13\r\n");
  if (!is_http2) {
    request.append("Upgrade: websocket\r\nConnection: Upgrade\r\n");
    request.append("Sec-WebSocket-Key: ").append(key).append("\r\n");
  }
  std::string list;
  for (const std::string& each : options.subprotocols) {
    if (!is_token(each)) return fail(Errc::bad_input);
    list.append(list.empty() ? "" : ", ").append(each);
  }
  if (!list.empty()) request.append("Sec-WebSocket-Protocol: ").append(list).append("\r\n");
  if (options.compression) {
    if (!can_deflate(*options.compression)) return fail(Errc::bad_configuration);
    request.append("Sec-WebSocket-Extensions: ")
        .append(deflate_offer(*options.compression))
        .append("\r\n");
  }
  return request.append(options.headers.lines()).append("\r\n");
}

/// Returns the WebSocket that a response has accepted. `key` is empty over HTTP/2.
/// Errors: ClientError::bad_response for another answer than the one to `key` and the offers.
Result<OpenedWebSocket> accepted_websocket(AnyStream stream, const ReceivedResponseHead& head,
                                           std::string_view rest, std::string_view key,
                                           const ClientWebSocketOptions& options) {
  const std::vector<std::string_view> offered(options.subprotocols.begin(),
                                              options.subprotocols.end());
  const auto* const compression = options.compression ? &*options.compression : nullptr;
  const auto chosen = check_websocket_response(head, key, offered, compression);
  if (!chosen) return fail(ClientError::bad_response);
  OpenedWebSocket opened{std::move(stream), {}, std::string(chosen->subprotocol),
                         chosen->deflate,   {}, key.empty()};
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (!is_of_handshake(field.name)) std::ignore = opened.headers.add(field.name, field.value);
  }
  if (rest.empty()) return opened;
  opened.input.make_room(rest.size());
  std::memcpy(opened.input.room().data(), rest.data(), rest.size());
  opened.input.commit(rest.size());
  return opened;
}

/// Returns the response that begins with `received`, a complete head and more.
Result<WebSocketAnswer> refusal(AnyStream stream, std::string received, Url url,
                                const ClientLimits& limits) {
  ClientPool::Lease lease(make_block<PooledConnection>(std::move(stream)));
  auto* const exchange = new H1ClientExchange(std::move(lease), limits, never);
  ClientResponse response{detail::ExchangePtr(exchange)};
  exchange->set_url(std::move(url));
  WEIR_TRY(exchange->take_response(Method::get, std::move(received)));
  return WebSocketAnswer(std::move(response));
}

/// Sends a request for a WebSocket and reads the response. `key` is that of websocket_key().
Task<Result<WebSocketAnswer>> shake_hands(AnyStream stream, std::string request, std::string key,
                                          Url url, const ClientWebSocketOptions& options,
                                          const ClientLimits& limits) {
  const Result<> written = co_await stream->write(request);
  if (!written && written.error() == Errc::cancelled) co_return fail(Errc::cancelled);
  HeadParser parser(limits.response.head);
  ReceivedResponseHead head;
  std::string input;
  for (std::uint32_t interim = 0; interim <= limits.response.interim_max;) {
    const ParseResult parsed = parser.parse(input, head);
    if (parsed.kind == ParseResult::Kind::error) break;  // also if it is too long
    if (parsed.kind == ParseResult::Kind::incomplete) {
      const Result<Buffer> piece = co_await stream->read();
      if (!piece && piece.error() == Errc::cancelled) co_return fail(Errc::cancelled);
      if (!piece) co_return fail(lost_error(piece.error()));
      input += piece->text();
      continue;
    }
    const int status = code_of(head.status());
    if (status == 101) {
      const std::string_view rest = std::string_view(input).substr(parsed.consumed);
      WEIR_CO_TRY(auto opened, accepted_websocket(std::move(stream), head, rest, key, options));
      co_return WebSocketAnswer(std::move(opened));
    }
    if (status >= 200) {
      co_return refusal(std::move(stream), std::move(input), std::move(url), limits);
    }
    input.erase(0, parsed.consumed);
    ++interim;
  }
  co_return fail(ClientError::bad_response);
}

// Over HTTP/2.

/// A connection of HTTP/2, or the stream of a new one whose server has chosen HTTP/1.1.
using FirstConnection = std::variant<H2ClientConnection*, AnyStream>;

/// Returns a connection to the server of `url` that can carry another request, or opens one.
Task<Result<FirstConnection>> connection_for(ClientPool& pool, const Url& url) {
  H2ClientConnection* const open = pool.http2_for(url);
  if (open != nullptr) co_return FirstConnection(open);
  std::optional<ClientPool::Lease> lease = pool.try_acquire(url);
  if (!lease) {
    WEIR_CO_TRY(auto place, co_await pool.acquire(url, never));
    if (place.http2 != nullptr) co_return FirstConnection(place.http2);
    lease = std::move(place.lease);
  }
  WEIR_CO_TRY(co_await lease->connect(url, never));
  if (!lease->is_http2()) co_return FirstConnection(lease->take_stream());
  co_return FirstConnection(&pool.add_http2(*std::exchange(lease, {})));
}

/// Returns the answer that an exchange has received.
Result<WebSocketAnswer> answer_of(detail::ExchangePtr exchange, const Url& url,
                                  const ClientWebSocketOptions& options) {
  const ReceivedResponseHead& head = exchange->head();
  if (code_of(head.status()) >= 300) {
    exchange->set_url(url);
    return WebSocketAnswer(ClientResponse(std::move(exchange)));
  }
  AnyStream tunnel = H2ClientExchange::tunnel(std::move(exchange));  // it has the head
  WEIR_TRY(auto opened, accepted_websocket(std::move(tunnel), head, {}, {}, options));
  return WebSocketAnswer(std::move(opened));
}

/// Asks for a WebSocket over HTTP/2.
/// Returns: the answer; the stream of a new connection if its server has chosen HTTP/1.1.
/// Errors: those of open_websocket(); Errc::unsupported if the server does not offer it.
Task<Result<std::variant<WebSocketAnswer, AnyStream>>> ask_over_http2(
    ClientPool& pool, const Url& url, const ClientWebSocketOptions& options) {
  using Outcome = std::variant<WebSocketAnswer, AnyStream>;
  constexpr unsigned attempts_max = 4;  // for streams that the server has not processed
  const Context own = co_await this_context();
  const ClientLimits& limits = pool.limits();
  WEIR_CO_TRY(const std::string request, websocket_request(url, {}, options));
  for (unsigned attempts = 1;; ++attempts) {
    WEIR_CO_TRY(auto connection, co_await connection_for(pool, url));
    if (auto* const stream = std::get_if<AnyStream>(&connection)) {
      co_return Outcome(std::move(*stream));
    }
    auto* const sent =
        new H2ClientExchange(*std::get<H2ClientConnection*>(connection), limits, never);
    detail::ExchangePtr exchange(sent);
    const Instant until = after(own.loop->platform().now(), limits.head_timeout);
    const Result<> answered = co_await sent->connect(url.scheme(), request, until);
    if (answered) {
      WEIR_CO_TRY(auto answer, answer_of(std::move(exchange), url, options));
      co_return Outcome(std::move(answer));
    }
    // The only effect of the handshake is a WebSocket, which ends with the connection.
    const bool repeat = attempts < (sent->lost() ? 2 : attempts_max) && sent->may_repeat(true);
    if (!repeat || answered.error() == Errc::cancelled) co_return fail(answered.error());
  }
}

// Over HTTP/1.1.

Task<Result<AnyStream>> open_http1(ClientPool& pool, const Url& url, Loop& loop) {
  auto opening = pool.open_http1(url, loop);
  auto stream = co_await timeout(pool.limits().connect_timeout, std::move(opening));
  if (stream) co_return std::move(*stream);
  const bool late = stream.error() == Errc::timed_out;
  co_return fail(late ? make_error_code(ClientError::connect_timed_out) : stream.error());
}

}  // namespace

Task<Result<WebSocketAnswer>> open_websocket(ClientPool& pool, Url url,
                                             const ClientWebSocketOptions& options) {
  const Context own = co_await this_context();
  const ClientLimits& limits = pool.limits();
  const std::string key = new_key(*own.loop);
  WEIR_CO_TRY(std::string request, websocket_request(url, key, options));
  std::optional<AnyStream> stream;
  if (options.http2 && pool.may_speak_http2(url) && !pool.speaks_http1(url)) {
    auto asked = co_await ask_over_http2(pool, url, options);
    if (!asked && asked.error() != Errc::unsupported) co_return fail(asked.error());
    if (asked && std::holds_alternative<WebSocketAnswer>(*asked)) {
      co_return std::move(std::get<WebSocketAnswer>(*asked));
    }
    if (asked) stream.emplace(std::move(std::get<AnyStream>(*asked)));
  }
  if (!stream) {
    WEIR_CO_TRY(stream, co_await open_http1(pool, url, *own.loop));
  }
  auto shaking =
      shake_hands(std::move(*stream), std::move(request), key, std::move(url), options, limits);
  auto answer = co_await timeout(limits.head_timeout, std::move(shaking));
  if (answer) co_return std::move(*answer);
  const bool late = answer.error() == Errc::timed_out;
  co_return fail(late ? make_error_code(ClientError::head_timed_out) : answer.error());
}

namespace {

/// Ends a stream of HTTP/2 in both directions, so that it need not be reset.
Task<Result<>> end_stream(Stream& stream) {
  WEIR_CO_TRY(stream.finish_writing());
  for (;;) WEIR_CO_TRY(co_await stream.read());
}

}  // namespace

Task<Result<>> use_websocket(OpenedWebSocket opened, WebSocketFunction serve,
                             const ClientWebSocketOptions& options) {
  const Context own = co_await this_context();
  std::unique_ptr<WsDeflate> deflate;
  if (opened.deflate) {
    deflate = std::make_unique<WsDeflate>(*own.loop, WsRole::client, *opened.deflate,
                                          *options.compression);
  }
  std::unique_ptr<const std::string> subprotocol;
  if (!opened.subprotocol.empty()) {
    subprotocol = std::make_unique<const std::string>(std::move(opened.subprotocol));
  }
  WsConnection connection(std::move(opened.stream), WsRole::client, options.limits,
                          std::move(opened.input), std::move(subprotocol), own.cancel,
                          std::move(deflate));
  const Context context{own.loop, &connection.handler()};
  WebSocketCloseCode code = WebSocketCloseCode::normal;
  Result<> result;
  std::exception_ptr exception;
  try {
    WebSocketTask task = serve(connection);
    if (auto* const plain = std::get_if<Task<>>(&task)) {
      in_context<void> running(context, std::move(*plain));
      co_await std::move(running);
    } else {
      in_context<Result<>> running(context, std::move(std::get<Task<Result<>>>(task)));
      result = co_await std::move(running);
    }
  } catch (...) {
    exception = std::current_exception();
  }
  const bool ended = connection.error() == Errc::end_of_stream;
  if (exception || (!result && !connection.error())) code = WebSocketCloseCode::internal_error;
  co_await connection.finish(code);
  if (opened.is_http2 && connection.lingers()) {
    auto ending = end_stream(*connection.stream());
    const Duration most = std::min<Duration>(options.limits.close_timeout, end_timeout);
    std::ignore = co_await timeout(most, std::move(ending));
  }
  if (exception) std::rethrow_exception(exception);
  if (!result && ended && result.error() == Errc::end_of_stream) result = {};
  co_return result;
}

}  // namespace weir::http

// WebSockets of clients: the opening handshake over HTTP/1.1 (RFC 6455 §4.1).

#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/ws/detail/connection.hpp"
#include "weir/http/ws/detail/extension.hpp"
#include "weir/http/ws/detail/handshake.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

constexpr std::size_t read_max = 64 * 1024;  // of a head; HeadLimits are lower

/// Returns a key of unpredictable bytes.
std::string new_key(Loop& loop) {
  const std::array<std::uint64_t, 2> random{loop.platform().random(), loop.platform().random()};
  const WsKey key = websocket_key(std::bit_cast<std::array<std::byte, 16>>(random));
  return {key.data(), key.size()};
}

/// Returns the request for a WebSocket.
/// Errors: Errc::bad_input for a header of the handshake, and for a subprotocol that is no token;
/// Errc::bad_configuration for a compression that this build cannot do.
Result<std::string> websocket_request(const Url& url, std::string_view key,
                                      const ClientWebSocketOptions& options) {
  for (const std::string_view name :
       {"connection", "upgrade", "content-length", "transfer-encoding", "sec-websocket-key",
        "sec-websocket-version", "sec-websocket-protocol", "sec-websocket-extensions"}) {
    if (options.headers.contains(name)) return fail(Errc::bad_input);
  }
  std::string request;
  request.append("GET ").append(url.target()).append(" HTTP/1.1\r\n");
  if (!options.headers.contains("host")) {
    request.append("Host: ").append(url.authority()).append("\r\n");
  }
  request.append("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n");
  request.append("Sec-WebSocket-Key: ").append(key).append("\r\n");
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

/// Calls the function for the connection, and performs the closing handshake. The connection may be
/// made after this task, which then needs no more memory.
Task<Result<>> serve(std::optional<WsConnection>& made, WebSocketFunction function,
                     Context context) {
  WsConnection& connection = *made;
  WebSocketCloseCode code = WebSocketCloseCode::normal;
  Result<> result;
  std::exception_ptr exception;
  try {
    WebSocketTask task = function(connection);
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
  if (exception) std::rethrow_exception(exception);
  if (!result && ended && result.error() == Errc::end_of_stream) result = {};
  co_return result;
}

/// Returns the URL with the scheme http or https for one with ws or wss, or for itself.
Result<Url> websocket_url(std::string_view url) {
  std::string text(url);
  if (text.starts_with("ws://") || text.starts_with("wss://")) text.replace(0, 2, "http");
  return Url::parse(text);
}

/// The answer of a server to a handshake.
struct WebSocketAnswer {
  std::string subprotocol;  ///< the chosen one; empty for none
  std::optional<WebSocketDeflate> deflate;
  Buffer input;  ///< the bytes behind the response
};

/// Sends a request for a WebSocket and reads the response. `key` is that of websocket_key().
Task<Result<WebSocketAnswer>> shake_hands(Stream& stream, std::string request, std::string key,
                                          const ClientWebSocketOptions& options,
                                          const ResponseLimits& limits) {
  const Result<> written = co_await stream.write(request);
  if (!written && written.error() == Errc::cancelled) co_return fail(Errc::cancelled);
  HeadParser parser(limits.head);
  ReceivedResponseHead head;
  std::string input;
  for (std::uint32_t interim = 0; interim <= limits.interim_max;) {
    const ParseResult parsed = parser.parse(input, head);
    if (parsed.kind == ParseResult::Kind::error || input.size() > read_max) break;
    if (parsed.kind == ParseResult::Kind::incomplete) {
      const Result<Buffer> piece = co_await stream.read();
      if (!piece && piece.error() == Errc::cancelled) co_return fail(Errc::cancelled);
      if (!piece) co_return fail(ClientError::connection_lost);
      input += piece->text();
      continue;
    }
    const int status = code_of(head.status());
    if (status >= 400) co_return fail(error_of(head.status()));
    if (status == 101) {
      const std::vector<std::string_view> offered(options.subprotocols.begin(),
                                                  options.subprotocols.end());
      const auto* const compression = options.compression ? &*options.compression : nullptr;
      const auto chosen = check_websocket_response(head, key, offered, compression);
      if (!chosen) break;
      WebSocketAnswer answer{
          .subprotocol = std::string(chosen->subprotocol), .deflate = chosen->deflate, .input = {}};
      const std::string_view rest = std::string_view(input).substr(parsed.consumed);
      if (!rest.empty()) {
        answer.input.make_room(rest.size());
        std::memcpy(answer.input.room().data(), rest.data(), rest.size());
        answer.input.commit(rest.size());
      }
      co_return answer;
    }
    if (status >= 200) break;
    input.erase(0, parsed.consumed);
    ++interim;
  }
  co_return fail(ClientError::bad_response);
}

}  // namespace

Task<Result<>> Client::websocket(std::string url, WebSocketFunction serve_socket,
                                 ClientWebSocketOptions options) {
  const Context own = co_await this_context();
  WEIR_CO_TRY(const Url target, websocket_url(url));
  const std::string key = new_key(*own.loop);
  WEIR_CO_TRY(std::string request, websocket_request(target, key, options));
  auto opening = pool_->open_http1(target, *own.loop);
  auto opened = co_await timeout(options_.limits.connect_timeout, std::move(opening));
  if (!opened) {
    const bool late = opened.error() == Errc::timed_out;
    co_return fail(late ? make_error_code(ClientError::connect_timed_out) : opened.error());
  }
  AnyStream stream = std::move(*opened);
  auto shaking = shake_hands(*stream, std::move(request), key, options, options_.limits.response);
  auto answer = co_await timeout(options_.limits.head_timeout, std::move(shaking));
  if (!answer) {
    const bool late = answer.error() == Errc::timed_out;
    co_return fail(late ? make_error_code(ClientError::head_timed_out) : answer.error());
  }
  CancelSource handler(own.cancel);
  std::unique_ptr<WsDeflate> deflate;
  if (answer->deflate) {
    deflate = std::make_unique<WsDeflate>(*own.loop, WsRole::client, *answer->deflate,
                                          *options.compression);
  }
  std::optional<WsConnection> connection;
  auto serving = serve(connection, std::move(serve_socket), Context{own.loop, &handler});
  connection.emplace(std::move(stream), WsRole::client, options.limits, std::move(answer->input),
                     answer->subprotocol, handler, std::move(deflate));
  co_return co_await std::move(serving);
}

}  // namespace weir::http

// The client: connections and redirects.
#include "weir/http/client/client.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "weir/http/client/detail/client_exchange.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/dns/connect.hpp"
#include "weir/net/listen/unix_socket.hpp"
#include "weir/task/context.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {
namespace {

Task<Result<tcp::Stream>> connect(const Url& url, const ClientOptions& options) {
  if (!options.unix_socket.empty()) {
    co_return co_await unix_socket::connect(options.unix_socket);
  }
  tcp::ConnectOptions how;
  how.resolver = options.resolver;
  std::string host(url.host());
  co_return co_await tcp::connect(std::move(host), url.port(), how);
}

std::error_code connect_error(std::error_code error) noexcept {
  if (error == Errc::cancelled) return error;
  return error == Errc::timed_out ? ClientError::connect_timed_out : ClientError::connect_failed;
}

}  // namespace

Client::Client(ClientOptions options) : options_(std::move(options)) {}

Task<Result<ClientResponse>> Client::send(ClientRequest request) {
  const bool sendable = request.method() != Method::connect && request.method() != Method::other;
  if (!sendable) co_return fail(Errc::bad_input);
  if (request.url().scheme() != "http") co_return fail(Errc::unsupported);
  const Context own = co_await this_context();
  const Duration total = request.timeout().value_or(options_.limits.total_timeout);
  const Instant deadline = after(own.loop->platform().now(), total);
  auto connecting = connect(request.url(), options_);
  const Duration limit = std::min(total, options_.limits.connect_timeout);
  Result<tcp::Stream> stream = co_await timeout(limit, std::move(connecting));
  if (!stream) {
    const bool late = stream.error() == Errc::timed_out && limit == total;
    co_return fail(late ? ClientError::timed_out : connect_error(stream.error()));
  }
  auto exchange = std::make_unique<ClientExchange>(std::move(*stream), request.url(),
                                                   options_.limits, deadline);
  const Result<> answered = co_await exchange->run(request);
  if (!answered) co_return fail(answered.error());
  co_return ClientResponse(std::move(exchange));
}

Task<Result<ClientResponse>> Client::get(std::string url) {
  Result<Url> parsed = Url::parse(url);
  if (!parsed) co_return fail(parsed.error());
  ClientRequest request(Method::get, std::move(*parsed));
  co_return co_await send(std::move(request));
}

Task<Result<ClientResponse>> Client::post(std::string url, MediaType type, Body body) {
  Result<Url> parsed = Url::parse(url);
  if (!parsed) co_return fail(parsed.error());
  ClientRequest request(Method::post, std::move(*parsed));
  request.set_body(type, std::move(body));
  co_return co_await send(std::move(request));
}

}  // namespace weir::http

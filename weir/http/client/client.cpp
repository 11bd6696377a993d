// The client: attempts, the retry and redirects.
#include "weir/http/client/client.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "weir/http/client/detail/client_exchange.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/client/detail/redirect.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"

namespace weir::http {

Client::Client(ClientOptions options)
    : options_(std::move(options)), pool_(std::make_unique<ClientPool>(options_)) {}

Client::~Client() = default;

std::size_t Client::connection_count() const noexcept {
  return pool_->open_count();
}

std::size_t Client::idle_count() const noexcept {
  return pool_->idle_count();
}

Task<Result<ClientResponse>> Client::send(ClientRequest request) {
  if (request.error()) co_return fail(request.error());
  const bool sendable = request.method() != Method::connect && request.method() != Method::other;
  if (!sendable) co_return fail(Errc::bad_input);
  const Context own = co_await this_context();
  const Duration total = request.timeout().value_or(options_.limits.total_timeout);
  const Instant deadline = after(own.loop->platform().now(), total);
  for (unsigned redirects = 0;; ++redirects) {
    Result<std::unique_ptr<ClientExchange>> exchange = co_await send_once(request, deadline);
    if (!exchange) co_return fail(exchange.error());
    ClientResponse response(std::move(*exchange));
    const std::optional<std::string_view> location = response.header("location");
    if (!location || options_.limits.redirects_max == 0) co_return std::move(response);
    const Result<Redirect> followed =
        follow_redirect(request, response.status(), *location, options_.sensitive_headers);
    if (!followed) co_return fail(followed.error());
    if (*followed == Redirect::none) co_return std::move(response);
    if (redirects == options_.limits.redirects_max) {
      co_return fail(ClientError::too_many_redirects);
    }
  }
}

/// Sends the request to its URL. It is sent a second time, on a new connection, only if a reused
/// connection was lost and ClientExchange::may_repeat() allows it.
Task<Result<std::unique_ptr<ClientExchange>>> Client::send_once(ClientRequest& request,
                                                                Instant deadline) {
  const Result<std::string> head = request_head(request);
  if (!head) co_return fail(head.error());
  if (request.url().scheme() != "http") co_return fail(Errc::unsupported);
  Result<ClientPool::Lease> lease = co_await pool_->acquire(request.url(), deadline);
  if (!lease) co_return fail(lease.error());
  bool reused = lease->take_idle();
  while (true) {
    if (!reused) {
      const Result<> connected = co_await lease->connect(request.url(), deadline);
      if (!connected) co_return fail(connected.error());
    }
    auto exchange = std::make_unique<ClientExchange>(std::move(*lease), request.url(),
                                                     options_.limits, deadline);
    const Result<> answered = co_await exchange->run(request, *head);
    if (answered) co_return std::move(exchange);
    const bool repeat =
        reused && answered.error() == ClientError::connection_lost && exchange->may_repeat(request);
    if (!repeat) co_return fail(answered.error());
    *lease = exchange->take_lease();
    reused = false;
  }
}

}  // namespace weir::http

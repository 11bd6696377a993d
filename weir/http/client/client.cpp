// The client: attempts, the retry and redirects.
#include "weir/http/client/client.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "weir/http/client/cookie_jar.hpp"
#include "weir/http/client/detail/client_head.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/http/client/detail/client_websocket.hpp"
#include "weir/http/client/detail/h1/h1_client_exchange.hpp"
#include "weir/http/client/detail/h2/h2_client_connection.hpp"
#include "weir/http/client/detail/h2/h2_client_exchange.hpp"
#include "weir/http/client/detail/proxy.hpp"
#include "weir/http/message/detail/field_search.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"

namespace weir::http {
namespace {

// Attempts of a request that servers of HTTP/2 have not processed.
constexpr unsigned http2_attempts_max = 4;

/// Returns the URL with the scheme http or https for one with ws or wss, or for itself.
Result<Url> websocket_url(std::string_view url) {
  std::string text(url);
  const std::string_view scheme = url.substr(0, url.find("://"));
  if (equals_ignoring_case(scheme, "ws") || equals_ignoring_case(scheme, "wss")) {
    text.replace(0, 2, "http");
  }
  return Url::parse(text);
}

}  // namespace

Client::Client(ClientOptions options) : options_(std::move(options)) {
  options_.limits.http2 = in_range(options_.limits.http2);
  pool_ = std::make_unique<ClientPool>(options_);
}

Client::~Client() = default;

std::size_t Client::connection_count() const noexcept {
  return pool_->open_count();
}

std::size_t Client::idle_count() const noexcept {
  return pool_->idle_count();
}

/// Sends a request for the observer of the client.
Task<Result<ClientResponse>> Client::send_observed(Scope* scope, ClientRequest request) {
  const auto observed = options_.observer->begin(request);
  auto sending = send_in(scope, std::move(request));
  auto response = co_await std::move(sending);
  if (observed == nullptr) co_return response;
  if (response) {
    observed->on_response(*response);
  } else {
    observed->on_error(response.error());
  }
  co_return response;
}

Task<Result<ClientResponse>> Client::send_in(Scope* scope, ClientRequest request) {
  if (request.error()) co_return fail(request.error());
  const bool sendable = request.method() != Method::connect && !request.method_text().empty();
  if (!sendable) co_return fail(Errc::bad_input);
  const Duration total = request.timeout().value_or(options_.limits.total_timeout);
  Instant deadline = never;
  WallTime now;
  if (total != Duration::max() || options_.cookie_jar != nullptr) {
    const Context own = co_await this_context();
    deadline = after(own.loop->platform().now(), total);
    now = own.loop->platform().wall_time();
  }
  for (unsigned redirects = 0;; ++redirects) {
    WEIR_CO_TRY(const std::string head, head_of(request, now));
    detail::ExchangePtr exchange;
    std::optional<ClientPool::Lease> lease;
    bool lost = false;  // the request takes no idle connection of HTTP/1.1 any more
    H2ClientConnection* http2 = pool_->http2_for(request.url());
    for (unsigned attempts = 1; exchange == nullptr; ++attempts) {
      if (http2 == nullptr && !lease) lease = pool_->try_acquire(request.url());
      if (http2 == nullptr && !lease) {
        auto waited = co_await pool_->acquire(request.url(), deadline);
        if (!waited) co_return pool_->fail_request(request.url(), waited.error());
        lease = std::move(waited->lease);
        http2 = waited->http2;
      }
      const bool reused = http2 == nullptr && !lost && lease->take_idle();
      if (http2 == nullptr && !reused) {
        WEIR_CO_TRY(co_await lease->connect(request.url(), deadline));
        if (lease->is_http2()) http2 = &pool_->add_http2(*std::exchange(lease, {}));
      }
      bool repeat = false;
      Result<> answered;
      if (http2 != nullptr) {
        if (!http2->accepts(request.url().scheme(), head)) co_return fail(Errc::limit_reached);
        auto* const sent = new H2ClientExchange(*http2, options_.limits, deadline);
        exchange.reset(sent);
        request.set_given();
        answered = co_await sent->run(request, head, scope);
        if (answered) break;
        repeat = attempts < (sent->lost() ? 2 : http2_attempts_max) &&
                 sent->may_repeat(is_repeatable(request));
        lost = lost || sent->lost();
      } else {
        auto* const sent = new H1ClientExchange(std::move(*lease), options_.limits, deadline);
        exchange.reset(sent);
        request.set_given();
        answered = co_await sent->run(request, head, scope);
        if (answered) break;
        // The request is sent a second time only if a reused connection was lost.
        repeat =
            reused && answered.error() == ClientError::connection_lost && sent->may_repeat(request);
        if (repeat) lease = sent->take_lease();
        lost = true;
      }
      if (!repeat) co_return pool_->fail_request(request.url(), answered.error());
      exchange.reset();
      http2 = lease ? nullptr : pool_->http2_for(request.url());
    }
    if (options_.cookie_jar != nullptr) store_cookies(*exchange, request.url(), now);
    ClientResponse response(std::move(exchange));
    WEIR_CO_TRY(const Redirect followed, follow(request, response));
    if (followed == Redirect::none) co_return finish(request, std::move(response));
    if (redirects == options_.limits.redirects_max) {
      co_return fail(ClientError::too_many_redirects);
    }
  }
}

Task<Result<>> Client::websocket(std::string url, WebSocketFunction serve,
                                 ClientWebSocketOptions options) {
  WEIR_CO_TRY(Url target, websocket_url(url));
  std::unique_ptr<ClientObserver::Call> observed;
  if (options_.observer != nullptr) {
    ClientRequest handshake(Method::get, target);
    for (const HeaderField field : options.headers) handshake.add_header(field.name, field.value);
    observed = options_.observer->begin(handshake);
    if (handshake.error()) {
      if (observed != nullptr) observed->on_error(handshake.error());
      co_return fail(handshake.error());
    }
    options.headers = handshake.headers();
  }
  auto opening = open_websocket(*pool_, std::move(target), options);
  auto answer = co_await std::move(opening);
  if (!answer) {
    if (observed != nullptr) observed->on_error(answer.error());
    co_return fail(answer.error());
  }
  if (const auto* const refused = std::get_if<ClientResponse>(&*answer)) {
    if (observed != nullptr) observed->on_response(*refused);
    WEIR_CO_TRY(refused->error_for_status());
    co_return fail(ClientError::bad_response);
  }
  OpenedWebSocket& opened = std::get<OpenedWebSocket>(*answer);
  if (observed != nullptr) observed->on_websocket(opened.is_http2);
  observed.reset();
  auto using_it = use_websocket(std::move(opened), std::move(serve), options);
  co_return co_await std::move(using_it);
}

/// Returns the response for the caller, with the URL that answered.
ClientResponse Client::finish(ClientRequest& request, ClientResponse response) {
  detail::ExchangePtr& exchange = response.exchange_;
  const bool keeps_coding = request.obeys_no_transform() && forbids_transform(exchange->head());
  if (asks_for_codings(request) && !keeps_coding) {
    exchange = decoded_response(std::move(exchange), request.headers(), *options_.decompression);
  }
  exchange->set_url(std::move(request).take_url());
  return response;
}

/// Prepares the request that a redirect asks for.
Result<Redirect> Client::follow(ClientRequest& request, const ClientResponse& response) {
  if (code_of(response.status()) < 300 || options_.limits.redirects_max == 0) return Redirect::none;
  const auto location = response.header("location");
  if (!location) return Redirect::none;
  return follow_redirect(request, response.status(), *location, options_.sensitive_headers);
}

/// Returns the head of a request. `now` is needed for a jar of cookies only.
Result<std::string> Client::head_of(const ClientRequest& request, WallTime now) {
  HeadContext context;
  context.target = request.url().target();
  std::string credentials;
  if (uses_absolute_form(request.url(), options_)) {
    context.target = request.url().text();
    WEIR_TRY(credentials, authorization_line(options_.proxy));
    context.more_lines = credentials;
  }
  std::string cookies;
  if (options_.cookie_jar != nullptr) {
    cookies = options_.cookie_jar->header_for(request.url(), now);
    context.cookies = cookies;
  }
  std::string lines;
  if (asks_for_codings(request)) {
    lines.append(context.more_lines).append(accept_encoding_line());
    context.more_lines = lines;
  }
  return request_head(request, context);
}

bool Client::asks_for_codings(const ClientRequest& request) const noexcept {
  const Headers& headers = request.headers();
  return options_.decompression && !headers.contains("accept-encoding") &&
         !headers.contains("range") &&
         !(request.obeys_no_transform() && forbids_transform(headers));
}

void Client::store_cookies(const ResponseSource& source, const Url& url, WallTime now) {
  const ReceivedResponseHead& head = source.head();
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (!equals_ignoring_case(field.name, "set-cookie")) continue;
    options_.cookie_jar->store(url, field.value, now);
  }
}

}  // namespace weir::http

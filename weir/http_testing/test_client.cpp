#include "weir/http_testing/test_client.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <ostream>
#include <stdexcept>

#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/loop/loop.hpp"
#include "weir/sim/http/detail/http_answers.hpp"
#include "weir/task/scope.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::http {

void PrintTo(Status status, std::ostream* out) {
  *out << code_of(status);
}

std::optional<std::string_view> TestResponse::header(std::string_view name) const noexcept {
  for (const Header& each : headers_) {
    if (equals_ignoring_case(each.first, name)) return each.second;
  }
  return std::nullopt;
}

/// The server of a TestClient: one loop on a memory platform.
class TestClient::Server : Continuation, loop::Runnable {
 public:
  Server(const Router& router, const TestClientOptions& options)
      : Continuation(&on_ended),
        loop::Runnable(&begin),
        response_timeout_(options.response_timeout),
        state_(*loop_, router, options.limits) {
    loop_->ready(*this);
    platform_.run_until_idle(*loop_);
    if (ended_) throw std::runtime_error("TestClient: invalid routes: " + router.error_text());
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    loop_->drain();
    advance(std::chrono::seconds(2));
    if (!ended_) cancel_.cancel();
    platform_.run_until_idle(*loop_);
    root_.reset();
  }

  void advance(Duration length) { platform_.advance(*loop_, length); }
  const std::vector<std::string>& logged() const noexcept { return platform_.logged(); }

  /// Returns the first final response to `request`.
  TestResponse send(std::string_view request);

 private:
  static void begin(loop::Runnable& self) {
    auto& server = static_cast<Server&>(self);
    server.root_.emplace(with_scope(OnFailure::isolate, &listen_and_serve, std::ref(server.state_),
                                    server.address_));
    server.root_->start(Context{server.loop_.get(), &server.cancel_}, server);
  }
  static std::coroutine_handle<> on_ended(Continuation& self, std::coroutine_handle<>) {
    static_cast<Server&>(self).ended_ = true;
    return std::noop_coroutine();
  }

  Duration response_timeout_;
  MemoryPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
  os::Address address_ = os::Address::loopback(80);
  ServerState state_;
  CancelSource cancel_;
  std::optional<Task<Result<>>> root_;
  bool ended_ = false;
};

namespace {

/// Returns the final response in `text` if it is complete. The end of the connection completes a
/// response without a length.
std::optional<sim::HttpResponse> final_response(std::string_view text, std::string_view method,
                                                bool ended) {
  for (sim::HttpResponse& each : sim::parse_http_responses(text, {method})) {
    const bool interim = each.status >= 100 && each.status < 200;
    if (interim) continue;
    if (each.complete || (ended && each.until_close)) return std::move(each);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

TestResponse TestClient::Server::send(std::string_view request) {
  const std::string_view line = request.substr(0, request.find('\r'));
  const std::string_view method = line.substr(0, line.find(' '));
  MemoryPeer peer(platform_, address_);
  std::string_view left = request;
  std::optional<sim::HttpResponse> response;
  const Instant until = after(platform_.now(), response_timeout_);
  const auto done = [&] {
    left.remove_prefix(peer.send(left));
    const bool ended = peer.ended() || peer.was_reset();
    response = final_response(peer.received(), method, ended);
    return response || ended || platform_.now() >= until;
  };
  const bool possible = platform_.run_until(*loop_, done);
  if (!response) {
    std::string why = "the connection ended without a complete response";
    if (!possible) why = "the handler waits for an event that cannot happen";
    if (platform_.now() >= until) why = "no response within the response_timeout";
    throw std::runtime_error("TestClient: " + std::string(line) + ": " + why);
  }
  TestResponse answer(peer.received(), Status{static_cast<std::uint16_t>(response->status)},
                      std::move(response->headers), std::move(response->body));
  peer.close();
  platform_.run_until_idle(*loop_);
  return answer;
}

TestClient::TestClient(const Router& router, TestClientOptions options)
    : server_(std::make_unique<Server>(router, options)) {}

TestClient::TestClient(Router&& router, TestClientOptions options)
    : own_router_(std::move(router)), server_(std::make_unique<Server>(*own_router_, options)) {}

TestClient::~TestClient() = default;

TestResponse TestClient::send(std::string_view method, std::string_view target) {
  std::string request(method);
  request.append(" ").append(target).append(" HTTP/1.1\r\nHost: test\r\n");
  request.append(headers_.lines()).append("\r\n");
  return send_text(request);
}

TestResponse TestClient::send(std::string_view method, std::string_view target,
                              const Response& content) {
  const std::string_view body = content.body().text();
  std::string request(method);
  request.append(" ").append(target).append(" HTTP/1.1\r\nHost: test\r\n");
  request.append("Content-Type: ").append(content.content_type()).append("\r\n");
  request.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  request.append(headers_.lines()).append("\r\n").append(body);
  return send_text(request);
}

TestResponse TestClient::send_text(std::string_view request) {
  return server_->send(request);
}

void TestClient::set_header(std::string_view name, std::string_view value) {
  if (const auto set = headers_.set(name, value); !set)
    throw std::runtime_error("TestClient: invalid header: " + std::string(name));
}

void TestClient::advance(Duration length) {
  server_->advance(length);
}

const std::vector<std::string>& TestClient::logged() const noexcept {
  return server_->logged();
}

}  // namespace weir::http

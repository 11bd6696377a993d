// A client for unit tests: it sends requests to a router of the same process, or to the programs of
// a World, in virtual time.
#pragma once

#include <chrono>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/client/request_methods.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/json/read.hpp"
#include "weir/sim/world.hpp"

namespace weir::http {

/// A test compares a status with its number: `EXPECT_EQ(response.status(), 201)`.
constexpr bool operator==(Status status, int number) noexcept {
  return code_of(status) == number;
}
/// Makes the messages of a failed test show the number.
void PrintTo(Status status, std::ostream* out);

/// A response whose whole body has arrived.
class TestResponse {
 public:
  TestResponse(Status status, Headers headers, std::string body, Headers trailers = {}) noexcept
      : status_(status),
        headers_(std::move(headers)),
        body_(std::move(body)),
        trailers_(std::move(trailers)) {}

  Status status() const noexcept { return status_; }
  /// Returns the value of the first header called `name`, compared without case.
  std::optional<std::string_view> header(std::string_view name) const noexcept {
    return headers_.get(name);
  }
  const Headers& headers() const noexcept { return headers_; }
  const std::string& body() const noexcept { return body_; }
  /// Returns the trailer fields after a chunked body.
  const Headers& trailers() const noexcept { return trailers_; }
  /// Returns the body as a T: `response.json<Note>()->text`.
  /// Errors: those of json::read().
  template <class T>
  auto json() const {
    return weir::json::read<T>(body_);
  }

 private:
  Status status_;
  Headers headers_;
  std::string body_;
  Headers trailers_;
};

/// TestClientOptions sets up a TestClient, and the server of its router.
struct TestClientOptions {
  Limits limits = {};
  /// Virtual time for one response. It ends a test whose handler repeats itself for ever.
  Duration response_timeout = std::chrono::hours(1);
};

/// A TestClient sends requests in a plain function, without coroutines:
///
///     http::TestClient client(routes(store));
///     const auto response = client.post("/notes", Note{"milk"});
///     EXPECT_EQ(response.status(), 201);
///     EXPECT_EQ(response.json<Note>()->text, "milk");
///
/// The functions are those of Client, of which none is awaited. A URL may be relative: "/notes".
/// The client, the server and the network between them are those of a sim::World. Middleware,
/// limits, timeouts and errors are therefore those of a running service. Time passes only while a
/// response waits for it, so a handler that sleeps takes no real time. Each request has a
/// connection of its own. Redirects are not followed.
///
/// Each function that sends throws std::runtime_error if there is no response. Its text names the
/// request and the reason, for example that the handler waits for an event that cannot happen.
/// Threads: one.
/// Lifetime: a router or a World that is passed by reference, and what the handlers use, outlive
/// the client.
class TestClient : public RequestMethods<TestClient> {
 public:
  /// Serves `router` on one core, over a network without variation.
  /// Throws std::runtime_error with Router::error_text() if the routes have errors.
  explicit TestClient(const Router& router, TestClientOptions options = {});
  explicit TestClient(Router&& router, TestClientOptions options = {});
  /// Gives `services` to the handlers by Router::bind(): `TestClient client(routes(), store)`.
  template <class... S>
    requires(sizeof...(S) > 0 &&
             !(std::is_same_v<std::remove_const_t<S>, TestClientOptions> || ...))
  explicit TestClient(Router&& router, S&... services) : TestClient(bound(router, services...)) {}
  /// Sends requests to the programs of `world`, from a host of its own. `url` is the one to which
  /// others are relative, for example "http://server" for the host "server". The programs that were
  /// started before run for one second of virtual time. After the last request, the test may call
  /// World::run_until_done() and check the report.
  /// Throws std::runtime_error if the URL is invalid.
  TestClient(sim::World& world, std::string_view url, TestClientOptions options = {});
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  /// Stops the programs. It writes what they leave behind to stderr; see World::run_until_done().
  ~TestClient();

  /// Makes a request for send(), for example to add a header to it.
  ClientRequest request(Method method, std::string_view url) const;
  /// Makes a request with the method of this name, such as "PROPFIND".
  ClientRequest request(std::string_view method, std::string_view url) const;
  /// Sends the request and returns its response.
  TestResponse send(ClientRequest request);

  /// Sets a header of all later requests: `client.set_header("Authorization", "Bearer 1")`. A
  /// request that has a header of this name keeps its own.
  void set_header(std::string_view name, std::string_view value);
  void remove_header(std::string_view name) { headers_.remove(name); }

  /// Lets virtual time pass.
  void advance(Duration length);
  /// Returns the lines that the server of the router has logged. In a World, sim::Host::logged()
  /// returns those of a program.
  const std::vector<std::string>& logged() const noexcept;

 private:
  struct Network;
  template <class... S>
  static Router&& bound(Router& router, S&... services) {
    router.bind(services...);
    return std::move(router);
  }
  void serve(const Router& router);
  void connect(sim::World& world, std::string_view url);

  TestClientOptions options_;
  std::unique_ptr<Network> network_;
  std::optional<Url> url_;
  Headers headers_;
};

}  // namespace weir::http

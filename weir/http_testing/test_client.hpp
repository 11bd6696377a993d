// A client for unit tests: it drives a router in the same process, in virtual time, without
// sockets.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/message/json.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/json/read.hpp"

namespace weir::http {

/// A test compares a status with its number: `EXPECT_EQ(answer.status(), 201)`.
constexpr bool operator==(Status status, int number) noexcept {
  return code_of(status) == number;
}
/// Makes the messages of a failed test show the number.
void PrintTo(Status status, std::ostream* out);

/// A response that a TestClient has received.
class TestResponse {
 public:
  using Header = std::pair<std::string, std::string>;
  TestResponse(std::string text, Status status, std::vector<Header> headers, std::string body)
      : text_(std::move(text)),
        status_(status),
        headers_(std::move(headers)),
        body_(std::move(body)) {}

  Status status() const noexcept { return status_; }
  /// Returns the value of the first header called `name`, compared without case.
  std::optional<std::string_view> header(std::string_view name) const noexcept;
  const std::vector<Header>& headers() const noexcept { return headers_; }
  /// Returns the body, without the framing of chunks.
  const std::string& body() const noexcept { return body_; }
  /// Returns the body as a T: `answer.json<Note>()->text`.
  /// Errors: those of json::read().
  template <class T>
  auto json() const {
    return weir::json::read<T>(body_);
  }
  /// Returns all bytes of the response as the server sent them.
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  Status status_;
  std::vector<Header> headers_;
  std::string body_;
};

/// TestClientOptions sets up the server of a TestClient.
struct TestClientOptions {
  Limits limits = {};
  /// Virtual time for one response. It ends a test whose handler repeats itself for ever.
  Duration response_timeout = std::chrono::hours(24 * 7);
};

/// A TestClient sends requests to a router, for a test without coroutines:
///
///     http::TestClient client(routes(store));
///     const auto answer = client.post("/notes", Note{"milk"});
///     EXPECT_EQ(answer.status(), 201);
///     EXPECT_EQ(answer.json<Note>()->text, "milk");
///
/// Weir's own server answers, on one core and over a connection in memory. Middleware, limits,
/// timeouts and errors are therefore those of the network. Each request has a connection of its
/// own. Time passes only while a response waits for it, so a handler that sleeps takes no real
/// time. The router gets fakes in place of services when it is made, or by Router::bind(). A
/// handler that needs other cores or a pool of threads needs a Runtime; test it in a sim::World.
///
/// Each function that sends throws std::runtime_error if there is no response. Its text names the
/// request and the reason, for example that the handler waits for an event that cannot happen.
/// Threads: one.
/// Lifetime: a router that is passed by reference outlives the client.
class TestClient {
 public:
  /// Throws std::runtime_error with Router::error_text() if the routes have errors.
  explicit TestClient(const Router& router, TestClientOptions options = {});
  explicit TestClient(Router&& router, TestClientOptions options = {});
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  ~TestClient();

  TestResponse get(std::string_view target) { return send("GET", target); }
  TestResponse head(std::string_view target) { return send("HEAD", target); }
  TestResponse del(std::string_view target) { return send("DELETE", target); }
  TestResponse options(std::string_view target) { return send("OPTIONS", target); }
  /// Send `value` as JSON.
  template <class T>
  TestResponse post(std::string_view target, const T& value) {
    return send("POST", target, http::json(value));
  }
  template <class T>
  TestResponse put(std::string_view target, const T& value) {
    return send("PUT", target, http::json(value));
  }
  template <class T>
  TestResponse patch(std::string_view target, const T& value) {
    return send("PATCH", target, http::json(value));
  }
  /// Sends a request with the body and the media type of `content`, for example http::text("a").
  TestResponse send(std::string_view method, std::string_view target);
  TestResponse send(std::string_view method, std::string_view target, const Response& content);
  /// Sends the bytes of one request as they are, and returns the first response.
  TestResponse send_text(std::string_view request);

  /// Sets a header of all later requests: `client.set_header("Authorization", "Bearer 1")`.
  void set_header(std::string_view name, std::string_view value);
  void remove_header(std::string_view name) { headers_.remove(name); }

  /// Lets virtual time pass.
  void advance(Duration length);
  /// Returns the lines that the server has logged.
  const std::vector<std::string>& logged() const noexcept;

 private:
  class Server;
  std::optional<Router> own_router_;
  std::unique_ptr<Server> server_;
  Headers headers_;
};

}  // namespace weir::http

// A fixture for tests of the client against servers that follow scripts.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/http/test/scripted_server_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {

/// Returns the body of the response, or the first error.
inline Task<std::string> outcome_of(Client& client, ClientRequest request) {
  auto response = co_await client.send(std::move(request));
  if (!response) co_return response.error().message();
  const auto body = co_await response->body();
  if (!body) co_return body.error().message();
  co_return *body;
}

inline Task<std::string> ask(Client& client, std::string_view url = "http://127.0.0.1:81/") {
  return outcome_of(client, ClientRequest(Method::get, url));
}

/// Sends a request with a timeout of 2 s for a body that arrives faster than it is read, and
/// expects that the timeout ends it.
inline Task<> expect_whole_timeout(Client& client, ClientRequest request) {
  request.set_timeout(std::chrono::seconds(2));
  auto response = co_await client.send(std::move(request));
  EXPECT_TRUE(response);
  if (!response) co_return;
  int pieces = 0;
  std::error_code error;
  while (!error && pieces < 100) {
    const auto piece = co_await response->read();
    if (!piece) error = piece.error();
    ++pieces;
    static_cast<void>(co_await sleep(std::chrono::milliseconds(500)));
  }
  EXPECT_EQ(error, ClientError::timed_out);
  EXPECT_LE(pieces, 6);
}

class ClientFixture : public HttpTest {
 protected:
  explicit ClientFixture(const MemoryPlatformOptions& options = {}) : HttpTest(options) {}

  using Body = std::function<Task<>(Client&)>;

  /// Runs `body` with a client, beside a server at the ports 81 and 82 that follows the scripts.
  void with_server(std::vector<std::vector<Step>> scripts, ClientOptions options, Body body) {
    server_of_scripts_ = ScriptedServer(std::move(scripts));
    Client client(std::move(options));
    const auto talk = [&](Scope& scope) -> Task<> {
      EXPECT_TRUE(co_await server_of_scripts_.listen(scope));
      EXPECT_TRUE(co_await server_of_scripts_.listen(scope, 82));
      co_await body(client);
      scope.cancel();
    };
    static_cast<void>(weir::run(*loop_, with_scope(OnFailure::isolate, talk)));
    EXPECT_EQ(client.connection_count(), client.idle_count()) << "all leases are given back";
  }
  void with_server(std::vector<std::vector<Step>> scripts, Body body) {
    with_server(std::move(scripts), ClientOptions(), std::move(body));
  }
  static Task<> wait(Duration length) { static_cast<void>(co_await sleep(length)); }

  ScriptedServer server_of_scripts_;
};

}  // namespace weir::http

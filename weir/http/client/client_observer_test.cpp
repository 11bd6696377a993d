// The observer of a client sees each request, its response or its error, and adds headers.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/client/client_limits.hpp"
#include "weir/http/client/client_request.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::client_observer_test {
namespace {

/// Notes what happens to requests, and adds a header to each.
class Notes final : public ClientObserver {
 public:
  std::unique_ptr<Call> begin(ClientRequest& request) override {
    if (request.error()) return nullptr;
    lines.push_back("begin " + std::string(request.url().target()));
    request.set_header("X-Trace", "7");
    if (!watches) return nullptr;
    return std::make_unique<Watched>(*this);
  }

  std::vector<std::string> lines;
  bool watches = true;

 private:
  class Watched final : public Call {
   public:
    explicit Watched(Notes& notes) : notes_(notes) {}
    ~Watched() override { notes_.lines.push_back("end"); }
    void on_response(const ClientResponse& response) noexcept override {
      notes_.lines.push_back("response " + std::to_string(code_of(response.status())));
    }
    void on_websocket(bool is_http2) noexcept override {
      notes_.lines.push_back(is_http2 ? "websocket of HTTP/2" : "websocket");
    }
    void on_error(std::error_code error) noexcept override {
      notes_.lines.push_back("error " + error.message());
    }

   private:
    Notes& notes_;
  };
};

class ClientObserverTest : public HttpTest {
 protected:
  void SetUp() override {
    routes_.get("/seen", [](const Request& request) {
      return text(std::string(request.header("X-Trace").value_or("none")));
    });
    routes_.get("/moved", [] {
      Response response(Status::found);
      response.set_header("Location", "/seen");
      return response;
    });
    routes_.get("/socket", [](const Request& request) {
      std::string seen(request.header("X-Trace").value_or("none"));
      seen.append(" ").append(request.header("X-Own").value_or("none"));
      return accept_websocket(request, [seen](WebSocket& socket) -> Task<Result<>> {
        co_return co_await socket.send(seen);
      });
    });
    routes_.get("/slow", []() -> Task<Response> {
      std::ignore = co_await sleep(2s);  // longer than the client waits
      co_return text("late");
    });
    serve();
  }
  /// Returns the body of a GET, or the message of its error.
  std::string get(std::string_view target, Duration length = 10s) {
    const auto talk = [&]() -> Task<std::string> {
      ClientOptions options;
      options.observer = &notes_;
      Client client(std::move(options));
      auto asking = client.get("http://127.0.0.1" + std::string(target));
      auto response = co_await timeout(length, std::move(asking));
      if (!response) co_return response.error().message();
      auto body = co_await response->body();
      co_return std::move(body).value_or("failed");
    };
    return weir::run(*loop_, talk());
  }

  Notes notes_;
};

using Lines = std::vector<std::string>;

TEST_F(ClientObserverTest, SeesTheResponseAndAddsHeaders) {
  EXPECT_EQ(get("/seen"), "7");
  EXPECT_EQ(notes_.lines, (Lines{"begin /seen", "response 200", "end"}));
}

TEST_F(ClientObserverTest, SeesARequestWithItsRedirectsOnce) {
  EXPECT_EQ(get("/moved"), "7");
  EXPECT_EQ(notes_.lines, (Lines{"begin /moved", "response 200", "end"}));
}

TEST_F(ClientObserverTest, SeesTheErrorOfARequest) {
  EXPECT_NE(get(":1/refused"), "");
  ASSERT_EQ(notes_.lines.size(), 3U);
  EXPECT_TRUE(notes_.lines[1].starts_with("error "));
}

TEST_F(ClientObserverTest, SeesACancelledRequest) {
  get("/slow", 1s);
  EXPECT_EQ(notes_.lines,
            (Lines{"begin /slow", "error " + make_error_code(Errc::cancelled).message(), "end"}));
}

TEST_F(ClientObserverTest, MayDeclineToSeeTheEnd) {
  notes_.watches = false;
  EXPECT_EQ(get("/seen"), "7");
  EXPECT_EQ(notes_.lines, Lines{"begin /seen"});
}

TEST_F(ClientObserverTest, SeesTheHandshakeOfAWebSocket) {
  const auto open = [&](std::string url) -> Task<Result<>> {
    ClientOptions options;
    options.observer = &notes_;
    Client client(std::move(options));
    const auto serve = [](WebSocket& socket) -> Task<Result<>> {
      WEIR_CO_TRY(const auto message, co_await socket.read());
      EXPECT_EQ(message.text(), "7 own");
      co_return {};
    };
    ClientWebSocketOptions own;
    std::ignore = own.headers.add("X-Own", "own");
    auto opening = client.websocket(std::move(url), serve, std::move(own));
    co_return co_await std::move(opening);
  };
  EXPECT_TRUE(weir::run(*loop_, open("ws://127.0.0.1/socket")));
  EXPECT_EQ(notes_.lines, (Lines{"begin /socket", "websocket", "end"}));
  notes_.lines.clear();
  EXPECT_FALSE(weir::run(*loop_, open("ws://127.0.0.1/seen")));
  EXPECT_EQ(notes_.lines, (Lines{"begin /seen", "response 200", "end"}));
  notes_.lines.clear();
  EXPECT_FALSE(weir::run(*loop_, open("ws://127.0.0.1:1/socket")));
  ASSERT_EQ(notes_.lines.size(), 3U);
  EXPECT_TRUE(notes_.lines[1].starts_with("error "));
}

TEST_F(ClientObserverTest, GetsInvalidRequestsToo) {
  EXPECT_NE(get(":99999/"), "");
  EXPECT_EQ(notes_.lines, Lines{});
}

}  // namespace
}  // namespace weir::http::client_observer_test

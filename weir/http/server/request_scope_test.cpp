// Tests of Request::scope(): when the tasks of a request end, with the carrier as parameter.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/http/client/client.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/test/carrier_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::request_scope_test {
namespace {

/// What a task of a request has seen.
struct Seen {
  bool begun = false;
  bool ended = false;
  std::error_code error;
};

/// Waits as long as it can, and needs a second to end.
Task<> linger(Seen* seen) {
  seen->begun = true;
  const auto slept = co_await sleep(1h);
  if (!slept) seen->error = slept.error();
  CancelSource own;
  const Context context{(co_await this_context()).loop, &own};
  auto ending = in_context(context, as_task(sleep(1s)));
  std::ignore = co_await std::move(ending);
  seen->ended = true;
}

Task<> fail_later() {
  std::ignore = co_await sleep(1s);
  throw std::runtime_error("a task of a request");
}

class RequestScopeTest : public CarrierTest {
 protected:
  RequestScopeTest() {
    routes_.get("/plain", [this](Request& request) -> Task<Response> {
      request.scope().spawn(linger(&seen_));
      co_return text("plain");
    });
    routes_.get("/waits", [this](Request& request) -> Task<Response> {
      request.scope().spawn(linger(&seen_));
      std::ignore = co_await sleep(2s);
      co_return text("waited");
    });
    routes_.get("/throws", [this](Request& request) -> Task<Response> {
      request.scope().spawn(linger(&seen_));
      std::ignore = co_await sleep(2s);
      throw std::runtime_error("the handler");
    });
    routes_.get("/duplex", [this](Request& request) -> Task<Response> {
      request.scope().spawn(linger(&seen_));
      co_return duplex(request, text_type, send_late);
    });
    routes_.get("/in_function", [this](Request& request) {
      return duplex(request, text_type, spawn_there, &seen_);
    });
    routes_.get("/task_fails", [](Request& request) -> Task<Response> {
      request.scope().spawn(fail_later());
      std::ignore = co_await sleep(2s);
      co_return text("fine");
    });
  }
  static Task<Result<>> send_late(Request&, BodySink& sink) {
    WEIR_CO_TRY(co_await sink.write("first"));
    WEIR_CO_TRY(co_await sleep(5s));
    co_return co_await sink.write("last");
  }
  static Task<Result<>> spawn_there(Request& request, BodySink& sink, Seen* seen) {
    request.scope().spawn(linger(seen));
    co_return co_await sink.write("all");
  }

  /// Gets a path. Returns the status and the body, and the time of the whole.
  std::string get(std::string_view path) {
    seen_ = {};
    std::string answer;
    const Instant start = loop_->now();
    weir::run(*loop_, get_into(path, &answer));
    took_ = loop_->now() - start;
    return answer;
  }
  Task<> get_into(std::string_view path, std::string* answer) {
    Client client(client_options());
    auto response = co_await client.get(url(path));
    if (!response) {
      *answer = response.error().message();
      co_return;
    }
    *answer = std::to_string(code_of(response->status())) + " ";
    const auto body = co_await response->body();
    *answer += body ? *body : body.error().message();
  }

  Seen seen_;
  Duration took_{};
};
INSTANTIATE_TEST_SUITE_P(On, RequestScopeTest, carriers_of_clients(), carrier_name);

TEST_P(RequestScopeTest, TasksEndBeforeTheResponseOfTheHandler) {
  serve();
  for (const auto& [path, answer, time] :
       {std::tuple{"/plain", "200 plain", 1s}, {"/waits", "200 waited", 3s}}) {
    EXPECT_EQ(get(path), answer);
    EXPECT_EQ(took_, time);
    EXPECT_TRUE(seen_.ended);
    EXPECT_EQ(seen_.error, Errc::cancelled);
  }
  EXPECT_TRUE(get("/throws").starts_with("500 "));
  EXPECT_TRUE(seen_.ended);
}

TEST_P(RequestScopeTest, TasksRunBesideTheFunctionOfADuplexResponse) {
  serve();
  EXPECT_EQ(get("/duplex"), "200 firstlast");
  EXPECT_TRUE(seen_.begun);
  EXPECT_EQ(took_, 5s) << "the client has the whole response";
  pass(2s);
  EXPECT_TRUE(seen_.ended);
  EXPECT_EQ(get("/in_function"), "200 all");
  pass(2s);
  EXPECT_TRUE(seen_.ended);
}

TEST_P(RequestScopeTest, AFailureOfATaskIsLogged) {
  serve();
  EXPECT_EQ(get("/task_fails"), "200 fine");
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_TRUE(platform_.logged().front().contains("a task of a request"));
}

TEST_P(RequestScopeTest, AClientThatLeavesEndsTheTasks) {
  serve();
  const auto leave = [this]() -> Task<> {
    Client client(client_options());
    auto response = co_await client.get(url("/duplex"));
    EXPECT_TRUE(response);
    const auto piece = co_await response->read();
    EXPECT_TRUE(piece);
  };
  weir::run(*loop_, leave());
  pass(7s);  // over HTTP/1, the server notices it when the function writes again
  EXPECT_TRUE(seen_.ended);
}

}  // namespace
}  // namespace weir::http::request_scope_test

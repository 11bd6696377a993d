// Tests of handlers and their signatures.
#include "weir/http/matching/detail/handler.hpp"

#include <gtest/gtest.h>

#include <expected>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/http/test/http_request.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::http::handler_test {
namespace {

class HandlerTest : public LoopTest {
 protected:
  /// Runs the handler in the same way as a connection.
  template <class F>
  Response answer(F function, const std::vector<std::string_view>& caught = {}) {
    const Handler handler = Handler::of(std::move(function));
    params_.clear();
    for (const std::string_view text : caught) params_.add(text);
    if (!handler.is_async()) return handler.call(request_.request(), params_);
    return run(handler.start(request_.request(), params_));
  }
  template <class F>
  std::string text_of(F function, const std::vector<std::string_view>& caught = {}) {
    return sent_body(answer(std::move(function), caught));
  }

  TextRequest request_{"GET /path"};
  PathParams params_;
};

Response greet(std::string_view name) {
  return text("hello " + std::string(name));
}
Response quiet() noexcept {
  return Status::no_content;
}
Task<Response> slow(Request& request, int number) {
  std::ignore = co_await sleep(1s);
  co_return text(std::string(request.path()) + std::to_string(number));
}
Task<Result<Response>> failing(Errc error) {
  std::ignore = co_await sleep(1s);
  co_return fail(error);
}

TEST_F(HandlerTest, AcceptsFunctions) {
  EXPECT_EQ(text_of(greet, {"you"}), "hello you");
  EXPECT_EQ(answer(quiet).status(), Status::no_content);
}

TEST_F(HandlerTest, AcceptsLambdasAndOwnsTheirCaptures) {
  const auto word = std::make_shared<std::string>("kept");
  EXPECT_EQ(text_of([word](int times) { return text(*word + std::to_string(times)); }, {"3"}),
            "kept3");
  EXPECT_EQ(word.use_count(), 1);
}

TEST_F(HandlerTest, AcceptsMoveOnlyObjects) {
  auto owned = std::make_unique<int>(7);
  EXPECT_EQ(text_of([owned = std::move(owned)] { return text(std::to_string(*owned)); }), "7");
}

TEST_F(HandlerTest, PassesTheRequestFirst) {
  EXPECT_EQ(text_of([](Request& request) { return text(request.path()); }), "/path");
  EXPECT_EQ(text_of(
                [](const Request& request, std::string_view more) {
                  return text(std::string(request.path()) + std::string(more));
                },
                {"+"}),
            "/path+");
}

TEST_F(HandlerTest, ConvertsPathParams) {
  const auto all = [](const std::string& a, int b, double c, Wildcard d, unsigned char e) {
    return text(a + std::to_string(b + e) + std::to_string(c > 1.0) + std::string(d.raw()));
  };
  EXPECT_EQ(text_of(all, {"x", "-5", "1.5", "a/b", "255"}), "x2501a/b");
}

TEST_F(HandlerTest, AnswersNotFoundIfAPathParamDoesNotFit) {
  int calls = 0;
  const auto count = [&calls](int, unsigned char) {
    ++calls;
    return Status::ok;
  };
  EXPECT_EQ(answer(count, {"x", "1"}).status(), Status::not_found);
  EXPECT_EQ(answer(count, {"1", "256"}).status(), Status::not_found);
  EXPECT_EQ(answer(slow, {"12x"}).status(), Status::not_found);
  EXPECT_EQ(text_of(slow, {"12x"}), R"({"title":"Not Found","status":404})");
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(HandlerTest, AnswersWithAStatusOrAResult) {
  EXPECT_EQ(answer([] { return Status::accepted; }).status(), Status::accepted);
  EXPECT_EQ(answer([]() -> Result<Response> { return text("fine"); }).body().text(), "fine");
  EXPECT_EQ(answer([]() -> Result<Status> { return Status::created; }).status(), Status::created);
  EXPECT_EQ(answer([]() -> Result<Response> { return fail(Errc::timed_out); }).status(),
            Status::gateway_timeout);
}

struct Price {
  int cents;
};

/// Passes an error on, describes one, or returns a value.
std::expected<Price, Response> price_of(int number) {
  const auto found = [number]() -> Result<int> {
    if (number == 1) return fail(Errc::not_found);
    return 100 * number;
  };
  WEIR_TRY(const int cents, found());
  if (number == 2) return std::unexpected(problem(Status::conflict, "sold out"));
  if (number == 3) return fail(Errc::closed);
  return Price{cents};
}

TEST_F(HandlerTest, AnswersWithTheResponseOfAnExpected) {
  const auto later = [](int number) -> Task<std::expected<Price, Response>> {
    std::ignore = co_await sleep(1s);
    WEIR_CO_TRY(const Price price, price_of(number));
    co_return price;
  };
  EXPECT_EQ(answer(price_of, {"1"}).cause(), Errc::not_found);
  EXPECT_EQ(answer(later, {"1"}).cause(), Errc::not_found);
  EXPECT_EQ(answer(later, {"1"}).status(), Status::not_found);
  EXPECT_EQ(text_of(price_of, {"2"}), R"({"title":"Conflict","status":409,"detail":"sold out"})");
  EXPECT_EQ(text_of(later, {"2"}), R"({"title":"Conflict","status":409,"detail":"sold out"})");
  EXPECT_EQ(answer(price_of, {"3"}).status(), Status::service_unavailable);
  EXPECT_EQ(text_of(price_of, {"4"}), R"({"cents":400})");
  EXPECT_EQ(text_of(later, {"4"}), R"({"cents":400})");
  const auto status = []() -> std::expected<Status, Status> {
    return std::unexpected(Status::locked);
  };
  EXPECT_EQ(answer(status).status(), Status::locked);
}

TEST_F(HandlerTest, WaitsIfItReturnsATask) {
  EXPECT_FALSE(Handler::of(greet).is_async());
  EXPECT_TRUE(Handler::of(slow).is_async());
  EXPECT_EQ(text_of(slow, {"7"}), "/path7");
  EXPECT_EQ(elapsed(), 1s);
}

TEST_F(HandlerTest, MapsAnErrorOfATaskToItsStatus) {
  const auto timing_out = [] { return failing(Errc::timed_out); };
  EXPECT_EQ(answer(timing_out).status(), Status::gateway_timeout);
  const auto fine = []() -> Task<Result<Status>> { co_return Status::created; };
  EXPECT_EQ(answer(fine).status(), Status::created);
  const auto plain = []() -> Task<Status> { co_return Status::gone; };
  EXPECT_EQ(answer(plain).status(), Status::gone);
}

TEST_F(HandlerTest, PassesExceptionsToTheCaller) {
  EXPECT_THROW(answer([]() -> Response { throw std::runtime_error("no"); }), std::runtime_error);
  const auto later = []() -> Task<Response> {
    std::ignore = co_await sleep(1s);
    throw std::runtime_error("no");
  };
  EXPECT_THROW(answer(later), std::runtime_error);
  const auto scoped = [](Scope&) -> Task<Response> {
    throw std::runtime_error("no");
    co_return Status::ok;
  };
  EXPECT_THROW(answer(scoped), std::runtime_error);
}

Task<> finish_later(std::vector<std::string>& events) {
  std::ignore = co_await sleep(5s);
  events.emplace_back("child");
}

TEST_F(HandlerTest, JoinsTheChildrenOfItsScopeBeforeItAnswers) {
  std::vector<std::string> events;
  const auto spawning = [&events](Request& request, Scope& scope,
                                  std::string name) -> Task<Response> {
    scope.spawn(finish_later(events));
    events.push_back("body " + name);
    co_return text(request.path());
  };
  EXPECT_EQ(text_of(spawning, {"x"}), "/path");
  EXPECT_EQ(events, (std::vector<std::string>{"body x", "child"}));
  EXPECT_EQ(elapsed(), 5s);
}

TEST_F(HandlerTest, ReportsTheErrorOfAFailedChildOfItsScope) {
  const auto spawning = [](Scope& scope) -> Task<Response> {
    const auto child = []() -> Task<Result<>> { co_return fail(Errc::timed_out); };
    scope.spawn(child());
    co_return Status::ok;
  };
  EXPECT_EQ(answer(spawning).status(), Status::gateway_timeout);
}

TEST_F(HandlerTest, PassesCancellationToItsWaits) {
  const Handler handler = Handler::of(slow);
  params_.add("1");
  CancelSource cancel;
  cancel.cancel();
  const Response response = run(handler.start(request_.request(), params_), &cancel);
  EXPECT_EQ(response.body().text(), "/path1");
  EXPECT_EQ(elapsed(), 0s);
}

TEST_F(HandlerTest, ADroppedStartLeaksNothing) {
  const Handler waiting = Handler::of(slow);
  const Handler sync = Handler::of(greet);
  params_.add("1");
  {
    const auto task = waiting.start(request_.request(), params_);
  }
  {
    const auto task = sync.start(request_.request(), params_);
  }
  EXPECT_EQ(run(sync.start(request_.request(), params_)).body().text(), "hello 1");
}

// Properties of signatures.

using Full = Signature<Task<Result<Status>> (*)(const Request&, Scope&, int, const std::string&)>;
static_assert(Full::takes_scope && Full::is_async && !Full::takes_body && !Full::takes_head);
static_assert(!Full::is_valid, "a task takes its path parameters by value");
static_assert(Full::shape.params == 2 && Full::shape.last_takes_wildcard);
using Least = Signature<Response (*)() noexcept>;
static_assert(!Least::takes_scope && !Least::is_async && Least::is_valid);
static_assert(Least::shape.params == 0 && Least::shape.wildcard_index == HandlerShape::no_wildcard);
static_assert(Signature<Response (*)(int, Wildcard, int)>::shape.wildcard_index == 1);

TEST(ErrorResponse, HasTheStatusAndTheCauseOfTheError) {
  for (const Errc error : {Errc::timed_out, Errc::not_found, Errc::conflict, Errc::closed}) {
    const Response response = Response(make_error_code(error));
    EXPECT_EQ(response.status(), to_status(make_error_code(error)));
    EXPECT_EQ(response.cause(), error);
    EXPECT_TRUE(response.needs_error_page());
  }
}

/// A body that does not arrive.
class NoBody : public BodySource {
 public:
  Task<Result<Bytes>> read_piece() override { co_return fail(Errc::end_of_stream); }
  Task<Result<std::string_view>> collect() override { co_return fail(Errc::end_of_stream); }
  const Headers& trailers() const noexcept override { return none_; }
  os::Address peer_address() const override { return {}; }

 private:
  Headers none_;
};

TEST_F(HandlerTest, AnswersABodyThatDoesNotArriveWithItsError) {
  NoBody body;
  Request request(request_.head(), body);
  int calls = 0;
  const Handler sync = Handler::of([&calls](std::vector<int>) {
    ++calls;
    return Status::ok;
  });
  const Handler async = Handler::of([&calls](std::vector<int>) -> Task<Status> {
    ++calls;
    co_return Status::ok;
  });
  EXPECT_TRUE(sync.is_async());
  EXPECT_TRUE(sync.needs_only_body());
  EXPECT_TRUE(async.is_async());
  EXPECT_FALSE(async.needs_only_body());
  for (const Handler* handler : {&sync, &async}) {
    const Response response = run(handler->start(request, params_));
    EXPECT_EQ(response.status(), Status::bad_request);
    EXPECT_EQ(response.cause(), Errc::end_of_stream);
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(HandlerTest, AnswersNotFoundBeforeItReadsTheBody) {
  NoBody body;
  Request request(request_.head(), body);
  params_.add("x");
  const Handler sync = Handler::of([](int, std::vector<int>) { return Status::ok; });
  const Handler async =
      Handler::of([](int, std::vector<int>) -> Task<Status> { co_return Status::ok; });
  EXPECT_EQ(run(sync.start(request, params_)).status(), Status::not_found);
  EXPECT_EQ(run(async.start(request, params_)).status(), Status::not_found);
  EXPECT_EQ(sync.call_with_body(request, params_, "[1]").status(), Status::not_found);
}

TEST_F(HandlerTest, AnswersAnotherMediaTypeBeforeItReadsTheBody) {
  NoBody body;
  TextRequest other("POST /path", {}, "Content-Type: text/plain\r\n");
  Request request(other.head(), body);
  const Handler sync = Handler::of([](std::vector<int>) { return Status::ok; });
  const Handler async = Handler::of([](std::vector<int>) -> Task<Status> { co_return Status::ok; });
  EXPECT_EQ(run(sync.start(request, params_)).status(), Status::unsupported_media_type);
  EXPECT_EQ(run(async.start(request, params_)).status(), Status::unsupported_media_type);
}

struct Word {
  std::string word;
};

TEST_F(HandlerTest, AQueryNamesTheTypeOfItsBody) {
  const Handler json =
      Handler::of([](std::vector<int> body) { return text(std::to_string(body.at(0))); });
  const Handler form = Handler::of([](Form<Word> body) { return text(body->word); });
  const auto status_of = [&](const Handler& handler, std::string_view method, std::string_view body,
                             std::string_view lines = {}) {
    TextRequest sent(std::string(method) + " /path", body, lines);
    return handler.call_with_body(sent.request(), params_, body).status();
  };
  EXPECT_EQ(status_of(json, "QUERY", "[1]"), Status::bad_request);
  EXPECT_EQ(status_of(form, "QUERY", "word=a"), Status::bad_request);
  EXPECT_EQ(status_of(json, "QUERY", "[1]", "Content-Type: application/json\r\n"), Status::ok);
  EXPECT_EQ(status_of(json, "QUERY", "[1]", "Content-Type: text/plain\r\n"),
            Status::unsupported_media_type);
  EXPECT_EQ(status_of(json, "POST", "[1]"), Status::ok);
  EXPECT_EQ(status_of(form, "POST", "word=a"), Status::ok);
}

TEST_F(HandlerTest, AnswersABodyThatHasArrived) {
  const Handler handler = Handler::of([](int factor, std::vector<int> numbers) {
    return text(std::to_string(factor * numbers.at(0)));
  });
  params_.add("2");
  const auto answer_to = [&](std::string_view body) {
    return handler.call_with_body(request_.request(), params_, body);
  };
  EXPECT_EQ(answer_to("[21]").body().text(), "42");
  EXPECT_EQ(answer_to("[21]").status(), Status::ok);
  EXPECT_EQ(answer_to("[x]").status(), Status::bad_request);
  EXPECT_EQ(answer_to("").status(), Status::bad_request);
  TextRequest other("POST /path", {}, "Content-Type: text/plain\r\n");
  EXPECT_EQ(handler.call_with_body(other.request(), params_, "[1]").status(),
            Status::unsupported_media_type);
}

}  // namespace
}  // namespace weir::http::handler_test

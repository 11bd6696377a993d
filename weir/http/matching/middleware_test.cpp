// Tests of middleware.
#include "weir/http/matching/middleware.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/router/router.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::http::middleware_test {
namespace {

class MiddlewareTest : public LoopTest {
 protected:
  Response answer(std::string_view line) {
    TextRequest request(line);
    RouteMatch match;
    routes_.match(request.head(), match);
    EXPECT_TRUE(match.is_async());
    const ScopedBlockPool blocks(loop_->blocks());
    return run(match.start(request.request()));
  }

  Router routes_;
};

Task<Response> mark(Request& request, Next next) {
  Response response = co_await next(request);
  response.add_header("X-Mark", "seen");
  co_return response;
}

Task<Response> refuse(Request&, Next) {
  co_return Status::forbidden;
}

Task<Response> twice(Request& request, Next next) {
  std::ignore = co_await next(request);
  co_return co_await next(request);
}

/// Records when it is entered and left.
class Trace {
 public:
  Trace(std::vector<std::string>& events, std::string name)
      : events_(&events), name_(std::move(name)) {}
  Task<Response> operator()(Request& request, Next next) const {
    events_->push_back("+" + name_);
    Response response = co_await next(request);
    events_->push_back("-" + name_);
    co_return response;
  }

 private:
  std::vector<std::string>* events_;
  std::string name_;
};

TEST_F(MiddlewareTest, WrapsHandlersThatDoNotWait) {
  routes_.get("/{x}", [](std::string_view x) { return text(x); });
  routes_.use(mark);
  const Response response = answer("GET /a");
  EXPECT_EQ(response.body().text(), "a");
  EXPECT_EQ(response.headers().get("X-Mark"), "seen");
}

TEST_F(MiddlewareTest, WrapsHandlersThatWait) {
  const auto slow = [](Request&, int seconds) -> Task<Response> {
    std::ignore = co_await sleep(std::chrono::seconds(seconds));
    co_return text("slept");
  };
  routes_.use(mark);
  routes_.get("/{seconds}", slow);
  const Response response = answer("GET /3");
  EXPECT_EQ(response.body().text(), "slept");
  EXPECT_EQ(response.headers().get("X-Mark"), "seen");
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(MiddlewareTest, WrapsTheRoutersOwnAnswers) {
  routes_.use(mark);
  routes_.get("/a", [] { return Status::ok; });
  for (const char* line : {"GET /b", "POST /a", "PURGE /a", "OPTIONS /a", "OPTIONS *"}) {
    EXPECT_EQ(answer(line).headers().get("X-Mark"), "seen") << line;
  }
  EXPECT_EQ(answer("GET /b").status(), Status::not_found);
  EXPECT_EQ(answer("POST /a").headers().get("Allow"), "GET, HEAD, OPTIONS");
}

TEST_F(MiddlewareTest, FirstMiddlewareIsOutermost) {
  std::vector<std::string> events;
  routes_.use(Trace(events, "a"));
  routes_.get("/", [&events] {
    events.emplace_back("handler");
    return Status::ok;
  });
  routes_.use(Trace(events, "b"));
  routes_.use(Trace(events, "c"));
  static_cast<void>(answer("GET /"));
  EXPECT_EQ(events, (std::vector<std::string>{"+a", "+b", "+c", "handler", "-c", "-b", "-a"}));
}

TEST_F(MiddlewareTest, MayAnswerWithoutCallingNext) {
  std::vector<std::string> events;
  routes_.use(Trace(events, "outer"));
  routes_.use(refuse);
  routes_.use(Trace(events, "inner"));
  routes_.get("/", [] { return Status::ok; });
  EXPECT_EQ(answer("GET /").status(), Status::forbidden);
  EXPECT_EQ(events, (std::vector<std::string>{"+outer", "-outer"}));
}

TEST_F(MiddlewareTest, MayCallNextTwice) {
  int calls = 0;
  routes_.use(twice);
  routes_.get("/{x}", [&calls](std::string_view x) {
    ++calls;
    return text(x);
  });
  EXPECT_EQ(answer("GET /again").body().text(), "again");
  EXPECT_EQ(calls, 2);
}

TEST_F(MiddlewareTest, CanCatchExceptionsOfAHandler) {
  const auto catching = [](Request& request, Next next) -> Task<Response> {
    try {
      co_return co_await next(request);
    } catch (const std::runtime_error& error) {
      co_return text(std::string(error.what()));
    }
  };
  routes_.use(catching);
  routes_.get("/", []() -> Response { throw std::runtime_error("caught"); });
  EXPECT_EQ(answer("GET /").body().text(), "caught");
}

TEST_F(MiddlewareTest, OwnsItsCaptures) {
  const auto word = std::make_shared<std::string>("kept");
  {
    Router routes;
    routes.use([word](Request& request, Next next) -> Task<Response> {
      Response response = co_await next(request);
      response.add_header("X-Word", *word);
      co_return response;
    });
    EXPECT_EQ(word.use_count(), 2);
    TextRequest request("GET /");
    RouteMatch match;
    routes.match(request.head(), match);
    EXPECT_EQ(run(match.start(request.request())).headers().get("X-Word"), "kept");
  }
  EXPECT_EQ(word.use_count(), 1);
}

/// A filter that records when its functions are called, and may answer.
class Recorder {
 public:
  Recorder(std::vector<std::string>& events, std::string name, bool answers = false)
      : events_(&events), name_(std::move(name)), answers_(answers) {}
  std::optional<Response> before(Request& request) const {
    events_->push_back("+" + name_ + std::string(request.route()));
    if (answers_) return Status::forbidden;
    return std::nullopt;
  }
  void after(Request&, Response& response) const {
    events_->push_back("-" + name_);
    response.add_header("X-" + name_, "seen");
  }

 private:
  std::vector<std::string>* events_;
  std::string name_;
  bool answers_;
};

struct OnlyBefore {
  std::optional<Response> before(Request& request) const {
    if (request.header("X-Stop")) return Status::conflict;
    return std::nullopt;
  }
};

TEST_F(MiddlewareTest, FiltersLeaveHandlersThatDoNotWait) {
  std::vector<std::string> events;
  routes_.use(Recorder(events, "a"));
  const auto inner = Recorder(events, "b");
  routes_.group("", inner, OnlyBefore()).get("/{x}", [](std::string_view x) { return text(x); });
  TextRequest request("GET /word");
  RouteMatch match;
  routes_.match(request.head(), match);
  EXPECT_FALSE(match.is_async());
  const Response response = match.respond(request.request());
  EXPECT_EQ(response.body().text(), "word");
  EXPECT_EQ(response.headers().get("X-a"), "seen");
  EXPECT_EQ(events, (std::vector<std::string>{"+a/{x}", "+b/{x}", "-b", "-a"}));
}

TEST_F(MiddlewareTest, FiltersKeepHandlersThatNeedOnlyTheBody) {
  routes_.use(OnlyBefore());
  routes_.post("/", [](Json<int> number) { return text(std::to_string(*number + 1)); });
  TextRequest request("POST /", "6", "Content-Type: application/json\r\nContent-Length: 1\r\n");
  RouteMatch match;
  routes_.match(request.head(), match);
  EXPECT_TRUE(match.needs_only_body());
  EXPECT_EQ(match.respond_with_body("6", request.request()).body().text(), "7");
  TextRequest stopped("POST /", "6",
                      "Content-Type: application/json\r\nX-Stop: 1\r\nContent-Length: 1\r\n");
  routes_.match(stopped.head(), match);
  EXPECT_EQ(match.respond_with_body("6", stopped.request()).status(), Status::conflict);
}

TEST_F(MiddlewareTest, FilterThatAnswersIsTheLastToBeEntered) {
  std::vector<std::string> events;
  routes_.use(Recorder(events, "a"));
  routes_.use(Recorder(events, "b", true));
  routes_.use(Recorder(events, "c"));
  routes_.get("/", [] { return Status::ok; });
  TextRequest request("GET /");
  RouteMatch match;
  routes_.match(request.head(), match);
  const Response response = match.respond(request.request());
  EXPECT_EQ(response.status(), Status::forbidden);
  EXPECT_FALSE(response.headers().contains("X-b"));
  EXPECT_EQ(response.headers().get("X-a"), "seen");
  EXPECT_EQ(events, (std::vector<std::string>{"+a/", "+b/", "-a"}));
}

TEST_F(MiddlewareTest, FiltersAndFunctionsRunInOrder) {
  std::vector<std::string> events;
  routes_.use(Recorder(events, "a"));
  routes_.use(Trace(events, "b"));
  routes_.use(Recorder(events, "c"));
  routes_.use(OnlyBefore());
  routes_.use(Trace(events, "d"));
  routes_.use(OnlyBefore());
  routes_.get("/", [] { return Status::ok; });
  EXPECT_EQ(answer("GET /").status(), Status::ok);
  EXPECT_EQ(events, (std::vector<std::string>{"+a/", "+b", "+c/", "+d", "-d", "-c", "-b", "-a"}));
}

TEST_F(MiddlewareTest, FiltersWrapTheRoutersOwnAnswers) {
  std::vector<std::string> events;
  routes_.use(Recorder(events, "a"));
  routes_.get("/a", [] { return Status::ok; });
  for (const char* line : {"GET /b", "POST /a", "PURGE /a", "OPTIONS /a", "OPTIONS *"}) {
    TextRequest request(line);
    RouteMatch match;
    routes_.match(request.head(), match);
    EXPECT_FALSE(match.is_async());
    EXPECT_EQ(match.respond(request.request()).headers().get("X-a"), "seen") << line;
  }
  EXPECT_EQ(events.front(), "+a");
}

}  // namespace
}  // namespace weir::http::middleware_test

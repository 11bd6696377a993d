// Tests how long requests of HTTP/2 keep their routes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/router/live_routes.hpp"
#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/http/test/replaced_routes.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::h2_connection_routes_test {
namespace {

using namespace frames;

/// A client with a request that keeps the connection busy, so that others use the memory of earlier
/// ones. It can request the removal of a route after a second.
class H2ConnectionRoutesTest : public H2ConnectionFixture, public ::testing::Test {
 protected:
  H2ConnectionRoutesTest() {
    routes_.get("/remove", [this]() -> Task<Response> {
      std::ignore = co_await sleep(std::chrono::seconds(1));
      const auto removed = co_await LiveRoutes(routes_).remove(id_);
      co_return Response(removed ? Status::no_content : Status::conflict);
    });
    routes_.get("/busy", []() -> Task<Response> {
      std::ignore = co_await sleep(std::chrono::hours(1));
      co_return Response(Status::no_content);
    });
  }
  void begin_busy() {
    Limits limits;
    limits.body_max = 10;
    begin(limits);
    EXPECT_EQ(answer(get(1, "/busy")), "");
  }
  /// Sets the window of each stream. Returns what the server sends then.
  std::string set_window(std::uint32_t size) {
    const std::string lines = answer(settings(setting(SettingId::initial_window_size, size)));
    EXPECT_TRUE(lines.starts_with("settings_ack\n"));
    return lines.substr(lines.find('\n') + 1);
  }
  std::string pass_a_second() {
    pass(std::chrono::seconds(1));
    return received();
  }
  static std::string too_large(std::uint32_t stream, std::string_view method) {
    return headers(stream,
                   block({{":method", method},
                          {":scheme", "http"},
                          {":path", "/a"},
                          {":authority", "a"},
                          {"content-length", "11"}}),
                   FrameFlag::end_headers);
  }
  static std::string with_scheme(std::uint32_t stream, std::string_view scheme) {
    return headers(
        stream,
        block({{":method", "GET"}, {":scheme", scheme}, {":path", "/a"}, {":authority", "a"}}));
  }
  static std::string removed(std::uint32_t stream) {
    return "head " + std::to_string(stream) + " :status=204 end\n";
  }
  /// The end of a stream whose client does not send the rest of the body.
  static std::string late_body(std::uint32_t stream) {
    return "reset " + std::to_string(stream) + " 0\n";
  }

  RouteId id_{};
};

/// A stream function that uses an object of its handler.
class Streaming {
 public:
  explicit Streaming(std::string what) : what_(std::move(what)) {}
  Response operator()() const { return stream("a/b", &write, this); }

 private:
  static Task<Result<>> write(BodySink& sink, const Streaming* self) {
    WEIR_CO_TRY(co_await sleep(std::chrono::seconds(2)));
    co_return co_await sink.write(self->what_);
  }
  std::string what_;
};

TEST_F(H2ConnectionRoutesTest, ARejectedHeadDoesNotKeepTheRouteOfAnEarlierOne) {
  id_ = routes_.post("/a", [] { return text("hello"); });
  begin_busy();
  EXPECT_TRUE(answer(too_large(3, "POST")).starts_with("head 3 :status=413 "));
  EXPECT_EQ(set_window(0), "");
  EXPECT_TRUE(answer(with_scheme(5, "ftp")).starts_with("head 5 :status=400 "));
  EXPECT_EQ(answer(get(7, "/remove")), "");
  EXPECT_EQ(pass_a_second(), late_body(3) + removed(7)) << "the rejected request has kept it";
  EXPECT_TRUE(set_window(1'000).starts_with("data 5 {"));
}

TEST_F(H2ConnectionRoutesTest, ARejectedHeadDoesNotReadARouteThatIsRemoved) {
  id_ = routes_.post("/a", [] { return text("hello"); });
  begin_busy();
  EXPECT_EQ(answer(get(3, "/remove")), "");
  EXPECT_TRUE(answer(too_large(5, "POST")).starts_with("head 5 :status=413 "));
  EXPECT_EQ(pass_a_second(), late_body(5) + removed(3));
  EXPECT_EQ(set_window(0), "");
  EXPECT_TRUE(answer(with_scheme(7, "ftp")).starts_with("head 7 :status=400 "));
  EXPECT_TRUE(set_window(1'000).starts_with("data 7 {"));
}

TEST_F(H2ConnectionRoutesTest, ARejectedHeadHasTheErrorPageOfTheRouter) {
  routes_.group("/a").render_errors([](const Problem&) { return text("of the group"); });
  routes_.post("/a", [] { return text("hello"); });
  begin_busy();
  EXPECT_TRUE(answer(too_large(3, "POST")).starts_with("head 3 :status=413 content-type=text/"));
  EXPECT_TRUE(answer(with_scheme(5, "ftp")).starts_with("head 5 :status=400 content-type=appl"));
}

class H2ReplacedBodyTest : public H2ConnectionRoutesTest,
                           public testing::WithParamInterface<std::uint64_t> {};

TEST_P(H2ReplacedBodyTest, HasTheLimitOfTheReplacementThatItWaitsFor) {
  ReplacedRoutes replaced;
  const auto echo = [](Request& request) -> Task<Response> {
    const auto body = co_await request.body();
    co_return body ? text(std::string(*body)) : Response(body.error());
  };
  replaced.add(routes_, *loop_, "POST", "/a", echo, {.body_max = GetParam()});
  begin_busy();
  const std::string body = "eleven byte";
  EXPECT_EQ(answer(too_large(3, "POST") + data(3, body, FrameFlag::end_stream)), "");
  EXPECT_EQ(answer(post(5, "/a") + data(5, body, FrameFlag::end_stream)), "");
  replaced.replace(*loop_);
  const std::string lines = received();
  const bool fits = body.size() <= GetParam();
  for (const std::string stream : {"3", "5"}) {
    EXPECT_NE(lines.find("head " + stream + (fits ? " :status=200" : " :status=413")), lines.npos)
        << lines;
  }
  EXPECT_EQ(lines.find(body) != lines.npos, fits) << lines;
  shut_down();
}

INSTANTIATE_TEST_SUITE_P(AtMost, H2ReplacedBodyTest, testing::Values(5U, 11U));

TEST_F(H2ConnectionRoutesTest, KeepsALargeResponseAfterAnUnreadBody) {
  id_ = routes_.post("/a", [] { return text(std::string(1'000, 'x')); });
  begin_busy();
  EXPECT_EQ(set_window(0), "");
  EXPECT_EQ(answer(post(3, "/a")), "");
  EXPECT_TRUE(answer(data(3, "body", FrameFlag::end_stream)).starts_with("head 3 :status=200 "));
  EXPECT_EQ(answer(get(5, "/remove")), "");
  EXPECT_EQ(pass_a_second(), "");
  EXPECT_EQ(set_window(1'000), "data 3 " + std::string(1'000, 'x') + " end\n" + removed(5));
}

TEST_F(H2ConnectionRoutesTest, KeepsAnErrorAfterABodyThatStalls) {
  id_ = routes_.post("/a", [] { return text("hello"); });
  begin_busy();
  EXPECT_EQ(set_window(0), "");
  EXPECT_EQ(answer(post(3, "/a")), "");
  pass(std::chrono::seconds(6));
  EXPECT_TRUE(received().starts_with("head 3 :status=408 "));
  EXPECT_TRUE(set_window(1'000).starts_with("data 3 {\"title\""));
}

TEST_F(H2ConnectionRoutesTest, AnErrorPageOfAStreamWaitsForTheWindow) {
  const std::string page(100'000, 'p');
  routes_.render_errors([&page](const Problem&) { return text(page); });
  routes_.get("/a", [] {
    return stream("a/b", [](BodySink&) -> Task<Result<>> { co_return fail(Errc::bad_input); });
  });
  routes_.get("/long", [] {
    const auto write = [](BodySink& sink) { return sink.write("longer"); };
    return stream("a/b", {.length = 3}, write);
  });
  begin_busy();
  EXPECT_EQ(set_window(1), "");
  std::uint32_t id = 3;
  for (const auto& [path, status] : {std::pair("/a", "400"), std::pair("/long", "500")}) {
    const std::string number = std::to_string(id);
    const std::string lines = answer(get(id, path));
    EXPECT_TRUE(lines.starts_with("head " + number + " :status=" + status + " ")) << lines;
    EXPECT_TRUE(lines.ends_with("data " + number + " p\n")) << lines;
    const std::string rest = answer(window_update(0, 200'000) + window_update(id, 200'000));
    EXPECT_TRUE(rest.ends_with("p end\n"));
    EXPECT_EQ(std::ranges::count(rest, 'p'), 99'999);
    id += 2;
  }
}

TEST_F(H2ConnectionRoutesTest, TheErrorPageOfAStreamThatWasStoppedWaitsForTheWindow) {
  routes_.render_errors([](const Problem&) { return text("page"); });
  id_ = routes_.post("/a", [handler = Streaming("hello")] { return handler(); });
  begin_busy();
  EXPECT_EQ(set_window(1), "");
  EXPECT_EQ(answer(post(3, "/a") + get(5, "/remove")), "");
  EXPECT_EQ(pass_a_second(), "");
  EXPECT_EQ(answer(rst_stream(5)), "") << "the removal stops the request";
  const std::string lines = answer(data(3, "body", FrameFlag::end_stream));
  EXPECT_TRUE(lines.starts_with("head 3 :status=503 ")) << lines;
  EXPECT_TRUE(lines.ends_with("data 3 p\n")) << lines;
  EXPECT_EQ(set_window(1'000), "data 3 age end\n");
}

TEST_F(H2ConnectionRoutesTest, KeepsTheHandlerOfATaskThatStreams) {
  id_ = routes_.get(
      "/a", [handler = Streaming("hello")](Request&) -> Task<Response> { co_return handler(); });
  begin_busy();
  EXPECT_EQ(answer(get(3, "/remove") + get(5, "/a")), "head 5 :status=200 content-type=a/b\n");
  EXPECT_EQ(pass_a_second(), "");
  EXPECT_EQ(pass_a_second(), "data 5 hello\ndata 5  end\n" + removed(3));
}

TEST_F(H2ConnectionRoutesTest, KeepsTheHandlerOfAReplacement) {
  ReplacedRoutes replaced;
  const auto task = [handler = Streaming("hello")](Request&) -> Task<Response> {
    co_return handler();
  };
  replaced.add(routes_, *loop_, "GET", "/a", Streaming("hello"));
  replaced.add(routes_, *loop_, "GET", "/task", task);
  begin_busy();
  EXPECT_EQ(answer(get(3, "/a") + get(5, "/task")), "");
  replaced.replace(*loop_);
  EXPECT_NE(received().find("head 5 :status=200 "), std::string::npos);
  EXPECT_FALSE(replaced.idle(*loop_)) << "the replacement may leave";
  pass_a_second();
  EXPECT_EQ(pass_a_second(), "data 3 hello\ndata 3  end\ndata 5 hello\ndata 5  end\n");
  EXPECT_TRUE(replaced.idle(*loop_));
  shut_down();
}

}  // namespace
}  // namespace weir::http::h2_connection_routes_test

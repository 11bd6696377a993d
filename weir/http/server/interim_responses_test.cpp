// Tests of interim responses, from Request::send_interim() to ClientRequest::on_interim().
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/test/carrier_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::interim_responses_test {
namespace {

class InterimResponsesTest : public CarrierTest {
 protected:
  InterimResponsesTest() {
    routes_.get("/hints", [this](Request& request) -> Task<Response> {
      Headers links;
      std::ignore = links.add("Link", "</a.css>; rel=preload");
      errors_.push_back(error_of(co_await request.send_interim(Status::early_hints, links)));
      errors_.push_back(error_of(co_await request.send_interim(Status(102))));
      std::ignore = co_await sleep(1s);
      co_return text("done");
    });
    routes_.post("/hinted", [](Request& request) -> Task<Response> {
      EXPECT_TRUE(co_await request.send_interim(Status::early_hints));
      const auto body = co_await request.body();
      co_return text(body ? *body : body.error().message());
    });
    routes_.get("/wrong", [this](Request& request) -> Task<Response> {
      for (const int code : {101, 200, 99}) {
        errors_.push_back(error_of(co_await request.send_interim(Status(code))));
      }
      Headers framing;
      std::ignore = framing.add("Content-Length", "1");
      errors_.push_back(error_of(co_await request.send_interim(Status::early_hints, framing)));
      co_return text("done");
    });
    routes_.get("/late", [this](Request& request) {
      return duplex(request, text_type, hint_late, &errors_);
    });
    routes_.post("/silent", [](Request& request) -> Task<Response> {
      EXPECT_TRUE(co_await request.send_interim(Status::early_hints));
      const auto body = co_await request.body();
      EXPECT_TRUE(body);
      std::ignore = co_await sleep(10s);
      co_return text("late");
    });
    routes_.post("/continue", [this](Request& request) -> Task<Response> {
      for (int count = 0; count < 2; ++count) {
        errors_.push_back(error_of(co_await request.send_interim(Status(100))));
      }
      const auto body = co_await request.body();
      co_return text(body ? *body : body.error().message());
    });
  }
  static std::error_code error_of(const Result<>& result) {
    return result ? std::error_code() : result.error();
  }
  static Task<Result<>> hint_late(Request& request, BodySink& sink,
                                  std::vector<std::error_code>* errors) {
    errors->push_back(error_of(co_await request.send_interim(Status::early_hints)));
    WEIR_CO_TRY(co_await sink.write("body"));
    errors->push_back(error_of(co_await request.send_interim(Status::early_hints)));
    co_return {};
  }

  /// Notes an interim response, and waits for `pause_`.
  Task<> note(const InterimResponse& interim) {
    std::string text = std::to_string(code_of(interim.status()));
    for (std::size_t index = 0; index < interim.header_count(); ++index) {
      const HeaderField field = interim.header_at(index);
      text.append(" ").append(field.name).append(": ").append(field.value);
    }
    seen_.push_back(text);
    std::ignore = co_await sleep(pause_);
  }
  std::string send(ClientRequest request) {
    std::string answer;
    weir::run(*loop_, send_into(std::move(request), &answer));
    return answer;
  }
  Task<> send_into(ClientRequest request, std::string* answer) {
    Client client(client_options());
    request.on_interim([this](const InterimResponse& interim) { return note(interim); });
    const Instant start = loop_->now();
    auto response = co_await client.send(std::move(request));
    took_ = loop_->now() - start;
    if (!response) {
      *answer = response.error().message();
      co_return;
    }
    const auto body = co_await response->body();
    *answer = body ? *body : body.error().message();
  }

  std::vector<std::error_code> errors_;
  std::vector<std::string> seen_;
  Duration pause_ = Duration::zero();
  Duration took_{};
};
INSTANTIATE_TEST_SUITE_P(On, InterimResponsesTest, carriers_of_clients(), carrier_name);

TEST_P(InterimResponsesTest, ComeBeforeTheResponse) {
  serve();
  EXPECT_EQ(send(ClientRequest(Method::get, url("/hints"))), "done");
  ASSERT_EQ(seen_.size(), 2U);
  EXPECT_TRUE(seen_[0] == "103 Link: </a.css>; rel=preload" ||
              seen_[0] == "103 link: </a.css>; rel=preload")
      << seen_[0];
  EXPECT_EQ(seen_[1], "102");
  EXPECT_EQ(errors_, std::vector<std::error_code>(2));
}

TEST_P(InterimResponsesTest, AreNotLostIfTheirFunctionIsSlow) {
  serve();
  pause_ = 3s;
  EXPECT_EQ(send(ClientRequest(Method::get, url("/hints"))), "done");
  EXPECT_EQ(seen_.size(), 2U);
  EXPECT_EQ(took_, 6s);
}

TEST_P(InterimResponsesTest, AreRefusedIfTheyAreNone) {
  serve();
  EXPECT_EQ(send(ClientRequest(Method::get, url("/wrong"))), "done");
  EXPECT_EQ(errors_, std::vector<std::error_code>(4, make_error_code(Errc::bad_input)));
  errors_.clear();
  EXPECT_EQ(send(ClientRequest(Method::get, url("/late"))), "body");
  EXPECT_EQ(errors_, std::vector<std::error_code>(2, make_error_code(Errc::closed)));
  EXPECT_TRUE(seen_.empty());
}

// The request ends while the function runs, and its time for the head begins then.
TEST_P(InterimResponsesTest, TheirFunctionHidesNoEndOfTheRequest) {
  serve();
  ClientOptions options = client_options();
  options.limits.head_timeout = 4s;
  std::error_code error;
  Duration took{};
  const auto send = [&]() -> Task<> {
    Client client(std::move(options));
    const auto talk = [&](Scope& scope) -> Task<> {
      ClientRequest request(Method::post, url("/silent"));
      const auto write = [](BodySink& sink) -> Task<Result<>> {
        WEIR_CO_TRY(co_await sleep(1s));
        co_return co_await sink.write("body");
      };
      request.set_body("text/plain", http::Body(StreamFunction(write)));
      request.on_interim(
          [](const InterimResponse&) -> Task<> { std::ignore = co_await sleep(2s); });
      const Instant start = loop_->now();
      const auto response = co_await client.send(scope, std::move(request));
      took = loop_->now() - start;
      if (!response) error = response.error();
      scope.cancel();
    };
    std::ignore = co_await with_scope(OnFailure::isolate, talk);
  };
  weir::run(*loop_, send());
  EXPECT_EQ(error, ClientError::head_timed_out);
  EXPECT_EQ(took, 6s);
  pass(10s);  // the handler of HTTP/1 does not see that its client has left
}

// The body of the request ends meanwhile, which cancels the read beside it.
TEST_P(InterimResponsesTest, NothingElseEndsTheirFunction) {
  serve();
  pause_ = 5s;
  ClientRequest request(Method::post, url("/hinted"));
  const auto write = [](BodySink& sink) -> Task<Result<>> {
    WEIR_CO_TRY(co_await sleep(1s));
    co_return co_await sink.write("body");
  };
  request.set_body("text/plain", http::Body(StreamFunction(write)));
  EXPECT_EQ(send(std::move(request)), "body");
  EXPECT_EQ(took_, 5s);
  EXPECT_EQ(seen_.size(), 1U);
}

/// Interim responses as bytes.
class InterimBytesTest : public HttpFixture, public testing::Test {
 protected:
  InterimBytesTest() {
    routes_.post("/", [](Request& request) -> Task<Response> {
      for (int count = 0; count < 2; ++count) {
        EXPECT_TRUE(co_await request.send_interim(Status(100)));
        EXPECT_TRUE(co_await request.send_interim(Status::early_hints));
      }
      const auto body = co_await request.body();
      co_return text(body ? *body : body.error().message());
    });
    serve();
  }
  void TearDown() override { shut_down(); }
  /// Returns the lines of status that a request with this version and header gets.
  std::string statuses(std::string_view version, std::string_view header) {
    MemoryPeer& peer = connect();
    peer.send("POST / " + std::string(version) + "\r\nHost: a\r\n" + std::string(header) +
              "Content-Length: 1\r\n\r\n");
    settle();
    peer.send("b");
    settle();
    std::string found;
    const std::string_view received = peer.received();
    for (std::size_t at = received.find("HTTP/1."); at != std::string_view::npos;
         at = received.find("HTTP/1.", at + 1)) {
      found.append(found.empty() ? "" : " ").append(received.substr(at + 9, 3));
    }
    return found;
  }
};

TEST_F(InterimBytesTest, AnExpected100IsSentOnce) {
  EXPECT_EQ(statuses("HTTP/1.1", "Expect: 100-continue\r\n"), "100 103 103 200");
}

TEST_F(InterimBytesTest, AnyOtherIsSentAsItIs) {
  EXPECT_EQ(statuses("HTTP/1.1", ""), "100 103 100 103 200");
}

TEST_F(InterimBytesTest, OldClientsGetNone) {
  EXPECT_EQ(statuses("HTTP/1.0", ""), "200");
}

/// A server whose client takes few bytes at a time.
class SlowClientTest : public HttpFixture, public testing::Test {
 protected:
  SlowClientTest() : HttpFixture({.buffer_bytes = 4096}) {
    routes_.post("/", [](Request& request) -> Task<Response> {
      request.scope().spawn(send_large(request));
      co_return duplex(request, text_type, write_ok);
    });
    serve();
  }
  void TearDown() override { shut_down(); }
  static Task<> send_large(Request& request) {
    Headers headers;
    std::ignore = headers.add("Link", std::string(100'000, 'l'));
    EXPECT_TRUE(co_await request.send_interim(Status::early_hints, headers));
  }
  static Task<Result<>> write_ok(Request&, BodySink& sink) { co_return co_await sink.write("ok"); }
};

TEST_F(SlowClientTest, TheFinalHeadWaitsForAnInterimResponse) {
  MemoryPeer& peer = connect();
  peer.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nb");
  std::string all;
  for (int step = 0; step < 200; ++step) {
    settle();
    all += peer.take();
  }
  const std::size_t hint = all.find("HTTP/1.1 103 ");
  const std::size_t head = all.find("HTTP/1.1 200 ");
  EXPECT_EQ(hint, 0U);
  ASSERT_NE(head, std::string::npos) << all.size();
  EXPECT_GT(head, 100'000U);
  EXPECT_EQ(all.substr(head - 4, 4), "\r\n\r\n");
  EXPECT_TRUE(all.ends_with("2\r\nok\r\n0\r\n\r\n")) << all.substr(head);
}

}  // namespace
}  // namespace weir::http::interim_responses_test

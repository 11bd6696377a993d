// Tests of responses that come before the end of the request's body, from servers that read no more
// of it: the end of one direction wakes the task that waits in the other (RFC 9113 §8.1).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/http/test/client_fixture.hpp"
#include "weir/http/test/h2_server_fixture.hpp"
#include "weir/task/context.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::early_response_test {
namespace {

constexpr std::size_t upload_size = 30 * 1024 * 1024;

/// What a request with a long body has got.
struct Answer {
  std::string status;  ///< or the error of send()
  std::string body;    ///< or the error of the body
  Duration took{};     ///< until send() returned

  friend bool operator==(const Answer&, const Answer&) = default;
  friend void PrintTo(const Answer& answer, std::ostream* out) {
    *out << answer.status << " [" << answer.body.substr(0, 100) << "] of " << answer.body.size()
         << " after " << answer.took.count() << " ns";
  }
};

/// The ways to send a body.
enum class Upload : std::uint8_t { stream, text };

ClientRequest post(Upload upload) {
  ClientRequest request(Method::post, "http://127.0.0.1:81/");
  if (upload == Upload::text) {
    request.set_body("text/plain", Body(std::string(upload_size, 't')));
    return request;
  }
  request.set_body("text/plain", Body(StreamFunction([](BodySink& sink) -> Task<Result<>> {
                     const std::string piece(64 * 1024, 's');
                     for (std::size_t sent = 0; sent < upload_size; sent += piece.size()) {
                       const Result<> written = co_await sink.write(piece);
                       if (!written) co_return written;
                     }
                     co_return {};
                   })));
  return request;
}

Task<Answer> answer_to(Client& client, ClientRequest request) {
  Answer answer;
  const Loop& loop = *(co_await this_context()).loop;
  const Instant start = loop.now();
  auto response = co_await client.send(std::move(request));
  answer.took = loop.now() - start;
  if (!response) {
    answer.status = response.error().message();
    co_return answer;
  }
  answer.status = std::to_string(code_of(response->status()));
  const auto body = co_await response->body();
  answer.body = body ? *body : body.error().message();
  co_return answer;
}

ClientLimits impatient() {
  ClientLimits limits;
  limits.body_timeout = 5s;
  limits.ping_timeout = 1h;  // the servers do not answer
  return limits;
}

// HTTP/1.1.

class EarlyResponseTest : public ClientFixture {
 protected:
  explicit EarlyResponseTest(const MemoryPlatformOptions& options = {}) : ClientFixture(options) {}

  /// Returns the answer of a server that reads the head, and then does as `step` says.
  Answer answer_of(Step step, Upload upload) {
    Answer answer;
    if (step.pause == Duration::zero()) step.pause = 1h;
    ClientOptions options;
    options.limits = impatient();
    with_server({{step}}, std::move(options), [&](Client& client) -> Task<> {
      answer = co_await answer_to(client, post(upload));
      EXPECT_EQ(client.connection_count(), 0U) << "the request was cut off";
    });
    return answer;
  }
};

TEST_F(EarlyResponseTest, CompleteResponseEndsTheRequest) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  for (const Upload upload : {Upload::stream, Upload::text}) {
    Step step;
    EXPECT_EQ(answer_of(step, upload), (Answer{"200", "hello", 0s}));
    step.answer = ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    EXPECT_EQ(answer_of(step, upload), (Answer{"200", "hello", 0s}));
    step.answer = "HTTP/1.1 204 No Content\r\n\r\n";
    EXPECT_EQ(answer_of(step, upload), (Answer{"204", "", 0s}));
    const std::string half(32 * 1024, 'a');
    step.answer = ok + "Content-Length: 65536\r\n\r\n" + half + half;
    EXPECT_EQ(answer_of(step, upload), (Answer{"200", half + half, 0s})) << "the room is used up";
    step.answer = ok + "Content-Length: 5\r\n\r\nhe";
    step.pause = 100ms;
    step.late = "llo";
    EXPECT_EQ(answer_of(step, upload), (Answer{"200", "hello", 100ms}));
  }
}

TEST_F(EarlyResponseTest, EndOfTheConnectionEndsTheRequest) {
  for (const Upload upload : {Upload::stream, Upload::text}) {
    Step step;
    step.answer = "HTTP/1.1 200 OK\r\n\r\nhello";
    step.pause = 100ms;
    step.close = true;
    const Answer whole = answer_of(step, upload);
    EXPECT_EQ(whole.status, "200");
    step.answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    const Answer cut = answer_of(step, upload);
    EXPECT_EQ(cut.status, "200");
    EXPECT_EQ(cut.body, make_error_code(ClientError::connection_lost).message());
    EXPECT_EQ(cut.took, 100ms);
  }
}

TEST_F(EarlyResponseTest, ResponseWithoutAnEndIsReturnedWhenTheBodyTimesOut) {
  for (const Upload upload : {Upload::stream, Upload::text}) {
    Step step;
    step.answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    const std::string late = make_error_code(ClientError::body_timed_out).message();
    EXPECT_EQ(answer_of(step, upload), (Answer{"200", late, 5s}));
  }
}

// The server waits until the client reads, and the client waits until the server reads.
TEST_F(EarlyResponseTest, LongResponseIsNotLost) {
  for (const Upload upload : {Upload::stream, Upload::text}) {
    Step step;
    const std::string body(1024 * 1024, 'a');
    step.answer = "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + body;
    const Answer answer = answer_of(step, upload);
    EXPECT_EQ(answer.status, "200");
    EXPECT_TRUE(answer.body == body) << answer.body.size();
    EXPECT_LT(answer.took, 3s);
  }
}

/// A client whose connections have small buffers.
class SmallBuffersTest : public EarlyResponseTest {
 protected:
  SmallBuffersTest() : EarlyResponseTest({.buffer_bytes = 4096}) {}
};

TEST_F(SmallBuffersTest, AnswerToAShortBodyThatIsNotReadArrivesAtOnce) {
  ClientOptions options;
  options.limits = impatient();
  Step step;
  step.pause = 1h;
  with_server({{step}}, std::move(options), [](Client& client) -> Task<> {
    ClientRequest request(Method::post, "http://127.0.0.1:81/");
    request.set_body("text/plain", http::Body(std::string(30'000, 't')));
    const Answer answer = co_await answer_to(client, std::move(request));
    EXPECT_EQ(answer.status, "200");
    EXPECT_EQ(answer.body, "hello");
    EXPECT_LT(answer.took, 1s);
  });
}

// HTTP/2.

class EarlyHttp2ResponseTest : public H2ServerFixture {
 protected:
  /// Returns the answer of a server that sends these frames after the head of the request, and no
  /// WINDOW_UPDATE.
  Answer answer_of(std::string frames, Upload upload, std::string_view then = "reset 1 8") {
    Answer answer;
    const auto serve = [&](H2Peer& peer) -> Task<> {
      EXPECT_TRUE(co_await peer.receive("head 1"));
      co_await peer.send(frames);
      if (!then.empty()) {
        EXPECT_TRUE(co_await peer.receive(std::string(then)));
      }
      co_await peer.end();
    };
    with_scripts({serve}, http2(impatient()), [&](Client& client) -> Task<> {
      answer = co_await answer_to(client, post(upload));
      std::ignore = co_await sleep(1ms);
      EXPECT_EQ(client.connection_count(), 1U) << "the other streams go on";
    });
    return answer;
  }
};

TEST_F(EarlyHttp2ResponseTest, CompleteResponseEndsTheRequest) {
  const std::string head = frames::answer(1, "200", FrameFlag::end_headers);
  const std::string trailers = frames::headers(1, frames::block({{"x-sum", "7"}}));
  for (const Upload upload : {Upload::stream, Upload::text}) {
    EXPECT_EQ(answer_of(frames::answer_text(1, "ok"), upload), (Answer{"200", "ok", 0s}));
    EXPECT_EQ(answer_of(frames::answer(1, "204"), upload), (Answer{"204", "", 0s}));
    EXPECT_EQ(answer_of(head + frames::data(1, "ok") + trailers, upload),
              (Answer{"200", "ok", 0s}));
  }
}

TEST_F(EarlyHttp2ResponseTest, ResetBehindTheResponseDoesNotDropIt) {
  for (const Upload upload : {Upload::stream, Upload::text}) {
    const std::string reset = frames::rst_stream(1, H2Error::no_error);
    EXPECT_EQ(answer_of(frames::answer_text(1, "ok") + reset, upload, {}),
              (Answer{"200", "ok", 0s}));
  }
}

// The answer is longer than one read, and the connection is reset behind it.
TEST_F(EarlyHttp2ResponseTest, AFailedWriteDoesNotDropTheResponse) {
  for (const Upload upload : {Upload::stream, Upload::text}) {
    Answer answer;
    const auto serve = [&](H2Peer& peer) -> Task<> {
      EXPECT_TRUE(co_await peer.receive("head 1"));
      std::string text = frames::answer(1, "413", FrameFlag::end_headers);
      for (int count = 0; count < 3; ++count) text += frames::data(1, std::string(16'000, 'a'));
      co_await peer.send(text + frames::data(1, "end", FrameFlag::end_stream));
      std::ignore = peer.stream().set_close_mode(CloseMode::reset);
      peer.close();
    };
    with_scripts({serve}, http2(impatient()), [&](Client& client) -> Task<> {
      answer = co_await answer_to(client, post(upload));
    });
    EXPECT_EQ(answer.status, "413");
    EXPECT_TRUE(answer.body.ends_with("end")) << testing::PrintToString(answer);
  }
}

TEST_F(EarlyHttp2ResponseTest, ResponseWithoutAnEndIsReturnedWhenTheBodyTimesOut) {
  const std::string begin =
      frames::answer(1, "200", FrameFlag::end_headers) + frames::data(1, "ok");
  for (const Upload upload : {Upload::stream, Upload::text}) {
    const std::string late = text_of(ClientError::body_timed_out);
    EXPECT_EQ(answer_of(begin, upload), (Answer{"200", late, 5s}));
  }
}

// The server waits for the window of the response, and the client for that of the request.
TEST_F(EarlyHttp2ResponseTest, LongResponseIsNotLost) {
  const std::string piece(16'384, 'a');
  for (const Upload upload : {Upload::stream, Upload::text}) {
    Answer answer;
    const auto serve = [&](H2Peer& peer) -> Task<> {
      EXPECT_TRUE(co_await peer.receive("settings_ack"));
      EXPECT_TRUE(co_await peer.receive("head 1"));
      co_await peer.send(frames::answer(1, "200", FrameFlag::end_headers));
      for (int count = 0; count < 4; ++count) co_await peer.send(frames::data(1, piece));
      EXPECT_TRUE(co_await peer.receive("window_update 1"));
      co_await peer.send(frames::data(1, "end", FrameFlag::end_stream));
      co_await peer.end();
    };
    with_scripts({serve}, http2(impatient()), [&](Client& client) -> Task<> {
      answer = co_await answer_to(client, post(upload));
    });
    EXPECT_EQ(answer.status, "200");
    EXPECT_EQ(answer.body.size(), 4 * piece.size() + 3);
    EXPECT_LT(answer.took, 3s);
  }
}

/// Opens the windows for all of a body, 32 KiB every 300 ms.
Task<> open_windows(H2Peer& peer, std::size_t size) {
  for (std::size_t opened = 65'535; opened < size; opened += 32 * 1024) {
    std::ignore = co_await sleep(300ms);
    co_await peer.send(frames::window_update(0, 32 * 1024) + frames::window_update(1, 32 * 1024));
  }
}

// The server takes 32 KiB of one piece every 300 ms, while its response has no room.
TEST_F(EarlyHttp2ResponseTest, ServerThatTakesMoreGetsAll) {
  constexpr std::size_t size = 256 * 1024;
  Answer answer;
  const auto serve = [&](H2Peer& peer) -> Task<> {
    EXPECT_TRUE(co_await peer.receive("settings_ack"));
    EXPECT_TRUE(co_await peer.receive("head 1"));
    co_await peer.send(frames::answer(1, "200", FrameFlag::end_headers));
    for (int count = 0; count < 4; ++count) {
      co_await peer.send(frames::data(1, std::string(16'384, 'a')));
    }
    const auto take = [&peer](Scope& scope) -> Task<> {
      scope.spawn(open_windows(peer, size));
      EXPECT_TRUE(co_await peer.receive("data 1  end"));
    };
    std::ignore = co_await with_scope(OnFailure::isolate, take);
    co_await peer.send(frames::data(1, "end", FrameFlag::end_stream));
    co_await peer.end();
  };
  with_scripts({serve}, http2(impatient()), [&](Client& client) -> Task<> {
    ClientRequest request(Method::post, "http://127.0.0.1:81/");
    request.set_body("text/plain", Body(StreamFunction([](BodySink& sink) -> Task<Result<>> {
                       const std::string piece(size, 's');
                       co_return co_await sink.write(piece);
                     })));
    answer = co_await answer_to(client, std::move(request));
  });
  EXPECT_EQ(answer.status, "200");
  EXPECT_TRUE(answer.body.ends_with("end")) << testing::PrintToString(answer);
  EXPECT_GT(answer.took, 1500ms) << "the whole piece was sent";
}

TEST_F(EarlyHttp2ResponseTest, TaskOfAScopeSendsOn) {
  const auto serve = [](H2Peer& peer) -> Task<> {
    EXPECT_TRUE(co_await peer.receive("head 1"));
    co_await peer.send(frames::answer_text(1, "ok"));
    EXPECT_TRUE(co_await peer.receive("data 1 late"));
    EXPECT_TRUE(co_await peer.receive("data 1  end"));
    co_await peer.end();
  };
  with_scripts({serve}, [](Client& client) -> Task<> {
    const auto talk = [&client](Scope& scope) -> Task<> {
      ClientRequest request(Method::post, "http://127.0.0.1:81/");
      const auto write = [](BodySink& sink) -> Task<Result<>> {
        WEIR_CO_TRY(co_await sleep(1s));
        co_return co_await sink.write("late");
      };
      request.set_body("text/plain", Body(StreamFunction(write), 4));
      auto response = co_await client.send(scope, std::move(request));
      EXPECT_TRUE(response);
      if (!response) co_return;
      const auto body = co_await response->body();
      EXPECT_TRUE(body && *body == "ok");
      co_await scope.children_finished();
      std::ignore = co_await sleep(1ms);
    };
    std::ignore = co_await with_scope(OnFailure::isolate, talk);
  });
}

}  // namespace
}  // namespace weir::http::early_response_test

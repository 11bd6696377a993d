// Tests of the ends of streamed responses, with the carrier as parameter: what the client sees, and
// what the server counts and logs.
#include <gtest/gtest.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "weir/http/test/carrier_fixture.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::stream_end_test {
namespace {

/// What a client has received of one response.
struct Received {
  std::string text;       ///< the bytes of HTTP/1, or lines that describe the frames of HTTP/2
  std::error_code error;  ///< the end of the connection; no error over HTTP/2
};

Task<Result<>> write_whole(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("1234567"));
  WEIR_CO_TRY(co_await sleep(10ms));
  co_return co_await sink.write(" whole");
}
Task<Result<>> fail_early(BodySink&) {
  co_return fail(Errc::bad_configuration);
}
Task<Result<>> fail_late(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("1234567"));
  WEIR_CO_TRY(co_await sleep(10ms));
  co_return fail(Errc::not_found);
}
Task<Result<>> throw_late(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("1234567"));
  throw std::runtime_error("internal detail");
}
Task<Result<>> never_end(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("1234567"));
  co_return co_await sleep(1h);
}

class StreamEndTest : public CarrierTest {
 protected:
  StreamEndTest() {
    routes_.get("/whole", [] { return stream(text_type, write_whole); });
    routes_.get("/fails-early", [] { return stream(text_type, fail_early); });
    routes_.get("/fails-late", [] { return stream(text_type, fail_late); });
    routes_.get("/throws-late", [] { return stream(text_type, throw_late); });
    routes_.get("/never-ends", [] { return stream(text_type, never_end); });
    routes_.get("/too-short", [] { return stream(text_type, {.length = 20}, write_whole); });
    routes_.get("/too-long", [] { return stream(text_type, {.length = 10}, write_whole); });
    routes_.get("/throws", [] {
      // It is no coroutine: the exception comes before there is a task.
      const auto write = [](BodySink&) -> Task<Result<>> {
        throw std::runtime_error("internal detail");
      };
      return stream(text_type, write);
    });
    serve();
  }

  /// Asks for `path`, and receives until the response or the connection ends.
  Task<Received> fetch(std::string path) {
    auto connecting = connect_as_carrier();
    AnyStream stream = co_await std::move(connecting);
    std::string request = frames::preface() + frames::get(1, path);
    if (!is_http2()) request = "GET " + path + " " + version() + "\r\nHost: a\r\n\r\n";
    EXPECT_TRUE(co_await stream->write(request));
    Received received;
    frames::Receiver receiver;
    for (;;) {
      const auto bytes = co_await stream->read({.timeout = 1s});
      if (!bytes) {
        received.error = bytes.error();
        break;
      }
      received.text += is_http2() ? receiver.read(bytes->text()) : std::string(bytes->text());
      const bool ended = received.text.find("reset 1 ") != received.text.npos ||
                         received.text.find(" end\n") != received.text.npos;
      if (is_http2() && ended) break;
    }
    co_return received;
  }
  Received ask(std::string_view path) { return weir::run(*loop_, fetch(std::string(path))); }

  /// Expects that a part of a response has arrived, and that no client takes it for the whole one.
  void expect_cut(const Received& received) const {
    if (is_http2()) {
      EXPECT_NE(received.text.find("\nreset 1 2\n"), received.text.npos) << received.text;
      return;
    }
    if (is_delimited_by_close()) {
      EXPECT_EQ(received.error, system_error(ECONNRESET));
      return;
    }
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(received.text)), "200-");
  }
  void expect_status(const Received& received, std::string_view status) const {
    if (is_http2()) {
      EXPECT_NE(received.text.find("head 1 :status=" + std::string(status)), received.text.npos)
          << received.text;
      EXPECT_EQ(received.text.find("reset"), received.text.npos) << received.text;
      return;
    }
    const auto all = sim::parse_http_responses(received.text);
    EXPECT_EQ(sim::statuses_of(all), status) << received.text;
    EXPECT_NE(received.error, system_error(ECONNRESET));
  }
  void expect_logged(std::string_view line) {
    EXPECT_EQ(server_->counters().handler_failures.value(), 1U);
    ASSERT_EQ(platform_.logged().size(), 1U);
    EXPECT_EQ(platform_.logged()[0], line);
  }
};
INSTANTIATE_TEST_SUITE_P(On, StreamEndTest, every_carrier(), carrier_name);

TEST_P(StreamEndTest, WholeBodyEndsInOrder) {
  const Received received = ask("/whole");
  expect_status(received, "200");
  EXPECT_NE(received.text.find("whole"), received.text.npos);
  if (is_delimited_by_close()) {
    EXPECT_EQ(received.error, Errc::end_of_stream);
  }
  EXPECT_TRUE(platform_.logged().empty());
}

TEST_P(StreamEndTest, ErrorBeforeTheFirstByteIsAnAnswer) {
  const Received received = ask("/fails-early");
  expect_status(received, "500");
  expect_logged("weir: GET /fails-early: response body incomplete: bad configuration");
}

TEST_P(StreamEndTest, ErrorBehindBytesCutsTheBody) {
  const Received received = ask("/fails-late");
  expect_cut(received);
  expect_logged("weir: GET /fails-late: response body incomplete: not found");
}

TEST_P(StreamEndTest, ExceptionBehindBytesCutsTheBody) {
  const Received received = ask("/throws-late");
  expect_cut(received);
  expect_logged("weir: GET /throws-late: handler failed: exception: internal detail");
}

TEST_P(StreamEndTest, ExceptionBeforeTheTaskIsAnAnswer) {
  const Received received = ask("/throws");
  expect_status(received, "500");
  expect_logged("weir: GET /throws: handler failed: exception: internal detail");
}

TEST_P(StreamEndTest, BodyOfAnotherLengthIsCut) {
  const Received short_one = ask("/too-short");
  if (is_http2()) {
    EXPECT_NE(short_one.text.find("\nreset 1 2\n"), short_one.text.npos) << short_one.text;
  } else {
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(short_one.text)), "200-");
  }
  expect_logged("weir: GET /too-short: response body incomplete: it is shorter than its length");
  const Received long_one = ask("/too-long");
  EXPECT_NE(long_one.text.find("1234567"), long_one.text.npos);
  ASSERT_EQ(platform_.logged().size(), 2U);
  EXPECT_EQ(platform_.logged()[1], "weir: GET /too-long: response body exceeds its length");
}

// A cancellation of the server is as visible as a failure of the function.
TEST_P(StreamEndTest, EndOfTheServerCutsTheBody) {
  const auto stop_later = [this]() -> Task<> {
    std::ignore = co_await sleep(100ms);
    stop();
  };
  Received received;
  const auto talk = [&](Scope& scope) -> Task<> {
    scope.spawn(stop_later());
    received = co_await fetch("/never-ends");
  };
  std::ignore = weir::run(*loop_, with_scope(OnFailure::isolate, talk));
  if (is_delimited_by_close()) {
    EXPECT_EQ(received.error, system_error(ECONNRESET));
  } else if (!is_http2()) {
    EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(received.text)), "200-");
  }
  EXPECT_EQ(received.text.find(" end\n"), received.text.npos);
  EXPECT_TRUE(platform_.logged().empty());
}

}  // namespace
}  // namespace weir::http::stream_end_test

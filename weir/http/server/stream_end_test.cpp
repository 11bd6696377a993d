// Tests that a server which stops shows that a streamed response is not complete, with the carrier
// as parameter. tests/messages has the other ends.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
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

Task<Result<>> never_end(BodySink& sink) {
  WEIR_CO_TRY(co_await sink.write("1234567"));
  co_return co_await sleep(1h);
}

class StreamEndTest : public CarrierTest {
 protected:
  StreamEndTest() {
    routes_.get("/never-ends", [] { return stream(text_type, never_end); });
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
};
INSTANTIATE_TEST_SUITE_P(On, StreamEndTest, every_carrier(), carrier_name);

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

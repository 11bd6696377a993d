// Tests of responses whose function reads the request while it writes, with the carrier as
// parameter.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "weir/http/client/client.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/http/test/carrier_fixture.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::duplex_test {
namespace {

constexpr std::size_t mebibyte = 1024 * 1024;

/// What the function of a response has seen.
struct Seen {
  std::size_t bytes = 0;
  std::error_code read_error;
  std::error_code write_error;
  bool ended = false;

  friend void PrintTo(const Seen& seen, std::ostream* out) {
    *out << seen.bytes << " bytes, " << seen.read_error << ", " << seen.write_error;
  }
};

Task<Result<>> echo(Request& request, BodySink& sink, Seen* seen) {
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) {
      seen->read_error = piece.error();
      co_return fail(piece.error());
    }
    if (piece->empty()) break;
    seen->bytes += piece->size();
    if (auto sent = co_await sink.write(*piece); !sent) {
      seen->write_error = sent.error();
      co_return sent;
    }
  }
  for (const HeaderField trailer : request.trailers()) {
    std::ignore = sink.add_trailer(trailer.name, trailer.value);
  }
  seen->ended = true;
  co_return {};
}

Task<Result<>> send_three(Request&, BodySink& sink) {
  co_return co_await sink.write("abc");
}

class DuplexTest : public CarrierTest {
 protected:
  DuplexTest() {
    const RouteOptions large{.body_max = 64 * mebibyte};
    routes_.post(
        "/echo", [this](Request& request) { return duplex(request, text_type, echo, &seen_); },
        large);
    routes_.post(
        "/task",
        [this](Request& request) -> Task<Response> {
          auto first = co_await request.read();
          first_ = first ? std::string(to_text(*first)) : "";
          co_return duplex(request, text_type, echo, &seen_);
        },
        large);
    routes_.post(
        "/patient",
        [this](Request& request) {
          return duplex(request, text_type, DuplexOptions{.read_timeout = 2min}, echo, &seen_);
        },
        large);
    routes_.post(
        "/unread", [](Request& request) { return duplex(request, text_type, send_three); }, large);
  }

  /// Runs `talk` with a client and a scope for the tasks that send its requests.
  void run_with(std::function<Task<Result<>>(Scope&, Client&)> talk) {
    ClientOptions options = client_options();
    options.limits.body_timeout = 10min;  // only the server's timeouts end a wait
    Client client(std::move(options));
    const auto body = [&](Scope& scope) { return talk(scope, client); };
    result_ = weir::run(*loop_, with_scope(body));
  }
  ClientRequest post_of(std::string_view path, StreamFunction write,
                        std::optional<std::uint64_t> length = std::nullopt) {
    ClientRequest post(Method::post, url(path));
    post.set_body("text/plain", http::Body(std::move(write), length));
    return post;
  }
  /// Makes a request whose body is what the channel brings, until it is closed.
  ClientRequest post_of(std::string_view path, Channel<std::string>& lines) {
    return post_of(path, [&lines](BodySink& sink) { return write_lines(sink, &lines); });
  }
  static Task<Result<>> write_lines(BodySink& sink, Channel<std::string>* lines) {
    for (;;) {
      auto line = co_await lines->receive();
      if (!line) break;
      if (auto sent = co_await sink.write(*line); !sent) co_return sent;
    }
    co_return sink.add_trailer("Checksum", "1234");
  }
  static Task<Result<std::string>> read_piece(ClientResponse& response) {
    WEIR_CO_TRY(const Bytes piece, co_await response.read());
    co_return std::string(to_text(piece));
  }

  Seen seen_;
  std::string first_;
  Result<> result_;
};
INSTANTIATE_TEST_SUITE_P(On, DuplexTest, carriers_of_clients(), carrier_name);

TEST_P(DuplexTest, EachLineIsAnsweredBeforeTheNextIsSent) {
  serve();
  for (const std::string_view path : {"/echo", "/patient"}) {
    seen_ = {};
    Channel<std::string> lines(1);
    run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
      WEIR_CO_TRY(co_await lines.send("begin\n"));
      WEIR_CO_TRY(auto response, co_await client.send(scope, post_of(path, lines)));
      EXPECT_EQ(response.status(), Status::ok);
      EXPECT_EQ(co_await read_piece(response), "begin\n");
      for (const std::string line : {"one\n", "two\n"}) {
        WEIR_CO_TRY(co_await lines.send(line));
        EXPECT_EQ(co_await read_piece(response), line);
      }
      lines.close();
      EXPECT_EQ(co_await read_piece(response), "");
      EXPECT_EQ(response.trailers().get("checksum"), "1234");
      co_return {};
    });
    EXPECT_TRUE(result_) << result_.error();
    EXPECT_TRUE(seen_.ended) << testing::PrintToString(seen_);
  }
  EXPECT_EQ(server_->counters().responses.value(), 2U);
  EXPECT_TRUE(platform_.logged().empty());
}

TEST_P(DuplexTest, HeadComesBeforeTheBodyOfTheRequest) {
  serve();
  Channel<std::string> lines(1);
  run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
    WEIR_CO_TRY(auto response, co_await client.send(scope, post_of("/echo", lines)));
    EXPECT_EQ(response.status(), Status::ok);
    lines.close();
    EXPECT_EQ(co_await read_piece(response), "");
    co_return {};
  });
  EXPECT_TRUE(result_) << result_.error();
}

TEST_P(DuplexTest, GoesOnAfterTheHandlerHasReadAPart) {
  serve();
  Channel<std::string> lines(1);
  run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
    WEIR_CO_TRY(co_await lines.send("first"));
    WEIR_CO_TRY(auto response, co_await client.send(scope, post_of("/task", lines)));
    WEIR_CO_TRY(co_await lines.send("second"));
    EXPECT_EQ(co_await read_piece(response), "second");
    lines.close();
    EXPECT_EQ(co_await read_piece(response), "");
    co_return {};
  });
  EXPECT_TRUE(result_) << result_.error();
  EXPECT_EQ(first_, "first");
}

// The client reads nothing for a while, so the server must stop to read.
TEST_P(DuplexTest, AClientThatDoesNotReadStopsTheReads) {
  serve();
  constexpr std::size_t count = 32 * 16;
  const std::string piece(64 * 1024, 'p');
  std::size_t received = 0;
  run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
    auto write = [&piece](BodySink& sink) -> Task<Result<>> {
      for (std::size_t sent = 0; sent < count; ++sent) WEIR_CO_TRY(co_await sink.write(piece));
      co_return {};
    };
    auto post = post_of("/echo", std::move(write), count * piece.size());
    WEIR_CO_TRY(auto response, co_await client.send(scope, std::move(post)));
    WEIR_CO_TRY(co_await sleep(3s));
    EXPECT_LT(seen_.bytes, 16 * mebibyte);
    while (received < count * piece.size()) {
      WEIR_CO_TRY(const Bytes next, co_await response.read());
      if (next.empty()) break;
      received += next.size();
    }
    co_return {};
  });
  EXPECT_TRUE(result_) << result_.error();
  EXPECT_EQ(received, count * piece.size());
  EXPECT_TRUE(seen_.ended) << testing::PrintToString(seen_);
}

// The minimum rate of uploads does not apply, since the client may wait for the server.
TEST_P(DuplexTest, AReadWaitsForItsTimeout) {
  serve();
  for (const auto& [path, pause, fails] :
       {std::tuple{"/echo", Duration(50s), false}, std::tuple{"/echo", Duration(61s), true},
        std::tuple{"/patient", Duration(110s), false}}) {
    SCOPED_TRACE(pause);
    seen_ = {};
    Channel<std::string> lines(1);
    run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
      WEIR_CO_TRY(co_await lines.send("begin\n"));
      WEIR_CO_TRY(auto response, co_await client.send(scope, post_of(path, lines)));
      EXPECT_EQ(co_await read_piece(response), "begin\n");
      auto reading = timeout(pause, response.read());
      std::ignore = co_await std::move(reading);
      lines.close();
      co_return {};
    });
    const auto expected = fails ? make_error_code(ParseError::body_timed_out) : std::error_code();
    EXPECT_EQ(seen_.read_error, expected);
  }
}

TEST_P(DuplexTest, AnUnreadRestDoesNotDisturbTheNextRequest) {
  serve();
  for (const std::size_t size : {1000U, 100'000U}) {
    run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
      for (int round = 0; round < 2; ++round) {
        auto write = [size](BodySink& sink) -> Task<Result<>> {
          const std::string piece(size, 'p');
          co_return co_await sink.write(piece);
        };
        auto post = post_of("/unread", std::move(write), size);
        WEIR_CO_TRY(auto response, co_await client.send(scope, std::move(post)));
        EXPECT_EQ(response.status(), Status::ok);
        EXPECT_EQ(co_await read_piece(response), "abc");
        EXPECT_EQ(co_await read_piece(response), "");
      }
      co_return {};
    });
    EXPECT_TRUE(result_) << result_.error();
  }
}

TEST_P(DuplexTest, AClientThatLeavesCancelsTheFunction) {
  serve();
  Channel<std::string> lines(1);
  run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
    WEIR_CO_TRY(co_await lines.send("begin\n"));
    WEIR_CO_TRY(auto response, co_await client.send(scope, post_of("/echo", lines)));
    EXPECT_EQ(co_await read_piece(response), "begin\n");
    scope.cancel();
    co_return {};
  });
  pass(1s);
  EXPECT_FALSE(seen_.ended);
  EXPECT_TRUE(seen_.read_error) << testing::PrintToString(seen_);
}

/// HTTP/1 as bytes.
class Duplex1Test : public HttpFixture, public testing::Test {
 protected:
  Duplex1Test() {
    routes_.post("/echo",
                 [this](Request& request) { return duplex(request, text_type, echo, &seen_); });
    serve();
  }
  void TearDown() override { shut_down(); }

  Seen seen_;
};

TEST_F(Duplex1Test, OldClientsGetABodyThatEndsWithTheConnection) {
  MemoryPeer& peer = connect();
  peer.send("POST /echo HTTP/1.0\r\nHost: a\r\nContent-Length: 6\r\n\r\n");
  settle();
  EXPECT_TRUE(peer.received().contains("\r\n\r\n")) << peer.received();
  peer.send("abc");
  settle();
  EXPECT_TRUE(peer.received().ends_with("\r\n\r\nabc")) << peer.received();
  EXPECT_FALSE(peer.ended());
  peer.send("def");
  settle();
  EXPECT_TRUE(peer.received().ends_with("\r\n\r\nabcdef")) << peer.received();
  EXPECT_TRUE(peer.ended());
}

TEST_F(Duplex1Test, ContinueComesBeforeTheHead) {
  MemoryPeer& peer = connect();
  peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  settle();
  EXPECT_TRUE(peer.received().starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"))
      << peer.received();
  peer.send("abc");
  settle();
  EXPECT_TRUE(peer.received().ends_with("3\r\nabc\r\n0\r\n\r\n")) << peer.received();
}

TEST_F(Duplex1Test, AMalformedBodyIsAnErrorOfTheFunction) {
  MemoryPeer& late = connect();
  late.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  settle();
  late.send("xyz\r\n");
  settle();
  EXPECT_TRUE(late.received().ends_with("1\r\na\r\n")) << "no end";
  EXPECT_TRUE(late.ended());
  EXPECT_EQ(seen_.read_error.category(), parse_error_category());
  MemoryPeer& early = connect();
  early.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
  settle();
  EXPECT_TRUE(early.received().starts_with("HTTP/1.1 400 ")) << early.received();
}

TEST_F(Duplex1Test, ConnectionStaysOpenBehindIt) {
  MemoryPeer& peer = connect();
  constexpr std::string_view post =
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  peer.send(std::string(post) + std::string(post));
  settle();
  EXPECT_EQ(sim::statuses_of(sim::parse_http_responses(peer.received())), "200 200");
  EXPECT_FALSE(peer.ended());
}

}  // namespace
}  // namespace weir::http::duplex_test

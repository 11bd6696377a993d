// Tests of a reverse proxy that passes a request and its response on at the same time, and interim
// responses, with the protocols of both sides as parameter.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/http/test/client_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/timeout.hpp"
#include "weir/web/encoding/decompress_requests.hpp"
#include "weir/web/test/proxy_fixture.hpp"

namespace weir::http::reverse_proxy_duplex_test {
namespace {

struct Protocols {
  const char* name;
  bool client_http2;
  bool upstream_http2;
  friend void PrintTo(const Protocols& of, std::ostream* out) { *out << of.name; }
};

/// What the function of the upstream has seen.
struct Seen {
  std::size_t bytes = 0;
  bool ended = false;
  std::error_code error;
};

Task<Result<>> echo(Request& request, BodySink& sink, Seen* seen) {
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) {
      seen->error = piece.error();
      co_return fail(piece.error());
    }
    if (piece->empty()) break;
    seen->bytes += piece->size();
    const auto sent = co_await sink.write(*piece);
    if (!sent) {
      seen->error = sent.error();
      co_return sent;
    }
  }
  for (const HeaderField trailer : request.trailers()) {
    std::ignore = sink.add_trailer(trailer.name, trailer.value);
  }
  seen->ended = true;
  co_return {};
}

Task<Result<>> answer_early(Request&, BodySink& sink) {
  co_return co_await sink.write("early");
}

class ProxyDuplexTest : public ProxyFixture, public testing::WithParamInterface<Protocols> {
 protected:
  using Talk = std::function<Task<Result<>>(Scope&, Client&)>;

  ProxyDuplexTest() {
    plain_http2_ = PlainHttp2::prior_knowledge;
    body_max_ = std::uint64_t{1} << 30;
    const RouteOptions large{.body_max = body_max_};
    inner_.post(
        "/echo",
        [this](Request& request) {
          return duplex(request, text_type, {.read_timeout = 10min}, echo, &seen_);
        },
        large);
    inner_.post(
        "/early", [](Request& request) { return duplex(request, text_type, answer_early); }, large);
    inner_.post("/hints", [](Request& request) -> Task<Response> {
      Headers headers;
      std::ignore = headers.add("Link", "</a.css>; rel=preload");
      std::ignore = headers.add("X-Forwarded-Proto", "https");
      EXPECT_TRUE(co_await request.send_interim(Status::early_hints, headers));
      EXPECT_TRUE(co_await request.send_interim(Status(102)));
      const auto body = co_await request.body();
      co_return text(body ? *body : body.error().message());
    });
  }

  /// Runs `talk` with a client of the proxy and a scope for the tasks that send its requests.
  void run_with(Talk talk, ReverseProxyOptions options = {}) {
    options.client.plain_http2 = GetParam().upstream_http2;
    const auto protocol = GetParam().upstream_http2 ? PlainHttp2::prior_knowledge : PlainHttp2::off;
    const auto use = [&](Client&) -> Task<> {
      ClientOptions of_client;
      of_client.plain_http2 = GetParam().client_http2;
      of_client.limits.body_timeout = 10min;
      Client client(std::move(of_client));
      const auto body = [&](Scope& scope) { return talk(scope, client); };
      auto talking = with_scope(body);
      result_ = co_await std::move(talking);
    };
    with_inner_server(inner_, std::move(options), use, protocol);
  }
  static ClientRequest post_of(std::string_view path, StreamFunction write) {
    ClientRequest post(Method::post, "http://127.0.0.1" + std::string(path));
    post.set_body("text/plain", http::Body(std::move(write)));
    return post;
  }
  /// Makes a request whose body is what the channel brings, until it is closed.
  static ClientRequest post_of(std::string_view path, Channel<std::string>& lines) {
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

  Router inner_;
  Seen seen_;
  Result<> result_;
};

INSTANTIATE_TEST_SUITE_P(Between, ProxyDuplexTest,
                         testing::Values(Protocols{"http1_and_http1", false, false},
                                         Protocols{"http1_and_http2", false, true},
                                         Protocols{"http2_and_http1", true, false},
                                         Protocols{"http2_and_http2", true, true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ProxyDuplexTest, EachLineIsAnsweredBeforeTheNextIsSent) {
  Channel<std::string> lines(1);
  run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
    WEIR_CO_TRY(auto response, co_await client.send(scope, post_of("/echo", lines)));
    EXPECT_EQ(response.status(), Status::ok);
    for (const std::string line : {"one\n", "two\n", "three\n"}) {
      WEIR_CO_TRY(co_await lines.send(line));
      EXPECT_EQ(co_await read_piece(response), line);
    }
    lines.close();
    EXPECT_EQ(co_await read_piece(response), "");
    EXPECT_EQ(response.trailers().get("checksum"), "1234");
    co_return {};
  });
  EXPECT_TRUE(result_) << result_.error();
  EXPECT_TRUE(seen_.ended);
  EXPECT_TRUE(platform_.logged().empty());
}

// Longer than the minimum rate of uploads allows, and shorter than the limits of both clients.
TEST_P(ProxyDuplexTest, BothSidesMayRest) {
  Channel<std::string> lines(1);
  ReverseProxyOptions options;
  options.client.limits.body_timeout = 2min;
  run_with(
      [&](Scope& scope, Client& client) -> Task<Result<>> {
        WEIR_CO_TRY(auto response, co_await client.send(scope, post_of("/echo", lines)));
        for (const std::string line : {"one\n", "two\n"}) {
          WEIR_CO_TRY(co_await lines.send(line));
          EXPECT_EQ(co_await read_piece(response), line);
          WEIR_CO_TRY(co_await sleep(100s));
        }
        lines.close();
        EXPECT_EQ(co_await read_piece(response), "");
        co_return {};
      },
      std::move(options));
  EXPECT_TRUE(result_) << result_.error();
  EXPECT_TRUE(seen_.ended) << seen_.error;
}

TEST_P(ProxyDuplexTest, ASilentClientEndsTheRequest) {
  Channel<std::string> lines(1);
  ReverseProxyOptions options;
  options.client.limits.body_timeout = 20s;
  run_with(
      [&](Scope& scope, Client& client) -> Task<Result<>> {
        WEIR_CO_TRY(co_await lines.send("one\n"));
        WEIR_CO_TRY(auto response, co_await client.send(scope, post_of("/echo", lines)));
        EXPECT_EQ(co_await read_piece(response), "one\n");
        const Instant start = loop_->now();
        const auto cut = co_await response.read();
        EXPECT_FALSE(cut);
        EXPECT_LE(loop_->now() - start, 40s);
        lines.close();
        co_return {};
      },
      std::move(options));
  EXPECT_FALSE(seen_.ended);
}

// Neither side has room for all of it.
TEST_P(ProxyDuplexTest, BackPressureGoesThroughTheProxy) {
  constexpr std::size_t count = 64 * 16;
  const std::string piece(64 * 1024, 'p');
  std::size_t received = 0;
  run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
    auto write = [&piece](BodySink& sink) -> Task<Result<>> {
      for (std::size_t sent = 0; sent < count; ++sent) WEIR_CO_TRY(co_await sink.write(piece));
      co_return {};
    };
    WEIR_CO_TRY(auto response, co_await client.send(scope, post_of("/echo", std::move(write))));
    WEIR_CO_TRY(co_await sleep(3s));
    EXPECT_LT(seen_.bytes, count * piece.size() / 2);
    for (;;) {
      WEIR_CO_TRY(const Bytes next, co_await response.read());
      if (next.empty()) break;
      received += next.size();
    }
    co_return {};
  });
  EXPECT_TRUE(result_) << result_.error();
  EXPECT_EQ(received, count * piece.size());
}

TEST_P(ProxyDuplexTest, AClientThatLeavesEndsTheRequestOfTheUpstream) {
  Channel<std::string> lines(1);
  run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
    WEIR_CO_TRY(co_await lines.send("one\n"));
    WEIR_CO_TRY(auto response, co_await client.send(scope, post_of("/echo", lines)));
    EXPECT_EQ(co_await read_piece(response), "one\n");
    scope.cancel();
    co_return {};
  });
  EXPECT_FALSE(seen_.ended);
  EXPECT_TRUE(seen_.error);
}

TEST_P(ProxyDuplexTest, AResponseMayEndBeforeTheRequest) {
  Channel<std::string> lines(1);
  run_with([&](Scope& scope, Client& client) -> Task<Result<>> {
    WEIR_CO_TRY(co_await lines.send("one\n"));
    WEIR_CO_TRY(auto response, co_await client.send(scope, post_of("/early", lines)));
    EXPECT_EQ(co_await read_piece(response), "early");
    EXPECT_EQ(co_await read_piece(response), "");
    lines.close();
    co_return {};
  });
  EXPECT_TRUE(result_) << result_.error();
}

TEST_P(ProxyDuplexTest, InterimResponsesArePassedOn) {
  std::vector<std::string> seen;
  run_with([&](Scope&, Client& client) -> Task<Result<>> {
    ClientRequest request(Method::post, "http://127.0.0.1/hints");
    request.set_body("text/plain", http::Body(std::string_view("ok")));
    request.on_interim([&](const InterimResponse& interim) -> Task<> {
      std::string text = std::to_string(code_of(interim.status()));
      text.append(" ").append(interim.header("link").value_or("-"));
      text.append(" ").append(interim.header("x-forwarded-proto").value_or("-"));
      seen.push_back(std::move(text));
      co_return;
    });
    WEIR_CO_TRY(auto response, co_await client.send(std::move(request)));
    WEIR_CO_TRY(const std::string body, co_await response.body());
    EXPECT_EQ(body, "ok");
    co_return {};
  });
  EXPECT_TRUE(result_) << result_.error();
  EXPECT_EQ(seen, (std::vector<std::string>{"103 </a.css>; rel=preload -", "102 - -"}));
}

}  // namespace
}  // namespace weir::http::reverse_proxy_duplex_test

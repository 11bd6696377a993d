// Tests of a reverse proxy whose upstreams speak HTTP/2 and follow scripts: requests that they do
// not process, and responses whose streams end late.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/http/test/h2_server_fixture.hpp"
#include "weir/web/test/proxy_fixture.hpp"

namespace weir::http::reverse_proxy_http2_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view post =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
    "Connection: close\r\n\r\nbody";
constexpr std::string_view chunked_post =
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
    "Connection: close\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 7\r\n\r\n";

class ProxyHttp2Test : public ProxyFixture {
 protected:
  using Script = std::function<Task<>(H2Peer&)>;
  using Use = std::function<Task<>()>;

  /// Runs `use` with a proxy whose upstream is at port 85. Each of its connections follows a
  /// script.
  void with_scripts(std::vector<Script> scripts, ReverseProxyOptions options, const Use& use) {
    scripts_ = std::move(scripts);
    accepted_ = 0;
    upstreams_ = {"http://127.0.0.1:85"};
    options.client.plain_http2 = true;
    with_proxy({}, std::move(options), [&](Client&) -> Task<> {
      const auto body = [&](Scope& scope) -> Task<> {
        auto listener = co_await tcp::listen(Endpoint::loopback(85));
        EXPECT_TRUE(listener);
        if (!listener) co_return;
        scope.spawn(accept(scope, std::move(*listener)));
        co_await use();
        scope.cancel();
      };
      std::ignore = co_await with_scope(OnFailure::isolate, body);
    });
  }
  /// Returns the answer of the proxy to the request, and the time that it took.
  std::string answer_to(std::vector<Script> scripts, std::string_view request,
                        ReverseProxyOptions options = {}) {
    std::string answer;
    with_scripts(std::move(scripts), std::move(options), [&]() -> Task<> {
      const Instant start = loop_->now();
      answer = co_await talk_to_proxy(std::string(request));
      took_ = loop_->now() - start;
    });
    return answer;
  }
  static std::string statuses_in(const std::string& answer) {
    return sim::statuses_of(sim::parse_http_responses(answer));
  }
  /// Waits for a line of the first stream, sends frames, and waits until the proxy leaves.
  static Script send_after(std::string line, std::string bytes) {
    return [line, bytes](H2Peer& peer) -> Task<> {
      if (!co_await peer.receive(line)) co_return;
      co_await peer.send(bytes);
      co_await peer.end();
    };
  }

  std::size_t accepted_ = 0;
  Duration took_{};

 private:
  Task<> accept(Scope& scope, tcp::Listener listener) {
    for (;;) {
      auto stream = co_await listener.accept();
      if (!stream) co_return;
      const std::size_t number = accepted_++;
      if (number < scripts_.size()) scope.spawn(follow(number, AnyStream(std::move(*stream))));
    }
  }
  Task<> follow(std::size_t number, AnyStream stream) {
    H2Peer peer(std::move(stream));
    co_await peer.send(frames::settings() + frames::frame(FrameType::settings, FrameFlag::ack, 0));
    co_await scripts_[number](peer);
  }

  std::vector<Script> scripts_;
};

const std::string refused = frames::rst_stream(1, H2Error::refused_stream);

TEST_F(ProxyHttp2Test, RepeatsAPostThatTheUpstreamHasNotProcessed) {
  for (const std::string_view request : {post, chunked_post}) {
    const bool has_trailers = request == chunked_post;
    const std::string line = has_trailers ? "data 1 body\nhead 1 x-sum=7 end" : "data 1 body";
    const Script ignore = send_after(line, frames::goaway(0));
    const Script take = send_after(line, frames::answer_text(1, "taken"));
    const std::string moved = answer_to({ignore, take}, request);
    EXPECT_EQ(statuses_in(moved), "200") << moved;
    EXPECT_TRUE(moved.contains("taken")) << moved;
    EXPECT_EQ(accepted_, 2U);
    const Script refuse = [line](H2Peer& peer) -> Task<> {
      if (!co_await peer.receive(line)) co_return;
      co_await peer.send(refused);
      std::string next = line;
      for (std::size_t at = 0; (at = next.find(" 1", at)) != next.npos;) next[at + 1] = '3';
      if (!co_await peer.receive(next)) co_return;
      co_await peer.send(frames::answer_text(3, "taken"));
      co_await peer.end();
    };
    EXPECT_EQ(statuses_in(answer_to({refuse}, request)), "200");
    EXPECT_EQ(accepted_, 1U);
  }
  EXPECT_EQ(failures(), 0U);
}

TEST_F(ProxyHttp2Test, AHeadThatTheUpstreamDoesNotTakeIsNoFailureOfIt) {
  const Script serve = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("head 1 ")) co_return;
    co_await peer.send(frames::settings(frames::setting(SettingId::max_header_list_size, 1000)) +
                       frames::answer_text(1, "taken"));
    co_await peer.end();
  };
  std::string answer;
  with_scripts({serve}, {}, [&]() -> Task<> {
    const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    answer = co_await talk_to_proxy(head + "\r\n");
    answer += co_await talk_to_proxy(head + "X: " + std::string(2'000, 'x') + "\r\n\r\n");
  });
  EXPECT_EQ(statuses_in(answer), "200 431") << answer;
  EXPECT_EQ(failures(), 0U);
}

TEST_F(ProxyHttp2Test, RepeatsAnUploadThatTheClientStillSends) {
  const Script ignore = send_after("data 1 bo", frames::goaway(0));
  const Script take = [](H2Peer& peer) -> Task<> {
    if (!co_await peer.receive("data 1 bo\n")) co_return;
    if (!co_await peer.receive("data 1 dy\n")) co_return;
    co_await peer.send(frames::answer_text(1, "taken"));
    co_await peer.end();
  };
  with_scripts({ignore, take}, {}, [&]() -> Task<> {
    MemoryPeer& peer = connect();
    EXPECT_GT(peer.send(post.substr(0, post.size() - 2)), 0U);
    std::ignore = co_await sleep(1s);
    EXPECT_EQ(accepted_, 2U);
    EXPECT_EQ(peer.send(post.substr(post.size() - 2)), 2U);
    std::ignore = co_await sleep(1s);
    const std::string answer = peer.received();
    EXPECT_EQ(statuses_in(answer), "200") << answer;
    peer.close();
  });
  EXPECT_EQ(failures(), 0U);
}

TEST_F(ProxyHttp2Test, CannotRepeatMoreThanItKeeps) {
  ReverseProxyOptions options;
  options.short_body_max = 3;
  const Script take = send_after("head 1", frames::answer_text(1, "again"));
  const std::string answer = answer_to({send_after("data 1 body", refused), take}, post, options);
  EXPECT_EQ(statuses_in(answer), "503") << answer;
  EXPECT_TRUE(answer.contains("\r\nRetry-After: 1\r\n")) << answer;
  EXPECT_EQ(accepted_, 1U);
  EXPECT_EQ(failures(), 0U);
  options.short_body_max = 4;
  EXPECT_EQ(
      statuses_in(answer_to({send_after("data 1 body", frames::goaway(0)), take}, post, options)),
      "200");
}

TEST_F(ProxyHttp2Test, RepeatsOnlyAsOftenAsItMay) {
  std::vector<Script> ignoring(5, send_after("data 1 body", frames::goaway(0)));
  const std::string answer = answer_to(ignoring, post);
  EXPECT_EQ(statuses_in(answer), "503");
  EXPECT_TRUE(answer.contains("\r\nRetry-After: 1\r\n")) << answer;
  EXPECT_EQ(accepted_, ReverseProxyOptions().attempts_max);
  const std::string bare = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  ignoring.assign(5, send_after("head 1", frames::goaway(0)));
  EXPECT_EQ(statuses_in(answer_to(ignoring, bare)), "503");
  EXPECT_EQ(accepted_, 4U) << "the client has repeated it itself";
  EXPECT_EQ(failures(), 0U);
}

TEST_F(ProxyHttp2Test, NeverRepeatsAPostThatMayHaveBeenProcessed) {
  const std::string begun = frames::answer(1, "103", FrameFlag::end_headers);
  for (const auto& [bytes, statuses] : {std::pair{begun + refused, "103 502"},
                                        {frames::rst_stream(1, H2Error::internal_error), "502"},
                                        {frames::goaway(1), "502"}}) {
    const Script end = [bytes](H2Peer& peer) -> Task<> {
      if (!co_await peer.receive("data 1 body")) co_return;
      co_await peer.send(bytes);
      std::ignore = co_await sleep(1s);
    };
    EXPECT_EQ(statuses_in(answer_to({end, end}, post)), statuses);
    EXPECT_EQ(accepted_, 1U);
  }
  EXPECT_EQ(failures(), 3U);
}

// Responses whose streams end late.

std::string head_of(std::string_view length, HeaderField more = {"x-more", "1"}) {
  return frames::headers(
      1, frames::block({{":status", "200"}, {"content-length", length}, {more.name, more.value}}),
      FrameFlag::end_headers);
}

TEST_F(ProxyHttp2Test, PassesOnAWholeBodyBeforeItsStreamEnds) {
  for (const std::size_t length : {0U, 4U, 16'000U, 40'000U}) {
    std::string bytes = head_of(std::to_string(length));
    for (std::size_t left = length; left != 0;) {
      const std::size_t part = std::min<std::size_t>(left, 10'000);
      bytes += frames::data(1, std::string(part, 'x'));
      left -= part;
    }
    const std::string answer = answer_to({send_after("head 1", bytes)}, get("/"));
    EXPECT_EQ(statuses_in(answer), "200");
    EXPECT_TRUE(answer.ends_with("\r\n\r\n" + std::string(length, 'x'))) << length;
    EXPECT_LT(took_, 1s) << length;
  }
  EXPECT_EQ(failures(), 0U);
}

TEST_F(ProxyHttp2Test, WaitsForTrailersThatAreAnnounced) {
  for (const HeaderField announced :
       {HeaderField{"trailer", "x-sum"}, HeaderField{"content-type", "application/grpc+proto"}}) {
    const Script late = [announced](H2Peer& peer) -> Task<> {
      if (!co_await peer.receive("head 1")) co_return;
      co_await peer.send(head_of("4", announced) + frames::data(1, "body"));
      std::ignore = co_await sleep(2s);
      const std::string trailers = frames::headers(1, frames::block({{"x-sum", "7"}}));
      co_await peer.send(trailers);
      co_await peer.end();
    };
    const std::string answer = answer_to({late}, get("/"));
    EXPECT_TRUE(answer.ends_with("\r\n4\r\nbody\r\n0\r\nx-sum: 7\r\n\r\n")) << answer;
  }
}

TEST_F(ProxyHttp2Test, TrailersThatNeverComeCostNoBody) {
  ReverseProxyOptions options;
  options.client.limits.body_timeout = 3s;
  const std::string bytes = head_of("4", {"trailer", "x-sum"}) + frames::data(1, "body");
  for (const std::string& end : {std::string(), frames::rst_stream(1, H2Error::internal_error)}) {
    const std::string answer = answer_to({send_after("head 1", bytes + end)}, get("/"), options);
    EXPECT_EQ(statuses_in(answer), "200") << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\nbody")) << answer;
  }
}

}  // namespace
}  // namespace weir::http::reverse_proxy_http2_test

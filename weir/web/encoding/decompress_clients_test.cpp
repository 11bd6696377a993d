// Tests that slow clients of decompress_requests() do not keep others out.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/compression/test/contents_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"
#include "weir/web/encoding/decompress_requests.hpp"
#include "weir/web/middleware/trusted_proxies.hpp"

namespace weir::http::decompress_clients_test {
namespace {

using namespace std::chrono_literals;
using compression::Coding;

class DecompressClients : public HttpTest {
 protected:
  void SetUp() override {
    if (!compression::is_available(Coding::gzip)) GTEST_SKIP() << "the build is without zlib";
    routes_.use<ClientAddress>(trusted_proxies({.proxies = {"127.0.0.1"}}));
    routes_.use(decompress_requests({.concurrency_max = 8, .waiting_max = 24}));
    routes_.post("/echo", [](Request& request) -> Task<Response> {
      auto body = co_await request.body();
      if (!body) co_return Response(to_status(body.error()));
      co_return text(std::move(*body));
    });
    routes_.post("/patient", [](Request& request) -> Task<Response> {
      std::string all;
      for (;;) {
        const auto piece = co_await timeout(100ms, request.read());
        if (!piece && piece.error() == Errc::timed_out) continue;
        if (!piece) co_return Response(to_status(piece.error()));
        if (piece->empty()) co_return text(std::move(all));
        all += to_text(*piece);
      }
    });
    routes_.post("/waits", [this](Request& request) -> Task<Response> {
      const auto body = co_await request.body_view();
      if (!body) co_return Response(to_status(body.error()));
      std::ignore = co_await finish_.wait();
      co_return text(std::to_string(body->size()));
    });
    serve();
  }
  ManualResetEvent finish_;
  static std::string head(std::size_t length, const std::string& path = "/echo",
                          const std::string& address = "192.0.2.1") {
    return "POST " + path + " HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: " + address +
           "\r\nContent-Encoding: gzip\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
  }
  std::string ask(const std::string& address = "192.0.2.1") {
    const std::string body = compression::compressed(Coding::gzip, "milk");
    return talk(connect(), head(body.size(), "/echo", address) + body);
  }
  /// Sends one byte of a body over each of many connections.
  std::vector<MemoryPeer*> begin_uploads(std::size_t count, const std::string& network) {
    std::vector<MemoryPeer*> begun;
    for (std::size_t index = 0; index < count; ++index) {
      begun.push_back(&connect());
      talk(*begun.back(), head(100, "/echo", network + std::to_string(index)) + "\x1f");
    }
    return begun;
  }
};

// Bodies that handlers keep are bounded like decompressors.
TEST_F(DecompressClients, WhoseLargeBodiesAreKeptHoldTheirSlots) {
  const auto send_many = [this](std::size_t size, const std::string& network) {
    const std::string body = compression::compressed(Coding::gzip, std::string(size, 'x'));
    std::vector<MemoryPeer*> sent;
    for (int count = 0; count < 12; ++count) {
      sent.push_back(&connect());
      talk(*sent.back(), head(body.size(), "/waits", network + std::to_string(count)) + body);
    }
    return sent;
  };
  const auto answered = [](const std::vector<MemoryPeer*>& peers, std::string_view end) {
    return std::ranges::count_if(
        peers, [end](MemoryPeer* each) { return each->received().ends_with(end); });
  };
  const auto small = send_many(10'000, "192.0.2.");
  EXPECT_EQ(ask("198.51.100.1").substr(9, 3), "200") << "small bodies hold no slots";
  finish_.set();
  settle();
  EXPECT_EQ(answered(small, "10000"), 12);
  finish_.reset();
  const auto large = send_many(100'000, "192.0.2.");
  MemoryPeer& late = connect();
  const std::string body = compression::compressed(Coding::gzip, "milk");
  EXPECT_EQ(talk(late, head(body.size(), "/echo", "203.0.113.1") + body), "") << "it waits";
  finish_.set();
  settle();
  EXPECT_TRUE(late.received().ends_with("milk"));
  EXPECT_EQ(answered(large, "100000"), 12);
}

TEST_F(DecompressClients, ThatSendNothingHoldNothing) {
  for (int count = 0; count < 160; ++count) talk(connect(), head(100));
  EXPECT_TRUE(ask().ends_with("milk"));
}

TEST_F(DecompressClients, ThatFallSilentGiveWayToOthers) {
  const std::string body = compression::compressed(Coding::gzip, "milk");
  std::vector<MemoryPeer*> silent;
  for (int count = 0; count < 20; ++count) {
    silent.push_back(&connect());
    talk(*silent.back(), head(body.size()) + body.substr(0, 1));
  }
  const std::string request = head(body.size()) + body;
  MemoryPeer& other = connect();
  EXPECT_EQ(talk(other, request), "") << "it waits for one that is silent";
  pass(2500ms);
  EXPECT_TRUE(other.take().ends_with("milk"));
  EXPECT_TRUE(silent.front()->received().starts_with("HTTP/1.1 408"));
}

TEST_F(DecompressClients, LoseNothingByAReadThatIsCancelledInTheQueue) {
  const std::string body = compression::compressed(Coding::gzip, "milk");
  for (int count = 0; count < 20; ++count) talk(connect(), head(body.size()) + body.substr(0, 1));
  MemoryPeer& other = connect();
  EXPECT_EQ(talk(other, head(body.size(), "/patient") + body), "");
  pass(2500ms);
  EXPECT_TRUE(other.take().ends_with("milk"));
}

TEST_F(DecompressClients, OneNetworkWithManyConnectionsLeavesDecompressorsForOthers) {
  EXPECT_TRUE(ask("192.0.2.9").ends_with("milk"));
  begin_uploads(20, "2001:db8::");
  EXPECT_TRUE(ask("192.0.2.9").ends_with("milk"));
  EXPECT_TRUE(ask("2001:db8:0:1::1").ends_with("milk")) << "the next network";
  EXPECT_EQ(ask("2001:db8::ffff"), "") << "it waits with its network";
}

TEST_F(DecompressClients, TheNetworkThatFillsTheQueueGivesWay) {
  const auto first = begin_uploads(8 + 24, "2001:db8::");
  MemoryPeer& other = connect();
  const std::string body = compression::compressed(Coding::gzip, "milk");
  EXPECT_EQ(talk(other, head(body.size(), "/echo", "192.0.2.9") + body), "");
  EXPECT_TRUE(first.back()->received().starts_with("HTTP/1.1 503")) << "its newest wait";
  const auto more = begin_uploads(100, "2001:db8::");
  for (MemoryPeer* const each : more) EXPECT_TRUE(each->received().starts_with("HTTP/1.1 503"));
  pass(2500ms);
  EXPECT_TRUE(other.take().ends_with("milk"));
}

}  // namespace
}  // namespace weir::http::decompress_clients_test

// Tests that slow clients of decompress_requests() do not keep others out.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/compression/test/contents_fixture.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/timeout.hpp"
#include "weir/web/encoding/decompress_requests.hpp"

namespace weir::http::decompress_clients_test {
namespace {

using namespace std::chrono_literals;
using compression::Coding;

class DecompressClients : public HttpTest {
 protected:
  void SetUp() override {
    if (!compression::is_available(Coding::gzip)) GTEST_SKIP() << "the build is without zlib";
    routes_.use(decompress_requests({.concurrency_max = 8}));
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
    serve();
  }
  static std::string head(std::size_t length, const std::string& path = "/echo") {
    return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: " +
           std::to_string(length) + "\r\n\r\n";
  }
  std::string ask() {
    const std::string body = compression::compressed(Coding::gzip, "milk");
    return talk(connect(), head(body.size()) + body);
  }
};

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

}  // namespace
}  // namespace weir::http::decompress_clients_test

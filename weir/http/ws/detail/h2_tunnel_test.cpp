// Tests of the stream over a stream of HTTP/2: which bytes count as sent.
#include "weir/http/ws/detail/h2_tunnel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "weir/net/test/net_fixture.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::h2_tunnel_test {
namespace {

using namespace std::chrono_literals;

/// A stream of HTTP/2 whose windows allow some bytes.
class Carrier final : public H2TunnelCarrier {
 public:
  Carrier(Loop& loop, std::size_t window) noexcept : loop_(loop), window_(window) {}

  void lose() { end_send(system_error(ECONNRESET)); }
  std::size_t taken() const noexcept { return taken_; }

  Result<> finish_writing() override { return {}; }
  void close_tunnel() noexcept override {}
  Loop& loop() const noexcept override { return loop_; }
  os::Address peer_address() const override { return {}; }
  const TlsInfo* tls() const noexcept override { return nullptr; }

 private:
  bool has_input() const noexcept override { return false; }
  Buffer take_input() override { return {}; }
  std::error_code input_error() const noexcept override { return {}; }
  bool is_gone() const noexcept override { return false; }
  bool may_send() const noexcept override { return true; }
  bool send_piece_now(Bytes piece) override {
    const std::size_t now = std::min(piece.size(), window_ - taken_);
    taken_ += now;
    count_sent(now);
    return now == piece.size();
  }
  void drop_piece() noexcept override {}

  Loop& loop_;
  std::size_t window_;
  std::size_t taken_ = 0;
};

TEST(H2TunnelTest, ByteThatTheStreamHasTakenCountsAsSent) {
  MemoryPlatform platform;
  const std::unique_ptr<Loop> loop = Loop::make(platform, {}).value();
  const auto talk = [&]() -> Task<> {
    for (const std::size_t window : {std::size_t{0}, std::size_t{4'002}}) {
      Carrier carrier(*loop, window);
      H2Tunnel tunnel(carrier);
      const std::string text(30'000, 'x');
      const auto write = [&]() -> Task<std::pair<std::size_t, std::error_code>> {
        co_return co_await CountedWrite(tunnel, text);
      };
      const auto lose = [&]() -> Task<> {
        std::ignore = co_await sleep(1ms);
        carrier.lose();
      };
      auto writing = write();
      auto losing = lose();
      const auto both = co_await all(std::move(writing), std::move(losing));
      const auto& [sent, error] = std::get<0>(both.value());
      EXPECT_EQ(error, system_error(ECONNRESET));
      EXPECT_EQ(sent, window);
      EXPECT_EQ(sent, carrier.taken());
    }
  };
  weir::run(*loop, talk());
}

}  // namespace
}  // namespace weir::http::h2_tunnel_test

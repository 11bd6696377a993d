// Tests of the ends of streams: what a peer sees of a close, and which bytes count as sent.
#include "weir/loop/contract/detail/close_mode.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "weir/net/any_stream.hpp"
#include "weir/net/proxy_protocol.hpp"
#include "weir/net/test/net_fixture.hpp"
#include "weir/task/combinators.hpp"

namespace weir::close_mode_test {
namespace {

class CloseModeTest : public NetTest {
 protected:
  /// Returns the end of the stream that the peer sees after a close in `mode`.
  Task<std::error_code> end_of(CloseMode mode) {
    Pair pair = co_await connect_pair();
    EXPECT_TRUE(co_await pair.server.write("part"));
    EXPECT_EQ(co_await read_some(pair.client, 4), "part");
    EXPECT_TRUE(pair.server.set_close_mode(mode));
    pair.server.close();
    const auto rest = co_await read_to_end(pair.client);
    EXPECT_EQ(rest.first, "");
    co_return rest.second;
  }
};
INSTANTIATE_TEST_SUITE_P(On, CloseModeTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(CloseModeTest, ResetIsNoEndOfTheStream) {
  const auto talk = [this]() -> Task<> {
    EXPECT_EQ(co_await end_of(CloseMode::orderly), Errc::end_of_stream);
    EXPECT_EQ(co_await end_of(CloseMode::reset), system_error(ECONNRESET));
  };
  run(talk());
}

TEST_P(CloseModeTest, LastModeDecides) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_TRUE(pair.server.set_close_mode(CloseMode::reset));
    EXPECT_TRUE(co_await pair.server.write("whole"));
    EXPECT_TRUE(pair.server.set_close_mode(CloseMode::orderly));
    pair.server.close();
    const auto all = co_await read_to_end(pair.client);
    EXPECT_EQ(all.first, "whole");
    EXPECT_EQ(all.second, Errc::end_of_stream);
    const Result<> late = pair.server.set_close_mode(CloseMode::reset);
    EXPECT_TRUE(!late && late.error() == Errc::closed);
  };
  run(talk());
}

TEST_P(CloseModeTest, StreamOfAProxyPassesTheModeOn) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    EXPECT_TRUE(co_await pair.client.write("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"));
    const ProxyProtocol protocol({.proxies = {"127.0.0.1"}});
    AnyStream plain(std::move(pair.server));
    auto reading = protocol.read_header(std::move(plain));
    auto proxied = co_await std::move(reading);
    EXPECT_TRUE(proxied);
    if (!proxied) co_return;
    EXPECT_TRUE((*proxied)->set_close_mode(CloseMode::reset));
    (*proxied)->close();
    const auto end = co_await read_to_end(pair.client);
    EXPECT_EQ(end.second, system_error(ECONNRESET));
  };
  run(talk());
}

// A caller concludes from the count that a peer cannot have a byte, and sends it again elsewhere.
TEST_P(CloseModeTest, ByteThatThePeerHasCountsAsSent) {
  const auto talk = []() -> Task<> {
    Pair pair = co_await connect_pair();
    const std::string text(16 * 1024 * 1024, 'x');
    const auto read_a_part = [&pair]() -> Task<std::size_t> {
      const std::string part = co_await read_some(pair.server, 4'002);
      EXPECT_TRUE(pair.server.set_close_mode(CloseMode::reset));
      pair.server.close();
      co_return part.size();
    };
    auto reading = read_a_part();
    const auto write = [&]() -> Task<std::pair<std::size_t, std::error_code>> {
      co_return co_await CountedWrite(pair.client, text);
    };
    auto writing = write();
    const auto both = co_await all(std::move(reading), std::move(writing));
    const auto& [sent, error] = std::get<1>(both.value());
    EXPECT_TRUE(error);
    EXPECT_GE(sent, std::get<0>(both.value()));
    EXPECT_LT(sent, text.size());
  };
  run(talk());
}

}  // namespace
}  // namespace weir::close_mode_test

#include "weir/net/tcp.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/net/test/net_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/timeout.hpp"

namespace weir::tcp_test {
namespace {

using TcpTest = NetTest;
INSTANTIATE_TEST_SUITE_P(On, TcpTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(TcpTest, ConnectIsRefusedWithoutAListener) {
  const auto talk = [this]() -> Task<> {
    Endpoint address;
    {
      const tcp::Listener listener = co_await listen_locally();
      address = listener.local_address();
    }
    const auto stream = co_await tcp::connect(address);
    EXPECT_EQ(stream.error(), std::errc::connection_refused);
    const auto nowhere = co_await tcp::connect(Endpoint());
    EXPECT_FALSE(nowhere);
    EXPECT_EQ(ConnectionCounters::of(*loop_).open.value(), 0U);
  };
  run(talk());
}

TEST_P(TcpTest, CancelAbortsAConnect) {
  const auto talk = []() -> Task<> {
    // A full queue leaves new clients without an answer.
    const ListenOptions full{.backlog = 0};
    tcp::Listener listener = co_await listen_locally(full);
    std::vector<tcp::Stream> connected;
    Result<tcp::Stream> stream = fail(Errc::closed);
    for (int i = 0; i < 10; ++i) {
      stream = co_await timeout(20ms, tcp::connect(listener.local_address()));
      if (!stream) break;
      connected.push_back(std::move(*stream));
    }
    EXPECT_EQ(stream.error(), Errc::timed_out);
  };
  run(talk());
}

TEST_P(TcpTest, ConnectDoesNotBeginInACancelledTask) {
  CancelSource cancel;
  cancel.cancel();
  const auto connect = []() -> Task<std::error_code> {
    tcp::Listener listener = co_await listen_locally();
    co_return (co_await tcp::connect(listener.local_address())).error();
  };
  EXPECT_EQ(run(connect(), &cancel), Errc::cancelled);
}

TEST_P(TcpTest, SupportsIpv6) {
  const auto talk = []() -> Task<> {
    auto listener = co_await tcp::listen(Endpoint::parse("[::1]:0").value());
    if (!listener) co_return;  // no IPv6 on this machine
    auto both = co_await all(as_task(listener->accept()), tcp::connect(listener->local_address()));
    EXPECT_TRUE(both);
    EXPECT_TRUE(co_await std::get<0>(*both).write("six"));
    EXPECT_EQ(co_await read_some(std::get<1>(*both), 3), "six");
    EXPECT_EQ(std::get<0>(*both).local_address().family(), os::AddressFamily::ipv6);
  };
  run(talk());
}

TEST_P(TcpTest, ShowsIpv4ClientsOfAnIpv6ListenerAsIpv4) {
  const auto talk = []() -> Task<> {
    auto listener = co_await tcp::listen(Endpoint::any(0));
    if (!listener) co_return;  // no IPv6 on this machine
    const Endpoint address = Endpoint::loopback(listener->local_address().port());
    auto both = co_await all(as_task(listener->accept()), tcp::connect(address));
    EXPECT_TRUE(both);
    EXPECT_EQ(std::get<0>(*both).peer_address(), std::get<1>(*both).local_address());
    EXPECT_EQ(std::get<0>(*both).peer_address().family(), os::AddressFamily::ipv4);
  };
  run(talk());
}

TEST_P(TcpTest, HandlesManySequentialAndConcurrentConnections) {
  const auto serve = [](tcp::Stream stream) -> Task<> {
    while (auto bytes = co_await stream.read()) {
      if (!co_await stream.write(*bytes)) break;
    }
  };
  const auto ask = [](Endpoint server, int number) -> Task<Result<>> {
    WEIR_CO_TRY(auto stream, co_await tcp::connect(server));
    const std::string text = "number " + std::to_string(number);
    if (auto written = co_await stream.write(text); !written) co_return written;
    if (co_await read_some(stream, text.size()) != text) co_return fail(Errc::bad_input);
    co_return {};
  };
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    tcp::Listener listener = co_await listen_locally();
    scope.spawn([](tcp::Listener& from, Scope& peers, auto& handler) -> Task<> {
      while (auto stream = co_await from.accept()) peers.spawn(handler(std::move(*stream)));
    }(listener, scope, serve));
    std::vector<Task<Result<>>> clients;
    for (int i = 0; i < 200; ++i) clients.push_back(ask(listener.local_address(), i));
    WEIR_CO_TRY(co_await all(std::move(clients)));
    for (int i = 0; i < 50; ++i) {
      if (auto asked = co_await ask(listener.local_address(), i); !asked) co_return asked;
    }
    scope.cancel();
    co_await scope.children_finished();
    co_return {};
  };
  EXPECT_TRUE(run(with_scope(body)));
}

}  // namespace
}  // namespace weir::tcp_test

// Tests of listeners on sockets that other processes have open too. All clients are served, and a
// drain loses none.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/net/test/net_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::inherited_listener_test {
namespace {

class InheritedListenerTest : public NetTest {
 protected:
  using Sockets = std::vector<std::shared_ptr<loop::SharedListener>>;

  /// Opens listening sockets of one address, as another process does before the runtime starts.
  Sockets open(std::size_t count) {
    Sockets sockets;
    while (sockets.size() < count) {
      auto socket = platform_->listen(address_, {});
      EXPECT_TRUE(socket);
      address_ = platform_->local_address(socket->value()).value();
      sockets.push_back(
          std::make_shared<loop::SharedListener>(*platform_, std::move(*socket), address_));
    }
    return sockets;
  }
  /// Returns the descriptor that another process has for the same socket.
  loop::Descriptor another(const loop::SharedListener& socket) {
    return platform_->share(socket.descriptor()).value();
  }
  /// Returns true if a client waits in the queue of a socket that no loop uses.
  bool has_waiting_client(loop::Descriptor socket) {
    const loop::SocketOptions options{.role = loop::SocketRole::listener, .shared = true};
    loop::Socket* const listener = loop_->backend().adopt(std::move(socket), options).value();
    const int accepted = run(accept_alone(*loop_, *listener));
    loop_->backend().close(*listener);
    return accepted == 1;
  }

  Endpoint address_ = Endpoint::loopback(0);

 private:
  struct Waiting final : loop::AcceptOperation {
    Waiting() noexcept : loop::AcceptOperation([](loop::Runnable&) {}) {}
  };
  static Task<int> accept_alone(Loop& loop, loop::Socket& listener) {
    Waiting waiting;
    if (!loop.backend().accept(listener, waiting)) {
      for (int rounds = 0; rounds < 1000 && waiting.state() != loop::Operation::State::finished;
           ++rounds) {
        std::ignore = co_await sleep(1ms);
      }
      loop.backend().cancel(waiting);
      co_await yield();
    }
    co_return waiting.error() ? 0 : 1;
  }
};

INSTANTIATE_TEST_SUITE_P(On, InheritedListenerTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr int client_count = 40;

/// Accepts and greets connections until the listener is closed, and returns their number.
Task<int> accept_all(tcp::Listener& listener) {
  int accepted = 0;
  for (;;) {
    auto stream = co_await listener.accept();
    if (!stream) {
      EXPECT_EQ(stream.error(), Errc::closed);
      co_return accepted;
    }
    EXPECT_TRUE(co_await stream->write("hello"));
    ++accepted;
  }
}

Task<Result<tcp::Stream>> accept_one(tcp::Listener& listener) {
  co_return co_await listener.accept();
}

/// Connects `count` clients one after the other and expects a greeting for each.
Task<> connect_clients(Endpoint server, int count) {
  for (int i = 0; i < count; ++i) {
    auto client = co_await tcp::connect(server);
    EXPECT_TRUE(client) << client.error().message();
    if (!client) co_return;
    EXPECT_EQ((co_await read_to_end(*client)).first, "hello");
  }
}

Task<> connect_then_drain(Endpoint server, int count) {
  const Context own = co_await this_context();
  co_await connect_clients(server, count);
  own.loop->drain();
}

TEST_P(InheritedListenerTest, OneLoopServesAllInheritedSockets) {
  loop_->group().listener_registry().inherit(open(4));
  const auto talk = [](Endpoint address) -> Task<> {
    tcp::Listener listener = co_await listen_locally({}, address);
    EXPECT_EQ(listener.local_address(), address);
    auto both = co_await all(accept_all(listener), connect_then_drain(address, client_count));
    EXPECT_EQ(std::get<0>(both.value()), client_count);
  };
  run(talk(address_));
}

TEST_P(InheritedListenerTest, DrainServesClientsWaitingInAnySocket) {
  loop_->group().listener_registry().inherit(open(3));
  const auto talk = [](Endpoint address) -> Task<> {
    const Context own = co_await this_context();
    tcp::Listener listener = co_await listen_locally({}, address);
    std::vector<tcp::Stream> waiting;
    for (int i = 0; i < client_count; ++i)
      waiting.push_back((co_await tcp::connect(address)).value());
    own.loop->drain();
    EXPECT_EQ(co_await accept_all(listener), client_count);
  };
  run(talk(address_));
}

TEST_P(InheritedListenerTest, PausedLoopAcceptsOnlyAfterItResumes) {
  loop_->group().listener_registry().inherit(open(2));
  loop_->pause_accepting();
  bool admitted = false;
  const auto talk = [&](Endpoint address) -> Task<> {
    const auto body = [&](Scope& scope) -> Task<> {
      tcp::Listener listener = co_await listen_locally({}, address);
      scope.spawn([](Endpoint server) -> Task<> { co_await connect_clients(server, 6); }(address));
      scope.spawn([](bool& flag) -> Task<> {
        const Context own = co_await this_context();
        std::ignore = co_await sleep(20ms);
        flag = true;
        own.loop->resume_accepting();
      }(admitted));
      for (int i = 0; i < 6; ++i) {
        auto stream = co_await listener.accept();
        EXPECT_TRUE(stream && admitted);
        if (stream) {
          EXPECT_TRUE(co_await stream->write("hello"));
        }
      }
    };
    EXPECT_TRUE(co_await with_scope(body));
  };
  run(talk(address_));
}

TEST_P(InheritedListenerTest, DrainLeavesSocketsOfOtherProcessesOpen) {
  Sockets sockets = open(2);
  std::vector<loop::Descriptor> others;
  for (const auto& each : sockets) {
    each->set_stays_open_elsewhere(true);
    others.push_back(another(*each));
  }
  loop_->group().listener_registry().inherit(std::move(sockets));
  const auto talk = [](Endpoint address) -> Task<> {
    tcp::Listener listener = co_await listen_locally({}, address);
    auto both = co_await all(accept_all(listener), connect_then_drain(address, 10));
    EXPECT_EQ(std::get<0>(both.value()), 10);
  };
  run(talk(address_));
  // The sockets still listen, and new clients wait for the other process.
  const auto connect_one = [](Endpoint address) -> Task<std::optional<tcp::Stream>> {
    auto client = co_await tcp::connect(address);
    if (!client) co_return std::nullopt;
    co_return std::move(*client);
  };
  std::vector<std::optional<tcp::Stream>> clients;
  for (int i = 0; i < 16; ++i) {
    clients.push_back(run(connect_one(address_)));
    EXPECT_TRUE(clients.back());
  }
  EXPECT_TRUE(has_waiting_client(std::move(others[0])) || has_waiting_client(std::move(others[1])));
}

TEST_P(InheritedListenerTest, DrainClosesAPausedListener) {
  Sockets sockets = open(2);
  for (const auto& each : sockets) each->set_peer_waits_for_accept();
  loop_->group().listener_registry().inherit(std::move(sockets));
  loop_->pause_accepting();
  const auto talk = [](Endpoint address) -> Task<> {
    tcp::Listener listener = co_await listen_locally({}, address);
    auto both = co_await all(accept_all(listener), connect_then_drain(address, 0));
    EXPECT_EQ(std::get<0>(both.value()), 0);
    EXPECT_EQ((co_await listener.accept()).error(), Errc::closed);
  };
  run(talk(address_));
}

TEST_P(InheritedListenerTest, DrainOfAPausedLoopServesClientsOfItsOwnSockets) {
  Sockets sockets = open(3);
  for (const auto& each : sockets) {
    each->set_peer_waits_for_accept();
    each->set_stays_open_elsewhere(false);
  }
  loop_->group().listener_registry().inherit(std::move(sockets));
  loop_->pause_accepting();
  const auto talk = [](Endpoint address) -> Task<> {
    const Context own = co_await this_context();
    tcp::Listener listener = co_await listen_locally({}, address);
    std::vector<tcp::Stream> waiting;
    for (int i = 0; i < client_count; ++i)
      waiting.push_back((co_await tcp::connect(address)).value());
    own.loop->drain();
    EXPECT_EQ(co_await accept_all(listener), client_count);
  };
  run(talk(address_));
}

TEST_P(InheritedListenerTest, GroupIsNotifiedWhenAllSocketsAreAboutToAccept) {
  Sockets sockets = open(3);
  for (const auto& each : sockets) each->set_peer_waits_for_accept();
  int notified_count = 0;
  loop_->group().listener_registry().on_accepting = [&] { ++notified_count; };
  loop_->group().listener_registry().inherit(std::move(sockets));
  loop_->pause_accepting();
  EXPECT_EQ(loop_->group().listener_registry().unaccepted_addresses(), address_.to_string());
  const auto talk = [](Endpoint address, int& count) -> Task<> {
    tcp::Listener listener = co_await listen_locally({}, address);
    EXPECT_EQ(count, 0) << "no accept has been requested yet";
    auto both = co_await all(accept_all(listener), connect_then_drain(address, 0));
    EXPECT_TRUE(both);
    EXPECT_EQ(count, 1);
  };
  run(talk(address_, notified_count));
  EXPECT_EQ(loop_->group().listener_registry().unaccepted_addresses(), "");
}

TEST_P(InheritedListenerTest, DestroyedListenerReleasesItsExtraListeners) {
  loop_->group().listener_registry().inherit(open(3));
  const auto talk = [](Endpoint address) -> Task<> {
    CancelSource cancel;
    const Context own = co_await this_context();
    {
      tcp::Listener listener = co_await listen_locally({}, address);
      const auto accept = [](tcp::Listener& from, Context with) -> Task<std::error_code> {
        co_return (co_await in_context(with, accept_one(from))).error();
      };
      const auto give_up = [](CancelSource& source) -> Task<> {
        co_await yield();
        source.cancel();
      };
      const Context with{own.loop, &cancel};
      auto both = co_await all(accept(listener, with), give_up(cancel));
      EXPECT_EQ(std::get<0>(both.value()), Errc::cancelled);
    }
    std::ignore = co_await sleep(5ms);
  };
  run(talk(address_));
}

}  // namespace
}  // namespace weir::inherited_listener_test

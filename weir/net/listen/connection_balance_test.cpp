// Tests of connection balancing between cores that listen on one address. Connections are moved if
// all come to one core, and stay if they come to all cores.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/net/listen/detail/connection_balancer.hpp"
#include "weir/net/test/net_fixture.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::connection_balance_test {
namespace {

// Cores 0 and 1 listen and answer each request with their number. The clients are on core 2, so
// that only one end of each connection counts.
constexpr unsigned listening_cores = 2;
constexpr unsigned clients_core = 2;

struct Cores {
  explicit Cores(Runtime& its_runtime) : runtime(its_runtime) {}
  Runtime& runtime;
  std::atomic<unsigned> listening{0};
  Endpoint address;            // set by core 0 before it counts itself in `listening`
  bool second_closes = false;  ///< true if core 1 closes its listener after one connection
  std::atomic<bool> first_pauses{false};  ///< true while core 0 leaves its connections waiting

  Task<> (*clients)(Cores& test, Loop& loop) = nullptr;
  // Counters at the end of the test, while all connections were open.
  std::array<std::uint64_t, listening_cores> connections{};
  std::array<std::uint64_t, listening_cores> handed_over{};
  std::array<std::uint64_t, listening_cores> taken_over{};
  std::array<unsigned, listening_cores> answered{};

  void record(Loop& loop) {
    for (unsigned core = 0; core < listening_cores; ++core) {
      const auto& counters = ConnectionCounters::of(*loop.group().loops()[core]);
      connections[core] = counters.open.value();
      handed_over[core] = counters.handed_over.value();
      taken_over[core] = counters.taken_over.value();
    }
  }
};

Task<> answer(tcp::Stream peer) {
  const std::string number = std::to_string(peer.loop().core());
  while (auto bytes = co_await peer.read()) {
    if (!co_await peer.write(number)) break;
  }
}

Task<Result<>> serve(Scope& scope, Cores& test) {
  if (scope.loop().core() == clients_core) {
    while (test.listening != listening_cores) std::ignore = co_await sleep(1ms);
    co_await test.clients(test, scope.loop());
    test.runtime.drain();
    co_return {};
  }
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::loopback(0)));
  if (scope.loop().core() == 0) test.address = listener.local_address();
  ++test.listening;
  for (;;) {
    WEIR_CO_TRY(auto peer, co_await listener.accept());
    scope.spawn(answer(std::move(peer)));
    if (test.second_closes && scope.loop().core() == 1) co_return {};
    while (test.first_pauses && scope.loop().core() == 0) std::ignore = co_await sleep(1ms);
  }
}

class BalanceOfCoresTest : public NetTest {
 protected:
  void run_with(Cores& test, Runtime& runtime) {
    loop_.reset();
    EXPECT_EQ(runtime.run_on_each_core(serve, std::ref(test)), 0);
  }
  RuntimeOptions options() const {
    RuntimeOptions options;
    options.cores = listening_cores + 1;
    options.pin = false;
    options.announce = false;
    options.backend = GetParam().backend;
    options.handle_signals = false;
    return options;
  }
};
/// The tests in which the port of a client decides which listener gets its connection.
class KernelBalanceOfCoresTest : public BalanceOfCoresTest {};
INSTANTIATE_TEST_SUITE_P(On, KernelBalanceOfCoresTest, kernel_net_kinds(),
                         [](const auto& info) { return std::string(info.param.name); });

/// The tests in which listeners get connections in turn. A kernel chooses the listener itself.
class SimulatedBalanceOfCoresTest : public BalanceOfCoresTest {};
INSTANTIATE_TEST_SUITE_P(On, SimulatedBalanceOfCoresTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

// Total number of connections at the end of the balancing. It begins at 54 to 32 and ends at 54 to
// 54 if each connection is settled before the next.
constexpr unsigned balanced_total = 108;

// ---- Simulated sockets: the listeners get connections in turn -----------------------------------

/// Opens a connection, sends a request, and counts the core that answers it.
Task<std::optional<tcp::Stream>> ask(Cores& test) {
  auto stream = co_await tcp::connect(test.address);
  EXPECT_TRUE(stream);
  if (!stream) co_return std::nullopt;
  EXPECT_TRUE(co_await stream->write("?"));
  const std::string core = co_await read_some(*stream, 1);
  EXPECT_TRUE(core == "0" || core == "1") << core;
  if (core == "0" || core == "1") ++test.answered[core == "0" ? 0 : 1];
  co_return std::move(*stream);
}

/// Opens and closes a connection to the second listener, so that the next one comes to the first.
Task<> skip_one(Cores& test, Loop& loop) {
  const auto open = [&] { return ConnectionCounters::of(*loop.group().loops()[1]).open.value(); };
  const std::uint64_t before = open();
  {
    auto decoy = co_await tcp::connect(test.address);
    EXPECT_TRUE(decoy);
    while (open() == before) std::ignore = co_await sleep(1ms);
  }
  while (open() != before) std::ignore = co_await sleep(1ms);
}

Task<> all_to_one_in_memory(Cores& test, Loop& loop) {
  std::vector<tcp::Stream> clients;
  for (unsigned i = 0; i < balanced_total; ++i) {
    auto client = co_await ask(test);
    if (!client) co_return;
    clients.push_back(std::move(*client));
    co_await skip_one(test, loop);
  }
  test.record(loop);
}

TEST_P(SimulatedBalanceOfCoresTest, BalancesConnectionsOfOneCoreInMemory) {
  Runtime runtime(*platform_, options());
  Cores test(runtime);
  test.clients = all_to_one_in_memory;
  run_with(test, runtime);
  EXPECT_EQ(test.connections[0], balanced_total / 2);
  EXPECT_EQ(test.connections[1], balanced_total / 2);
  EXPECT_EQ(test.answered[0], balanced_total / 2);
  EXPECT_EQ(test.answered[1], balanced_total / 2);
  EXPECT_EQ(test.handed_over[0], balanced_total / 2);
  EXPECT_EQ(test.taken_over[1], balanced_total / 2);
  EXPECT_EQ(test.handed_over[1] + test.taken_over[0], 0u);
}

Task<> in_turn_in_memory(Cores& test, Loop& loop) {
  std::vector<tcp::Stream> clients;
  for (int i = 0; i < 200; ++i) {
    auto client = co_await ask(test);
    if (!client) co_return;
    clients.push_back(std::move(*client));
  }
  test.record(loop);
}

TEST_P(SimulatedBalanceOfCoresTest, DoesNotMoveEvenTrafficInMemory) {
  Runtime runtime(*platform_, options());
  Cores test(runtime);
  test.clients = in_turn_in_memory;
  run_with(test, runtime);
  EXPECT_EQ(test.connections[0], 100u);
  EXPECT_EQ(test.connections[1], 100u);
  EXPECT_EQ(test.handed_over[0] + test.handed_over[1], 0u);
  EXPECT_EQ(test.taken_over[0] + test.taken_over[1], 0u);
}

/// Expects an answer, by either core, for each client that connected before the drain.
Task<> drain_in_between(Cores& test, Loop& loop) {
  std::vector<tcp::Stream> clients;
  for (int i = 0; i < 40; ++i) {
    auto client = co_await ask(test);
    if (!client) co_return;
    clients.push_back(std::move(*client));
    co_await skip_one(test, loop);
  }
  std::vector<tcp::Stream> late;
  for (int i = 0; i < 10; ++i) {
    auto client = co_await tcp::connect(test.address);
    EXPECT_TRUE(client);
    if (!client) co_return;
    EXPECT_TRUE(co_await client->write("?"));
    late.push_back(std::move(*client));
  }
  test.runtime.drain();
  for (tcp::Stream& each : late) EXPECT_EQ((co_await read_some(each, 1)).size(), 1U);
  test.record(loop);
}

TEST_P(SimulatedBalanceOfCoresTest, DrainServesConnectionsThatWereHandedOver) {
  Runtime runtime(*platform_, options());
  Cores test(runtime);
  test.clients = drain_in_between;
  run_with(test, runtime);
  EXPECT_EQ(test.handed_over[0], test.taken_over[1]);
  EXPECT_GT(test.handed_over[0], 8u) << "the test has not met its case";
}

Task<> many_in_memory(Cores& test, Loop& loop) {
  std::vector<tcp::Stream> clients;
  for (int i = 0; i < 60; ++i) {
    auto client = co_await ask(test);
    if (!client) co_return;
    clients.push_back(std::move(*client));
  }
  test.record(loop);
}

TEST_P(SimulatedBalanceOfCoresTest, ClosedListenerGetsNoConnectionsInMemory) {
  Runtime runtime(*platform_, options());
  Cores test(runtime);
  test.clients = many_in_memory;
  test.second_closes = true;
  run_with(test, runtime);
  EXPECT_EQ(test.connections[0], 59U);
  EXPECT_EQ(test.connections[1], 1U);
  EXPECT_EQ(test.handed_over[0] + test.handed_over[1], 0U);
}

/// Gives core 0 all of 201 connections, and then 34 more in one turn.
Task<> burst_in_memory(Cores& test, Loop& loop) {
  std::vector<tcp::Stream> clients;
  {
    std::vector<tcp::Stream> closed;
    for (int i = 0; i < 402; ++i) {
      test.first_pauses = i >= 400;
      const unsigned before = test.answered[0];
      auto client = co_await ask(test);
      if (!client) co_return;
      (test.answered[0] != before ? clients : closed).push_back(std::move(*client));
    }
  }
  const auto open = [&](unsigned core) {
    return ConnectionCounters::of(*loop.group().loops()[core]).open.value();
  };
  while (open(1) != 0) std::ignore = co_await sleep(1ms);
  EXPECT_EQ(open(0), 201U);
  for (int i = 0; i < 68; ++i) {
    auto client = co_await tcp::connect(test.address);
    EXPECT_TRUE(client);
    if (!client) co_return;
    clients.push_back(std::move(*client));
  }
  while (open(1) != 34) std::ignore = co_await sleep(1ms);
  test.first_pauses = false;
  while (open(0) + open(1) != 269) std::ignore = co_await sleep(1ms);
  test.record(loop);
}

TEST_P(SimulatedBalanceOfCoresTest, KeepsOneOfSeventeenConnectionsOfABurstInMemory) {
  Runtime runtime(*platform_, options());
  Cores test(runtime);
  test.clients = burst_in_memory;
  run_with(test, runtime);
  EXPECT_EQ(test.connections[0], 203U);
  EXPECT_EQ(test.connections[1], 66U);
  EXPECT_EQ(test.handed_over[0], 32U);
  EXPECT_EQ(test.taken_over[1], 32U);
}

/// Core 1 hands a connection over to core 0. Most connections of core 1 close before core 0 takes
/// the new one, so that core 0 then has far more than the average.
Task<> overtaken_in_memory(Cores& test, Loop& loop) {
  std::array<std::vector<tcp::Stream>, listening_cores> clients;
  for (int i = 0; i < 160; ++i) {
    const unsigned before = test.answered[0];
    auto client = co_await ask(test);
    if (!client) co_return;
    clients[test.answered[0] != before ? 0 : 1].push_back(std::move(*client));
  }
  const auto counters = [&](unsigned core) -> const ConnectionCounters& {
    return ConnectionCounters::of(*loop.group().loops()[core]);
  };
  clients[0].erase(clients[0].begin() + 40, clients[0].end());
  while (counters(0).open.value() != 40) std::ignore = co_await sleep(1ms);
  test.first_pauses = true;
  const auto last = co_await ask(test);
  EXPECT_EQ(test.answered[0], 81U) << "core 0 pauses after this connection";
  auto moved = co_await tcp::connect(test.address);
  EXPECT_TRUE(moved);
  if (!moved) co_return;
  while (counters(1).handed_over.value() != 1) std::ignore = co_await sleep(1ms);
  clients[1].erase(clients[1].begin() + 5, clients[1].end());
  while (counters(1).open.value() != 5) std::ignore = co_await sleep(1ms);
  test.first_pauses = false;
  EXPECT_TRUE(co_await moved->write("?"));
  const std::string core = co_await read_some(*moved, 1);
  EXPECT_EQ(core, "0");
  test.record(loop);
}

TEST_P(SimulatedBalanceOfCoresTest, MovesAConnectionAtMostOnceInMemory) {
  Runtime runtime(*platform_, options());
  Cores test(runtime);
  test.clients = overtaken_in_memory;
  run_with(test, runtime);
  EXPECT_EQ(test.connections[0], 42U);
  EXPECT_EQ(test.connections[1], 5U);
  EXPECT_EQ(test.handed_over[1], 1U);
  EXPECT_EQ(test.taken_over[0], 1U);
  EXPECT_EQ(test.handed_over[0] + test.taken_over[1], 0U);
}

// ---- Real sockets: the port of the client decides -----------------------------------------------

/// A client without a loop.
struct Client {
  os::Fd socket;
  std::uint16_t port = 0;
  unsigned core = 0;  ///< core that answered
};

bool ready(int socket, short events) {
  pollfd wanted{socket, events, 0};
  return ::poll(&wanted, 1, 20'000) == 1;
}

/// Connects from `port`, 0 for any, and sends a request. Returns nullopt if the port is in use.
/// Closing the client resets the connection, so that the port can be used again immediately.
std::optional<Client> ask_from(std::uint16_t port, const Endpoint& server) {
  Client client{os::open_stream(server.family()).value()};
  const int socket = client.socket.get();
  EXPECT_TRUE(os::set_linger(socket, std::chrono::seconds(0)));
  const os::Address own = os::Address::loopback(port);
  if (::bind(socket, static_cast<const sockaddr*>(own.data()), own.size()) != 0) {
    return std::nullopt;
  }
  const auto connected = os::start_connect(socket, server);
  if (!connected || !ready(socket, POLLOUT) || !os::take_error(socket)) return std::nullopt;
  client.port = os::local_address(socket).value().port();
  EXPECT_EQ(::send(socket, "?", 1, MSG_NOSIGNAL), 1);
  char number = '-';
  EXPECT_TRUE(ready(socket, POLLIN));
  EXPECT_EQ(::recv(socket, &number, 1, 0), 1);
  EXPECT_TRUE(number == '0' || number == '1') << number;
  client.core = number == '1' ? 1 : 0;
  return client;
}

/// Finds `count` client ports for each core by making one connection at a time.
Task<std::array<std::vector<std::uint16_t>, listening_cores>> find_ports(Cores& test, Loop& loop,
                                                                         std::size_t count) {
  std::array<std::vector<std::uint16_t>, listening_cores> ports;
  const auto open = [&](unsigned core) {
    return ConnectionCounters::of(*loop.group().loops()[core]).open.value();
  };
  while (ports[0].size() < count || ports[1].size() < count) {
    {
      const auto client = ask_from(0, test.address);
      if (client) ports[client->core].push_back(client->port);
    }
    if (::testing::Test::HasFailure()) break;
    while (open(0) + open(1) != 0) std::ignore = co_await sleep(1ms);
  }
  co_return ports;
}

Task<> all_to_one(Cores& test, Loop& loop) {
  const auto ports = co_await find_ports(test, loop, balanced_total + 30);
  std::vector<Client> clients;
  for (const std::uint16_t port : ports[0]) {
    if (clients.size() == balanced_total) break;
    auto client = ask_from(port, test.address);
    if (!client) continue;
    ++test.answered[client->core];
    clients.push_back(std::move(*client));
  }
  EXPECT_EQ(clients.size(), std::size_t{balanced_total}) << "too many of the ports are taken";
  // The giving core may count a handover after the taking core has answered.
  const auto& giving = ConnectionCounters::of(*loop.group().loops()[0]);
  const auto& taking = ConnectionCounters::of(*loop.group().loops()[1]);
  while (giving.handed_over.value() < taking.taken_over.value()) {
    std::ignore = co_await sleep(1ms);
  }
  test.record(loop);
}

TEST_P(KernelBalanceOfCoresTest, BalancesConnectionsOfOneCore) {
  Runtime runtime(*platform_, options());
  Cores test(runtime);
  test.clients = all_to_one;
  run_with(test, runtime);
  // If clients come faster than the turns of the loop, the core keeps one of 17 in a row. It keeps
  // two while it balances 32 against none, so that it begins again at 57 to 34, not at 54 to 32.
  EXPECT_GE(test.connections[0], balanced_total / 2);
  EXPECT_LE(test.connections[0], balanced_total / 2 + 3);
  EXPECT_EQ(test.connections[0] + test.connections[1], balanced_total);
  EXPECT_EQ(test.answered[1], test.connections[1]);
  EXPECT_EQ(test.taken_over[1], test.connections[1]);
  EXPECT_EQ(test.handed_over[0], test.connections[1]);
  EXPECT_EQ(test.handed_over[1] + test.taken_over[0], 0u);
}

Task<> in_turn(Cores& test, Loop& loop) {
  const auto ports = co_await find_ports(test, loop, 90);
  std::vector<Client> clients;
  std::array<std::size_t, listening_cores> next{};
  while (clients.size() < 120) {
    const std::size_t core = clients.size() % 2;
    if (next[core] == ports[core].size()) break;
    auto client = ask_from(ports[core][next[core]++], test.address);
    if (!client) continue;
    EXPECT_EQ(client->core, core);
    clients.push_back(std::move(*client));
  }
  EXPECT_EQ(clients.size(), 120U) << "too many of the ports are taken";
  test.record(loop);
}

TEST_P(KernelBalanceOfCoresTest, DoesNotMoveEvenTraffic) {
  Runtime runtime(*platform_, options());
  Cores test(runtime);
  test.clients = in_turn;
  run_with(test, runtime);
  EXPECT_EQ(test.connections[0], 60u);
  EXPECT_EQ(test.connections[1], 60u);
  EXPECT_EQ(test.handed_over[0] + test.handed_over[1], 0u);
}

/// Two loops with a listener each on one address. A client waits in each, and the first loop has
/// far more connections than the average.
class TwoListeningLoops : public testing::Test {
 protected:
  static constexpr int open_connections = 100;

  TwoListeningLoops() {
    group_.set_loops({loops_[0].get(), loops_[1].get()});
    for (const auto& each : loops_) {
      listeners_.push_back(weir::run(*each, tcp::listen(address_)).value());
    }
    for (int each = 0; each < open_connections; ++each)
      ConnectionCounters::of(*loops_[0]).open.add();
    for (int each = 0; each < 2; ++each) {
      clients_.push_back(weir::run(*clients_loop_, tcp::connect(address_)).value());
    }
  }
  ~TwoListeningLoops() override {
    for (int each = 0; each < open_connections; ++each)
      ConnectionCounters::of(*loops_[0]).open.subtract();
  }
  /// Returns true if the listener of a core returns a connection within some turns. Time does not
  /// pass, because several loops share the platform.
  bool accepts(std::size_t core) {
    CancelSource cancel;
    const Context cancellable{loops_[core].get(), &cancel};
    const auto accept = [&]() -> Task<Result<tcp::Stream>> {
      co_return co_await listeners_[core].accept();
    };
    const auto accept_or_give_up = [&]() -> Task<bool> {
      auto accepting = in_context(cancellable, accept());
      const auto stream = co_await std::move(accepting);
      co_return stream.has_value();
    };
    const auto give_up = [&]() -> Task<> {
      for (int turns = 0; turns < 10; ++turns) co_await yield();
      cancel.cancel();
    };
    const auto both = weir::run(*loops_[core], all(accept_or_give_up(), give_up()));
    return std::get<0>(both.value());
  }
  std::uint64_t handed_over() const {
    return ConnectionCounters::of(*loops_[0]).handed_over.value();
  }

  const Endpoint address_ = Endpoint::loopback(80);
  MemoryPlatform platform_;
  loop::LoopGroup group_;
  std::array<std::unique_ptr<Loop>, 2> loops_ = {
      Loop::make(platform_, {.core = 0, .group = &group_}).value(),
      Loop::make(platform_, {.core = 1, .group = &group_}).value()};
  std::unique_ptr<Loop> clients_loop_ = Loop::make(platform_, {}).value();
  std::vector<tcp::Listener> listeners_;
  std::vector<tcp::Stream> clients_;
};

TEST_F(TwoListeningLoops, ConnectionThatWasHandedOverIsServedDuringADrain) {
  EXPECT_FALSE(accepts(0));
  EXPECT_EQ(handed_over(), 1U);
  loops_[1]->drain();
  EXPECT_TRUE(accepts(1));
  EXPECT_EQ(ConnectionCounters::of(*loops_[1]).taken_over.value(), 1U);
  EXPECT_TRUE(accepts(1)) << "its own";
  EXPECT_FALSE(accepts(1));
  EXPECT_EQ(ConnectionCounters::of(*loops_[1]).taken_over.value(), 1U);
}

TEST_F(TwoListeningLoops, DrainingLoopHandsNoConnectionOver) {
  loops_[0]->drain();
  EXPECT_TRUE(accepts(0));
  EXPECT_FALSE(accepts(0));
  EXPECT_EQ(handed_over(), 0U);
}

TEST_F(TwoListeningLoops, DrainingLoopGetsNoConnectionOfTheOther) {
  loops_[1]->drain();
  EXPECT_TRUE(accepts(0));
  EXPECT_EQ(handed_over(), 0U);
  EXPECT_TRUE(accepts(1)) << "its own";
  EXPECT_FALSE(accepts(1));
  EXPECT_EQ(ConnectionCounters::of(*loops_[1]).taken_over.value(), 0U);
}

TEST(ListenersOfOneLoop, OnlyTheFirstGetsConnectionsOfOtherCores) {
  MemoryPlatform platform;
  loop::LoopGroup group;
  const auto loop = Loop::make(platform, {.core = 0, .group = &group}).value();
  const auto other = Loop::make(platform, {.core = 1, .group = &group}).value();
  group.set_loops({loop.get(), other.get()});
  const Endpoint address = Endpoint::loopback(80);
  const auto listen = [&] { return weir::run(*loop, tcp::listen(address)).value(); };
  std::optional<tcp::Listener> first = listen();
  std::optional<tcp::Listener> second = listen();
  const HandoffQueue& queue = ConnectionBalancer::of(*loop, address)->handoff_queue(0);
  EXPECT_TRUE(queue.is_open());
  second.reset();
  EXPECT_TRUE(queue.is_open()) << "it belongs to the first";
  second.emplace(listen());
  first.reset();
  EXPECT_FALSE(queue.is_open());
  first.emplace(listen());
  EXPECT_TRUE(queue.is_open()) << "the next listener may have it";
}

}  // namespace
}  // namespace weir::connection_balance_test

// Tests of a newer process that takes sockets over and fails to start. Each client that connects
// meanwhile is served.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "weir/loop/detail/process/os_handover.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/os/detail/io/seqpacket_socket.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/test/temporary_tree.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::hot_restart_test {
namespace {

using Kind = loop::HandoverMessage::Kind;

constexpr std::chrono::seconds wait_max{30};

class QuietPlatform : public OsPlatform {
 public:
  void write_line(std::string_view) noexcept override {}
};

/// A runtime of the service. Its cores greet each client with its name and close the connection.
class Program {
 public:
  struct Setup {
    std::string name;
    Endpoint address;
    unsigned cores = 1;
    bool accepts = true;  ///< false: it listens and waits for its drain
  };

  Program(Setup setup, const RuntimeOptions& options)
      : setup_(std::move(setup)), runtime_(platform_, with_cores(options, setup_.cores)) {
    thread_ = std::thread([this] {
      const auto serve = [this](Scope& scope) -> Task<Result<>> {
        auto serving = serve_core(scope);
        co_return co_await std::move(serving);
      };
      ended_.set_value(runtime_.run_on_each_core(serve));
    });
  }
  ~Program() {
    drain();
    thread_.join();
  }

  /// Returns the address once all cores listen.
  Endpoint address() { return listening_.get_future().get(); }
  void drain() { runtime_.drain(); }
  int status() { return ended_.get_future().get(); }

 private:
  static RuntimeOptions with_cores(RuntimeOptions options, unsigned cores) {
    options.cores = cores;
    options.pin = options.announce = options.handle_signals = false;
    return options;
  }

  Task<Result<>> serve_core(Scope& scope) {
    WEIR_CO_TRY(auto listener, co_await tcp::listen(setup_.address));
    if (++cores_listening_ == setup_.cores) listening_.set_value(listener.local_address());
    while (!setup_.accepts && !scope.loop().draining()) {
      std::ignore = co_await sleep(std::chrono::milliseconds(1));
    }
    while (setup_.accepts) {
      WEIR_CO_TRY(auto peer, co_await listener.accept());
      scope.spawn(greet(std::move(peer), setup_.name));
    }
    co_return {};
  }
  static Task<> greet(tcp::Stream peer, std::string name) {
    std::ignore = co_await peer.write(name);
  }

  Setup setup_;
  QuietPlatform platform_;
  Runtime runtime_;
  std::atomic<unsigned> cores_listening_{0};
  std::promise<Endpoint> listening_;
  std::promise<int> ended_;
  std::thread thread_;
};

/// A client that waits at most `wait_max`.
class Client {
 public:
  explicit Client(const Endpoint& server) {
    const auto* const address = static_cast<const sockaddr*>(server.data());
    socket_ = os::Fd(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval longest{wait_max.count(), 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    EXPECT_EQ(::connect(socket_.get(), address, server.size()), 0);
  }
  /// Returns all received text, or the error message if the stream did not end properly.
  std::string greeting() const {
    std::string text;
    std::array<char, 64> room{};
    for (;;) {
      const ssize_t count = ::recv(socket_.get(), room.data(), room.size(), 0);
      if (count < 0) return std::error_code(errno, std::generic_category()).message();
      if (count == 0) return text;
      text.append(room.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  os::Fd socket_;
};

class HotRestartTest : public testing::TestWithParam<BackendChoice> {
 protected:
  RuntimeOptions options() const {
    RuntimeOptions options;
    options.backend = GetParam();
    options.hot_restart = HandoverOptions{.path = tree_.path("meet"), .service = "tests"};
    return options;
  }
  os::TemporaryTree tree_;
};

INSTANTIATE_TEST_SUITE_P(On, HotRestartTest,
                         testing::Values(BackendChoice::automatic, BackendChoice::epoll,
                                         BackendChoice::poll),
                         [](const auto& info) { return "backend" + std::to_string(info.index); });

TEST_P(HotRestartTest, NewerProcessThatIsNotReadyKeepsNoClient) {
  Program older({.name = "older", .address = Endpoint::loopback(0)}, options());
  const Endpoint address = older.address();
  {
    Program newer({.name = "newer", .address = address, .cores = 4, .accepts = false}, options());
    EXPECT_EQ(newer.address(), address);
    std::vector<Client> clients;
    for (int each = 0; each < 32; ++each) clients.emplace_back(address);
    newer.drain();
    EXPECT_EQ(newer.status(), 0);
    for (const Client& each : clients) ASSERT_EQ(each.greeting(), "older");
  }
  EXPECT_EQ(Client(address).greeting(), "older");
  older.drain();
  EXPECT_EQ(older.status(), 0);
}

/// Expects that each client is greeted, by the older program until the newer one has taken over.
void expect_taken_over(const Endpoint& where, const RuntimeOptions& options) {
  Program older({.name = "older", .address = where, .cores = 2}, options);
  const Endpoint address = older.address();
  EXPECT_EQ(Client(address).greeting(), "older");
  Program newer({.name = "newer", .address = address, .cores = 2}, options);
  std::string greeting;
  do {
    greeting = Client(address).greeting();
  } while (greeting == "older");
  EXPECT_EQ(greeting, "newer");
  EXPECT_EQ(older.status(), 0);
  EXPECT_EQ(Client(address).greeting(), "newer");
  newer.drain();
  EXPECT_EQ(newer.status(), 0);
}

TEST_P(HotRestartTest, TakesOverAnIpv6Socket) {
  const Endpoint loopback = Endpoint::parse("[::1]:0").value();
  if (!os::open_listener(loopback)) GTEST_SKIP() << "IPv6 is not available";
  expect_taken_over(loopback, options());
}

TEST_P(HotRestartTest, TakesOverAUnixSocketWithItsPath) {
  const std::string path = tree_.path("service");
  expect_taken_over(Endpoint::local(path).value(), options());
  EXPECT_FALSE(std::filesystem::exists(path)) << "the last program removes it";
}

/// An older process controlled by the test. offer() passes its sockets on and returns when the
/// newer process is ready.
class Older {
 public:
  static constexpr std::size_t sockets = 3;

  explicit Older(const std::string& path)
      : event_(os::open_event().value()),
        rendezvous_(os::connect_or_listen(os::Address::local(path).value())->listener.release()) {
    os::Address bound = os::Address::loopback(0);
    while (listening_.size() < sockets) {
      listening_.push_back(platform_.listen(bound, {}).value());
      bound = platform_.local_address(listening_.back().value()).value();
    }
  }
  Endpoint address() { return platform_.local_address(listening_.front().value()).value(); }

  void offer() {
    EXPECT_EQ(loop::wait_readable(rendezvous_.get(), event_.get(), end()), loop::Woken::readable);
    connection_.emplace(platform_, os::accept_one(rendezvous_.get()).value(), event_.get());
    EXPECT_TRUE(connection_->is_message(connection_->receive(end()), Kind::request));
    loop::HandoverMessage offer{.kind = Kind::offer};
    std::vector<int> descriptors;
    for (const loop::Descriptor& each : listening_) {
      offer.sockets.push_back({loop::HandoverMessage::Use::listening, false, "here"});
      descriptors.push_back(each.value());
    }
    offer.sockets.push_back({loop::HandoverMessage::Use::rendezvous, false, "there"});
    descriptors.push_back(rendezvous_.get());
    EXPECT_TRUE(connection_->send(offer, descriptors));
    EXPECT_TRUE(connection_->is_message(connection_->receive(end()), Kind::received));
    EXPECT_TRUE(connection_->is_message(connection_->receive(end()), Kind::ready));
  }
  /// Confirms the transfer and closes all sockets, so that only the newer process has them.
  void release_all() {
    EXPECT_TRUE(connection_->send({.kind = Kind::transferred}));
    listening_.clear();
    rendezvous_.close();
  }

 private:
  Instant end() { return platform_.now() + wait_max; }

  QuietPlatform platform_;
  os::Fd event_;
  os::Fd rendezvous_;
  std::vector<loop::Descriptor> listening_;
  std::optional<loop::OsHandoverConnection> connection_;
};

TEST_P(HotRestartTest, NewerProcessDrainedBeforeTheTransferServesWaitingClients) {
  Older older(tree_.path("meet"));
  const Endpoint address = older.address();
  Program newer({.name = "newer", .address = address}, options());
  older.offer();
  std::vector<Client> clients;
  for (int each = 0; each < 32; ++each) clients.emplace_back(address);
  newer.drain();
  older.release_all();
  for (const Client& each : clients) EXPECT_EQ(each.greeting(), "newer");
  EXPECT_EQ(newer.status(), 0);
}

TEST_P(HotRestartTest, NewerProcessDrainedAfterTheTransferServesWaitingClients) {
  Older older(tree_.path("meet"));
  const Endpoint address = older.address();
  Program newer({.name = "newer", .address = address}, options());
  older.offer();
  std::vector<Client> clients;
  for (int each = 0; each < 32; ++each) clients.emplace_back(address);
  older.release_all();
  newer.drain();
  for (const Client& each : clients) EXPECT_EQ(each.greeting(), "newer");
  EXPECT_EQ(newer.status(), 0);
}

}  // namespace
}  // namespace weir::hot_restart_test

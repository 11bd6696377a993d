// A newer process that takes sockets over and does not get far: whoever comes meanwhile is served.
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

#include "weir/runtime/runtime.hpp"
#include "weir/loop/os_handover_talk.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/os/local_packets.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/test/temporary_tree.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir {
namespace {

using Kind = HandoverMessage::Kind;

constexpr std::chrono::seconds patience{30};

class QuietHost : public OsHost {
 public:
  void log(std::string_view) noexcept override {}
};

/// A runtime of the service, whose cores greet whoever comes with its name, and close.
class Program {
 public:
  struct Manner {
    std::string name;
    Endpoint address;
    unsigned cores = 1;
    bool accepts = true;  ///< or else it listens, and waits until it drains
  };

  Program(Manner manner, const RuntimeOptions& options)
      : manner_(std::move(manner)), runtime_(host_, with_cores(options, manner_.cores)) {
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

  /// Where it listens, when all of its cores do.
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
    auto listener = co_await tcp::listen(manner_.address);
    if (!listener) co_return fail(listener.error());
    if (++cores_listening_ == manner_.cores) listening_.set_value(listener->local_address());
    while (!manner_.accepts && !scope.loop().draining()) {
      static_cast<void>(co_await sleep(std::chrono::milliseconds(1)));
    }
    while (manner_.accepts) {
      auto peer = co_await listener->accept();
      if (!peer) co_return fail(peer.error());
      scope.spawn(greet(std::move(*peer), manner_.name));
    }
    co_return {};
  }
  static Task<> greet(tcp::Stream peer, std::string name) {
    static_cast<void>(co_await peer.write(name));
  }

  Manner manner_;
  QuietHost host_;
  Runtime runtime_;
  std::atomic<unsigned> cores_listening_{0};
  std::promise<Endpoint> listening_;
  std::promise<int> ended_;
  std::thread thread_;
};

/// A client that waits patiently.
class Visitor {
 public:
  explicit Visitor(const Endpoint& server) {
    const auto* const address = static_cast<const sockaddr*>(server.data());
    socket_ = os::Fd(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval longest{patience.count(), 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    EXPECT_EQ(::connect(socket_.get(), address, server.size()), 0);
  }
  /// All that comes; what else befell it, if it was no orderly end.
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

class TakeoverTest : public testing::TestWithParam<BackendChoice> {
 protected:
  RuntimeOptions options() const {
    RuntimeOptions options;
    options.backend = GetParam();
    options.takeover = HandoverOptions{.path = tree_.path("meet"), .service = "tests"};
    return options;
  }
  os::TemporaryTree tree_;
};

INSTANTIATE_TEST_SUITE_P(On, TakeoverTest,
                         testing::Values(BackendChoice::automatic, BackendChoice::epoll,
                                         BackendChoice::poll),
                         [](const auto& info) { return "backend" + std::to_string(info.index); });

TEST_P(TakeoverTest, ANewerOneWithMoreCoresThatIsNotReadyKeepsNobody) {
  Program older({.name = "older", .address = Endpoint::loopback(0)}, options());
  const Endpoint address = older.address();
  {
    Program newer({.name = "newer", .address = address, .cores = 4, .accepts = false}, options());
    EXPECT_EQ(newer.address(), address);
    std::vector<Visitor> visitors;
    for (int each = 0; each < 32; ++each) visitors.emplace_back(address);
    newer.drain();
    EXPECT_EQ(newer.status(), 0);
    for (const Visitor& each : visitors) ASSERT_EQ(each.greeting(), "older");
  }
  EXPECT_EQ(Visitor(address).greeting(), "older");
  older.drain();
  EXPECT_EQ(older.status(), 0);
}

/// Whoever comes is greeted, by the older one until the newer one has taken over from it.
void expect_taken_over(const Endpoint& where, const RuntimeOptions& options) {
  Program older({.name = "older", .address = where, .cores = 2}, options);
  const Endpoint address = older.address();
  EXPECT_EQ(Visitor(address).greeting(), "older");
  Program newer({.name = "newer", .address = address, .cores = 2}, options);
  std::string greeting;
  do {
    greeting = Visitor(address).greeting();
  } while (greeting == "older");
  EXPECT_EQ(greeting, "newer");
  EXPECT_EQ(older.status(), 0);
  EXPECT_EQ(Visitor(address).greeting(), "newer");
  newer.drain();
  EXPECT_EQ(newer.status(), 0);
}

TEST_P(TakeoverTest, ASocketOfIpv6IsTakenOver) {
  const Endpoint loopback = Endpoint::parse("[::1]:0").value();
  if (!os::open_listener(loopback)) GTEST_SKIP() << "no IPv6 here";
  expect_taken_over(loopback, options());
}

TEST_P(TakeoverTest, AUnixSocketIsTakenOverWithItsPath) {
  const std::string path = tree_.path("service");
  expect_taken_over(Endpoint::local(path).value(), options());
  EXPECT_FALSE(std::filesystem::exists(path)) << "the last one removes it";
}

/// An older process in the test's hands, which has offered its sockets and heard that the newer one
/// is ready.
class Older {
 public:
  static constexpr std::size_t sockets = 3;

  explicit Older(const std::string& path)
      : event_(os::open_event().value()),
        meeting_(os::meet_at(os::Address::local(path).value())->listener.release()) {
    os::Address bound = os::Address::loopback(0);
    while (listening_.size() < sockets) {
      listening_.push_back(host_.listen(bound, {}).value());
      bound = host_.local_address(listening_.back().value()).value();
    }
  }
  Endpoint address() { return host_.local_address(listening_.front().value()).value(); }

  void offer() {
    EXPECT_EQ(wait_readable(meeting_.get(), event_.get(), end()), Woken::readable);
    talk_.emplace(host_, os::accept_one(meeting_.get()).value(), event_.get());
    EXPECT_TRUE(talk_->says(talk_->hear(end()), Kind::ask));
    HandoverMessage offer{.kind = Kind::offer};
    std::vector<int> descriptors;
    for (const Descriptor& each : listening_) {
      offer.sockets.push_back({HandoverMessage::Use::listening, false, "here"});
      descriptors.push_back(each.value());
    }
    offer.sockets.push_back({HandoverMessage::Use::meeting, false, "there"});
    descriptors.push_back(meeting_.get());
    EXPECT_TRUE(talk_->say(offer, descriptors));
    EXPECT_TRUE(talk_->says(talk_->hear(end()), Kind::ready));
  }
  /// From here on nobody but the newer one is there.
  void give_up_all() {
    EXPECT_TRUE(talk_->say({.kind = Kind::yours}));
    listening_.clear();
    meeting_.close();
  }

 private:
  Instant end() { return host_.now() + patience; }

  QuietHost host_;
  os::Fd event_;
  os::Fd meeting_;
  std::vector<Descriptor> listening_;
  std::optional<OsHandoverTalk> talk_;
};

TEST_P(TakeoverTest, ANewerOneThatIsAskedToDrainBeforeTheWordServesWhoWaits) {
  Older older(tree_.path("meet"));
  const Endpoint address = older.address();
  Program newer({.name = "newer", .address = address}, options());
  older.offer();
  std::vector<Visitor> visitors;
  for (int each = 0; each < 32; ++each) visitors.emplace_back(address);
  newer.drain();
  older.give_up_all();
  for (const Visitor& each : visitors) EXPECT_EQ(each.greeting(), "newer");
  EXPECT_EQ(newer.status(), 0);
}

TEST_P(TakeoverTest, ANewerOneThatIsAskedToDrainBeforeTheOlderHasStoppedServesWhoWaits) {
  Older older(tree_.path("meet"));
  const Endpoint address = older.address();
  Program newer({.name = "newer", .address = address}, options());
  older.offer();
  std::vector<Visitor> visitors;
  for (int each = 0; each < 32; ++each) visitors.emplace_back(address);
  older.give_up_all();
  newer.drain();
  for (const Visitor& each : visitors) EXPECT_EQ(each.greeting(), "newer");
  EXPECT_EQ(newer.status(), 0);
}

}  // namespace
}  // namespace weir

// Tests of a runtime that takes over sockets of an older process and offers its own to a newer
// one. A fake handover plays the other process.
#include "weir/runtime/detail/hot_restart.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::hot_restart_test {
namespace {

using Calls = std::vector<std::string>;

/// The records of a FakeHandover, and its answers.
struct HandoverRecord {
  loop::HandoverDelegate::Sockets sockets = {};  // of the older process
  Result<> started = {};
  std::function<void(loop::HandoverDelegate&)> on_start = {};
  loop::HandoverDelegate* delegate = nullptr;
  Calls calls = {};
  int living = 0;
};

class FakeHandover final : public loop::Handover {
 public:
  explicit FakeHandover(HandoverRecord& record) : record_(record) { ++record_.living; }
  FakeHandover(const FakeHandover&) = delete;
  FakeHandover& operator=(const FakeHandover&) = delete;
  ~FakeHandover() override { --record_.living; }
  loop::HandoverDelegate::Sockets take_sockets() override {
    return std::exchange(record_.sockets, {});
  }
  Result<> start(loop::HandoverDelegate& delegate) override {
    record_.delegate = &delegate;
    if (record_.on_start) record_.on_start(delegate);
    return record_.started;
  }
  void on_accepting() noexcept override { record_.calls.emplace_back("accepting"); }
  void on_socket_stopped() noexcept override { record_.calls.emplace_back("socket stopped"); }
  void stop() noexcept override { record_.calls.emplace_back("stop"); }

 private:
  HandoverRecord& record_;
};

class RestartPlatform final : public MemoryPlatform {
 public:
  RestartPlatform() : MemoryPlatform({.cores = 2}) {}
  loop::HandoverStart begin_handover(const HandoverOptions& options) override {
    paths.push_back(options.path);
    return {std::make_unique<FakeHandover>(record), {}};
  }
  Result<loop::Descriptor> inherit_listener(int descriptor) override {
    if (!inherits) {
      close(descriptor);
      return fail(system_error(ENOTSOCK));
    }
    return loop::Descriptor(*this, descriptor);
  }
  Result<os::Address> local_address(int descriptor) override {
    if (!knows_addresses) return fail(system_error(ENOBUFS));
    return MemoryPlatform::local_address(descriptor);
  }
  void write_line(std::string_view line) noexcept override {
    if (on_log) on_log();
    MemoryPlatform::write_line(line);
  }

  HandoverRecord record;
  std::function<void()> on_log;
  std::vector<std::string> paths;
  bool inherits = true;
  bool knows_addresses = true;
};

class HotRestartTest : public testing::Test {
 protected:
  HotRestartTest() {
    options_.announce = false;
    options_.hot_restart = HandoverOptions{.path = "meet"};
  }
  static Endpoint address(std::uint16_t port) { return Endpoint::loopback(port); }
  /// Returns a socket that an older process passes on.
  std::shared_ptr<loop::SharedListener> taken(std::uint16_t port) {
    auto opened = platform_.listen(address(port), {});
    auto socket =
        std::make_shared<loop::SharedListener>(platform_, std::move(opened.value()), address(port));
    socket->set_peer_waits_for_accept();
    return socket;
  }
  loop::HandoverDelegate& delegate() { return *platform_.record.delegate; }
  Loop& loop(std::size_t core) { return *loops_.at(core); }
  void at(Duration moment, std::function<void()> event) {
    platform_.at(platform_.now() + moment, std::move(event));
  }
  bool logged(const std::string& line) const {
    return std::ranges::count(platform_.logged(), line) == 1;
  }

  /// Runs a runtime that listens on `ports_` until it drains. It looks once in each second, unless
  /// it is stubborn, and ends after 100 seconds at the latest.
  /// Returns: its exit status; `served_` is the time that it took.
  int serve() {
    loops_.assign(2, nullptr);
    const auto body = [this](Scope& scope) -> Task<Result<>> {
      loops_[scope.loop().core()] = &scope.loop();
      std::vector<loop::ListenerRegistry::Listener> listeners;
      for (const std::uint16_t port : scope.loop().core() == 0 ? ports_ : Ports()) {
        WEIR_CO_TRY(auto opened,
                    scope.loop().group().listener_registry().listen(platform_, address(port), {}));
        listeners.push_back(std::move(opened));
      }
      for (int second = 0; second < 100 && (stubborn_ || !scope.loop().draining()); ++second) {
        WEIR_CO_TRY(co_await sleep(1s));
      }
      co_return {};
    };
    runtime_ = std::make_unique<Runtime>(platform_, options_);
    if (drains_early_) runtime_->drain();
    const Instant began = platform_.now();
    const int status = runtime_->run_on_each_core(body);
    served_ = platform_.now() - began;
    EXPECT_EQ(platform_.record.living, 0) << "the handover ends with the run";
    return status;
  }

  using Ports = std::vector<std::uint16_t>;
  RestartPlatform platform_;
  RuntimeOptions options_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<Loop*> loops_;
  Ports ports_;
  bool stubborn_ = false;
  bool drains_early_ = false;  ///< true to drain before the run
  Duration served_{};
};

// --- the older process -------------------------------------------------------------------------

TEST_F(HotRestartTest, OffersAllListenersAndKeepsThemAfterAFailure) {
  ports_ = {80, 443};
  at(1500ms, [&] {
    const auto offered = delegate().sockets_to_offer();
    ASSERT_EQ(offered.size(), 2U);
    EXPECT_EQ(offered[0]->bound(), address(80));
    EXPECT_EQ(offered[1]->bound(), address(443));
    for (const auto& each : offered) EXPECT_FALSE(each->stays_open_elsewhere());
    EXPECT_TRUE(delegate().confirm_handover(offered));
    for (const auto& each : offered) EXPECT_TRUE(each->stays_open_elsewhere());
    delegate().on_handover_failed(offered);
    for (const auto& each : offered) EXPECT_FALSE(each->stays_open_elsewhere());
  });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 100s) << "a failed handover drains nothing";
  EXPECT_EQ(platform_.paths, Calls{"meet"});
  EXPECT_TRUE(platform_.logged().empty());
}

TEST_F(HotRestartTest, ReportsAcceptingAndStoppedSockets) {
  ports_ = {80};
  at(1500ms, [&] {
    EXPECT_EQ(platform_.record.calls, Calls());
    loop(0).group().listener_registry().on_accept_requested(0);
    EXPECT_EQ(platform_.record.calls, Calls({"accepting"}));
    const auto listener = loop(0).group().listener_registry().listeners().at(0);
    listener->begin_accepting();
    listener->end_accepting();
    EXPECT_EQ(platform_.record.calls, Calls({"accepting", "socket stopped"}));
  });
  EXPECT_EQ(serve(), 0);
}

TEST_F(HotRestartTest, DrainsWhenANewerProcessHasTheSockets) {
  at(1500ms, [&] { static_cast<void>(delegate().sockets_to_offer()); });
  platform_.on_log = [&] {
    EXPECT_EQ(platform_.record.calls, Calls({"stop"})) << "the newer process waits for no log";
  };
  at(2500ms, [&] { delegate().on_handed_over(); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 3s);
  EXPECT_EQ(platform_.record.calls, Calls({"stop"}));
  EXPECT_TRUE(logged("weir: a newer process has taken over: draining"));
}

TEST_F(HotRestartTest, ADrainingProcessConfirmsNoHandover) {
  ports_ = {80};
  at(1500ms, [&] {
    const auto offered = delegate().sockets_to_offer();
    runtime_->drain();
    EXPECT_EQ(platform_.record.calls, Calls({"stop"}));
    EXPECT_FALSE(delegate().confirm_handover(offered));
    EXPECT_FALSE(offered.at(0)->stays_open_elsewhere());
  });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 2s);
}

TEST_F(HotRestartTest, ASignalDrainsIfNoNewerProcessStarts) {
  at(1500ms, [&] { platform_.raise(loop::Signal::terminate); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 2s);
  EXPECT_EQ(platform_.logged(), Calls{"weir: SIGTERM: draining"});
}

TEST_F(HotRestartTest, ASignalWaitsUntilTheNewerProcessIsReadyOrHasFailed) {
  at(1500ms, [&] { static_cast<void>(delegate().sockets_to_offer()); });
  at(2500ms, [&] { platform_.raise(loop::Signal::interrupt); });
  at(5500ms, [&] { delegate().on_handover_failed({}); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 6s);
  EXPECT_EQ(platform_.logged(),
            Calls{"weir: SIGINT: a newer process is starting: draining when it is ready"});
}

TEST_F(HotRestartTest, TheSecondSignalDrainsWithoutTheNewerProcess) {
  at(1500ms, [&] { static_cast<void>(delegate().sockets_to_offer()); });
  for (const Duration moment : {2500ms, 4500ms}) {
    at(moment, [&] { platform_.raise(loop::Signal::terminate); });
  }
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 5s);
  EXPECT_EQ(platform_.logged().size(), 2U);
  EXPECT_TRUE(logged("weir: SIGTERM: draining"));
}

TEST_F(HotRestartTest, ASignalAfterAFailedHandoverDrains) {
  at(1500ms, [&] { static_cast<void>(delegate().sockets_to_offer()); });
  at(2500ms, [&] { delegate().on_handover_failed({}); });
  at(3500ms, [&] { platform_.raise(loop::Signal::terminate); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 4s);
}

TEST_F(HotRestartTest, EachNewerProcessPostponesADrain) {
  at(1500ms, [&] { static_cast<void>(delegate().sockets_to_offer()); });
  at(2500ms, [&] { delegate().on_handover_failed({}); });
  at(3500ms, [&] { static_cast<void>(delegate().sockets_to_offer()); });
  at(4500ms, [&] { platform_.raise(loop::Signal::terminate); });
  at(6500ms, [&] { delegate().on_handed_over(); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 7s);
}

TEST_F(HotRestartTest, APostponedDrainDoesNotPreventTheHandover) {
  ports_ = {80};
  at(1500ms, [&] {
    const auto offered = delegate().sockets_to_offer();
    platform_.raise(loop::Signal::terminate);
    EXPECT_TRUE(delegate().confirm_handover(offered));
    EXPECT_TRUE(offered.at(0)->stays_open_elsewhere());
  });
  at(3500ms, [&] { delegate().on_handed_over(); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 4s);
}

TEST_F(HotRestartTest, ADrainBeforeTheRunRejectsEveryHandover) {
  drains_early_ = true;
  platform_.record.on_start = [&](loop::HandoverDelegate& delegate) {
    EXPECT_EQ(platform_.record.calls, Calls({"stop"}));
    EXPECT_FALSE(delegate.confirm_handover({}));
    EXPECT_FALSE(delegate.prepare_ownership());
  };
  EXPECT_EQ(serve(), 0);
  EXPECT_LE(served_, 1s);
  EXPECT_EQ(platform_.record.calls, Calls({"stop"}));
}

TEST_F(HotRestartTest, ASignalMayComeWhileANewerProcessConnects) {
  std::jthread connecting;
  at(1500ms, [&] {
    platform_.raise(loop::Signal::terminate);
    connecting = std::jthread([&] { static_cast<void>(delegate().sockets_to_offer()); });
  });
  at(1600ms, [&] { connecting.join(); });
  at(2500ms, [&] { platform_.raise(loop::Signal::terminate); });
  EXPECT_EQ(serve(), 0);
  // The first signal either drains or is postponed; the second one always drains.
  EXPECT_TRUE(served_ == 2s || served_ == 3s);
}

// --- the newer process -------------------------------------------------------------------------

TEST_F(HotRestartTest, AcceptsWhenTheOlderProcessHasStopped) {
  ports_ = {80};
  platform_.record.sockets = {taken(80), taken(443)};
  at(1500ms, [&] {
    for (const std::size_t core : {0U, 1U}) EXPECT_TRUE(loop(core).accepting_paused());
    EXPECT_EQ(delegate().unaccepted_addresses(), "127.0.0.1:443");
    EXPECT_TRUE(delegate().prepare_ownership());
    const auto sockets = loop(0).group().listener_registry().listeners();
    ASSERT_EQ(sockets.size(), 2U);
    for (const auto& each : sockets) EXPECT_TRUE(each->stays_open_elsewhere());
    delegate().on_owned();
    for (const auto& each : sockets) EXPECT_FALSE(each->stays_open_elsewhere());
    for (const std::size_t core : {0U, 1U}) EXPECT_TRUE(loop(core).accepting_paused());
    platform_.on_log = [&] {
      for (const std::size_t core : {0U, 1U}) EXPECT_EQ(loop(core).inbox_depth(), 1U);
    };
    delegate().on_taken_over();
  });
  at(2500ms, [&] {
    for (const std::size_t core : {0U, 1U}) EXPECT_FALSE(loop(core).accepting_paused());
  });
  at(3500ms, [&] { runtime_->drain(); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 4s) << "its sockets are its own, so a drain begins immediately";
  EXPECT_EQ(platform_.logged(),
            Calls({"weir: hot restart: taking over 2 sockets from an older process",
                   "weir: hot restart complete: this process accepts connections"}));
}

TEST_F(HotRestartTest, AcceptsImmediatelyWithoutAnOlderProcess) {
  at(1500ms, [&] {
    for (const std::size_t core : {0U, 1U}) EXPECT_FALSE(loop(core).accepting_paused());
  });
  EXPECT_EQ(serve(), 0);
  EXPECT_TRUE(platform_.logged().empty());
}

TEST_F(HotRestartTest, ADrainWaitsUntilTheOwnerOfTheSocketsIsDecided) {
  platform_.record.sockets = {taken(80)};
  at(1500ms, [&] { EXPECT_TRUE(delegate().prepare_ownership()); });
  at(2500ms, [&] { runtime_->drain(); });
  at(5500ms, [&] { delegate().on_owned(); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 6s);
  EXPECT_TRUE(logged("weir: hot restart: taking over 1 socket from an older process"));
}

TEST_F(HotRestartTest, TheTimeLimitOfADrainBeginsWithTheDecision) {
  options_.drain_timeout = 3s;
  stubborn_ = true;
  platform_.record.sockets = {taken(80)};
  at(1500ms, [&] { EXPECT_TRUE(delegate().prepare_ownership()); });
  at(2500ms, [&] { runtime_->drain(); });
  at(7500ms, [&] { delegate().on_owned(); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 10'500ms);
}

TEST_F(HotRestartTest, TheSecondSignalDoesNotWaitForTheDecision) {
  platform_.record.sockets = {taken(80)};
  at(1500ms, [&] { EXPECT_TRUE(delegate().prepare_ownership()); });
  for (const Duration moment : {2500ms, 4200ms}) {
    at(moment, [&] { platform_.raise(loop::Signal::terminate); });
  }
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 4200ms);
  EXPECT_TRUE(logged("weir: SIGTERM again: stopping immediately"));
}

TEST_F(HotRestartTest, ASocketOfAProcessManagerStaysOpenThereAfterATakeover) {
  platform_.record.sockets = {taken(80), taken(443)};
  platform_.record.sockets[0]->set_externally_owned();
  at(1500ms, [&] {
    EXPECT_TRUE(delegate().prepare_ownership());
    delegate().on_owned();
    const auto sockets = loop(0).group().listener_registry().listeners();
    ASSERT_EQ(sockets.size(), 2U);
    for (const auto& each : sockets) {
      EXPECT_EQ(each->stays_open_elsewhere(), each->bound() == address(80));
    }
    runtime_->stop();
  });
  EXPECT_EQ(serve(), 0);
}

TEST_F(HotRestartTest, ADrainingProcessOwnsNoSockets) {
  platform_.record.sockets = {taken(80)};
  at(1500ms, [&] {
    runtime_->drain();
    EXPECT_FALSE(delegate().prepare_ownership());
  });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 2s);
}

TEST_F(HotRestartTest, AFailedTakeoverEndsTheRun) {
  platform_.record.sockets = {taken(80)};
  at(1500ms, [&] { EXPECT_TRUE(delegate().prepare_ownership()); });
  at(2500ms, [&] { delegate().on_takeover_failed("the older process continues"); });
  EXPECT_EQ(serve(), 1);
  EXPECT_EQ(served_, 3s);
  EXPECT_TRUE(logged("weir: the older process continues"));
}

TEST_F(HotRestartTest, AHandoverThatCannotStartEndsTheRun) {
  platform_.record.started = fail(system_error(EAGAIN));
  EXPECT_EQ(serve(), 1);
  EXPECT_EQ(loops_, std::vector<Loop*>(2)) << "no body has begun";
  EXPECT_EQ(platform_.logged(), Calls{"weir: cannot run: " + system_error(EAGAIN).message()});
}

TEST_F(HotRestartTest, AMissingBackendEndsTheHandover) {
  options_.backend = BackendChoice::uring;
  EXPECT_EQ(serve(), 1);
  EXPECT_EQ(platform_.paths.size(), 1U);
}

// --- inherited sockets -------------------------------------------------------------------------

/// Fixture with a socket of a process manager for port 80.
class InheritedSocketTest : public HotRestartTest {
 protected:
  InheritedSocketTest() {
    options_.hot_restart.reset();
    options_.inherited = {{.descriptor = manager_.value(), .name = "web", .endpoint = address(80)}};
    ports_ = {80};
  }
  std::string error_line(int error) const {
    return "weir: the inherited socket " + std::to_string(manager_.value()) +
           " (web) cannot be used: " + system_error(error).message();
  }
  loop::Descriptor manager_ = platform_.listen(address(80), {}).value();
};

TEST_F(InheritedSocketTest, IsUsedForItsAddressAndStaysOpen) {
  at(1500ms, [&] {
    const auto sockets = loop(0).group().listener_registry().listeners();
    ASSERT_EQ(sockets.size(), 1U);
    EXPECT_EQ(sockets[0]->bound(), address(80));
    EXPECT_TRUE(sockets[0]->externally_owned());
    EXPECT_TRUE(sockets[0]->stays_open_elsewhere());
    EXPECT_FALSE(loop(0).accepting_paused()) << "the manager does not accept";
    runtime_->drain();
    EXPECT_TRUE(sockets[0]->stays_open_elsewhere());
  });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 2s);
  EXPECT_EQ(platform_.open_descriptors(), 1U) << "the manager's own";
  EXPECT_TRUE(platform_.paths.empty());
}

TEST_F(InheritedSocketTest, GivesWayToASocketOfTheOlderProcess) {
  for (const bool same_port : {true, false}) {
    options_.hot_restart = HandoverOptions{.path = "meet"};
    platform_.record.sockets = {taken(same_port ? 80 : 443)};
    at(1500ms, [&] {
      EXPECT_EQ(loop(0).group().listener_registry().listeners().size(), same_port ? 1U : 2U);
      runtime_->stop();
    });
    EXPECT_EQ(serve(), 0);
  }
}

TEST_F(InheritedSocketTest, IsUsedIfItSharesItsAddressWithAnother) {
  const loop::Descriptor second = platform_.listen(address(80), {}).value();
  options_.inherited.push_back(
      {.descriptor = second.value(), .name = "web", .endpoint = address(80)});
  at(1500ms, [&] {
    const auto sockets = loop(0).group().listener_registry().listeners();
    EXPECT_EQ(sockets.size(), 2U);
    for (const auto& each : sockets) EXPECT_EQ(each->bound(), address(80));
    runtime_->stop();
  });
  EXPECT_EQ(serve(), 0);
}

TEST_F(InheritedSocketTest, StaysWithTheManagerAfterAFailedHandover) {
  options_.hot_restart = HandoverOptions{.path = "meet"};
  at(1500ms, [&] {
    const auto offered = delegate().sockets_to_offer();
    ASSERT_EQ(offered.size(), 1U);
    EXPECT_TRUE(delegate().confirm_handover(offered));
    delegate().on_handover_failed(offered);
    EXPECT_TRUE(offered[0]->stays_open_elsewhere());
    runtime_->stop();
  });
  EXPECT_EQ(serve(), 0);
}

TEST_F(InheritedSocketTest, ThatIsUnusableEndsTheRun) {
  platform_.inherits = false;
  EXPECT_EQ(serve(), 1);
  EXPECT_TRUE(logged(error_line(ENOTSOCK)));
  platform_.inherits = true;
  platform_.knows_addresses = false;
  EXPECT_EQ(serve(), 1);
  EXPECT_TRUE(logged(error_line(ENOBUFS)));
  EXPECT_EQ(loops_, std::vector<Loop*>(2)) << "no body has begun";
  EXPECT_EQ(platform_.open_descriptors(), 1U) << "the manager's own";
}

}  // namespace
}  // namespace weir::hot_restart_test

// Tests of a runtime in the supervisor and in a worker of several processes.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/contract/detail/supervision.hpp"
#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::runtime_processes_test {
namespace {

using Lines = std::vector<std::string>;

/// The part that a test plays: the supervisor's answers, and the records of its options.
struct Supervision {
  bool in_worker = true;
  int status = 0;
  std::string failure = {};
  std::size_t index = 1;
  bool first_run = true;
  loop::WorkerCommand command = loop::WorkerCommand::serve;
  std::vector<Endpoint> endpoints = {};  // one socket each
  std::vector<loop::SupervisionOptions> asked = {};
};

class FakeWorker final : public loop::WorkerHandle {
 public:
  FakeWorker(loop::Platform& platform, const Supervision& supervision) noexcept
      : platform_(platform), supervision_(supervision) {}
  std::size_t index() const noexcept override { return supervision_.index; }
  bool is_first_run() const noexcept override { return supervision_.first_run; }
  loop::WorkerCommand command() const noexcept override { return supervision_.command; }
  std::vector<Socket> take_sockets() override {
    std::vector<Socket> sockets;
    for (const Endpoint& each : supervision_.endpoints) {
      sockets.push_back({platform_.listen(each, {}).value(), each});
    }
    return sockets;
  }

 private:
  loop::Platform& platform_;
  const Supervision& supervision_;
};

/// A platform whose supervise() returns in a worker, or in the supervisor.
class WorkersPlatform final : public MemoryPlatform {
 public:
  WorkersPlatform() : MemoryPlatform({.cores = 4}) {}
  loop::Supervised supervise(const loop::SupervisionOptions& options) override {
    supervision.asked.push_back(options);
    if (supervision.in_worker) return {.worker = std::make_unique<FakeWorker>(*this, supervision)};
    return {.status = supervision.status, .failure = supervision.failure};
  }
  Supervision supervision;
};

class RuntimeProcesses : public testing::Test {
 protected:
  RuntimeProcesses() {
    options_.announce = false;
    options_.processes = ProcessOptions{.count = 2};
  }
  using Body = std::function<Task<Result<>>(Scope&)>;
  int run(const Body& body) {
    runtime_ = std::make_unique<Runtime>(platform_, options_);
    const Instant began = platform_.now();
    const int status = runtime_->run_on_each_core(body);
    served_ = platform_.now() - began;
    return status;
  }
  int run_nothing() {
    return run([this](Scope&) -> Task<Result<>> {
      ++runs_;
      co_return {};
    });
  }
  /// Runs bodies that end at the first full second in which their loop drains, or after 100
  /// seconds. Core 0 listens at endpoint_.
  int serve() {
    return run([this](Scope& scope) { return serve_until_drained(scope); });
  }
  Task<Result<>> serve_until_drained(Scope& scope) {
    loop::ListenerRegistry::Listener listener;
    if (scope.loop().core() == 0) {
      registry_ = &scope.loop().group().listener_registry();
      WEIR_CO_TRY(auto opened, registry_->listen(platform_, endpoint_, {}));
      listener = std::move(opened);
    }
    for (int second = 0; second < 100 && !scope.loop().draining(); ++second) {
      WEIR_CO_TRY(co_await sleep(1s));
    }
    co_return {};
  }
  void at(Duration moment, std::function<void()> event) {
    platform_.at(platform_.now() + moment, std::move(event));
  }
  /// Gives the command and its signal.
  void command(loop::WorkerCommand command) {
    platform_.supervision.command = command;
    platform_.raise(loop::Signal::terminate);
  }
  bool stays_open_elsewhere() const { return registry_->listeners().at(0)->stays_open_elsewhere(); }

  WorkersPlatform platform_;
  RuntimeOptions options_;
  std::unique_ptr<Runtime> runtime_;
  loop::ListenerRegistry* registry_ = nullptr;
  Endpoint endpoint_ = Endpoint::loopback(80);
  int runs_ = 0;
  Duration served_{};
};

// --- the supervisor ----------------------------------------------------------------------------

TEST_F(RuntimeProcesses, TheSupervisorGetsTheOptionsAndItsStatusIsReturned) {
  options_.announce = true;
  options_.cores = 7;
  options_.drain_timeout = 3s;
  options_.processes->count = 3;
  options_.processes->endpoints = {Endpoint::loopback(80), Endpoint::loopback(443)};
  options_.processes->restart.in_a_row_max = 77;
  platform_.supervision.in_worker = false;
  for (const int status : {0, 1, 5}) {
    platform_.supervision.status = status;
    EXPECT_EQ(run_nothing(), status);
  }
  EXPECT_EQ(runs_, 0);
  ASSERT_EQ(platform_.supervision.asked.size(), 3U);
  const loop::SupervisionOptions& asked = platform_.supervision.asked[0];
  EXPECT_EQ(asked.loops, (std::vector<std::size_t>{2, 2, 2})) << "the seventh core is not used";
  EXPECT_EQ(asked.endpoints, options_.processes->endpoints);
  EXPECT_EQ(asked.drain_timeout, 3s);
  EXPECT_EQ(asked.restart.in_a_row_max, 77U);
  EXPECT_TRUE(asked.announce);
  EXPECT_EQ(platform_.logged(), Lines(3, "weir: 3 processes"));
}

TEST_F(RuntimeProcesses, ASilentSupervisorLogsNothing) {
  platform_.supervision.in_worker = false;
  EXPECT_EQ(run_nothing(), 0);
  EXPECT_FALSE(platform_.supervision.asked.at(0).announce);
  EXPECT_TRUE(platform_.logged().empty());
}

TEST_F(RuntimeProcesses, ASupervisorWithoutWorkersLogsTheReason) {
  platform_.supervision.in_worker = false;
  platform_.supervision.failure = "no process left";
  EXPECT_EQ(run_nothing(), 1);
  EXPECT_EQ(platform_.logged(), Lines{"weir: no process left"});
}

TEST_F(RuntimeProcesses, AnUnsupportedCombinationLogsOneLine) {
  const RuntimeOptions allowed = options_;
  options_.hot_restart = HandoverOptions{.path = "meet"};
  EXPECT_EQ(run_nothing(), 1);
  options_ = allowed;
  options_.inherited = {{.descriptor = 3, .name = "web", .endpoint = Endpoint::loopback(80)}};
  EXPECT_EQ(run_nothing(), 1);
  options_ = allowed;
  options_.handle_signals = false;
  EXPECT_EQ(run_nothing(), 1);
  EXPECT_EQ(platform_.logged(),
            Lines({"weir: hot restart (--hot-restart) cannot be combined with worker processes",
                   "weir: inherited sockets cannot be combined with worker processes",
                   "weir: worker processes need RuntimeOptions::handle_signals"}));
  EXPECT_TRUE(platform_.supervision.asked.empty());
  EXPECT_EQ(runs_, 0);
}

TEST_F(RuntimeProcesses, ASingleProcessNeedsNoSupervisor) {
  for (const unsigned count : {0U, 1U}) {
    options_.processes->count = count;
    EXPECT_EQ(run_nothing(), 0);
    EXPECT_EQ(runtime_->core_count(), 4U);
    EXPECT_EQ(std::exchange(runs_, 0), 4) << "on all cores";
  }
  EXPECT_TRUE(platform_.supervision.asked.empty());
}

TEST_F(RuntimeProcesses, EachProcessHasAtLeastOneCore) {
  options_.processes->count = 9;
  EXPECT_EQ(run_nothing(), 0);
  EXPECT_EQ(runtime_->core_count(), 1U);
  EXPECT_EQ(runs_, 1);
}

// --- a worker ----------------------------------------------------------------------------------

TEST_F(RuntimeProcesses, AWorkerHasItsShareOfTheCoresAndRunsOnce) {
  EXPECT_EQ(run_nothing(), 0);
  EXPECT_EQ(runs_, 2) << "on two of four cores";
  EXPECT_TRUE(platform_.logged().empty());
  EXPECT_EQ(runtime_->run_on_each_core([this](Scope&) -> Task<> {
    ++runs_;
    co_return;
  }),
            1);
  EXPECT_EQ(runs_, 2);
  EXPECT_EQ(platform_.logged(), Lines{"weir: cannot run again in a worker process: the first run "
                                      "used its sockets"});
}

TEST_F(RuntimeProcesses, WorkersPinTheirLoopsToDifferentCpus) {
  for (const std::size_t index : {0U, 1U, 2U}) {
    platform_.supervision.index = index;
    EXPECT_EQ(run_nothing(), 0);
    const RuntimeReport report = runtime_->report();
    ASSERT_EQ(report.cores.size(), 2U);
    for (int core = 0; core < 2; ++core) {
      const int cpu = static_cast<int>(index) * 2 + core;
      EXPECT_EQ(report.cores[static_cast<std::size_t>(core)].cpu, index < 2 ? cpu : -1);
    }
  }
}

TEST_F(RuntimeProcesses, OnlyTheFirstRunOfTheFirstWorkerLogsItsConfiguration) {
  for (const bool announce : {true, false}) {
    for (const std::size_t index : {0U, 1U}) {
      for (const bool first_run : {true, false}) {
        options_.announce = announce;
        platform_.supervision.index = index;
        platform_.supervision.first_run = first_run;
        const std::size_t before = platform_.logged().size();
        EXPECT_EQ(run_nothing(), 0);
        const std::size_t lines = platform_.logged().size() - before;
        const bool first = index == 0 && first_run;
        EXPECT_EQ(lines, announce ? (first ? 4U : 1U) : 0U) << index << first_run;
      }
    }
  }
}

TEST_F(RuntimeProcesses, AWorkerListensOnTheSocketsOfItsSupervisor) {
  platform_.supervision.endpoints = {Endpoint::loopback(80)};
  at(1500ms, [&] {
    const auto sockets = registry_->listeners();
    ASSERT_EQ(sockets.size(), 1U);
    EXPECT_EQ(sockets[0]->bound(), Endpoint::loopback(80));
    EXPECT_TRUE(sockets[0]->externally_owned());
    EXPECT_TRUE(sockets[0]->stays_open_elsewhere());
    runtime_->drain();
    EXPECT_FALSE(sockets[0]->stays_open_elsewhere()) << "no later run of this worker serves them";
  });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 2s);
  EXPECT_EQ(platform_.open_descriptors(), 0U);
}

TEST_F(RuntimeProcesses, AWorkerThatDrainsAloneLeavesAUnixSocketToTheOthers) {
  endpoint_ = *Endpoint::parse("unix:/run/a.sock");
  platform_.supervision.endpoints = {endpoint_};
  at(1500ms, [&] {
    runtime_->drain();
    EXPECT_TRUE(stays_open_elsewhere()) << "all workers share it";
  });
  EXPECT_EQ(serve(), 0);
  at(1500ms, [&] { command(loop::WorkerCommand::drain); });
  at(1700ms, [&] { EXPECT_FALSE(stays_open_elsewhere()) << "the others drain too"; });
  EXPECT_EQ(serve(), 0);
}

TEST_F(RuntimeProcesses, AFailedWorkerLeavesItsConnectionsToItsNextRun) {
  platform_.supervision.endpoints = {Endpoint::loopback(80)};
  options_.drain_timeout = 1h;
  at(1500ms, [&] { EXPECT_TRUE(stays_open_elsewhere()); });
  at(3500ms, [&] {
    EXPECT_TRUE(stays_open_elsewhere()) << "it drains because of a failure";
    command(loop::WorkerCommand::drain);
  });
  at(4500ms, [&] { EXPECT_FALSE(stays_open_elsewhere()) << "there is no next run"; });
  const auto fails = [this](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 0) {
      registry_ = &scope.loop().group().listener_registry();
      const auto opened = registry_->listen(platform_, Endpoint::loopback(80), {});
      EXPECT_TRUE(opened);
      const auto slept = co_await sleep(8s);
      co_return slept;
    }
    WEIR_CO_TRY(co_await sleep(2s));
    co_return fail(Errc::limit_reached);
  };
  EXPECT_EQ(run(fails), 1);
  EXPECT_EQ(served_, 8s);
}

TEST_F(RuntimeProcesses, ASignalOfAnotherProcessHasNoEffect) {
  at(1500ms, [&] { command(loop::WorkerCommand::serve); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 100s);
  EXPECT_TRUE(platform_.logged().empty());
}

TEST_F(RuntimeProcesses, AWorkerObeysTheCommandToDrain) {
  at(1500ms, [&] { command(loop::WorkerCommand::drain); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 2s);
}

TEST_F(RuntimeProcesses, AWorkerObeysTheCommandToStop) {
  at(1500ms, [&] { command(loop::WorkerCommand::stop); });
  EXPECT_EQ(serve(), 0);
  EXPECT_EQ(served_, 1500ms) << "its work is cancelled";
}

TEST_F(RuntimeProcesses, AClosedObjectIsNoFailureIfTheWorkersDrain) {
  const auto closed = [](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 0) co_return {};
    co_return fail(Errc::closed);
  };
  EXPECT_EQ(run(closed), 1);
  EXPECT_EQ(platform_.logged().size(), 1U);
  for (const loop::WorkerCommand told : {loop::WorkerCommand::drain, loop::WorkerCommand::stop}) {
    platform_.supervision.command = told;
    EXPECT_EQ(run(closed), 0) << "another worker may have closed it";
  }
  EXPECT_EQ(platform_.logged().size(), 1U);
}

TEST_F(RuntimeProcesses, WorkersShareNamedDatagramPorts) {
  loop::DatagramOptions shared;
  shared.local = Endpoint::loopback(53);
  shared.reuse_port = true;
  const auto other = platform_.open_datagrams(shared);
  ASSERT_TRUE(other);
  Result<> opened;
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() != 0) co_return {};
    const auto socket = scope.loop().group().listener_registry().open_datagrams(platform_, shared);
    opened = socket ? Result<>() : fail(socket.error());
    co_return {};
  };
  EXPECT_EQ(run(body), 0);
  EXPECT_TRUE(opened);
  options_.processes.reset();
  EXPECT_EQ(run(body), 0);
  EXPECT_EQ(opened.error(), system_error(EADDRINUSE)) << "a single process shares with no other";
}

}  // namespace
}  // namespace weir::runtime_processes_test

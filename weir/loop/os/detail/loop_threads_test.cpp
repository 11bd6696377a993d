// Tests of the threads that run loops: polling, scheduling, CPU time, and loops that do not end.
#include "weir/loop/os/detail/os_thread.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/process/child_process.hpp"
#include "weir/os/detail/process/scheduling.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::loop::loop_threads_test {
namespace {

using namespace std::chrono_literals;

/// A platform that stores its log lines.
class LoggingPlatform final : public OsPlatform {
 public:
  void write_line(std::string_view line) noexcept override {
    const std::lock_guard lock(mutex_);
    logged_.emplace_back(line);
  }
  std::vector<std::string> logged() {
    const std::lock_guard lock(mutex_);
    return logged_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> logged_;
};

class LoopThreadsTest : public testing::Test {
 protected:
  void make_loops(unsigned count, const LoopSchedule& schedule = {}) {
    for (unsigned core = 0; core < count; ++core) {
      loops_.push_back(
          Loop::make(platform_, {.backend = BackendChoice::epoll, .core = core}).value());
      placements_.push_back({loops_.back().get(), -1, schedule});
    }
  }
  void stop_all() {
    for (const auto& loop : loops_) loop->stop();
  }
  Result<> run(RunControl* control = nullptr) {
    return run_on_threads(platform_, placements_, control);
  }
  std::uint64_t turns_of(std::size_t loop) { return loops_[loop]->counters().turns.value(); }

  LoggingPlatform platform_;
  std::vector<std::unique_ptr<CallProbe>> calls_;  // outlive the loops, which may not run them
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<LoopPlacement> placements_;
};

TEST_F(LoopThreadsTest, RunsNothingWithoutLoops) {
  EXPECT_TRUE(run());
}

// The loop has no work. A loop that slept would make no turn until the stop.
TEST_F(LoopThreadsTest, ABusyPollingLoopNeverSleeps) {
  make_loops(1, {.busy_poll = true});
  bool slept = false;
  std::thread stopper([&] {
    while (turns_of(0) < 1000) slept = slept || loops_[0]->is_sleeping();
    loops_[0]->stop();
  });
  EXPECT_TRUE(run());
  stopper.join();
  EXPECT_FALSE(slept);
}

TEST_F(LoopThreadsTest, ALoopWithBusyWaitPollsBeforeItSleeps) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "no thread spins on a single CPU";
  make_loops(1, {.busy_wait = 100s});
  std::uint64_t turns_at_stop = 0;
  std::thread stopper([&] {
    while (turns_of(0) < 1000) std::this_thread::yield();
    loops_[0]->stop();
    turns_at_stop = turns_of(0);
  });
  EXPECT_TRUE(run());
  stopper.join();
  EXPECT_LT(turns_of(0), turns_at_stop + 1000) << "a stopping loop does not spin on";
}

TEST_F(LoopThreadsTest, ALoopWithBusyWaitSleepsAfterItsTime) {
  make_loops(1, {.busy_wait = 1ms});
  std::thread stopper([&] {
    while (!loops_[0]->is_sleeping()) std::this_thread::yield();
    loops_[0]->stop();
  });
  EXPECT_TRUE(run());
  stopper.join();
}

TEST_F(LoopThreadsTest, ALoopWithBusyWaitRunsItsPosts) {
  make_loops(1, {.busy_wait = 50us});
  constexpr int rounds = 300;
  std::atomic<int> ran{0};
  CallProbe call([&] {
    if (ran.fetch_add(1) + 1 == rounds) loops_[0]->stop();
  });
  std::thread poster([&] {
    for (int round = 0; round < rounds; ++round) {
      while (ran.load() < round) std::this_thread::yield();
      loops_[0]->post(call);
    }
  });
  EXPECT_TRUE(run());
  poster.join();
  EXPECT_EQ(ran.load(), rounds);
}

TEST_F(LoopThreadsTest, NoLoopRunsIfItsRequiredScheduleIsRefused) {
  make_loops(3, {.fifo_priority = 1000, .fifo_required = true});
  for (const auto& loop : loops_) {  // a loop that runs all the same ends
    calls_.push_back(std::make_unique<CallProbe>([&] { loop->stop(); }));
    loop->post(*calls_.back());
  }
  EXPECT_EQ(run().error(), system_error(EINVAL));
  for (std::size_t loop = 0; loop < 3; ++loop) EXPECT_EQ(turns_of(loop), 0U);
  const auto lines = platform_.logged();
  ASSERT_EQ(lines.size(), 1U) << "the error is the same for all threads";
  EXPECT_EQ(lines[0], "weir: SCHED_FIFO with priority 1000 refused: Invalid argument");
}

TEST_F(LoopThreadsTest, RunsAsAnOrdinaryThreadIfItsScheduleIsRefused) {
  make_loops(2, {.fifo_priority = 1000});
  std::vector<int> policies(2, -1);
  std::vector<std::unique_ptr<CallProbe>> calls;
  for (std::size_t loop = 0; loop < 2; ++loop) {
    calls.push_back(std::make_unique<CallProbe>([this, &policies, loop] {
      policies[loop] = ::sched_getscheduler(0);
      loops_[loop]->stop();
    }));
    loops_[loop]->post(*calls.back());
  }
  EXPECT_TRUE(run());
  EXPECT_EQ(policies, (std::vector<int>{SCHED_OTHER, SCHED_OTHER}));
  EXPECT_EQ(platform_.logged().size(), 1U);
}

TEST_F(LoopThreadsTest, RunsWithTheFifoPriorityThatTheKernelAllows) {
  bool allowed = false;
  std::thread([&] { allowed = os::set_fifo_priority(1).has_value(); }).join();
  if (!allowed) GTEST_SKIP() << "this process may not use SCHED_FIFO";
  make_loops(1, {.fifo_priority = 1, .fifo_required = true});
  int policy = -1;
  sched_param parameters{};
  CallProbe call([&] {
    policy = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    ::sched_getparam(0, &parameters);
    loops_[0]->stop();
  });
  loops_[0]->post(call);
  EXPECT_TRUE(run());
  EXPECT_EQ(policy, SCHED_FIFO);
  EXPECT_EQ(parameters.sched_priority, 1);
  EXPECT_TRUE(platform_.logged().empty());
}

TEST_F(LoopThreadsTest, LogsWhyAThreadIsNotPinned) {
  make_loops(3);
  placements_[1].cpu = 1 << 19;
  stop_all();
  EXPECT_TRUE(run());
  const auto lines = platform_.logged();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0],
            "weir: core 1 is not pinned to CPU 524288: " + system_error(EINVAL).message() +
                " (cpuset.cpus of its cgroup must include that CPU)");
}

/// A platform whose thread waits in its log until another loop runs, for at most 50 ms.
class WaitingPlatform final : public OsPlatform {
 public:
  void write_line(std::string_view) noexcept override {
    for (const Instant end = os::monotonic_now() + 50ms; os::monotonic_now() < end && !ran;)
      std::this_thread::yield();
    ran_before_all_were_configured = ran.load();
  }
  std::atomic<bool> ran = false;
  std::atomic<bool> ran_before_all_were_configured = false;
};

TEST_F(LoopThreadsTest, NoLoopRunsBeforeAllThreadsAreConfigured) {
  make_loops(2);
  placements_[1].cpu = 1 << 19;  // is logged
  WaitingPlatform platform;
  CallProbe call([&] {
    platform.ran = true;
    stop_all();
  });
  loops_[0]->post(call);
  EXPECT_TRUE(run_on_threads(platform, placements_, nullptr));
  EXPECT_TRUE(platform.ran);
  EXPECT_FALSE(platform.ran_before_all_were_configured);
}

TEST_F(LoopThreadsTest, MeasuresTheCpuTimeOfEachLoop) {
  make_loops(2);
  EXPECT_EQ(loops_[0]->metrics().cpu_time(), Duration(0));
  CallProbe busy([&] {
    while (loops_[0]->metrics().cpu_time() < 1ms) {
    }
    stop_all();
  });
  loops_[0]->post(busy);
  EXPECT_TRUE(run());
  const Duration used = loops_[0]->metrics().cpu_time();
  EXPECT_GE(used, 1ms);
  EXPECT_EQ(loops_[0]->metrics().cpu_time(), used) << "the thread has ended";
}

/// A control whose time to abandon the loops can be changed.
class AbandonControl final : public RunControl {
 public:
  void on_signal(Signal) override {}
  Instant abandon_at() noexcept override { return abandon_at_.load(); }
  void on_abandon_change(std::function<void()> changed) override {
    const std::lock_guard lock(mutex_);
    changed_ = std::move(changed);
  }
  void abandon_at(Instant moment) {
    abandon_at_ = moment;
    const std::lock_guard lock(mutex_);
    if (changed_) changed_();
  }
  bool is_watched() {
    const std::lock_guard lock(mutex_);
    return changed_ != nullptr;
  }

 private:
  std::atomic<Instant> abandon_at_{never};
  std::mutex mutex_;
  std::function<void()> changed_;
};

/// Runs `body` in a child process. Returns how the child has ended.
template <class Body>
std::string end_of_child(Body body) {
  for (int tries = 0; os::count_threads() > 1 && tries < 1000; ++tries) ::poll(nullptr, 0, 1);
  auto child = os::fork_child();
  if (!child) return child.error().message();
  if (*child) return (*child)->wait().to_string();
  ::_exit(body());
}

class AbandonedLoops : public LoopThreadsTest {
 protected:
  AbandonControl control_;
};

TEST_F(AbandonedLoops, AreReportedOnlyDuringTheRun) {
  make_loops(1);
  EXPECT_FALSE(control_.is_watched());
  bool watched = false;
  CallProbe call([&] {
    watched = control_.is_watched();
    loops_[0]->stop();
  });
  loops_[0]->post(call);
  EXPECT_TRUE(run(&control_));
  EXPECT_TRUE(watched);
  EXPECT_FALSE(control_.is_watched());
}

TEST_F(AbandonedLoops, EndTheProcessIfALoopStaysInAHandler) {
  const std::string end = end_of_child([this] {
    make_loops(2);
    std::optional<CallProbe> busy;
    busy.emplace([&] { loops_[1]->ready(*busy); });  // the other loop makes progress
    CallProbe stuck([] {
      for (;;) ::pause();
    });
    loops_[0]->post(stuck);
    loops_[1]->post(*busy);
    control_.abandon_at(platform_.now());
    return run(&control_) ? 2 : 3;
  });
  EXPECT_EQ(end, "exit status 1");
}

TEST_F(AbandonedLoops, EndTheProcessIfNoLoopRunsAnything) {
  const os::Pipe log = os::open_pipe().value();
  const std::string end = end_of_child([&] {
    ::dup2(log.write_end.get(), STDERR_FILENO);
    OsPlatform platform;
    make_loops(2);
    control_.abandon_at(platform.now());
    return run_on_threads(platform, placements_, &control_) ? 2 : 3;
  });
  EXPECT_EQ(end, "exit status 1");
  std::string line(200, '\0');
  line.resize(static_cast<std::size_t>(
      std::max<ssize_t>(::read(log.read_end.get(), line.data(), line.size()), 0)));
  EXPECT_EQ(line,
            "weir: an event loop does not return (does a handler block?): exiting with "
            "status 1\n");
}

TEST_F(AbandonedLoops, EndTheProcessIfTheTimeIsSetDuringTheRun) {
  const std::string end = end_of_child([this] {
    make_loops(1);
    CallProbe stuck([&] {
      control_.abandon_at(platform_.now());
      for (;;) ::pause();
    });
    loops_[0]->post(stuck);
    return run(&control_) ? 2 : 3;
  });
  EXPECT_EQ(end, "exit status 1");
}

// The loops are checked twice, a second apart. One of them is idle, and runs only if it is woken.
TEST_F(AbandonedLoops, MayContinueWhileTheyMakeProgress) {
  const std::string end = end_of_child([this] {
    make_loops(3);
    const Instant begun = platform_.now();
    std::optional<CallProbe> busy;
    busy.emplace([&] {
      if (platform_.now() - begun > 2500ms) return stop_all();
      loops_[1]->ready(*busy);
    });
    loops_[1]->post(*busy);
    control_.abandon_at(begun);
    return run(&control_) ? 0 : 3;
  });
  EXPECT_EQ(end, "exit status 0");
}

TEST_F(AbandonedLoops, MayContinueIfTheTimeIsTakenBack) {
  const std::string end = end_of_child([this] {
    make_loops(1);
    CallProbe slow([&] {
      control_.abandon_at(platform_.now());
      ::poll(nullptr, 0, 300);
      control_.abandon_at(never);
      ::poll(nullptr, 0, 1700);
      loops_[0]->stop();
    });
    loops_[0]->post(slow);
    return run(&control_) ? 0 : 3;
  });
  EXPECT_EQ(end, "exit status 0");
}

}  // namespace
}  // namespace weir::loop::loop_threads_test

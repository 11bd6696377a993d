#include "tests/cancel_sweep.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <random>
#include <string>
#include <system_error>
#include <tuple>

#include "weir/net/listen/listener.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/test/sweep_budget.hpp"

namespace weir::tests {
namespace {

std::size_t blocks_here() {
  BlockPool& blocks = Loop::current()->blocks();
  blocks.collect();
  return blocks.blocks_in_use();
}

Task<std::size_t> blocks_of_both() {
  const std::size_t there = co_await on_core(1, blocks_here);
  co_return there + blocks_here();
}

Task<> nap(Duration pause) {
  std::ignore = co_await sleep(pause);
}

/// The resources in use between two runs, including the frames of the measuring task.
struct InUse {
  std::size_t blocks = static_cast<std::size_t>(-1);
  std::size_t timers = static_cast<std::size_t>(-1);
};

/// Waits until at most `most` is in use, and returns what is in use. Closing with io_uring, and
/// memory that other threads return, take a moment.
Task<InUse> settle(InUse most, Loop& loop) {
  const Instant until = after(loop.platform().now(), std::chrono::seconds(20));
  for (;;) {
    InUse now;
    now.blocks = co_await blocks_of_both();
    now.timers = loop.timers().armed();
    const bool settled = now.blocks <= most.blocks && now.timers <= most.timers;
    if (settled || loop.platform().now() >= until) co_return now;
    std::ignore = co_await sleep(std::chrono::microseconds(200));
  }
}

std::string_view origin_name(CancelOrigin origin) {
  switch (origin) {
    case CancelOrigin::loop_turn:
      return "in round ";
    case CancelOrigin::timer:
      return "by a timer, step ";
    case CancelOrigin::other_core:
      return "from the other core, step ";
  }
  return {};
}

/// Returns the next step: each of the first 16, then random steps with growing distances. If the
/// process samples, it leaves out two of three; see SweepBudget. Late steps cost the most.
std::size_t next_step(CancelOrigin origin, std::size_t step, std::minstd_rand& draw) {
  constexpr std::size_t each_up_to = 16;
  const bool samples = SweepBudget::samples();
  if (origin != CancelOrigin::loop_turn || step < each_up_to) {
    return step + 1 + (samples ? draw() % 5 : 0);
  }
  return step + 1 + draw() % (samples ? 3 * step : 2 * step / 3);
}

/// Runs the case once, sleeps for `rest`, and returns what is in use afterwards.
Task<InUse> run_once(const SweepCase& test_case, SweepEnvironment& env, CancelInjector& injector,
                     Duration rest, InUse most) {
  co_await test_case.run(injector, env);
  co_await env.wait_until_idle();
  if (rest != Duration::zero()) std::ignore = co_await sleep(rest);
  co_return co_await settle(most, env.loop());
}

Task<> sweep(Scope& scope, const SweepCase& test_case, std::minstd_rand& draw) {
  constexpr int undisturbed = 2;  // they create what is made once, such as a pool's threads
  SweepEnvironment env(scope);
  InUse most;
  for (int number = 0; number < undisturbed; ++number) {
    SCOPED_TRACE(std::string(test_case.name) + ", not cancelled");
    CancelInjector injector(env, CancelOrigin::loop_turn, CancelInjector::never_fires);
    most = co_await run_once(test_case, env, injector, std::chrono::milliseconds(5), InUse());
  }
  constexpr std::array everywhere = {CancelOrigin::loop_turn, CancelOrigin::timer,
                                     CancelOrigin::other_core};
  for (const CancelOrigin origin : everywhere) {
    const std::size_t steps = origin == CancelOrigin::loop_turn ? CancelInjector::never_fires
                                                                : CancelInjector::timed_steps;
    // A case that ended before this step may take longer in the next run.
    std::size_t chances = origin == CancelOrigin::loop_turn ? 1 : 4;
    for (std::size_t step = 0; step < steps; step = next_step(origin, step, draw)) {
      SCOPED_TRACE(std::string(test_case.name) + ", cancelled " + std::string(origin_name(origin)) +
                   std::to_string(step));
      CancelInjector injector(env, origin, step);
      const InUse now = co_await run_once(test_case, env, injector, {}, most);
      EXPECT_LE(now.blocks, most.blocks) << "memory is left";
      EXPECT_LE(now.timers, most.timers) << "timers are left";
      if (testing::Test::HasFailure()) co_return;
      if (!injector.fired() && --chances == 0) break;
    }
  }
}

Task<> sweep_on_first(Scope& scope, Runtime* runtime, std::span<const SweepCase> cases,
                      std::uint32_t seed) {
  if (scope.loop().core() != 0) {
    // The other core only runs what core 0 sends to it, until the runtime stops.
    std::ignore = co_await sleep_until(never);
    co_return;
  }
  std::minstd_rand draw(seed);
  for (const SweepCase& each : cases) {
    co_await sweep(scope, each, draw);
    if (testing::Test::HasFailure()) break;
  }
  runtime->stop();
}

/// Returns a quarter of the cases if the process samples; see SweepBudget.
std::vector<SweepCase> sample(std::span<const SweepCase> cases, std::uint64_t seed) {
  return SweepBudget::sample(std::vector(cases.begin(), cases.end()), 4, seed);
}

}  // namespace

Task<> back_off(std::size_t rounds) {
  constexpr std::size_t rounds_max = 100;
  co_await yield();
  if (rounds > rounds_max) std::ignore = co_await sleep(std::chrono::microseconds(100));
}

void CancelInjector::begin() {
  if (step_ == never_fires) return;
  if (step_ == 0) return source_.cancel();
  pending_ = true;
  if (origin_ == CancelOrigin::loop_turn) return loop_.ready(*this);
  env_.spawn(fire_after_delay());
}

Task<> CancelInjector::end() {
  task_done_ = true;
  for (std::size_t rounds = 0; pending_; ++rounds) co_await back_off(rounds);
}

void CancelInjector::run(loop::Runnable& self) {
  auto& injector = static_cast<CancelInjector&>(self);
  injector.pending_ = false;
  if (injector.task_done_) return;
  if (--injector.step_ == 0) return injector.source_.cancel();
  injector.pending_ = true;
  injector.loop_.ready(injector);
}

Task<> CancelInjector::fire_after_delay() {
  Duration pause = std::chrono::microseconds(5);  // doubled with each step, up to 2.6 ms
  for (std::size_t step = 1; step < step_; ++step) pause *= 2;
  if (origin_ == CancelOrigin::timer) {
    std::ignore = co_await sleep(pause);
  } else {
    co_await on_core(1, nap, pause);
  }
  pending_ = false;
  if (!task_done_) source_.cancel();
}

TempDirectory::TempDirectory(const SweepEnvironment& env) : files_(env.loop().platform().files()) {
  static std::size_t number = 0;
  root_ = "/tmp/weir-sweep-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  const auto made = files_.make_directory(root_, 0700);
  EXPECT_TRUE(made) << root_ << ": " << made.error().message();
}

TempDirectory::~TempDirectory() {
  constexpr std::size_t entries_max = 100;
  const auto entries = files_.list(root_, entries_max);
  EXPECT_TRUE(entries) << root_;
  if (!entries) return;
  for (const os::DirectoryEntry& each : *entries) {
    EXPECT_TRUE(files_.remove(path(each.name))) << each.name;
  }
  EXPECT_TRUE(files_.remove(root_)) << root_;
}

void TempDirectory::write(std::string_view name, std::string_view text) const {
  const auto file = files_.open(path(name), {.mode = os::FileMode::truncate});
  ASSERT_TRUE(file) << file.error().message();
  const auto written = files_.write_at(file->value(), to_bytes(text), 0);
  ASSERT_TRUE(written && *written == text.size());
}

Task<Pair> connect_pair() {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  if (!listener) throw std::system_error(listener.error(), "connect_pair() cannot listen");
  auto both = all(as_task(listener->accept()), tcp::connect(listener->local_address()));
  auto streams = co_await std::move(both);
  if (!streams) throw std::system_error(streams.error(), "connect_pair() cannot connect");
  co_return Pair{std::move(std::get<0>(*streams)), std::move(std::get<1>(*streams))};
}

void CancelSweep::sweep_all(std::span<const SweepCase> cases) {
  RuntimeOptions options;
  options.cores = 2;
  options.backend = to_backend_choice(GetParam());
  options.pin = false;
  options.handle_signals = false;
  options.announce = false;
  const auto seed = static_cast<std::uint32_t>(test_seed());
  SCOPED_TRACE(test_replay() + std::to_string(seed));
  Runtime runtime(options);
  const std::vector<SweepCase> sampled = sample(cases, seed);
  EXPECT_EQ(runtime.run_on_each_core(sweep_on_first, &runtime, std::span(sampled), seed), 0);
}

void sweep_all_in_world(std::span<const SweepCase> all_cases) {
  const sim::WorldOptions options = fresh_world_options();
  sim::World world(options);
  const std::vector<SweepCase> sampled = sample(all_cases, options.seed);
  const std::span<const SweepCase> cases = sampled;
  world.host("host", {.cores = 2}).start([cases, seed = options.seed](loop::Platform& platform) {
    Runtime runtime(platform, {.cores = 2, .announce = false});
    return runtime.run_on_each_core(sweep_on_first, &runtime, cases, seed);
  });
  const sim::WorldReport report = world.run_until_done(std::chrono::hours(10));
  EXPECT_TRUE(report.ok()) << report.text();
}

}  // namespace weir::tests

#include "tests/cancel_sweep.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <random>
#include <string>
#include <tuple>

#include "weir/net/listen/listener.hpp"
#include "weir/task/combinators.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/world.hpp"

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
  static_cast<void>(co_await sleep(pause));
}

/// What is in use between two runs, the frames of who looks included.
struct InUse {
  std::size_t blocks = static_cast<std::size_t>(-1);
  std::size_t timers = static_cast<std::size_t>(-1);
};

/// Waits until no more than that is in use, since what io_uring closes, and what comes home from
/// other threads, takes a moment; gives what is.
Task<InUse> settle(InUse most, Loop& loop) {
  const Instant until = after(loop.host().now(), std::chrono::seconds(20));
  for (;;) {
    InUse now;
    now.blocks = co_await blocks_of_both();
    now.timers = loop.timers().armed();
    const bool settled = now.blocks <= most.blocks && now.timers <= most.timers;
    if (settled || loop.host().now() >= until) co_return now;
    static_cast<void>(co_await sleep(std::chrono::microseconds(200)));
  }
}

std::string_view name_of(From from) {
  switch (from) {
    case From::a_round:
      return "in round ";
    case From::a_timer:
      return "by a timer, step ";
    case From::other_core:
      return "from the other core, step ";
  }
  return {};
}

/// Each of the first rounds, then drawn ones that are ever further apart.
std::size_t next_step(From from, std::size_t step, std::minstd_rand& draw) {
  constexpr std::size_t each_up_to = 16;
  if (from != From::a_round || step < each_up_to) return step + 1;
  return step + 1 + draw() % (2 * step / 3);
}

/// What is in use behind one run, and a rest.
Task<InUse> run_once(const SweepCase& the_case, Stage& stage, Blow& blow, Duration rest,
                     InUse most) {
  co_await the_case.run(blow, stage);
  co_await stage.quiet();
  if (rest != Duration::zero()) static_cast<void>(co_await sleep(rest));
  co_return co_await settle(most, stage.loop());
}

Task<> sweep(Scope& scope, const SweepCase& the_case, std::minstd_rand& draw) {
  constexpr int undisturbed = 2;  // whatever is made once, such as a pool's threads, is there then
  Stage stage(scope);
  InUse most;
  for (int number = 0; number < undisturbed; ++number) {
    SCOPED_TRACE(std::string(the_case.name) + ", not cancelled");
    Blow blow(stage, From::a_round, Blow::never_falls);
    most = co_await run_once(the_case, stage, blow, std::chrono::milliseconds(5), InUse());
  }
  constexpr std::array everywhere = {From::a_round, From::a_timer, From::other_core};
  for (const From from : everywhere) {
    const std::size_t steps = from == From::a_round ? Blow::never_falls : Blow::timed_steps;
    // What takes so long one time may take longer the next.
    std::size_t chances = from == From::a_round ? 1 : 4;
    for (std::size_t step = 0; step < steps; step = next_step(from, step, draw)) {
      SCOPED_TRACE(std::string(the_case.name) + ", cancelled " + std::string(name_of(from)) +
                   std::to_string(step));
      Blow blow(stage, from, step);
      const InUse now = co_await run_once(the_case, stage, blow, {}, most);
      EXPECT_LE(now.blocks, most.blocks) << "memory is left";
      EXPECT_LE(now.timers, most.timers) << "timers are left";
      if (testing::Test::HasFailure()) co_return;
      if (!blow.fell() && --chances == 0) break;
    }
  }
}

Task<> sweep_on_first(Scope& scope, Runtime* runtime, std::span<const SweepCase> cases,
                      std::uint32_t seed) {
  if (scope.loop().core() != 0) {
    // The other core does what it is asked to, until all is over.
    static_cast<void>(co_await sleep_until(never));
    co_return;
  }
  std::minstd_rand draw(seed);
  for (const SweepCase& each : cases) {
    co_await sweep(scope, each, draw);
    if (testing::Test::HasFailure()) break;
  }
  runtime->stop();
}

}  // namespace

Task<> a_while(std::size_t rounds) {
  constexpr std::size_t rounds_max = 100;
  co_await yield();
  if (rounds > rounds_max) static_cast<void>(co_await sleep(std::chrono::microseconds(100)));
}

void Blow::begin() {
  if (step_ == never_falls) return;
  if (step_ == 0) return source_.cancel();
  on_its_way_ = true;
  if (from_ == From::a_round) return loop_.ready(*this);
  stage_.spawn(fall_in_time());
}

Task<> Blow::end() {
  over_ = true;
  for (std::size_t rounds = 0; on_its_way_; ++rounds) co_await a_while(rounds);
}

void Blow::run(Runnable& self) {
  auto& blow = static_cast<Blow&>(self);
  blow.on_its_way_ = false;
  if (blow.over_) return;
  if (--blow.step_ == 0) return blow.source_.cancel();
  blow.on_its_way_ = true;
  blow.loop_.ready(blow);
}

Task<> Blow::fall_in_time() {
  Duration pause = std::chrono::microseconds(5);  // doubled with each step, up to 2.6 ms
  for (std::size_t step = 1; step < step_; ++step) pause *= 2;
  if (from_ == From::a_timer) {
    static_cast<void>(co_await sleep(pause));
  } else {
    co_await on_core(1, nap, pause);
  }
  on_its_way_ = false;
  if (!over_) source_.cancel();
}

Folder::Folder(const Stage& stage) : files_(stage.loop().host().files()) {
  static std::size_t number = 0;
  root_ = "/tmp/weir-sweep-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  const auto made = files_.make_directory(root_, 0700);
  EXPECT_TRUE(made) << root_ << ": " << made.error().message();
}

Folder::~Folder() {
  constexpr std::size_t entries_max = 100;
  const auto entries = files_.list(root_, entries_max);
  EXPECT_TRUE(entries) << root_;
  if (!entries) return;
  for (const os::DirectoryEntry& each : *entries) {
    EXPECT_TRUE(files_.remove(path(each.name))) << each.name;
  }
  EXPECT_TRUE(files_.remove(root_)) << root_;
}

void Folder::write(std::string_view name, std::string_view text) const {
  const auto file = files_.open(path(name), {.mode = os::FileMode::replace});
  ASSERT_TRUE(file) << file.error().message();
  const auto written = files_.write_at(file->value(), to_bytes(text), 0);
  ASSERT_TRUE(written && *written == text.size());
}

Task<Pair> connect_pair() {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  auto both = all(as_task(listener->accept()), tcp::connect(listener->local_address()));
  auto streams = co_await std::move(both);
  co_return Pair{std::move(std::get<0>(*streams)), std::move(std::get<1>(*streams))};
}

void CancelSweep::sweep_all(std::span<const SweepCase> cases) {
  RuntimeOptions options;
  options.cores = 2;
  options.backend = choice_of(GetParam());
  options.pin = false;
  options.handle_signals = false;
  options.announce = false;
  const auto seed = static_cast<std::uint32_t>(test_seed());
  SCOPED_TRACE(test_replay() + std::to_string(seed));
  Runtime runtime(options);
  EXPECT_EQ(runtime.run_on_each_core(sweep_on_first, &runtime, cases, seed), 0);
}

void sweep_all_in_a_world(std::span<const SweepCase> cases) {
  const WorldOptions options = fresh_world();
  World world(options);
  world.host("host", {.cores = 2}).start([cases, seed = options.seed](Host& host) {
    Runtime runtime(host, {.cores = 2, .announce = false});
    return runtime.run_on_each_core(sweep_on_first, &runtime, cases, seed);
  });
  const WorldReport report = world.run_until_done(std::chrono::hours(10));
  EXPECT_TRUE(report.ok()) << report.text();
}

}  // namespace weir::tests

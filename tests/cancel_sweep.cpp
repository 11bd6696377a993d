#include "tests/cancel_sweep.hpp"

#include <chrono>
#include <string>
#include <tuple>

#include "weir/net/listener.hpp"
#include "weir/task/together.hpp"

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

Task<> sweep(Scope& scope, const SweepCase& the_case) {
  constexpr int undisturbed = 2;  // whatever is made once, such as a pool's threads, is there then
  constexpr std::size_t never_falls = static_cast<std::size_t>(-1);
  constexpr std::size_t each_up_to = 16;  // rounds; then in growing steps
  Stage stage(scope);
  InUse most;
  std::size_t round = 0;
  for (int number = 0;; ++number) {
    const bool disturbed = number >= undisturbed;
    SCOPED_TRACE(std::string(the_case.name) + ", cancelled in round " + std::to_string(round));
    Blow blow(stage.loop(), disturbed ? round : never_falls);
    co_await the_case.run(blow, stage);
    co_await stage.quiet();
    if (!disturbed) static_cast<void>(co_await sleep(std::chrono::milliseconds(5)));
    const InUse now = co_await settle(most, stage.loop());
    EXPECT_LE(now.blocks, most.blocks) << "memory is left";
    EXPECT_LE(now.timers, most.timers) << "timers are left";
    if (!disturbed) {
      most = number + 1 == undisturbed ? now : InUse();
      continue;
    }
    if (!blow.fell() || testing::Test::HasFailure()) break;
    round += 1 + (round < each_up_to ? 0 : round / 3);
  }
}

Task<> sweep_on_first(Scope& scope, Runtime* runtime, std::span<const SweepCase> cases) {
  if (scope.loop().core() != 0) {
    // The other core does what it is asked to, until all is over.
    static_cast<void>(co_await sleep_until(never));
    co_return;
  }
  for (const SweepCase& each : cases) {
    co_await sweep(scope, each);
    if (testing::Test::HasFailure()) break;
  }
  runtime->stop();
}

}  // namespace

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
  Runtime runtime(options);
  EXPECT_EQ(runtime.run_on_each_core(sweep_on_first, &runtime, cases), 0);
}

}  // namespace weir::tests

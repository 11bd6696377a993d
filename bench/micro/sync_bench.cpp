// Measures the synchronisation of tasks on one core: uncontended, and with two tasks in turn.
#include <benchmark/benchmark.h>

#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/generator.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/select.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/latch.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/sync/rate_limiter.hpp"
#include "weir/task/sync/semaphore.hpp"

namespace weir {
namespace {

struct Bench {
  OsPlatform platform;
  std::unique_ptr<Loop> loop = Loop::make(platform, {.backend = BackendChoice::epoll}).value();
  CancelSource cancel;  // tasks of a server can always be cancelled

  void run(Task<> task) { weir::run(*loop, std::move(task), &cancel); }
};

// --- uncontended --------------------------------------------------------------------------------

Task<> lock_often(benchmark::State& state) {
  Mutex mutex;
  for (auto _ : state) {
    auto guard = co_await mutex.lock();
    benchmark::DoNotOptimize(guard);
  }
}
Task<> lock_shared_often(benchmark::State& state) {
  SharedMutex mutex;
  for (auto _ : state) {
    auto guard = co_await mutex.lock_shared();
    benchmark::DoNotOptimize(guard);
  }
}
Task<> acquire_often(benchmark::State& state) {
  Semaphore semaphore(3);
  for (auto _ : state) {
    auto permit = co_await semaphore.acquire();
    benchmark::DoNotOptimize(permit);
  }
}
/// One send and one receive per iteration: the cost of two operations.
Task<> send_and_receive_often(benchmark::State& state) {
  Channel<std::uint64_t> channel(16);
  std::uint64_t number = 0;
  for (auto _ : state) {
    auto sent = co_await channel.send(++number);
    auto received = co_await channel.receive();
    benchmark::DoNotOptimize(sent);
    benchmark::DoNotOptimize(received);
  }
  state.SetItemsProcessed(2 * state.iterations());
}
Task<> set_and_wait_often(benchmark::State& state) {
  AutoResetEvent event;
  for (auto _ : state) {
    event.set();
    auto passed = co_await event.wait();
    benchmark::DoNotOptimize(passed);
  }
}
Task<> select_often(benchmark::State& state) {
  Channel<std::uint64_t> full(1), empty(1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(full.try_send(1));
    auto first = co_await select(empty.receive(), full.receive());
    benchmark::DoNotOptimize(first);
  }
}
Task<> limit_often(benchmark::State& state) {
  RateLimiter limiter({.tokens = 1'000'000'000'000, .per = 1s, .burst = 1'000'000'000});
  for (auto _ : state) {
    auto taken = co_await limiter.acquire();
    benchmark::DoNotOptimize(taken);
  }
}
Generator<std::uint64_t> count() {
  for (std::uint64_t number = 0;; ++number) co_yield std::uint64_t(number);
}
Task<> generate_often(benchmark::State& state) {
  auto numbers = count();
  for (auto _ : state) {
    auto number = co_await numbers.next();
    benchmark::DoNotOptimize(number);
  }
}

template <auto function>
void alone(benchmark::State& state) {
  Bench bench;
  bench.run(function(state));
}
BENCHMARK(alone<lock_often>)->Name("mutex");
BENCHMARK(alone<lock_shared_often>)->Name("shared_mutex");
BENCHMARK(alone<acquire_often>)->Name("semaphore");
BENCHMARK(alone<send_and_receive_often>)->Name("channel_send_and_receive");
BENCHMARK(alone<set_and_wait_often>)->Name("event_set_and_wait");
BENCHMARK(alone<select_often>)->Name("channel_try_send_and_select_of_two");
BENCHMARK(alone<limit_often>)->Name("rate_limiter");
BENCHMARK(alone<generate_often>)->Name("generator_next");

// --- two tasks in turn --------------------------------------------------------------------------

Task<> lock_until(Mutex& mutex, const bool& over) {
  while (!over) {
    const auto guard = co_await mutex.lock();
    co_await yield();
  }
}
/// The lock changes its owner twice per iteration.
Task<> contended_mutex(benchmark::State& state) {
  Mutex mutex;
  bool over = false;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(lock_until(mutex, over));
    for (auto _ : state) {
      const auto guard = co_await mutex.lock();
      co_await yield();
    }
    over = true;
  };
  std::ignore = co_await with_scope(body);
}
BENCHMARK(alone<contended_mutex>)->Name("mutex_taken_in_turns");

Task<> echo(Channel<std::uint64_t>& from, Channel<std::uint64_t>& to) {
  while (const auto number = co_await from.receive()) {
    if (!co_await to.send(*number)) break;
  }
}
/// A round trip, with a switch to the other task in each direction.
Task<> channel_round_trip(benchmark::State& state) {
  Channel<std::uint64_t> there(1), back(1);
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(echo(there, back));
    for (auto _ : state) {
      std::ignore = co_await there.send(1);
      auto number = co_await back.receive();
      benchmark::DoNotOptimize(number);
    }
    there.close();
  };
  std::ignore = co_await with_scope(body);
}
BENCHMARK(alone<channel_round_trip>)->Name("channel_round_trip");

}  // namespace
}  // namespace weir

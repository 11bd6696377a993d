// B8: 5,000,000 times, one coroutine waits on an auto-reset event and a queued function's coroutine
// sets it; the same loop on bare handles beside it. In one thread, and on one loop per core at
// once; the peak of memory is told.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <array>
#include <coroutine>
#include <cstdlib>
#include <vector>

#include "weir/cores/runtime.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os_host.hpp"
#include "weir/task/event.hpp"
#include "weir/task/run.hpp"
#include "weir/task/scope.hpp"

namespace {

constexpr std::int64_t rounds = 5'000'000;

/// Kilobytes that the process has had at most.
double peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss);
}

void report(benchmark::State& state, double before) {
  state.SetItemsProcessed(state.iterations() * rounds);
  state.counters["peak_KiB"] = peak_kilobytes();
  state.counters["grown_KiB"] = peak_kilobytes() - before;
}

// --- Weir ---------------------------------------------------------------------------------------

weir::Task<> set_later(weir::CoreAutoResetEvent& event) {
  co_await weir::yield();
  event.set();
}

weir::Task<std::int64_t> wait_often(weir::Scope& scope, std::int64_t times) {
  weir::CoreAutoResetEvent event;
  std::int64_t passed = 0;
  for (std::int64_t round = 0; round < times; ++round) {
    scope.spawn(set_later(event));
    if (co_await event.wait()) ++passed;
  }
  co_return passed;
}

void weir_tasks(benchmark::State& state) {
  weir::OsHost host;
  const auto loop = weir::Loop::make(host, {.backend = weir::BackendChoice::epoll}).value();
  const double before = peak_kilobytes();
  for (auto _ : state) {
    const auto passed = weir::run(*loop, weir::with_scope(wait_often, rounds));
    if (!passed || *passed != rounds) std::abort();
  }
  report(state, before);
}

/// The rounds on every core at once. Items are those of all cores.
void weir_tasks_on_each_core(benchmark::State& state) {
  weir::RuntimeOptions options;
  options.backend = weir::BackendChoice::epoll;
  options.announce = options.handle_signals = false;
  weir::Runtime runtime(options);
  const auto body = [](weir::Scope& scope) -> weir::Task<> {
    if (co_await wait_often(scope, rounds) != rounds) std::abort();
  };
  const double before = peak_kilobytes();
  for (auto _ : state) {
    if (runtime.run_on_each_core(body) != 0) std::abort();
  }
  report(state, before);
  const auto cores = static_cast<std::int64_t>(runtime.core_count());
  state.SetItemsProcessed(state.iterations() * rounds * cores);
  state.counters["cores"] = static_cast<double>(cores);
}

// --- Bare handles -------------------------------------------------------------------------------
// The least that does this work: no cancellation, no errors, nobody who owns or awaits what runs; a
// ring of handles for a queue.

/// Where coroutine frames come from unless told otherwise.
struct HeapFrames {};

/// A free list that nothing else uses and no foreign thread can return to.
struct ListedFrames {
  static void* operator new(std::size_t bytes) {
    void*& first = free[bytes / 64];
    if (first == nullptr) return std::malloc((bytes / 64 + 1) * 64);
    return std::exchange(first, *static_cast<void**>(first));
  }
  static void operator delete(void* frame, std::size_t bytes) {
    *static_cast<void**>(frame) = std::exchange(free[bytes / 64], frame);
  }
  static inline std::array<void*, 64> free{};
};

template <class Frames>
struct Bare {
  struct promise_type : Frames {
    Bare get_return_object() noexcept {
      return Bare(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::abort(); }
  };
  explicit Bare(std::coroutine_handle<> made) noexcept : handle(made) {}
  std::coroutine_handle<> handle;
};

class BareQueue {
 public:
  void push(std::coroutine_handle<> handle) noexcept { ring_[last_++ % ring_.size()] = handle; }
  void run() {
    while (first_ != last_) ring_[first_++ % ring_.size()].resume();
  }

 private:
  std::array<std::coroutine_handle<>, 16> ring_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

class BareEvent {
 public:
  explicit BareEvent(BareQueue& queue) noexcept : queue_(queue) {}
  void set() noexcept {
    if (waiting_) {
      queue_.push(std::exchange(waiting_, nullptr));
    } else {
      set_ = true;
    }
  }
  bool await_ready() noexcept { return std::exchange(set_, false); }
  void await_suspend(std::coroutine_handle<> handle) noexcept { waiting_ = handle; }
  void await_resume() const noexcept {}

 private:
  BareQueue& queue_;
  std::coroutine_handle<> waiting_;
  bool set_ = false;
};

template <class Frames>
[[gnu::noinline]] Bare<Frames> set_bare(BareEvent& event) {
  event.set();
  co_return;
}

template <class Frames>
Bare<Frames> wait_bare(BareQueue& queue, std::int64_t& passed) {
  BareEvent event(queue);
  for (std::int64_t round = 0; round < rounds; ++round) {
    queue.push(set_bare<Frames>(event).handle);
    co_await event;
    ++passed;
  }
}

template <class Frames>
void bare_handles(benchmark::State& state) {
  const double before = peak_kilobytes();
  for (auto _ : state) {
    BareQueue queue;
    std::int64_t passed = 0;
    queue.push(wait_bare<Frames>(queue, passed).handle);
    queue.run();
    if (passed != rounds) std::abort();
  }
  report(state, before);
}

BENCHMARK(weir_tasks)->Unit(benchmark::kMillisecond);
BENCHMARK(weir_tasks_on_each_core)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(bare_handles<HeapFrames>)->Unit(benchmark::kMillisecond);
BENCHMARK(bare_handles<ListedFrames>)->Unit(benchmark::kMillisecond);

}  // namespace

// B8: a coroutine waits repeatedly on an auto-reset event, and a queued coroutine sets it. Measures
// one loop, one loop per core at the same time, and bare handles. Prints one line of JSON per
// round: millions per second and core, the peak memory of the process, and the growth of its
// allocations in KiB after the first hundredth. Each measurement runs in its own process.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "bench/inside/child_process.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/event.hpp"

namespace {

constexpr std::int64_t times = 5'000'000;
constexpr std::int64_t warm_up = times / 100;

using Clock = std::chrono::steady_clock;

struct Results {
  double millions = 0;  // per second and core
  double grown_kib = 0;
  double peak_kib = 0;
  unsigned cores = 1;
};

/// The exact size of this process's private data in memory: heap, stacks and globals. It excludes
/// the pages of programs and libraries. Allocates no memory.
double anonymous_kib() {
  std::array<char, 4096> text{};
  std::FILE* const file = std::fopen("/proc/self/smaps_rollup", "re");
  if (file == nullptr) return 0;
  std::setbuf(file, nullptr);
  const std::size_t count = std::fread(text.data(), 1, text.size() - 1, file);
  std::fclose(file);
  text[count] = '\0';
  const char* const found = std::strstr(text.data(), "\nAnonymous:");
  return found == nullptr ? 0 : std::strtod(found + std::strlen("\nAnonymous:"), nullptr);
}

/// The peak resident size of the process.
double peak_kib() {
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<double>(usage.ru_maxrss) : 0;
}

/// A measurement from its construction to results().
class Measurement {
 public:
  Measurement() : anonymous_(anonymous_kib()), begun_(Clock::now()) {}
  Results results(unsigned cores = 1) const {
    const std::chrono::duration<double> took = Clock::now() - begun_;
    return {static_cast<double>(times) / took.count() / 1e6, anonymous_kib() - anonymous_,
            peak_kib(), cores};
  }

 private:
  double anonymous_;
  Clock::time_point begun_;
};

// ---- Weir ---------------------------------------------------------------------------------------

weir::Task<> set_later(weir::AutoResetEvent& event) {
  co_await weir::yield();
  event.set();
}

weir::Task<std::int64_t> wait_often(weir::Scope& scope, std::int64_t count) {
  weir::AutoResetEvent event;
  std::int64_t passed = 0;
  for (std::int64_t time = 0; time < count; ++time) {
    scope.spawn(set_later(event));
    if (co_await event.wait()) ++passed;
  }
  co_return passed;
}

weir::Task<> wait_in_a_scope(std::int64_t count) {
  const auto passed = co_await weir::with_scope(wait_often, count);
  weir::require(passed && *passed == count);
}

weir::Task<Results> measure_one_loop() {
  co_await wait_in_a_scope(warm_up);
  const Measurement measurement;
  co_await wait_in_a_scope(times);
  co_return measurement.results();
}

Results one_loop() {
  static_cast<void>(weir::os::pin_current_thread(weir::os::allowed_cpus().front()));
  weir::OsPlatform platform;
  const auto loop = weir::Loop::make(platform, {.backend = weir::BackendChoice::epoll}).value();
  return weir::run(*loop, measure_one_loop());
}

/// Blocks each loop until all loops arrive, which a server must never do.
weir::Task<> measure_this_loop(weir::Scope& scope, std::barrier<>& all, Results& results,
                               unsigned cores) {
  co_await wait_in_a_scope(warm_up);
  all.arrive_and_wait();
  const Measurement measurement;
  all.arrive_and_wait();
  co_await wait_in_a_scope(times);
  all.arrive_and_wait();
  if (scope.loop().core() == 0) results = measurement.results(cores);
}

Results loop_per_core() {
  weir::RuntimeOptions options;
  options.backend = weir::BackendChoice::epoll;
  options.announce = options.handle_signals = false;
  weir::Runtime runtime(options);
  const auto cores = static_cast<unsigned>(runtime.core_count());
  std::barrier<> all(static_cast<std::ptrdiff_t>(cores));
  Results results;
  weir::require(
      runtime.run_on_each_core(measure_this_loop, std::ref(all), std::ref(results), cores) == 0);
  return results;
}

// ---- Bare handles -------------------------------------------------------------------------------
// The minimum for this work: no cancellation, no errors, no owner of the coroutines, and a ring of
// handles as the queue.

/// Coroutine frames from the default allocator.
struct HeapFrames {};

/// Coroutine frames from a private free list of one thread.
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
Bare<Frames> wait_bare(BareQueue& queue, std::int64_t count, std::int64_t& passed) {
  BareEvent event(queue);
  for (std::int64_t time = 0; time < count; ++time) {
    queue.push(set_bare<Frames>(event).handle);
    co_await event;
    ++passed;
  }
}

template <class Frames>
void wait_bare_often(std::int64_t count) {
  BareQueue queue;
  std::int64_t passed = 0;
  queue.push(wait_bare<Frames>(queue, count, passed).handle);
  queue.run();
  weir::require(passed == count);
}

template <class Frames>
Results bare_handles() {
  static_cast<void>(weir::os::pin_current_thread(weir::os::allowed_cpus().front()));
  wait_bare_often<Frames>(warm_up);
  const Measurement measurement;
  wait_bare_often<Frames>(times);
  return measurement.results();
}

// ---- All measurements ---------------------------------------------------------------------------

void print(const char* name, const Results& results, const char* end) {
  std::printf(
      "\"%s\": {\"millions\": %.3f, \"grown KiB\": %.0f, \"peak KiB\": %.0f, \"cores\": %u}%s",
      name, results.millions, results.grown_kib, results.peak_kib, results.cores, end);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  for (unsigned long round = 0; round < rounds; ++round) {
    std::fputs("{", stdout);
    std::fflush(stdout);
    print("Weir, one loop", weir::run_in_child_process(one_loop), ", ");
    print("Weir, a loop per core", weir::run_in_child_process(loop_per_core), ", ");
    print("bare handles, malloc", weir::run_in_child_process(bare_handles<HeapFrames>), ", ");
    print("bare handles, a free list", weir::run_in_child_process(bare_handles<ListedFrames>),
          "}\n");
    std::fflush(stdout);
  }
}

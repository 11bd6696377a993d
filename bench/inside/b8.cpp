// B8: again and again one coroutine waits on an auto-reset event and a queued function's coroutine
// sets it: on one loop, on one loop per core at once, and the same on bare handles. Prints one line
// of JSON for each round: millions a second, of each core, the most that the process ever had in
// memory, and by how many KiB what it allocated has grown since the first hundredth. Each of them
// is measured in a process of its own.
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
#include "weir/runtime/runtime.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/scope.hpp"

namespace {

constexpr std::int64_t times = 5'000'000;
constexpr std::int64_t warm_up = times / 100;

using Clock = std::chrono::steady_clock;

struct Figures {
  double millions = 0;  // a second, of each core
  double grown_kib = 0;
  double peak_kib = 0;
  unsigned cores = 1;
};

/// What of this process's own data is in memory, exactly: heap, stacks, globals, and not the pages
/// of programs and libraries, which come as code is first run. Takes no memory itself.
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

/// The most that was in memory, of everything.
double peak_kib() {
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<double>(usage.ru_maxrss) : 0;
}

/// From its start to figures().
class Measurement {
 public:
  Measurement() : anonymous_(anonymous_kib()), begun_(Clock::now()) {}
  Figures figures(unsigned cores = 1) const {
    const std::chrono::duration<double> took = Clock::now() - begun_;
    return {static_cast<double>(times) / took.count() / 1e6, anonymous_kib() - anonymous_,
            peak_kib(), cores};
  }

 private:
  double anonymous_;
  Clock::time_point begun_;
};

// ---- Weir ---------------------------------------------------------------------------------------

weir::Task<> set_later(weir::CoreAutoResetEvent& event) {
  co_await weir::yield();
  event.set();
}

weir::Task<std::int64_t> wait_often(weir::Scope& scope, std::int64_t count) {
  weir::CoreAutoResetEvent event;
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

weir::Task<Figures> measure_one_loop() {
  co_await wait_in_a_scope(warm_up);
  const Measurement measurement;
  co_await wait_in_a_scope(times);
  co_return measurement.figures();
}

Figures one_loop() {
  static_cast<void>(weir::os::pin_this_thread(weir::os::allowed_cpus().front()));
  weir::OsHost host;
  const auto loop = weir::Loop::make(host, {.backend = weir::BackendChoice::epoll}).value();
  return weir::run(*loop, measure_one_loop());
}

/// Loops wait for one another here, which no server should let them do.
weir::Task<> measure_this_loop(weir::Scope& scope, std::barrier<>& all, Figures& figures,
                               unsigned cores) {
  co_await wait_in_a_scope(warm_up);
  all.arrive_and_wait();
  const Measurement measurement;
  all.arrive_and_wait();
  co_await wait_in_a_scope(times);
  all.arrive_and_wait();
  if (scope.loop().core() == 0) figures = measurement.figures(cores);
}

Figures loop_per_core() {
  weir::RuntimeOptions options;
  options.backend = weir::BackendChoice::epoll;
  options.announce = options.handle_signals = false;
  weir::Runtime runtime(options);
  const auto cores = static_cast<unsigned>(runtime.core_count());
  std::barrier<> all(static_cast<std::ptrdiff_t>(cores));
  Figures figures;
  weir::require(
      runtime.run_on_each_core(measure_this_loop, std::ref(all), std::ref(figures), cores) == 0);
  return figures;
}

// ---- Bare handles -------------------------------------------------------------------------------
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
Figures bare_handles() {
  static_cast<void>(weir::os::pin_this_thread(weir::os::allowed_cpus().front()));
  wait_bare_often<Frames>(warm_up);
  const Measurement measurement;
  wait_bare_often<Frames>(times);
  return measurement.figures();
}

// ---- All of it ----------------------------------------------------------------------------------

void print(const char* name, const Figures& of, const char* behind) {
  std::printf(
      "\"%s\": {\"millions\": %.3f, \"grown KiB\": %.0f, \"peak KiB\": %.0f, \"cores\": %u}%s",
      name, of.millions, of.grown_kib, of.peak_kib, of.cores, behind);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  for (unsigned long round = 0; round < rounds; ++round) {
    std::fputs("{", stdout);
    std::fflush(stdout);
    print("Weir, one loop", weir::in_a_fresh_process(one_loop), ", ");
    print("Weir, a loop per core", weir::in_a_fresh_process(loop_per_core), ", ");
    print("bare handles, malloc", weir::in_a_fresh_process(bare_handles<HeapFrames>), ", ");
    print("bare handles, a free list", weir::in_a_fresh_process(bare_handles<ListedFrames>), "}\n");
    std::fflush(stdout);
  }
}

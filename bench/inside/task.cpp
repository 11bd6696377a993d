// Measures creating, running and destroying a task, beside the minimum for a coroutine: a bare
// handle to a frame from the same memory. Prints one line of JSON per round: nanoseconds per task.
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/task.hpp"

namespace weir {
namespace {

constexpr int times = 2'000'000;

double nanoseconds_each(std::chrono::steady_clock::time_point begin) {
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / times;
}

[[gnu::noinline]] Task<int> one() {
  co_return 1;
}

Task<double> tasks() {
  int sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int time = 0; time < times; ++time) sum += co_await one();
  const double took = nanoseconds_each(begin);
  if (sum != times) std::abort();
  co_return took;
}

struct FromPool {
  static void* operator new(std::size_t size) { return BlockPool::allocate(size); }
  static void operator delete(void* frame) noexcept { BlockPool::release(frame); }
};
struct FromHeap {};

/// A coroutine without errors, cancellation or continuation; its creator reads the value directly.
template <class Memory>
struct Bare {
  struct promise_type : Memory {
    Bare get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_value(int returned) noexcept { value = returned; }
    void unhandled_exception() noexcept { std::terminate(); }
    int value = 0;
  };
  std::coroutine_handle<promise_type> handle;
};

template <class Memory>
[[gnu::noinline]] Bare<Memory> bare_one() {
  co_return 1;
}

template <class Memory>
double bare_handles() {
  int sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int time = 0; time < times; ++time) {
    const Bare<Memory> bare = bare_one<Memory>();
    bare.handle.resume();
    sum += bare.handle.promise().value;
    bare.handle.destroy();
  }
  const double took = nanoseconds_each(begin);
  if (sum != times) std::abort();
  return took;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  using namespace weir;
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  OsPlatform platform;
  const auto loop = Loop::make(platform, {.backend = BackendChoice::poll}).value();
  for (unsigned long round = 0; round < rounds; ++round) {
    const double task = run(*loop, tasks());
    const ScopedBlockPool use(loop->blocks());
    const double pooled = bare_handles<FromPool>();
    const double heaped = bare_handles<FromHeap>();
    std::printf(
        "{\"Task\": {\"all\": %.3f}, \"bare handle, same memory\": {\"all\": %.3f}, "
        "\"bare handle, malloc\": {\"all\": %.3f}}\n",
        task, pooled, heaped);
  }
}

// Measures the uncontended Mutex, Semaphore and Channel beside a std::mutex. Prints one line of
// JSON per round: nanoseconds per operation.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sync/channel.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/sync/semaphore.hpp"

namespace weir {
namespace {

constexpr std::int64_t times = 5'000'000;

using Clock = std::chrono::steady_clock;

double nanoseconds_each(Clock::time_point begin, std::int64_t operations) {
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  return took.count() / static_cast<double>(operations);
}

/// Keeps the compiler from removing the computation of `value`.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

Task<double> lock_often() {
  Mutex mutex;
  const auto begin = Clock::now();
  for (std::int64_t time = 0; time < times; ++time) {
    const auto guard = co_await mutex.lock();
    keep(guard);
  }
  co_return nanoseconds_each(begin, times);
}

Task<double> acquire_often() {
  Semaphore semaphore(3);
  const auto begin = Clock::now();
  for (std::int64_t time = 0; time < times; ++time) {
    const auto permit = co_await semaphore.acquire();
    keep(permit);
  }
  co_return nanoseconds_each(begin, times);
}

Task<double> send_and_receive_often() {
  Channel<std::int64_t> channel(16);
  std::int64_t sum = 0;
  const auto begin = Clock::now();
  for (std::int64_t time = 0; time < times; ++time) {
    const auto sent = co_await channel.send(time);
    keep(sent);
    const auto received = co_await channel.receive();
    sum += *received;
  }
  const double each = nanoseconds_each(begin, 2 * times);
  if (sum != times * (times - 1) / 2) std::abort();
  co_return each;
}

double lock_std_often() {
  std::mutex mutex;
  const auto begin = Clock::now();
  for (std::int64_t time = 0; time < times; ++time) {
    const std::lock_guard guard(mutex);
    keep(guard);
  }
  return nanoseconds_each(begin, times);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  using namespace weir;
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  OsPlatform platform;
  const auto loop = Loop::make(platform, {.backend = BackendChoice::poll}).value();
  CancelSource cancel;  // tasks of a server can always be cancelled
  for (unsigned long round = 0; round < rounds; ++round) {
    const double mutex = run(*loop, lock_often(), &cancel);
    const double semaphore = run(*loop, acquire_often(), &cancel);
    const double channel = run(*loop, send_and_receive_often(), &cancel);
    std::printf(
        "{\"Mutex, lock and unlock\": {\"each\": %.3f}, "
        "\"Semaphore, acquire and release\": {\"each\": %.3f}, "
        "\"Channel, send or receive\": {\"each\": %.3f}, "
        "\"std::mutex, lock and unlock\": {\"each\": %.3f}}\n",
        mutex, semaphore, channel, lock_std_often());
    std::fflush(stdout);
  }
}

// Measures messages per second from one core to another, one way and in batches, through a Mailbox:
// from a task on another core and from a thread without a loop. A queue with a mutex and an eventfd
// write per message is the comparison. Prints one line of JSON per round: millions per second, and
// wake-ups or turns of the receiver per million messages.
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/inside/two_cores.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/task/combinators.hpp"

namespace weir {
namespace {

constexpr std::uint64_t messages = 4'000'000;
constexpr std::uint64_t messages_by_eventfd = 400'000;
constexpr std::uint64_t batch = 256;
constexpr std::size_t capacity = 8192;

using Clock = std::chrono::steady_clock;

struct Results {
  double millions_a_second = 0;
  double wakes_a_million = 0;
};

Results to_results(Clock::time_point began, std::uint64_t count, std::uint64_t wakes) {
  const std::chrono::duration<double> took = Clock::now() - began;
  return {static_cast<double>(count) / took.count() / 1e6,
          static_cast<double>(wakes) / static_cast<double>(count) * 1e6};
}

void print(const char* name, const Results& of) {
  std::printf("\"%s\": {\"millions a second\": %.2f, \"wakes a million\": %.0f}", name,
              of.millions_a_second, of.wakes_a_million);
}

void expect(std::uint64_t found, std::uint64_t expected) {
  if (found == expected) return;
  std::fputs("messages are lost or out of order\n", stderr);
  std::exit(1);
}

// ---- A mailbox ----------------------------------------------------------------------------------

/// Receives messages numbered from 0 and checks their order. Returns their number.
Task<std::uint64_t> receive(Mailbox<std::uint64_t>& mailbox, std::uint64_t count) {
  std::uint64_t next = 0;
  while (next < count) {
    const auto number = co_await mailbox.receive();
    expect(*number, next++);
  }
  co_return next;
}

/// Sends from a task, one batch per turn of its loop.
Task<std::uint64_t> send(Mailbox<std::uint64_t>& mailbox) {
  for (std::uint64_t number = 0; number < messages; ++number) {
    std::ignore = co_await mailbox.send(number);
    if (number % batch == 0) co_await yield();
  }
  co_return messages;
}

Task<std::uint64_t> send_from_there(Mailbox<std::uint64_t>& mailbox) {
  co_return co_await on_core(1, send, std::ref(mailbox));
}

void send_from_outside(Mailbox<std::uint64_t>& mailbox) {
  static_cast<void>(os::pin_current_thread(1));
  for (std::uint64_t number = 0; number < messages; ++number) {
    while (!mailbox.try_send(std::uint64_t(number))) std::this_thread::yield();
  }
}

Task<Results> by_mailbox(Loop& loop, bool from_outside) {
  Mailbox<std::uint64_t> mailbox({.capacity = capacity});
  const std::uint64_t before = loop.counters().received.value();
  const auto began = Clock::now();
  if (from_outside) {
    std::jthread sender(send_from_outside, std::ref(mailbox));
    expect(co_await receive(mailbox, messages), messages);
  } else {
    std::ignore = co_await all(receive(mailbox, messages), send_from_there(mailbox));
  }
  co_return to_results(began, messages, loop.counters().received.value() - before);
}

// ---- An eventfd for each message ----------------------------------------------------------------

class EventfdQueue {
 public:
  EventfdQueue() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
    if (descriptor_ < 0) std::exit(1);
  }
  ~EventfdQueue() { ::close(descriptor_); }
  EventfdQueue(const EventfdQueue&) = delete;
  EventfdQueue& operator=(const EventfdQueue&) = delete;

  void send(std::uint64_t number) {
    {
      const std::lock_guard lock(mutex_);
      queued_.push_back(number);
    }
    const std::uint64_t one = 1;
    if (::write(descriptor_, &one, sizeof one) != sizeof one) std::exit(1);
  }
  /// Waits for messages and takes all of them.
  void receive(std::vector<std::uint64_t>& taken) {
    std::uint64_t count = 0;
    if (::read(descriptor_, &count, sizeof count) != sizeof count) std::exit(1);
    taken.clear();
    const std::lock_guard lock(mutex_);
    taken.swap(queued_);
  }

 private:
  int descriptor_;
  std::mutex mutex_;
  std::vector<std::uint64_t> queued_;
};

/// Uses this thread and a second thread on another processor.
Results by_eventfd() {
  EventfdQueue queue;
  const auto began = Clock::now();
  std::jthread sender([&] {
    static_cast<void>(os::pin_current_thread(1));
    for (std::uint64_t number = 0; number < messages_by_eventfd; ++number) queue.send(number);
  });
  std::vector<std::uint64_t> taken;
  std::uint64_t next = 0;
  std::uint64_t wakes = 0;
  while (next < messages_by_eventfd) {
    queue.receive(taken);
    ++wakes;
    for (const std::uint64_t number : taken) expect(number, next++);
  }
  return to_results(began, messages_by_eventfd, wakes);
}

// ---- All measurements ---------------------------------------------------------------------------

Task<> measure_once(Loop& loop) {
  const Results from_core = co_await by_mailbox(loop, false);
  const Results from_thread = co_await by_mailbox(loop, true);
  const Results eventfd = by_eventfd();
  std::fputs("{", stdout);
  print("Mailbox, from a core", from_core);
  std::fputs(", ", stdout);
  print("Mailbox, from a thread", from_thread);
  std::fputs(", ", stdout);
  print("an eventfd for each message", eventfd);
  std::puts("}");
  std::fflush(stdout);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  return weir::measure_on_two_cores(argc, argv, weir::measure_once);
}

// Tests events between cores that run on threads; for the thread sanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/event/bus.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::bus_threads_test {
namespace {

constexpr unsigned cores = 3;
constexpr int count = 600;

class EventsOnThreads : public testing::TestWithParam<BackendChoice> {
 protected:
  void SetUp() override {
    const auto made = Loop::make(platform_, {.backend = GetParam()});
    if (!made) GTEST_SKIP() << "not available here: " << made.error().message();
  }
  OsPlatform platform_;
};
INSTANTIATE_TEST_SUITE_P(On, EventsOnThreads,
                         testing::Values(BackendChoice::uring, BackendChoice::epoll,
                                         BackendChoice::poll),
                         [](const auto& backend) {
                           if (backend.param == BackendChoice::uring) return "uring";
                           return backend.param == BackendChoice::epoll ? "epoll" : "poll";
                         });

/// A barrier for tasks of all cores.
class CoreBarrier {
 public:
  Task<> arrive_and_wait(unsigned core) {
    auto begins = begin_.subscribe();
    EXPECT_TRUE(co_await arrivals_.send(core));
    if (core == 0) {
      for (unsigned come = 0; come < cores; ++come) EXPECT_TRUE(co_await arrivals_.receive());
      EXPECT_TRUE(begin_.publish(0));
    }
    EXPECT_TRUE(co_await begins.receive());
  }

 private:
  Mailbox<unsigned> arrivals_;
  Broadcast<int> begin_;
};

struct Message {
  unsigned sender;
  int number;
  std::unique_ptr<std::string> text;
};

/// All cores publish for all cores, through queues that are often full. The messages of each
/// sender arrive in order, each exactly once.
class AllToAll {
 public:
  explicit AllToAll(std::size_t capacity) : bus_(cores, {.capacity = capacity}) {}

  Task<> on_core(Scope& scope) {
    const unsigned core = scope.loop().core();
    CoreEvents& events = bus_.local(scope.loop());
    ManualResetEvent all_received;
    std::array<int, cores> received{};
    const auto registration = events.on([&](const Message& message) {
      EXPECT_EQ(message.number, received[message.sender]);
      EXPECT_EQ(*message.text, std::to_string(message.number));
      ++received[message.sender];
      if (received == expected) all_received.set();
    });
    co_await registered_.arrive_and_wait(core);
    co_await send(events);
    EXPECT_TRUE(co_await all_received.wait());
    co_await finished_.arrive_and_wait(core);
    if (core == 0) co_await bus_.stop();
    EXPECT_EQ(received, expected);
  }

 private:
  static constexpr std::array<int, cores> expected{count, count, count};

  Task<> send(CoreEvents& events) {
    for (int number = 0; number < count; ++number) {
      if (number % 2 == 0) {
        while (!events.publish_to_all(message(events, number))) co_await full();
        continue;
      }
      for (unsigned to = 0; to < cores; ++to) {
        while (!events.publish_on(to, message(events, number))) co_await full();
      }
    }
  }
  static Task<> full() { EXPECT_TRUE(co_await sleep(50us)); }
  static Message message(const CoreEvents& from, int number) {
    return {from.core(), number, std::make_unique<std::string>(std::to_string(number))};
  }

  EventBus bus_;
  CoreBarrier registered_;
  CoreBarrier finished_;
};

/// Publishes from a task and from handlers, in all classes, more events than a turn of the loop
/// handles.
TEST_P(EventsOnThreads, ClassesKeepTheirOrder) {
  struct Numbered {
    EventPriority priority;
    int number;
  };
  constexpr int each = 2000;
  const auto loop = Loop::make(platform_, {.backend = GetParam()}).value();
  EventBus bus(1);
  CoreEvents& events = bus.local(*loop);
  std::vector<EventPriority> classes;
  std::array<int, event_priority_count> seen{};
  const auto registration = events.on([&](const Numbered& event) {
    EXPECT_EQ(event.number, seen[static_cast<std::size_t>(event.priority)]++);
    classes.push_back(event.priority);
  });
  const auto body = [&]() -> Task<> {
    for (int number = 0; number < each; ++number) {
      for (const EventPriority priority : {EventPriority::low, EventPriority::normal,
                                           EventPriority::high, EventPriority::urgent}) {
        EXPECT_TRUE(events.publish(Numbered{priority, number}, {.priority = priority}));
      }
    }
    while (events.queued() != 0) co_await yield();
  };
  run(*loop, body());
  EXPECT_EQ(classes.size(), each * event_priority_count);
  EXPECT_TRUE(std::ranges::is_sorted(classes)) << "the most urgent class first";
}

TEST_P(EventsOnThreads, AllCoresPublishForAllCores) {
  for (const std::size_t capacity : {2U, 7U, 100'000U}) {
    SCOPED_TRACE(capacity);
    RuntimeOptions options;
    options.announce = options.handle_signals = options.pin = false;
    options.backend = GetParam();
    options.cores = cores;
    Runtime runtime(options);
    AllToAll talk(capacity);
    const auto body = [&](Scope& scope) { return talk.on_core(scope); };
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
  }
}

// The second event of a round arrives a little later in each round. In some rounds it arrives while
// the receiver takes the first one. A slow machine has fewer rounds.
TEST_P(EventsOnThreads, AnEventThatArrivesDuringADeliveryIsDeliveredToo) {
  struct Numbered {
    int number;
  };
  constexpr int rounds = 20'000;
  constexpr int pause_max = 4000;
  RuntimeOptions options;
  options.announce = options.handle_signals = options.pin = false;
  options.backend = GetParam();
  options.cores = 2;
  EventBus bus(2);
  Runtime runtime(options);
  std::atomic<int> received = 0;
  std::atomic<bool> listens = false;
  std::atomic<bool> finished = false;
  const auto receive = [&](CoreEvents& events) -> Task<> {
    const auto registration = events.on([&](const Numbered& each) { received = each.number; });
    listens = true;
    while (!finished) co_await yield();
  };
  const auto send = [&](CoreEvents& events) -> Task<> {
    while (!listens) co_await yield();
    const Instant end = after(platform_.now(), 2s);
    for (int round = 0; round < rounds && platform_.now() < end && !HasFailure(); ++round) {
      EXPECT_TRUE(events.publish_on(0, Numbered{2 * round + 1}));
      for (volatile int spun = 0; spun < round % pause_max;) spun = spun + 1;
      const int last = 2 * round + 2;
      EXPECT_TRUE(events.publish_on(0, Numbered{last}));
      const Instant deadline = after(platform_.now(), 10s);
      while (received != last && platform_.now() < deadline) co_await yield();
      EXPECT_EQ(received, last);
    }
    finished = true;
  };
  const auto body = [&](Scope& scope) -> Task<> {
    CoreEvents& events = bus.local(scope.loop());
    return scope.loop().core() == 0 ? receive(events) : send(events);
  };
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
}

/// Destroys the bus after its loops, with events in transit that some cores have not received.
TEST_P(EventsOnThreads, TheLoopsMayEndFirst) {
  auto alive = std::make_shared<int>(7);
  {
    EventBus bus(cores);
    RuntimeOptions options;
    options.announce = options.handle_signals = options.pin = false;
    options.backend = GetParam();
    options.cores = cores;
    Runtime runtime(options);
    const auto body = [&](Scope& scope) -> Task<> {
      CoreEvents& events = bus.local(scope.loop());
      for (int i = 0; i < 3000; ++i) EXPECT_TRUE(events.publish_to_all(alive));
      co_return;
    };
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace weir::bus_threads_test

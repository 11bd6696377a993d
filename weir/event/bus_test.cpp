// Tests events between cores, and how a bus stops.
#include "weir/event/bus.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/runtime/test/runtime_fixture.hpp"

namespace weir::bus_test {
namespace {

struct Greeting {
  unsigned from = 0;
  int number = 0;
};

std::error_code error_of(const Result<>& result) {
  return result ? std::error_code() : result.error();
}

/// Three cores in memory; handlers record events per core.
class EventBusTest : public MultiCoreTest {
 protected:
  explicit EventBusTest(const EventBusOptions& options = {}) { bus_.emplace(3, options); }
  void TearDown() override {
    registrations_.clear();
    bus_.reset();
    MultiCoreTest::TearDown();
  }

  CoreEvents& events(std::size_t core) { return bus_->local(loop(core)); }
  void note_greetings_on_all_cores() {
    for (std::size_t core = 0; core < 3; ++core) {
      registrations_.push_back(events(core).on([this, core](const Greeting& greeting) {
        EXPECT_EQ(Loop::current(), &loop(core));
        recorded_[core].push_back(greeting.number);
        senders_[core].push_back(greeting.from);
      }));
    }
  }
  void run_until_idle() { platform_.run_until_idle(loops()); }
  std::uint64_t handled_on(std::size_t core) { return bus_->counters(core).handled.value(); }

  std::optional<EventBus> bus_;
  std::vector<EventRegistration> registrations_;
  std::array<std::vector<int>, 3> recorded_;
  std::array<std::vector<unsigned>, 3> senders_;
};

using Numbers = std::vector<int>;

TEST_F(EventBusTest, AnEventReachesItsCore) {
  note_greetings_on_all_cores();
  ASSERT_TRUE(events(0).publish(Greeting{.number = 1}));
  ASSERT_TRUE(events(0).publish_on(1, Greeting{.number = 2}));
  ASSERT_TRUE(events(0).publish_on(0, Greeting{.number = 3}));
  ASSERT_TRUE(events(2).publish_on(1, Greeting{.number = 4}));
  run_until_idle();
  EXPECT_EQ(recorded_[0], (Numbers{1, 3}));
  EXPECT_EQ(recorded_[1], (Numbers{2, 4}));
  EXPECT_EQ(recorded_[2], Numbers{});
  EXPECT_EQ(bus_->counters(1).received.value(), 2U);
  EXPECT_EQ(bus_->counters(0).received.value(), 0U);
}

TEST_F(EventBusTest, PublishingForAnUnknownCoreFails) {
  auto alive = std::make_shared<int>(7);
  const auto published = events(0).publish_on(3, alive);
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error(), Errc::not_found);
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_EQ(bus_->counters(0).rejected.value(), 0U) << "no queue was full or closed";
}

TEST_F(EventBusTest, SourcesAreNumberedFromOne) {
  for (std::uint64_t number = 1; number <= 3; ++number) {
    const EventSource source = bus_->make_source();
    EXPECT_TRUE(source);
    EXPECT_EQ(source.number(), number);
  }
  EXPECT_EQ(EventSource().number(), 0U);
}

TEST_F(EventBusTest, ABusOfTwoCoresReachesBoth) {
  registrations_.clear();
  bus_.emplace(2);
  EXPECT_EQ(bus_->core_count(), 2U);
  for (std::size_t core = 0; core < 2; ++core) {
    registrations_.push_back(events(core).on(
        [this, core](const Greeting& greeting) { recorded_[core].push_back(greeting.number); }));
  }
  ASSERT_TRUE(events(0).publish_to_all(Greeting{.number = 1}));
  ASSERT_TRUE(events(1).publish_to_all(Greeting{.number = 2}));
  ASSERT_TRUE(events(0).publish_on(1, Greeting{.number = 3}));
  EXPECT_EQ(error_of(events(0).publish_on(2, Greeting{})), Errc::not_found);
  run_until_idle();
  EXPECT_EQ(recorded_[0], (Numbers{1, 2}));
  EXPECT_EQ(recorded_[1], (Numbers{2, 1, 3}));
}

TEST_F(EventBusTest, ABusOfOneCorePublishesToAll) {
  registrations_.clear();
  bus_.emplace(1);
  registrations_.push_back(
      events(0).on([this](const Greeting& greeting) { recorded_[0].push_back(greeting.number); }));
  ASSERT_TRUE(events(0).publish_to_all(Greeting{.number = 1}));
  ASSERT_TRUE(events(0).publish_on(0, Greeting{.number = 2}));
  EXPECT_EQ(error_of(events(0).publish_on(1, Greeting{})), Errc::not_found);
  run_until_idle();
  EXPECT_EQ(recorded_[0], (Numbers{1, 2}));
}

/// A value of `Bytes` bytes that all are the same.
template <std::size_t Bytes>
struct Filled {
  explicit Filled(char each) { bytes.fill(each); }
  bool is(char each) const {
    return std::ranges::all_of(bytes, [each](char byte) { return byte == each; });
  }
  std::array<char, Bytes> bytes;
};

TEST_F(EventBusTest, ValuesOfEverySizeReachAllCoresUnchanged) {
  std::size_t arrived = 0;
  const auto check = [&]<std::size_t Bytes>(const Filled<Bytes>& value) {
    EXPECT_TRUE(value.is(static_cast<char>(Bytes))) << Bytes;
    ++arrived;
  };
  const auto publish = [&]<std::size_t Bytes>(std::integral_constant<std::size_t, Bytes>) {
    for (std::size_t core = 0; core < 3; ++core) {
      registrations_.push_back(events(core).on([&](const Filled<Bytes>& value) { check(value); }));
    }
    const Filled<Bytes> value(static_cast<char>(Bytes));
    EXPECT_TRUE(events(0).publish_to_all(value));
    EXPECT_TRUE(events(0).publish_on(2, value));
    EXPECT_TRUE(events(0).publish(value));
  };
  [&]<std::size_t... Each>(std::index_sequence<Each...>) {
    (publish(std::integral_constant<std::size_t, Each + 1>()), ...);
    (publish(std::integral_constant<std::size_t, Each + 120>()), ...);
  }(std::make_index_sequence<20>());
  run_until_idle();
  EXPECT_EQ(arrived, 40U * 5);
}

TEST_F(EventBusTest, AllCoresShareOneEvent) {
  struct Shared {
    std::unique_ptr<int> number;  // cannot be copied
    std::shared_ptr<int> alive;
  };
  std::array<const Shared*, 3> seen{};
  for (std::size_t core = 0; core < 3; ++core) {
    registrations_.push_back(events(core).on([&seen, core](const Shared& shared) {
      EXPECT_EQ(*shared.number, 5);
      seen[core] = &shared;
    }));
  }
  auto alive = std::make_shared<int>(7);
  Shared shared{std::make_unique<int>(5), alive};
  ASSERT_TRUE(events(1).publish_to_all(std::move(shared)));
  EXPECT_EQ(alive.use_count(), 2);
  run_until_idle();
  EXPECT_NE(seen[0], nullptr);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_EQ(alive.use_count(), 1) << "the last core has destroyed the event";
}

TEST_F(EventBusTest, EachSenderKeepsItsOrder) {
  note_greetings_on_all_cores();
  const auto body = [this](unsigned core) -> Task<> {
    for (int number = 0; number < 3000; ++number) {
      const Greeting greeting{core, number};
      if (number % 3 == 0) {
        EXPECT_TRUE(events(core).publish_to_all(greeting));
      } else {
        for (unsigned to = 0; to < 3; ++to) EXPECT_TRUE(events(core).publish_on(to, greeting));
      }
      if (number % 100 == 0) co_await yield();
    }
  };
  run_on_cores({[&] { return body(0); }, [&] { return body(1); }, [&] { return body(2); }});
  run_until_idle();
  for (std::size_t to = 0; to < 3; ++to) {
    std::array<Numbers, 3> by_sender;
    for (std::size_t i = 0; i < recorded_[to].size(); ++i) {
      by_sender[senders_[to][i]].push_back(recorded_[to][i]);
    }
    for (const Numbers& of_one : by_sender) EXPECT_EQ(of_one, numbers(0, 2999)) << "to " << to;
  }
}

TEST_F(EventBusTest, PriorityAppliesToEventsOfOtherCores) {
  note_greetings_on_all_cores();
  for (int number = 1; number <= 3; ++number) {
    ASSERT_TRUE(events(0).publish_on(1, Greeting{.number = number}));
  }
  ASSERT_TRUE(events(0).publish_on(1, Greeting{.number = 4}, {.priority = EventPriority::urgent}));
  run_until_idle();
  EXPECT_EQ(recorded_[1], (Numbers{4, 1, 2, 3}));
}

TEST_F(EventBusTest, SourcesAreValidOnAllCores) {
  const EventSource source = bus_->make_source();
  registrations_.push_back(
      events(2).on([this](const Greeting& greeting) { recorded_[2].push_back(greeting.number); },
                   {.from = source}));
  ASSERT_TRUE(events(0).publish_to_all(Greeting{.number = 1}));
  ASSERT_TRUE(events(0).publish_to_all(Greeting{.number = 2}, {.source = source}));
  run_until_idle();
  EXPECT_EQ(recorded_[2], Numbers{2});
}

TEST_F(EventBusTest, ManyInboundEventsLeaveTheTurnToOtherWork) {
  note_greetings_on_all_cores();
  for (int number = 0; number < 10'000; ++number) {
    ASSERT_TRUE(events(0).publish_on(1, Greeting{.number = number}));
  }
  for (std::size_t turn = 1; turn <= 3; ++turn) {
    loop(1).turn(platform_.now());
    EXPECT_EQ(recorded_[1].size(), 1024 * turn);
    EXPECT_EQ(bus_->counters(1).received.value(), 1024 * turn);
    EXPECT_EQ(events(1).queued(), 0U) << "the core has published none of them";
    // Events that arrive meanwhile are behind those that wait.
    if (turn == 1) continue;
    const int number = 9'998 + static_cast<int>(turn);
    ASSERT_TRUE(events(turn == 2 ? 2 : 0).publish_on(1, Greeting{.number = number}));
  }
  run_until_idle();
  EXPECT_EQ(recorded_[1], numbers(0, 10'001));
}

TEST_F(EventBusTest, AnEventThatArrivesBetweenTwoTurnsIsReceived) {
  note_greetings_on_all_cores();
  for (int number = 0; number < 3000; ++number) {
    ASSERT_TRUE(events(0).publish_on(1, Greeting{.number = number}));
  }
  for (int turn = 1; turn <= 4; ++turn) {
    loop(1).turn(platform_.now());
    ASSERT_TRUE(events(2).publish_on(1, Greeting{.from = 2, .number = 2999 + turn}));
  }
  run_until_idle();
  EXPECT_EQ(recorded_[1], numbers(0, 3003));
}

TEST_F(EventBusTest, ACoreHandlesEventsBeforeItsFirstCallOfLocal) {
  ASSERT_TRUE(events(0).publish_to_all(Greeting{}));
  run_until_idle();
  for (std::size_t core = 0; core < 3; ++core) EXPECT_EQ(handled_on(core), 1U) << core;
}

TEST_F(EventBusTest, AFailureIsLoggedWithItsCoreAndItsEvent) {
  registrations_.push_back(
      events(2).on([](const Greeting&) { throw std::runtime_error("out of tune"); }));
  ASSERT_TRUE(events(0).publish_on(2, Greeting{}));
  run_until_idle();
  ASSERT_EQ(platform_.logged().size(), 1U);
  const std::string& line = platform_.logged()[0];
  EXPECT_TRUE(line.starts_with("weir: core 2: a subscriber of the event weir::")) << line;
  EXPECT_TRUE(line.ends_with("::Greeting failed: exception: out of tune")) << line;
}

TEST_F(EventBusTest, MemoryReturnsToThePublisher) {
  struct Large {
    std::array<char, 1000> bytes{};
  };
  const auto body = [this]() -> Task<> {
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(events(0).publish_to_all(Large()));
      EXPECT_TRUE(events(0).publish_on(1, Greeting{}));
    }
    co_return;
  };
  run_on_cores({body});
  run_until_idle();
  loop(0).blocks().collect();
  EXPECT_LE(loop(0).blocks().blocks_in_use(), 1U) << "one chunk of the queue";
}

// ---- Limits -------------------------------------------------------------------------------------

class FewEventsOnCoresTest : public EventBusTest {
 protected:
  FewEventsOnCoresTest() : EventBusTest({.capacity = 2}) {}
};

TEST_F(FewEventsOnCoresTest, OwnAndInboundEventsHaveSeparateCapacities) {
  for (int number = 0; number < 2; ++number) {
    ASSERT_TRUE(events(0).publish_on(1, Greeting{}));
    ASSERT_TRUE(events(1).publish(Greeting{}));
  }
  for (const std::size_t sender : {0U, 1U, 2U}) {
    const auto refused = events(sender).publish_on(1, Greeting{});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), Errc::limit_reached);
    EXPECT_EQ(bus_->counters(sender).rejected.value(), 1U);
  }
  run_until_idle();
  EXPECT_EQ(handled_on(1), 4U);
  ASSERT_TRUE(events(2).publish_on(1, Greeting{}));
  run_until_idle();
  EXPECT_EQ(handled_on(1), 5U);
}

TEST_F(FewEventsOnCoresTest, AllCoresReceiveTheEventOrNone) {
  auto alive = std::make_shared<int>(7);
  ASSERT_TRUE(events(0).publish_on(2, Greeting{}));
  ASSERT_TRUE(events(1).publish_on(2, Greeting{}));
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto refused = events(0).publish_to_all(alive);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), Errc::limit_reached);
  }
  EXPECT_EQ(alive.use_count(), 1);
  run_until_idle();
  EXPECT_EQ(handled_on(0) + handled_on(1), 0U);
  EXPECT_EQ(handled_on(2), 2U);
  // No reserved capacity was lost.
  for (int number = 0; number < 2; ++number) ASSERT_TRUE(events(0).publish_to_all(alive));
  EXPECT_EQ(alive.use_count(), 3);
  run_until_idle();
  EXPECT_EQ(alive.use_count(), 1);
  for (std::size_t core = 0; core < 2; ++core) EXPECT_EQ(handled_on(core), 2U);
  EXPECT_EQ(handled_on(2), 4U);
}

TEST_F(FewEventsOnCoresTest, AFullQueueOfTheCoreItselfRejectsAnEventForAll) {
  for (int number = 0; number < 2; ++number) ASSERT_TRUE(events(0).publish(Greeting{}));
  EXPECT_EQ(error_of(events(0).publish_to_all(Greeting{})), Errc::limit_reached);
  EXPECT_EQ(bus_->counters(0).rejected.value(), 1U);
  EXPECT_EQ(events(0).queued(), 2U);
  ASSERT_TRUE(events(0).publish_on(1, Greeting{})) << "other cores have room";
  run_until_idle();
  ASSERT_TRUE(events(0).publish_to_all(Greeting{}));
  EXPECT_EQ(events(0).queued(), 1U);
  run_until_idle();
  EXPECT_EQ(handled_on(0), 3U);
}

// A rejected event must leave the capacity of every core as it was.
TEST_F(FewEventsOnCoresTest, ARejectedEventReservesNoCapacity) {
  for (unsigned publisher = 0; publisher < 3; ++publisher) {
    for (unsigned full = 0; full < 3; ++full) {
      if (full == publisher) continue;
      SCOPED_TRACE(testing::Message() << "from " << publisher << ", " << full << " is full");
      bus_.emplace(3, EventBusOptions{.capacity = 2});
      for (int number = 0; number < 2; ++number) {
        ASSERT_TRUE(events(publisher).publish_on(full, Greeting{}));
      }
      for (int attempt = 0; attempt < 3; ++attempt) {
        EXPECT_EQ(error_of(events(publisher).publish_to_all(Greeting{})), Errc::limit_reached);
      }
      run_until_idle();
      for (unsigned to = 0; to < 3; ++to) {
        const unsigned from = (to + 1) % 3;
        for (int number = 0; number < 2; ++number) {
          EXPECT_TRUE(events(from).publish_on(to, Greeting{})) << to;
        }
        EXPECT_EQ(error_of(events(from).publish_on(to, Greeting{})), Errc::limit_reached) << to;
      }
      run_until_idle();
    }
  }
}

TEST_F(FewEventsOnCoresTest, NoCoreReceivesAnEventForWhichThereIsNoMemory) {
  auto alive = std::make_shared<int>(7);
  {
    const ScopedBlockPool blocks(loop(0).blocks());
    // The event needs a block, and so does the first event in the publisher's own queue.
    for (const std::size_t allocations : {0U, 1U, 0U, 1U, 1U}) {
      loop(0).blocks().fail_after(allocations);
      EXPECT_THROW(static_cast<void>(events(0).publish_to_all(alive)), std::bad_alloc);
      EXPECT_EQ(alive.use_count(), 1);
      EXPECT_EQ(events(0).queued(), 0U);
    }
    loop(0).blocks().fail_after(0);
    EXPECT_THROW(static_cast<void>(events(0).publish_on(1, alive)), std::bad_alloc);
    EXPECT_EQ(loop(0).blocks().blocks_in_use(), 0U);
  }
  EXPECT_EQ(bus_->counters(0).rejected.value(), 0U);
  for (int number = 0; number < 2; ++number) {
    ASSERT_TRUE(events(0).publish_to_all(alive)) << "no capacity was lost";
  }
  run_until_idle();
  EXPECT_EQ(alive.use_count(), 1);
  for (std::size_t core = 0; core < 3; ++core) EXPECT_EQ(handled_on(core), 2U);
}

TEST_F(EventBusTest, AnEventForWhichItsCoreHasNoMemoryIsDestroyedWithTheBus) {
  auto alive = std::make_shared<int>(7);
  ASSERT_TRUE(events(0).publish_on(1, alive));
  loop(1).blocks().fail_after(0);
  // The exception leaves the loop, which ends with its thread.
  std::thread core([this] { EXPECT_THROW(loop(1).turn(platform_.now()), std::bad_alloc); });
  core.join();
  EXPECT_FALSE(loop(1).blocks().will_fail());
  EXPECT_EQ(alive.use_count(), 2);
  bus_.reset();
  EXPECT_EQ(alive.use_count(), 1);
}

TEST_F(EventBusTest, AQueueHasRoomForAMillionEventsByDefault) {
  EXPECT_EQ(EventBusOptions().capacity, 1'048'576U);
}

// ---- The end ------------------------------------------------------------------------------------

TEST_F(EventBusTest, StopHandlesPublishedEventsAndRejectsNewOnes) {
  note_greetings_on_all_cores();
  const auto body = [this]() -> Task<> {
    for (int number = 0; number < 5000; ++number) {
      EXPECT_TRUE(events(0).publish_to_all(Greeting{.number = number}));
    }
    co_await bus_->stop();
    for (const Numbers& noted : recorded_) EXPECT_EQ(noted, numbers(0, 4999));
    EXPECT_EQ(error_of(events(0).publish(Greeting{})), Errc::closed);
    EXPECT_EQ(error_of(events(0).publish_on(1, Greeting{})), Errc::closed);
    EXPECT_EQ(error_of(events(0).publish_to_all(Greeting{})), Errc::closed);
    co_await bus_->stop();
    bus_.reset();  // stop() has finished all work of the bus
  };
  run_on_cores({body});
}

TEST_F(EventBusTest, StopFreesTheMemoryOfTheQueues) {
  const auto chunks = [this](std::size_t core) {
    loop(core).blocks().collect();
    return loop(core).blocks().blocks_in_use(BlockUse::other);
  };
  const auto body = [&]() -> Task<> {
    for (std::size_t core = 0; core < 3; ++core) EXPECT_EQ(chunks(core), 0U);
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(events(0).publish_to_all(Greeting{}));
      EXPECT_TRUE(events(0).publish_to_all(Greeting{}, {.priority = EventPriority::low}));
    }
    EXPECT_GT(chunks(0), 2U);
    co_await bus_->stop();
    for (std::size_t core = 0; core < 3; ++core) {
      EXPECT_EQ(handled_on(core), 20U);
      EXPECT_EQ(chunks(core), 0U) << core;
    }
  };
  run_on_cores({body});
}

TEST_F(EventBusTest, EveryCoreRejectsEventsAfterStop) {
  const auto stops = [this]() -> Task<> { co_await bus_->stop(); };
  run_on_cores({stops});
  for (unsigned core = 0; core < 3; ++core) {
    EXPECT_EQ(error_of(events(core).publish(Greeting{})), Errc::closed) << core;
    EXPECT_EQ(error_of(events(core).publish_on((core + 1) % 3, Greeting{})), Errc::closed) << core;
    EXPECT_EQ(error_of(events(core).publish_to_all(Greeting{})), Errc::closed) << core;
    EXPECT_EQ(bus_->counters(core).rejected.value(), 3U) << core;
  }
}

TEST_F(EventBusTest, StopEndsAnEndlessChainOfEvents) {
  for (unsigned core = 0; core < 3; ++core) {
    registrations_.push_back(events(core).on([this, core](const Greeting& greeting) {
      const Greeting next{core, greeting.number + 1};
      const auto published = events(core).publish_on((core + 1) % 3, next);
      if (!published) {
        EXPECT_EQ(published.error(), Errc::closed);
        recorded_[0].push_back(greeting.number);
      }
    }));
  }
  const auto body = [this]() -> Task<> {
    EXPECT_TRUE(events(0).publish(Greeting{}));
    for (int i = 0; i < 1000; ++i) co_await yield();
    co_await bus_->stop();
    EXPECT_EQ(recorded_[0].size(), 1U) << "the chain ended with a rejected event";
    bus_.reset();
  };
  run_on_cores({body});
}

TEST_F(EventBusTest, StopDoesNotWaitForTheTasksOfHandlers) {
  bool done = false;
  const auto sleep_a_second = [&done](Greeting) -> Task<> {
    EXPECT_TRUE(co_await sleep(1s));
    done = true;
  };
  const auto scope_body = [&](Scope& scope) -> Task<> {
    const auto handler = events(2).on(scope, sleep_a_second);
    EXPECT_TRUE(events(2).publish(Greeting{}));
    const Instant begun = platform_.now();
    co_await bus_->stop();
    EXPECT_EQ(platform_.now(), begun);
    EXPECT_EQ(handled_on(2), 1U);
    EXPECT_EQ(scope.running(), 1U) << "the task continues in its scope";
    EXPECT_FALSE(done);
  };
  const auto body = [&]() -> Task<> { std::ignore = co_await with_scope(scope_body); };
  run_on_cores({&ByCore::nothing, &ByCore::nothing, body});
  EXPECT_TRUE(done);
}

TEST_F(EventBusTest, StopWorksInACancelledContext) {
  note_greetings_on_all_cores();
  const auto body = [this]() -> Task<> {
    const Context context = co_await this_context();
    CancelSource cancelled(context.cancel);
    cancelled.cancel();
    for (int number = 0; number < 50000; ++number) {
      EXPECT_TRUE(events(0).publish_to_all(Greeting{.number = number}));
    }
    auto stopping = in_context({context.loop, &cancelled}, bus_->stop());
    co_await std::move(stopping);
    for (const Numbers& noted : recorded_) EXPECT_EQ(noted, numbers(0, 49999));
    EXPECT_EQ(error_of(events(0).publish(Greeting{})), Errc::closed);
  };
  run_on_cores({body});
}

TEST_F(EventBusTest, EventsInTransitAreDestroyedWithTheBus) {
  auto alive = std::make_shared<int>(7);
  for (int number = 0; number < 3000; ++number) {
    ASSERT_TRUE(events(0).publish_to_all(alive));
    ASSERT_TRUE(events(1).publish_on(0, alive));
  }
  loop(0).turn(platform_.now());  // some events are received, some handled
  EXPECT_GT(alive.use_count(), 1);
  // The loops may end first.
  group_.set_loops({});
  owned_.clear();
  bus_.reset();
  EXPECT_EQ(alive.use_count(), 1);
}

#ifndef NDEBUG
TEST_F(EventBusTest, AssertsThatPublishingHappensOnTheCore) {
  const auto publish_for = [this](unsigned core, int how) {
    const auto body = [&]() -> Task<> {
      CoreEvents& other = events(core);
      if (how == 0) static_cast<void>(other.publish(Greeting{}));
      if (how == 1) static_cast<void>(other.publish_on(0, Greeting{}));
      if (how == 2) static_cast<void>(other.publish_to_all(Greeting{}));
      co_return;
    };
    run_on_cores({body});
  };
  for (int how = 0; how < 3; ++how) EXPECT_DEATH(publish_for(1, how), "is_on_owner_core");
}
#endif

}  // namespace
}  // namespace weir::bus_test

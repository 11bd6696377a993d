// Tests how one core publishes, orders and handles events.
#include "weir/event/core_events.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/event/test/event_fixture.hpp"

namespace weir::core_events_test {
namespace {

// ---- Publishing and order -----------------------------------------------------------------------

TEST_F(CoreEventsTest, HandlersAreCalledLaterInTheOrderOfRegistration) {
  const auto first = events().on([this](const Ping& ping) { record("first ", ping.number); });
  const auto second = events().on([this](const Ping& ping) { record("second ", ping.number); });
  publish_pings(1, 2);
  EXPECT_EQ(take_records(), Records{}) << "handlers are not called inside publish()";
  EXPECT_EQ(events().queued(), 2U);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"first 1", "second 1", "first 2", "second 2"}));
  EXPECT_EQ(events().queued(), 0U);
  EXPECT_EQ(events().counters().handled.value(), 2U);
}

TEST_F(CoreEventsTest, HandlersReceiveOnlyTheirType) {
  const auto pings = events().on(record_pings());
  const auto pongs = events().on([this](const Pong& pong) { record("pong ", pong.number); });
  ASSERT_TRUE(events().publish(Ping(1)));
  ASSERT_TRUE(events().publish(Pong(2)));
  ASSERT_TRUE(events().publish(std::string("no handler")));
  ASSERT_TRUE(events().publish(Ping(3)));
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"ping 1", "pong 2", "ping 3"}));
  EXPECT_EQ(events().counters().handled.value(), 4U);
}

/// Many types, each with its own topic in the table.
template <std::size_t Number>
struct Numbered {
  std::size_t number = Number;
};

template <std::size_t Number>
auto noting(std::vector<std::size_t>& told) {
  return [&told](const Numbered<Number>& event) {
    EXPECT_EQ(event.number, Number);
    told.push_back(Number);
  };
}
template <std::size_t... Each>
void tell_apart(CoreEvents& events, std::index_sequence<Each...>,
                const std::function<void()>& run_until_idle) {
  std::vector<std::size_t> told;
  std::vector<std::size_t> expected;
  std::vector<EventRegistration> registrations;
  (registrations.push_back(events.on(noting<Each>(told))), ...);
  for (int round = 0; round < 2; ++round) {
    (expected.push_back(Each), ...);
    EXPECT_TRUE((true && ... && events.publish(Numbered<Each>()).has_value()));
  }
  run_until_idle();
  EXPECT_EQ(told, expected);
}

TEST_F(CoreEventsTest, DistinguishesManyTypes) {
  tell_apart(events(), std::make_index_sequence<100>(), [this] { run_until_idle(); });
}

TEST_F(CoreEventsTest, HandlesTheMostUrgentClassFirst) {
  const auto pings = events().on(record_pings());
  const auto pongs = events().on([this](const Pong& pong) { record("pong ", pong.number); });
  publish_pings(1, 2, {.priority = EventPriority::low});
  publish_pings(3, 4);
  ASSERT_TRUE(events().publish(Pong(5), {.priority = EventPriority::urgent}));
  publish_pings(6, 7, {.priority = EventPriority::high});
  publish_pings(8, 8, {.priority = EventPriority::urgent});
  ASSERT_TRUE(events().publish(Pong(9)));
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"pong 5", "ping 8", "ping 6", "ping 7", "ping 3", "ping 4",
                                     "pong 9", "ping 1", "ping 2"}));
}

TEST_F(CoreEventsTest, EventsOfAHandlerAreOrderedByPriority) {
  const auto pings = events().on([this](const Ping& ping) {
    record("ping ", ping.number);
    if (ping.number != 1) return;
    ASSERT_TRUE(events().publish(Pong(1), {.priority = EventPriority::low}));
    publish_pings(10, 10);
    ASSERT_TRUE(events().publish(Pong(2), {.priority = EventPriority::high}));
  });
  const auto pongs = events().on([this](const Pong& pong) { record("pong ", pong.number); });
  publish_pings(1, 3);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"ping 1", "pong 2", "ping 2", "ping 3", "ping 10", "pong 1"}));
}

TEST_F(CoreEventsTest, AHandlerMayAcceptOnlyOneSource) {
  const EventSource one = bus_->make_source();
  const EventSource other = bus_->make_source();
  EXPECT_NE(one, other);
  EXPECT_FALSE(EventSource());
  const auto of_one =
      events().on([this](const Ping& ping) { record("one ", ping.number); }, {.from = one});
  const auto of_all = events().on([this](const Ping& ping) { record("all ", ping.number); });
  publish_pings(1, 1);
  publish_pings(2, 2, {.source = one});
  publish_pings(3, 3, {.source = other});
  publish_pings(4, 4, {.source = one});
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"all 1", "one 2", "all 2", "all 3", "one 4", "all 4"}));
}

TEST_F(CoreEventsTest, ValuesOfEverySizeArriveUnchanged) {
  struct Large {
    std::array<std::uint64_t, 40> numbers;
  };
  auto alive = std::make_shared<int>(7);
  std::vector<EventRegistration> registrations;
  registrations.push_back(events().on([this](const char& each) { record(std::string(1, each)); }));
  registrations.push_back(events().on([this](const std::string& text) { record(text); }));
  registrations.push_back(
      events().on([this](const Large& large) { record("large ", large.numbers[39]); }));
  registrations.push_back(
      events().on([this](const std::unique_ptr<std::string>& text) { record(*text); }));
  registrations.push_back(events().on(
      [this](const std::shared_ptr<int>& number) { record("shared ", std::size_t(*number)); }));
  Large large{};
  large.numbers[39] = 39;
  const std::string text(100, 'x');
  ASSERT_TRUE(events().publish('c'));
  ASSERT_TRUE(events().publish(text));
  ASSERT_TRUE(events().publish(large));
  ASSERT_TRUE(events().publish(std::make_unique<std::string>("only moved")));
  ASSERT_TRUE(events().publish(alive));
  EXPECT_EQ(alive.use_count(), 2);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"c", text, "large 39", "only moved", "shared 7"}));
  EXPECT_EQ(alive.use_count(), 1) << "an event is destroyed after its handlers";
}

TEST_F(CoreEventsTest, UnhandledEventsAreDestroyedWithTheBus) {
  struct Padded {
    std::shared_ptr<int> held;
    std::array<char, 500> padding{};
  };
  auto alive = std::make_shared<int>(7);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(events().publish(alive));
    ASSERT_TRUE(events().publish(Padded{alive}, {.priority = EventPriority::low}));
  }
  EXPECT_EQ(alive.use_count(), 6001);
  run_until_idle();
  EXPECT_EQ(alive.use_count(), 1);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(events().publish(alive));
    ASSERT_TRUE(events().publish(Padded{alive}, {.priority = EventPriority::low}));
  }
  loop_.reset();  // the loops may end first
  bus_.reset();
  EXPECT_EQ(alive.use_count(), 1);
  loop_ = Loop::make(platform_, {}).value();
}

/// Publishes an event when it is destroyed.
struct LastWord {
  LastWord(CoreEvents& events, std::vector<std::error_code>& to) noexcept
      : events_(&events), to_(&to) {}
  LastWord(LastWord&& other) noexcept
      : events_(std::exchange(other.events_, nullptr)), to_(other.to_) {}
  ~LastWord() {
    if (events_ == nullptr) return;
    const auto published = events_->publish(Ping(1));
    to_->push_back(published ? std::error_code() : published.error());
  }

 private:
  CoreEvents* events_;
  std::vector<std::error_code>* to_;
};

TEST_F(CoreEventsTest, EventsThatAreDestroyedWithTheBusCannotPublish) {
  std::vector<std::error_code> errors;
  ASSERT_TRUE(events().publish(LastWord(events(), errors)));
  run_until_idle();
  EXPECT_EQ(errors, std::vector<std::error_code>(1)) << "a handled event may publish";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(events().publish(LastWord(events(), errors)));
  loop_.reset();
  bus_.reset();
  loop_ = Loop::make(platform_, {}).value();
  const std::error_code closed = make_error_code(Errc::closed);
  EXPECT_EQ(errors, (std::vector<std::error_code>{{}, closed, closed}));
}

// ---- Limits -------------------------------------------------------------------------------------

class FewEventsTest : public CoreEventsTest {
 protected:
  FewEventsTest() : CoreEventsTest({.capacity = 3}) {}
};

TEST_F(FewEventsTest, AFullQueueReturnsAnError) {
  auto alive = std::make_shared<int>(7);
  publish_pings(1, 2);
  ASSERT_TRUE(events().publish(Pong(3), {.priority = EventPriority::low}));
  const auto refused = events().publish(alive, {.priority = EventPriority::urgent});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::limit_reached);
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_FALSE(events().publish_to_all(alive));
  EXPECT_FALSE(events().publish_on(0, alive));
  EXPECT_EQ(events().counters().rejected.value(), 3U);
  run_until_idle();
  EXPECT_EQ(events().counters().handled.value(), 3U);
  publish_pings(4, 6);
  run_until_idle();
}

TEST_F(FewEventsTest, MetricsContainTheCounters) {
  std::vector<EventRegistration> registrations;
  registrations.push_back(events().on([](const Ping& ping) {
    if (ping.number == 1) throw std::runtime_error("out of tune");
  }));
  publish_pings(1, 3);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(events().publish(Ping(4)));
  run_until_idle();
  registrations.clear();
  for (const bool alive : {true, false}) {
    if (!alive) bus_.reset();
    std::vector<std::pair<std::string, std::uint64_t>> metrics;
    const MetricSnapshot sum = loop_->metrics().read();
    for (const Metric& each : sum.metrics()) metrics.emplace_back(each.name, each.value);
    const decltype(metrics) expected{{"events handled", 3},  {"events rejected", 5},
                                     {"event failures", 1},  {"event runs dropped", 0},
                                     {"events received", 0}, {"events vetoed", 0}};
    EXPECT_EQ(metrics, expected) << (alive ? "" : "the loop keeps them");
  }
}

TEST_F(FewEventsTest, AnEventInProgressDoesNotCountAsQueued) {
  const auto pings = events().on([this](const Ping& ping) {
    if (ping.number < 10'000) publish_pings(ping.number + 1, ping.number + 1);
  });
  publish_pings(0, 2);
  run_until_idle();
  EXPECT_EQ(events().counters().handled.value(), 30'000U);
  EXPECT_EQ(events().counters().rejected.value(), 0U);
}

// Publishing throws if there is no memory for the event or for its place in the queue.
TEST_F(CoreEventsTest, PublishingWithoutMemoryChangesNothing) {
  struct Large {
    std::array<char, 200> bytes{};
    std::shared_ptr<int> alive;
  };
  const auto pings = events().on(record_pings());
  const auto larges = events().on([this](const Large&) { record("large"); });
  const ScopedBlockPool blocks(loop_->blocks());
  auto alive = std::make_shared<int>(1);
  const auto fails = [&](std::size_t allocations, auto event, EventPriority priority) {
    loop_->blocks().fail_after(allocations);
    EXPECT_THROW(static_cast<void>(events().publish(std::move(event), {.priority = priority})),
                 std::bad_alloc);
    EXPECT_FALSE(loop_->blocks().will_fail());
    EXPECT_EQ(alive.use_count(), 1) << "the event is destroyed";
  };
  publish_pings(1, 1);
  const std::size_t blocks_before = loop_->blocks().blocks_in_use();
  fails(0, Ping{2}, EventPriority::urgent);
  fails(0, Large{.alive = alive}, EventPriority::high);
  fails(1, Large{.alive = alive}, EventPriority::high);
  EXPECT_EQ(loop_->blocks().blocks_in_use(), blocks_before);
  EXPECT_EQ(events().queued(), 1U);
  EXPECT_EQ(events().counters().rejected.value(), 0U);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"ping 1"}));
  publish_pings(3, 3, {.priority = EventPriority::urgent});
  ASSERT_TRUE(events().publish(Large{.alive = alive}, {.priority = EventPriority::high}));
  EXPECT_EQ(alive.use_count(), 2);
  run_until_idle();
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_EQ(take_records(), (Records{"ping 3", "large"}));
}

TEST_F(CoreEventsTest, AQueueTakesMemoryInChunksOf16KiBAndKeepsOne) {
  const ScopedBlockPool blocks(loop_->blocks());
  const auto chunks = [this] { return loop_->blocks().blocks_in_use(); };
  const std::size_t before = chunks();
  publish_pings(1, 1000);  // of 16 bytes each, with their tags
  EXPECT_EQ(chunks(), before + 1);
  publish_pings(1, 1000);
  EXPECT_EQ(chunks(), before + 2);
  publish_pings(1, 1, {.priority = EventPriority::low});
  EXPECT_EQ(chunks(), before + 3) << "each class has chunks of its own";
  run_until_idle();
  EXPECT_EQ(chunks(), before + 2);
}

TEST_F(CoreEventsTest, EventsLeaveTheTurnToOtherWork) {
  publish_pings(1, 10'000);
  for (std::size_t turn = 1; turn <= 3; ++turn) {
    loop_->turn(platform_.now());
    EXPECT_EQ(events().queued(), 10'000 - 1024 * turn) << "sockets and timers get a turn";
    EXPECT_EQ(events().counters().handled.value(), 1024 * turn);
  }
  run_until_idle();
  EXPECT_EQ(events().queued(), 0U);
}

TEST_F(CoreEventsTest, EventsAfterAFullTurnAreHandled) {
  std::uint64_t handled = 0;
  for (const std::size_t count : {1023U, 1024U, 1025U, 2048U}) {
    publish_pings(1, count);
    run_until_idle();
    publish_pings(1, 1);
    run_until_idle();
    handled += count + 1;
    EXPECT_EQ(events().counters().handled.value(), handled) << count;
    EXPECT_EQ(events().queued(), 0U);
    EXPECT_EQ(loop_->timers().armed(), 0U);
  }
}

TEST_F(CoreEventsTest, ATurnHandlesTheSameNumberOfEventsOfAllClasses) {
  publish_pings(1, 500);
  publish_pings(1, 500, {.priority = EventPriority::low});
  for (std::size_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(events().publish(Ping(i), {.priority = EventPriority::urgent}));
    ASSERT_TRUE(events().publish(Pong(i), {.priority = EventPriority::urgent}));
  }
  loop_->turn(platform_.now());
  EXPECT_EQ(events().counters().handled.value(), 1024U);
  EXPECT_EQ(events().queued(), 176U);
  run_until_idle();
  EXPECT_EQ(events().counters().handled.value(), 1200U);
}

TEST_F(CoreEventsTest, TheSteadyStateAllocatesNothing) {
  struct Large {
    std::array<std::uint64_t, 40> numbers{};
  };
  std::size_t told = 0;
  const auto pings = events().on([&](const Ping&) { ++told; });
  const auto round = [&]() -> Task<> {
    publish_pings(1, 5000);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(events().publish(Large()));
    co_await yield();
    co_await sleep_for(1ms);
  };
  run_made(round);
  const auto cached = loop_->blocks().cached_bytes();
  const auto in_use = loop_->blocks().blocks_in_use();
  for (int i = 0; i < 10; ++i) {
    run_made(round);
    EXPECT_EQ(loop_->blocks().cached_bytes(), cached);
    EXPECT_EQ(loop_->blocks().blocks_in_use(), in_use);
  }
  EXPECT_EQ(told, 55'000U);
}

// ---- Failures -----------------------------------------------------------------------------------

TEST_F(CoreEventsTest, AThrowingHandlerDoesNotStopOthers) {
  const auto bad = events().on([](const Ping&) { throw std::runtime_error("out of tune"); });
  const auto good = events().on(record_pings());
  publish_pings(1, 3);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"ping 1", "ping 2", "ping 3"}));
  EXPECT_EQ(events().counters().failures.value(), 3U);
  ASSERT_EQ(platform_.logged().size(), 1U) << "at most one per second";
  EXPECT_TRUE(platform_.logged()[0].contains("weir::Ping")) << platform_.logged()[0];
  EXPECT_TRUE(platform_.logged()[0].contains("out of tune")) << platform_.logged()[0];
  platform_.advance(*loop_, 1s - 1ns);
  publish_pings(4, 4);
  run_until_idle();
  EXPECT_EQ(platform_.logged().size(), 1U);
  platform_.advance(*loop_, 1ns);
  publish_pings(5, 5);
  run_until_idle();
  EXPECT_EQ(platform_.logged().size(), 2U);
  EXPECT_EQ(events().counters().failures.value(), 5U);
}

TEST_F(CoreEventsTest, FailuresOfAllTypesShareTheLimitOfLogLines) {
  const auto pings = events().on([](const Ping&) { throw 7; });
  const auto pongs = events().on([](const Pong&) { throw std::runtime_error("out of tune"); });
  ASSERT_TRUE(events().publish(Pong(1)));
  publish_pings(1, 1);
  run_until_idle();
  EXPECT_EQ(events().counters().failures.value(), 2U);
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_TRUE(platform_.logged()[0].contains("weir::Pong")) << platform_.logged()[0];
  platform_.advance(*loop_, 1s);
  publish_pings(2, 2);
  run_until_idle();
  EXPECT_EQ(events().counters().failures.value(), 3U);
  ASSERT_EQ(platform_.logged().size(), 2U) << "an exception of any type is logged";
  EXPECT_TRUE(platform_.logged()[1].contains("weir::Ping")) << platform_.logged()[1];
}

// ---- Interceptors -------------------------------------------------------------------------------

TEST_F(CoreEventsTest, InterceptorsSeeTheEventBeforeAndAfter) {
  std::vector<EventRegistration> registrations;
  registrations.push_back(events().on(record_pings()));
  registrations.push_back(events().before([this](const Ping& ping) {
    record("before ", ping.number);
    return EventVerdict::pass;
  }));
  registrations.push_back(events().after([this](const Ping& ping, const EventOutcome& outcome) {
    record("after ", ping.number);
    EXPECT_EQ(outcome.handlers, 1U);
    EXPECT_FALSE(outcome.vetoed);
  }));
  registrations.push_back(events().after([this](const Ping&) { record("after too"); }));
  const EventSource source = bus_->make_source();
  registrations.push_back(events().before([this, source](const AnyEvent& event) {
    record(std::string(event.type_name()));
    EXPECT_EQ(event.source(), source);
    EXPECT_EQ(event.priority(), EventPriority::high);
    EXPECT_EQ(event.as<Ping>() != nullptr, event.type_name() == "weir::Ping");
    EXPECT_EQ(event.as<Pong>() != nullptr, event.type_name() == "weir::Pong");
    return EventVerdict::pass;
  }));
  registrations.push_back(
      events().after([this](const AnyEvent& event, const EventOutcome& outcome) {
        record("after any ", outcome.handlers);
        EXPECT_EQ(event.as<std::string>(), nullptr);
      }));
  const EventOptions options{.priority = EventPriority::high, .source = source};
  ASSERT_TRUE(events().publish(Ping(1), options));
  ASSERT_TRUE(events().publish(Pong(2), options));
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"weir::Ping", "before 1", "ping 1", "after 1", "after too",
                                     "after any 1", "weir::Pong", "after any 0"}));
}

TEST_F(CoreEventsTest, TypesAreNumberedInTheOrderOfTheirFirstUse) {
  const auto pongs = events().on([](const Pong&) {});
  const auto all = events().before([this](const AnyEvent& event) {
    record(std::string(event.type_name()) + " ", event.type_index());
    return EventVerdict::pass;
  });
  ASSERT_TRUE(events().publish(1));
  publish_pings(1, 1);
  ASSERT_TRUE(events().publish(Pong()));
  ASSERT_TRUE(events().publish(2));
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"int 1", "weir::Ping 2", "weir::Pong 0", "int 1"}));
}

TEST_F(CoreEventsTest, TheOutcomeCountsTheHandlersThatWereCalled) {
  const EventSource source = bus_->make_source();
  std::vector<EventRegistration> registrations;
  registrations.push_back(events().on([](const Ping&) { throw std::runtime_error("counts too"); }));
  registrations.push_back(events().on([](const Ping&) {}));
  registrations.push_back(events().on([](const Ping&) {}, {.from = source}));
  registrations.push_back(events().after([this](const Ping&, const EventOutcome& outcome) {
    record(outcome.vetoed ? "vetoed " : "handled ", outcome.handlers);
  }));
  publish_pings(1, 1);
  publish_pings(2, 2, {.source = source});
  run_until_idle();
  registrations.push_back(events().before([](const AnyEvent&) { return EventVerdict::veto; }));
  publish_pings(3, 3);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"handled 2", "handled 3", "vetoed 0"}));
}

TEST_F(CoreEventsTest, AVetoPreventsHandlers) {
  std::vector<EventRegistration> registrations;
  registrations.push_back(events().on(record_pings()));
  registrations.push_back(events().before([](const Ping& ping) {
    return ping.number % 2 == 0 ? EventVerdict::veto : EventVerdict::pass;
  }));
  registrations.push_back(events().before([this](const Ping& ping) {
    record("asked ", ping.number);
    return EventVerdict::pass;
  }));
  registrations.push_back(events().after([this](const Ping&, const EventOutcome& outcome) {
    record(outcome.vetoed ? "vetoed" : "handled");
  }));
  publish_pings(1, 3);
  run_until_idle();
  EXPECT_EQ(take_records(),
            (Records{"asked 1", "ping 1", "handled", "vetoed", "asked 3", "ping 3", "handled"}));
  EXPECT_EQ(events().counters().vetoed.value(), 1U);

  // Interceptors of all events are called first.
  registrations.push_back(events().before([](const AnyEvent&) { return EventVerdict::veto; }));
  publish_pings(5, 5);
  ASSERT_TRUE(events().publish(Pong(6)));
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"vetoed"}));
  EXPECT_EQ(events().counters().vetoed.value(), 3U);
  EXPECT_EQ(events().counters().handled.value(), 5U);
}

TEST_F(CoreEventsTest, AThrowingInterceptorPassesTheEvent) {
  const auto handler = events().on(record_pings());
  const auto before =
      events().before([](const Ping&) -> EventVerdict { throw std::runtime_error("undecided"); });
  const auto after = events().after([](const AnyEvent&) { throw std::runtime_error("too late"); });
  publish_pings(1, 1);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"ping 1"}));
  EXPECT_EQ(events().counters().failures.value(), 2U);
}

}  // namespace
}  // namespace weir::core_events_test

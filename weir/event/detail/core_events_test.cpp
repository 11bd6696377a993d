#include "weir/event/detail/core_events.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/event/test/event_fixture.hpp"

namespace weir {
namespace {

// ---- Publishing and order -----------------------------------------------------------------------

TEST_F(EventsTest, HandlersAreCalledLaterInTheOrderOfRegistration) {
  const auto first = events().on([this](const Ping& ping) { note("first ", ping.number); });
  const auto second = events().on([this](const Ping& ping) { note("second ", ping.number); });
  publish_pings(1, 2);
  EXPECT_EQ(take_notes(), Notes{}) << "never inside publish()";
  EXPECT_EQ(events().queued(), 2U);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"first 1", "second 1", "first 2", "second 2"}));
  EXPECT_EQ(events().queued(), 0U);
  EXPECT_EQ(events().counters().handled.value(), 2U);
}

TEST_F(EventsTest, HandlersAreToldOfTheirTypeOnly) {
  const auto pings = events().on(noting_pings());
  const auto pongs = events().on([this](const Pong& pong) { note("pong ", pong.number); });
  ASSERT_TRUE(events().publish(Ping(1)));
  ASSERT_TRUE(events().publish(Pong(2)));
  ASSERT_TRUE(events().publish(std::string("nobody wants it")));
  ASSERT_TRUE(events().publish(Ping(3)));
  settle();
  EXPECT_EQ(take_notes(), (Notes{"ping 1", "pong 2", "ping 3"}));
  EXPECT_EQ(events().counters().handled.value(), 4U);
}

/// Many types: each has a place of its own in the table.
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
void tell_apart(Events& events, std::index_sequence<Each...>, const std::function<void()>& settle) {
  std::vector<std::size_t> told;
  std::vector<std::size_t> expected;
  std::vector<EventRegistration> registrations;
  (registrations.push_back(events.on(noting<Each>(told))), ...);
  for (int round = 0; round < 2; ++round) {
    (expected.push_back(Each), ...);
    EXPECT_TRUE((true && ... && events.publish(Numbered<Each>()).has_value()));
  }
  settle();
  EXPECT_EQ(told, expected);
}

TEST_F(EventsTest, ManyTypesAreToldApart) {
  tell_apart(events(), std::make_index_sequence<100>(), [this] { settle(); });
}

TEST_F(EventsTest, TheMostUrgentClassComesFirst) {
  const auto pings = events().on(noting_pings());
  const auto pongs = events().on([this](const Pong& pong) { note("pong ", pong.number); });
  publish_pings(1, 2, {.priority = EventPriority::low});
  publish_pings(3, 4);
  ASSERT_TRUE(events().publish(Pong(5), {.priority = EventPriority::urgent}));
  publish_pings(6, 7, {.priority = EventPriority::high});
  publish_pings(8, 8, {.priority = EventPriority::urgent});
  ASSERT_TRUE(events().publish(Pong(9)));
  settle();
  EXPECT_EQ(take_notes(), (Notes{"pong 5", "ping 8", "ping 6", "ping 7", "ping 3", "ping 4",
                                 "pong 9", "ping 1", "ping 2"}));
}

TEST_F(EventsTest, WhatAHandlerPublishesIsSortedIn) {
  const auto pings = events().on([this](const Ping& ping) {
    note("ping ", ping.number);
    if (ping.number != 1) return;
    ASSERT_TRUE(events().publish(Pong(1), {.priority = EventPriority::low}));
    publish_pings(10, 10);
    ASSERT_TRUE(events().publish(Pong(2), {.priority = EventPriority::high}));
  });
  const auto pongs = events().on([this](const Pong& pong) { note("pong ", pong.number); });
  publish_pings(1, 3);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"ping 1", "pong 2", "ping 2", "ping 3", "ping 10", "pong 1"}));
}

TEST_F(EventsTest, AHandlerMayWantOneSource) {
  const EventSource one = bus_->make_source();
  const EventSource other = bus_->make_source();
  EXPECT_NE(one, other);
  EXPECT_FALSE(EventSource());
  const auto of_one =
      events().on([this](const Ping& ping) { note("one ", ping.number); }, {.from = one});
  const auto of_all = events().on([this](const Ping& ping) { note("all ", ping.number); });
  publish_pings(1, 1);
  publish_pings(2, 2, {.source = one});
  publish_pings(3, 3, {.source = other});
  publish_pings(4, 4, {.source = one});
  settle();
  EXPECT_EQ(take_notes(), (Notes{"all 1", "one 2", "all 2", "all 3", "one 4", "all 4"}));
}

TEST_F(EventsTest, ValuesOfEverySizeArriveWhole) {
  struct Large {
    std::array<std::uint64_t, 40> numbers;
  };
  auto alive = std::make_shared<int>(7);
  std::vector<EventRegistration> registrations;
  registrations.push_back(events().on([this](const char& each) { note(std::string(1, each)); }));
  registrations.push_back(events().on([this](const std::string& text) { note(text); }));
  registrations.push_back(
      events().on([this](const Large& large) { note("large ", large.numbers[39]); }));
  registrations.push_back(
      events().on([this](const std::unique_ptr<std::string>& text) { note(*text); }));
  registrations.push_back(events().on(
      [this](const std::shared_ptr<int>& number) { note("shared ", std::size_t(*number)); }));
  Large large{};
  large.numbers[39] = 39;
  const std::string text(100, 'x');
  ASSERT_TRUE(events().publish('c'));
  ASSERT_TRUE(events().publish(text));
  ASSERT_TRUE(events().publish(large));
  ASSERT_TRUE(events().publish(std::make_unique<std::string>("only moved")));
  ASSERT_TRUE(events().publish(alive));
  EXPECT_EQ(alive.use_count(), 2);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"c", text, "large 39", "only moved", "shared 7"}));
  EXPECT_EQ(alive.use_count(), 1) << "an event is destroyed once it was handled";
}

TEST_F(EventsTest, WhatNobodyHandledIsDestroyedWithTheBus) {
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
  settle();
  EXPECT_EQ(alive.use_count(), 1);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(events().publish(alive));
    ASSERT_TRUE(events().publish(Padded{alive}, {.priority = EventPriority::low}));
  }
  loop_.reset();  // as when the loops end first
  bus_.reset();
  EXPECT_EQ(alive.use_count(), 1);
  loop_ = Loop::make(host_, {}).value();
}

// ---- Limits -------------------------------------------------------------------------------------

class FewEventsTest : public EventsTest {
 protected:
  FewEventsTest() : EventsTest({.queued_max = 3}) {}
};

TEST_F(FewEventsTest, AFullQueueIsAnAnswer) {
  auto alive = std::make_shared<int>(7);
  publish_pings(1, 2);
  ASSERT_TRUE(events().publish(Pong(3), {.priority = EventPriority::low}));
  const auto refused = events().publish(alive, {.priority = EventPriority::urgent});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Errc::limit_reached);
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_FALSE(events().publish_to_all(alive));
  EXPECT_FALSE(events().publish_on(0, alive));
  EXPECT_EQ(events().counters().refused.value(), 3U);
  settle();
  EXPECT_EQ(events().counters().handled.value(), 3U);
  publish_pings(4, 6);
  settle();
}

TEST_F(FewEventsTest, AnEventThatIsBeingHandledLeavesItsPlace) {
  const auto pings = events().on([this](const Ping& ping) {
    if (ping.number < 10'000) publish_pings(ping.number + 1, ping.number + 1);
  });
  publish_pings(0, 2);
  settle();
  EXPECT_EQ(events().counters().handled.value(), 30'000U);
  EXPECT_EQ(events().counters().refused.value(), 0U);
}

TEST_F(EventsTest, ATurnIsNotForEventsAlone) {
  publish_pings(1, 10'000);
  loop_->turn(host_.now());
  EXPECT_GT(events().queued(), 5'000U) << "sockets and timers have their turn";
  EXPECT_LT(events().queued(), 10'000U);
  settle();
  EXPECT_EQ(events().queued(), 0U);
}

TEST_F(EventsTest, TheSteadyStateTakesNoMemory) {
  struct Large {
    std::array<std::uint64_t, 40> numbers{};
  };
  std::size_t told = 0;
  const auto pings = events().on([&](const Ping&) { ++told; });
  const auto round = [&]() -> Task<> {
    publish_pings(1, 5000);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(events().publish(Large()));
    co_await yield();
    co_await pass(1ms);
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

TEST_F(EventsTest, AHandlerThatThrowsStopsNobody) {
  const auto bad = events().on([](const Ping&) { throw std::runtime_error("out of tune"); });
  const auto good = events().on(noting_pings());
  publish_pings(1, 3);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"ping 1", "ping 2", "ping 3"}));
  EXPECT_EQ(events().counters().failures.value(), 3U);
  ASSERT_EQ(host_.logged().size(), 1U) << "one a second at most";
  EXPECT_TRUE(host_.logged()[0].contains("weir::Ping")) << host_.logged()[0];
  EXPECT_TRUE(host_.logged()[0].contains("out of tune")) << host_.logged()[0];
  host_.advance(*loop_, 1s);
  publish_pings(4, 5);
  settle();
  EXPECT_EQ(host_.logged().size(), 2U);
  EXPECT_EQ(events().counters().failures.value(), 5U);
}

// ---- Interceptors -------------------------------------------------------------------------------

TEST_F(EventsTest, InterceptorsSeeTheEventBeforeAndAfter) {
  std::vector<EventRegistration> registrations;
  registrations.push_back(events().on(noting_pings()));
  registrations.push_back(events().before([this](const Ping& ping) {
    note("before ", ping.number);
    return EventVerdict::pass;
  }));
  registrations.push_back(events().after([this](const Ping& ping, const EventOutcome& outcome) {
    note("after ", ping.number);
    EXPECT_EQ(outcome.handlers, 1U);
    EXPECT_FALSE(outcome.vetoed);
  }));
  registrations.push_back(events().after([this](const Ping&) { note("after too"); }));
  const EventSource source = bus_->make_source();
  registrations.push_back(events().before([this, source](const AnyEvent& event) {
    note(std::string(event.type_name()));
    EXPECT_EQ(event.source(), source);
    EXPECT_EQ(event.priority(), EventPriority::high);
    EXPECT_EQ(event.as<Ping>() != nullptr, event.type_name() == "weir::Ping");
    EXPECT_EQ(event.as<Pong>() != nullptr, event.type_name() == "weir::Pong");
    return EventVerdict::pass;
  }));
  registrations.push_back(
      events().after([this](const AnyEvent& event, const EventOutcome& outcome) {
        note("after any ", outcome.handlers);
        EXPECT_EQ(event.as<std::string>(), nullptr);
      }));
  const EventOptions options{.priority = EventPriority::high, .source = source};
  ASSERT_TRUE(events().publish(Ping(1), options));
  ASSERT_TRUE(events().publish(Pong(2), options));
  settle();
  EXPECT_EQ(take_notes(), (Notes{"weir::Ping", "before 1", "ping 1", "after 1", "after too",
                                 "after any 1", "weir::Pong", "after any 0"}));
}

TEST_F(EventsTest, AVetoKeepsAnEventFromItsHandlers) {
  std::vector<EventRegistration> registrations;
  registrations.push_back(events().on(noting_pings()));
  registrations.push_back(events().before([](const Ping& ping) {
    return ping.number % 2 == 0 ? EventVerdict::veto : EventVerdict::pass;
  }));
  registrations.push_back(events().before([this](const Ping& ping) {
    note("asked ", ping.number);
    return EventVerdict::pass;
  }));
  registrations.push_back(events().after([this](const Ping&, const EventOutcome& outcome) {
    note(outcome.vetoed ? "vetoed" : "handled");
  }));
  publish_pings(1, 3);
  settle();
  EXPECT_EQ(take_notes(),
            (Notes{"asked 1", "ping 1", "handled", "vetoed", "asked 3", "ping 3", "handled"}));
  EXPECT_EQ(events().counters().vetoed.value(), 1U);

  // One of all events is asked first.
  registrations.push_back(events().before([](const AnyEvent&) { return EventVerdict::veto; }));
  publish_pings(5, 5);
  ASSERT_TRUE(events().publish(Pong(6)));
  settle();
  EXPECT_EQ(take_notes(), (Notes{"vetoed"}));
  EXPECT_EQ(events().counters().vetoed.value(), 3U);
  EXPECT_EQ(events().counters().handled.value(), 5U);
}

TEST_F(EventsTest, AnInterceptorThatThrowsHasNothingAgainstIt) {
  const auto handler = events().on(noting_pings());
  const auto before =
      events().before([](const Ping&) -> EventVerdict { throw std::runtime_error("undecided"); });
  const auto after = events().after([](const AnyEvent&) { throw std::runtime_error("too late"); });
  publish_pings(1, 1);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"ping 1"}));
  EXPECT_EQ(events().counters().failures.value(), 2U);
}

}  // namespace
}  // namespace weir

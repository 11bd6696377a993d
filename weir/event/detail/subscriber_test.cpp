// Tests the registration of handlers and interceptors.
#include "weir/event/detail/subscriber.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "weir/event/test/event_fixture.hpp"

namespace weir::subscriber_test {
namespace {

class EventRegistrationTest : public CoreEventsTest {};

TEST_F(EventRegistrationTest, EndsWithItsOwner) {
  EventRegistration none;
  EXPECT_FALSE(none);
  none.end();
  auto captured = std::make_shared<int>(1);
  {
    const auto registration =
        events().on([this, captured](const Ping& ping) { record("ping ", ping.number); });
    EXPECT_TRUE(registration);
    publish_pings(1, 1);
    run_until_idle();
    publish_pings(2, 2);
  }
  EXPECT_EQ(captured.use_count(), 1) << "the handler's captures are destroyed with it";
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"ping 1"}));
}

TEST_F(EventRegistrationTest, MovesAndIsReplaced) {
  auto first = events().on([this](const Ping&) { record("first"); });
  auto moved = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): this is what the test checks
  EXPECT_TRUE(moved);
  publish_pings(1, 1);
  run_until_idle();
  moved = events().on([this](const Ping&) { record("second"); });
  publish_pings(2, 2);
  run_until_idle();
  moved.end();
  moved.end();
  EXPECT_FALSE(moved);
  publish_pings(3, 3);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"first", "second"}));
}

TEST_F(EventRegistrationTest, EndsInsideItsOwnHandler) {
  auto captured = std::make_shared<int>(1);
  EventRegistration registration;
  registration = events().on([this, &registration, captured](const Ping& ping) {
    record("ping ", ping.number);
    registration.end();
    EXPECT_EQ(captured.use_count(), 2) << "the handler still runs";
  });
  publish_pings(1, 2);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"ping 1"}));
  EXPECT_EQ(captured.use_count(), 1);
}

TEST_F(EventRegistrationTest, EndsImmediatelyInsideAnotherHandler) {
  std::vector<EventRegistration> three(3);
  for (std::size_t i = 0; i < 3; ++i) {
    three[i] = events().on([this, &three, i](const Ping& ping) {
      record("handler ", i);
      if (i != 1) return;
      if (ping.number == 1) three[2].end();
      if (ping.number == 2) three[0].end();
    });
  }
  publish_pings(1, 3);
  run_until_idle();
  EXPECT_EQ(take_records(),
            (Records{"handler 0", "handler 1", "handler 0", "handler 1", "handler 1"}));
}

TEST_F(EventRegistrationTest, RegistrationInsideAHandlerStartsWithTheNextEvent) {
  std::vector<EventRegistration> later;
  const auto first = events().on([&](const Ping& ping) {
    record("first ", ping.number);
    later.push_back(events().on([this, ping](const Ping& next) {
      record("since ", ping.number);
      EXPECT_GT(next.number, ping.number);
    }));
    if (ping.number == 2) later.erase(later.begin());
    // This handler ends before an event reaches it.
    events().on([this](const Ping&) { record("never"); }).end();
  });
  publish_pings(1, 3);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"first 1", "first 2", "first 3", "since 2"}));
}

TEST_F(EventRegistrationTest, DestructionMayEndOtherRegistrations) {
  struct Owner {
    std::vector<EventRegistration> registrations;
  };
  // Each handler owns the registration of the next one, so the end of the first ends all.
  auto second = std::make_shared<Owner>();
  auto third = std::make_shared<Owner>();
  third->registrations.push_back(events().on([this](const Ping&) { record("third"); }));
  second->registrations.push_back(events().on([this, third](const Ping&) { record("second"); }));
  auto first = std::make_unique<EventRegistration>(
      events().on([this, second](const Ping&) { record("first"); }));
  third.reset();
  second.reset();
  const auto ender = events().on([&](const Pong&) { first.reset(); });
  publish_pings(1, 1);
  ASSERT_TRUE(events().publish(Pong()));
  publish_pings(2, 2);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"third", "second", "first"}));
}

TEST_F(EventRegistrationTest, AlsoRegistersInterceptors) {
  EventRegistration before;
  EventRegistration after;
  before = events().before([&](const AnyEvent&) {
    record("before");
    before.end();
    after = events().after([this](const AnyEvent&) { record("after"); });
    return EventVerdict::pass;
  });
  const auto handler = events().on(record_pings());
  publish_pings(1, 2);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"before", "ping 1", "ping 2", "after"}));
}

TEST_F(EventRegistrationTest, NoCallOfAnInterceptorBeginsAfterItsEnd) {
  std::vector<EventRegistration> ended(4);
  std::vector<EventRegistration> kept;
  const auto end = [&](std::size_t which, const char* what) {
    record(what);
    ended[which].end();
  };
  const auto veto = [] { return EventVerdict::veto; };
  kept.push_back(events().before([&](const AnyEvent&) {
    end(0, "before any");
    return EventVerdict::pass;
  }));
  ended[0] = events().before([veto](const AnyEvent&) { return veto(); });
  kept.push_back(events().before([&](const Ping&) {
    end(1, "before");
    return EventVerdict::pass;
  }));
  ended[1] = events().before([veto](const Ping&) { return veto(); });
  kept.push_back(events().on(record_pings()));
  kept.push_back(events().after([&](const Ping&) { end(2, "after"); }));
  ended[2] = events().after([&](const Ping&) { record("never"); });
  kept.push_back(events().after([&](const AnyEvent&) { end(3, "after any"); }));
  ended[3] = events().after([&](const AnyEvent&) { record("never"); });
  publish_pings(1, 2);
  run_until_idle();
  EXPECT_EQ(take_records(), (Records{"before any", "before", "ping 1", "after", "after any",
                                     "before any", "before", "ping 2", "after", "after any"}));
  EXPECT_EQ(events().counters().vetoed.value(), 0U);
}

TEST_F(EventRegistrationTest, MayOutliveTheBus) {
  auto captured = std::make_shared<int>(1);
  auto registration = events().on([captured](const Ping&) {});
  auto interceptor = events().after([captured](const AnyEvent&) {});
  auto of_pings = events().before([captured](const Ping&) { return EventVerdict::pass; });
  EXPECT_EQ(captured.use_count(), 4);
  bus_.reset();
  for (EventRegistration* each : {&registration, &interceptor, &of_pings}) {
    EXPECT_TRUE(*each);
    each->end();
    EXPECT_FALSE(*each);
  }
  EXPECT_EQ(captured.use_count(), 1);
}

// A registration that was made while an event is handled ends like any other.
TEST_F(EventRegistrationTest, ARegistrationOfAHandlerEndsImmediately) {
  auto captured = std::make_shared<int>(1);
  for (const bool ends_inside : {false, true}) {
    EventRegistration later;
    const auto first = events().on([&](const Ping& ping) {
      if (ping.number == 1) {
        later = events().on([this, captured](const Ping& next) { record("later ", next.number); });
      }
      if (ping.number == 3 && ends_inside) later.end();
    });
    publish_pings(1, 2);
    run_until_idle();
    EXPECT_EQ(take_records(), (Records{"later 2"}));
    if (!ends_inside) later.end();
    publish_pings(3, 4);
    run_until_idle();
    EXPECT_EQ(captured.use_count(), 1);
    EXPECT_EQ(take_records(), Records{}) << "it ended before event 3 reached it";
  }
}

}  // namespace
}  // namespace weir::subscriber_test

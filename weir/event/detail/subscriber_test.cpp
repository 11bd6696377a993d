#include "weir/event/detail/subscriber.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "weir/event/test/event_fixture.hpp"

namespace weir {
namespace {

class EventRegistrationTest : public EventsTest {};

TEST_F(EventRegistrationTest, EndsWithItsOwner) {
  EventRegistration none;
  EXPECT_FALSE(none);
  none.end();
  auto captured = std::make_shared<int>(1);
  {
    const auto registration =
        events().on([this, captured](const Ping& ping) { note("ping ", ping.number); });
    EXPECT_TRUE(registration);
    publish_pings(1, 1);
    settle();
    publish_pings(2, 2);
  }
  EXPECT_EQ(captured.use_count(), 1) << "what the handler has captured goes with it";
  settle();
  EXPECT_EQ(take_notes(), (Notes{"ping 1"}));
}

TEST_F(EventRegistrationTest, MovesAndIsReplaced) {
  auto first = events().on([this](const Ping&) { note("first"); });
  auto moved = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that is what it says
  EXPECT_TRUE(moved);
  publish_pings(1, 1);
  settle();
  moved = events().on([this](const Ping&) { note("second"); });
  publish_pings(2, 2);
  settle();
  moved.end();
  moved.end();
  EXPECT_FALSE(moved);
  publish_pings(3, 3);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"first", "second"}));
}

TEST_F(EventRegistrationTest, EndsInsideItsOwnHandler) {
  auto captured = std::make_shared<int>(1);
  EventRegistration registration;
  registration = events().on([this, &registration, captured](const Ping& ping) {
    note("ping ", ping.number);
    registration.end();
    EXPECT_EQ(captured.use_count(), 2) << "the handler still runs";
  });
  publish_pings(1, 2);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"ping 1"}));
  EXPECT_EQ(captured.use_count(), 1);
}

TEST_F(EventRegistrationTest, EndsInsideAnotherHandlerAtOnce) {
  std::vector<EventRegistration> three(3);
  for (std::size_t i = 0; i < 3; ++i) {
    three[i] = events().on([this, &three, i](const Ping& ping) {
      note("handler ", i);
      if (i != 1) return;
      if (ping.number == 1) three[2].end();
      if (ping.number == 2) three[0].end();
    });
  }
  publish_pings(1, 3);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"handler 0", "handler 1", "handler 0", "handler 1", "handler 1"}));
}

TEST_F(EventRegistrationTest, WhoComesInsideAHandlerIsToldOfTheNextEvent) {
  std::vector<EventRegistration> later;
  const auto first = events().on([&](const Ping& ping) {
    note("first ", ping.number);
    later.push_back(events().on([this, ping](const Ping& next) {
      note("since ", ping.number);
      EXPECT_GT(next.number, ping.number);
    }));
    if (ping.number == 2) later.erase(later.begin());
    // Comes and goes, and nobody is told of it.
    events().on([this](const Ping&) { note("never"); }).end();
  });
  publish_pings(1, 3);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"first 1", "first 2", "first 3", "since 2"}));
}

TEST_F(EventRegistrationTest, EndsOthersWhenItIsDestroyed) {
  struct Owner {
    std::vector<EventRegistration> registrations;
  };
  // Each handler owns the registration of the next: the first one's end is the end of all.
  auto second = std::make_shared<Owner>();
  auto third = std::make_shared<Owner>();
  third->registrations.push_back(events().on([this](const Ping&) { note("third"); }));
  second->registrations.push_back(events().on([this, third](const Ping&) { note("second"); }));
  auto first = std::make_unique<EventRegistration>(
      events().on([this, second](const Ping&) { note("first"); }));
  third.reset();
  second.reset();
  const auto ender = events().on([&](const Pong&) { first.reset(); });
  publish_pings(1, 1);
  ASSERT_TRUE(events().publish(Pong()));
  publish_pings(2, 2);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"third", "second", "first"}));
}

TEST_F(EventRegistrationTest, HoldsForInterceptorsToo) {
  EventRegistration before;
  EventRegistration after;
  before = events().before([&](const AnyEvent&) {
    note("before");
    before.end();
    after = events().after([this](const AnyEvent&) { note("after"); });
    return EventVerdict::pass;
  });
  const auto handler = events().on(noting_pings());
  publish_pings(1, 2);
  settle();
  EXPECT_EQ(take_notes(), (Notes{"before", "ping 1", "ping 2", "after"}));
}

TEST_F(EventRegistrationTest, MayOutliveTheEvents) {
  auto captured = std::make_shared<int>(1);
  auto registration = events().on([captured](const Ping&) {});
  auto interceptor = events().after([captured](const AnyEvent&) {});
  bus_.reset();
  registration.end();
  interceptor.end();
  EXPECT_EQ(captured.use_count(), 1);
}

}  // namespace
}  // namespace weir

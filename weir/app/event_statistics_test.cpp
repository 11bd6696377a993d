#include "weir/event/statistics.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "weir/event/test/event_fixture.hpp"

namespace weir {
namespace {

class EventStatisticsTest : public EventsTest {
 protected:
  /// A handler that takes as many nanoseconds as its event says.
  auto taking_time() {
    return [this](const Ping& ping) {
      static_cast<void>(host_.pass_time(host_.now() + Duration(ping.number)));
    };
  }
};

TEST_F(EventStatisticsTest, CountsWhatHandlersTake) {
  const auto handler = events().on(taking_time());
  const EventStatistics statistics(events());
  EXPECT_TRUE(statistics.all().empty());
  EXPECT_EQ(statistics.of<Ping>().count, 0U);
  publish_pings(1, 100);
  settle();
  const EventSummary pings = statistics.of<Ping>();
  EXPECT_EQ(pings.type, "weir::Ping");
  EXPECT_EQ(pings.count, 100U);
  EXPECT_EQ(pings.minimum, 1ns);
  EXPECT_EQ(pings.average, 50ns);
  EXPECT_EQ(pings.maximum, 100ns);
  EXPECT_GE(pings.p99, 99ns);
  EXPECT_LE(pings.p99, 100ns);
}

TEST_F(EventStatisticsTest, TellsTypesApart) {
  ASSERT_TRUE(events().publish(std::string("before anybody counts")));
  settle();
  const EventStatistics statistics(events());
  ASSERT_TRUE(events().publish(Pong(1)));
  const auto handler = events().on(taking_time());
  publish_pings(5, 6);
  settle();
  const auto all = statistics.all();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].type, "weir::Pong") << "in the order of first being seen";
  EXPECT_EQ(all[0].count, 1U);
  EXPECT_EQ(all[0].maximum, 0ns);
  EXPECT_EQ(all[1].type, "weir::Ping");
  EXPECT_EQ(all[1].count, 2U);
  EXPECT_EQ(all[1].minimum, 5ns);
  EXPECT_EQ(all[1].maximum, 6ns);
}

TEST_F(EventStatisticsTest, LeavesOutWhatWasVetoed) {
  const EventStatistics statistics(events());
  const auto veto = events().before(
      [](const Ping& ping) { return ping.number == 2 ? EventVerdict::veto : EventVerdict::pass; });
  publish_pings(1, 3);
  settle();
  EXPECT_EQ(statistics.of<Ping>().count, 2U);
}

TEST_F(EventStatisticsTest, BeginsAndEndsInsideAHandler) {
  std::unique_ptr<EventStatistics> statistics;
  const auto handler = events().on([&](const Ping& ping) {
    if (ping.number == 1) statistics = std::make_unique<EventStatistics>(events());
    if (ping.number != 3) return;
    EXPECT_EQ(statistics->of<Ping>().count, 1U);
    statistics.reset();
  });
  publish_pings(1, 4);
  settle();
  EXPECT_EQ(statistics, nullptr);
  EXPECT_EQ(events().counters().handled.value(), 4U);
}

}  // namespace
}  // namespace weir

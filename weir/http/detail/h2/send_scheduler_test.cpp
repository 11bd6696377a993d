// Tests of the order of the streams that send.
#include "weir/http/detail/h2/send_scheduler.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/http/test/h2_stream_fixture.hpp"

namespace weir::http::send_scheduler_test {
namespace {

/// A scheduler and some streams with windows of 100 bytes.
struct Order {
  Order() {
    for (std::uint32_t at = 0; at < streams.size(); ++at) {
      H2StreamTest::begin(streams[at], 2 * at + 1);
      H2StreamTest::open(streams[at]);
    }
  }
  ~Order() {
    for (H2Stream& each : streams) {
      SendScheduler::stop(each);
      H2StreamTest::release(each);
    }
  }
  void want(std::size_t at, Priority priority = {}) {
    scheduler.set_priority(streams[at], priority);
    scheduler.want(streams[at]);
  }
  /// Returns the streams of the next turns, each of which sends a frame.
  std::string turns(int count) {
    std::string out;
    for (int turn = 0; turn < count; ++turn) {
      H2Stream* const next = scheduler.next();
      if (next == nullptr) return out + "-";
      out += std::to_string(next - streams.data());
      scheduler.end_turn(*next);
    }
    return out;
  }

  std::array<H2Stream, 4> streams;
  SendScheduler scheduler;
};

constexpr Priority urgent{.urgency = 0, .incremental = false};
constexpr Priority incremental{.urgency = 3, .incremental = true};

TEST(H2SendScheduler, HasNoStreamAtFirst) {
  Order order;
  EXPECT_EQ(order.scheduler.next(), nullptr);
}

TEST(H2SendScheduler, ServesOneStreamAfterTheOther) {
  Order order;
  for (std::size_t at : {2U, 0U, 1U}) order.want(at);
  EXPECT_EQ(order.turns(3), "222");
  SendScheduler::stop(order.streams[2]);
  EXPECT_EQ(order.turns(2), "00");
  SendScheduler::stop(order.streams[0]);
  SendScheduler::stop(order.streams[1]);
  EXPECT_EQ(order.turns(1), "-");
}

TEST(H2SendScheduler, ServesIncrementalStreamsInTurns) {
  Order order;
  for (std::size_t at : {0U, 1U, 2U}) order.want(at, incremental);
  EXPECT_EQ(order.turns(7), "0120120");
}

TEST(H2SendScheduler, ServesTheMostUrgentStreamFirst) {
  Order order;
  order.want(0, {.urgency = 7, .incremental = false});
  order.want(1);
  order.want(2, urgent);
  EXPECT_EQ(order.turns(2), "22");
  SendScheduler::stop(order.streams[2]);
  EXPECT_EQ(order.turns(2), "11");
}

TEST(H2SendScheduler, QueuesAStreamOnce) {
  Order order;
  order.want(0, incremental);
  order.want(1, incremental);
  order.scheduler.want(order.streams[0]);
  order.scheduler.enqueue(order.streams[0]);
  EXPECT_EQ(order.turns(4), "0101");
}

TEST(H2SendScheduler, LeavesOutAStreamWithoutAWindow) {
  Order order;
  order.want(0);
  order.want(1);
  ASSERT_TRUE(H2StreamTest::change_send(order.streams[0], -100));
  EXPECT_EQ(order.turns(2), "11");
  order.scheduler.enqueue(order.streams[0]);
  EXPECT_EQ(order.turns(1), "1") << "its window is still closed";
  ASSERT_TRUE(H2StreamTest::change_send(order.streams[0], 1));
  order.scheduler.enqueue(order.streams[0]);
  SendScheduler::stop(order.streams[1]);
  EXPECT_EQ(order.turns(1), "0");
}

TEST(H2SendScheduler, DoesNotQueueAStreamThatHasNothingToSend) {
  Order order;
  order.scheduler.enqueue(order.streams[0]);
  EXPECT_EQ(order.turns(1), "-");
  order.want(0);
  SendScheduler::stop(order.streams[0]);
  order.scheduler.enqueue(order.streams[0]);
  EXPECT_EQ(order.turns(1), "-");
}

TEST(H2SendScheduler, PutsAStreamBehindThoseOfItsNewUrgency) {
  Order order;
  order.want(0);
  order.want(1, urgent);
  order.scheduler.set_priority(order.streams[0], urgent);
  EXPECT_EQ(order.turns(1), "1");
  SendScheduler::stop(order.streams[1]);
  EXPECT_EQ(order.turns(1), "0");
  EXPECT_EQ(order.streams[0].priority(), urgent);
}

TEST(H2SendScheduler, KnowsWhichStreamsTakeTurns) {
  Order order;
  EXPECT_FALSE(order.scheduler.takes_turns(order.streams[0])) << "it is not queued";
  order.want(0, incremental);
  EXPECT_FALSE(order.scheduler.takes_turns(order.streams[0])) << "it is alone";
  order.want(1, incremental);
  EXPECT_TRUE(order.scheduler.takes_turns(order.streams[0]));
  EXPECT_TRUE(order.scheduler.takes_turns(order.streams[1]));
  order.want(2);
  EXPECT_FALSE(order.scheduler.takes_turns(order.streams[2])) << "it is not incremental";
}

}  // namespace
}  // namespace weir::http::send_scheduler_test

// Tests of the texts that a process passes to a newer one.
#include "weir/loop/detail/handover_state.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::loop::handover_state_test {
namespace {

TEST(HandoverState, NewerProcessTakesEachTextOnce) {
  HandoverState older;
  int calls = 0;
  older.offer("a", [&] { return "text " + std::to_string(++calls); });
  older.offer("b", [] { return std::string("\0\xff", 2); });
  older.offer("b", [] { return std::string("\0\xfe", 2); });
  EXPECT_EQ(calls, 0) << "nothing is made before a newer process asks";
  HandoverState newer;
  newer.receive(older.to_bytes());
  EXPECT_EQ(newer.take("a"), "text 1");
  EXPECT_EQ(newer.take("a"), "");
  EXPECT_EQ(newer.take("b"), std::string("\0\xfe", 2));
  EXPECT_EQ(newer.take("c"), "");
  EXPECT_EQ(newer.to_bytes(), "") << "the next process gets what this one offers";
}

TEST(HandoverState, IgnoresIncompleteBytes) {
  HandoverState older;
  older.offer("a", [] { return std::string("one"); });
  older.offer("b", [] { return std::string("two"); });
  const std::string whole = older.to_bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    HandoverState newer;
    newer.receive(whole.substr(0, size));
    EXPECT_EQ(newer.take("a"), size < whole.size() / 2 ? "" : "one") << size;
    EXPECT_EQ(newer.take("b"), "");
  }
}

TEST(HandoverState, LeavesOutTextsThatDoNotFit) {
  HandoverState older;
  older.offer("a", [] { return std::string(15'000, 'x'); });
  older.offer("b", [] { return std::string(2'000, 'y'); });
  older.offer("c", [] { return std::string("z"); });
  HandoverState newer;
  newer.receive(older.to_bytes());
  EXPECT_EQ(newer.take("a").size(), 15'000U);
  EXPECT_EQ(newer.take("b"), "");
  EXPECT_EQ(newer.take("c"), "z");
}

}  // namespace
}  // namespace weir::loop::handover_state_test

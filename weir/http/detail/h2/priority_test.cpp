// Tests of the priority field.
#include "weir/http/detail/h2/priority.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace weir::http::priority_test {
namespace {

TEST(Priority, HasDefaults) {
  EXPECT_EQ(parse_priority(""), (Priority{.urgency = 3, .incremental = false}));
}

TEST(Priority, ReadsBothParameters) {
  struct Case {
    std::string_view value;
    Priority priority;
  };
  for (const Case& each : {
           Case{"u=0", {0, false}},
           Case{"u=7", {7, false}},
           Case{"i", {3, true}},
           Case{"i=?1", {3, true}},
           Case{"u=1, i", {1, true}},
           Case{"i,u=5", {5, true}},
           Case{" \tu=2 ,\ti ", {2, true}},
           Case{"u=2;a=b, i;c", {2, true}},
           Case{"u=2, u=4", {4, false}},
           Case{"i, i=?0", {3, false}},
       }) {
    EXPECT_EQ(parse_priority(each.value), each.priority) << each.value;
  }
}

TEST(Priority, IgnoresWhatIsUnknownOrInvalid) {
  for (const std::string_view value : {"u=8", "u=-1", "u=10", "u", "u=", "u=a", "i=1", "i=?2", "I",
                                       "x=1", ",", ", ,", "u=1 2", "x=\", u=1\"", "x=\"", "u:1"}) {
    EXPECT_EQ(parse_priority(value), Priority()) << value;
  }
  EXPECT_EQ(parse_priority("u=9, x, u=2"), (Priority{.urgency = 2}));
}

}  // namespace
}  // namespace weir::http::priority_test

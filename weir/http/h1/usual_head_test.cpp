#include "weir/http/h1/usual_head.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <string>

#include "weir/http/h1/writer.hpp"

namespace weir::http {
namespace {

std::string head_of(const Date& date, std::string_view type, std::uint64_t length) {
  std::string text;
  ResponseHead head;
  head.date = &date;
  head.content_type = type;
  head.content_length = length;
  append_head(text, head);
  return text;
}

TEST(UsualHead, IsLikeAnyOther) {
  constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  UsualHead usual;
  for (int day = 0; day < 3; ++day) {
    const Date date{WallTime(std::chrono::hours(24 * day))};
    for (std::size_t type_size = 0; type_size <= UsualHead::type_size_max; ++type_size) {
      const std::string type(type_size, 'x');
      usual.begin(date, type);
      for (const std::uint64_t length : {0UL, 9UL, 10UL, 99UL, 100UL, 1234567UL, largest}) {
        const std::unique_ptr<char[]> out(new char[UsualHead::size_max]);
        char* const end = usual.write(length, out.get());
        ASSERT_LE(end, out.get() + UsualHead::size_max);
        EXPECT_EQ(std::string(out.get(), end), head_of(date, type, length));
      }
    }
  }
}

TEST(UsualHead, KnowsWhatItIsFor) {
  UsualHead usual;
  EXPECT_FALSE(usual.is_for({}));
  const Date date{WallTime()};
  constexpr std::string_view types = "text/plain";
  usual.begin(date, types);
  EXPECT_TRUE(usual.is_for(types));
  EXPECT_FALSE(usual.is_for(types.substr(0, 4)));
  EXPECT_FALSE(usual.is_for({}));
  usual.begin(date, {});
  EXPECT_TRUE(usual.is_for({}));
  EXPECT_FALSE(usual.is_for(types));
}

}  // namespace
}  // namespace weir::http

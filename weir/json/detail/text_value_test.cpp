// Tests of single values in texts without quotes.
#include "weir/json/detail/text_value.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::json {

enum class Light : std::uint8_t { red, amber, green };

}  // namespace weir::json

template <>
inline constexpr std::array weir::json::enumerators<weir::json::Light>{
    weir::json::Named{weir::json::Light::red, "red"},
    weir::json::Named{weir::json::Light::amber, "amber"},
    weir::json::Named{weir::json::Light::green, "green"}};

namespace weir::json::detail {
namespace {

/// Returns the value, or `before` if the text does not fit.
template <class T>
T read(std::string_view text, T before) {
  T value = before;
  const bool fits = TextValue<T>::read(text, value);
  EXPECT_TRUE(fits || value == before) << text;
  return value;
}

TEST(TextValue, ReadsExactIntegers) {
  EXPECT_EQ(read<int>("-12", 1), -12);
  EXPECT_EQ(read<std::uint8_t>("255", 1), 255);
  for (const char* const text : {"", " 2", "2 ", "+2", "2.0", "0x2", "256", "-1", "two"}) {
    EXPECT_EQ(read<std::uint8_t>(text, 1), 1) << text;
  }
  EXPECT_EQ(TextValue<std::int8_t>::expected(), "an integer from -128 to 127");
  EXPECT_EQ(TextValue<std::uint16_t>::expected(), "an integer from 0 to 65535");
}

TEST(TextValue, ReadsFiniteNumbers) {
  EXPECT_EQ(read<double>("0.5", 1), 0.5);
  EXPECT_EQ(read<float>("-2e3", 1), -2000.0F);
  for (const char* const text : {"", "inf", "nan", "1e999", "1,5", " 2"}) {
    EXPECT_EQ(read<double>(text, 1), 1) << text;
  }
}

TEST(TextValue, ReadsWordsAndTexts) {
  EXPECT_TRUE(read<bool>("true", false));
  EXPECT_FALSE(read<bool>("false", true));
  EXPECT_TRUE(read<bool>("no", true));
  EXPECT_EQ(read<Light>("green", Light::red), Light::green);
  EXPECT_EQ(read<Light>("Green", Light::red), Light::red);
  EXPECT_EQ(TextValue<Light>::expected(), R"("red", "amber" or "green")");
  EXPECT_EQ(read<std::string>("a b", "-"), "a b");
  EXPECT_EQ(read<std::string_view>("", "-"), "");
}

static_assert(!HasTextValue<std::vector<int>> && !HasTextValue<std::optional<int>>);
static_assert(!HasTextValue<char> && HasTextValue<std::int64_t>);

}  // namespace
}  // namespace weir::json::detail

// Tests of the values that each type reads and writes.
#include "weir/config/type/detail/type.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/config/test/config_fixture.hpp"
#include "weir/config/type/detail/scalar.hpp"
#include "weir/config/type/detail/type_of.hpp"

namespace weir::config::test::type_test {
namespace {

template <class T>
struct One {
  T value{};
};

template <class T>
std::string written(const T& value) {
  std::string text = ">";
  type_of<T>().write(text, &value);
  return text;
}

/// Returns the error of `value = TEXT` in a file, without its position and key.
template <class T>
std::string error_in_file(std::string_view text) {
  const std::string line = "value = " + std::string(text);
  const std::string error = errors_of<One<T>>({line});
  const std::string_view beginning = "a.toml:1:9: value: ";
  return error.starts_with(beginning) ? error.substr(beginning.size()) : error;
}

TEST(ConfigType, ValuesAreWrittenAsInToml) {
  EXPECT_EQ(written(std::vector<int>{}), ">[]");
  EXPECT_EQ(written(std::vector<int>{1, 2}), ">[1, 2]");
  EXPECT_EQ(written(std::map<std::string, int>{}), ">{}");
  EXPECT_EQ(written(std::map<std::string, int>{{"a", 1}, {"b", 2}}), ">{\"a\" = 1, \"b\" = 2}");
  EXPECT_EQ(written(std::optional<int>()), ">none");
  EXPECT_EQ(written(std::optional<int>(3)), ">3");
  EXPECT_EQ(written(Certificate()), ">{file = \"none.pem\", days = 90}");
  EXPECT_EQ(written(true), ">true");
  EXPECT_EQ(written(0.5), ">0.5");
  EXPECT_EQ(written(std::numeric_limits<std::uint64_t>::max()), ">18446744073709551615");
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::min()), ">-9223372036854775808");
  EXPECT_EQ(written(std::string("a\"b")), ">\"a\\\"b\"");
  EXPECT_EQ(written(64_KiB), ">\"64KiB\"");
  EXPECT_EQ(written(Endpoint::any(80)), ">\"[::]:80\"");
  EXPECT_EQ(written(Color::green), ">\"green\"");
  EXPECT_EQ(written(static_cast<Color>(7)), ">7");
}

TEST(ConfigType, DurationsAreWrittenWithTheirUnit) {
  EXPECT_EQ(written(std::chrono::hours(2)), ">\"2h\"");
  EXPECT_EQ(written(std::chrono::milliseconds(-5)), ">\"-5ms\"");
  EXPECT_EQ(written(std::chrono::hours(std::int64_t{1} << 50)), ">\"1125899906842624h\"")
      << "more than a Duration holds";
}

TEST(ConfigType, TimesAreDatesOfTomlOrTexts) {
  using Time = std::chrono::sys_seconds;
  const Time expected(std::chrono::seconds(1'795'644'883));
  for (const std::string text :
       {"2026-11-25T22:14:43Z", "2026-11-25T22:14:43.000Z", "2026-11-25T23:14:43+01:00",
        "2026-11-25 21:44:43-00:30", "'2026-11-25T22:14:43Z'"}) {
    EXPECT_EQ(settings<One<Time>>({"value = " + text}).value, expected) << text;
  }
  EXPECT_EQ(settings<One<Time>>({"", {"APP_VALUE=2026-11-25T22:14:43Z"}}).value, expected);
  EXPECT_EQ(written(expected), ">\"2026-11-25T22:14:43Z\"");
  EXPECT_EQ(type_of<Time>().placeholder(), "TIME");
  const std::string found = ", found a date or time";
  EXPECT_EQ(error_in_file<Time>("2026-11-25T22:14:43"),
            "expected a time that ends with Z or an offset such as +01:00" + found);
  EXPECT_EQ(error_in_file<Time>("2026-11-25T22:14:43.5Z"),
            "expected a time that is a multiple of 1s" + found);
  const std::string form =
      "expected a time such as 2026-11-25T22:14:43Z or 2026-11-25T23:14:43+01:00, a multiple of 1s";
  EXPECT_EQ(error_in_file<Time>("2026-11-25"), form + found);
  EXPECT_EQ(error_in_file<Time>("22:14:43"), form + found);
  EXPECT_EQ(error_in_file<Time>("1795644883"), form + ", found 1795644883");
  EXPECT_NE(error_in_file<Duration>("2026-11-25T22:14:43Z"), "");
}

TEST(ConfigType, PathsAreStringsWithoutNul) {
  using Path = std::filesystem::path;
  EXPECT_EQ(settings<One<Path>>({"value = '/etc/weir.pem'"}).value, Path("/etc/weir.pem"));
  EXPECT_EQ(settings<One<Path>>({"", {"APP_VALUE=a b"}}).value, Path("a b"));
  EXPECT_EQ(written(Path("a/b")), ">\"a/b\"");
  EXPECT_EQ(error_in_file<Path>("\"a\\u0000b\""),
            "expected a path without the character NUL, found the string \"a\\u0000b\"");
  EXPECT_EQ(type_of<Path>().placeholder(), "PATH");
  EXPECT_EQ(type_of<Duration>().placeholder(), "DURATION");
}

TEST(ConfigType, ErrorDescribesTheFoundValue) {
  const std::string expected = "expected an integer from 0 to 255, found ";
  using Byte = std::uint8_t;
  EXPECT_EQ(error_in_file<Byte>("'1'"), expected + "the string \"1\"");
  EXPECT_EQ(error_in_file<Byte>("1.5"), expected + "the number 1.5");
  EXPECT_EQ(error_in_file<Byte>("true"), expected + "true");
  EXPECT_EQ(error_in_file<Byte>("2026-11-22"), expected + "a date or time");
  EXPECT_EQ(error_in_file<Byte>("12:30:00"), expected + "a date or time");
  EXPECT_EQ(error_in_file<Byte>("[1]"), expected + "an array");
  EXPECT_EQ(error_in_file<Byte>("{ a = 1 }"), expected + "a table");
  EXPECT_EQ(error_in_file<Byte>("256"), expected + "256");
  EXPECT_EQ(error_in_file<Byte>("-1"), expected + "-1");
  EXPECT_EQ(error_in_file<Byte>("0") + error_in_file<Byte>("255"), "");
}

TEST(ConfigType, CheckedValuesSatisfyTheirRules) {
  using Stars = Checked<int, rule::Range<1, 5>>;
  using Name = Checked<std::string, rule::Length<1, 3>, rule::Pattern<"[a-z]+">>;
  EXPECT_EQ(error_in_file<Stars>("1") + error_in_file<Stars>("5"), "");
  EXPECT_EQ(error_in_file<Stars>("6"), "expected an integer from 1 to 5, found 6");
  EXPECT_NE(error_in_file<Stars>("'5'"), "");
  EXPECT_EQ(
      error_in_file<Name>("'abcd'"),
      "expected a string of 1 to 3 characters that matches [a-z]+, found the string \"abcd\"");
  EXPECT_EQ(*settings<One<Stars>>({"value = 4"}).value, 4);
  EXPECT_EQ(*settings<One<Stars>>({"", {"APP_VALUE=2"}}).value, 2);
  EXPECT_EQ(errors_of<One<Stars>>({"", {"APP_VALUE=7"}}),
            "environment APP_VALUE: value: expected an integer from 1 to 5, found \"7\"");
  EXPECT_EQ((error_in_file<Checked<std::vector<int>, rule::Length<1, 2>>>("[]")),
            "expected an array of 1 to 2 elements, found an array");
  EXPECT_EQ(written(Stars(3)), ">3");
  EXPECT_EQ(type_of<Stars>().expected(), "an integer from 1 to 5");
  EXPECT_EQ(type_of<Stars>().placeholder(), "INTEGER");
}

TEST(ConfigType, WrongKindsOfValuesAreErrors) {
  for (const std::string_view text : {"'true'", "'1'", "1", "[true]"}) {
    EXPECT_NE(error_in_file<bool>(text), "") << text;
  }
  for (const std::string_view text : {"1.5", "true", "[1]", "-1"}) {
    EXPECT_NE(error_in_file<ByteSize>(text), "") << text;
  }
  for (const std::string_view text : {"1", "true", "[':1']"}) {
    EXPECT_NE(error_in_file<Endpoint>(text), "") << text;
    EXPECT_NE(error_in_file<Color>(text), "") << text;
    EXPECT_NE(error_in_file<Duration>(text), "") << text;
    EXPECT_NE(error_in_file<std::string>(text), "") << text;
  }
  for (const std::string_view text : {"'1.5'", "true", "[1.5]"}) {
    EXPECT_NE(error_in_file<double>(text), "") << text;
    EXPECT_NE(error_in_file<std::int32_t>(text), "") << text;
    EXPECT_NE(error_in_file<std::uint64_t>(text), "") << text;
  }
  EXPECT_NE((error_in_file<std::map<std::string, int>>("'{ a = 1 }'")), "");
  EXPECT_NE(error_in_file<std::vector<int>>("'[1]'"), "");
  EXPECT_NE(error_in_file<std::vector<int>>("{ a = 1 }"), "");
  EXPECT_NE((error_in_file<std::map<std::string, int>>("[1]")), "");
}

TEST(ConfigType, SmallestAndLargestValuesAreRead) {
  EXPECT_EQ(settings<One<ByteSize>>({"value = 0"}).value, 0_B);
  EXPECT_EQ(settings<One<double>>({"value = -9007199254740992"}).value, -9007199254740992.0);
  EXPECT_NE(error_in_file<double>("-9007199254740993"), "");
  EXPECT_EQ(error_in_file<double>("9007199254740993"),
            "expected a number with a decimal point, or an integer that 53 bits hold exactly, "
            "found 9007199254740993");
  EXPECT_EQ(error_in_file<double>("true"), "expected a number, found true");
  EXPECT_EQ(errors_of<One<double>>({"", {"APP_VALUE="}}),
            "environment APP_VALUE: value: expected a number, found \"\"");
  EXPECT_EQ(settings<One<float>>({"value = 16777216"}).value, 16777216.0F);
  EXPECT_EQ(error_in_file<float>("16777217"),
            "expected a number with a decimal point, or an integer that 24 bits hold exactly, "
            "found 16777217");
  EXPECT_EQ(error_in_file<float>("-16777217"),
            "expected a number with a decimal point, or an integer that 24 bits hold exactly, "
            "found -16777217");
  EXPECT_EQ(settings<One<float>>({"value = 16777217.5"}).value, 16777218.0F) << "the nearest";
  EXPECT_EQ(error_in_file<float>("3.4028234663852886e38"), "");
  EXPECT_EQ(error_in_file<float>("-3.4028234663852886e38"), "");
  EXPECT_NE(error_in_file<float>("-1e39"), "");
  using Short = std::chrono::duration<std::int8_t, std::ratio<60>>;
  EXPECT_EQ(settings<One<Short>>({"value = '0s'"}).value, Short(0));
  EXPECT_FALSE(settings<One<bool>>({"", {"APP_VALUE=false"}}).value);
}

TEST(ConfigType, AnIntegerOutsideOfAFileIsExactToo) {
  const auto outside = [](auto type, std::string_view text) {
    const auto read = try_load<One<decltype(type)>>({"", {"APP_VALUE=" + std::string(text)}, {}});
    return read ? std::optional(read->value) : std::nullopt;
  };
  EXPECT_EQ(outside(double(), "9007199254740992"), 9007199254740992.0);
  EXPECT_EQ(outside(double(), "-9007199254740992"), -9007199254740992.0);
  EXPECT_EQ(outside(double(), "9007199254740993.0"), 9007199254740992.0) << "the nearest";
  EXPECT_EQ(outside(float(), "16777216"), 16777216.0F);
  EXPECT_EQ(outside(double(), "0"), 0.0);
  for (const char* const text :
       {"9007199254740993", "-9007199254740993", "99999999999999999999", "-", "--1", "1-", ""}) {
    EXPECT_EQ(outside(double(), text), std::nullopt) << text;
  }
  EXPECT_EQ(outside(float(), "16777217"), std::nullopt);
}

TEST(ConfigType, NamesOfBackendsAreThoseOfTheDocumentation) {
  const std::vector<std::pair<std::string, BackendChoice>> names = {
      {"auto", BackendChoice::automatic},
      {"uring", BackendChoice::uring},
      {"uring:6.1", BackendChoice::uring_6_1},
      {"epoll", BackendChoice::epoll},
      {"poll", BackendChoice::poll}};
  for (const auto& [name, choice] : names) {
    EXPECT_EQ(settings<One<BackendChoice>>({"", {"APP_VALUE=" + name}}).value, choice);
    EXPECT_EQ(written(choice), ">\"" + name + "\"");
  }
  EXPECT_EQ(error_in_file<BackendChoice>("'kqueue'"),
            "expected \"auto\", \"uring\", \"uring:6.1\", \"epoll\" or \"poll\", found the string "
            "\"kqueue\"");
  EXPECT_EQ(type_of<BackendChoice>().placeholder(), "auto|uring|uring:6.1|epoll|poll");
}

TEST(ConfigType, LongPlaceholderOfNamesIsAbbreviated) {
  const std::string first(19, 'a');
  const std::string second(20, 'b');
  const std::vector<std::string_view> forty = {first, second};
  EXPECT_EQ(placeholder_of_names(forty), first + "|" + second);
  const std::string longer = second + "b";
  const std::vector<std::string_view> more = {first, longer};
  EXPECT_EQ(placeholder_of_names(more), "NAME");
  EXPECT_EQ(expected_names(std::vector<std::string_view>{"one"}), "\"one\"");
}

struct ShortNames {
  struct Section {
    int b = 0;
  };
  Section a;
};

TEST(ConfigType, NamesOfOneLetterAreSeparatedInAKey) {
  EXPECT_THAT(errors_of<ShortNames>({"a.b = 'x'"}),
              testing::StartsWith("a.toml:1:7: a.b: expected"));
}

// A column of the text that was parsed for a variable would mislead.
TEST(ConfigType, ValueOutsideOfAFileHasNoPosition) {
  EXPECT_EQ(errors_of({"", {"APP_TAGS=['a', 5]"}}),
            "environment APP_TAGS: tags[1]: expected a string, found 5");
  EXPECT_EQ(errors_of({"", {"APP_COLORS={sky = 'blue'}"}}),
            "environment APP_COLORS: colors.sky: expected \"red\" or \"green\", found the string "
            "\"blue\"");
  EXPECT_EQ(errors_of({"", {}, {"--peers=[{nmae = 'a'}]"}}),
            "argument --peers: peers[0].nmae: unknown; did you mean name?");
  EXPECT_EQ(errors_of({"", {"APP_COLORS=x"}}),
            "environment APP_COLORS: colors: expected a table, each value \"red\" or \"green\", "
            "found \"x\"");
  const std::string cut = errors_of({"", {"APP_COLORS={sky"}});
  EXPECT_TRUE(
      cut.starts_with("environment APP_COLORS: colors: expected a table, each value "
                      "\"red\" or \"green\"; invalid TOML: "))
      << cut;
}

TEST(ConfigType, KeyMayHave256DotsInALine) {
  const auto dotted = [](std::size_t dots) {
    std::string key = "a";
    for (std::size_t each = 0; each < dots; ++each) key += ".a";
    return key + " = 1\n";
  };
  const std::string too_many = ": a line with more than 256 dots";
  EXPECT_TRUE(errors_of({dotted(256)}).starts_with("a.toml:1:1: a: unknown"));
  EXPECT_EQ(errors_of({dotted(257)}), "a.toml:1:1" + too_many);
  EXPECT_FALSE(errors_of({dotted(200) + "b." + dotted(200)}).contains("dots"));
  EXPECT_EQ(errors_of({"# it's\n" + dotted(257)}), "a.toml:2:1" + too_many);
  const std::string dots(257, '.');
  EXPECT_EQ(errors_of({"name = \"it's\" # " + dots}), "a.toml:1:1" + too_many);
  EXPECT_EQ(errors_of({"name = 'a\"b' # " + dots}), "a.toml:1:1" + too_many);
  EXPECT_EQ(errors_of({"name = \"" + dots + "\""}), "");
  EXPECT_EQ(errors_of({"name = \"'" + dots + "\""}), "");
}

TEST(ConfigType, InvalidTomlIsDescribedInOneSafeLine) {
  const std::string told = errors_of({"name = 'x'\nseed = = 1\n"});
  EXPECT_EQ(told.find_first_of("\n?"), std::string::npos) << told;
  EXPECT_FALSE(told.contains("(error")) << told;
  for (const char* const text : {"seed = \x01", "seed = \x7f", "seed = \xc3\xa9", "\x1b[31m = 1"}) {
    for (const char each : errors_of({text})) {
      EXPECT_TRUE(each >= ' ' && each <= '~') << static_cast<int>(each);
    }
  }
}

}  // namespace
}  // namespace weir::config::test::type_test

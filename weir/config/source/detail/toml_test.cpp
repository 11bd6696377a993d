// Tests of the values and errors that the TOML parser returns.
#include "weir/config/source/detail/toml.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::config::toml_test {
namespace {

TEST(ConfigToml, ItemsHaveTheOrderOfTheText) {
  const auto table = parse_toml("b = 1\na = 2\n\n[d]\nz = 3\ny = 4\n\n[c]\n", "f");
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->kind, RawValue::Kind::table);
  EXPECT_EQ(table->name, "");
  std::string names;
  for (const RawValue& each : table->items) names += each.name;
  EXPECT_EQ(names, "badc");
  const RawValue& inner = table->items.at(2);
  ASSERT_EQ(inner.items.size(), 2U);
  EXPECT_EQ(inner.items[0].name, "z");
  EXPECT_EQ(inner.items[0].name_position, (Position{5, 1}));
  EXPECT_EQ(inner.items[0].position, (Position{5, 5}));
  EXPECT_EQ(inner.items[1].name, "y");
}

TEST(ConfigToml, ASingleValueHasNeitherANameNorAPosition) {
  const auto list = parse_toml_value("[1, ['a'], {b = true, c = 0.5}]");
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->kind, RawValue::Kind::array);
  EXPECT_EQ(list->name, "") << "it is no item of a table";
  EXPECT_EQ(list->position, Position());
  EXPECT_EQ(list->name_position, Position());
  ASSERT_EQ(list->items.size(), 3U);
  EXPECT_EQ(list->items[0].integer, 1);
  EXPECT_EQ(list->items[0].position, Position());
  EXPECT_EQ(list->items[1].items.at(0).text, "a");
  EXPECT_EQ(list->items[1].items[0].position, Position());
  const RawValue& table = list->items[2];
  ASSERT_EQ(table.items.size(), 2U);
  EXPECT_EQ(table.items[0].name, "b");
  EXPECT_EQ(table.items[0].name_position, Position());
  EXPECT_EQ(table.items[0].position, Position());
  EXPECT_EQ(table.items[1].real, 0.5);
}

TEST(ConfigToml, ADateWithATimeHasATextOfRfc3339) {
  const auto text_of = [](const std::string& text) {
    const auto value = parse_toml_value(text);
    return value ? value->text : value.error();
  };
  EXPECT_EQ(text_of("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05.000000000+00:00");
  EXPECT_EQ(text_of("2026-01-02 03:04:05.5-09:30"), "2026-01-02T03:04:05.500000000-09:30");
  EXPECT_EQ(text_of("2026-01-02T03:04:05+01:00"), "2026-01-02T03:04:05.000000000+01:00");
  EXPECT_EQ(text_of("2026-01-02T03:04:05"), "2026-01-02T03:04:05.000000000");
  EXPECT_EQ(text_of("2026-01-02"), "");
  EXPECT_EQ(text_of("03:04:05"), "");
}

TEST(ConfigToml, ASingleValueHasOneLine) {
  for (const char* const text : {"[1,\n2]", "[1]\r", "[1]\nother = 2", "\n[1]"}) {
    const auto value = parse_toml_value(text);
    ASSERT_FALSE(value.has_value()) << text;
    EXPECT_EQ(value.error(), "the value has more than one line");
  }
  const auto cut = parse_toml_value("[1");
  ASSERT_FALSE(cut.has_value());
  EXPECT_TRUE(cut.error().starts_with("invalid TOML: ")) << cut.error();
}

// The description of this error contains the whole key.
TEST(ConfigToml, TheDescriptionOfAnErrorHasAtMost200Bytes) {
  const std::string_view beginning = "invalid TOML: ";
  const auto twice = [](const std::string& key) { return key + " = 1\n" + key + " = 2\n"; };
  const auto large = parse_toml(twice(std::string(300, 'k')), "f");
  ASSERT_FALSE(large.has_value());
  EXPECT_TRUE(large.error().what.starts_with(beginning)) << large.error().what;
  EXPECT_TRUE(large.error().what.ends_with("kkk")) << large.error().what;
  EXPECT_EQ(large.error().what.size(), beginning.size() + 200);
  EXPECT_TRUE(large.error().source.starts_with("f:2:")) << large.error().source;
  const auto small = parse_toml(twice("key"), "f");
  ASSERT_FALSE(small.has_value());
  EXPECT_TRUE(small.error().what.contains("key")) << small.error().what;
  EXPECT_LT(small.error().what.size(), 100U);
}

TEST(ConfigToml, TheDescriptionOfAnErrorHasNoControlCharacters) {
  const auto table = parse_toml("'a\tb' = 1\n'a\tb' = 2\n", "f");
  ASSERT_FALSE(table.has_value());
  EXPECT_TRUE(table.error().what.contains("a?")) << table.error().what;
  for (const char each : table.error().what) EXPECT_TRUE(each >= ' ' && each <= '~');
}

TEST(ConfigToml, EveryLineMayHave256Dots) {
  const auto dotted = [](std::string key, std::size_t dots) {
    for (std::size_t each = 0; each < dots; ++each) key += ".a";
    return key + " = 1\n";
  };
  EXPECT_TRUE(parse_toml(dotted("x", 256) + dotted("y", 256) + dotted("z", 256), "f").has_value());
  const auto beyond = parse_toml(dotted("x", 256) + dotted("y", 257), "f");
  ASSERT_FALSE(beyond.has_value());
  EXPECT_EQ(beyond.error().message(), "f:2:1: a line with more than 256 dots");
  // A quote that is escaped ends no string.
  EXPECT_FALSE(parse_toml(dotted(R"("\"")", 300), "f").has_value());
  EXPECT_FALSE(parse_toml(dotted(R"("\\")", 300), "f").has_value());
  EXPECT_FALSE(parse_toml(dotted(R"('\')", 300), "f").has_value());
  EXPECT_TRUE(parse_toml("x = \"\\\"" + std::string(300, '.') + "\"\n", "f").has_value());
}

TEST(ConfigToml, FormatsALocation) {
  EXPECT_EQ(format_location("server.toml", {12, 8}), "server.toml:12:8");
  EXPECT_EQ(format_location("server.toml", {}), "server.toml");
}

}  // namespace
}  // namespace weir::config::toml_test

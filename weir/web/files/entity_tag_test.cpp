// Tests of EntityTag.
#include "weir/web/files/entity_tag.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace weir::http::entity_tag_test {
namespace {

TEST(EntityTag, ParsesStrongAndWeakTags) {
  const auto strong = EntityTag::parse("\"a1\"");
  ASSERT_TRUE(strong);
  EXPECT_EQ(strong->opaque, "\"a1\"");
  EXPECT_FALSE(strong->weak);
  const auto weak = EntityTag::parse("W/\"\"");
  ASSERT_TRUE(weak);
  EXPECT_EQ(weak->opaque, "\"\"");
  EXPECT_TRUE(weak->weak);
}

TEST(EntityTag, RejectsOtherTexts) {
  for (const std::string_view text : {"", "a", "\"a", "a\"", "w/\"a\"", "W/a", "\"a\"b", "\"a b\"",
                                      "\"a\" ", "W/ \"a\"", "\"a\tb\"", "\"\x7f\""}) {
    EXPECT_FALSE(EntityTag::parse(text)) << text;
  }
  EXPECT_TRUE(EntityTag::parse("\"\xfc!#\""));
}

// The table of RFC 9110 §8.8.3.2.
TEST(EntityTag, ComparesAsTheTableOfTheRfc) {
  struct Row {
    std::string_view first;
    std::string_view second;
    bool strong;
    bool weak;
  };
  for (const Row& row :
       {Row{"W/\"1\"", "W/\"1\"", false, true}, Row{"W/\"1\"", "W/\"2\"", false, false},
        Row{"W/\"1\"", "\"1\"", false, true}, Row{"\"1\"", "\"1\"", true, true}}) {
    const auto first = EntityTag::parse(row.first);
    const auto second = EntityTag::parse(row.second);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->matches(*second, TagComparison::strong), row.strong) << row.first;
    EXPECT_EQ(first->matches(*second, TagComparison::weak), row.weak) << row.first;
    EXPECT_EQ(second->matches(*first, TagComparison::strong), row.strong) << row.second;
  }
}

TEST(EntityTag, OfAContentDependsOnItsBytes) {
  const std::string tag = entity_tag_of("one");
  EXPECT_EQ(tag.size(), 34U);
  const auto parsed = EntityTag::parse(tag);
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->weak);
  EXPECT_EQ(entity_tag_of(std::string("one")), tag);
  EXPECT_NE(entity_tag_of("two"), tag);
  EXPECT_NE(entity_tag_of(""), entity_tag_of(std::string(1, '\0')));
}

TEST(EntityTag, IsFoundInAList) {
  const EntityTag tag{"\"b\"", false};
  const auto finds = [&](std::string_view list) {
    return contains_tag(list, tag, TagComparison::weak);
  };
  EXPECT_TRUE(finds("\"b\""));
  EXPECT_TRUE(finds("\"a\", W/\"b\""));
  EXPECT_TRUE(finds(" , \"a,\" ,,\t\"b\""));
  EXPECT_FALSE(finds(""));
  EXPECT_FALSE(finds("\"a\""));
  EXPECT_FALSE(finds("\"a, \"b\""));
  EXPECT_FALSE(finds("\"a\" \"b\""));
  EXPECT_FALSE(finds("a, \"b\""));
  EXPECT_FALSE(contains_tag("W/\"b\"", tag, TagComparison::strong));
}

}  // namespace
}  // namespace weir::http::entity_tag_test

// Tests of the cases that are built in.
#include "tools/weir/check/case_registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace weir::check {
namespace {

TEST(CaseRegistry, EveryCaseHasAUniqueNameARuleAndAReason) {
  const CaseRegistry registry;
  std::set<std::string> names;
  for (const Case& each : registry.cases()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    ASSERT_NE(each.rule, nullptr) << each.name;
    EXPECT_NE(each.why, "") << each.name;
    EXPECT_EQ(each.script == nullptr, !each.expect.empty()) << each.name;
    EXPECT_EQ(each.also.empty() && each.lenient.empty(), each.note.empty()) << each.name;
  }
  EXPECT_GT(registry.cases().size(), 520U);
}

TEST(CaseRegistry, EveryExpectationIsAKnownWordOrStatus) {
  const std::set<std::string> words{"200", "400", "100", "wait", "closeok"};
  const CaseRegistry registry;
  for (const Case& each : registry.cases()) {
    for (const auto* const list : {&each.expect, &each.also, &each.lenient}) {
      for (const std::string& expected : *list) {
        const bool status = expected.size() == 3 && expected[0] >= '4' && expected[0] <= '5';
        EXPECT_TRUE(status || words.contains(expected)) << each.name << " " << expected;
      }
    }
  }
}

TEST(CaseRegistry, ReadsBytesFromTheFiles) {
  const CaseRegistry registry;
  const auto bytes_of = [&registry](std::string_view name) {
    const auto found = std::ranges::find(registry.cases(), name, &Case::name);
    return found == registry.cases().end() ? std::string("missing") : found->bytes;
  };
  EXPECT_EQ(bytes_of("header-09"), "GET / HTTP/1.1\r\nHost: a.test\r\nX: caf\xe9\r\n\r\n");
  EXPECT_EQ(bytes_of("request-line-11"),
            std::string("G\0T / HTTP/1.1\r\nHost: a.test\r\n\r\n", 32));
  EXPECT_EQ(bytes_of("rule-04-74"),
            "GET /" + std::string(8000, 'a') + " HTTP/1.1\r\nHost: a.test\r\n\r\n");
  EXPECT_EQ(bytes_of("rule-06-28"), "missing") << "it tests a limit of Weir";
}

TEST(CaseRegistry, SelectsCasesByNameBeginningAndCategory) {
  const CaseRegistry registry;
  const auto count = [&registry](std::string_view selector) {
    return std::ranges::count_if(registry.cases(),
                                 [&](const Case& each) { return is_selected(each, selector); });
  };
  EXPECT_EQ(count("rule-01-01"), 1);
  EXPECT_EQ(count("slow/head-bytes"), 1);
  EXPECT_EQ(count("slow/head"), 2);
  EXPECT_EQ(count("slow"), 11);
  EXPECT_EQ(count("rule-01"), 25);
  EXPECT_EQ(count("line-ends"), 25);
  EXPECT_EQ(count("rule-0"), 0) << "a beginning ends before a hyphen";
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(registry.rule("line-ends")->number, 1U);
  EXPECT_EQ(registry.rule("manners"), nullptr);
}

}  // namespace
}  // namespace weir::check

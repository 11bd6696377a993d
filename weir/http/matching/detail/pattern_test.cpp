#include "weir/http/matching/detail/pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/matching/detail/path_regex.hpp"
#include "weir/http/matching/detail/handler.hpp"

namespace weir::http {
namespace {

using Kind = SegmentText::Kind;

std::error_code fault_of(std::string_view text) {
  const auto pattern = Pattern::parse(text);
  return pattern ? std::error_code() : pattern.error();
}

TEST(Pattern, HasSegmentsBetweenSlashes) {
  const Pattern pattern = Pattern::parse("/a/{b}/{c:[0-9]+}/{d...}").value();
  const std::vector<Pattern::Segment> expected = {
      {Kind::literal, "a"}, {Kind::capture, ""}, {Kind::expression, "[0-9]+"}, {Kind::rest, ""}};
  EXPECT_EQ(pattern.segments(), expected);
  EXPECT_EQ(pattern.text(), "/a/{b}/{c:[0-9]+}/{d...}");
  EXPECT_EQ(pattern.shape().captures, 3U);
  EXPECT_TRUE(pattern.shape().rest);
  EXPECT_FALSE(pattern.is_literal());
}

TEST(Pattern, KeepsEmptySegments) {
  const auto empty = Pattern::Segment{Kind::literal, ""};
  const auto a = Pattern::Segment{Kind::literal, "a"};
  EXPECT_EQ(Pattern::parse("/").value().segments(), std::vector{empty});
  EXPECT_EQ(Pattern::parse("/a/").value().segments(), (std::vector{a, empty}));
  EXPECT_EQ(Pattern::parse("//a").value().segments(), (std::vector{empty, a}));
  EXPECT_TRUE(Pattern::parse("//").value().is_literal());
}

TEST(Pattern, DecodesLiterals) {
  const Pattern pattern = Pattern::parse("/caf%C3%a9/a%2Fb/%7Bx%7D").value();
  EXPECT_EQ(pattern.segments()[0].text, "caf\xc3\xa9");
  EXPECT_EQ(pattern.segments()[1].text, "a/b");
  EXPECT_EQ(pattern.segments()[2].text, "{x}");
}

TEST(Pattern, RefusesWhatNoPathHas) {
  EXPECT_EQ(fault_of(""), PatternFault::no_slash);
  EXPECT_EQ(fault_of("a/b"), PatternFault::no_slash);
  EXPECT_EQ(fault_of("*"), PatternFault::no_slash);
  for (const char* text :
       {"/a b", "/a?b", "/a#b", "/caf\xc3\xa9", "/a\"", "/a|b", "/a\\b", "/\n"}) {
    EXPECT_EQ(fault_of(text), PatternFault::bad_character) << text;
  }
  for (const char* text : {"/%", "/%4", "/%4/", "/%zz", "/%00", "/a%2"}) {
    EXPECT_EQ(fault_of(text), PatternFault::bad_escape) << text;
  }
  for (const char* text : {"/.", "/..", "/a/../b", "/%2e", "/.%2E", "/a/."}) {
    EXPECT_EQ(fault_of(text), PatternFault::dot_segment) << text;
  }
  EXPECT_FALSE(fault_of("/..."));
  EXPECT_FALSE(fault_of("/.a/a..b/:@!$&'()*+,;=-._~"));
}

TEST(Pattern, RefusesBadCaptures) {
  for (const char* text : {"/a{b}", "/{a}b", "/{a}{b}", "/a}", "/{a:[0-9]}x", "/a{"}) {
    EXPECT_EQ(fault_of(text), PatternFault::brace_in_literal) << text;
  }
  for (const char* text : {"/{", "/{a", "/{a/b}", "/{a:", "/{a:[0-9]{3}", "/{a:\\}", "/{a:[}"}) {
    EXPECT_EQ(fault_of(text), PatternFault::unclosed_brace) << text;
  }
  for (const char* text :
       {"/{}", "/{:x}", "/{1a}", "/{a b}", "/{a-b}", "/{...}", "/{a..}", "/{a.}", "/{a....}"}) {
    EXPECT_EQ(fault_of(text), PatternFault::bad_capture_name) << text;
  }
  EXPECT_EQ(fault_of("/{a:}"), PatternFault::empty_expression);
  EXPECT_EQ(fault_of("/{a...}/b"), PatternFault::rest_not_last);
  EXPECT_EQ(fault_of("/{a...}/"), PatternFault::rest_not_last);
  EXPECT_FALSE(fault_of("/{_a1}/{B...}"));
}

TEST(Pattern, HasLimits) {
  const auto repeat = [](std::string_view text, std::size_t times) {
    std::string all;
    for (std::size_t count = 0; count < times; ++count) all += text;
    return all;
  };
  EXPECT_FALSE(fault_of(repeat("/a", pattern_segments_max)));
  EXPECT_EQ(fault_of(repeat("/a", pattern_segments_max + 1)), PatternFault::too_many_segments);
  EXPECT_FALSE(fault_of(repeat("/{a}", pattern_captures_max)));
  EXPECT_EQ(fault_of(repeat("/{a}", pattern_captures_max + 1)), PatternFault::too_many_captures);
  EXPECT_FALSE(fault_of("/{a:" + repeat("(a)", pattern_captures_max - 1) + "}"));
  EXPECT_EQ(fault_of("/{a:" + repeat("(a)", pattern_captures_max) + "}"),
            PatternFault::too_many_captures);
}

TEST(Pattern, FindsTheEndOfAnExpression) {
  for (const std::string expression :
       {"[0-9]{3}", "a{1,2}b{2}", "\\{", "\\}", "[{]", "[}]", "[]}]", "[^]}]", "[\\]}]",
        "[[:alpha:]}]", "a/b", "(a|{)?}", "\\\\"}) {
    const auto pattern = Pattern::parse("/{x:" + expression + "}/y");
    ASSERT_TRUE(pattern) << expression;
    EXPECT_EQ(pattern->segments()[0].text, expression);
    EXPECT_EQ(pattern->segments()[1].text, "y");
  }
}

TEST(Pattern, CountsGroupsAsRe2Does) {
  for (const std::string expression :
       {"(a)", "(a)(b)", "((a)b)", "(?:a)", "(?P<n>a)", "(?i)a(b)", "(?i:a)", "\\(a\\)", "[(]",
        "[^(](a)", "[](]", "[[:alpha:](]", "\\\\(a)", "(a|(b|c))*", "[\\](](a)", "()"}) {
    const auto pattern = Pattern::parse("/{x:" + expression + "}");
    ASSERT_TRUE(pattern) << expression;
    const auto compiled = Expression::compile(expression, pattern->segments()[0].groups);
    EXPECT_TRUE(compiled) << expression << ": " << compiled.error().message();
  }
}

TEST(Pattern, EachFaultHasItsOwnMessage) {
  std::vector<std::string> messages;
  for (int code = 0; code <= static_cast<int>(PatternFault::wrong_rest_type); ++code) {
    messages.push_back(pattern_category().message(code));
  }
  std::sort(messages.begin(), messages.end());
  EXPECT_EQ(std::unique(messages.begin(), messages.end()), messages.end());
  EXPECT_EQ(make_error_code(PatternFault::no_slash).message(),
            "the pattern does not start with '/'");
}

// What the compiler refuses.

template <std::size_t N>
struct Constant {
  consteval Constant(const char (&literal)[N]) { std::copy_n(literal, N, text); }
  char text[N];
};

template <auto Value>
struct Use {};

/// Whether `routes.get(Text, F)` would compile.
template <Constant Text, class F>
concept Fits = requires { typename Use<(PatternFor<F>(Text.text), 0)>; };

using Plain = Response (*)();
using One = Response (*)(std::string_view);
using Two = Response (*)(Request&, int, std::string);
using Scoped = Task<Response> (*)(Request&, Scope&, int);
using Remaining = Response (*)(int, Rest);

static_assert(Fits<"/", Plain> && !Fits<"/{a}", Plain>);
static_assert(Fits<"/{a}", One> && !Fits<"/", One> && !Fits<"/{a}/{b}", One>);
static_assert(Fits<"/{a}/x/{b}", Two> && Fits<"/{a:[0-9]+}/{b}", Two> && Fits<"/{a:(x)}", Two>);
static_assert(!Fits<"/{a:(?:x)}", Two> && !Fits<"/{a}", Two>);
static_assert(Fits<"/{a}", Scoped> && !Fits<"/", Scoped>);
static_assert(Fits<"/{a}/{b...}", Remaining> && !Fits<"/{a}/{b}", Remaining>);
static_assert(Fits<"/{a...}", One>, "a rest may be taken as a string");
static_assert(!Fits<"/{a}/{b...}", Response (*)(int, int)>, "but not as a number");
static_assert(!Fits<"/{a}/{b...}", Response (*)(Rest, Rest)>, "nor anything else as Rest");
static_assert(!Fits<"a", Plain> && !Fits<"/a b", Plain> && !Fits<"/%zz", Plain> &&
              !Fits<"/..", Plain> && !Fits<"/{a", One> && !Fits<"/x{a}", One> &&
              !Fits<"/{1}", One> && !Fits<"/{a:}", One> && !Fits<"/{a...}/b", One>);

}  // namespace
}  // namespace weir::http

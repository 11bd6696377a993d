// Tests of route patterns.
#include "weir/http/matching/detail/pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/path_regex.hpp"

namespace weir::http {
namespace {

using Kind = SegmentText::Kind;

std::error_code error_of(std::string_view text) {
  const auto pattern = Pattern::parse(text);
  return pattern ? std::error_code() : pattern.error();
}

TEST(Pattern, HasSegmentsBetweenSlashes) {
  const Pattern pattern = Pattern::parse("/a/{b}/{c:[0-9]+}/{d...}").value();
  const std::vector<Pattern::Segment> expected = {
      {Kind::literal, "a"}, {Kind::param, ""}, {Kind::regex, "[0-9]+"}, {Kind::wildcard, ""}};
  EXPECT_EQ(pattern.segments(), expected);
  EXPECT_EQ(pattern.text(), "/a/{b}/{c:[0-9]+}/{d...}");
  EXPECT_EQ(pattern.shape().params, 3U);
  EXPECT_TRUE(pattern.shape().wildcard);
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

TEST(Pattern, RejectsTextThatNoPathHas) {
  EXPECT_EQ(error_of(""), PatternError::no_slash);
  EXPECT_EQ(error_of("a/b"), PatternError::no_slash);
  EXPECT_EQ(error_of("*"), PatternError::no_slash);
  for (const char* text :
       {"/a b", "/a?b", "/a#b", "/caf\xc3\xa9", "/a\"", "/a|b", "/a\\b", "/\n"}) {
    EXPECT_EQ(error_of(text), PatternError::bad_character) << text;
  }
  for (const char* text : {"/%", "/%4", "/%4/", "/%zz", "/%00", "/a%2"}) {
    EXPECT_EQ(error_of(text), PatternError::bad_escape) << text;
  }
  for (const char* text : {"/.", "/..", "/a/../b", "/%2e", "/.%2E", "/a/."}) {
    EXPECT_EQ(error_of(text), PatternError::dot_segment) << text;
  }
  EXPECT_FALSE(error_of("/..."));
  EXPECT_FALSE(error_of("/.a/a..b/:@!$&'()*+,;=-._~"));
}

TEST(Pattern, RejectsBadPathParams) {
  for (const char* text : {"/a{b}", "/{a}b", "/{a}{b}", "/a}", "/{a:[0-9]}x", "/a{"}) {
    EXPECT_EQ(error_of(text), PatternError::brace_in_literal) << text;
  }
  for (const char* text : {"/{", "/{a", "/{a/b}", "/{a:", "/{a:[0-9]{3}", "/{a:\\}", "/{a:[}"}) {
    EXPECT_EQ(error_of(text), PatternError::unclosed_brace) << text;
  }
  for (const char* text :
       {"/{}", "/{:x}", "/{1a}", "/{a b}", "/{a-b}", "/{...}", "/{a..}", "/{a.}", "/{a....}"}) {
    EXPECT_EQ(error_of(text), PatternError::bad_param_name) << text;
  }
  EXPECT_EQ(error_of("/{a:}"), PatternError::empty_regex);
  EXPECT_EQ(error_of("/{a...}/b"), PatternError::wildcard_not_last);
  EXPECT_EQ(error_of("/{a...}/"), PatternError::wildcard_not_last);
  EXPECT_FALSE(error_of("/{_a1}/{B...}"));
}

TEST(Pattern, HasLimits) {
  const auto repeat = [](std::string_view text, std::size_t times) {
    std::string all;
    for (std::size_t count = 0; count < times; ++count) all += text;
    return all;
  };
  EXPECT_FALSE(error_of(repeat("/a", pattern_segments_max)));
  EXPECT_EQ(error_of(repeat("/a", pattern_segments_max + 1)), PatternError::too_many_segments);
  EXPECT_FALSE(error_of(repeat("/{a}", path_params_max)));
  EXPECT_EQ(error_of(repeat("/{a}", path_params_max + 1)), PatternError::too_many_params);
  EXPECT_FALSE(error_of("/{a:" + repeat("(a)", path_params_max - 1) + "}"));
  EXPECT_EQ(error_of("/{a:" + repeat("(a)", path_params_max) + "}"), PatternError::too_many_params);
}

TEST(Pattern, FindsTheEndOfARegex) {
  for (const std::string regex : {"[0-9]{3}", "a{1,2}b{2}", "\\{", "\\}", "[{]", "[}]", "[]}]",
                                  "[^]}]", "[\\]}]", "[[:alpha:]}]", "a/b", "(a|{)?}", "\\\\"}) {
    const auto pattern = Pattern::parse("/{x:" + regex + "}/y");
    ASSERT_TRUE(pattern) << regex;
    EXPECT_EQ(pattern->segments()[0].text, regex);
    EXPECT_EQ(pattern->segments()[1].text, "y");
  }
}

TEST(Pattern, CountsGroupsAsRe2Does) {
  for (const std::string regex :
       {"(a)", "(a)(b)", "((a)b)", "(?:a)", "(?P<n>a)", "(?i)a(b)", "(?i:a)", "\\(a\\)", "[(]",
        "[^(](a)", "[](]", "[[:alpha:](]", "\\\\(a)", "(a|(b|c))*", "[\\](](a)", "()"}) {
    const auto pattern = Pattern::parse("/{x:" + regex + "}");
    ASSERT_TRUE(pattern) << regex;
    const auto compiled = PathRegex::compile(regex, pattern->segments()[0].groups);
    EXPECT_TRUE(compiled) << regex << ": " << compiled.error().message();
  }
}

TEST(Pattern, EachErrorHasItsOwnMessage) {
  std::vector<std::string> messages;
  for (int code = 0; code <= static_cast<int>(PatternError::wrong_wildcard_type); ++code) {
    messages.push_back(pattern_category().message(code));
  }
  std::sort(messages.begin(), messages.end());
  EXPECT_EQ(std::unique(messages.begin(), messages.end()), messages.end());
  EXPECT_EQ(make_error_code(PatternError::no_slash).message(),
            "the pattern does not start with '/'");
}

// Checks at compile time.

template <std::size_t N>
struct Constant {
  consteval Constant(const char (&literal)[N]) { std::copy_n(literal, N, text); }
  char text[N];
};

template <auto Value>
struct Use {};

/// True if `routes.get(Text, F)` would compile.
template <Constant Text, class F>
concept Fits = requires { typename Use<(PatternFor<F>(Text.text), 0)>; };

using Plain = Response (*)();
using One = Response (*)(std::string_view);
using Two = Response (*)(Request&, int, std::string);
using Scoped = Task<Response> (*)(Request&, Scope&, int);
using Remaining = Response (*)(int, Wildcard);

static_assert(Fits<"/", Plain> && !Fits<"/{a}", Plain>);
static_assert(Fits<"/{a}", One> && !Fits<"/", One> && !Fits<"/{a}/{b}", One>);
static_assert(Fits<"/{a}/x/{b}", Two> && Fits<"/{a:[0-9]+}/{b}", Two> && Fits<"/{a:(x)}", Two>);
static_assert(!Fits<"/{a:(?:x)}", Two> && !Fits<"/{a}", Two>);
static_assert(Fits<"/{a}", Scoped> && !Fits<"/", Scoped>);
static_assert(Fits<"/{a}/{b...}", Remaining> && !Fits<"/{a}/{b}", Remaining>);
static_assert(Fits<"/{a...}", One>, "a wildcard may be taken as a string");
static_assert(!Fits<"/{a}/{b...}", Response (*)(int, int)>,
              "a wildcard must not be taken as a number");
static_assert(!Fits<"/{a}/{b...}", Response (*)(Wildcard, Wildcard)>,
              "another path parameter must not be taken as Wildcard");
static_assert(!Fits<"a", Plain> && !Fits<"/a b", Plain> && !Fits<"/%zz", Plain> &&
              !Fits<"/..", Plain> && !Fits<"/{a", One> && !Fits<"/x{a}", One> &&
              !Fits<"/{1}", One> && !Fits<"/{a:}", One> && !Fits<"/{a...}/b", One>);

}  // namespace
}  // namespace weir::http

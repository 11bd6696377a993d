// Tests of route patterns.
#include "weir/http/matching/detail/pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/path_regex.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/test/compile_time_text.hpp"

namespace weir::http::pattern_test {
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

/// True if `routes.get(Text, F)` would compile.
template <CompileTimeText Text, class F>
concept Fits = requires { typename CompileTimeUse<(PatternFor<F>(Text.text), 0)>; };

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

TEST(Pattern, HandlersTakeThePathParamsOfThePattern) {
  constexpr std::size_t none = HandlerShape::no_wildcard;
  const auto check = [](std::string_view text, const HandlerShape& handler) {
    return check_shapes(shape_of_pattern(text), handler);
  };
  EXPECT_EQ(check("/", {0, none, false}), PatternError::none);
  EXPECT_EQ(check("/{a}", {1, none, false}), PatternError::none);
  EXPECT_EQ(check("/{a}", {1, none, true}), PatternError::none);
  EXPECT_EQ(check("/{a}", {0, none, false}), PatternError::wrong_param_count);
  EXPECT_EQ(check("/{a}", {2, none, false}), PatternError::wrong_param_count);
  EXPECT_EQ(check("/{a:(x)}/{b}", {3, none, false}), PatternError::none);
  EXPECT_EQ(check("/{a...}", {1, none, true}), PatternError::none);
  EXPECT_EQ(check("/{a...}", {1, none, false}), PatternError::wrong_wildcard_type);
  EXPECT_EQ(check("/{a...}", {1, 0, true}), PatternError::none);
  EXPECT_EQ(check("/{a}/{b...}", {2, 1, true}), PatternError::none);
  EXPECT_EQ(check("/{a}/{b...}", {2, 0, true}), PatternError::wrong_wildcard_type);
  EXPECT_EQ(check("/{a}/{b...}", {2, 0, false}), PatternError::wrong_wildcard_type);
  EXPECT_EQ(check("/{a}", {1, 0, true}), PatternError::wrong_wildcard_type);
  EXPECT_EQ(check("/{a}/{b}", {2, 0, false}), PatternError::wrong_wildcard_type);
  EXPECT_EQ(check("/{a", {1, none, false}), PatternError::unclosed_brace);
  EXPECT_EQ(check("x", {0, none, false}), PatternError::no_slash);
}

TEST(Pattern, RegexesFollowTheirRules) {
  struct Case {
    std::string_view text;
    std::size_t length;
    std::size_t groups;
    bool closed;
  };
  for (const Case& each : std::vector<Case>{{"}", 0, 0, true},
                                            {"", 0, 0, false},
                                            {"a}b}", 1, 0, true},
                                            {"a{1}}", 4, 0, true},
                                            {"{{}}}", 4, 0, true},
                                            {"{}", 0, 0, false},
                                            {"[}]}", 3, 0, true},
                                            {"[^}]}", 4, 0, true},
                                            {"[^]}]}", 5, 0, true},
                                            {"[]}]}", 4, 0, true},
                                            {"[[:a:]}]}", 8, 0, true},
                                            {"[[:a]}", 5, 0, true},
                                            {"[\\]}]}", 5, 0, true},
                                            {"[a", 0, 0, false},
                                            {"[]}", 0, 0, false},
                                            {"[^]}", 0, 0, false},
                                            {"[\\]}", 0, 0, false},
                                            {"\\}}", 2, 0, true},
                                            {"\\\\}", 2, 0, true},
                                            {"\\", 0, 0, false},
                                            {"(a)}", 3, 1, true},
                                            {"(?:a)}", 5, 0, true},
                                            {"(?P<n>a)(b)}", 11, 2, true},
                                            {"(?<n>a)}", 7, 1, true},
                                            {"(?<=a)}", 6, 0, true},
                                            {"(?<!a)}", 6, 0, true},
                                            {"(?i)(a)}", 7, 1, true},
                                            {"\\(a}", 3, 0, true},
                                            {"[(]}", 3, 0, true},
                                            {"((a))(?P>b)}", 11, 2, true},
                                            {"[a][(](b)}", 9, 1, true},
                                            {"[[:(:]](b)}", 10, 1, true}}) {
    const RegexText regex = read_regex(each.text);
    EXPECT_EQ(regex.closed, each.closed) << each.text;
    EXPECT_EQ(regex.groups, each.groups) << each.text;
    if (each.closed) {
      EXPECT_EQ(regex.length, each.length) << each.text;
    }
  }
}

TEST(Pattern, LiteralsHaveEveryEscapeExceptNul) {
  const std::string_view digits = "0123456789abcdefABCDEF";
  for (const char high : digits) {
    for (const char low : digits) {
      const std::string escape = {'/', 'x', '%', high, low};
      const auto pattern = Pattern::parse(escape);
      if (high == '0' && low == '0') {
        EXPECT_EQ(error_of(escape), PatternError::bad_escape);
        continue;
      }
      ASSERT_TRUE(pattern) << escape;
      const int byte = hex_value(high) * 16 + hex_value(low);
      EXPECT_EQ(pattern->segments()[0].text, std::string("x") + static_cast<char>(byte));
    }
  }
  for (const std::string text : {"/%0g", "/%g0", "/%/0", "/%0/", "/%:0", "/%0:", "/%@1", "/%1@",
                                 "/%G1", "/%1G", "/%`1", "/%1`", "/%a", "/x/%"}) {
    EXPECT_TRUE(error_of(text) == PatternError::bad_escape ||
                error_of(text) == PatternError::bad_character)
        << text;
  }
}

TEST(Pattern, FindsDotSegmentsInEverySpelling) {
  for (const std::string text : {"/.", "/..", "/%2e", "/%2E", "/.%2e", "/%2e.", "/%2e%2E", "/a/.",
                                 "/./a", "/../a", "/a/%2e%2e/b"}) {
    EXPECT_EQ(error_of(text), PatternError::dot_segment) << text;
  }
  for (const std::string text : {"/...", "/a.", "/.a", "/..a", "/a..", "/%2e%2e%2e", "/%2ea",
                                 "/a%2e", "/.b.", "/", "//", "/.%41", "/%41."}) {
    EXPECT_FALSE(error_of(text)) << text;
  }
}

TEST(Pattern, NamesOfParamsFollowTheGrammar) {
  for (const std::string name : {"a", "z", "A", "Z", "_", "a0", "a9", "_1", "aZ_9z"}) {
    EXPECT_FALSE(error_of("/{" + name + "}")) << name;
    EXPECT_FALSE(error_of("/{" + name + ":x}")) << name;
    EXPECT_FALSE(error_of("/{" + name + "...}")) << name;
  }
  for (const std::string name :
       {"", "0", "9a", "a-", "-a", "a b", " a", "a@", "a[", "a`", "a{", "\x80"}) {
    EXPECT_EQ(error_of("/{" + name + "}"), PatternError::bad_param_name) << name;
    EXPECT_EQ(error_of("/{" + name + ":x}"), PatternError::bad_param_name) << name;
    EXPECT_EQ(error_of("/{" + name + "...}"), PatternError::bad_param_name) << name;
  }
}

TEST(Pattern, LimitsCountAllSegmentsAndParams) {
  std::string segments;
  for (std::size_t each = 1; each < pattern_segments_max; ++each) segments += "/a";
  EXPECT_FALSE(error_of(segments + "/{rest...}"));
  EXPECT_FALSE(error_of(segments + "/"));
  EXPECT_EQ(error_of(segments + "/a/{rest...}"), PatternError::too_many_segments);
  EXPECT_EQ(error_of(segments + "/a/"), PatternError::too_many_segments);
  std::string params;
  for (std::size_t each = 1; each < path_params_max; ++each) params += "/{a}";
  EXPECT_FALSE(error_of(params + "/{rest...}"));
  EXPECT_FALSE(error_of(params + "/{a:x}"));
  EXPECT_EQ(error_of(params + "/{a:(x)}"), PatternError::too_many_params);
  EXPECT_EQ(error_of(params + "/{a}/{rest...}"), PatternError::too_many_params);
  EXPECT_EQ(error_of(segments + "/a/b/.."), PatternError::dot_segment) << "the first error counts";
  EXPECT_EQ(error_of("/{a:}x"), PatternError::empty_regex);
  EXPECT_EQ(error_of("/{a.}x"), PatternError::bad_param_name);
  EXPECT_EQ(pattern_segments_max, 32U);
  EXPECT_EQ(path_params_max, 16U);
}

TEST(Pattern, SegmentsHaveTheirPropertiesOnly) {
  const Pattern pattern = Pattern::parse("/{a:(x)(y)}/b/{c}/{d:z}/{e...}").value();
  using Segment = Pattern::Segment;
  const std::vector<Segment> expected = {{Kind::regex, "(x)(y)", 2},
                                         {Kind::literal, "b", 0},
                                         {Kind::param, "", 0},
                                         {Kind::regex, "z", 0},
                                         {Kind::wildcard, "", 0}};
  EXPECT_EQ(pattern.segments(), expected);
  EXPECT_EQ(pattern.shape().params, 6U);
  EXPECT_EQ(pattern.shape().error, PatternError::none);
  const Pattern literal = Pattern::parse("/a").value();
  EXPECT_EQ(literal.shape().params, 0U);
  EXPECT_FALSE(literal.shape().wildcard);
  EXPECT_FALSE(Pattern::parse("/{a}").value().is_literal());
  EXPECT_FALSE(Pattern::parse("/{a}").value().shape().wildcard);
  PatternReader reader("/{a:(x)}/b");
  SegmentText segment;
  ASSERT_TRUE(reader.next(segment));
  EXPECT_EQ(segment.name, "a");
  EXPECT_EQ(segment.params(), 2U);
  ASSERT_TRUE(reader.next(segment));
  EXPECT_EQ(segment.literal, "b");
  EXPECT_EQ(segment.name, "");
  EXPECT_EQ(segment.regex, "");
  EXPECT_EQ(segment.groups, 0U);
  EXPECT_EQ(segment.params(), 0U);
  EXPECT_FALSE(reader.next(segment));
  EXPECT_EQ(reader.error(), PatternError::none);
}

/// Returns true if a route beyond the limit of names keeps the shared name: a second look-up, here
/// of another pattern, would take a lock for each request.
bool keeps_the_shared_name() {
  const RouteName& known = RouteName::of("/known");
  for (std::uint32_t number = 0; number <= RouteName::names_max; ++number) {
    RouteName::of("/name" + std::to_string(number));
  }
  const RouteNameRef beyond;
  const RouteName& shared = beyond.get("/beyond");
  return known.number != 0 && shared.pattern == "_OTHER" && &beyond.get("/known") == &shared;
}

/// In a process of its own, because names are never removed.
TEST(RouteName, IsSharedBeyondTheLimitWithoutALaterLookUp) {
  EXPECT_EXIT(std::_Exit(keeps_the_shared_name() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weir::http::pattern_test

// Tests of percent decoding, segments and request targets.
#include "weir/http/syntax/uri.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace weir::http::uri_test {
namespace {

ParseError verdict(Method method, std::string_view text) {
  Target target;
  return parse_target(method, text, target);
}

TEST(Uri, PercentDecodingDecodesOnce) {
  EXPECT_EQ(percent_decode("a%2Fb%2fc+%25 41%2541"), "a/b/c+% 41%41");
  EXPECT_EQ(percent_decode("%00"), std::string("\0", 1));
  EXPECT_EQ(percent_decode(""), "");
  for (auto text : {"%", "%4", "%zz", "%4g", "a%", "%%41", "%-1", "% 1", "%0x"}) {
    EXPECT_FALSE(percent_decode(text).has_value()) << text;
  }
}

TEST(Uri, PercentDecodingWorksInPlace) {
  std::string text = "%41b%43";
  EXPECT_EQ(percent_decode(text, text.data()), 3u);
  EXPECT_EQ(text.substr(0, 3), "AbC");
}

TEST(Uri, EncodesEveryByteExceptUnreservedOnes) {
  EXPECT_EQ(encode_segment("AZaz09-._~"), "AZaz09-._~");
  EXPECT_EQ(encode_segment("a/b?c#d%20 e+f&g=h;i:j@k"),
            "a%2Fb%3Fc%23d%2520%20e%2Bf%26g%3Dh%3Bi%3Aj%40k");
  EXPECT_EQ(encode_segment("@[`{/:"), "%40%5B%60%7B%2F%3A");
  EXPECT_EQ(encode_segment("\xc3\xa4\xff"), "%C3%A4%FF");
  EXPECT_EQ(encode_segment(""), "");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string encoded = encode_segment(all);
  EXPECT_EQ(encoded.size(), 66u + 3 * (256 - 66));
  EXPECT_EQ(percent_decode(encoded), all);
  EXPECT_EQ(check_path("/" + encode_segment("a/../b")), ParseError::none);
  EXPECT_EQ(check_path("/" + encode_segment("..")), ParseError::dot_segment);
}

TEST(Uri, SplitsSegmentsBeforeDecoding) {
  const auto split = [](std::string_view path) {
    std::vector<std::string> all;
    const Segments segments(path);
    for (auto each = segments.begin(); each != segments.end(); ++each) {
      all.push_back(each.decoded());
    }
    return all;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(split("/"), List{""});
  EXPECT_EQ(split("/a/b"), (List{"a", "b"}));
  EXPECT_EQ(split("/a//b/"), (List{"a", "", "b", ""}));
  EXPECT_EQ(split("/a%2Fb/%41"), (List{"a/b", "A"}));
  EXPECT_EQ(split("rest/of"), (List{"rest", "of"}));
  EXPECT_EQ(split("/%zz"), List{"%zz"});
}

TEST(Uri, FindsDotSegmentsInEverySpelling) {
  for (auto path : {"/.", "/..", "/./", "/../", "/a/.", "/a/..", "/a/../b", "/%2e", "/%2E%2e/",
                    "/.%2e", "/%2E.", "/a/%2e./b", "//..", "/..//"}) {
    EXPECT_EQ(check_path(path), ParseError::dot_segment) << path;
  }
  for (auto path :
       {"/...", "/.a", "/..a", "/a.", "/a..", "/a/.well-known/x", "/%2e%2e%2e", "/%2ea", "/..;/",
        "/..%2f", "/%252e%252e", "/", "//", "/%41/x2e", "/x2e", "/x2ex2e", "/.x2e", ""}) {
    EXPECT_EQ(check_path(path), ParseError::none) << path;
  }
}

TEST(Uri, RejectsIncompleteAndNulEscapes) {
  for (auto text : {"%", "a%4", "%zz", "%%", "%2", "%g0", "%0g"}) {
    EXPECT_EQ(check_escapes(text), ParseError::bad_escape) << text;
  }
  EXPECT_EQ(check_escapes("a%00"), ParseError::nul_escape);
  EXPECT_EQ(check_escapes("%2500%41"), ParseError::none);
}

TEST(Uri, ParsesOriginForm) {
  Target target;
  ASSERT_EQ(parse_target(Method::get, "/a/b%20c?x=1?y=/&z", target), ParseError::none);
  EXPECT_EQ(target.form, TargetForm::origin);
  EXPECT_EQ(target.path, "/a/b%20c");
  EXPECT_TRUE(target.path_has_escapes);
  EXPECT_EQ(target.query, "x=1?y=/&z");
  ASSERT_EQ(parse_target(Method::get, "/a?", target), ParseError::none);
  EXPECT_TRUE(target.has_query);
  EXPECT_FALSE(target.path_has_escapes);
  ASSERT_EQ(parse_target(Method::get, "//evil.test/x", target), ParseError::none);
  EXPECT_EQ(target.path, "//evil.test/x");
  EXPECT_TRUE(target.authority.empty());
}

TEST(Uri, ParsesAbsoluteForm) {
  Target target;
  ASSERT_EQ(parse_target(Method::get, "HTTP://a.test:80/b?c", target), ParseError::none);
  EXPECT_EQ(target.form, TargetForm::absolute);
  EXPECT_EQ(target.authority, "a.test:80");
  EXPECT_EQ(target.path, "/b");
  EXPECT_EQ(target.query, "c");
  ASSERT_EQ(parse_target(Method::get, "https://[::1]?q", target), ParseError::none);
  EXPECT_EQ(target.authority, "[::1]");
  EXPECT_EQ(target.path, "");
  EXPECT_EQ(target.query, "q");
  ASSERT_EQ(parse_target(Method::options, "http://a.test", target), ParseError::none);
  EXPECT_EQ(target.form, TargetForm::asterisk);
  ASSERT_EQ(parse_target(Method::options, "http://a.test/", target), ParseError::none);
  EXPECT_EQ(target.form, TargetForm::absolute);
}

TEST(Uri, ChecksThatFormAndMethodMatch) {
  EXPECT_EQ(verdict(Method::options, "*"), ParseError::none);
  EXPECT_EQ(verdict(Method::get, "*"), ParseError::bad_target_form);
  EXPECT_EQ(verdict(Method::options, "**"), ParseError::bad_target_form);
  EXPECT_EQ(verdict(Method::options, "*?a"), ParseError::bad_target_form);
  EXPECT_EQ(verdict(Method::connect, "a.test:443"), ParseError::none);
  EXPECT_EQ(verdict(Method::connect, "[::1]:443"), ParseError::none);
  EXPECT_EQ(verdict(Method::connect, "a.test"), ParseError::bad_target_authority);
  EXPECT_EQ(verdict(Method::connect, "a.test:"), ParseError::bad_target_authority);
  EXPECT_EQ(verdict(Method::connect, "*"), ParseError::bad_target_authority);
  for (auto text : {"/", "http://a.test:1/", "a.test:70000", "u@a.test:1", ":1"}) {
    EXPECT_EQ(verdict(Method::connect, text), ParseError::bad_target_form) << text;
  }
  for (auto text : {"a.test:443", "a", "?x", "ftp://a.test/", "http:/a.test/", "http:a",
                    "https:", "://a", "ws://a.test/"}) {
    EXPECT_EQ(verdict(Method::get, text), ParseError::bad_target_form) << text;
  }
}

TEST(Uri, RejectsBadAuthoritiesInAbsoluteForm) {
  for (auto text : {"http://", "http:///x", "http://?x", "http://u@a.test/", "http://u:p@a.test/",
                    "http://a.test:99999/", "http://:80/", "http://a,b/", "http://[::1/",
                    "http://a%00/", "http://a[b]/"}) {
    EXPECT_EQ(verdict(Method::get, text), ParseError::bad_target_authority) << text;
  }
}

TEST(Uri, TakesWhatBrowsersSend) {
  Target target;
  ASSERT_EQ(parse_target(Method::get, "/[a]|b^`{c}?ids[]=1&q=a|b{c}^`\\&x=100%&y=%00%zz", target),
            ParseError::none);
  EXPECT_EQ(target.path, "/[a]|b^`{c}");
  EXPECT_FALSE(target.path_has_escapes);
  EXPECT_EQ(target.query, "ids[]=1&q=a|b{c}^`\\&x=100%&y=%00%zz");
  ASSERT_EQ(parse_target(Method::get, "http://a.test/[?[", target), ParseError::none);
  EXPECT_EQ(target.path, "/[");
}

TEST(Uri, RejectsABackslashInAPath) {
  for (const char* text : {"/\\", "/a\\b", "/a\\..\\b?q", "/a/long/path/of/many/bytes\\?q=%41",
                           "http://a.test/\\", "/%41\\"}) {
    EXPECT_EQ(verdict(Method::get, text), ParseError::bad_target) << text;
  }
  EXPECT_EQ(verdict(Method::get, "/a/long/path/of/many/bytes?\\"), ParseError::none);
}

TEST(Uri, RejectsCharactersThatNoUriHas) {
  for (char each : std::string("\"<># \x7f\x80\xff\t\x01", 10)) {
    const std::string character(1, each);
    EXPECT_EQ(verdict(Method::get, "/a" + character), ParseError::bad_target) << character;
    EXPECT_EQ(verdict(Method::get, "/a?" + character), ParseError::bad_target) << character;
    EXPECT_EQ(verdict(Method::get, "http://a.test/" + character), ParseError::bad_target)
        << character;
  }
  EXPECT_EQ(verdict(Method::get, std::string_view("/\0", 2)), ParseError::bad_target);
  EXPECT_EQ(verdict(Method::get, ""), ParseError::bad_target);
  EXPECT_EQ(verdict(Method::get, "/%00"), ParseError::nul_escape);
  EXPECT_EQ(verdict(Method::get, "/%zz"), ParseError::bad_escape);
  EXPECT_EQ(verdict(Method::get, "http://a.test/../x"), ParseError::dot_segment);
  EXPECT_EQ(verdict(Method::get, "/a?/../x"), ParseError::none);
}

/// Returns a path of `size` letters after its '/', with `part` in it at `index`.
std::string path_with(std::string_view part, std::size_t index, std::size_t size) {
  std::string path = "/" + std::string(size, 'a');
  return path.replace(index, part.size(), part);
}

TEST(UriOfAnyLength, FindsTheQueryAtEveryPosition) {
  for (std::size_t size = 1; size <= 50; ++size) {
    for (std::size_t index = 1; index <= size; ++index) {
      const std::string text = path_with("?", index, size);
      Target target;
      ASSERT_EQ(parse_target(Method::get, text, target), ParseError::none) << text;
      EXPECT_EQ(target.form, TargetForm::origin);
      EXPECT_TRUE(target.has_query);
      EXPECT_FALSE(target.path_has_escapes);
      EXPECT_EQ(target.path, std::string_view(text).substr(0, index));
      EXPECT_EQ(target.query, std::string_view(text).substr(index + 1));
      EXPECT_EQ(target.authority, "");
    }
  }
}

TEST(UriOfAnyLength, FindsAByteThatIsNotAllowedAtEveryPosition) {
  for (std::size_t size = 1; size <= 50; ++size) {
    for (std::size_t index = 1; index <= size; ++index) {
      for (const std::string_view byte : {"#", "\x80", "\"", "\x7f"}) {
        const std::string text = path_with(byte, index, size);
        EXPECT_EQ(verdict(Method::get, text), ParseError::bad_target) << text;
        EXPECT_EQ(verdict(Method::get, "/?" + text), ParseError::bad_target) << text;
      }
    }
  }
}

TEST(UriOfAnyLength, ChecksEscapesAtEveryPosition) {
  for (std::size_t size = 3; size <= 50; ++size) {
    for (std::size_t index = 1; index + 2 <= size; ++index) {
      const std::string text = path_with("%41", index, size);
      Target target;
      ASSERT_EQ(parse_target(Method::get, text, target), ParseError::none) << text;
      EXPECT_TRUE(target.path_has_escapes) << text;
      EXPECT_EQ(target.path, text);
      const std::string query = "/b?" + text;
      ASSERT_EQ(parse_target(Method::get, query, target), ParseError::none) << text;
      EXPECT_FALSE(target.path_has_escapes) << text;
      EXPECT_EQ(target.path, "/b");
      EXPECT_EQ(target.query, text);
      for (const std::string prefix : {"/b?", "/b?q=%41&"}) {
        EXPECT_EQ(verdict(Method::get, prefix + path_with("%4g", index, size)), ParseError::none);
        EXPECT_EQ(verdict(Method::get, prefix + path_with("%00", index, size)), ParseError::none);
      }
      for (const std::string prefix : {"", "http://a"}) {
        EXPECT_EQ(verdict(Method::get, prefix + path_with("%4g", index, size)),
                  ParseError::bad_escape)
            << prefix << text;
        EXPECT_EQ(verdict(Method::get, prefix + path_with("%00", index, size)),
                  ParseError::nul_escape)
            << prefix << text;
      }
    }
  }
}

TEST(UriOfAnyLength, FindsADotSegmentAtEveryPosition) {
  for (std::size_t size = 4; size <= 50; ++size) {
    for (std::size_t index = 1; index + 3 <= size; ++index) {
      for (const std::string_view part : {"/./", "/../"}) {
        const std::string text = path_with(part, index, size);
        EXPECT_EQ(verdict(Method::get, text), ParseError::dot_segment) << text;
        EXPECT_EQ(verdict(Method::get, "/b?" + text), ParseError::none) << text;
      }
      for (const std::string_view part : {"/.b", "/..b", "a./", "a../", "/b/"}) {
        const std::string text = path_with(part, index, size);
        Target target;
        EXPECT_EQ(parse_target(Method::get, text, target), ParseError::none) << text;
        EXPECT_EQ(target.path, text);
        EXPECT_FALSE(target.has_query);
      }
    }
    const std::string path(size, 'a');
    EXPECT_EQ(verdict(Method::get, "/" + path + "/."), ParseError::dot_segment) << path;
    EXPECT_EQ(verdict(Method::get, "/" + path + "/.."), ParseError::dot_segment) << path;
    EXPECT_EQ(verdict(Method::get, "/../" + path), ParseError::dot_segment) << path;
    EXPECT_EQ(verdict(Method::get, "/" + path + "/.?x"), ParseError::dot_segment) << path;
  }
}

TEST(Uri, ReusedTargetKeepsNothing) {
  Target target;
  const auto parse_all = [&target](Method method, std::string_view text) {
    ASSERT_EQ(parse_target(Method::get, "http://a.test/%41?q", target), ParseError::none);
    ASSERT_EQ(parse_target(method, text, target), ParseError::none) << text;
    EXPECT_FALSE(target.has_query) << text;
    EXPECT_FALSE(target.path_has_escapes) << text;
    EXPECT_EQ(target.query, "") << text;
  };
  parse_all(Method::get, "/x");
  EXPECT_EQ(target.form, TargetForm::origin);
  EXPECT_EQ(target.authority, "");
  parse_all(Method::options, "*");
  EXPECT_EQ(target.form, TargetForm::asterisk);
  EXPECT_EQ(target.authority, "");
  EXPECT_EQ(target.path, "");
  parse_all(Method::connect, "b.test:1");
  EXPECT_EQ(target.form, TargetForm::authority);
  EXPECT_EQ(target.authority, "b.test:1");
  EXPECT_EQ(target.path, "");
  parse_all(Method::get, "https://b.test");
  EXPECT_EQ(target.form, TargetForm::absolute);
  EXPECT_EQ(target.authority, "b.test");
  EXPECT_EQ(target.path, "");
  parse_all(Method::options, "https://b.test");
  EXPECT_EQ(target.form, TargetForm::asterisk);
  EXPECT_EQ(target.authority, "b.test");
}

TEST(Uri, OptionsWithAPathOrAQueryIsNotAboutTheServer) {
  Target target;
  for (const std::string_view text : {"http://a.test?", "http://a.test/", "http://a.test?q"}) {
    ASSERT_EQ(parse_target(Method::options, text, target), ParseError::none) << text;
    EXPECT_EQ(target.form, TargetForm::absolute) << text;
  }
  ASSERT_EQ(parse_target(Method::trace, "http://a.test", target), ParseError::none);
  EXPECT_EQ(target.form, TargetForm::absolute);
  EXPECT_EQ(verdict(Method::trace, "*"), ParseError::bad_target_form);
  EXPECT_EQ(verdict(Method::options, "a.test:443"), ParseError::bad_target_form);
}

TEST(Uri, SchemesAreComparedWithoutCaseAndAsAWhole) {
  for (const std::string_view text :
       {"http://a", "HTTP://a", "Https://a", "hTTPS://a:1/x", "http://a?"}) {
    EXPECT_EQ(verdict(Method::get, text), ParseError::none) << text;
  }
  for (const std::string_view text : {"http:", "http:/", "https:/a", "httpx://a", "https//a",
                                      "xhttp://a", "htt://a", "http;//a"}) {
    EXPECT_EQ(verdict(Method::get, text), ParseError::bad_target_form) << text;
  }
}

TEST(Uri, ChecksEscapesThatFollowEachOther) {
  EXPECT_EQ(check_escapes("%41%42%43"), ParseError::none);
  EXPECT_EQ(check_escapes("%41%"), ParseError::bad_escape);
  EXPECT_EQ(check_escapes("%41%4"), ParseError::bad_escape);
  EXPECT_EQ(check_escapes("%41%zz"), ParseError::bad_escape);
  EXPECT_EQ(check_escapes("%41%00"), ParseError::nul_escape);
  EXPECT_EQ(check_escapes("%01%10"), ParseError::none);
  EXPECT_EQ(check_escapes(""), ParseError::none);
  EXPECT_EQ(check_path("/a%"), ParseError::bad_escape);
  EXPECT_EQ(check_path("/a/../%00"), ParseError::nul_escape);
  EXPECT_EQ(check_path("/a/../%zz"), ParseError::bad_escape);
}

TEST(Uri, PercentDecodingReturnsTheSize) {
  for (const std::string text : {"", "a", "%41", "%41%42", "a%41b%42c", "+"}) {
    std::string out(text.size(), '\0');
    const auto decoded = percent_decode(text);
    ASSERT_TRUE(decoded) << text;
    EXPECT_EQ(percent_decode(text, out.data()), decoded->size()) << text;
    EXPECT_EQ(out.substr(0, decoded->size()), *decoded);
  }
  EXPECT_EQ(percent_decode("a%41b%42c"), "aAbBc");
  EXPECT_EQ(percent_decode("%fF%0a"), "\xff\n");
  char out[8] = {};
  EXPECT_FALSE(percent_decode("ab%4", out).has_value());
}

TEST(Uri, SegmentIteratorsAdvanceByOne) {
  const Segments segments("/a/b%2F/");
  auto each = segments.begin();
  EXPECT_EQ(*each, "a");
  const auto before = each++;
  EXPECT_EQ(*before, "a");
  EXPECT_EQ(*each, "b%2F");
  EXPECT_EQ(each.decoded(), "b/");
  ++each;
  EXPECT_EQ(*each, "");
  EXPECT_FALSE(each == segments.end());
  ++each;
  EXPECT_TRUE(each == segments.end());
  EXPECT_TRUE(Segments::Iterator() == segments.end());
  EXPECT_EQ(*Segments("").begin(), "");
  EXPECT_FALSE(Segments("").begin() == segments.end());
}

}  // namespace
}  // namespace weir::http::uri_test

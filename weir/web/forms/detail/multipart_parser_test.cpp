// Tests of the parser of multipart forms: hostile bodies, each cut, and limits.
#include "weir/web/forms/detail/multipart_parser.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::http::detail::multipart_parser_test {
namespace {

using Event = MultipartParser::Event;

/// Writes the events of a body as a text; the data of a part is one text, whatever its pieces are.
class Transcript {
 public:
  explicit Transcript(std::string_view boundary = "XX", const MultipartLimits& limits = {})
      : parser_(boundary, limits) {}

  void feed(std::string_view piece) {
    const std::string copy(piece);  // exact, for the address sanitizer
    std::string_view input = copy;
    for (;;) {
      switch (parser_.next(input)) {
        case Event::need_input:
          EXPECT_TRUE(input.empty());
          return;
        case Event::part:
          text_ += "[" + parser_.head().name + ":";
          break;
        case Event::data:
          EXPECT_FALSE(parser_.data().empty());
          text_ += parser_.data();
          break;
        case Event::part_end:
          text_ += "]";
          break;
        case Event::end:
          text_ += ".";
          break;
        case Event::error:
          failed_ = true;
          return;
      }
    }
  }
  std::string end() {
    if (!failed_ && parser_.finish()) return text_;
    return text_ + "!" + std::to_string(static_cast<int>(parser_.error()));
  }

 private:
  MultipartParser parser_;
  std::string text_;
  bool failed_ = false;
};

std::string parse(std::string_view body, const MultipartLimits& limits = {}) {
  Transcript transcript("XX", limits);
  transcript.feed(body);
  return transcript.end();
}

std::string error(MultipartError of) {
  return "!" + std::to_string(static_cast<int>(of));
}

std::string part(std::string_view name, std::string_view content) {
  return "--XX\r\nContent-Disposition: form-data; name=\"" + std::string(name) + "\"\r\n\r\n" +
         std::string(content) + "\r\n";
}
const std::string last = "--XX--\r\n";

TEST(MultipartParser, GivesThePartsInOrder) {
  EXPECT_EQ(parse(part("a", "1") + part("b", "two\r\nlines") + last), "[a:1][b:two\r\nlines].");
  EXPECT_EQ(parse(last), ".");
  EXPECT_EQ(parse(part("a", "") + part("a", "\r\n") + last), "[a:][a:\r\n].");
}

TEST(MultipartParser, AllowsPaddingPreambleAndEpilogue) {
  EXPECT_EQ(parse("before\r\n" + part("a", "1") + last + "behind\r\n--XX\r\n"), "[a:1].");
  EXPECT_EQ(parse("--XX \t\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--XX-- \r\n"),
            "[a:1].");
  EXPECT_EQ(parse("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--XX--"), "[a:1].");
}

// RFC 2046 §5.1.1: a part without content has no CRLF behind its head.
TEST(MultipartParser, AllowsAPartWithoutContent) {
  EXPECT_EQ(parse("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n--XX--"), "[a:].");
}

TEST(MultipartParser, TakesWhatOnlyLooksLikeABoundaryAsContent) {
  for (const std::string_view content :
       {"\r\n--X", "\r\n--XXa", "\r\n--XX-", "\r\n--XX-X", "\r\n-XX", "\n--XX", "\r--XX", "--XX--",
        "\r\n\r\n--X\r", "\r\r\n--", "\r\n--\r\n--", "\r\n--XXa--", "\r", "\r\n", "\r\n-",
        "\r\n--X\r\n--X\r\n--X"}) {
    const std::string body = part("a", std::string("x") + std::string(content) + "y") + last;
    EXPECT_EQ(parse(body), "[a:x" + std::string(content) + "y].");
  }
}

TEST(MultipartParser, RefusesOtherBytesInTheLineOfABoundary) {
  EXPECT_EQ(parse("--XX x\r\n"), error(MultipartError::bad_delimiter));
  EXPECT_EQ(parse("--XX\rx"), error(MultipartError::bad_delimiter));
  EXPECT_EQ(parse("--XX" + std::string(65, ' ')), error(MultipartError::bad_delimiter));
  EXPECT_EQ(parse(part("a", "1") + "--XX \n"), "[a:1]" + error(MultipartError::bad_delimiter));
}

TEST(MultipartParser, RefusesABodyWithoutItsLastBoundary) {
  const std::string whole = part("a", "1") + "--XX--";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(parse(whole.substr(0, size)).ends_with(error(MultipartError::missing_end))) << size;
  }
  EXPECT_EQ(parse("text without any boundary"), error(MultipartError::missing_end));
}

TEST(MultipartParser, RefusesLinesThatEndInLf) {
  EXPECT_EQ(parse("--XX\nContent-Disposition: form-data; name=a\n\n1\n--XX--\n"),
            error(MultipartError::missing_end));
  EXPECT_EQ(parse("--XX\r\nContent-Disposition: form-data; name=a\n\n1\r\n--XX--"),
            error(MultipartError::bad_part_head));
  EXPECT_EQ(parse(part("a", "1") + "\n--XX--\n"),
            "[a:1\r\n\n--XX--\n" + error(MultipartError::missing_end));
}

TEST(MultipartParser, GivesTheSameEventsForEachCut) {
  const std::vector<std::string> bodies{
      part("a", "1") + part("b", "\r\n--X\r\n-\r\r\n--XX-\r\n--XXa") + last + "behind",
      "before\r\n--X\r\n" + part("a", "") + part("a", std::string(100, 'x')) + last,
      part("a", "1") + "--XX x\r\n",
      part("a", "1\r\n--XX\r"),
      "--XX\r\nContent-Disposition: form-data; name=a\n\n",
      "--XX \t\r\nContent-Disposition: form-data; name=a\r\n\r\n--XX--"};
  for (const std::string& body : bodies) {
    const std::string whole = parse(body);
    for (std::size_t cut = 0; cut <= body.size(); ++cut) {
      Transcript transcript;
      transcript.feed(body.substr(0, cut));
      transcript.feed(body.substr(cut));
      EXPECT_EQ(transcript.end(), whole) << cut;
    }
    for (std::size_t size = 1; size < 40; ++size) {
      Transcript transcript;
      for (std::size_t at = 0; at < body.size(); at += size) transcript.feed(body.substr(at, size));
      EXPECT_EQ(transcript.end(), whole) << size;
    }
  }
}

/// The position of the boundary in a block of the search, and all bytes around it.
TEST(MultipartParser, FindsABoundaryAtEachPosition) {
  for (std::size_t size = 0; size < 80; ++size) {
    for (const char filler : {'x', '\r', '\n', '-'}) {
      const std::string content(size, filler);
      EXPECT_EQ(parse(part("a", content) + last), "[a:" + content + "].") << size;
    }
  }
}

TEST(MultipartParser, FindsTheLongestBoundary) {
  const std::string boundary(70, 'b');
  const std::string body = "--" + boundary +
                           "\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--" +
                           boundary.substr(1) + "\r\n--" + boundary + "--";
  Transcript transcript(boundary);
  transcript.feed(body);
  EXPECT_EQ(transcript.end(), "[a:\r\n--" + boundary.substr(1) + "].");
}

TEST(MultipartParser, LimitsParts) {
  const MultipartLimits limits{.parts_max = 2};
  EXPECT_EQ(parse(part("a", "") + part("b", "") + last, limits), "[a:][b:].");
  EXPECT_EQ(parse(part("a", "") + part("b", "") + part("c", "") + last, limits),
            "[a:][b:]" + error(MultipartError::too_many_parts));
}

TEST(MultipartParser, LimitsTheHeadOfAPart) {
  const std::string line = "Content-Disposition: form-data; name=a\r\n";
  const MultipartLimits limits{.head_bytes_max = line.size()};
  EXPECT_EQ(parse("--XX\r\n" + line + "\r\n1\r\n" + last, limits), "[a:1].");
  EXPECT_EQ(parse("--XX\r\n" + line + "a: b\r\n\r\n1\r\n" + last, limits),
            error(MultipartError::part_head_too_long));
  EXPECT_EQ(parse("--XX\r\n" + std::string(10'000, 'x')),
            error(MultipartError::part_head_too_long));
}

TEST(MultipartParser, LimitsTheBytesOutside) {
  const MultipartLimits limits{.outer_bytes_max = 10};
  const std::string form = part("a", "1") + "--XX--";
  EXPECT_EQ(parse("12345678\r\n" + form + "1234567890", limits), "[a:1].");
  EXPECT_EQ(parse("123456789012345\r\n" + form, limits),
            error(MultipartError::outer_bytes_too_long));
  EXPECT_EQ(parse(form + "12345678901", limits),
            "[a:1]." + error(MultipartError::outer_bytes_too_long));
  EXPECT_EQ(parse("\r\n--X\r\n--X\r\n--X\r\n" + form, limits),
            error(MultipartError::outer_bytes_too_long));
  EXPECT_EQ(parse("\r\n--XXa\r\n" + form, limits), "[a:1].");
  EXPECT_EQ(parse("\r\n--XXa\r\n--XXa\r\n" + form, limits),
            error(MultipartError::outer_bytes_too_long));
}

TEST(MultipartParser, BoundsItsMemory) {
  EXPECT_LE(memory_bound(MultipartLimits()), 23U * 1024);
  EXPECT_GE(memory_bound(MultipartLimits()), 2U * MultipartLimits().head_bytes_max);
}

TEST(MultipartParser, StaysFailed) {
  MultipartParser parser("XX", {});
  std::string_view bad = "--XX x\r\n";
  EXPECT_EQ(parser.next(bad), Event::error);
  std::string_view good = "--XX--";
  EXPECT_EQ(parser.next(good), Event::error);
  EXPECT_FALSE(parser.finish());
  EXPECT_EQ(parser.error(), MultipartError::bad_delimiter);
}

}  // namespace
}  // namespace weir::http::detail::multipart_parser_test

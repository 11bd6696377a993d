#include "weir/web/events/event_parser.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace weir::http::event_parser_test {
namespace {

using namespace std::chrono_literals;

/// Returns the events of `text` as "name|id|data;", and "!" after an error. The text arrives in
/// pieces of `size` bytes.
std::string parse(std::string_view text, std::size_t size, EventParser& parser) {
  std::string out;
  while (!text.empty()) {
    std::string_view piece = text.substr(0, size);
    text.remove_prefix(piece.size());
    for (;;) {
      const auto event = parser.next(piece);
      if (!event) return out + "!";
      if (!*event) break;
      out += (*event)->name + "|" + (*event)->id + "|" + (*event)->data + ";";
    }
  }
  return out;
}
/// Expects the same events for pieces of every size.
std::string parse(std::string_view text, std::size_t bytes_max = 1024) {
  EventParser whole(bytes_max);
  std::string events = parse(text, text.size(), whole);
  for (std::size_t size = 1; size < text.size(); ++size) {
    EventParser parser(bytes_max);
    EXPECT_EQ(parse(text, size, parser), events) << "pieces of " << size;
  }
  return events;
}

TEST(EventParserTest, EachLineEndIsAccepted) {
  EXPECT_EQ(parse("data: a\n\ndata: b\r\rdata: c\r\n\r\n"), "message||a;message||b;message||c;");
  EXPECT_EQ(parse("data: a\r\ndata: b\r\n\r\n"), "message||a\nb;");
  EXPECT_EQ(parse("data: a\r\n\rdata: b\n\r"), "message||a;message||b;");
}

TEST(EventParserTest, FieldsOfAnEventAreRead) {
  EXPECT_EQ(parse("event: add\nid: 7\ndata: one\ndata:two\n\n"), "add|7|one\ntwo;");
  EXPECT_EQ(parse("data:  two spaces\n\n"), "message|| two spaces;");
  EXPECT_EQ(parse("data\n\n"), "message||;");
  EXPECT_EQ(parse("data\ndata\n\n"), "message||\n;");
  EXPECT_EQ(parse("data: a:b\n\n"), "message||a:b;");
}

TEST(EventParserTest, CommentsAndUnknownFieldsAreIgnored) {
  EXPECT_EQ(parse(":\n\n: note\nDATA: x\nmore: y\n data: z\ndata: a\n\n"), "message||a;");
}

TEST(EventParserTest, EventWithoutDataIsDropped) {
  EXPECT_EQ(parse("event: add\n\ndata: a\n\n"), "message||a;") << "its name is dropped too";
  EXPECT_EQ(parse("id: 3\n\ndata: a\n\n"), "message|3|a;");
}

TEST(EventParserTest, IdIsKeptForLaterEvents) {
  EXPECT_EQ(parse("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"),
            "message|1|a;message|1|b;message||c;");
  EXPECT_EQ(parse(std::string_view("id: 1\nid: 2\0\ndata: a\n\n", 23)), "message|1|a;");
}

TEST(EventParserTest, IdOfAnIncompleteEventDoesNotCount) {
  EventParser parser;
  EXPECT_EQ(parse("id: 1\ndata: a\n\nid: 2\ndata: b\n", 100, parser), "message|1|a;");
  EXPECT_EQ(parser.last_event_id(), "1");
  EventParser continued;
  continued.set_last_event_id("9");
  EXPECT_EQ(parse("data: a\n\n", 100, continued), "message|9|a;");
}

TEST(EventParserTest, ByteOrderMarkIsSkippedAtTheStartOnly) {
  EXPECT_EQ(parse("\xEF\xBB\xBF"
                  "data: a\n\n"),
            "message||a;");
  EXPECT_EQ(parse("data: a\n\xEF\xBB\xBF"
                  "data: b\n\n"),
            "message||a;");
}

TEST(EventParserTest, RetryIsANumberOfMilliseconds) {
  const auto retry_of = [](std::string_view text) {
    EventParser parser;
    parse(text, 100, parser);
    return parser.retry();
  };
  EXPECT_EQ(retry_of("retry: 1500\n"), 1500ms);
  EXPECT_EQ(retry_of("retry: 1500\nretry: x\n"), 1500ms);
  EXPECT_EQ(retry_of("retry:\n"), std::nullopt);
  EXPECT_EQ(retry_of("retry: -1\n"), std::nullopt);
  EXPECT_EQ(retry_of("retry: 1s\n"), std::nullopt);
  EXPECT_EQ(retry_of("retry: 99999999999999999999\n"), std::nullopt);
}

TEST(EventParserTest, BytesOfAnEventAreLimited) {
  EXPECT_EQ(parse("data: 12345\n\n", 11), "message||12345;");
  EXPECT_EQ(parse("data: 123456\n\n", 11), "!") << "a line";
  EXPECT_EQ(parse("data: 1234\ndata: 1234\n\n", 10), "message||1234\n1234;") << "9 bytes of data";
  EXPECT_EQ(parse("data: 1234\ndata: 1234\ndata:\ndata:\n\n", 10), "!");
  EXPECT_EQ(parse("id: 123456\nevent: abc\ndata: a\n\n", 10), "abc|123456|a;") << "10 bytes";
  EXPECT_EQ(parse(": 123456789\ndata: a\n\n", 10), "!") << "a long comment";
  EventParser parser(4);
  parse("data: a\n", 100, parser);
  EXPECT_EQ(parse("\n", 100, parser), "!") << "the error stays";
}

}  // namespace
}  // namespace weir::http::event_parser_test

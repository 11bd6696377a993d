#include "weir/http/h1/writer.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

namespace weir::http {
namespace {

const Date date(WallTime(std::chrono::seconds(784111777)));  // Sun, 06 Nov 1994 08:49:37 GMT

std::string written(const ResponseHead& head) {
  // Exactly the room that is promised to be enough, so that the address sanitizer sees more.
  const std::size_t room = head_size_max(head);
  const std::unique_ptr<char[]> out(new char[room]);
  char* const end = write_head(head, out.get());
  EXPECT_LE(end, out.get() + room);
  std::string text(out.get(), end);
  std::string appended = "before";
  append_head(appended, head);
  EXPECT_EQ(appended, "before" + text);
  return text;
}

TEST(Writer, TheUsualHead) {
  ResponseHead head;
  head.date = &date;
  head.content_length = 14;
  head.content_type = "text/plain; charset=utf-8";
  EXPECT_EQ(written(head),
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 14\r\n\r\n");
}

TEST(Writer, FramingAndConnection) {
  ResponseHead head;
  head.framing = BodyFraming::chunked;
  head.connection = ConnectionField::close;
  EXPECT_EQ(written(head),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
  head.framing = BodyFraming::none;
  head.connection = ConnectionField::keep_alive;
  head.status = Status::no_content;
  EXPECT_EQ(written(head), "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
}

TEST(Writer, FieldsOfTheHandlerComeAsTheyAre) {
  Fields fields;
  ASSERT_TRUE(fields.add("Allow", "GET, HEAD"));
  ASSERT_TRUE(fields.add("X", ""));
  ResponseHead head;
  head.status = Status::method_not_allowed;
  head.lines = fields.lines();
  EXPECT_EQ(
      written(head),
      "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nAllow: GET, HEAD\r\nX: \r\n\r\n");
}

TEST(Writer, EveryStatusHasALineAndRoom) {
  for (int code = 100; code <= 599; ++code) {
    ResponseHead head;
    head.status = static_cast<Status>(code);
    head.date = &date;
    head.content_length = std::numeric_limits<std::uint64_t>::max();
    head.connection = ConnectionField::keep_alive;
    const std::string reason(reason_of(head.status));
    EXPECT_TRUE(
        written(head).starts_with("HTTP/1.1 " + std::to_string(code) + " " + reason + "\r\nDate"));
  }
}

TEST(Writer, ChunkSizes) {
  const auto line = [](std::uint64_t size) {
    const std::unique_ptr<char[]> out(new char[chunk_size_max]);
    return std::string(out.get(), write_chunk_size(size, out.get()));
  };
  EXPECT_EQ(line(1), "1\r\n");
  EXPECT_EQ(line(255), "ff\r\n");
  EXPECT_EQ(line(0x10000), "10000\r\n");
  EXPECT_EQ(line(std::numeric_limits<std::uint64_t>::max()), "ffffffffffffffff\r\n");
}

}  // namespace
}  // namespace weir::http

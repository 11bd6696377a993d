// Tests of the response writer.
#include "weir/http/detail/h1/writer.hpp"

#include <gtest/gtest.h>
#include <chrono>
#include <limits>
#include <memory>
#include <string>

namespace weir::http::writer_test {
namespace {

const Date date(WallTime(std::chrono::seconds(784111777)));  // Sun, 06 Nov 1994 08:49:37 GMT

std::string written(const ResponseHead& head) {
  // Allocates exactly head_size_max() bytes, so that the address sanitizer detects an overrun.
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

TEST(Writer, WritesTheCommonHead) {
  ResponseHead head;
  head.date = &date;
  head.content_length = 14;
  head.content_type = "text/plain; charset=utf-8";
  EXPECT_EQ(written(head),
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 14\r\n\r\n");
}

TEST(Writer, WritesFramingAndConnection) {
  ResponseHead head;
  head.framing = BodyFraming::chunked;
  head.connection = ConnectionHeader::close;
  EXPECT_EQ(written(head),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
  head.framing = BodyFraming::none;
  head.connection = ConnectionHeader::keep_alive;
  head.status = Status::no_content;
  EXPECT_EQ(written(head), "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
}

TEST(Writer, WritesHeadersOfTheHandlerUnchanged) {
  Headers headers;
  ASSERT_TRUE(headers.add("Allow", "GET, HEAD"));
  ASSERT_TRUE(headers.add("X", ""));
  ResponseHead head;
  head.status = Status::method_not_allowed;
  head.lines = headers.lines();
  EXPECT_EQ(
      written(head),
      "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nAllow: GET, HEAD\r\nX: \r\n\r\n");
}

TEST(Writer, WritesAStatusLineForEveryStatus) {
  for (int code = 100; code <= 599; ++code) {
    ResponseHead head;
    head.status = static_cast<Status>(code);
    head.date = &date;
    head.content_length = std::numeric_limits<std::uint64_t>::max();
    head.connection = ConnectionHeader::keep_alive;
    const std::string reason(reason_of(head.status));
    EXPECT_TRUE(
        written(head).starts_with("HTTP/1.1 " + std::to_string(code) + " " + reason + "\r\nDate"));
  }
}

TEST(Writer, WritesChunkSizes) {
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

namespace {

std::string head_of(const Date& moment, std::string_view type, std::uint64_t length) {
  std::string text;
  ResponseHead head;
  head.date = &moment;
  head.content_type = type;
  head.content_length = length;
  append_head(text, head);
  return text;
}

TEST(ResponseHeadCache, WritesTheSameBytesAsWriteHead) {
  constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  ResponseHeadCache cache;
  for (int day = 0; day < 3; ++day) {
    const Date moment{WallTime(std::chrono::hours(24 * day))};
    for (std::size_t type_size = 0; type_size <= ResponseHeadCache::type_size_max; ++type_size) {
      const std::string type(type_size, 'x');
      cache.begin(moment, type);
      for (const std::uint64_t length : {0UL, 9UL, 10UL, 99UL, 100UL, 1234567UL, largest}) {
        const std::unique_ptr<char[]> out(new char[ResponseHeadCache::size_max]);
        char* const end = cache.write(length, out.get());
        ASSERT_LE(end, out.get() + ResponseHeadCache::size_max);
        EXPECT_EQ(std::string(out.get(), end), head_of(moment, type, length));
      }
    }
  }
}

TEST(ResponseHeadCache, MatchesOnlyItsMediaType) {
  ResponseHeadCache cache;
  EXPECT_FALSE(cache.is_for({}));
  const Date moment{WallTime()};
  constexpr std::string_view types = "text/plain";
  cache.begin(moment, types);
  EXPECT_TRUE(cache.is_for(types));
  EXPECT_FALSE(cache.is_for(types.substr(0, 4)));
  EXPECT_FALSE(cache.is_for({}));
  constexpr std::string_view as_long = "image/jpeg";
  EXPECT_FALSE(cache.is_for(as_long));
  cache.begin(moment, {});
  EXPECT_TRUE(cache.is_for({}));
  EXPECT_FALSE(cache.is_for(types));
}

/// Returns the expected head, made without the writer.
std::string expected_head(std::string_view type, const std::string& length) {
  std::string text = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
  if (!type.empty()) text.append("Content-Type: ").append(type).append("\r\n");
  return text + "Content-Length: " + length + "\r\n\r\n";
}

TEST(Writer, WritesMediaTypesAndLengthsOfEverySize) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  for (std::size_t size = 0; size <= letters.size(); ++size) {
    ResponseHead head;
    head.date = &date;
    head.content_type = std::string_view(letters).substr(0, size);
    EXPECT_EQ(written(head), expected_head(head.content_type, "0"));
  }
  for (const std::uint64_t length : {0UL, 1UL, 9UL, 10UL, 11UL, 42UL, 99UL, 100UL, 101UL, 999UL,
                                     1000UL, 65536UL, 18446744073709551615UL}) {
    ResponseHead head;
    head.date = &date;
    head.content_length = length;
    EXPECT_EQ(written(head), expected_head({}, std::to_string(length)));
  }
}

TEST(Writer, HasRoomForLongTypesAndLines) {
  for (const std::size_t size : {std::size_t{100}, std::size_t{255}, std::size_t{256},
                                 std::size_t{257}, std::size_t{5000}}) {
    Headers headers;
    ASSERT_TRUE(headers.add("X", std::string(size, 'v')));
    const std::string type(size, 't');
    ResponseHead head;
    head.status = Status::network_authentication_required;
    head.date = &date;
    head.content_length = std::numeric_limits<std::uint64_t>::max();
    head.connection = ConnectionHeader::keep_alive;
    const std::string start =
        "HTTP/1.1 511 Network Authentication Required\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    const std::string end = "Content-Length: 18446744073709551615\r\nConnection: keep-alive\r\n";
    head.lines = headers.lines();
    EXPECT_EQ(written(head), start + end + std::string(headers.lines()) + "\r\n");
    head.content_type = type;
    EXPECT_EQ(written(head), start + "Content-Type: " + type + "\r\n" + end +
                                 std::string(headers.lines()) + "\r\n");
    head.lines = {};
    EXPECT_EQ(written(head), start + "Content-Type: " + type + "\r\n" + end + "\r\n");
  }
}

TEST(Writer, WritesTheHeadersInAFixedOrder) {
  ResponseHead head;
  head.status = Status::not_found;
  head.date = &date;
  head.content_type = "a/b";
  head.content_length = 5;
  head.connection = ConnectionHeader::close;
  head.lines = "X: y\r\n";
  EXPECT_EQ(written(head),
            "HTTP/1.1 404 Not Found\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: a/b\r\n"
            "Content-Length: 5\r\nConnection: close\r\nX: y\r\n\r\n");
  head.framing = BodyFraming::none;
  head.connection = ConnectionHeader::none;
  head.date = nullptr;
  head.content_type = {};
  EXPECT_EQ(written(head), "HTTP/1.1 404 Not Found\r\nX: y\r\n\r\n");
  head.framing = BodyFraming::chunked;
  head.connection = ConnectionHeader::keep_alive;
  EXPECT_EQ(written(head),
            "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n"
            "X: y\r\n\r\n");
}

TEST(Writer, WritesEveryDigitOfAChunkSize) {
  for (std::uint64_t size = 1; size != 0; size <<= 1) {
    const std::unique_ptr<char[]> out(new char[chunk_size_max]);
    const std::string line(out.get(), write_chunk_size(size, out.get()));
    EXPECT_EQ(std::stoull(line, nullptr, 16), size);
    EXPECT_TRUE(line.ends_with("\r\n"));
  }
  EXPECT_EQ(chunk_end, "\r\n");
  EXPECT_EQ(last_chunk, "0\r\n\r\n");
  EXPECT_EQ(continue_head, "HTTP/1.1 100 Continue\r\n\r\n");
}

TEST(ResponseHeadCache, WritesTheExpectedBytes) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP";
  ResponseHeadCache cache;
  for (std::size_t size = 0; size <= ResponseHeadCache::type_size_max; ++size) {
    const std::string_view type = std::string_view(letters).substr(0, size);
    cache.begin(date, type);
    EXPECT_TRUE(cache.is_for(type));
    for (const std::uint64_t length : {0UL, 10UL, 99UL, 100UL, 18446744073709551615UL}) {
      const std::unique_ptr<char[]> out(new char[ResponseHeadCache::size_max]);
      const std::string head(out.get(), cache.write(length, out.get()));
      EXPECT_EQ(head, expected_head(type, std::to_string(length)));
    }
  }
}

}  // namespace
}  // namespace weir::http::writer_test

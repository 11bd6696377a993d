// Tests of the writer of response heads of HTTP/2.
#include "weir/http/detail/h2/head_writer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/message/headers.hpp"

namespace weir::http {
namespace {

/// Decodes a block; one line for each field.
std::string decode(std::string_view block) {
  HpackTable table;
  std::array<char, HpackDecoder::scratch_size(4096)> scratch;
  HpackDecoder decoder(table, to_bytes(block), 4096, scratch);
  std::string lines;
  while (decoder.next() == HpackDecoder::Step::field) {
    lines.append(decoder.field().name).append(": ").append(decoder.field().value).append("\n");
  }
  EXPECT_EQ(table.count(), 0u);
  return lines;
}

std::string write(const ResponseHead& head) {
  std::string block(response_block_size_max(head), '\0');
  block.resize(static_cast<std::size_t>(write_response_block(head, block.data()) - block.data()));
  return decode(block);
}

TEST(ResponseBlock, HasTheFieldsOfTheHead) {
  const Date date{WallTime()};
  ResponseHead head;
  head.status = Status::not_found;
  head.date = &date;
  head.content_type = "text/plain";
  head.content_length = 123;
  head.lines = "X-Name: value\r\nSet-Cookie: a=b\r\n";
  EXPECT_EQ(write(head),
            ":status: 404\ndate: Thu, 01 Jan 1970 00:00:00 GMT\ncontent-type: text/plain\n"
            "content-length: 123\nx-name: value\nset-cookie: a=b\n");
}

TEST(ResponseBlock, LeavesOutWhatOnlyHttp1Has) {
  ResponseHead head;
  head.status = Status::no_content;
  head.framing = BodyFraming::none;
  head.connection = ConnectionHeader::close;
  EXPECT_EQ(write(head), ":status: 204\n");
  head.framing = BodyFraming::chunked;
  EXPECT_EQ(write(head), ":status: 204\n");
}

TEST(ResponseBlock, WritesAnyLength) {
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{99}, std::numeric_limits<std::uint64_t>::max()}) {
    ResponseHead head;
    head.content_length = length;
    EXPECT_EQ(write(head), ":status: 200\ncontent-length: " + std::to_string(length) + "\n");
  }
}

TEST(ResponseBlockCache, WritesWhatTheWriterWrites) {
  const Date date{WallTime()};
  ResponseBlockCache cache;
  constexpr std::string_view longest = "application/a-media-type-of-42-characters!";
  static_assert(longest.size() == ResponseHeadCache::type_size_max);
  for (const std::string_view type :
       {std::string_view(), std::string_view("text/plain"), longest}) {
    EXPECT_FALSE(cache.is_for(type));
    cache.begin(date, type);
    EXPECT_TRUE(cache.is_for(type));
    std::array<char, ResponseBlockCache::size_max> out;
    const char* const end = cache.write(std::numeric_limits<std::uint64_t>::max(), out.data());
    ResponseHead head;
    head.date = &date;
    head.content_type = type;
    head.content_length = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(decode({out.data(), end}), write(head));
  }
}

}  // namespace
}  // namespace weir::http

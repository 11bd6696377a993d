// Tests of the writer of response heads of HTTP/2.
#include "weir/http/detail/h2/head_writer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/message/headers.hpp"

namespace weir::http::response_writer_test {
namespace {

/// Decodes a block; one line for each field.
std::string decode(std::string_view block, HpackTable& table) {
  std::array<char, HpackDecoder::scratch_size(4096)> scratch;
  HpackDecoder decoder(table, to_bytes(block), 4096, scratch);
  std::string lines;
  while (decoder.next() == HpackDecoder::Step::field) {
    lines.append(decoder.field().name).append(": ").append(decoder.field().value).append("\n");
  }
  return lines;
}

std::string write(const ResponseHead& head) {
  std::string block(response_block_size_max(head), '\0');
  block.resize(static_cast<std::size_t>(write_response_block(head, block.data()) - block.data()));
  HpackTable table;
  std::string lines = decode(block, table);
  EXPECT_EQ(table.count(), 0u);
  return lines;
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

TEST(ResponseBlock, LeavesOutHeadersOfConnections) {
  ResponseHead head;
  head.framing = BodyFraming::none;
  head.lines =
      "Keep-Alive: timeout=5\r\nX-Keep-Alive: 1\r\nUpgrade: h2c\r\nproxy-connection: x\r\n"
      "CONNECTION: close\r\nTransfer-Encoding: gzip\r\nTE: gzip\r\nSet-Cookie: a=b\r\n";
  EXPECT_EQ(write(head), ":status: 200\nx-keep-alive: 1\nset-cookie: a=b\n");
}

TEST(ResponseBlock, WritesAnyLength) {
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{99}, std::numeric_limits<std::uint64_t>::max()}) {
    ResponseHead head;
    head.content_length = length;
    EXPECT_EQ(write(head), ":status: 200\ncontent-length: " + std::to_string(length) + "\n");
  }
}

constexpr std::string_view longest_type = "application/a-media-type-of-42-characters!";
static_assert(longest_type.size() == ResponseHeadCache::type_size_max);

/// A connection, and the table of its client.
struct Connection {
  HpackEncoderState encoder;
  HpackTable table;

  std::string write(const ResponseBlockCache& cache, std::uint64_t length) {
    std::array<char, ResponseBlockCache::size_max> out;
    block = {out.data(), cache.write(length, encoder, out.data())};
    return decode(block, table);
  }

  std::string block;  // the last one
};

TEST(ResponseBlockCache, WritesWhatTheWriterWrites) {
  const Date date{WallTime()};
  ResponseBlockCache cache;
  std::uint64_t number = 0;
  Connection connection;
  for (const std::string_view type :
       {std::string_view(), std::string_view("text/plain"), longest_type}) {
    EXPECT_FALSE(cache.is_for(type));
    cache.begin(date, type, ++number);
    EXPECT_TRUE(cache.is_for(type));
    ResponseHead head;
    head.date = &date;
    head.content_type = type;
    for (const std::uint64_t length :
         {std::numeric_limits<std::uint64_t>::max(), std::uint64_t{11}, std::uint64_t{0}}) {
      head.content_length = length;
      EXPECT_EQ(connection.write(cache, length), write(head));
    }
  }
}

TEST(ResponseBlockCache, RefersToFieldsThatTheClientHas) {
  ResponseBlockCache text;
  text.begin(Date{WallTime()}, "text/plain", 1);
  ResponseBlockCache json;
  json.begin(Date{WallTime() + std::chrono::seconds(1)}, "application/json", 2);
  Connection connection;
  const std::string first_text = connection.write(text, 10);
  EXPECT_GT(connection.block.size(), 20u);
  EXPECT_EQ(connection.table.count(), 2u);
  EXPECT_EQ(connection.write(text, 10), first_text);
  EXPECT_LT(connection.block.size(), 9u);
  const std::string first_json = connection.write(json, 10);
  EXPECT_NE(first_json, first_text);
  EXPECT_EQ(connection.write(json, 10), first_json);
  EXPECT_LT(connection.block.size(), 9u);
  EXPECT_EQ(connection.write(text, 10), first_text);
  Connection other;
  EXPECT_EQ(other.write(text, 10), first_text);
}

TEST(ResponseBlockCache, RefersToNothingOnceTheClientHasLoweredItsTable) {
  ResponseBlockCache cache;
  cache.begin(Date{WallTime()}, "text/plain", 1);
  Connection connection;
  const std::string first = connection.write(cache, 10);
  connection.encoder.set_peer_size_max(100);
  connection.table.set_size_max(100);
  for (int count = 0; count < 3; ++count) {
    EXPECT_EQ(connection.write(cache, 10), first);
    EXPECT_EQ(connection.table.count(), 0u);
  }
}

}  // namespace
}  // namespace weir::http::response_writer_test

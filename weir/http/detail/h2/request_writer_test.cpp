// Tests of the field blocks of requests.
#include "weir/http/detail/h2/head_writer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/detail/h2/request_fields.hpp"
#include "weir/http/message/detail/request_head.hpp"

namespace weir::http::request_writer_test {
namespace {

std::string written(std::string_view head, std::string_view scheme = "https") {
  std::string block(request_block_size_max(scheme, head), '\0');
  char* const end = write_request_block(scheme, head, block.data());
  block.resize(static_cast<std::size_t>(end - block.data()));
  return block;
}

/// Returns the fields of the block of a head, one line for each.
std::string fields(std::string_view head) {
  const std::string block = written(head);
  HpackTable table;
  std::vector<char> scratch(HpackDecoder::scratch_size(65'536));
  HpackDecoder decoder(table, to_bytes(block), 65'536, scratch);
  std::string out;
  while (decoder.next() == HpackDecoder::Step::field) {
    out.append(decoder.field().name).append("=").append(decoder.field().value).append("\n");
  }
  EXPECT_EQ(table.count(), 0U) << "the block fills the table of the server";
  return out;
}

TEST(RequestWriter, WritesTheFirstLineAndTheHostAsPseudoFields) {
  EXPECT_EQ(
      fields("GET /a?b HTTP/1.1\r\nX-Early: 1\r\nHost: a.test:8\r\nContent-Type: t/p\r\n\r\n"),
      ":method=GET\n:scheme=https\n:path=/a?b\n:authority=a.test:8\nx-early=1\n"
      "content-type=t/p\n");
}

TEST(RequestWriter, WritesAConnectForAWebSocket) {
  EXPECT_EQ(fields("CONNECT /chat?a HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Version: 13\r\n\r\n"),
            ":method=CONNECT\n:protocol=websocket\n:scheme=https\n:path=/chat?a\n:authority=h\n"
            "sec-websocket-version=13\n");
}

TEST(RequestWriter, LeavesOutTheHeadersOfConnections) {
  EXPECT_EQ(fields("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTE: gzip\r\n"
                   "Keep-Alive: 5\r\nProxy-Connection: x\r\nConnection: te\r\nUpgrade: x\r\n"
                   "TE: trailers\r\n\r\n"),
            ":method=POST\n:scheme=https\n:path=/\n:authority=h\nte=trailers\n");
}

TEST(RequestWriter, LetsNoIntermediaryIndexSecrets) {
  const std::string never_indexed_cookie = "\x1F\x11";  // RFC 7541 §6.2.3; the name has index 32
  EXPECT_NE(written("GET / HTTP/1.1\r\nHost: h\r\nCookie: a=b\r\n\r\n").find(never_indexed_cookie),
            std::string::npos);
  EXPECT_EQ(written("GET / HTTP/1.1\r\nHost: h\r\nAccept: a=b\r\n\r\n").find("\x1F"),
            std::string::npos);
}

TEST(RequestWriter, IsReadByTheServersReader) {
  const std::string block = written("PUT /long HTTP/1.1\r\nHost: h.test\r\nX-A: 1\r\n\r\n", "http");
  HpackTable table;
  RequestFieldReader reader;
  RequestHead head;
  const FieldsResult read = reader.read_request(table, to_bytes(block), head);
  ASSERT_EQ(read.kind, FieldsResult::Kind::complete);
  EXPECT_EQ(head.method(), Method::put);
  EXPECT_EQ(head.target(), "/long");
  EXPECT_EQ(head.authority(), "h.test");
  EXPECT_EQ(head.header("x-a"), "1");
}

TEST(RequestWriter, ComparesTheFieldListWithALimit) {
  // Each field has its name, its value and 32 bytes.
  for (const std::size_t count : {0U, 1U, 2U, 500U, 10'000U}) {
    std::string head = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n";
    for (std::size_t each = 0; each < count; ++each) head += "a: \r\n";
    head += "\r\n";
    const std::size_t size = 42 + 44 + 38 + 43 + 33 * count;
    EXPECT_TRUE(request_list_fits("https", head, size)) << count;
    EXPECT_FALSE(request_list_fits("https", head, size - 1)) << count;
    EXPECT_TRUE(request_list_fits("https", head, 0xFFFFFFFF)) << count;
  }
}

}  // namespace
}  // namespace weir::http::request_writer_test

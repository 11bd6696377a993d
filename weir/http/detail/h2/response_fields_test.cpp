// Tests of ResponseFieldReader. The rules of single fields have their tests with requests.
#include "weir/http/detail/h2/response_fields.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/hpack_fixture.hpp"

namespace weir::http::response_fields_test {
namespace {

using Fields = std::vector<TextField>;
using Kind = FieldsResult::Kind;

/// Returns the text of the head; otherwise "malformed", "invalid block" or the name of the error.
std::string read(ResponseFieldReader& reader, const std::string& block) {
  HpackTable table;
  ReceivedResponseHead head;
  const FieldsResult result = reader.read_response(table, to_bytes(block), head);
  switch (result.kind) {
    case Kind::complete:
      return std::string(head.bytes());
    case Kind::rejected:
      return std::string(name_of(result.error));
    case Kind::malformed:
      return "malformed";
    case Kind::invalid_block:
      return "invalid block";
  }
  return "";
}

std::string read(const Fields& fields, const ResponseFieldLimits& limits = {}) {
  ResponseFieldReader reader(limits);
  return read(reader, literal_block(fields));
}

TEST(ResponseFieldReader, FillsAHead) {
  ResponseFieldReader reader;
  HpackTable table;
  ReceivedResponseHead head;
  const Fields fields{
      {":status", "404"}, {"content-length", "12"}, {"set-cookie", "a=b"}, {"set-cookie", "c=d"}};
  for (int round = 0; round < 2; ++round) {
    const FieldsResult result = reader.read_response(table, to_bytes(literal_block(fields)), head);
    ASSERT_EQ(result.kind, Kind::complete);
    EXPECT_EQ(head.status(), Status::not_found);
    EXPECT_EQ(head.content_length(), 12U);
    EXPECT_EQ(head.header_count(), 3U);
    EXPECT_EQ(head.header_at(2).value, "c=d");
    EXPECT_TRUE(head.keep_alive());
  }
}

TEST(ResponseFieldReader, ReadsEachStatus) {
  for (int code = 0; code < 1000; ++code) {
    const std::string status = (code < 10 ? "00" : code < 100 ? "0" : "") + std::to_string(code);
    const std::string head = read({{":status", status}});
    if (code == 101) {
      EXPECT_EQ(head, "malformed");
    } else if (code < 100) {
      EXPECT_EQ(head, "bad_status") << code;
    } else {
      EXPECT_EQ(head, "HTTP/1.1 " + status + "\r\n\r\n");
    }
  }
}

TEST(ResponseFieldReader, RejectsMalformedResponses) {
  for (const Fields& fields : std::vector<Fields>{
           {},
           {{"x", "y"}},
           {{":status", ""}},
           {{":status", "20"}},
           {{":status", "2000"}},
           {{":status", "2 0"}},
           {{":status", "200 OK"}},
           {{":status", "+20"}},
           {{":status", "20\r"}},
           {{":Status", "200"}},
           {{":method", "GET"}},
           {{"x", "y"}, {":status", "200"}},
           {{":status", "200"}, {":status", "200"}},
           {{":status", "200"}, {":path", "/"}},
           {{":status", "200"}, {"A", "b"}},
           {{":status", "200"}, {"a", "b\r\nc: d"}},
           {{":status", "200"}, {"a", " b"}},
           {{":status", "200"}, {"connection", "close"}},
           {{":status", "200"}, {"transfer-encoding", "chunked"}},
           {{":status", "101"}, {"upgrade", "websocket"}},
       }) {
    EXPECT_EQ(read(fields), "malformed") << testing::PrintToString(fields);
  }
}

TEST(ResponseFieldReader, RejectsWhatHttp1Rejects) {
  EXPECT_EQ(read({{":status", "200"}, {"content-length", "1"}, {"content-length", "1"}}),
            "repeated_content_length");
  EXPECT_EQ(read({{":status", "200"}, {"a", "\x01"}}), "bad_header_value");
  ResponseFieldLimits limits{.list_bytes_max = 42 + 33 + 100};
  EXPECT_EQ(read({{":status", "200"}, {"a", std::string(101, 'v')}}, limits), "headers_too_long");
  EXPECT_NE(read({{":status", "200"}, {"a", std::string(100, 'v')}}, limits), "headers_too_long");
  limits.head.headers_max = 1;
  EXPECT_EQ(read({{":status", "200"}, {"a", ""}, {"b", ""}}, limits), "too_many_headers");
}

TEST(ResponseFieldReader, KeepsTheTableInStepAfterAMalformedField) {
  ResponseFieldReader reader;
  HpackTable table;
  ReceivedResponseHead head;
  const std::string inserted = from_hex("40 01 61 01 62");
  const auto kind = [&](const std::string& block) {
    return reader.read_response(table, to_bytes(block), head).kind;
  };
  EXPECT_EQ(kind(literal_block({{"x", "y"}}) + inserted), Kind::malformed);
  EXPECT_EQ(kind("\x88\xbe"), Kind::complete);
  EXPECT_EQ(head.header("a"), "b");
  EXPECT_EQ(kind("\x88\x84"), Kind::malformed);  // :path of the static table
  EXPECT_EQ(kind("\x88\x88"), Kind::malformed);
  EXPECT_EQ(kind("\x88\x8f"), Kind::complete);  // accept-charset
  EXPECT_EQ(kind("\x88\xbf"), Kind::invalid_block);
  EXPECT_EQ(read(reader, "\x88"), "HTTP/1.1 200\r\n\r\n");
}

TEST(ResponseFieldReader, ReadsTrailers) {
  ResponseFieldReader reader;
  HpackTable table;
  Headers trailers;
  const std::string block = literal_block({{"grpc-status", "0"}});
  EXPECT_EQ(reader.read_trailers(table, to_bytes(block), trailers).kind, Kind::complete);
  EXPECT_EQ(trailers.get("grpc-status"), "0");
  EXPECT_LE(ResponseFieldReader::memory({}), 2U * 64 * 1024 + 128);
}

}  // namespace
}  // namespace weir::http::response_fields_test

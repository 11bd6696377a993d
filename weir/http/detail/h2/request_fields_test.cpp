// Tests of RequestFieldReader: heads, malformed requests and trailers.
#include "weir/http/detail/h2/request_fields.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/test/heap_fixture.hpp"
#include "weir/http/test/hpack_fixture.hpp"

namespace weir::http::request_fields_test {
namespace {

using Fields = std::vector<TextField>;
using Kind = FieldsResult::Kind;

const Fields get{
    {":method", "GET"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", "/p"}};

/// The result of reading one request.
struct ReadRequest {
  FieldsResult result;
  std::string text;  ///< the head as HTTP/1.1

  friend bool operator==(const ReadRequest& request, Kind kind) {
    return request.result.kind == kind;
  }
  friend bool operator==(const ReadRequest& request, ParseError error) {
    return request.result.kind == Kind::rejected && request.result.error == error;
  }
  friend std::ostream& operator<<(std::ostream& out, const ReadRequest& request) {
    return out << static_cast<int>(request.result.kind) << ' ' << name_of(request.result.error)
               << '\n'
               << request.text;
  }
};

ReadRequest read(RequestFieldReader& reader, std::string_view block) {
  HpackTable table;
  RequestHead head;
  ReadRequest request{reader.read_request(table, to_bytes(block), head), ""};
  if (request.result.kind == Kind::complete) request.text = head.bytes();
  return request;
}

ReadRequest read(const Fields& fields, const RequestFieldLimits& limits = {}) {
  RequestFieldReader reader(limits);
  return read(reader, literal_block(fields));
}

Fields with(Fields fields, const Fields& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

Fields without(std::string_view name) {
  Fields fields;
  for (const TextField& each : get) {
    if (each.name != name) fields.push_back(each);
  }
  return fields;
}

Fields replaced(std::string_view name, std::string_view value) {
  Fields fields = get;
  for (TextField& each : fields) {
    if (each.name == name) each.value = value;
  }
  return fields;
}

TEST(RequestFieldReader, FillsAHead) {
  RequestFieldReader reader;
  HpackTable table;
  RequestHead head;
  const Fields fields{{":method", "POST"},         {":path", "/a%20b?c=d"},
                      {":authority", "A.test:80"}, {":scheme", "https"},
                      {"content-length", "12"},    {"user-agent", "x"},
                      {"te", "trailers"},          {"empty", ""}};
  const FieldsResult result = reader.read_request(table, to_bytes(literal_block(fields)), head);
  EXPECT_EQ(result.kind, Kind::complete);
  EXPECT_TRUE(result.is_https);
  EXPECT_FALSE(result.is_extended_connect);
  EXPECT_EQ(head.method(), Method::post);
  EXPECT_EQ(head.path(), "/a%20b");
  EXPECT_EQ(head.query(), "c=d");
  EXPECT_EQ(head.authority(), "A.test:80");
  EXPECT_EQ(head.content_length(), 12U);
  EXPECT_EQ(head.header("user-agent"), "x");
  EXPECT_EQ(head.header("te"), "trailers");
  EXPECT_EQ(head.header("empty"), "");
  EXPECT_EQ(head.header_count(), 5U);
  EXPECT_TRUE(head.keep_alive());
}

/// Returns an indexed field of the dynamic table; 0 is the newest one (RFC 7541 §6.1).
std::string indexed(unsigned age) {
  return std::string(1, static_cast<char>(0x80 | (62 + age)));
}
/// Returns a literal with incremental indexing, and a name of the static table (RFC 7541 §6.2.1).
std::string inserted(unsigned name_index, const std::string& value) {
  return static_cast<char>(0x40 | name_index) + (static_cast<char>(value.size()) + value);
}

/// Tests of blocks that a client repeats.
class RepeatedBlockTest : public testing::Test {
 protected:
  static constexpr unsigned authority = 1;
  static constexpr const char* start = "\x82\x84\x86";  // GET, /, http

  std::string text_of(HpackTable& table, std::string_view block) {
    RequestHead head;
    const auto result = reader_.read_request(table, to_bytes(block), head);
    return result.kind == Kind::complete ? std::string(head.bytes()) : "failed";
  }
  static std::string get_from(const std::string& host) {
    return "GET / HTTP/1.1\r\nhost: " + host + "\r\n\r\n";
  }

  RequestFieldReader reader_;
  HpackTable table_;
};

TEST_F(RepeatedBlockTest, GivesTheSameHead) {
  EXPECT_EQ(text_of(table_, start + inserted(authority, "a")), get_from("a"));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(text_of(table_, start + indexed(0)), get_from("a"));
  }
}

TEST_F(RepeatedBlockTest, HasEachPartOfTheHead) {
  EXPECT_EQ(text_of(table_, start + inserted(authority, "a")), get_from("a"));
  const std::string block =
      start + indexed(0) + literal_block({{"x", "y"}, {"priority", "u=1, i"}});
  for (int round = 0; round < 3; ++round) {
    RequestHead head;
    const FieldsResult result = reader_.read_request(table_, to_bytes(block), head);
    ASSERT_EQ(result.kind, Kind::complete);
    ASSERT_TRUE(result.priority);
    EXPECT_EQ(result.priority->urgency, 1);
    EXPECT_TRUE(result.priority->incremental);
    EXPECT_EQ(head.method(), Method::get);
    EXPECT_EQ(head.path(), "/");
    EXPECT_EQ(head.header_count(), 3u);
    EXPECT_EQ(head.header("x"), "y");
  }
  RequestHead head;
  const auto other = reader_.read_request(table_, to_bytes(literal_block(get)), head);
  EXPECT_FALSE(other.priority);
}

TEST_F(RepeatedBlockTest, IsDecodedAgainAfterAChangeOfTheTable) {
  EXPECT_EQ(text_of(table_, start + inserted(authority, "a")), get_from("a"));
  EXPECT_EQ(text_of(table_, start + indexed(0)), get_from("a"));
  EXPECT_EQ(text_of(table_, start + inserted(authority, "b")), get_from("b"));
  EXPECT_EQ(text_of(table_, start + indexed(0)), get_from("b"));
  const std::string inserts = inserted(authority, "c");
  EXPECT_EQ(text_of(table_, start + inserts), get_from("c"));
  EXPECT_EQ(text_of(table_, start + inserts), get_from("c")) << "it inserts a second field";
  EXPECT_EQ(text_of(table_, start + indexed(1)), get_from("c"));
  EXPECT_EQ(text_of(table_, "\x20" + (start + indexed(0))), "failed") << "the table is empty";
}

TEST_F(RepeatedBlockTest, IsDecodedAgainAfterTrailersAndSkippedBlocks) {
  EXPECT_EQ(text_of(table_, start + inserted(authority, "a")), get_from("a"));
  EXPECT_EQ(text_of(table_, start + indexed(0)), get_from("a"));
  Headers trailers;
  reader_.read_trailers(table_,
                        to_bytes("\x40\x01x\x01"
                                 "1"),
                        trailers);
  EXPECT_EQ(text_of(table_, start + indexed(0)), "failed") << "a header without an authority";
  EXPECT_EQ(text_of(table_, start + indexed(1)), get_from("a"));
  EXPECT_EQ(reader_.skip(table_, to_bytes(inserted(authority, "b"))).kind, Kind::complete);
  EXPECT_EQ(text_of(table_, start + indexed(1)), "failed");
  EXPECT_EQ(text_of(table_, start + indexed(0)), get_from("b"));
}

TEST_F(RepeatedBlockTest, BelongsToItsTable) {
  EXPECT_EQ(text_of(table_, start + inserted(authority, "a")), get_from("a"));
  EXPECT_EQ(text_of(table_, start + indexed(0)), get_from("a"));
  HpackTable other;
  EXPECT_EQ(text_of(other, start + indexed(0)), "failed");
  EXPECT_EQ(text_of(other, start + inserted(authority, "b")), get_from("b"));
  EXPECT_EQ(text_of(other, start + indexed(0)), get_from("b"));
  EXPECT_EQ(text_of(table_, start + indexed(0)), get_from("a"));
  reader_.forget(table_);
  table_ = HpackTable();  // that of another connection
  EXPECT_EQ(text_of(table_, start + indexed(0)), "failed");
}

TEST_F(RepeatedBlockTest, IsRejectedEachTime) {
  const std::string block = literal_block(replaced(":path", "/%"));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(read(reader_, block), ParseError::bad_escape);
    EXPECT_EQ(text_of(table_, start + inserted(authority, "a")), get_from("a"));
  }
}

TEST(RequestFieldReader, ReadsOneRequestAfterAnother) {
  RequestFieldReader reader;
  const std::string expected = "GET /p HTTP/1.1\r\nhost: a.test\r\n\r\n";
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(read(reader, literal_block(get)).text, expected);
    EXPECT_EQ(read(reader, literal_block(with(get, {{"A", "b"}}))), Kind::malformed);
    EXPECT_EQ(read(reader, literal_block(replaced(":path", "/%"))), ParseError::bad_escape);
    EXPECT_EQ(read(reader, literal_block(with(get, {{"cookie", "a=b"}}))).text,
              "GET /p HTTP/1.1\r\nhost: a.test\r\ncookie: a=b\r\n\r\n");
  }
}

TEST(RequestFieldReader, TakesTheAuthorityFromHost) {
  EXPECT_EQ(read(with(without(":authority"), {{"host", "b.test"}})).text,
            "GET /p HTTP/1.1\r\nhost: b.test\r\n\r\n");
  EXPECT_EQ(read(without(":authority")), ParseError::missing_host);
  EXPECT_EQ(read(with(without(":authority"), {{"host", "a"}, {"host", "a"}})),
            ParseError::repeated_host);
}

TEST(RequestFieldReader, WritesAHostThatEqualsTheAuthorityOnce) {
  const std::string expected = "GET /p HTTP/1.1\r\nhost: a.test\r\nx: y\r\n\r\n";
  EXPECT_EQ(read(with(get, {{"host", "a.test"}, {"x", "y"}})).text, expected);
  EXPECT_EQ(read(with(get, {{"x", "y"}, {"host", "A.TEST"}})).text, expected);
  for (const std::string_view host : {"a.test:80", "a.test:", "a.test."}) {
    EXPECT_EQ(read(with(get, {{"host", std::string(host)}, {"x", "y"}})).text, expected) << host;
  }
  for (const std::string_view host : {"b.test", "a.test:443", "a.test:81", "", "a.test, a.test"}) {
    EXPECT_EQ(read(with(get, {{"host", std::string(host)}})), Kind::malformed) << host;
  }
  EXPECT_EQ(read(with(get, {{"host", "a.test"}, {"host", "a.test"}})), ParseError::repeated_host);
  EXPECT_EQ(read(with(get, {{"host", "a.test"}, {"host", "b.test"}})), ParseError::repeated_host);
}

TEST(RequestFieldReader, RequiresEachPseudoHeaderField) {
  for (const std::string_view name : {":method", ":scheme", ":path"}) {
    EXPECT_EQ(read(without(name)), Kind::malformed) << name;
    EXPECT_EQ(read(with(without(name), {{"x", "y"}})), Kind::malformed) << name;
    EXPECT_EQ(read(replaced(name, "")), Kind::malformed) << name;
  }
  EXPECT_EQ(read(Fields{}), Kind::malformed);
  EXPECT_EQ(read(replaced(":authority", "")), ParseError::bad_host);
}

TEST(RequestFieldReader, RejectsRepeatedPseudoHeaderFields) {
  for (const TextField& each : get) {
    EXPECT_EQ(read(with({each}, get)), Kind::malformed) << each;
    EXPECT_EQ(read(with({{each.name, ""}}, get)), Kind::malformed) << each;
  }
}

TEST(RequestFieldReader, RejectsPseudoHeaderFieldsAfterOthers) {
  for (const TextField& each : get) {
    EXPECT_EQ(read(with(with(without(each.name), {{"x", "y"}}), {each})), Kind::malformed) << each;
  }
  EXPECT_EQ(read(with(get, {{"cookie", "a=b"}, {":path", "/q"}})), Kind::malformed);
}

TEST(RequestFieldReader, RejectsUnknownPseudoHeaderFields) {
  for (const std::string_view name :
       {":status", ":protocol", ":", ":foo", ":Path", ":method ", ":path\r"}) {
    EXPECT_EQ(read(with(get, {{std::string(name), "200"}})), Kind::malformed) << name;
    EXPECT_EQ(read(with({{std::string(name), "200"}}, get)), Kind::malformed) << name;
  }
}

TEST(RequestFieldReader, RejectsInvalidNames) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto character = static_cast<char>(byte);
    const bool lower_or_digit = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
    const bool mark =
        byte != 0 && std::string_view("!#$%&'*+-.^_`|~").find(character) != std::string_view::npos;
    const Kind expected = lower_or_digit || mark ? Kind::complete : Kind::malformed;
    for (const std::string& name : {std::string(1, character), std::string("a") + character + "b",
                                    std::string("abcdefghijklmnopqrstuvwxyz") + character}) {
      EXPECT_EQ(read(with(get, {{name, "v"}})), expected) << byte;
    }
  }
  EXPECT_EQ(read(with(get, {{"", "v"}})), Kind::malformed);
}

TEST(RequestFieldReader, RejectsInvalidValues) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto character = static_cast<char>(byte);
    const bool ends_head = byte == 0 || byte == '\r' || byte == '\n';
    const bool control = (byte < ' ' && byte != '\t') || byte == 127;
    for (const std::string& value :
         {std::string("a") + character + "b",
          "abcdefghijklmnopqrstu" + std::string(1, character) + "abcdefghijklmnopqrstuvwxyz"}) {
      const ReadRequest request = read(with(get, {{"x", value}}));
      if (ends_head) {
        EXPECT_EQ(request, Kind::malformed) << byte;
      } else if (control) {
        EXPECT_EQ(request, ParseError::bad_header_value) << byte;
      } else {
        EXPECT_EQ(request.text, "GET /p HTTP/1.1\r\nhost: a.test\r\nx: " + value + "\r\n\r\n");
      }
    }
  }
  for (const std::string_view value : {" a", "a ", "\ta", "a\t", " ", "\t", "a\r\nb: c", "\n"}) {
    EXPECT_EQ(read(with(get, {{"x", std::string(value)}})), Kind::malformed) << value;
    EXPECT_EQ(read(replaced(":path", "/" + std::string(value) + " ")), Kind::malformed);
    EXPECT_EQ(read(replaced(":authority", value)), Kind::malformed) << value;
  }
}

TEST(RequestFieldReader, RejectsFieldsOfTheConnection) {
  for (const std::string_view name :
       {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"}) {
    for (const std::string_view value : {"", "close", "chunked", "trailers"}) {
      EXPECT_EQ(read(with(get, {{std::string(name), std::string(value)}})), Kind::malformed)
          << name;
    }
  }
  EXPECT_EQ(read(with(get, {{"te", "gzip"}})), Kind::malformed);
  EXPECT_EQ(read(with(get, {{"te", "trailers, deflate"}})), Kind::malformed);
  EXPECT_EQ(read(with(get, {{"te", "trailers"}})), Kind::complete);
  EXPECT_EQ(read(with(get, {{"connectiom", "close"}, {"upgrads", "x"}})), Kind::complete);
}

TEST(RequestFieldReader, NoTextOfAFieldBecomesAnotherLine) {
  // Each would be a second request, another target or another host in HTTP/1.1.
  const std::string evil = "/ HTTP/1.1\r\nhost: evil\r\n\r\nGET /";
  EXPECT_EQ(read(replaced(":path", evil)), Kind::malformed);
  EXPECT_EQ(read(replaced(":method", "GET /evil HTTP/1.1\r\nx:")), Kind::malformed);
  EXPECT_EQ(read(replaced(":method", "GET /evil HTTP/1.1")), ParseError::bad_method);
  EXPECT_EQ(read(replaced(":method", "G/T")), ParseError::bad_method);
  EXPECT_EQ(read(replaced(":path", "/a HTTP/1.1")), ParseError::bad_target);
  EXPECT_EQ(read(replaced(":path", "/a b")), ParseError::bad_target);
  EXPECT_EQ(read(replaced(":path", "/a#b")), ParseError::bad_target);
  EXPECT_EQ(read(replaced(":path", "http://evil/")), Kind::malformed);
  EXPECT_EQ(read(replaced(":path", "evil")), Kind::malformed);
  EXPECT_EQ(read(replaced(":authority", "a b")), ParseError::bad_host);
  EXPECT_EQ(read(replaced(":authority", "user@a.test")), ParseError::bad_host);
  EXPECT_EQ(read(replaced(":authority", "a.test, evil")), ParseError::bad_host);
  EXPECT_EQ(read(with(get, {{"a:b", "c"}})), Kind::malformed);
  EXPECT_EQ(read(with(get, {{"a\r\nb", "c"}})), Kind::malformed);
  EXPECT_EQ(read(with(get, {{"content-length", "1"}, {"content-length", "1"}})),
            ParseError::repeated_content_length);
  EXPECT_EQ(read(with(get, {{"content-length", "+1"}})), ParseError::bad_content_length);
}

TEST(RequestFieldReader, RejectsWhatHttp1Rejects) {
  EXPECT_EQ(read(replaced(":scheme", "ftp")), ParseError::bad_target_form);
  EXPECT_EQ(read(replaced(":scheme", "HTTPS")), Kind::complete);
  EXPECT_EQ(read(replaced(":path", "/../x")), ParseError::dot_segment);
  EXPECT_EQ(read(replaced(":path", "/%00")), ParseError::nul_escape);
  EXPECT_EQ(read(replaced(":path", "*")), ParseError::bad_target_form);
  EXPECT_EQ(read(replaced(":path", "*x")), Kind::malformed);
  EXPECT_EQ(read(with(get, {{"expect", "200-ok"}})), ParseError::unknown_expectation);
  Fields options = replaced(":path", "*");
  options.front().value = "OPTIONS";
  EXPECT_EQ(read(options).text, "OPTIONS * HTTP/1.1\r\nhost: a.test\r\n\r\n");
  EXPECT_EQ(read(replaced(":method", "BREW")).text, "BREW /p HTTP/1.1\r\nhost: a.test\r\n\r\n");
}

TEST(RequestFieldReader, JoinsTheCrumbsOfACookie) {
  EXPECT_EQ(read(with(get, {{"cookie", "a=b"}, {"cookie", "c=d"}, {"cookie", "e=f"}})).text,
            "GET /p HTTP/1.1\r\nhost: a.test\r\ncookie: a=b; c=d; e=f\r\n\r\n");
  EXPECT_EQ(read(with(get, {{"cookie", "a=b"}, {"x", "y"}, {"cookie", "c=d"}, {"z", "z"}})).text,
            "GET /p HTTP/1.1\r\nhost: a.test\r\nx: y\r\nz: z\r\ncookie: a=b; c=d\r\n\r\n");
  EXPECT_EQ(read(with(get, {{"cookie", ""}})).text,
            "GET /p HTTP/1.1\r\nhost: a.test\r\ncookie: \r\n\r\n");
  EXPECT_EQ(read(with(get, {{"cookie", "a\nb"}})), Kind::malformed);
}

TEST(RequestFieldReader, CountsEachCrumb) {
  Fields fields = get;
  for (int each = 0; each < 1000; ++each) fields.push_back({"cookie", "a"});
  EXPECT_EQ(read(fields, {.list_bytes_max = 64 * 1024}), Kind::complete);
  EXPECT_EQ(read(fields, {.list_bytes_max = 32 * 1024}), ParseError::headers_too_long);
}

TEST(RequestFieldReader, RejectsListsBeyondTheLimits) {
  RequestFieldLimits limits;
  limits.list_bytes_max = 300;
  limits.head.headers_max = 3;
  limits.head.request_line_max = 100;
  // `get` has 4 x 32 + 44 bytes.
  EXPECT_EQ(read(with(get, {{"x", std::string(95, 'v')}}), limits), Kind::complete);
  EXPECT_EQ(read(with(get, {{"x", std::string(96, 'v')}}), limits), ParseError::headers_too_long);
  EXPECT_EQ(read(with(get, {{"a", ""}, {"b", ""}}), limits), Kind::complete);
  EXPECT_EQ(read(with(get, {{"a", ""}, {"b", ""}, {"c", ""}}), limits),
            ParseError::too_many_headers);
  EXPECT_EQ(read(replaced(":path", "/" + std::string(100, 'p')), limits),
            ParseError::request_line_too_long);
  EXPECT_EQ(read(replaced(":method", std::string(100, 'M')), limits), ParseError::method_too_long);
  EXPECT_EQ(read(with({{":path", std::string(300, 'p')}}, get), limits),
            ParseError::headers_too_long);
}

TEST(RequestFieldReader, HasRoomForEachListWithinItsLimit) {
  // The address sanitizer finds a text that is longer than its memory.
  for (std::uint32_t limit = 150; limit < 900; ++limit) {
    RequestFieldLimits limits{.list_bytes_max = limit, .extended_connect = true};
    RequestFieldReader reader(limits);
    for (const std::size_t crumbs : {0U, 1U, 5U, 20U}) {
      Fields fields{{":method", "CONNECT"},
                    {":protocol", "websocket"},
                    {":scheme", "http"},
                    {":path", "/"},
                    {":authority", "a"}};
      for (std::size_t each = 0; each < crumbs; ++each) fields.push_back({"cookie", ""});
      std::size_t size = 0;
      for (const TextField& each : fields) size += 32 + each.name.size() + each.value.size();
      if (size > limit) continue;
      fields[3].value += std::string(limit - size, 'p');
      ASSERT_EQ(read(reader, literal_block(fields)), Kind::complete) << limit;
    }
  }
}

TEST(RequestFieldReader, ReadsConnect) {
  const Fields connect{{":method", "CONNECT"}, {":authority", "a.test:443"}};
  EXPECT_EQ(read(connect).text, "CONNECT a.test:443 HTTP/1.1\r\nhost: a.test:443\r\n\r\n");
  EXPECT_EQ(read(with(connect, {{":path", "/"}})), Kind::malformed);
  EXPECT_EQ(read(with(connect, {{":scheme", "http"}})), Kind::malformed);
  EXPECT_EQ(read({{":method", "CONNECT"}}), Kind::malformed);
  EXPECT_EQ(read({{":method", "CONNECT"}, {":authority", "a.test"}}),
            ParseError::bad_target_authority);
  EXPECT_EQ(read({{":method", "CONNECT"}, {":authority", "a.test:443 b"}}), ParseError::bad_target);
}

TEST(RequestFieldReader, HasRoomForALongAuthorityOfConnect) {
  const auto connect = [](std::size_t size, const Fields& more) {
    return with({{":method", "CONNECT"}, {":authority", std::string(size, 'a') + ":443"}}, more);
  };
  EXPECT_EQ(read(connect(40'000, {})), ParseError::request_line_too_long);
  const std::string filler(50'000, 'x');
  const std::string crumb(3'000, 'c');
  const ReadRequest full =
      read(connect(8'000, {{"x", filler}, {"cookie", crumb}, {"cookie", crumb}}));
  const std::string authority = std::string(8'000, 'a') + ":443";
  EXPECT_TRUE(full.text == "CONNECT " + authority + " HTTP/1.1\r\nhost: " + authority + "\r\nx: " +
                               filler + "\r\ncookie: " + crumb + "; " + crumb + "\r\n\r\n")
      << full;
}

TEST(RequestFieldReader, ReadsAnExtendedConnectAsAnUpgrade) {
  const Fields connect{{":method", "CONNECT"},   {":protocol", "websocket"},
                       {":scheme", "https"},     {":path", "/chat"},
                       {":authority", "a.test"}, {"sec-websocket-version", "13"}};
  const RequestFieldLimits limits{.extended_connect = true};
  const ReadRequest request = read(connect, limits);
  EXPECT_EQ(request.text,
            "GET /chat HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            "sec-websocket-version: 13\r\n\r\n");
  EXPECT_TRUE(request.result.is_extended_connect);
  EXPECT_TRUE(request.result.is_https);
  EXPECT_EQ(read(connect), Kind::malformed);  // the server has not offered it
  for (const std::string_view protocol : {"connect-udp", "websockets", "web"}) {
    Fields other = connect;
    other[1].value = protocol;
    EXPECT_EQ(read(other, limits).result.error, ParseError::unsupported_protocol) << protocol;
  }
  EXPECT_EQ(read(with({{":protocol", "websocket"}}, get), limits), Kind::malformed);
  for (const std::string_view missing : {":scheme", ":path", ":authority"}) {
    Fields fields;
    for (const TextField& each : connect) {
      if (each.name != missing) fields.push_back(each);
    }
    EXPECT_EQ(read(fields, limits), Kind::malformed) << missing;
  }
  Fields spaced = connect;
  spaced[1].value = "a b";
  EXPECT_EQ(read(spaced, limits), ParseError::bad_header_value);
}

TEST(RequestFieldReader, KeepsTheTableInStepAfterAMalformedField) {
  RequestFieldReader reader;
  HpackTable table;
  RequestHead head;
  const std::string inserted = from_hex("40 01 61 01 62");
  const auto kind = [&](const std::string& block) {
    return reader.read_request(table, to_bytes(block), head).kind;
  };
  EXPECT_EQ(kind(literal_block(with(get, {{"A", "b"}})) + inserted), Kind::malformed);
  EXPECT_EQ(table.count(), 1U);
  EXPECT_EQ(kind(literal_block(replaced(":path", "/a b")) + inserted), Kind::rejected);
  EXPECT_EQ(table.count(), 2U);
  EXPECT_EQ(kind(literal_block(get) + "\xbe\xbf"), Kind::complete);
  EXPECT_EQ(head.header("a"), "b");
  EXPECT_EQ(kind(literal_block(with(get, {{"A", "b"}})) + "\xff"), Kind::invalid_block);
  EXPECT_EQ(kind(literal_block(get) + "\x80"), Kind::invalid_block);
}

TEST(RequestFieldReader, KeepsTheTableInStepWhenItSkipsABlock) {
  RequestFieldReader reader;
  HpackTable table;
  const std::string inserted = from_hex("40 01 61 01 62");
  EXPECT_EQ(reader.skip(table, to_bytes(literal_block(get) + inserted)).kind, Kind::complete);
  EXPECT_EQ(table.count(), 1U);
  EXPECT_EQ(reader.skip(table, to_bytes("\xbe")).kind, Kind::complete);
  EXPECT_EQ(reader.skip(table, to_bytes("")).kind, Kind::complete);
  EXPECT_EQ(reader.skip(table, to_bytes("\xbf")).kind, Kind::invalid_block);
}

TEST(RequestFieldReader, AllocatesNothingForALaterRequest) {
  RequestFieldReader reader;
  HpackTable table;
  RequestHead head;
  const std::string inserted = literal_block(get) + from_hex("40 01 61 01 62");
  ASSERT_EQ(reader.read_request(table, to_bytes(inserted), head).kind, Kind::complete);
  const std::string later = literal_block(with(get, {{"cookie", "a=b"}})) + "\xbe";
  const std::uint64_t news = TestHeap::news;
  const std::uint32_t memory = table.memory();
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(reader.read_request(table, to_bytes(later), head).kind, Kind::complete);
  }
  EXPECT_EQ(TestHeap::news, news);
  EXPECT_EQ(table.memory(), memory);
}

TEST(RequestFieldReader, TellsItsMemory) {
  EXPECT_LE(RequestFieldReader::memory({}), (3U * 64 + 8) * 1024 + 128);
  EXPECT_EQ(RequestFieldReader::memory({.list_bytes_max = 0xffff'ffff}),
            RequestFieldReader::memory({.list_bytes_max = 16 * 1024 * 1024}));
}

FieldsResult read_trailers(const Fields& fields, Headers& trailers,
                           const RequestFieldLimits& limits = {}) {
  RequestFieldReader reader(limits);
  HpackTable table;
  return reader.read_trailers(table, to_bytes(literal_block(fields)), trailers);
}

TEST(RequestFieldReader, KeepsOnlyTheMethodOfARejectedHead) {
  RequestFieldReader reader({.list_bytes_max = 400});
  HpackTable table;
  RequestHead head;
  const auto read_into_head = [&](const Fields& fields) {
    return reader.read_request(table, to_bytes(literal_block(fields)), head).kind;
  };
  const auto with_method = [](Fields fields, std::string_view method) {
    fields[0].value = method;
    return fields;
  };
  const Fields bad_target = replaced(":path", "/a b");
  const Fields too_long = with(get, {{"x", std::string(400, 'x')}});
  const Fields bad_length = with(get, {{"content-length", "x"}});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(read_into_head(with(get, {{"content-length", "5"}})), Kind::complete);
    for (const Fields& fields : {bad_target, too_long, bad_length}) {
      EXPECT_EQ(read_into_head(with_method(fields, "HEAD")), Kind::rejected);
      EXPECT_EQ(head.method(), Method::head);
      EXPECT_EQ(head.path(), "");
      EXPECT_EQ(head.header_count(), 0u);
      EXPECT_FALSE(head.has_content_length());
    }
    EXPECT_EQ(read_into_head(bad_target), Kind::rejected);
    EXPECT_EQ(head.method(), Method::get);
    EXPECT_EQ(read_into_head(with_method(bad_target, "HE AD")), Kind::rejected);
    EXPECT_EQ(head.method(), Method::other);
  }
}

TEST(RequestFieldReader, ReadsTrailers) {
  Headers trailers;
  EXPECT_EQ(read_trailers({{"grpc-status", "0"}, {"x", ""}}, trailers).kind, Kind::complete);
  EXPECT_EQ(trailers.lines(), "grpc-status: 0\r\nx: \r\n");
  EXPECT_EQ(read_trailers({}, trailers).kind, Kind::complete);
}

TEST(RequestFieldReader, RejectsInvalidTrailers) {
  const auto result = [](const Fields& fields, const RequestFieldLimits& limits = {}) {
    Headers trailers;
    return ReadRequest{read_trailers(fields, trailers, limits), ""};
  };
  for (const Fields& fields : std::vector<Fields>{{{":path", "/"}},
                                                  {{":status", "200"}},
                                                  {{"A", "b"}},
                                                  {{"a", "b\r\n"}},
                                                  {{"a", " b"}},
                                                  {{"connection", "close"}},
                                                  {{"te", "gzip"}}}) {
    EXPECT_EQ(result(fields), Kind::malformed) << fields[0];
  }
  for (const std::string_view name : {"content-length", "host", "te", "trailer", "expect"}) {
    EXPECT_EQ(result({{std::string(name), "trailers"}}), ParseError::forbidden_trailer) << name;
  }
  EXPECT_EQ(result({{"a", "b\x01"}}), ParseError::bad_header_value);
  RequestFieldLimits limits{.list_bytes_max = 102};
  EXPECT_EQ(result({{"a", "b"}, {"a", "b"}, {"a", "b"}}, limits), Kind::complete);
  EXPECT_EQ(result({{"a", "b"}, {"a", "b"}, {"a", "bc"}}, limits), ParseError::trailers_too_long);
  limits.chunks.trailers_max = 2;
  EXPECT_EQ(result({{"a", "b"}, {"a", "b"}}, limits), Kind::complete);
  EXPECT_EQ(result({{"a", "b"}, {"a", "b"}, {"a", "b"}}, limits), ParseError::too_many_trailers);
  limits.chunks.trailers_bytes_max = 8;  // "a: b" twice
  EXPECT_EQ(result({{"a", "b"}, {"a", "b"}}, limits), Kind::complete);
  EXPECT_EQ(result({{"a", "b"}, {"a", "bc"}}, limits), ParseError::trailers_too_long);
}

}  // namespace
}  // namespace weir::http::request_fields_test

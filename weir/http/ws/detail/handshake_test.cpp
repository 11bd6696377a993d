// Tests of the opening handshake of WebSocket.
#include "weir/http/ws/detail/handshake.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h1/parser.hpp"

namespace weir::http::handshake_test {
namespace {

constexpr std::string_view rfc_key = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view rfc_accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
using Texts = std::vector<std::string_view>;

template <std::size_t N>
std::string text_of(const std::array<char, N>& characters) {
  return {characters.data(), N};
}

/// A request of the RFC, with other lines.
struct WsRequest {
  std::string line = "GET /chat HTTP/1.1";
  std::string host = "server.example.com";
  std::string upgrade = "Upgrade: websocket\r\n";
  std::string connection = "Connection: Upgrade\r\n";
  std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  std::string version = "Sec-WebSocket-Version: 13\r\n";
  std::string more = {};
};

/// A head with its text.
template <class Head>
struct Parsed {
  explicit Parsed(std::string text) : bytes(std::make_unique<std::string>(std::move(text))) {
    HeadParser parser;
    EXPECT_EQ(parser.parse(*bytes, head).kind, ParseResult::Kind::complete) << *bytes;
  }
  std::unique_ptr<std::string> bytes;
  Head head;
};

Parsed<RequestHead> parse(const WsRequest& request) {
  return Parsed<RequestHead>(request.line + "\r\nHost: " + request.host + "\r\n" + request.upgrade +
                             request.connection + request.key + request.version + request.more +
                             "\r\n");
}

WsVerdict verdict_of(const WsRequest& request, const WebSocketOptions& options = {},
                     Version version = Version::http_1_1, bool secure = false) {
  return check_websocket_request(parse(request).head, version, options, secure).verdict;
}

TEST(WsHandshake, APageWithoutTlsIsForeignToARequestOverTls) {
  for (const bool secure : {false, true}) {
    const auto verdict = [secure](const std::string& origin) {
      return verdict_of({.host = "a.test", .more = "Origin: " + origin + "\r\n"}, {},
                        Version::http_1_1, secure);
    };
    EXPECT_EQ(verdict("https://a.test"), WsVerdict::accepted);
    EXPECT_EQ(verdict("http://a.test"), secure ? WsVerdict::wrong_origin : WsVerdict::accepted);
  }
}

TEST(WsHandshake, ComputesTheAcceptOfTheRfc) {
  EXPECT_EQ(text_of(websocket_accept(rfc_key)), rfc_accept);
  EXPECT_EQ(text_of(websocket_accept("x3JJHMbDL1EzLkh9GBhXDw==")), "HSmrc0sMlYUkAGmm5OPpG2HaGWk=");
}

TEST(WsHandshake, MakesAKeyOf16Bytes) {
  const std::string_view nonce = "the sample nonce";
  const WsKey key = websocket_key(to_bytes(nonce).first<16>());
  EXPECT_EQ(text_of(key), rfc_key);
  EXPECT_TRUE(is_websocket_key(text_of(key)));
}

TEST(WsHandshake, KnowsKeysOf16Bytes) {
  EXPECT_TRUE(is_websocket_key("AAAAAAAAAAAAAAAAAAAAAA=="));
  EXPECT_TRUE(is_websocket_key("++++//////zzzzZZZZ0099=="));
  for (const std::string_view bad :
       {"", "==", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ",
        "dGhlIHNhbXBsZSBub25jZQ===", "dGhlIHNhbXBsZSBub25jZWE=", "dGhlIHNhbXBsZSBub25jZWFh",
        "dGhlIHNhbXBsZSBub25jZ-==", "dGhlIHNhbXBsZSBub25jZ =="}) {
    EXPECT_FALSE(is_websocket_key(bad)) << bad;
  }
}

TEST(WsHandshake, AcceptsTheRequestOfTheRfc) {
  const auto request = parse({});
  const WsUpgrade upgrade = check_websocket_request(request.head, Version::http_1_1, {}, false);
  EXPECT_EQ(upgrade.verdict, WsVerdict::accepted);
  EXPECT_EQ(upgrade.key, rfc_key);
  EXPECT_EQ(upgrade.subprotocol, nullptr);
  const Response response =
      websocket_acceptance(request.head, upgrade, {}, std::make_shared<WebSocketOptions>());
  EXPECT_EQ(response.status(), Status::switching_protocols);
  EXPECT_EQ(response.headers().lines(),
            "Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n");
  EXPECT_TRUE(response.body().is_upgrade());
}

TEST(WsHandshake, ChecksEachHeader) {
  struct Case {
    WsRequest request;
    WsVerdict verdict;
  };
  constexpr auto accepted = WsVerdict::accepted;
  constexpr auto no_upgrade = WsVerdict::not_an_upgrade;
  constexpr auto wrong = WsVerdict::wrong_headers;
  constexpr auto version = WsVerdict::unsupported_version;
  const std::string key = WsRequest().key;
  for (const Case& each : std::vector<Case>{
           {{.upgrade = "upgrade: WebSocket\r\n"}, accepted},
           {{.upgrade = "Upgrade: h2c, websocket\r\n"}, accepted},
           {{.upgrade = "Upgrade: h2c\r\nUpgrade: websocket\r\n"}, accepted},
           {{.connection = "Connection: keep-alive, Upgrade\r\n"}, accepted},
           {{.connection = "connection: keep-alive\r\nConnection: upgrade\r\n"}, accepted},
           {{.line = "GET http://server.example.com/chat HTTP/1.1"}, accepted},
           {{.more = "Content-Length: 0\r\n"}, accepted},
           {{.line = "POST /chat HTTP/1.1"}, WsVerdict::wrong_method},
           {{.line = "HEAD /chat HTTP/1.1"}, no_upgrade},
           {{.line = "GET /chat HTTP/1.0"}, no_upgrade},
           {{.upgrade = ""}, no_upgrade},
           {{.upgrade = "Upgrade: h2c\r\n"}, no_upgrade},
           {{.upgrade = "Upgrade: websocket2\r\n"}, no_upgrade},
           {{.connection = ""}, no_upgrade},
           {{.connection = "Connection: keep-alive\r\n"}, no_upgrade},
           {{.connection = "Connection: upgraded\r\n"}, no_upgrade},
           {{.version = ""}, wrong},
           {{.version = "Sec-WebSocket-Version: 12\r\n"}, version},
           {{.version = "Sec-WebSocket-Version: 013\r\n"}, version},
           {{.version = "Sec-WebSocket-Version: 8, 13\r\n"}, version},
           {{.version = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Version: 13\r\n"}, version},
           {{.key = ""}, wrong},
           {{.key = key + key}, wrong},
           {{.key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n"}, wrong},
           {{.more = "Content-Length: 5\r\n"}, wrong},
           {{.more = "Transfer-Encoding: chunked\r\n"}, wrong},
           {{.more = "Origin: http://server.example.com\r\nOrigin: http://b\r\n"}, wrong},
           {{.more = "Sec-WebSocket-Protocol: a b\r\n"}, wrong},
       }) {
    EXPECT_EQ(verdict_of(each.request), each.verdict)
        << each.request.line << each.request.upgrade << each.request.connection << each.request.key
        << each.request.version << each.request.more;
  }
}

TEST(WsHandshake, NeedsNoKeyOverHttp2) {
  EXPECT_EQ(verdict_of({.key = ""}, {}, Version::http_2), WsVerdict::accepted);
  EXPECT_EQ(verdict_of({.key = "", .version = ""}, {}, Version::http_2), WsVerdict::wrong_headers);
  EXPECT_EQ(verdict_of({.upgrade = "", .key = ""}, {}, Version::http_2), WsVerdict::not_an_upgrade);
}

TEST(WsHandshake, ChoosesTheFirstSubprotocolOfTheClientThatItKnows) {
  const WebSocketOptions options{.subprotocols = {"chat", "graphql", "v2"}};
  const auto chosen = [&options](const std::string& lines) {
    const auto request = parse({.more = lines});
    const WsUpgrade upgrade =
        check_websocket_request(request.head, Version::http_1_1, options, false);
    EXPECT_EQ(upgrade.verdict, WsVerdict::accepted);
    return upgrade.subprotocol == nullptr ? std::string() : *upgrade.subprotocol;
  };
  EXPECT_EQ(chosen(""), "");
  EXPECT_EQ(chosen("Sec-WebSocket-Protocol: chat\r\n"), "chat");
  EXPECT_EQ(chosen("Sec-WebSocket-Protocol: soap, v2,chat\r\n"), "v2");
  EXPECT_EQ(chosen("Sec-WebSocket-Protocol: soap\r\nsec-websocket-protocol: graphql\r\n"),
            "graphql");
  EXPECT_EQ(chosen("Sec-WebSocket-Protocol: Chat\r\n"), "") << "names have a case";
  EXPECT_EQ(chosen("Sec-WebSocket-Protocol: soap, , \r\n"), "");

  const WsUpgrade upgrade{WsVerdict::accepted, {}, &options.subprotocols[0]};
  const Response response =
      websocket_acceptance(parse({}).head, upgrade, {}, std::make_shared<WebSocketOptions>());
  EXPECT_EQ(response.status(), Status::ok) << "over HTTP/2, since there is no key";
  EXPECT_EQ(response.headers().lines(), "Sec-WebSocket-Protocol: chat\r\n");
}

TEST(WsHandshake, AllowsPagesOfTheSameHost) {
  struct Case {
    std::string host;
    std::string origin;
    bool allowed;
  };
  for (const Case& each : {
           Case{"a.test", "http://a.test", true},
           Case{"a.test", "https://a.test", true},
           Case{"A.test", "http://a.TEST", true},
           Case{"a.test:80", "http://a.test", true},
           Case{"a.test:443", "https://a.test", true},
           Case{"a.test:8080", "http://a.test:8080", true},
           Case{"[::1]:8080", "http://[::1]:8080", true},
           Case{"a.test:8080", "http://a.test", false},
           Case{"a.test", "http://a.test:8080", false},
           Case{"a.test:80", "https://a.test", false},
           Case{"a.test", "http://b.test", false},
           Case{"a.test", "http://a.test.evil", false},
           Case{"a.test", "http://evil-a.test", false},
           Case{"a.test", "http://a.test@evil", false},
           Case{"a.test", "http://a.test/", false},
           Case{"a.test", "null", false},
           Case{"a.test", "", false},
           Case{"a.test", "a.test", false},
           Case{"a.test", "ftp://a.test", false},
           Case{"a.test", "chrome-extension://a.test", false},
       }) {
    EXPECT_EQ(verdict_of({.host = each.host, .more = "Origin: " + each.origin + "\r\n"}),
              each.allowed ? WsVerdict::accepted : WsVerdict::wrong_origin)
        << each.host << " " << each.origin;
  }
}

TEST(WsHandshake, AllowsPagesOfTheList) {
  const std::vector<std::string> list{"https://app.test", "null"};
  const auto verdict = [](const std::string& origin, const std::vector<std::string>& origins) {
    return verdict_of({.more = "Origin: " + origin + "\r\n"}, {.origins = origins});
  };
  EXPECT_EQ(verdict("https://app.test", list), WsVerdict::accepted);
  EXPECT_EQ(verdict("https://APP.test", list), WsVerdict::accepted);
  EXPECT_EQ(verdict("null", list), WsVerdict::accepted);
  EXPECT_EQ(verdict("http://app.test", list), WsVerdict::wrong_origin);
  EXPECT_EQ(verdict("https://app.test:444", list), WsVerdict::wrong_origin);
  EXPECT_EQ(verdict("https://app.test.evil", list), WsVerdict::wrong_origin);
  EXPECT_EQ(verdict("https://any.test", std::vector<std::string>{"*"}), WsVerdict::accepted);
  EXPECT_EQ(verdict("http://server.example.com", list), WsVerdict::accepted);
}

TEST(WsHandshake, RejectsWithAStatusAndHeaders) {
  struct Case {
    WsVerdict verdict;
    Version version;
    Status status;
    std::string headers;
  };
  constexpr auto h1 = Version::http_1_1;
  constexpr auto h2 = Version::http_2;
  for (const Case& each : {
           Case{WsVerdict::not_an_upgrade, h1, Status::upgrade_required,
                "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"},
           Case{WsVerdict::unsupported_version, h1, Status::upgrade_required,
                "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"},
           Case{WsVerdict::not_an_upgrade, h2, Status::bad_request,
                "Sec-WebSocket-Version: 13\r\n"},
           Case{WsVerdict::unsupported_version, h2, Status::bad_request,
                "Sec-WebSocket-Version: 13\r\n"},
           Case{WsVerdict::wrong_method, h1, Status::method_not_allowed, "Allow: GET, HEAD\r\n"},
           Case{WsVerdict::wrong_headers, h1, Status::bad_request, ""},
           Case{WsVerdict::wrong_origin, h1, Status::forbidden, ""},
       }) {
    const Response response = websocket_rejection(each.verdict, each.version);
    EXPECT_EQ(response.status(), each.status);
    EXPECT_EQ(response.headers().lines(), each.headers);
    EXPECT_EQ(response.invalid_header(), "");
    EXPECT_FALSE(response.problem().detail.empty());
  }
}

TEST(WsHandshake, ChecksTheResponseOfAServer) {
  const Texts offered{"chat", "v2"};
  const std::string start = "HTTP/1.1 101 Switching Protocols\r\n";
  const std::string upgrade = "Upgrade: WebSocket\r\nConnection: upgrade\r\n";
  const std::string accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
  const auto check = [&offered](const std::string& text) -> std::string {
    const Parsed<ReceivedResponseHead> response(text + "\r\n");
    const auto choice = check_websocket_response(response.head, rfc_key, offered, nullptr);
    return choice ? "yes " + std::string(choice->subprotocol) : "no";
  };
  EXPECT_EQ(check(start + upgrade + accept), "yes ");
  EXPECT_EQ(check(start + upgrade + accept + "Sec-WebSocket-Protocol: v2\r\n"), "yes v2");
  for (const std::string& bad : {
           "HTTP/1.1 200 OK\r\n" + upgrade + accept,
           start + accept,
           start + "Upgrade: websocket\r\n" + accept,
           start + "Connection: upgrade\r\n" + accept,
           start + "Upgrade: h2c\r\nConnection: upgrade\r\n" + accept,
           start + upgrade,
           start + "Upgrade: h2c\r\n" + upgrade + accept,
           start + upgrade + accept + accept,
           start + upgrade + "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
           start + upgrade + accept + "Sec-WebSocket-Protocol: soap\r\n",
           start + upgrade + accept + "Sec-WebSocket-Protocol: chat, v2\r\n",
           start + upgrade + accept +
               "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: v2\r\n",
           start + upgrade + accept + "Sec-WebSocket-Extensions: permessage-deflate\r\n",
       }) {
    EXPECT_EQ(check(bad), "no") << bad;
  }
}

TEST(WsHandshake, ChecksTheResponseOfAServerOfHttp2) {
  const Texts offered{"chat", "v2"};
  const auto check = [&offered](const std::string& text) -> std::string {
    const Parsed<ReceivedResponseHead> response("HTTP/1.1 " + text + "\r\n");
    const auto choice = check_websocket_response(response.head, {}, offered, nullptr);
    return choice ? "yes " + std::string(choice->subprotocol) : "no";
  };
  EXPECT_EQ(check("200 OK\r\n"), "yes ");
  EXPECT_EQ(check("299 Fine\r\nSec-WebSocket-Protocol: v2\r\n"), "yes v2");
  EXPECT_EQ(check("200 OK\r\nSec-WebSocket-Protocol: soap\r\n"), "no");
  EXPECT_EQ(check("200 OK\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"), "no");
  EXPECT_EQ(check("101 Switching Protocols\r\n"), "no");
  EXPECT_EQ(check("300 Multiple Choices\r\n"), "no");
}

}  // namespace
}  // namespace weir::http::handshake_test

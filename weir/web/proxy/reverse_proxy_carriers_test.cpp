// Tests of what a reverse proxy passes on, with the carrier of each side as parameter: bodies,
// trailers and methods from clients over HTTP/1.1 and HTTP/2 to upstreams over both.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/compression/test/contents_fixture.hpp"
#include "weir/http/client/client.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/web/encoding/decompress_requests.hpp"
#include "weir/web/test/proxy_fixture.hpp"

namespace weir::http::reverse_proxy_carriers_test {
namespace {

using compression::Coding;
using compression::compressed;
using compression::words;

struct Carriers {
  Version client;
  Version upstream;
};

/// Describes a request: its method, its body, and the headers and trailers that may differ.
Task<Response> describe(Request& request) {
  constexpr std::array<std::string_view, 3> lengths{"none", "known", "unknown"};
  const auto kind = static_cast<std::size_t>(request.body_length().kind());
  std::string out(request.method_text());
  out.append(" ").append(lengths[kind]);
  const auto body = co_await request.body();
  if (!body) co_return Response(to_status(body.error()));
  out.append(" [").append(*body).append("]\n");
  for (const std::string_view name : {"content-encoding", "content-digest", "te"}) {
    if (const auto value = request.header(name))
      out.append(name).append(": ").append(*value) += "\n";
  }
  for (const HeaderField each : request.trailers()) {
    out.append("trailer ").append(each.name).append(": ").append(each.value).append("\n");
  }
  co_return text(std::move(out));
}

Task<Result<>> write_data(BodySink& sink) {
  return sink.write("data");
}

class ProxyCarriersTest : public ProxyFixture, public testing::WithParamInterface<Carriers> {
 protected:
  ProxyCarriersTest() { inner_.fallback(describe); }

  static bool client_uses_http2() { return GetParam().client == Version::http_2; }
  static bool upstream_uses_http2() { return GetParam().upstream == Version::http_2; }

  /// Runs `use` with a client of the proxy that uses the version of the parameter.
  template <class Use>
  void with_carriers(const Use& use) {
    if (client_uses_http2()) plain_http2_ = PlainHttp2::prior_knowledge;
    ReverseProxyOptions options;
    options.client.plain_http2 = upstream_uses_http2();
    const auto use_own_client = [&use](Client&) -> Task<> {
      ClientOptions own;
      own.plain_http2 = client_uses_http2();
      Client client(std::move(own));
      co_await use(client);
    };
    with_inner_server(inner_, options, use_own_client,
                      upstream_uses_http2() ? PlainHttp2::only : PlainHttp2::off);
  }
  static Task<std::string> answer_to(Client& client, std::string_view method, http::Body body) {
    ClientRequest request(method, "http://127.0.0.1/any");
    request.set_body("text/plain", std::move(body));
    return outcome_of(client, std::move(request));
  }

  Router inner_;
};

TEST_P(ProxyCarriersTest, BodyArrivesWhateverTheMethodIs) {
  with_carriers([](Client& client) -> Task<> {
    for (const std::string_view method :
         {"DELETE", "GET", "OPTIONS", "POST", "QUERY", "PROPFIND"}) {
      http::Body streamed{StreamFunction(write_data)};
      const std::string unknown = co_await answer_to(client, method, std::move(streamed));
      EXPECT_EQ(unknown, std::string(method) + " unknown [data]\n");
      const std::string known = co_await answer_to(client, method, http::Body(Literal("text")));
      EXPECT_EQ(known, std::string(method) + " known [text]\n");
    }
  });
}

TEST_P(ProxyCarriersTest, RequestWithoutABodyStaysWithoutOne) {
  with_carriers([](Client& client) -> Task<> {
    for (const std::string_view method :
         {"DELETE", "GET", "OPTIONS", "POST", "QUERY", "PROPFIND"}) {
      const std::string none = co_await answer_to(client, method, http::Body());
      EXPECT_EQ(none, std::string(method) + " none []\n");
    }
  });
}

TEST_P(ProxyCarriersTest, DecodedBodyHasNoHeadersOfItsCoding) {
  routes_.use(decompress_requests());
  with_carriers([](Client& client) -> Task<> {
    const std::string data = compressed(Coding::gzip, words(50'000));
    const std::string plain = "POST unknown [" + words(50'000) + "]\n";
    for (const bool known : {true, false}) {
      ClientRequest request(Method::post, "http://127.0.0.1/any");
      request.add_header("Content-Encoding", "gzip");
      request.add_header("Content-Digest", "sha-256=:AA==:");
      http::Body body(data);
      if (!known) {
        body = http::Body(StreamFunction([&data](BodySink& sink) { return sink.write(data); }));
      }
      request.set_body("text/plain", std::move(body));
      const std::string answer = co_await outcome_of(client, std::move(request));
      EXPECT_TRUE(answer == plain) << known << answer.substr(0, 100);
    }
    // Without a body there is nothing to decode, and nothing that the header is wrong about.
    ClientRequest empty(Method::get, "http://127.0.0.1/any");
    empty.add_header("Content-Encoding", "gzip");
    const std::string answer = co_await outcome_of(client, std::move(empty));
    EXPECT_EQ(answer, "GET none []\ncontent-encoding: gzip\n");
  });
}

TEST_P(ProxyCarriersTest, CodedBodyKeepsTheHeadersOfItsCoding) {
  with_carriers([](Client& client) -> Task<> {
    ClientRequest request(Method::post, "http://127.0.0.1/any");
    request.add_header("Content-Encoding", "gzip");
    request.set_body("text/plain", http::Body(Literal("coded")));
    const std::string answer = co_await outcome_of(client, std::move(request));
    EXPECT_EQ(answer, "POST known [coded]\ncontent-encoding: gzip\n");
  });
}

/// Fields that a client must not send to an upstream behind its body.
constexpr std::array<HeaderField, 14> smuggled{{{"x-forwarded-for", "1.2.3.4"},
                                                {"x-forwarded-host", "evil.test"},
                                                {"x-forwarded-proto", "https"},
                                                {"x-real-ip", "1.2.3.4"},
                                                {"forwarded", "for=1.2.3.4"},
                                                {"via", "1.1 evil"},
                                                {"proxy", "http://evil.test"},
                                                {"authorization", "secret"},
                                                {"proxy-authorization", "secret"},
                                                {"cookie", "secret"},
                                                {"content-type", "text/evil"},
                                                {"max-forwards", "9"},
                                                {"if-match", "evil"},
                                                {"x_forwarded_for", "1.2.3.4"}}};

/// Returns a POST with these trailers and X-Sum.
std::string post_with_trailers(Version version) {
  if (version == Version::http_2) {
    std::string block;
    for (const HeaderField& each : smuggled) block += frames::block({each});
    block += frames::block({{"x-sum", "7"}});
    return frames::preface() + frames::post(1, "/any") + frames::data(1, "abc") +
           frames::headers(1, block);
  }
  std::string text =
      "POST /any HTTP/1.1\r\nHost: a\r\nConnection: X-Named\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\nX-Named: secret\r\n";
  for (const HeaderField& each : smuggled) {
    text.append(each.name).append(": ").append(each.value).append("\r\n");
  }
  return text.append("X-Sum: 7\r\n\r\n");
}

TEST_P(ProxyCarriersTest, TrailersOfRequestsObeyTheRulesOfHeaders) {
  with_carriers([this](Client&) -> Task<> {
    MemoryPeer& peer = connect();
    EXPECT_GT(peer.send(post_with_trailers(GetParam().client)), 0U);
    std::ignore = co_await sleep(std::chrono::milliseconds(10));
    const std::string received = peer.received();
    EXPECT_TRUE(received.contains("POST unknown [abc]\n")) << received;
    const std::size_t first = received.find("trailer ");
    EXPECT_NE(first, received.npos);
    EXPECT_EQ(first, received.rfind("trailer ")) << received;
    std::string name = received.substr(std::min(first, received.size()), 17);
    std::ranges::transform(name, name.begin(), [](char each) { return to_lower(each); });
    EXPECT_EQ(name, "trailer x-sum: 7\n");
    peer.close();
  });
}

TEST_P(ProxyCarriersTest, TheWishForTrailersIsPassedOn) {
  with_carriers([](Client& client) -> Task<> {
    ClientRequest request(Method::post, "http://127.0.0.1/any");
    request.add_header("TE", client_uses_http2() ? "trailers" : "gzip, trailers");
    const std::string answer = co_await outcome_of(client, std::move(request));
    EXPECT_EQ(answer.substr(0, 13), "POST none []\n");
    std::string rest = answer.substr(13);
    std::ranges::transform(rest, rest.begin(), [](char each) { return to_lower(each); });
    EXPECT_NE(rest.find("te: trailers\n"), rest.npos) << answer;
    EXPECT_EQ(rest.find("gzip"), rest.npos) << answer;
    ClientRequest without(Method::post, "http://127.0.0.1/any");
    const std::string other = co_await outcome_of(client, std::move(without));
    EXPECT_EQ(other, "POST none []\n");
  });
}

Task<Result<>> write_with_status(BodySink& sink) {
  const Result<> sent = co_await sink.write("data");
  if (!sent) co_return sent;
  co_return sink.add_trailer("Grpc-Status", "0");
}

TEST_P(ProxyCarriersTest, TrailersBehindAKnownLengthArePassedOn) {
  inner_.get("/sized", [] {
    Response out(Status::ok);
    out.body() = http::Body(StreamFunction(write_with_status), 4);
    return out;
  });
  with_carriers([](Client& client) -> Task<> {
    auto response = co_await client.get("http://127.0.0.1/sized");
    EXPECT_TRUE(response);
    if (!response) co_return;
    const auto body = co_await response->body();
    EXPECT_EQ(body.value_or(""), "data");
    // HTTP/1.1 has no trailers behind a length, so such an upstream sends none.
    const auto expected =
        upstream_uses_http2() ? std::optional<std::string_view>("0") : std::nullopt;
    EXPECT_EQ(response->trailers().get("grpc-status"), expected);
  });
}

std::string name_of(const testing::TestParamInfo<Carriers>& info) {
  const auto text = [](Version version) { return version == Version::http_2 ? "Http2" : "Http1"; };
  return std::string(text(info.param.client)) + "To" + text(info.param.upstream);
}

INSTANTIATE_TEST_SUITE_P(All, ProxyCarriersTest,
                         testing::Values(Carriers{Version::http_1_1, Version::http_1_1},
                                         Carriers{Version::http_1_1, Version::http_2},
                                         Carriers{Version::http_2, Version::http_1_1},
                                         Carriers{Version::http_2, Version::http_2}),
                         name_of);

}  // namespace
}  // namespace weir::http::reverse_proxy_carriers_test

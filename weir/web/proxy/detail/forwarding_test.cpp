#include "weir/web/proxy/detail/forwarding.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/http/test/http_request.hpp"
#include "weir/web/middleware/trusted_proxies.hpp"

namespace weir::http::forwarding_test {
namespace {

TEST(ForwardingTest, ClientTextHasNoPort) {
  EXPECT_EQ(client_text(os::Address::loopback(80)), "127.0.0.1");
  EXPECT_EQ(client_text(os::Address::ipv4({255, 0, 10, 255}, 65535)), "255.0.10.255");
  EXPECT_EQ(client_text(*os::Address::parse("[::ffff:192.0.2.1]:80")), "192.0.2.1");
  EXPECT_EQ(client_text(*os::Address::parse("[2001:db8::1]:80")), "2001:db8::1");
  EXPECT_EQ(client_text(*os::Address::local("@name:1")), "unknown");
  EXPECT_EQ(client_text({}), "unknown");
}

TEST(ForwardingTest, HopsOfAllViaHeadersCount) {
  const auto hops = [](std::string_view lines) {
    return count_hops(TextRequest("GET /", {}, lines).head());
  };
  EXPECT_EQ(hops(""), 0U);
  EXPECT_EQ(hops("Via: 1.1 a, 1.0 b\r\nVIA: 1.1 c ,,\r\nVia-x: 1.1 d\r\n"), 3U);
}

/// Returns the URL at an upstream, or the message of the error.
std::string url_at(std::string_view base, std::string_view target, std::string prefix = {}) {
  ReverseProxyOptions options;
  options.strip_prefix = std::move(prefix);
  TextRequest request("GET " + std::string(target));
  const auto url = upstream_url(*Url::parse(base), request.request(), options);
  return url ? std::string(url->text()) : url.error().message();
}

TEST(ForwardingTest, UrlHasThePathOfTheUpstreamAndTheRequest) {
  EXPECT_EQ(url_at("http://a", "/"), "http://a/");
  EXPECT_EQ(url_at("https://a:8/v1/", "/x%2Fy?q=/&"), "https://a:8/v1/x%2Fy?q=/&");
  EXPECT_EQ(url_at("http://a/v1", "/api", "/api"), "http://a/v1/");
  EXPECT_EQ(url_at("http://a", "/api//x?", "/api"), "http://a//x?");
  EXPECT_EQ(url_at("http://a", "http://other.test/x"), "http://a/x");
  EXPECT_EQ(url_at("http://a", "/apix", "/api"), make_error_code(Errc::not_found).message());
  EXPECT_EQ(url_at("http://a", "/%61p%69/%61", "/api"), "http://a/%61");
  EXPECT_EQ(url_at("http://a", "/a%2Fb/c", "/a/b"), make_error_code(Errc::not_found).message());
  EXPECT_EQ(url_at("http://a", "/ap", "/api"), make_error_code(Errc::not_found).message());
}

/// Returns the Location that a client gets for this one of an upstream.
std::string location_for(std::string_view location, std::string_view base = "http://10.0.0.1:81",
                         ReverseProxyOptions options = {.strip_prefix = "/api"}) {
  Response out(Status::found);
  out.set_header("Location", location);
  rewrite_locations(*Url::parse(base), options, out);
  return std::string(out.headers().get("Location").value_or(""));
}

TEST(ForwardingTest, LocationsLeadThroughTheProxy) {
  EXPECT_EQ(location_for("http://10.0.0.1:81/x/?a=1#b"), "/api/x/?a=1#b");
  EXPECT_EQ(location_for("HTTP://10.0.0.1:81"), "/api/");
  EXPECT_EQ(location_for("http://10.0.0.1:81?q"), "/api/?q");
  EXPECT_EQ(location_for("/login?next=/x"), "/api/login?next=/x");
  EXPECT_EQ(location_for("http://a/v1/x", "http://a:80/v1/"), "/api/x");
  EXPECT_EQ(location_for("/v1", "http://a/v1/"), "/api/");
  EXPECT_EQ(location_for("http://a/x", "http://a", {}), "/x");
  EXPECT_EQ(location_for("http://10.0.0.1:81/caf\xc3\xa9 1?\xc3\xa9"),
            "/api/caf\xc3\xa9 1?\xc3\xa9");
  EXPECT_EQ(location_for("http://10.0.0.1:81/100%"), "/api/100%");
  Response created(Status::created);
  created.set_header("Content-Location", "/7");
  rewrite_locations(*Url::parse("http://a"), {.strip_prefix = "/api"}, created);
  EXPECT_EQ(created.headers().get("Content-Location"), "/api/7");
}

TEST(ForwardingTest, OtherLocationsStay) {
  for (const char* location :
       {"http://other.test/x", "https://10.0.0.1:81/x", "http://10.0.0.1:82/x", "//10.0.0.1:81/x",
        "x", "./x", "?q", "#f", "", "/api/x", "/%61pi", "mailto:a", "http://10.0.0.1:81@evil/x"}) {
    EXPECT_EQ(location_for(location), location);
  }
  EXPECT_EQ(location_for("/other/x", "http://a/v1"), "/other/x") << "not below the upstream's path";
  EXPECT_EQ(location_for("http://a//evil.test/", "http://a", {}), "http://a//evil.test/")
      << "its path alone would name another host";
  EXPECT_EQ(location_for("http://a/x", "http://a", {.rewrite_locations = false}), "http://a/x");
}

TEST(ForwardingTest, UpstreamKnowsTheClientOfATrustedProxy) {
  const auto sent = [](ForwardedHeaders how, bool found) {
    TextRequest request("GET /", {}, "X-Forwarded-For: 9.9.9.9\r\n");
    if (found) {
      request.request().set(ClientAddress{os::Address::ipv4({192, 0, 2, 7}, 1), true, "shop.test"});
    }
    ReverseProxyOptions options{.forwarded = how, .rfc7239 = true, .via = ""};
    ClientRequest out(Method::get, "http://a");
    EXPECT_TRUE(forward_request_headers(request.request(), options, out));
    return std::string(out.headers().lines());
  };
  EXPECT_EQ(sent(ForwardedHeaders::replace, true),
            "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n"
            "X-Forwarded-Host: shop.test\r\n"
            "Forwarded: for=192.0.2.7;host=\"shop.test\";proto=https\r\n");
  EXPECT_FALSE(sent(ForwardedHeaders::replace, false).contains("9.9.9.9"));
  const std::string appended = sent(ForwardedHeaders::append, true);
  EXPECT_TRUE(appended.starts_with("X-Forwarded-For: 9.9.9.9, unknown\r\n")) << appended;
  EXPECT_FALSE(appended.contains("192.0.2.7"));
}

/// Returns the header lines that an upstream gets for these of the client.
std::string passed(std::string_view lines, ReverseProxyOptions options = {}) {
  options.forwarded = ForwardedHeaders::none;
  options.via.clear();
  TextRequest request("GET /", {}, lines);
  ClientRequest out(Method::get, "http://a");
  EXPECT_TRUE(forward_request_headers(request.request(), options, out));
  return std::string(out.headers().lines());
}

TEST(ForwardingTest, NamesThatResembleRulesPass) {
  constexpr std::string_view lines =
      "Tea: 1\r\nViaduct: 2\r\nHosts: 3\r\nContent-Lengths: 4\r\nProxied: 5\r\nConnections: 6\r\n"
      "X-Forward: 7\r\nDatum: 8\r\n_: 9\r\n0: 10\r\n";
  EXPECT_EQ(passed(lines), lines);
}

TEST(ForwardingTest, OptionsOfConnectionAreFoundInAllLines) {
  EXPECT_EQ(passed("Connection: close\r\nA: 1\r\nConnection: , a ,\r\nB: 2\r\nClose: 3\r\n"),
            "B: 2\r\n");
  EXPECT_EQ(passed("Connection: keep-alive\r\nA: 1\r\n"), "A: 1\r\n");
}

TEST(ForwardingTest, OptionsOfConnectionAreBounded) {
  std::string distinct;
  for (std::size_t count = 0; count < connection_options_max; ++count) {
    distinct.append("X-").append(std::to_string(count)).append(",");
  }
  const std::string repeated = distinct + "x-1,keep-alive,,, ,TE," + std::string(10'000, ',');
  EXPECT_EQ(passed("Connection: " + repeated + "\r\nX-63: 1\r\nX-64: 2\r\n"), "X-64: 2\r\n");
  TextRequest request("GET /", {}, "Connection: " + distinct + "\r\nConnection: a\r\n");
  ClientRequest out(Method::get, "http://a");
  EXPECT_EQ(forward_request_headers(request.request(), {}, out).error(), Errc::bad_input);
}

TEST(ForwardingTest, ImitationsOfNamesWithUnderscoresAreDropped) {
  EXPECT_EQ(passed("X_Forwarded_For: 1\r\nX-Forwarded_For: 2\r\nx_real_ip: 3\r\n"
                   "Content_Length: 4\r\nTransfer_Encoding: 5\r\nX_Forwarded_Any: 6\r\n"
                   "Proxy_Any: 7\r\nX_Any: 8\r\n"),
            "X_Any: 8\r\n");
}

TEST(ForwardingTest, ImitationsOfNamesWithOtherCharactersAreDropped) {
  for (const std::string_view other :
       {"!", "#", "$", "%", "&", "'", "*", "+", ".", "^", "_", "`", "|", "~"}) {
    std::string lines;
    for (std::string name : {"x-forwarded-for", "X-Real-IP", "X-Forwarded", "Transfer-Encoding",
                             "Max-Forwards", "Proxy-Any"}) {
      name.replace(name.find('-'), 1, other);
      lines.append(name).append(": 1\r\n");
    }
    const std::string kept = "X" + std::string(other) + "Any: 2\r\n";
    EXPECT_EQ(passed(lines + kept), kept);
  }
  EXPECT_EQ(passed("X-Forwarded: for=6\r\n"), "");
}

TEST(ForwardingTest, DateOfARequestPasses) {
  EXPECT_EQ(passed("Date: never\r\nProxy-Status: a\r\nHTTP2-Settings: AA\r\n"), "Date: never\r\n");
}

/// Returns the headers about the client that an upstream gets from a trusted proxy.
std::string appended(std::string_view lines) {
  ReverseProxyOptions options{.forwarded = ForwardedHeaders::append, .rfc7239 = true};
  TextRequest request("GET /", {}, lines);
  ClientRequest out(Method::get, "http://a");
  EXPECT_TRUE(forward_request_headers(request.request(), options, out));
  return std::string(out.headers().lines());
}

TEST(ForwardingTest, ConnectionTakesAwayNothingThatTheProxySets) {
  const std::string found = appended(
      "Connection: X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, Forwarded, Via, "
      "X-Real-IP, Max-Forwards, X-Other\r\nX-Forwarded-For: 1.2.3.4\r\n"
      "X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\nForwarded: for=1.2.3.4\r\n"
      "Via: 1.1 a\r\nX-Real-IP: 1.2.3.4\r\nMax-Forwards: 3\r\nX-Other: 1\r\n");
  EXPECT_EQ(found,
            "X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\nForwarded: for=1.2.3.4\r\n"
            "Via: 1.1 a\r\nX-Real-IP: 1.2.3.4\r\nMax-Forwards: 3\r\n"
            "X-Forwarded-For: 1.2.3.4, unknown\r\n"
            "Forwarded: for=unknown;host=\"test\";proto=http\r\nVia: 1.1 weir\r\n");
}

TEST(ForwardingTest, ProtoAndHostAreThoseThatArePassed) {
  const std::string found =
      appended("X-Forwarded-Proto: \r\nX_Forwarded_Host: evil\r\nX-Forwarded-For:\r\n");
  EXPECT_EQ(found,
            "X-Forwarded-For: unknown\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: test\r\n"
            "Forwarded: for=unknown;host=\"test\";proto=http\r\nVia: 1.1 weir\r\n");
}

/// Returns the Max-Forwards of a request as text: "none", "bad", or the number.
std::string hops(std::string_view method, std::string_view lines) {
  TextRequest request(std::string(method) + " /", {}, lines);
  const auto found = max_forwards_of(request.request());
  if (!found) return "bad";
  return *found ? std::to_string(**found) : "none";
}

TEST(ForwardingTest, MaxForwardsCountsForOptionsAndTrace) {
  EXPECT_EQ(hops("OPTIONS", "Max-Forwards: 5\r\n"), "5");
  EXPECT_EQ(hops("TRACE", "max-forwards: 0\r\n"), "0");
  EXPECT_EQ(hops("TRACE", "Max-Forwards: 99999999999999999999999\r\n"), "1000000");
  EXPECT_EQ(hops("OPTIONS", ""), "none");
  EXPECT_EQ(hops("GET", "Max-Forwards: x\r\n"), "none");
  for (const std::string_view bad :
       {"Max-Forwards: x\r\n", "Max-Forwards: -1\r\n", "Max-Forwards: 1 2\r\n", "Max-Forwards:\r\n",
        "Max-Forwards: 1\r\nMax-Forwards: 1\r\n"}) {
    EXPECT_EQ(hops("OPTIONS", bad), "bad") << bad;
  }
}

}  // namespace
}  // namespace weir::http::forwarding_test

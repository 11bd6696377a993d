// Tests of the address of the client behind proxies.
#include "weir/web/middleware/trusted_proxies.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/http/test/http_request.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::trusted_proxies_test {
namespace {

const TrustedProxiesOptions x_forwarded{.proxies = {"10.0.0.0/8", "::1"}};
const TrustedProxiesOptions forwarded{.proxies = {"10.0.0.0/8", "::1"},
                                      .headers = ProxyHeaders::forwarded};

/// Returns the client as "address scheme host".
std::string client(const TrustedProxiesOptions& options, std::string_view peer,
                   std::string_view lines, bool is_tls = false) {
  const TextRequest request("GET /", {}, lines);
  const auto found =
      TrustedProxies(options).find_client(request.head(), os::Address::parse(peer).value(), is_tls);
  return found.address.to_string() + (found.is_secure ? " https " : " http ") + found.host;
}
std::string by_x(std::string_view lines, std::string_view peer = "10.0.0.1:5") {
  return client(x_forwarded, peer, lines);
}
std::string by_forwarded(std::string_view lines, std::string_view peer = "10.0.0.1:5") {
  return client(forwarded, peer, lines);
}

TEST(TrustedProxies, NameTheClient) {
  EXPECT_EQ(by_x("X-Forwarded-For: 192.0.2.1\r\n"), "192.0.2.1:0 http ");
  EXPECT_EQ(by_x("X-Forwarded-For: 192.0.2.1\r\n", "[::1]:5"), "192.0.2.1:0 http ");
  EXPECT_EQ(by_x("X-Forwarded-For: 192.0.2.1, 10.9.9.9\r\n"), "192.0.2.1:0 http ");
  EXPECT_EQ(by_x("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 10.9.9.9\r\n"),
            "192.0.2.1:0 http ");
  EXPECT_EQ(by_x("X-Forwarded-For: 10.1.1.1, 10.2.2.2\r\n"), "10.1.1.1:0 http ");
  EXPECT_EQ(by_forwarded("Forwarded: for=192.0.2.1\r\n"), "192.0.2.1:0 http ");
  EXPECT_EQ(by_forwarded("Forwarded: for=\"[2001:db8::1]:9\", for=10.9.9.9\r\n"),
            "[2001:db8::1]:9 http ");
}

TEST(TrustedProxies, AClientCannotForgeItsAddress) {
  EXPECT_EQ(by_x("X-Forwarded-For: 1.1.1.1\r\n", "192.0.2.7:5"), "192.0.2.7:5 http ");
  EXPECT_EQ(by_x("X-Forwarded-For: 1.1.1.1, 192.0.2.1\r\n"), "192.0.2.1:0 http ");
  EXPECT_EQ(by_x("X-Forwarded-For: 10.3.3.3, 192.0.2.1, 10.2.2.2\r\n"), "192.0.2.1:0 http ");
  EXPECT_EQ(by_x("X-Forwarded-For: \"1.1.1.1, 192.0.2.1\r\n"), "192.0.2.1:0 http ");
  EXPECT_EQ(by_forwarded("Forwarded: for=1.1.1.1\r\n", "192.0.2.7:5"), "192.0.2.7:5 http ");
  EXPECT_EQ(by_forwarded("Forwarded: for=\"1.1.1.1, for=192.0.2.1\r\n"), "192.0.2.1:0 http ");
  EXPECT_EQ(by_x("Forwarded: for=1.1.1.1\r\n"), "10.0.0.1:5 http ");
  EXPECT_EQ(by_forwarded("X-Forwarded-For: 1.1.1.1\r\n"), "10.0.0.1:5 http ");
}

TEST(TrustedProxies, AnEntryThatIsNoAddressEndsTheSearch) {
  EXPECT_EQ(by_x("X-Forwarded-For: 1.1.1.1, unknown\r\n"), "10.0.0.1:5 http ");
  EXPECT_EQ(by_x("X-Forwarded-For: 1.1.1.1, x, 10.2.2.2\r\n"), "10.2.2.2:0 http ");
  EXPECT_EQ(by_forwarded("Forwarded: for=1.1.1.1, for=_hidden\r\n"), "10.0.0.1:5 http ");
  EXPECT_EQ(by_forwarded("Forwarded: for=1.1.1.1, proto=https\r\n"), "10.0.0.1:5 https ");
  EXPECT_EQ(by_forwarded("Forwarded: for=1.1.1.1, for\r\n"), "10.0.0.1:5 http ");
}

TEST(TrustedProxies, PassAtMostSomeHops) {
  std::string line = "X-Forwarded-For: 192.0.2.1";
  for (int hop = 0; hop < 7; ++hop) line += ", 10.0.0.2";
  EXPECT_EQ(by_x(line + "\r\n"), "192.0.2.1:0 http ");
  EXPECT_EQ(by_x(line + ", 10.0.0.3\r\n"), "10.0.0.2:0 http ");
}

TEST(TrustedProxies, NameSchemeAndHost) {
  EXPECT_EQ(by_x("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n"
                 "X-Forwarded-Host: a.test:8443\r\n"),
            "192.0.2.1:0 https a.test:8443");
  EXPECT_EQ(by_x("X-Forwarded-Proto: HTTPS\r\n"), "10.0.0.1:5 https ");
  EXPECT_EQ(by_x("X-Forwarded-Proto: ftp\r\nX-Forwarded-Host: a b\r\n"), "10.0.0.1:5 http ");
  EXPECT_EQ(by_x("X-Forwarded-Proto: https\r\n", "192.0.2.7:5"), "192.0.2.7:5 http ");
  EXPECT_EQ(client(x_forwarded, "10.0.0.1:5", "X-Forwarded-Proto: http\r\n", true),
            "10.0.0.1:5 http ");
  EXPECT_EQ(client(x_forwarded, "192.0.2.7:5", "X-Forwarded-Proto: http\r\n", true),
            "192.0.2.7:5 https ");
  EXPECT_EQ(by_forwarded("Forwarded: for=192.0.2.1;proto=https;host=a.test, "
                         "for=10.2.2.2;proto=http;host=inner.test\r\n"),
            "192.0.2.1:0 https a.test");
}

TEST(TrustedProxies, TakeTheSchemeOfTheHopOfTheClient) {
  const std::string chain = "X-Forwarded-For: 1.1.1.1, 192.0.2.1, 10.2.2.2\r\n";
  EXPECT_EQ(by_x(chain + "X-Forwarded-Proto: http, https, http\r\n"), "192.0.2.1:0 https ");
  EXPECT_EQ(by_x(chain + "X-Forwarded-Proto: https\r\n"), "192.0.2.1:0 https ");
  EXPECT_EQ(by_x(chain + "X-Forwarded-Host: evil.test, a.test, b.test\r\n"),
            "192.0.2.1:0 http a.test");
}

TEST(TrustedProxies, TrustAUnixSocketIfItIsListed) {
  const std::string line = "X-Forwarded-For: 192.0.2.1\r\n";
  EXPECT_EQ(client(x_forwarded, "unix:/a", line), "unix:/a http ");
  EXPECT_EQ(client({.proxies = {"unix"}}, "unix:/a", line), "192.0.2.1:0 http ");
}

TEST(TrustedProxies, AreRangesOfAddresses) {
  for (const char* text : {"", "10.0.0.0/33", "a.test", "10.0.0.1/8", "*"}) {
    EXPECT_THROW(trusted_proxies({.proxies = {text}}), std::invalid_argument) << text;
  }
}

TEST(TrustedProxies, GiveTheAddressToHandlers) {
  Router router;
  auto group = router.group<ClientAddress>(
      "", trusted_proxies({.proxies = {"0.0.0.0/0", "::/0"}, .hops_max = 1}));
  group.get("/", [](const ClientAddress& client) { return text(client.address.to_string()); });
  group.get("/secure", [](const Request& request) {
    return text(std::string(is_secure(request) ? "https " : "http ") +
                client_address(request).to_string());
  });
  router.get("/none", [](const Request& request) {
    return text(std::string(client_address(request) == request.peer_address() ? "peer" : "other"));
  });
  TestClient client(std::move(router));
  const HeaderList headers{{"X-Forwarded-For", "192.0.2.1"}, {"X-Forwarded-Proto", "https"}};
  EXPECT_EQ(ask(client, Method::get, "/", headers).body(), "192.0.2.1:0");
  EXPECT_EQ(ask(client, Method::get, "/secure", headers).body(), "https 192.0.2.1:0");
  EXPECT_EQ(ask(client, Method::get, "/none", headers).body(), "peer");
}

}  // namespace
}  // namespace weir::http::trusted_proxies_test

// Tests of the list of allowed hosts.
#include "weir/web/protection/allowed_hosts.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "weir/web/middleware/trusted_proxies.hpp"
#include "weir/web/test/ask.hpp"

namespace weir::http::allowed_hosts_test {
namespace {

TEST(AllowedHosts, AreThoseOfTheList) {
  const auto hosts = allowed_hosts(
      {.hosts = {"example.org", "*.example.net", "[::1]", "Local.test:8080", "127.0.0.1"}});
  for (const char* host :
       {"example.org", "EXAMPLE.org", "example.org.", "example.org:8443", "a.example.net",
        "a.b.example.net:1", "[::1]", "[::1]:80", "local.test:8080", "127.0.0.1:9"}) {
    EXPECT_TRUE(hosts.allows(host)) << host;
  }
  for (const char* host :
       {"", "example.com", "www.example.org", "example.org.evil.test", "example.net",
        ".example.net", "evilexample.net", "[::2]", "local.test", "local.test:80", "127.0.0.2",
        "example.org:x", "a@example.org", "example.org, evil.test", "evil.test/example.org"}) {
    EXPECT_FALSE(hosts.allows(host)) << host;
  }
}

TEST(AllowedHosts, MayBeWithoutTheirDefaultPort) {
  const auto hosts = allowed_hosts({.hosts = {"example.org:443", "a.test:80", "root.test."}});
  for (const char* host : {"example.org", "example.org:443", "a.test", "root.test", "root.test."}) {
    EXPECT_TRUE(hosts.allows(host)) << host;
  }
  for (const char* host : {"example.org:80", "a.test:8080"}) {
    EXPECT_FALSE(hosts.allows(host)) << host;
  }
}

TEST(AllowedHosts, MayBeAnyAddress) {
  const auto hosts = allowed_hosts({.hosts = {"localhost"}, .addresses = HostAddresses::all});
  for (const char* host :
       {"localhost", "127.0.0.1", "10.1.2.3:80", "[::1]", "[2001:db8::7]:9090", "localhost.:1"}) {
    EXPECT_TRUE(hosts.allows(host)) << host;
  }
  for (const char* host :
       {"", ":80", "127.0.0.1.evil.test", "evil.test", "127.1", "0x7f.0.0.1", "2130706433", "::1",
        "[v1.a]", "[fe80::1%25lo]", "127.0.0.1.", "unix", "unix:80"}) {
    EXPECT_FALSE(hosts.allows(host)) << host;
  }
  EXPECT_TRUE(allowed_hosts({.addresses = HostAddresses::all}).allows("127.0.0.1"));
}

TEST(AllowedHosts, MayBeAnyLoopbackAddress) {
  const auto hosts = allowed_hosts({.addresses = HostAddresses::loopback});
  for (const char* host : {"127.0.0.1", "127.0.0.1:9", "127.255.0.2", "[::1]", "[0::0:1]:80"}) {
    EXPECT_TRUE(hosts.allows(host)) << host;
  }
  for (const char* host : {"localhost", "10.1.2.3", "126.0.0.1", "128.0.0.1", "[::2]", "[::]",
                           "0.0.0.0", "[::127.0.0.1]", "[2001:db8::1]"}) {
    EXPECT_FALSE(hosts.allows(host)) << host;
  }
}

// Linux leads these to loopback, and browsers send no Sec-Fetch-Site to them: W3C Secure Contexts
// trusts 127.0.0.0/8 and ::1 only.
TEST(AllowedHosts, AreNoAddressesThatHideTheSender) {
  for (const auto addresses : {HostAddresses::none, HostAddresses::loopback, HostAddresses::all}) {
    const auto hosts = allowed_hosts({.hosts = {"127.0.0.1"}, .addresses = addresses});
    EXPECT_TRUE(hosts.allows("127.0.0.1:80"));
    for (const char* host : {"0.0.0.0", "0.0.0.0:80", "[::]", "[::]:80", "[0:0::0]", "[::0.0.0.0]",
                             "[::ffff:127.0.0.1]", "[::ffff:7f00:1]:80", "[0:0:0:0:0:FFFF:7f00:1]",
                             "[::ffff:0.0.0.0]", "[::ffff:10.1.2.3]"}) {
      EXPECT_FALSE(hosts.allows(host)) << host;
    }
  }
  EXPECT_TRUE(allowed_hosts({.hosts = {"0.0.0.0"}}).allows("0.0.0.0:80")) << "the list has it";
}

TEST(AllowedHosts, MayHaveAnotherForm) {
  const auto hosts = allowed_hosts({.hosts = {"*.Example.org.", "[0:0:0:0:0:0:0:1]", "127.0.0.1"}});
  for (const char* host : {"a.example.org", "A.EXAMPLE.ORG.", "a.example.org.:80", "[::1]",
                           "[0::0:1]:8080", "127.0.0.1."}) {
    EXPECT_TRUE(hosts.allows(host)) << host;
  }
  for (const char* host : {"example.org", "a.example.org..", "[::2]", "[::ffff:127.0.0.2]"}) {
    EXPECT_FALSE(hosts.allows(host)) << host;
  }
}

TEST(AllowedHosts, GetTheOnlyResponses) {
  Router router;
  router.use<ClientAddress>(trusted_proxies({.proxies = {"0.0.0.0/0", "::/0"}}));
  router.use(allowed_hosts({.hosts = {"example.org"}}));
  router.get("/", [] { return text("hello"); });
  TestClient client(std::move(router));
  EXPECT_EQ(ask(client, Method::get, "/", {{"Host", "example.org"}}).status(), 200);
  EXPECT_EQ(ask(client, Method::get, "/", {{"Host", "evil.test"}}).status(), 421);
  EXPECT_EQ(ask(client, Method::get, "/none", {{"Host", "evil.test"}}).status(), 421);
  EXPECT_EQ(
      ask(client, Method::get, "/", {{"Host", "example.org"}, {"X-Forwarded-Host", "evil.test"}})
          .status(),
      421);
  EXPECT_EQ(
      ask(client, Method::get, "/", {{"Host", "example.org"}, {"X-Forwarded-Host", "example.org"}})
          .status(),
      200);
}

TEST(AllowedHosts, MayHaveAnotherStatus) {
  Router router;
  router.use(allowed_hosts({.hosts = {"example.org"}, .status = Status::bad_request}));
  TestClient client(std::move(router));
  EXPECT_EQ(ask(client, Method::get, "/", {{"Host", "evil.test"}}).status(), 400);
}

TEST(AllowedHosts, RejectsTextsThatAreNoHosts) {
  EXPECT_THROW(allowed_hosts({}), std::invalid_argument);
  for (const char* host : {"", "*", "*.", "a.*.org", "https://a.test", "a test", "a/b"}) {
    EXPECT_THROW(allowed_hosts({.hosts = {host}}), std::invalid_argument) << host;
  }
}

}  // namespace
}  // namespace weir::http::allowed_hosts_test

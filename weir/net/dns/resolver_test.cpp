#include "weir/net/dns/resolver.hpp"

#include <gtest/gtest.h>

#include <string>

#include "weir/net/test/resolver_fixture.hpp"

namespace weir::dns::resolver_test {
namespace {

INSTANTIATE_TEST_SUITE_P(On, ResolverTest, every_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ResolverTest, ReturnsBothFamiliesInTurn) {
  server_.rules["www.example.org"] =
      at("192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:db8::2", "192.0.2.3");
  serve([&]() -> Task<> {
    Resolver resolver(server_options());
    const auto found = co_await resolver.resolve("WWW.example.org", 80);
    EXPECT_TRUE(found);
    if (!found) co_return;
    Addresses expected = ips("2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "192.0.2.3");
    for (Endpoint& each : expected) each = each.with_port(80);
    EXPECT_EQ(*found, expected);
    const auto ipv4 = co_await resolver.resolve("www.example.org", Family::ipv4);
    EXPECT_EQ(ipv4.value(), ips("192.0.2.1", "192.0.2.2", "192.0.2.3"));
    EXPECT_EQ(server_.asked.size(), 2U) << "one query for each family";
  });
}

TEST_P(ResolverTest, FollowsAliasesAndLimitsTheAddresses) {
  server_.rules["www.example.org"] = at("192.0.2.1", "192.0.2.2", "192.0.2.3");
  server_.rules["www.example.org"].alias = "host.example.net";
  serve([&]() -> Task<> {
    ResolverOptions options = server_options();
    options.addresses_max = 2;
    Resolver resolver(options);
    const auto found = co_await resolver.resolve("www.example.org");
    EXPECT_EQ(found.value(), ips("192.0.2.1", "192.0.2.2"));
  });
}

TEST_P(ResolverTest, CachesResults) {
  server_.rules["a.example"] = at("192.0.2.1");
  server_.rules["b.example"] = at("192.0.2.2");
  server_.rules["b.example"].ttl = 0;
  serve([&]() -> Task<> {
    Resolver resolver(server_options());
    for (int times = 0; times < 3; ++times) {
      EXPECT_TRUE(co_await resolver.resolve("a.example", Family::ipv4));
      EXPECT_TRUE(co_await resolver.resolve("b.example", Family::ipv4));
    }
    EXPECT_EQ(server_.times_asked("a.example A"), 1U);
    EXPECT_EQ(server_.times_asked("b.example A"), 3U) << "its TTL is zero";
    EXPECT_EQ(resolver.counters().requests.value(), 6U);
    EXPECT_EQ(resolver.counters().hits.value(), 2U);
    EXPECT_EQ(resolver.counters().lookups.value(), 4U);
    EXPECT_EQ(resolver.counters().in_flight.value(), 0U);
    resolver.clear_cache();
    EXPECT_TRUE(co_await resolver.resolve("a.example", Family::ipv4));
    EXPECT_EQ(server_.times_asked("a.example A"), 2U);
  });
}

TEST_P(ResolverTest, SimultaneousRequestsShareAQuery) {
  server_.rules["a.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    Resolver resolver(server_options());
    std::vector<Task<Result<Addresses>>> asking;
    for (int each = 0; each < 50; ++each) {
      asking.push_back(resolver.resolve("a.example", Family::ipv4));
    }
    const auto found = co_await all(std::move(asking));
    EXPECT_TRUE(found);
    EXPECT_EQ(server_.asked.size(), 1U);
    EXPECT_EQ(resolver.counters().coalesced.value(), 49U);
  });
}

TEST_P(ResolverTest, ReturnsTheReasonOfAFailure) {
  server_.rules["no-address.example"] = DnsRule();
  server_.rules["ipv4.example"] = at("192.0.2.1");
  server_.rules["failing.example"].code = 2;
  server_.rules["refused.example"].code = 5;
  server_.rules["malformed.example"] = at("192.0.2.1");
  server_.rules["malformed.example"].behavior = Behavior::malformed;
  serve([&]() -> Task<> {
    Resolver resolver(server_options());
    const auto failure = [&](std::string name) -> Task<std::error_code> {
      const auto found = co_await resolver.resolve(std::move(name), Family::ipv4);
      co_return error_of(found);
    };
    EXPECT_EQ(co_await failure("missing.example"), ResolveError::not_found);
    EXPECT_EQ(co_await failure("no-address.example"), ResolveError::no_address);
    EXPECT_EQ(co_await failure("failing.example"), ResolveError::server_failed);
    EXPECT_EQ(co_await failure("refused.example"), ResolveError::refused);
    EXPECT_EQ(co_await failure("malformed.example"), ResolveError::malformed);
    EXPECT_EQ(co_await failure("a..b"), Errc::bad_input);
    EXPECT_EQ(co_await failure("127.1"), Errc::bad_input);
    const auto ipv6 = co_await resolver.resolve("ipv4.example", Family::ipv6);
    EXPECT_EQ(error_of(ipv6), ResolveError::no_address);
    EXPECT_TRUE(co_await resolver.resolve("ipv4.example"));
    const auto counted = [&](ResolveError failure) {
      return resolver.counters().failures[static_cast<std::size_t>(failure) - 1].value();
    };
    EXPECT_EQ(counted(ResolveError::not_found), 1U);
    EXPECT_EQ(counted(ResolveError::no_address), 2U);
    EXPECT_EQ(counted(ResolveError::server_failed), 1U);
  });
}

TEST_P(ResolverTest, MissingServerIsUnreachable) {
  serve([&]() -> Task<> {
    // The socket keeps the port in use and receives only from its own peer.
    auto holder = co_await udp::connect(server_.address());
    Resolver resolver(only(Addresses(1, holder.value().local_address())));
    const auto found = co_await resolver.resolve("www.example.org");
    EXPECT_EQ(error_of(found), ResolveError::unreachable);
  });
}

TEST_P(ResolverTest, IgnoresInvalidResponses) {
  server_.rules["www.example.org"] = at("192.0.2.1");
  server_.rules["www.example.org"].sends_invalid_first = true;
  serve([&]() -> Task<> {
    Resolver resolver(server_options());
    const auto found = co_await resolver.resolve("www.example.org", Family::ipv4);
    EXPECT_EQ(found.value(), ips("192.0.2.1"));
    EXPECT_EQ(resolver.client_counters().strays.value(), 4U);
  });
}

// These queries end only by their timeout. The test shows that they do.
TEST_P(ResolverTest, OnlyInvalidResponsesAreATimeout) {
  const std::vector<Behavior> behaviors{Behavior::never, Behavior::with_wrong_id,
                                        Behavior::with_wrong_question, Behavior::as_a_question,
                                        Behavior::with_garbage};
  serve([&]() -> Task<> {
    ResolverOptions options = server_options();
    options.timeout = 3ms;
    options.attempts = 2;
    Resolver resolver(options);
    for (const Behavior behavior : behaviors) {
      const std::string name =
          "nonsense-" + std::to_string(static_cast<int>(behavior)) + ".example";
      server_.rules[name] = at("192.0.2.1");
      server_.rules[name].behavior = behavior;
      const auto found = co_await resolver.resolve(name, Family::ipv4);
      EXPECT_EQ(error_of(found), ResolveError::timed_out) << name;
    }
    EXPECT_EQ(resolver.client_counters().queries.value(), 2 * behaviors.size());
  });
}

TEST_P(ResolverTest, LongResponsesComeOverTcp) {
  server_.rules["www.example.org"].behavior = Behavior::truncated;
  for (unsigned each = 1; each < 20; ++each) {
    server_.rules["www.example.org"].addresses.push_back(
        Endpoint::ipv4({192, 0, 2, static_cast<std::uint8_t>(each)}, 0));
  }
  serve([&]() -> Task<> {
    Resolver resolver(server_options());
    const auto found = co_await resolver.resolve("www.example.org", Family::ipv4);
    EXPECT_EQ(found.value(), server_.rules["www.example.org"].addresses);
    EXPECT_EQ(server_.times_asked("www.example.org A by connection"), 1U);
    EXPECT_EQ(resolver.client_counters().connections.value(), 1U);
  });
}

TEST_P(ResolverTest, BrokenTcpConnectionIsAServerFailure) {
  server_.rules["www.example.org"] = at("192.0.2.1");
  server_.rules["www.example.org"].behavior = Behavior::cut_by_connection;
  serve([&]() -> Task<> {
    Resolver resolver(server_options());
    const auto found = co_await resolver.resolve("www.example.org", Family::ipv4);
    EXPECT_EQ(error_of(found), ResolveError::server_failed);
  });
}

TEST_P(ResolverTest, NextServerIsQueriedAndStaysFirst) {
  server_.rules["a.example"].code = 2;
  server_.rules["b.example"].code = 5;
  FakeDnsServer second;
  second.rules["a.example"] = second.rules["b.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    const auto talk = [&]() -> Task<> {
      ResolverOptions options = only({server_.address(), second.address()});
      options.attempts = 5;
      Resolver resolver(options);
      EXPECT_TRUE(co_await resolver.resolve("a.example", Family::ipv4));
      EXPECT_TRUE(co_await resolver.resolve("b.example", Family::ipv4));
      EXPECT_EQ(server_.asked, std::vector<std::string>{"a.example A"});
      second.rules["a.example"].code = 2;
      resolver.clear_cache();
      const auto failed = co_await resolver.resolve("a.example", Family::ipv4);
      EXPECT_EQ(error_of(failed), ResolveError::server_failed);
      EXPECT_EQ(server_.asked.size(), 2U) << "a failed server is queried once";
    };
    co_await with_name_server(second, talk);
  });
}

TEST_P(ResolverTest, TriesSearchDomainsInOrder) {
  server_.rules["one.b.example"] = at("192.0.2.1");
  server_.rules["two.deep"] = at("192.0.2.2");
  server_.rules["three"] = at("192.0.2.3");
  server_.rules["four.a.example"] = DnsRule();
  server_.rules["four.b.example"] = at("192.0.2.4");
  serve([&]() -> Task<> {
    ResolverOptions options = server_options();
    options.search = std::vector<std::string>{"a.example", "b.example"};
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("one", Family::ipv4)).value(), ips("192.0.2.1"));
    EXPECT_EQ(server_.asked, (std::vector<std::string>{"one.a.example A", "one.b.example A"}));
    server_.asked.clear();
    EXPECT_EQ((co_await resolver.resolve("two.deep", Family::ipv4)).value(), ips("192.0.2.2"));
    EXPECT_EQ(server_.asked, std::vector<std::string>{"two.deep A"}) << "the name has a dot";
    EXPECT_EQ((co_await resolver.resolve("three", Family::ipv4)).value(), ips("192.0.2.3"));
    server_.asked.clear();
    EXPECT_FALSE(co_await resolver.resolve("one.", Family::ipv4)) << "the name is absolute";
    EXPECT_EQ(server_.asked, std::vector<std::string>{"one A"});
    const auto four = co_await resolver.resolve("four", Family::ipv4);
    EXPECT_EQ(error_of(four), ResolveError::no_address) << "the first name that exists decides";
  });
}

TEST_P(ResolverTest, TriesANameWithEnoughDotsAsItIsAndThenTheSearchDomains) {
  server_.rules["www.one.b.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    ResolverOptions options = server_options();
    options.search = std::vector<std::string>{"a.example", "b.example"};
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("www.one", Family::ipv4)).value(), ips("192.0.2.1"));
    EXPECT_EQ(server_.asked, (std::vector<std::string>{"www.one A", "www.one.a.example A",
                                                       "www.one.b.example A"}));
    server_.asked.clear();
    const auto absent = co_await resolver.resolve("www.two", Family::ipv4);
    EXPECT_EQ(error_of(absent), ResolveError::not_found);
    EXPECT_EQ(server_.asked, (std::vector<std::string>{"www.two A", "www.two.a.example A",
                                                       "www.two.b.example A"}));
  });
}

// The name may exist, and a later name may belong to another host.
TEST_P(ResolverTest, FailureOfTheServersEndsTheSearch) {
  server_.rules["one.a.example"].code = 2;
  server_.rules["one.b.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    ResolverOptions options = server_options();
    options.search = std::vector<std::string>{"a.example", "b.example"};
    Resolver resolver(options);
    const auto failed = co_await resolver.resolve("one", Family::ipv4);
    EXPECT_EQ(error_of(failed), ResolveError::server_failed);
    EXPECT_EQ(server_.asked, std::vector<std::string>{"one.a.example A"});
  });
}

TEST_P(ResolverTest, AddressesAndLocalhostNeedNoServer) {
  serve([&]() -> Task<> {
    Resolver resolver(server_options());
    const Addresses with_port(1, ip("192.0.2.7").with_port(80));
    EXPECT_EQ((co_await resolver.resolve("192.0.2.7", 80)).value(), with_port);
    EXPECT_EQ((co_await resolver.resolve("[::1]")).value(), ips("::1"));
    EXPECT_EQ((co_await resolver.resolve("localhost")).value(), ips("::1", "127.0.0.1"));
    EXPECT_EQ((co_await resolver.resolve("a.LOCALHOST.", Family::ipv4)).value(), ips("127.0.0.1"));
    const auto other = co_await resolver.resolve("::1", Family::ipv4);
    EXPECT_EQ(error_of(other), ResolveError::no_address);
    EXPECT_TRUE(server_.asked.empty());
  });
}

}  // namespace
}  // namespace weir::dns::resolver_test

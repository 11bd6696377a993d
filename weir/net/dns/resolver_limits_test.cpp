// Tests of the limits, the counters and the failures of a resolver, in virtual time.

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/net/test/failing_platform.hpp"
#include "weir/net/test/resolver_fixture.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/timeout.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::dns::resolver_limits_test {
namespace {

TEST(ResolverOptions, HaveTheDocumentedDefaults) {
  const ResolverOptions options;
  EXPECT_EQ(options.hosts_file, "/etc/hosts");
  EXPECT_EQ(options.resolv_conf, "/etc/resolv.conf");
  EXPECT_EQ(options.timeout, 0s);
  EXPECT_EQ(options.attempts, 0U);
  EXPECT_EQ(options.ttl_min, 0s);
  EXPECT_EQ(options.ttl_max, 1h);
  EXPECT_EQ(options.hosts_ttl, 5s);
  EXPECT_EQ(options.negative_ttl_max, 10s);
  EXPECT_EQ(options.failure_ttl, 1s);
  EXPECT_EQ(options.cache_max, 1024U);
  EXPECT_EQ(options.lookups_max, 1024U);
  EXPECT_EQ(options.addresses_max, 32U);
}

MemoryPlatformOptions slow_files() {
  MemoryPlatformOptions options;
  options.file_time = 10ms;
  return options;
}

class ResolverLimits : public LoopTest {
 protected:
  ResolverLimits() : LoopTest(slow_files()) {}

  void put(std::string_view text) {
    const auto file = platform_.files().open("/tmp/hosts", {.mode = os::FileMode::truncate});
    EXPECT_TRUE(platform_.files().write_at(file->value(), to_bytes(text), 0));
  }
  ResolverOptions with_hosts() const {
    ResolverOptions options = only(Addresses(1, server_.address()));
    options.hosts_file = "/tmp/hosts";
    return options;
  }
  template <class Body>
  void serve(Body body) {
    run_made([&] { return with_name_server(server_, body); });
  }
  static Task<> look_up(Resolver& resolver, std::string name) {
    std::ignore = co_await resolver.resolve(std::move(name), Family::ipv4);
  }

  FakeDnsServer server_;
};

TEST_F(ResolverLimits, AtMostSixteenTimesTheLimitWaitForTheFiles) {
  put("192.0.2.1 here.example");
  serve([&]() -> Task<> {
    for (const std::size_t lookups_max : {0U, 1U, 2U}) {
      ResolverOptions options = with_hosts();
      options.lookups_max = lookups_max;
      Resolver resolver(options);
      const std::size_t most = 16 * std::max<std::size_t>(lookups_max, 1);
      const auto many = [&](Scope& scope) -> Task<Result<>> {
        for (std::size_t each = 0; each < most + 5; ++each) {
          scope.spawn(look_up(resolver, "n" + std::to_string(each) + ".example"));
        }
        std::ignore = co_await sleep(1ms);
        EXPECT_EQ(resolver.counters().in_flight.value(), most);
        EXPECT_EQ(resolver.counters().rejected.value(), 5U);
        co_return {};
      };
      EXPECT_TRUE(co_await with_scope(OnFailure::isolate, many));
      EXPECT_EQ(resolver.counters().in_flight.value(), 0U);
    }
  });
}

TEST_F(ResolverLimits, QueriesDoNotCountAgainstTheLimitOfTheFiles) {
  put("192.0.2.1 here.example");
  server_.rules["dead.example"].behavior = Behavior::never;
  serve([&]() -> Task<> {
    ResolverOptions options = with_hosts();
    options.lookups_max = 1;
    Resolver resolver(options);
    const auto many = [&](Scope& scope) -> Task<Result<>> {
      scope.spawn(look_up(resolver, "dead.example"));
      std::ignore = co_await sleep(6s);
      EXPECT_EQ(resolver.counters().querying.value(), 1U);
      for (int each = 0; each < 20; ++each) {
        scope.spawn(look_up(resolver, "n" + std::to_string(each) + ".example"));
      }
      std::ignore = co_await sleep(1ms);
      EXPECT_EQ(resolver.counters().in_flight.value(), 17U);
      EXPECT_EQ(resolver.counters().rejected.value(), 4U);
      std::ignore = co_await sleep(1s);
      EXPECT_EQ(resolver.counters().in_flight.value(), 1U);
      EXPECT_EQ(resolver.counters().rejected.value(), 20U) << "each of the 16 needs a server";
      scope.cancel();
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::isolate, many));
    EXPECT_EQ(resolver.counters().failed_locally.value(), 0U);
  });
}

TEST_F(ResolverLimits, KeepsAtLeastOneAddress) {
  put("192.0.2.1 here.example\n192.0.2.2 here.example");
  server_.rules["a.example"] = at("192.0.2.3", "192.0.2.4");
  serve([&]() -> Task<> {
    ResolverOptions options = with_hosts();
    options.addresses_max = 0;
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("here.example")).value(), ips("192.0.2.1"));
    EXPECT_EQ((co_await resolver.resolve("a.example")).value(), ips("192.0.2.3"));
  });
}

TEST_F(ResolverLimits, HostsFileGivesALimitedNumberOfAddressesOfAFamily) {
  put("192.0.2.1 here.example\n192.0.2.2 here.example\n192.0.2.3 here.example");
  serve([&]() -> Task<> {
    ResolverOptions options = with_hosts();
    options.addresses_max = 2;
    options.hosts_ttl = {};
    Resolver resolver(options);
    for (int each = 0; each < 3; ++each) {
      const auto found = co_await resolver.resolve("here.example", Family::ipv4);
      EXPECT_EQ(found.value(), ips("192.0.2.1", "192.0.2.2"));
    }
    EXPECT_EQ(resolver.counters().hits.value(), 0U) << "hosts_ttl is zero";
    const auto absent = co_await resolver.resolve("here.example", Family::ipv6);
    EXPECT_EQ(error_of(absent), ResolveError::no_address);
  });
}

TEST_F(ResolverLimits, FailedLookUpIsCachedForItsTtl) {
  server_.rules["a.example"].code = 2;
  serve([&]() -> Task<> {
    ResolverOptions options = only(Addresses(1, server_.address()));
    options.failure_ttl = 5s;
    Resolver resolver(options);
    for (int second = 0; second < 20; ++second) {
      co_await look_up(resolver, "a.example");
      std::ignore = co_await sleep(1s);
    }
    EXPECT_EQ(server_.asked.size(), 4U);
  });
}

TEST_F(ResolverLimits, CacheHasAMaximumSize) {
  server_.rules["a.example"] = at("192.0.2.1");
  server_.rules["b.example"] = at("192.0.2.2");
  serve([&]() -> Task<> {
    ResolverOptions options = only(Addresses(1, server_.address()));
    options.cache_max = 1;
    Resolver resolver(options);
    for (const std::string name : {"a.example", "a.example", "b.example", "a.example"}) {
      co_await look_up(resolver, name);
    }
    EXPECT_EQ(server_.asked,
              (std::vector<std::string>{"a.example A", "b.example A", "a.example A"}));
    EXPECT_EQ(resolver.counters().hits.value(), 1U);
  });
}

// One family has its result when the cancellation comes. The task does not get half a result.
TEST_F(ResolverLimits, CancelOfOneFamilyCancelsBoth) {
  server_.rules["a.example A"] = at("192.0.2.1");
  server_.rules["a.example AAAA"] = at("2001:db8::1");
  serve([&]() -> Task<> {
    for (const std::string type : {"A", "AAAA"}) {
      server_.rules["a.example A"].delay = server_.rules["a.example AAAA"].delay = {};
      server_.rules["a.example " + type].delay = 1s;
      Resolver resolver(only(Addresses(1, server_.address())));
      const Instant begun = platform_.now();
      const auto found = co_await timeout(500ms, resolver.resolve("a.example"));
      EXPECT_EQ(error_of(found), Errc::timed_out) << type;
      EXPECT_EQ(platform_.now() - begun, 500ms);
      EXPECT_EQ(resolver.counters().failed_locally.value(), 0U) << "a cancellation is no failure";
    }
  });
}

TEST_F(ResolverLimits, OneFamilyIsEnough) {
  server_.rules["four.example AAAA"].code = 2;
  server_.rules["four.example A"] = at("192.0.2.1");
  server_.rules["six.example AAAA"] = at("2001:db8::1", "2001:db8::2");
  server_.rules["six.example A"].code = 2;
  server_.rules["none.example AAAA"] = DnsRule();
  server_.rules["none.example A"].code = 2;
  serve([&]() -> Task<> {
    Resolver resolver(only(Addresses(1, server_.address())));
    EXPECT_EQ((co_await resolver.resolve("four.example")).value(), ips("192.0.2.1"));
    const auto six = co_await resolver.resolve("six.example");
    EXPECT_EQ(six.value(), ips("2001:db8::1", "2001:db8::2"));
    const auto none = co_await resolver.resolve("none.example");
    EXPECT_EQ(error_of(none), ResolveError::server_failed);
    const auto bad = co_await resolver.resolve("a..b");
    EXPECT_EQ(error_of(bad), Errc::bad_input);
  });
}

TEST_F(ResolverLimits, CancelledTaskStartsNoLookUp) {
  server_.rules["a.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    const Context own = co_await this_context();
    Resolver resolver(only(Addresses(1, server_.address())));
    co_await look_up(resolver, "a.example");
    CancelSource cancel;
    cancel.cancel();
    const Context cancelled{own.loop, &cancel};
    const auto ask = [&](std::string name) -> Task<std::error_code> {
      auto asking = in_context(cancelled, resolver.resolve(std::move(name), Family::ipv4));
      const auto found = co_await std::move(asking);
      co_return error_of(found);
    };
    EXPECT_EQ(co_await ask("b.example"), Errc::cancelled);
    EXPECT_EQ(resolver.counters().lookups.value(), 1U);
    EXPECT_EQ(co_await ask("a.example"), std::error_code()) << "the result is in the cache";
    EXPECT_EQ(co_await ask("localhost"), std::error_code());
  });
}

TEST_F(ResolverLimits, CountsEachKindOfResult) {
  server_.rules["a.example"] = at("192.0.2.1");
  server_.rules["failing.example"].code = 2;
  server_.rules["dead.example"].behavior = Behavior::never;
  serve([&]() -> Task<> {
    ResolverOptions options = only(Addresses(1, server_.address()));
    options.lookups_max = 1;
    Resolver resolver(options);
    EXPECT_TRUE(co_await resolver.resolve("localhost"));
    co_await look_up(resolver, "a.example");
    co_await look_up(resolver, "a.example");
    co_await look_up(resolver, "absent.example");
    co_await look_up(resolver, "failing.example");
    std::ignore = co_await timeout(1s, resolver.resolve("dead.example"));
    const ResolverCounters& counters = resolver.counters();
    EXPECT_EQ(counters.requests.value(), 8U);
    EXPECT_EQ(counters.hits.value(), 3U);
    EXPECT_EQ(counters.coalesced.value(), 0U);
    EXPECT_EQ(counters.lookups.value(), 5U);
    EXPECT_EQ(counters.rejected.value(), 1U) << "one of the two families";
    EXPECT_EQ(counters.failed_locally.value(), 0U);
    const std::vector<std::uint64_t> expected = {0, 1, 0, 0, 0, 0, 1};
    for (std::size_t each = 0; each < resolve_error_count; ++each) {
      EXPECT_EQ(counters.failures[each].value(), expected[each]) << each;
    }
    std::vector<std::pair<std::string, std::uint64_t>> metrics;
    const MetricSnapshot snapshot = loop_->metrics().read();
    for (const auto& each : snapshot.metrics()) metrics.emplace_back(each.name, each.value);
    EXPECT_EQ(metrics,
              (std::vector<std::pair<std::string, std::uint64_t>>{{"dns requests", 8},
                                                                  {"dns look-ups", 5},
                                                                  {"dns look-ups failed", 2},
                                                                  {"dns look-ups rejected", 1}}));
  });
}

TEST_F(ResolverLimits, WorksDuringADrain) {
  server_.rules["a.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    loop_->drain();
    Resolver resolver(only(Addresses(1, server_.address())));
    EXPECT_EQ((co_await resolver.resolve("a.example")).value(), ips("192.0.2.1"));
  });
}

TEST_F(ResolverLimits, SkipsSearchDomainsThatMakeTheNameTooLong) {
  const std::string label(60, 'a');
  const std::string name = label + "." + label + "." + label + "." + label;
  serve([&]() -> Task<> {
    ResolverOptions options = only(Addresses(1, server_.address()));
    options.ndots = 4;
    options.search = std::vector<std::string>{"elevenchars", "bad..domain", "ninechars"};
    Resolver resolver(options);
    const auto found = co_await resolver.resolve(name, Family::ipv4);
    EXPECT_EQ(error_of(found), ResolveError::not_found);
    EXPECT_EQ(server_.asked, (std::vector<std::string>{name + ".ninechars A", name + " A"}));
  });
}

TEST_F(ResolverLimits, ResolverOfTheCoreDoesNotDisturbThePoolOfFiles) {
  const auto talk = []() -> Task<> {
    EXPECT_TRUE(co_await files::status("/tmp"));
    const auto first = co_await dns::resolve("localhost");
    EXPECT_EQ(first.value(), ips("::1", "127.0.0.1"));
    EXPECT_TRUE(co_await files::status("/tmp"));
  };
  run_made(talk);
  EXPECT_EQ(&core_resolver(*loop_), &core_resolver(*loop_));
  EXPECT_EQ(core_resolver(*loop_).counters().requests.value(), 2U);
}

TEST(CoreResolver, DiffersForEachCoreOfAGroup) {
  MemoryPlatform platform;
  loop::LoopGroup group;
  const auto first = Loop::make(platform, {.group = &group}).value();
  const auto second = Loop::make(platform, {.core = 1, .group = &group}).value();
  group.set_loops({first.get(), second.get()});
  EXPECT_NE(&core_resolver(*first), &core_resolver(*second));
  const auto found = weir::run(*second, dns::resolve("localhost"));
  EXPECT_EQ(found.value(), ips("::1", "127.0.0.1"));
  EXPECT_EQ(core_resolver(*first).counters().requests.value(), 0U);
  EXPECT_EQ(core_resolver(*second).counters().requests.value(), 2U);
}

// Local resources may be available again immediately, so that the failure is not cached.
TEST(ResolverWithoutSockets, ReportsTheErrorAndTriesAgain) {
  FailingPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  FakeDnsServer server;
  server.rules["a.example"] = at("192.0.2.1");
  const auto talk = [&]() -> Task<> {
    Resolver resolver(only(Addresses(1, server.address())));
    platform.datagram_errors = {system_error(EMFILE), system_error(ENFILE)};
    const auto failed = co_await resolver.resolve("a.example");
    EXPECT_EQ(error_of(failed), system_error(EMFILE)) << "that of the first family";
    EXPECT_EQ(resolver.counters().failed_locally.value(), 2U);
    platform.datagram_errors = {system_error(EMFILE), {}};
    const auto half = co_await resolver.resolve("a.example");
    EXPECT_EQ(half.value(), ips("192.0.2.1"));
    EXPECT_EQ(resolver.counters().failed_locally.value(), 3U);
    for (const detail::Counter& each : resolver.counters().failures) {
      EXPECT_EQ(each.value(), 0U);
    }
    const MetricSnapshot snapshot = loop->metrics().read();
    EXPECT_EQ(snapshot.metrics().at(2).name, "dns look-ups failed");
    EXPECT_EQ(snapshot.metrics().at(2).value, 3U);
  };
  weir::run(*loop, with_name_server(server, talk));
}

}  // namespace
}  // namespace weir::dns::resolver_limits_test

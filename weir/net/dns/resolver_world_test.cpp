// Tests of name resolution in the World. Results are right and no resource is left, for each
// behavior of the server and each timeout of the caller.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "weir/net/dns/connect.hpp"
#include "weir/net/test/resolver_fixture.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/sim/test/world_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::dns::resolver_world_test {
namespace {

constexpr std::uint8_t names_count = 12;

struct Tally {
  int found = 0;
  int failed = 0;
  int timed_out = 0;
  int connected = 0;
};

std::string name_of(std::uint8_t number) {
  return "n" + std::to_string(number) + ".example";
}
Endpoint address_of(std::uint8_t number) {
  return Endpoint::ipv4({127, 0, 1, number}, 0);
}

DnsRule random_rule(loop::Platform& host, std::uint8_t number) {
  constexpr std::array behaviors{
      Behavior::correct,      Behavior::correct,       Behavior::truncated,        Behavior::never,
      Behavior::with_garbage, Behavior::with_wrong_id, Behavior::cut_by_connection};
  DnsRule rule;
  rule.addresses.push_back(address_of(number));
  rule.behavior = behaviors[host.random() % behaviors.size()];
  rule.delay = std::chrono::milliseconds(host.random() % 60);
  rule.sends_invalid_first = host.random() % 3 == 0;
  rule.code = host.random() % 5 == 0 ? 2 : 0;
  rule.ttl = static_cast<std::uint32_t>(host.random() % 3);
  return rule;
}

/// Resolves six random names with random timeouts.
Task<> ask_some(Scope& scope, Resolver& resolver, FakeDnsServer& server, Tally& tally) {
  loop::Platform& host = scope.loop().platform();
  for (int times = 0; times < 6; ++times) {
    const auto number = static_cast<std::uint8_t>(host.random() % names_count);
    const std::string name = name_of(number);
    const Duration time_limit = std::chrono::milliseconds(host.random() % 200);
    std::ignore = co_await sleep(std::chrono::milliseconds(host.random() % 50));
    const auto found = co_await timeout(time_limit, resolver.resolve(name, Family::ipv4));
    if (found) {
      EXPECT_EQ(*found, Addresses(1, address_of(number))) << name;
      const DnsRule& rule = server.rules[name];
      EXPECT_EQ(rule.code, 0U) << name;
      EXPECT_TRUE(rule.behavior == Behavior::correct || rule.behavior == Behavior::truncated)
          << name;
      ++tally.found;
    } else if (found.error() == weir::Errc::timed_out) {
      ++tally.timed_out;
    } else {
      EXPECT_TRUE(found.error() == ResolveError::timed_out ||
                  found.error() == ResolveError::server_failed)
          << name << ": " << found.error().message();
      ++tally.failed;
    }
    tcp::ConnectOptions racing;
    racing.resolver = &resolver;
    const auto stream =
        co_await timeout(time_limit, tcp::connect(name, server.address().port(), racing));
    if (stream) ++tally.connected;
  }
}

Task<> ask_and_answer(Scope& scope, Tally& tally) {
  loop::Platform& host = scope.loop().platform();
  FakeDnsServer server;
  for (std::uint8_t number = 0; number < names_count; ++number) {
    server.rules[name_of(number)] = random_rule(host, number);
  }
  const auto talk = [&]() -> Task<> {
    ResolverOptions options = only(Addresses(1, server.address()));
    options.timeout = 100ms;
    options.attempts = 2;
    Resolver resolver(options);
    const auto all_of_them = [&](Scope& askers) -> Task<Result<>> {
      for (int each = 0; each < 8; ++each) {
        askers.spawn(ask_some(askers, resolver, server, tally));
      }
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::isolate, all_of_them));
    EXPECT_EQ(resolver.counters().in_flight.value(), 0U);
  };
  co_await with_name_server(server, talk);
}

sim::WorldReport run_world(sim::World& world, Tally& tally) {
  world.host("alone").start([&](loop::Platform& host) {
    return Runtime(host, sim::quiet()).run_on_each_core(ask_and_answer, std::ref(tally));
  });
  return world.run_until_done(1h);
}

TEST(ResolverWorld, ResultsAreRightDespiteFaults) {
  Tally tally;
  for (int run = 0; run < 40; ++run) {
    sim::World world(fresh_world_options());
    const sim::WorldReport report = run_world(world, tally);
    ASSERT_TRUE(report.ok()) << report.text();
    ASSERT_FALSE(HasFailure()) << report.text();
  }
  EXPECT_GT(tally.found, 0);
  EXPECT_GT(tally.failed, 0);
  EXPECT_GT(tally.timed_out, 0);
}

TEST(ResolverWorld, SameSeedGivesTheSameRun) {
  const auto trace = [](std::uint64_t seed) {
    Tally tally;
    sim::World world({.seed = seed, .trace = true});
    const sim::WorldReport report = run_world(world, tally);
    EXPECT_TRUE(report.ok()) << report.text();
    return world.trace();
  };
  for (std::uint64_t seed = 1; seed <= 4; ++seed) EXPECT_EQ(trace(seed), trace(seed)) << seed;
}

}  // namespace
}  // namespace weir::dns::resolver_world_test

// Tests of look-ups in virtual time: cancellation at every step, and expiry of results.
#include <gtest/gtest.h>

#include <string>

#include "weir/net/test/resolver_fixture.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"

namespace weir::dns::resolver_steps_test {
namespace {

MemoryPlatformOptions slow_files(MemoryFiles files) {
  MemoryPlatformOptions options;
  options.files = files;
  options.file_time = 10ms;
  return options;
}

class ResolverSteps : public CancelSweepTest, public testing::WithParamInterface<MemoryFiles> {
 protected:
  ResolverSteps() : CancelSweepTest(slow_files(GetParam())) {
    const auto file = platform_.files().open("/tmp/hosts", {.mode = os::FileMode::truncate});
    EXPECT_TRUE(platform_.files().write_at(file->value(), to_bytes("192.0.2.1 here.example"), 0));
  }
};

Task<> note(CancelInjector& injector, Task<Result<Addresses>> asking, Addresses expected,
            int& found) {
  const auto addresses = co_await std::move(asking);
  injector.checkpoint();
  if (addresses) {
    EXPECT_EQ(*addresses, expected);
    ++found;
  } else {
    EXPECT_EQ(addresses.error(), Errc::cancelled);
  }
}

// One of three look-ups, two of them for the same name, is cancelled at each step. The others
// succeed. sweep() checks that no resource is left.
TEST_P(ResolverSteps, CancelAtAnyStepDoesNotAffectOtherTasks) {
  const auto scenario = [&](CancelInjector& injector) -> Task<> {
    FakeDnsServer server;
    server.rules["a.example"] = at("192.0.2.1", "2001:db8::1");
    server.rules["a.example"].delay = 5ms;
    server.rules["a.example AAAA"] = server.rules["a.example"];
    server.rules["a.example AAAA"].behavior = Behavior::truncated;
    int found = 0;
    const auto ask = [&]() -> Task<> {
      ResolverOptions options = only(Addresses(1, server.address()));
      options.hosts_file = "/tmp/hosts";
      Resolver resolver(options);
      const auto all_three = [&](Scope& scope) -> Task<Result<>> {
        auto first = injector.as_target(0, resolver.resolve("a.example"));
        auto second = injector.as_target(1, resolver.resolve("a.example"));
        auto third = injector.as_target(2, resolver.resolve("here.example"));
        const Addresses both = ips("2001:db8::1", "192.0.2.1");
        scope.spawn(note(injector, std::move(first), both, found));
        scope.spawn(note(injector, std::move(second), both, found));
        scope.spawn(note(injector, std::move(third), ips("192.0.2.1"), found));
        co_return {};
      };
      EXPECT_TRUE(co_await with_scope(OnFailure::isolate, all_three));
      EXPECT_EQ(resolver.counters().in_flight.value(), 0U);
    };
    co_await with_name_server(server, ask);
    EXPECT_GE(found, injector.injected() ? 2 : 3);
  };
  EXPECT_GT(sweep(3, scenario), 20U);
}

// The only waiter cancels the look-up. The next request starts a new one.
TEST_P(ResolverSteps, CancelledLookUpIsStartedAgain) {
  int again = 0;
  const auto scenario = [&](CancelInjector& injector) -> Task<> {
    FakeDnsServer server;
    server.rules["a.example"] = at("192.0.2.1");
    server.rules["a.example"].delay = 5ms;
    int found = 0;
    const auto ask = [&]() -> Task<> {
      Resolver resolver(only(Addresses(1, server.address())));
      auto first = injector.as_target(0, resolver.resolve("a.example", Family::ipv4));
      co_await note(injector, std::move(first), ips("192.0.2.1"), found);
      const auto second = co_await resolver.resolve("a.example", Family::ipv4);
      EXPECT_EQ(second.value(), ips("192.0.2.1"));
    };
    co_await with_name_server(server, ask);
    if (server.asked.size() == 2) ++again;
  };
  EXPECT_GT(sweep(1, scenario), 4U);
  EXPECT_GT(again, 0);
}

INSTANTIATE_TEST_SUITE_P(On, ResolverSteps,
                         testing::Values(MemoryFiles::by_backend, MemoryFiles::by_threads),
                         [](const auto& info) {
                           return info.param == MemoryFiles::by_backend ? "backend" : "threads";
                         });

class ResolverTime : public LoopTest {
 protected:
  template <class Body>
  void serve(Body body) {
    run_made([&] { return with_name_server(server_, body); });
  }
  FakeDnsServer server_;
};

/// Resolves a.example once a second for `seconds` seconds, and returns the number of queries that
/// the server has received.
Task<std::size_t> ask_each_second(FakeDnsServer& server, const ResolverOptions& how, int seconds) {
  ResolverOptions options = how;
  options.servers = Addresses(1, server.address());
  Resolver resolver(std::move(options));
  for (int second = 0; second < seconds; ++second) {
    std::ignore = co_await resolver.resolve("a.example", Family::ipv4);
    std::ignore = co_await sleep(1s);
  }
  co_return server.times_asked("a.example A");
}

TEST_F(ResolverTime, KeepsAResultForItsTtl) {
  server_.rules["a.example"] = at("192.0.2.1");
  server_.rules["a.example"].ttl = 10;
  const ResolverOptions options = only(Addresses());
  serve([&]() -> Task<> { EXPECT_EQ(co_await ask_each_second(server_, options, 25), 3U); });
}

TEST_F(ResolverTime, OptionsLimitTheTtl) {
  server_.rules["a.example"] = at("192.0.2.1");
  server_.rules["a.example"].ttl = 3600;
  ResolverOptions options = only(Addresses());
  options.ttl_max = 5s;
  serve([&]() -> Task<> { EXPECT_EQ(co_await ask_each_second(server_, options, 20), 4U); });
  server_.asked.clear();
  server_.rules["a.example"].ttl = 0;
  options.ttl_min = 4s;
  serve([&]() -> Task<> { EXPECT_EQ(co_await ask_each_second(server_, options, 20), 5U); });
}

TEST_F(ResolverTime, NegativeResultsExpireSoon) {
  server_.rules["a.example"].code = 3;
  ResolverOptions options = only(Addresses());
  options.negative_ttl_max = 10s;
  options.failure_ttl = 1s;
  server_.rules["a.example"].negative_ttl = 3600;
  serve([&]() -> Task<> { EXPECT_EQ(co_await ask_each_second(server_, options, 20), 2U); });
  server_.asked.clear();
  server_.rules["a.example"].negative_ttl = 2;
  serve([&]() -> Task<> { EXPECT_EQ(co_await ask_each_second(server_, options, 20), 10U); });
  server_.asked.clear();
  server_.rules["a.example"].negative_ttl.reset();  // RFC 2308 §5: must not be cached
  serve([&]() -> Task<> { EXPECT_EQ(co_await ask_each_second(server_, options, 20), 20U); });
  server_.asked.clear();
  server_.rules["a.example"].code = 2;
  serve([&]() -> Task<> { EXPECT_EQ(co_await ask_each_second(server_, options, 20), 20U); });
}

TEST_F(ResolverTime, ResultOfALaterNameExpiresWithTheEarlierNegativeResult) {
  server_.rules["web.a.example"].code = 3;
  server_.rules["web.a.example"].negative_ttl = 2;
  server_.rules["web.b.example"] = at("192.0.2.2");
  server_.rules["web.b.example"].ttl = 3600;
  serve([&]() -> Task<> {
    ResolverOptions options = only(Addresses(1, server_.address()));
    options.search = std::vector<std::string>{"a.example", "b.example"};
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("web", Family::ipv4)).value(), ips("192.0.2.2"));
    server_.rules["web.a.example"] = at("192.0.2.1");
    EXPECT_EQ((co_await resolver.resolve("web", Family::ipv4)).value(), ips("192.0.2.2"));
    std::ignore = co_await sleep(2s);
    EXPECT_EQ((co_await resolver.resolve("web", Family::ipv4)).value(), ips("192.0.2.1"));
  });
}

TEST_F(ResolverTime, DeadServerCostsItsTimeoutOnce) {
  server_.rules["a.example"].behavior = server_.rules["b.example"].behavior = Behavior::never;
  FakeDnsServer second;
  second.rules["a.example"] = second.rules["b.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    const auto talk = [&]() -> Task<> {
      Addresses servers = ips("127.0.0.1", "127.0.0.1");
      servers[0] = server_.address();
      servers[1] = second.address();
      ResolverOptions options = only(std::move(servers));
      options.timeout = 3s;
      Resolver resolver(options);
      const Instant begun = platform_.now();
      EXPECT_TRUE(co_await resolver.resolve("a.example", Family::ipv4));
      EXPECT_EQ(platform_.now() - begun, 3s);
      EXPECT_TRUE(co_await resolver.resolve("b.example", Family::ipv4));
      EXPECT_EQ(platform_.now() - begun, 3s);
    };
    co_await with_name_server(second, talk);
  });
}

// The first response arrives while the second query waits. Its socket is closed, so it does not
// even count as a stray.
TEST_F(ResolverTime, ResponseAfterTheTimeoutIsIgnored) {
  server_.rules["a.example"] = at("192.0.2.1");
  server_.rules["a.example"].delay = 4s;
  serve([&]() -> Task<> {
    ResolverOptions options = only(Addresses(1, server_.address()));
    options.timeout = 3s;
    options.attempts = 2;
    Resolver resolver(options);
    const std::size_t open = platform_.open_descriptors();
    const auto meanwhile = [&](Scope& scope) -> Task<Result<>> {
      const auto be_faster = [&]() -> Task<> {
        std::ignore = co_await sleep(1s);
        server_.rules["a.example"].delay = 2s;
      };
      scope.spawn(be_faster());
      const Instant begun = platform_.now();
      const auto found = co_await resolver.resolve("a.example", Family::ipv4);
      EXPECT_EQ(found.value(), ips("192.0.2.1"));
      EXPECT_EQ(platform_.now() - begun, 5s) << "from the response to the second query";
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::isolate, meanwhile));
    EXPECT_EQ(server_.asked.size(), 2U);
    EXPECT_EQ(resolver.counters().lookups.value(), 1U);
    EXPECT_EQ(resolver.client_counters().queries.value(), 2U);
    EXPECT_EQ(resolver.client_counters().strays.value(), 0U);
    EXPECT_EQ(platform_.open_descriptors(), open);
  });
}

TEST_F(ResolverTime, QueriesEachServerInEachAttempt) {
  server_.rules["a.example"].behavior = Behavior::never;
  serve([&]() -> Task<> {
    ResolverOptions options = only(Addresses(2, server_.address()));
    options.timeout = 3s;
    options.attempts = 2;
    Resolver resolver(options);
    const Instant begun = platform_.now();
    const auto found = co_await resolver.resolve("a.example", Family::ipv4);
    EXPECT_EQ(found.error(), ResolveError::timed_out);
    EXPECT_EQ(platform_.now() - begun, 12s);
    EXPECT_EQ(server_.asked.size(), 4U);
  });
}

TEST_F(ResolverTime, NoticesAChangedFile) {
  const auto put = [&](std::string_view text) {
    const auto file = platform_.files().open("/tmp/hosts", {.mode = os::FileMode::truncate});
    EXPECT_TRUE(platform_.files().write_at(file->value(), to_bytes(text), 0));
  };
  serve([&]() -> Task<> {
    ResolverOptions options = only(Addresses(1, server_.address()));
    options.hosts_file = "/tmp/hosts";
    Resolver resolver(options);
    put("192.0.2.1 a.example");
    EXPECT_EQ((co_await resolver.resolve("a.example")).value(), ips("192.0.2.1"));
    put("192.0.2.2 a.example");
    std::ignore = co_await sleep(SystemDnsConfig::period + options.hosts_ttl);
    EXPECT_EQ((co_await resolver.resolve("a.example")).value(), ips("192.0.2.2"));
    EXPECT_TRUE(platform_.files().remove("/tmp/hosts"));
    std::ignore = co_await sleep(SystemDnsConfig::period + options.hosts_ttl);
    const auto gone = co_await resolver.resolve("a.example");
    EXPECT_EQ(gone.error(), ResolveError::not_found);
  });
}

TEST_F(ResolverTime, FileThatIsTooLongCountsAsEmpty) {
  const auto write = [&](os::FileMode mode, std::string_view text, std::uint64_t place) {
    const auto file = platform_.files().open("/tmp/hosts", {.mode = mode});
    EXPECT_TRUE(platform_.files().write_at(file->value(), to_bytes(text), place));
  };
  serve([&]() -> Task<> {
    ResolverOptions options = only(Addresses(1, server_.address()));
    options.hosts_file = "/tmp/hosts";
    Resolver resolver(options);
    write(os::FileMode::truncate, "192.0.2.1 a.example\n", 0);
    EXPECT_EQ((co_await resolver.resolve("a.example")).value(), ips("192.0.2.1"));
    write(os::FileMode::read_write, "#", 16 * 1024 * 1024);
    std::ignore = co_await sleep(SystemDnsConfig::period + options.hosts_ttl);
    const auto found = co_await resolver.resolve("a.example");
    EXPECT_EQ(found.error(), ResolveError::not_found);
  });
}

}  // namespace
}  // namespace weir::dns::resolver_steps_test

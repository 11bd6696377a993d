// Tests of a resolver with the files of its machine, and with servers that do not answer.
#include <gtest/gtest.h>

#include <string>

#include "weir/net/files.hpp"
#include "weir/net/test/resolver_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::dns::resolver_files_test {
namespace {

class ResolverFilesTest : public ResolverTest {
 protected:
  /// Returns options that use only the files of this test and the servers in them.
  ResolverOptions with_files() const {
    ResolverOptions options = only(Addresses());
    options.hosts_file = path("hosts");
    options.resolv_conf = path("resolv.conf");
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(On, ResolverFilesTest, every_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ResolverFilesTest, HostsFileComesBeforeTheServers) {
  put("hosts", "192.0.2.1 here.example\n");
  server_.rules["here.example"] = at("192.0.2.9", "2001:db8::9");
  server_.rules["there.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = server_options();
    options.hosts_file = path("hosts");
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("Here.example.")).value(), ips("192.0.2.1"));
    EXPECT_TRUE(server_.asked.empty()) << "also for the family that the file does not have";
    EXPECT_EQ((co_await resolver.resolve("there.example")).value(), ips("192.0.2.8"));
  });
}

TEST_P(ResolverFilesTest, ReadsALongHostsFile) {
  std::string text;
  while (text.size() < 100'000)
    text += "0.0.0.0 blocked" + std::to_string(text.size()) + ".example\n";
  put("hosts", text + "192.0.2.1 here.example");
  serve([&]() -> Task<> {
    ResolverOptions options = with_files();
    options.servers = server_options().servers;
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("here.example")).value(), ips("192.0.2.1"));
    EXPECT_EQ((co_await resolver.resolve("blocked0.example")).value(), ips("0.0.0.0"));
  });
}

TEST_P(ResolverFilesTest, QueriesTheServersWithoutFiles) {
  server_.rules["there.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = with_files();
    options.servers = {server_.address()};
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("there.example")).value(), ips("192.0.2.8"));
  });
}

TEST_P(ResolverFilesTest, TakesSearchAndNdotsFromResolvConf) {
  put("resolv.conf", "nameserver 192.0.2.99\nsearch sub.example\noptions ndots:2\n");
  server_.rules["a.b.sub.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = with_files();
    options.servers = {server_.address()};
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("a.b", Family::ipv4)).value(), ips("192.0.2.8"));
    EXPECT_EQ(server_.asked, std::vector<std::string>{"a.b.sub.example A"});
  });
}

// The queries to the dead server last as long as the test.
TEST_P(ResolverFilesTest, DeadServerDelaysNoOtherTask) {
  put("hosts", "192.0.2.1 here.example\n");
  put("file", "text");
  server_.rules["there.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = unanswered_options();
    options.hosts_file = path("hosts");
    Resolver resolver(options);
    const auto wait_in_vain = [&]() -> Task<> {
      const auto found = co_await resolver.resolve("dead.example");
      EXPECT_EQ(error_of(found), Errc::cancelled);
    };
    const auto meanwhile = [&](Scope& scope) -> Task<Result<>> {
      for (int each = 0; each < 20; ++each) scope.spawn(wait_in_vain());
      EXPECT_EQ((co_await resolver.resolve("here.example")).value(), ips("192.0.2.1"));
      EXPECT_EQ((co_await resolver.resolve("there.example")).value(), ips("192.0.2.8"));
      EXPECT_EQ((co_await files::read_file(path("file"))).value(), "text");
      EXPECT_EQ(resolver.counters().in_flight.value(), 2U);
      scope.cancel();
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::isolate, meanwhile));
    EXPECT_EQ(resolver.counters().in_flight.value(), 0U);
  });
}

TEST_P(ResolverFilesTest, RejectsLookUpsBeyondTheLimit) {
  server_.rules["there.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = unanswered_options();
    options.lookups_max = 1;
    Resolver resolver(options);
    const auto wait_in_vain = [&]() -> Task<> {
      const auto found = co_await resolver.resolve("dead.example", Family::ipv4);
      EXPECT_EQ(error_of(found), Errc::cancelled);
    };
    const auto meanwhile = [&](Scope& scope) -> Task<Result<>> {
      scope.spawn(wait_in_vain());
      scope.spawn(wait_in_vain());
      const auto refused = co_await resolver.resolve("there.example", Family::ipv4);
      EXPECT_EQ(error_of(refused), Errc::limit_reached);
      EXPECT_EQ(resolver.counters().rejected.value(), 1U);
      scope.cancel();
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::isolate, meanwhile));
    EXPECT_TRUE(co_await resolver.resolve("there.example", Family::ipv4));
  });
}

// Names that need no server are resolved, regardless of the number of look-ups that wait for one.
TEST_P(ResolverFilesTest, NamesThatNeedNoServerAreNeverRejected) {
  put("hosts", "192.0.2.1 here.example\n192.0.2.2 also.example\n");
  server_.rules["there.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = unanswered_options();
    options.hosts_file = path("hosts");
    options.lookups_max = 1;
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("there.example", Family::ipv4)).value(), ips("192.0.2.8"));
    const auto wait_in_vain = [&]() -> Task<> {
      const auto found = co_await resolver.resolve("dead.example", Family::ipv4);
      EXPECT_EQ(error_of(found), Errc::cancelled);
    };
    const auto meanwhile = [&](Scope& scope) -> Task<Result<>> {
      scope.spawn(wait_in_vain());
      const auto refused = co_await resolver.resolve("other.example", Family::ipv4);
      EXPECT_EQ(error_of(refused), Errc::limit_reached);
      const auto both =
          co_await all(resolver.resolve("here.example"), resolver.resolve("also.example"));
      EXPECT_TRUE(both) << "names of the hosts file do not count against the limit";
      if (both) {
        EXPECT_EQ(std::get<0>(*both), ips("192.0.2.1"));
        EXPECT_EQ(std::get<1>(*both), ips("192.0.2.2"));
      }
      EXPECT_EQ((co_await resolver.resolve("there.example", Family::ipv4)).value(),
                ips("192.0.2.8"));
      EXPECT_EQ((co_await resolver.resolve("192.0.2.7")).value(), ips("192.0.2.7"));
      EXPECT_EQ((co_await resolver.resolve("localhost")).value(), ips("::1", "127.0.0.1"));
      EXPECT_EQ(resolver.counters().rejected.value(), 1U);
      EXPECT_EQ(resolver.counters().querying.value(), 1U);
      scope.cancel();
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::isolate, meanwhile));
    EXPECT_EQ(resolver.counters().querying.value(), 0U);
  });
}

TEST_P(ResolverFilesTest, UsesTheFilesIfNoQueriesAreAllowed) {
  put("hosts", "192.0.2.1 here.example\n");
  serve([&]() -> Task<> {
    ResolverOptions options = unanswered_options();
    options.hosts_file = path("hosts");
    options.lookups_max = 0;
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("here.example")).value(), ips("192.0.2.1"));
    const auto refused = co_await resolver.resolve("there.example");
    EXPECT_EQ(error_of(refused), Errc::limit_reached);
  });
}

// A hanging file on a network must not collect an unlimited number of look-ups.
TEST_P(ResolverFilesTest, AtMostSixteenTimesTheLimitWaitForTheFiles) {
  put("hosts", "192.0.2.1 here.example\n");
  serve([&]() -> Task<> {
    ResolverOptions options = unanswered_options();
    options.hosts_file = path("hosts");
    options.lookups_max = 1;
    Resolver resolver(options);
    int ends = 0;
    const auto look_up = [&](int number) -> Task<> {
      const std::string name = "n" + std::to_string(number) + ".example";
      const std::error_code error = error_of(co_await resolver.resolve(name, Family::ipv4));
      EXPECT_TRUE(error == Errc::limit_reached || error == ResolveError::not_found)
          << error.message();
      ++ends;
    };
    const auto meanwhile = [&](Scope& scope) -> Task<Result<>> {
      for (int each = 0; each < 40; ++each) scope.spawn(look_up(each));
      std::ignore = co_await sleep(Duration::zero());
      EXPECT_LE(resolver.counters().in_flight.value(), 17U);
      EXPECT_GE(resolver.counters().rejected.value(), 23U);
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::isolate, meanwhile));
    EXPECT_EQ(ends, 40);
    EXPECT_EQ(resolver.counters().in_flight.value(), 0U);
  });
}

TEST_P(ResolverFilesTest, ShortTimeoutOfOneTaskDoesNotAffectAnother) {
  server_.rules["slow.example"] = at("192.0.2.1");
  server_.rules["slow.example"].delay = 20ms;
  serve([&]() -> Task<> {
    Resolver resolver(server_options());
    const auto hasty = [&]() -> Task<Result<Addresses>> {
      auto found = co_await timeout(1ms, resolver.resolve("slow.example", Family::ipv4));
      EXPECT_TRUE(found || found.error() == Errc::timed_out);
      if (!found) co_return Addresses();
      co_return found;
    };
    const auto both = co_await all(hasty(), resolver.resolve("slow.example", Family::ipv4));
    EXPECT_TRUE(both);
    if (both) {
      EXPECT_EQ(std::get<1>(*both), ips("192.0.2.1"));
    }
    EXPECT_EQ(server_.asked.size(), 1U);
  });
}

TEST_P(ResolverFilesTest, CoreHasOneResolver) {
  const auto look = [&]() -> Task<> {
    const auto local = co_await dns::resolve("localhost", 7);
    EXPECT_EQ(local.value().size(), 2U);
  };
  run(look());
  run(look());
  EXPECT_EQ(core_resolver(*loop_).counters().requests.value(), 4U);
  const MetricSnapshot metrics = loop_->metrics().read();
  ASSERT_FALSE(metrics.metrics().empty());
  EXPECT_EQ(metrics.metrics()[0].name, "dns requests");
  EXPECT_EQ(metrics.metrics()[0].value, 4U);
}

// The counters stay, regardless of whether the loop or the resolver is destroyed first.
TEST_P(ResolverFilesTest, MetricsOutliveAResolver) {
  const auto look = [](Resolver& resolver) -> Task<> {
    EXPECT_TRUE(co_await resolver.resolve("localhost", 7));
  };
  Resolver longer;
  {
    Resolver resolver;
    run(look(resolver));
    run(look(longer));
  }
  EXPECT_EQ(loop_->metrics().read().metrics()[0].value, 4U);
  loop_.reset();
}

}  // namespace
}  // namespace weir::dns::resolver_files_test

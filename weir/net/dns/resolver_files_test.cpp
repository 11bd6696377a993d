// A resolver and the files of its machine; and what nobody may be held up by.
#include <gtest/gtest.h>

#include <string>

#include "weir/net/files.hpp"
#include "weir/net/test/resolver_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::names {
namespace {

class ResolverFilesTest : public ResolverTest {
 protected:
  /// Options that know the files of this test, and no servers but what they say.
  ResolverOptions with_files() const {
    ResolverOptions options = only(Addresses());
    options.hosts_file = path("hosts");
    options.resolv_conf = path("resolv.conf");
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(On, ResolverFilesTest, every_files_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ResolverFilesTest, TheHostsFileComesBeforeTheServers) {
  put("hosts", "192.0.2.1 here.example\n");
  server_.rules["here.example"] = at("192.0.2.9", "2001:db8::9");
  server_.rules["there.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = ours();
    options.hosts_file = path("hosts");
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("Here.example.")).value(), ips("192.0.2.1"));
    EXPECT_TRUE(server_.asked.empty()) << "also for the family that is not in it";
    EXPECT_EQ((co_await resolver.resolve("there.example")).value(), ips("192.0.2.8"));
  });
}

TEST_P(ResolverFilesTest, ALongHostsFileIsReadToo) {
  std::string text;
  while (text.size() < 100'000)
    text += "0.0.0.0 blocked" + std::to_string(text.size()) + ".example\n";
  put("hosts", text + "192.0.2.1 here.example");
  serve([&]() -> Task<> {
    ResolverOptions options = with_files();
    options.servers = ours().servers;
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("here.example")).value(), ips("192.0.2.1"));
    EXPECT_EQ((co_await resolver.resolve("blocked0.example")).value(), ips("0.0.0.0"));
  });
}

TEST_P(ResolverFilesTest, WithoutFilesTheServersAreAsked) {
  server_.rules["there.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = with_files();
    options.servers = {server_.address()};
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("there.example")).value(), ips("192.0.2.8"));
  });
}

TEST_P(ResolverFilesTest, SearchAndItsDotsComeFromResolvConf) {
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

// The dead server is asked for as long as the test lasts.
TEST_P(ResolverFilesTest, ADeadServerHoldsUpNobody) {
  put("hosts", "192.0.2.1 here.example\n");
  put("file", "text");
  server_.rules["there.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = to_the_dead();
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
      EXPECT_EQ(resolver.counters().under_way.value(), 2U);
      scope.cancel();
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::supervise, meanwhile));
    EXPECT_EQ(resolver.counters().under_way.value(), 0U);
  });
}

TEST_P(ResolverFilesTest, MoreThanIsAllowedAtOnceIsRefused) {
  server_.rules["there.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = to_the_dead();
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
      EXPECT_EQ(resolver.counters().refused.value(), 1U);
      scope.cancel();
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::supervise, meanwhile));
    EXPECT_TRUE(co_await resolver.resolve("there.example", Family::ipv4));
  });
}

// However many wait for dead servers, what can be told without any is.
TEST_P(ResolverFilesTest, WhatNeedsNoServerIsNeverRefused) {
  put("hosts", "192.0.2.1 here.example\n192.0.2.2 also.example\n");
  server_.rules["there.example"] = at("192.0.2.8");
  serve([&]() -> Task<> {
    ResolverOptions options = to_the_dead();
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
      EXPECT_TRUE(both) << "of the hosts file, more at once than may ask servers";
      if (both) {
        EXPECT_EQ(std::get<0>(*both), ips("192.0.2.1"));
        EXPECT_EQ(std::get<1>(*both), ips("192.0.2.2"));
      }
      EXPECT_EQ((co_await resolver.resolve("there.example", Family::ipv4)).value(),
                ips("192.0.2.8"));
      EXPECT_EQ((co_await resolver.resolve("192.0.2.7")).value(), ips("192.0.2.7"));
      EXPECT_EQ((co_await resolver.resolve("localhost")).value(), ips("::1", "127.0.0.1"));
      EXPECT_EQ(resolver.counters().refused.value(), 1U);
      EXPECT_EQ(resolver.counters().at_servers.value(), 1U);
      scope.cancel();
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::supervise, meanwhile));
    EXPECT_EQ(resolver.counters().at_servers.value(), 0U);
  });
}

TEST_P(ResolverFilesTest, WhoMayAskNoServerHasTheFiles) {
  put("hosts", "192.0.2.1 here.example\n");
  serve([&]() -> Task<> {
    ResolverOptions options = to_the_dead();
    options.hosts_file = path("hosts");
    options.lookups_max = 0;
    Resolver resolver(options);
    EXPECT_EQ((co_await resolver.resolve("here.example")).value(), ips("192.0.2.1"));
    const auto refused = co_await resolver.resolve("there.example");
    EXPECT_EQ(error_of(refused), Errc::limit_reached);
  });
}

// A file of a network that hangs must not gather all who ask.
TEST_P(ResolverFilesTest, NoMoreThanSixteenTimesAsManyWaitForTheFiles) {
  put("hosts", "192.0.2.1 here.example\n");
  serve([&]() -> Task<> {
    ResolverOptions options = to_the_dead();
    options.hosts_file = path("hosts");
    options.lookups_max = 1;
    Resolver resolver(options);
    int ends = 0;
    const auto look_up = [&](int number) -> Task<> {
      const std::string name = "n" + std::to_string(number) + ".example";
      const std::error_code error = error_of(co_await resolver.resolve(name, Family::ipv4));
      EXPECT_TRUE(error == Errc::limit_reached || error == Failure::not_found) << error.message();
      ++ends;
    };
    const auto meanwhile = [&](Scope& scope) -> Task<Result<>> {
      for (int each = 0; each < 40; ++each) scope.spawn(look_up(each));
      static_cast<void>(co_await sleep(Duration::zero()));
      EXPECT_LE(resolver.counters().under_way.value(), 17U);
      EXPECT_GE(resolver.counters().refused.value(), 23U);
      co_return {};
    };
    EXPECT_TRUE(co_await with_scope(OnFailure::supervise, meanwhile));
    EXPECT_EQ(ends, 40);
    EXPECT_EQ(resolver.counters().under_way.value(), 0U);
  });
}

TEST_P(ResolverFilesTest, WhoHasTimeEnoughIsNotHurtByWhoHasNot) {
  server_.rules["slow.example"] = at("192.0.2.1");
  server_.rules["slow.example"].delay = 20ms;
  serve([&]() -> Task<> {
    Resolver resolver(ours());
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

TEST_P(ResolverFilesTest, TheResolverOfACoreIsAlwaysTheSame) {
  const auto look = [&]() -> Task<> {
    const auto local = co_await names::resolve("localhost", 7);
    EXPECT_EQ(local.value().size(), 2U);
  };
  run(look());
  run(look());
  EXPECT_EQ(core_resolver(*loop_).counters().asked.value(), 4U);
  const FigureSum figures = loop_->figures().read();
  ASSERT_FALSE(figures.figures().empty());
  EXPECT_EQ(figures.figures()[0].name, "names asked for");
  EXPECT_EQ(figures.figures()[0].value, 4U);
}

// Whichever goes first, and what it has counted stays.
TEST_P(ResolverFilesTest, ItsFiguresOutliveIt) {
  const auto look = [](Resolver& resolver) -> Task<> {
    EXPECT_TRUE(co_await resolver.resolve("localhost", 7));
  };
  Resolver longer;
  {
    Resolver resolver;
    run(look(resolver));
    run(look(longer));
  }
  EXPECT_EQ(loop_->figures().read().figures()[0].value, 4U);
  loop_.reset();
}

}  // namespace
}  // namespace weir::names

// Tests of the hosts file and resolv.conf in virtual time: when they are read, and what an
// unreadable file changes. A read of the hosts file takes 20 ms, one step for its text and one for
// its end.

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "weir/net/test/resolver_fixture.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"

namespace weir::dns::resolver_reload_test {
namespace {

constexpr Duration read_time = 20ms;
constexpr Duration period = SystemDnsConfig::period;

MemoryPlatformOptions slow_files() {
  MemoryPlatformOptions options;
  options.files = MemoryFiles::by_backend;
  options.file_time = read_time / 2;
  return options;
}

class ResolverReload : public CancelSweepTest {
 protected:
  ResolverReload() : CancelSweepTest(slow_files()) {}

  void put(std::string_view text, os::FileMode mode = os::FileMode::truncate,
           std::uint64_t place = 0) {
    const auto file = platform_.files().open("/tmp/hosts", {.mode = mode});
    EXPECT_TRUE(platform_.files().write_at(file->value(), to_bytes(text), place));
  }
  static Task<> pass(Duration time) { std::ignore = co_await sleep(time); }

  /// Runs `body(resolver)`, which returns a Task<>. The resolver uses the hosts file and a server
  /// that knows no name. It caches nothing.
  template <class Body>
  void serve(Body body) {
    const auto with_resolver = [&]() -> Task<> {
      ResolverOptions options = only(Addresses(1, server_.address()));
      options.hosts_file = "/tmp/hosts";
      options.cache_max = 0;
      Resolver resolver(options);
      co_await body(resolver);
    };
    run_made([&] { return with_name_server(server_, with_resolver); });
  }
  /// Looks up a name, and returns the time that it took. Expects `address`, or no such name if
  /// `address` is empty.
  Task<Duration> time_of(Resolver& resolver, std::string_view address,
                         std::string name = "here.example") {
    const Instant begun = platform_.now();
    const auto found = co_await resolver.resolve(std::move(name), Family::ipv4);
    if (address.empty()) {
      EXPECT_EQ(error_of(found), ResolveError::not_found);
    } else {
      EXPECT_TRUE(found);
      if (found) {
        EXPECT_EQ(*found, ips(address));
      }
    }
    co_return platform_.now() - begun;
  }

  FakeDnsServer server_;
};

TEST_F(ResolverReload, ReadsOnlyChangedFilesAndChecksThemOncePerPeriod) {
  put("192.0.2.1 here.example");
  serve([&](Resolver& resolver) -> Task<> {
    co_await pass(3s);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), read_time);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), 0s);
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), 0s) << "the file has not changed";
    put("192.0.2.2 here.example");
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), 0s) << "the next check is not due";
    co_await pass(period - 1ns);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), 0s);
    co_await pass(1ns);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.2"), read_time);
  });
}

// The clock of a file system is coarse. A recently modified file may change again without a sign.
TEST_F(ResolverReload, ReadsARecentlyModifiedFileAgain) {
  put("192.0.2.1 here.example");
  serve([&](Resolver& resolver) -> Task<> {
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), read_time);
    co_await pass(1s);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), 0s) << "the next check is not due";
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), read_time);
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), 0s);
  });
}

TEST_F(ResolverReload, FileIsRecentlyModifiedForLessThanTwoSeconds) {
  serve([&](Resolver& resolver) -> Task<> {
    put("192.0.2.1 here.example");
    co_await pass(2s - 1ns);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), read_time);
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), read_time);
    co_await pass(period - 2s);
    put("192.0.2.2 here.example");
    co_await pass(2s);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.2"), read_time);
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.2"), 0s);
  });
}

TEST_F(ResolverReload, NoticesAChangeOfTheSizeAlone) {
  const WallTime written = platform_.wall_time();
  put("192.0.2.1 here.example");
  serve([&](Resolver& resolver) -> Task<> {
    co_await pass(3s);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), read_time);
    platform_.set_wall_time(written);
    put("192.0.2.22 here.example");
    platform_.set_wall_time(written + 1h);
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.22"), read_time);
  });
}

TEST_F(ResolverReload, SimultaneousLookUpsReadTheFilesOnce) {
  put("192.0.2.1 here.example\n192.0.2.2 there.example");
  serve([&](Resolver& resolver) -> Task<> {
    const auto times = co_await all(time_of(resolver, "192.0.2.1"),
                                    time_of(resolver, "192.0.2.2", "there.example"));
    EXPECT_EQ(std::get<0>(times.value()), read_time);
    EXPECT_EQ(std::get<1>(times.value()), read_time);
  });
}

TEST_F(ResolverReload, UnreadableFileKeepsItsContent) {
  put("192.0.2.1 here.example");
  serve([&](Resolver& resolver) -> Task<> {
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), read_time);
    put("192.0.2.2 here.example");
    EXPECT_TRUE(platform_.files().set_permissions("/tmp/hosts", 0));
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), 0s);
    EXPECT_TRUE(platform_.files().set_permissions("/tmp/hosts", 0600));
    EXPECT_TRUE(platform_.files().set_permissions("/tmp", 0));
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), 0s) << "the folder is unreadable";
    EXPECT_TRUE(platform_.files().set_permissions("/tmp", 0700));
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.2"), read_time);
  });
}

TEST_F(ResolverReload, FileThatComesBackUnchangedIsReadAgain) {
  put("192.0.2.1 here.example");
  serve([&](Resolver& resolver) -> Task<> {
    co_await pass(3s);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), read_time);
    EXPECT_TRUE(platform_.files().rename("/tmp/hosts", "/tmp/elsewhere"));
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, ""), 0s);
    EXPECT_TRUE(platform_.files().rename("/tmp/elsewhere", "/tmp/hosts"));
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, "192.0.2.1"), read_time);
  });
}

TEST_F(ResolverReload, LongestFileHas16Mebibytes) {
  constexpr std::uint64_t longest = 16 * 1024 * 1024;
  serve([&](Resolver& resolver) -> Task<> {
    put("192.0.2.1 here.example\n");
    put("\n", os::FileMode::read_write, longest - 1);
    std::ignore = co_await time_of(resolver, "192.0.2.1");
    put("\n", os::FileMode::read_write, longest);
    co_await pass(period);
    EXPECT_EQ(co_await time_of(resolver, ""), 0s);
  });
}

// A cancelled check counts as none, also while another thread parses the text.
TEST_F(ResolverReload, CheckIsRepeatedAfterACancel) {
  std::string text;
  while (text.size() <= 64 * 1024) text += "192.0.2.9 there.example\n";
  put(text + "192.0.2.1 here.example");
  const auto scenario = [&](CancelInjector& injector) -> Task<> {
    FakeDnsServer server;
    const auto talk = [&]() -> Task<> {
      ResolverOptions options = only(Addresses(1, server.address()));
      options.hosts_file = "/tmp/hosts";
      options.cache_max = 0;
      Resolver resolver(options);
      co_await pass(3s);
      auto first = injector.as_target(0, resolver.resolve("here.example", Family::ipv4));
      const auto found = co_await std::move(first);
      EXPECT_TRUE(found || found.error() == Errc::cancelled);
      EXPECT_EQ((co_await resolver.resolve("here.example", Family::ipv4)).value(),
                ips("192.0.2.1"));
      EXPECT_TRUE(server.asked.empty());
    };
    co_await with_name_server(server, talk);
  };
  EXPECT_GT(sweep(1, scenario), 4U);
}

/// The ends of two checks at the same time, of which the second waits for the first.
struct TwoChecks {
  SystemDnsConfig config{"/tmp/none", ""};
  CancelSource source;  ///< of the second check
  bool first_ended = false;
  bool second_ended = false;
  bool cancelled_in_time = false;  ///< true if it was cancelled before either had ended
  bool second_was_last = false;
};

Task<> check_first(TwoChecks& checks) {
  EXPECT_TRUE(co_await checks.config.refresh());
  checks.first_ended = true;
}

Task<> check_second(TwoChecks& checks) {
  Context context = co_await this_context();
  context.cancel = &checks.source;
  auto checking = in_context(context, checks.config.refresh());
  const Result<> checked = co_await std::move(checking);
  checks.second_ended = true;
  checks.second_was_last = checks.first_ended;
  EXPECT_EQ(error_of(checked),
            checks.cancelled_in_time ? make_error_code(Errc::cancelled) : std::error_code());
}

/// Cancels the second check after some calls of the kind that a check makes. The loop resumes this
/// task before the first check if both calls end in one turn.
Task<> cancel_second(TwoChecks& checks, int calls) {
  for (int call = 0; call < calls; ++call) {
    EXPECT_EQ(error_of(co_await files::status("/tmp/none")), system_error(ENOENT));
  }
  checks.cancelled_in_time = !checks.first_ended && !checks.second_ended;
  checks.source.cancel();
}

TEST_F(ResolverReload, CancelledCheckFailsThoughAnotherEndsBeforeItResumes) {
  int overtaken = 0;
  for (int calls = 0; calls < 4; ++calls) {
    SCOPED_TRACE(calls);
    TwoChecks checks;
    EXPECT_TRUE(run_made([&] {
      return all(cancel_second(checks, calls), check_first(checks), check_second(checks));
    }));
    if (checks.cancelled_in_time && checks.second_was_last) ++overtaken;
  }
  EXPECT_GT(overtaken, 0) << "no run has the order of this test";
}

class ResolvConfInUse : public ResolverReload {
 protected:
  /// Runs `body()` while a server answers on port 53 of this machine.
  template <class Body>
  void serve_on_53(Body body) {
    run_made([&] { return with_name_server(server_, body, Endpoint::loopback(53)); });
  }
  void put_conf(std::string_view text) {
    const auto file = platform_.files().open("/tmp/resolv", {.mode = os::FileMode::truncate});
    EXPECT_TRUE(platform_.files().write_at(file->value(), to_bytes(text), 0));
  }
  static ResolverOptions of_file() {
    ResolverOptions options;
    options.hosts_file.clear();
    options.resolv_conf = "/tmp/resolv";
    return options;
  }
};

TEST_F(ResolvConfInUse, GivesServersTimeoutAndAttempts) {
  put_conf("nameserver 127.0.0.1\noptions timeout:2 attempts:3\n");
  server_.rules["dead.example"].behavior = Behavior::never;
  server_.rules["a.example"] = at("192.0.2.1");
  serve_on_53([&]() -> Task<> {
    Resolver resolver(of_file());
    EXPECT_EQ((co_await resolver.resolve("a.example")).value(), ips("192.0.2.1"));
    const Instant begun = platform_.now();
    const auto found = co_await resolver.resolve("dead.example", Family::ipv4);
    EXPECT_EQ(error_of(found), ResolveError::timed_out);
    EXPECT_EQ(platform_.now() - begun, 6s);
  });
}

TEST_F(ResolvConfInUse, IsOverriddenByTheOptions) {
  put_conf("nameserver 192.0.2.99\noptions timeout:2 attempts:3\n");
  server_.rules["dead.example"].behavior = Behavior::never;
  serve_on_53([&]() -> Task<> {
    ResolverOptions options = of_file();
    options.servers = ips("127.0.0.1");  // on port 53
    options.timeout = 1s;
    options.attempts = 1;
    Resolver resolver(options);
    std::ignore = co_await resolver.resolve("absent.example");
    const Instant begun = platform_.now();
    const auto found = co_await resolver.resolve("dead.example", Family::ipv4);
    EXPECT_EQ(error_of(found), ResolveError::timed_out);
    EXPECT_EQ(platform_.now() - begun, 1s);
    EXPECT_EQ(server_.times_asked("dead.example A"), 1U);
  });
}

TEST_F(ResolvConfInUse, OptionsOverrideItsSearchDomainsAndDots) {
  put_conf("nameserver 127.0.0.1\nsearch sub.example\noptions ndots:1\n");
  server_.rules["a.b.sub.example"] = at("192.0.2.1");
  serve_on_53([&]() -> Task<> {
    ResolverOptions options = of_file();
    options.search.emplace();
    Resolver without_search(options);
    const auto absent = co_await without_search.resolve("a", Family::ipv4);
    EXPECT_EQ(error_of(absent), ResolveError::not_found);
    EXPECT_EQ(server_.asked, std::vector<std::string>{"a A"});
    server_.asked.clear();
    options.search.reset();
    options.ndots = 2;
    Resolver with_dots(options);
    EXPECT_EQ((co_await with_dots.resolve("a.b", Family::ipv4)).value(), ips("192.0.2.1"));
    EXPECT_EQ(server_.asked, std::vector<std::string>{"a.b.sub.example A"});
  });
}

}  // namespace
}  // namespace weir::dns::resolver_reload_test

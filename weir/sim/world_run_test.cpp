// Tests of the run of a World: the order of turns, the moves of the clock, checks, signals to
// services, and runs that do not end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/sim/peer.hpp"
#include "weir/sim/test/world_fixture.hpp"
#include "weir/sim/world.hpp"
#include "weir/testing/test/probe.hpp"

namespace weir::sim::world_run_test {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

WorldOptions without_jitter(std::uint64_t seed = 1) {
  return {.seed = seed, .jitter = no_jitter};
}
Task<> sleep_for(Scope&, Duration time) {
  std::ignore = co_await sleep(time);
}
/// Returns a main that ends after `time`.
MainFunction main_for(Duration time) {
  return [time](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core(sleep_for, time);
  };
}
int serve_for_ever(loop::Platform& host) {
  return Runtime(host, quiet()).run_on_each_core(serve_echo);
}
std::string content_of(Host& host, const std::string& path) {
  const auto file = host.files().open(path, {});
  if (!file) return "error";
  std::string text(1000, '\0');
  text.resize(
      host.files().read_at(file->value(), std::as_writable_bytes(std::span(text)), 0).value());
  return text;
}

TEST(WorldHosts, AreMadeOnce) {
  World world(without_jitter());
  Host& one = world.host("one");
  Host& process = world.process(one, "process");
  Host& two = world.host("two", {.cores = 2});
  EXPECT_EQ(&world.host("one", {.cores = 7}), &one);
  EXPECT_EQ(&world.process(one, "process"), &process);
  EXPECT_EQ(&world.host("two"), &two);
  EXPECT_EQ(process.address(7), one.address(7));
  EXPECT_NE(two.address(7), one.address(7));
  EXPECT_EQ(process.name(), "process");
}

TEST(WorldHosts, HaveTheNamesOfAllHosts) {
  World world(without_jitter());
  Host& one = world.host("one");
  Host& strange = world.host("not a name");
  Host& two = world.host("two-2.example");
  Host& process = world.process(one, "process");
  const std::string expected =
      "127.0.0.1 localhost\n::1 localhost\n10.0.0.1 one\n10.0.0.3 two-2.example\n";
  for (Host* const each : {&one, &strange, &two, &process}) {
    EXPECT_EQ(content_of(*each, "/etc/hosts"), expected) << each->name();
    EXPECT_EQ(each->files().path_status("/etc/hosts")->permissions, 0644U);
    EXPECT_EQ(each->files().path_status("/etc")->permissions, 0755U);
    EXPECT_EQ(each->open_descriptors(), 0U);
  }
  ASSERT_TRUE(one.files().remove("/etc/hosts"));
  ASSERT_TRUE(one.files().make_directory("/etc/hosts", 0700));
  world.host("later");
  EXPECT_EQ(content_of(one, "/etc/hosts"), "error") << "the test has made something else";
  EXPECT_EQ(content_of(two, "/etc/hosts"), expected + "10.0.0.5 later\n");
  for (const char* const name : {"under_score", "a/b", "a:b", "UPPER-9.x"}) world.host(name);
  EXPECT_EQ(content_of(two, "/etc/hosts"), expected + "10.0.0.5 later\n10.0.0.9 UPPER-9.x\n")
      << "DNS does not allow the other names";
  two.files().lose_power();
  EXPECT_EQ(content_of(two, "/etc/hosts"), expected + "10.0.0.5 later\n10.0.0.9 UPPER-9.x\n");
}

TEST(WorldHosts, NameLaterHostsToDeadAndFullProcesses) {
  World world(without_jitter());
  Host& killed = world.host("killed");
  Host& full = world.host("full", {.descriptors_max = 0});
  killed.start(main_for(1h));
  world.schedule(1s, [&] {
    killed.kill();
    world.host("later");
  });
  EXPECT_TRUE(world.run_until_done(1h).ok());
  EXPECT_TRUE(killed.killed());
  EXPECT_EQ(killed.files().make_directory("/new", 0700).error(), system_error(EINTR));
  EXPECT_EQ(full.files().open("/etc/hosts", {}).error(), system_error(EMFILE));
  full.set_descriptors_max(1);
  for (Host* const each : {&killed, &full}) {
    EXPECT_EQ(content_of(*each, "/etc/hosts"),
              "127.0.0.1 localhost\n::1 localhost\n10.0.0.1 killed\n10.0.0.2 full\n"
              "10.0.0.3 later\n");
  }
}

TEST(WorldNetwork, APartitionCutsBothDirections) {
  World world(without_jitter());
  Host& one = world.host("one");
  Host& two = world.host("two");
  Host& three = world.host("three");
  std::vector<loop::Descriptor> listeners;
  for (Host* const each : {&one, &two, &three}) {
    listeners.push_back(each->listen(Endpoint::any(80), {}).value());
  }
  const auto connects = [](Host& from, Host& to) { return Peer(from, to.address(80)).connected(); };
  world.partition(one, two);
  EXPECT_FALSE(connects(one, two));
  EXPECT_FALSE(connects(two, one));
  EXPECT_TRUE(connects(one, three));
  EXPECT_TRUE(connects(three, two));
  world.heal(one, two);
  EXPECT_TRUE(connects(one, two));
  EXPECT_TRUE(connects(two, one));
}

TEST(WorldNetwork, DataOfACutDirectionWaits) {
  for (const bool from_one : {false, true}) {
    World world(without_jitter());
    Host& one = world.host("one");
    Host& two = world.host("two");
    const loop::Descriptor listener = two.listen(Endpoint::any(80), {}).value();
    Peer client(one, two.address(80));
    auto server = two.descriptors().listener(listener.value())->take();
    world.partition(one, two);
    if (from_one) client.send("x");
    if (!from_one) {
      ASSERT_TRUE(server->send(to_bytes("x")));
    }
    const auto arrived = [&] { return from_one ? server->unread() : client.received().size(); };
    world.jump(1s);
    EXPECT_EQ(arrived(), 0U);
    world.heal(one, two);
    world.jump(10s);
    EXPECT_EQ(arrived(), 1U);
    server.reset();
  }
}

TEST(WorldNetwork, ASlowLinkIsSlowInBothDirections) {
  EchoWorld echo(without_jitter());
  echo.world.slow_down(echo.client, echo.server, 3s);
  EXPECT_TRUE(echo.run().ok());
  EXPECT_EQ(echo.request.elapsed, 6s + 400us) << "a handshake, and a round trip with a delay";
  for (const Duration extra : {0s, 1s}) {
    EchoWorld again(without_jitter());
    again.world.slow_down(again.client, again.server, 3s);
    again.world.slow_down(again.server, again.client, extra);
    EXPECT_TRUE(again.run().ok());
    EXPECT_EQ(again.request.elapsed, 2 * extra + 400us) << "the last call counts";
  }
}

TEST(WorldClock, JumpsAreTracedAndMakeEventsLate) {
  World world({.seed = 1, .jitter = no_jitter, .trace = true});
  const Instant start = world.now();
  std::vector<Duration> seen;
  world.schedule(2s, [&] { seen.push_back(world.now() - start); });
  world.jump(5s);
  EXPECT_EQ(world.now() - start, 5s);
  EXPECT_THAT(seen, ElementsAre(2s));
  EXPECT_EQ(world.trace(), "0.000000000 - the clock jumps\n");
}

TEST(WorldClock, AJumpMovesTheClocksOfAllHostsAndMakesTimersLate) {
  World world(without_jitter());
  Host& one = world.host("one");
  Host& two = world.host("two");
  one.start(main_for(1min));
  const Instant start = world.now();
  world.schedule(10s, [&] {
    const WallTime before = one.wall_time();
    EXPECT_EQ(two.wall_time(), before);
    world.jump(1h);
    EXPECT_EQ(world.now() - start, 1h + 10s);
    EXPECT_EQ(one.wall_time() - before, 1h);
    EXPECT_EQ(two.wall_time() - before, 1h);
  });
  EXPECT_TRUE(world.run_until_done(2h).ok());
  EXPECT_EQ(world.now() - start, 1h + 10s) << "the timer was due meanwhile";
}

TEST(WorldClock, AHostThatIsMadeLaterHasTheSameWallClock) {
  World world(without_jitter());
  Host& early = world.host("early");
  const WallTime start = early.wall_time();
  world.jump(90s);
  Host& late = world.host("late");
  Host& process = world.process(early, "process");
  for (Host* const each : {&early, &late, &process}) EXPECT_EQ(each->wall_time(), start + 90s);
}

TEST(WorldClock, EventsHappenBetweenTurnsAtTheirTimes) {
  World world(without_jitter());
  world.host("host").start(main_for(10s));
  const Instant start = world.now();
  std::string order;
  world.schedule(3s, [&] {
    order += "c";
    EXPECT_EQ(world.now() - start, 3s);
    EXPECT_EQ(Loop::current(), nullptr);
    world.schedule(1s, [&] { order += "d"; });
  });
  world.schedule(1s, [&] { order += "a"; });
  world.schedule(1s, [&] { order += "b"; });
  world.schedule(11s, [&] { order += "too late"; });
  EXPECT_TRUE(world.run_until_done(1h).ok());
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(world.now() - start, 10s);
}

TEST(WorldClock, TheLimitIncludesItsEnd) {
  for (const Duration limit : {Duration(10s), Duration(10s - 1ns)}) {
    World world(without_jitter());
    world.host("host").start(main_for(10s));
    const WorldReport report = world.run_until_done(limit);
    EXPECT_EQ(report.ok(), limit == 10s) << report.text();
  }
}

TEST(WorldClock, TimeWithoutWorkPassesFromTimerToTimer) {
  World world(without_jitter());
  std::vector<Duration> ends;
  for (const char* const name : {"one", "two", "three"}) {
    const Duration time = std::string_view(name).size() * 1s;
    world.host(name).start([&ends, &world, start = world.now(), time](loop::Platform& host) {
      const int status = Runtime(host, quiet()).run_on_each_core(sleep_for, time);
      ends.push_back(world.now() - start);
      return status;
    });
  }
  EXPECT_TRUE(world.run_until_done(1h).ok());
  EXPECT_THAT(ends, ElementsAre(3s, 3s, 5s));
}

TEST(WorldTurns, HaveARandomOrder) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    World world(without_jitter(seed));
    std::string order;
    for (const char name : {'a', 'b', 'c'}) {
      world.host(std::string(1, name)).start([&order, name](loop::Platform& host) {
        return Runtime(host, quiet()).run_on_each_core([&order, name](Scope&) -> Task<> {
          std::ignore = co_await sleep(1s);
          order += name;
        });
      });
    }
    EXPECT_TRUE(world.run_until_done(1h).ok());
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6U) << "every order of three hosts";
}

Task<> sleep_often(Scope& scope, std::vector<Duration>& late) {
  for (int sleeps = 0; sleeps < 200; ++sleeps) {
    const Instant begun = scope.loop().platform().now();
    std::ignore = co_await sleep(1s);
    late.push_back(scope.loop().platform().now() - begun - 1s);
  }
}

TEST(WorldTurns, SomeAreLate) {
  for (const double rate : {0.0, 0.3}) {
    WorldOptions options = without_jitter();
    options.jitter.late_turn = rate;
    options.jitter.late_turn_max = 20ms;
    World world(options);
    std::vector<Duration> late;
    world.host("host").start([&](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(sleep_often, std::ref(late));
    });
    EXPECT_TRUE(world.run_until_done(1h).ok());
    ASSERT_EQ(late.size(), 200U);
    const auto much = std::ranges::count_if(late, [](Duration each) { return each > 2ms; });
    if (rate == 0) {
      EXPECT_EQ(much, 0);
    } else {
      EXPECT_GT(much, 40) << "each turn may be late";
      EXPECT_LT(much, 160);
      EXPECT_LT(*std::ranges::max_element(late), 200ms);
      EXPECT_GT(std::set<Duration>(late.begin(), late.end()).size(), 40U);
    }
  }
}

TEST(WorldTurns, TheRestOfAKilledProcessIsNotPaused) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    WorldOptions options = without_jitter(seed);
    options.jitter.late_turn = 0.9;
    options.jitter.late_turn_max = 1h;
    World world(options);
    Host& host = world.host("host");
    host.start(main_for(1000h));
    const Instant start = world.now();
    world.schedule(30min, [&] { host.kill(); });
    const WorldReport report = world.run_until_done(2000h);
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(world.now() - start, 30min) << "seed " << seed;
  }
}

/// Returns the last line of the trace of two hosts whose tasks only sleep, for `time` in all.
std::string trace_of_turns(std::uint64_t seed, const std::string& name, Duration time) {
  World world({.seed = seed, .jitter = no_jitter, .trace = true});
  const auto sleep_often = [time](loop::Platform& host) {
    return Runtime(host, quiet()).run_on_each_core([time](Scope&) -> Task<> {
      for (int sleeps = 0; sleeps < 20; ++sleeps) std::ignore = co_await sleep(time / 20);
    });
  };
  world.host(name).start(sleep_often);
  world.host("other").start(sleep_often);
  EXPECT_TRUE(world.run_until_done(1h).ok());
  const std::string& trace = world.trace();
  return trace.substr(trace.rfind('\n', trace.size() - 2) + 1);
}

TEST(WorldTrace, EndsWithTheNumberAndAHashOfTheTurns) {
  const std::string line = trace_of_turns(1, "host", 1s);
  EXPECT_THAT(line, ContainsRegex("^1\\.000000000 - [1-9][0-9]+ turns, order hash [1-9][0-9]+\n$"));
  EXPECT_EQ(trace_of_turns(1, "host", 1s), line);
  std::set<std::string> lines;
  std::set<std::string> counts;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const std::string each = trace_of_turns(seed, "host", 1s);
    lines.insert(each);
    counts.insert(each.substr(0, each.find("turns")));
  }
  EXPECT_EQ(lines.size(), 10U) << "the order differs, and nothing else";
  EXPECT_EQ(counts.size(), 1U);
  const auto hash_of = [](const std::string& text) { return text.substr(text.find("hash")); };
  EXPECT_NE(hash_of(trace_of_turns(1, "hosu", 1s)), hash_of(line)) << "the hash covers the place";
  EXPECT_NE(hash_of(trace_of_turns(1, "host", 2s)), hash_of(line)) << "and the time";
}

TEST(WorldTrace, NamesTheCoreOfEachOperation) {
  EchoWorld echo({.seed = 1, .jitter = no_jitter, .trace = true});
  echo.client.log("begun");
  echo.world.schedule(500ms, [&] { echo.client.log("between turns"); });
  EXPECT_TRUE(echo.run().ok());
  const std::string& trace = echo.world.trace();
  EXPECT_THAT(trace, HasSubstr("0.500000000 - client: between turns\n"));
  EXPECT_THAT(trace, HasSubstr("0.000000000 - client: begun\n"));
  EXPECT_THAT(trace, ContainsRegex("1.000200000 client/0 connect [0-9]+: 0\n"));
  EXPECT_THAT(trace, ContainsRegex("1.000300000 server/[01] receive [0-9]+: 5000\n"));
  EXPECT_THAT(trace, ContainsRegex("1.000400000 client/0 receive [0-9]+: 5000\n"));
  EchoWorld silent(without_jitter());
  EXPECT_TRUE(silent.run().ok());
  EXPECT_EQ(silent.world.trace(), "");
}

TEST(WorldTrace, LinesOfChecksBelongToNoCore) {
  World world({.seed = 1, .jitter = no_jitter, .trace = true});
  Host& host = world.host("host");
  world.always("logs", [&] {
    host.log("checked");
    return std::string();
  });
  host.start(main_for(1s));
  EXPECT_TRUE(world.run_until_done(1h).ok());
  EXPECT_THAT(world.trace(), HasSubstr("1.000000000 - host: checked\n"));
  EXPECT_THAT(world.trace(), testing::Not(HasSubstr("host/0 host: checked")));
}

TEST(WorldChecks, RunAtTheEndOfEachRun) {
  World world(without_jitter());
  Host& host = world.host("host");
  int at_end = 0;
  world.check("kept", [&] {
    ++at_end;
    EXPECT_TRUE(host.done());
    return std::string();
  });
  host.start(main_for(1s));
  EXPECT_TRUE(world.run_until_done(1h).ok());
  EXPECT_EQ(at_end, 1);
  host.start(main_for(1s));
  EXPECT_TRUE(world.run_until_done(1h).ok());
  EXPECT_EQ(at_end, 2);
}

TEST(WorldChecks, RunAfterEveryTurnUntilTheyFail) {
  World world(without_jitter());
  world.host("host").start(main_for(1s));
  int calls = 0;
  int failing_calls = 0;
  world.always("counts", [&] {
    EXPECT_EQ(Loop::current(), nullptr);
    ++calls;
    return std::string();
  });
  world.always("fails", [&] { return ++failing_calls == 2 ? std::string("now") : std::string(); });
  EXPECT_THAT(world.run_until_done(1h).failures, ElementsAre("fails: now"));
  EXPECT_EQ(failing_calls, 2) << "it has failed once";
  EXPECT_GT(calls, 3);
}

TEST(WorldChecks, RunAfterEachTurnOfEachCore) {
  World world({.seed = 1, .jitter = no_jitter, .trace = true});
  Host& killed = world.host("killed");
  killed.start(main_for(1h));
  world.host("two cores", {.cores = 2}).start([](loop::Platform& host) {
    return Runtime(host, quiet(2)).run_on_each_core(sleep_for, Duration(10s));
  });
  std::size_t calls = 0;
  world.always("counts", [&] {
    ++calls;
    return std::string();
  });
  world.schedule(5s, [&] { killed.kill(); });
  EXPECT_TRUE(world.run_until_done(1h).ok());
  EXPECT_THAT(world.trace(), HasSubstr(" - " + std::to_string(calls) + " turns, order hash "));
}

TEST(WorldChecks, AreReportedAtTheEndOfEachRun) {
  World world(without_jitter());
  Host& host = world.host("host");
  int always_calls = 0;
  world.check("broken", [] { return std::string("still"); });
  world.check("throws", []() -> std::string { throw std::runtime_error("no idea"); });
  world.always("once", [&] { return std::to_string(++always_calls); });
  host.start(main_for(1s));
  EXPECT_THAT(world.run_until_done(1h).failures,
              ElementsAre("once: 1", "broken: still", "throws: the check threw no idea"));
  host.start(main_for(1s));
  EXPECT_THAT(world.run_until_done(1h).failures,
              ElementsAre("broken: still", "throws: the check threw no idea"));
  EXPECT_EQ(always_calls, 1) << "this check has failed once";
}

TEST(WorldServices, EndWhenEveryOtherMainHasReturned) {
  World world(without_jitter());
  Host& first = world.host("first service");
  Host& second = world.host("second service");
  first.start_service(serve_for_ever);
  second.start_service(serve_for_ever);
  world.host("short").start(main_for(1s));
  world.host("long").start(main_for(20s));
  world.schedule(10s, [&] {
    EXPECT_FALSE(first.done()) << "one main still runs";
    EXPECT_FALSE(first.terminate_sent);
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  for (const Host* const each : {&first, &second}) {
    EXPECT_THAT(each->logged(), testing::Contains(HasSubstr("SIGTERM: draining")));
    EXPECT_THAT(each->logged(), testing::Not(testing::Contains(HasSubstr("again"))));
  }
}

TEST(WorldServices, RunOnWithoutAnyOtherMain) {
  World world(without_jitter());
  Host& service = world.host("service");
  service.start_service(serve_for_ever);
  world.host("short service").start_service(main_for(1s));
  bool runs_on = false;
  world.schedule(10s, [&] {
    runs_on = !service.done() && !service.terminate_sent;
    service.raise(loop::Signal::terminate);
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_TRUE(runs_on);
}

TEST(WorldServices, EndInAnyOrderOfTheHosts) {
  World world(without_jitter());
  world.host("main").start(main_for(1s));
  Host& service = world.host("service");
  service.start_service(serve_for_ever);
  world.host("idle");
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_TRUE(service.done());
}

TEST(WorldServices, AServiceThatHasEndedGetsNoSignal) {
  World world(without_jitter());
  Host& service = world.host("service");
  Host& client = world.host("client");
  service.start_service(main_for(1s));
  client.start(main_for(5s));
  EXPECT_TRUE(world.run_until_done(1h).ok());
  service.start_service(serve_for_ever);
  EchoRequest request;
  client.start([&](loop::Platform& host) {
    return Runtime(host, quiet())
        .run_on_each_core(send_echo_request, service.address(7), std::ref(request));
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(request.received, request.text) << "no old signal ends the new service";
}

TEST(WorldServices, EndWhenTheLastOtherMainIsKilled) {
  World world(without_jitter());
  Host& service = world.host("service");
  Host& other = world.host("other");
  service.start_service(serve_for_ever);
  other.start(main_for(1h));
  world.schedule(5s, [&] { other.kill(); });
  const Instant start = world.now();
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_LT(world.now() - start, 1min);
  EXPECT_THAT(service.logged(), testing::Contains(HasSubstr("SIGTERM: draining")));
}

// The last other main ends while the rest of the killed service still runs.
TEST(WorldServices, AServiceThatReplacesAKilledOneGetsOneSignal) {
  World world(without_jitter());
  Host& service = world.host("service");
  service.start_service(serve_for_ever);
  world.host("main").start([&service](loop::Platform& host) {
    const int status = Runtime(host, quiet()).run_on_each_core(sleep_for, Duration(1s));
    service.kill();
    service.start_service(serve_for_ever);
    return status;
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_THAT(service.logged(), testing::Contains(HasSubstr("SIGTERM: draining")).Times(1));
  EXPECT_THAT(service.logged(), testing::Not(testing::Contains(HasSubstr("again"))));
}

TEST(WorldServices, AMainWithoutARuntimeEndsThemToo) {
  World world(without_jitter());
  world.host("service").start_service(serve_for_ever);
  world.host("main").start([](loop::Platform&) { return 0; });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(WorldAborts, AReportNamesWhatEachCoreDoes) {
  World world({.seed = 7, .jitter = no_jitter, .replay = "again "});
  world.host("sleeper").start(main_for(1h));
  world.host("server", {.cores = 2}).start([](loop::Platform& host) {
    return Runtime(host, quiet(2)).run_on_each_core(serve_echo);
  });
  const Instant start = world.now();
  const WorldReport report = world.run_until_done(90s);
  ASSERT_GE(report.failures.size(), 1U);
  EXPECT_THAT(report.failures[0],
              ContainsRegex("^not done after 90 s; sleeper \\[no operation, [1-9] coroutines\\]; "
                            "server \\[1 accept, [1-9] coroutines\\] "
                            "\\[1 accept, [1-9] coroutines\\]$"));
  EXPECT_LT(world.now() - start, 1h);
  EXPECT_EQ(report.seed, 7U);
  EXPECT_EQ(report.replay, "again 7");
  EXPECT_TRUE(report.text().ends_with("\nseed 7, replay: again 7\n"));
}

TEST(WorldAborts, ACancelledRunEndsAndTheNextOneIsFresh) {
  World world(without_jitter());
  Host& host = world.host("host");
  for (int run = 0; run < 3; ++run) {
    host.start(main_for(1h));
    EXPECT_FALSE(world.run_until_done(1min).ok());
    EXPECT_TRUE(host.done());
  }
  host.start(main_for(1s));
  EXPECT_TRUE(world.run_until_done(1min).ok());
}

Task<> yield_for_ever(Scope&) {
  for (;;) co_await yield();
}

void run_without_end() {
  World world({.seed = 7, .jitter = no_jitter, .replay = "again ", .steps_per_instant_max = 5000});
  world.host("host").start(
      [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(yield_for_ever); });
  static_cast<void>(world.run_until_done(1h));
}

TEST(WorldAborts, ARunThatDoesNotEndAfterTheAbortEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_without_end(),
               "weir: World: the run does not end after it was aborted\n"
               "livelock: 5000 steps without progress of the virtual time; host .*\n"
               "livelock: .*\nseed 7, replay: again 7");
}

/// Yields `count` times at each of 50 moments.
Task<> yield_at_each_moment(Scope& scope, int count) {
  for (int moments = 0; moments < 50; ++moments) {
    for (int yields = 0; yields < count && !scope.cancelled(); ++yields) co_await yield();
    const auto slept = co_await sleep(1ms);
    if (!slept) co_return;
  }
}

TEST(WorldAborts, StepsAreCountedForEachMoment) {
  for (const int yields : {100, 3000}) {
    WorldOptions options = without_jitter();
    options.steps_per_instant_max = 2000;
    World world(options);
    world.host("host").start([yields](loop::Platform& host) {
      return Runtime(host, quiet()).run_on_each_core(yield_at_each_moment, yields);
    });
    const WorldReport report = world.run_until_done(1h);
    EXPECT_EQ(report.ok(), yields == 100) << report.text();
  }
}

Task<> end_slowly(Scope&) {
  std::ignore = co_await sleep(2h);
  for (int yields = 0; yields < 10'000; ++yields) co_await yield();
}

TEST(WorldAborts, ACancelledServiceGetsNoSignal) {
  World world(without_jitter());
  Host& service = world.host("service");
  service.start_service(
      [](loop::Platform& host) { return Runtime(host, quiet()).run_on_each_core(end_slowly); });
  world.host("main").start(main_for(1h));
  const WorldReport report = world.run_until_done(1min);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.failures[0], testing::StartsWith("not done after 60 s"));
  EXPECT_TRUE(service.done());
  EXPECT_THAT(service.logged(), testing::Not(testing::Contains(HasSubstr("SIGTERM"))));
}

TEST(WorldAborts, TheLimitOfStepsIsExact) {
  for (const std::uint64_t steps_max : {0U, 1U}) {
    World world({.seed = 1, .jitter = no_jitter, .steps_per_instant_max = steps_max});
    world.host("host").start([](loop::Platform&) { return 0; });  // one step
    EXPECT_EQ(world.run_until_done(1h).ok(), steps_max == 1);
  }
}

TEST(WorldAborts, ACancelledRunHasAnHourToEnd) {
  for (const bool livelock : {false, true}) {
    World world({.seed = 1, .jitter = no_jitter, .steps_per_instant_max = 10'000});
    const auto yield_until_cancelled = [](Scope& scope) -> Task<> {
      while (!scope.cancelled()) co_await yield();
    };
    Host& host = world.host("host");
    host.start([&](loop::Platform& its) {
      const int status = livelock ? Runtime(its, quiet()).run_on_each_core(yield_until_cancelled)
                                  : Runtime(its, quiet()).run_on_each_core(sleep_for, Duration(1h));
      EXPECT_NE(status, 0);
      return Runtime(its, quiet()).run_on_each_core(sleep_for, Duration(50min));
    });
    const Instant start = world.now();
    const WorldReport report = world.run_until_done(1min);
    ASSERT_EQ(report.failures.size(), 1U) << report.text();
    EXPECT_THAT(report.failures[0], testing::StartsWith(livelock ? "livelock: " : "not done "));
    EXPECT_EQ(host.status(), 0);
    EXPECT_GE(world.now() - start, 50min);
  }
}

Task<> allocate_here_release_there(Scope& scope, void*& block) {
  if (scope.loop().core() == 0) block = BlockPool::allocate(100);
  std::ignore = co_await sleep(1s);
  if (scope.loop().core() == 1) BlockPool::release(block);
  std::ignore = co_await sleep(1s);
}

TEST(WorldLeaks, ABlockThatAnotherCoreHasReleasedIsNoLeak) {
  World world(without_jitter());
  void* block = nullptr;
  world.host("host", {.cores = 2}).start([&](loop::Platform& host) {
    return Runtime(host, quiet(2)).run_on_each_core(allocate_here_release_there, std::ref(block));
  });
  const WorldReport report = world.run_until_done(1h);
  EXPECT_TRUE(report.ok()) << report.text();
}

/// Leaves an accept pending when its loops have stopped, and ends it afterwards.
int stop_while_accepting(loop::Platform& host) {
  const auto loop = Loop::make(host, {}).value();
  loop::Backend& backend = loop->backend();
  loop::Descriptor descriptor = host.listen(Endpoint::any(80), {}).value();
  loop::Socket& listener =
      *backend.adopt(std::move(descriptor), {.role = loop::SocketRole::listener}).value();
  AcceptProbe accept;
  start(backend, listener, accept);
  loop->stop();
  const loop::LoopPlacement placement{loop.get(), -1};
  const auto ran = host.run({&placement, 1}, nullptr);
  backend.cancel(accept);
  loop->turn(host.now());
  EXPECT_EQ(accept.error(), Errc::cancelled);
  backend.close(listener);
  return ran ? 0 : 1;
}

TEST(WorldLeaks, AnOperationAndASocketOfALoopThatHasStoppedAreReported) {
  World world(without_jitter());
  Host& host = world.host("host");
  host.start(stop_while_accepting);
  EXPECT_THAT(world.run_until_done(1h).failures,
              ElementsAre("host/0: 1 accept pending", "host/0: a listener not closed"));
  EXPECT_EQ(host.status(), 0);
}

TEST(WorldReportTest, HasALineForEachFailure) {
  const WorldReport none{5, {}, "again 5"};
  EXPECT_TRUE(none.ok());
  EXPECT_EQ(none.text(), "seed 5, replay: again 5\n");
  const WorldReport two{5, {"one", "two"}, "again 5"};
  EXPECT_FALSE(two.ok());
  EXPECT_EQ(two.text(), "one\ntwo\nseed 5, replay: again 5\n");
}

TEST(WorldFaults, AnAllocationThatNeverComesIsNotCounted) {
  EchoWorld echo(without_jitter());
  echo.world.faults().fail_allocation("server", 0, 1'000'000);
  EXPECT_TRUE(echo.run().ok());
  EXPECT_EQ(echo.world.faults().injected(Fault::allocation), 0U);
  EXPECT_EQ(echo.world.faults().injected(), 0U);
}

TEST(WorldOptionsTest, HaveDocumentedDefaults) {
  const WorldOptions options;
  EXPECT_FALSE(options.trace);
  EXPECT_EQ(options.steps_per_instant_max, 10'000'000U);
  EXPECT_EQ(options.blocked_max, 20s);
  const JitterOptions& jitter = options.jitter;
  EXPECT_EQ(jitter.deferred, 0.3);
  EXPECT_EQ(jitter.partial, 0.25);
  EXPECT_EQ(jitter.cancelled, 0.5);
  EXPECT_EQ(jitter.skewed_accept, 0);
  EXPECT_EQ(jitter.late_turn, 0.01);
  EXPECT_EQ(jitter.slow_segment, 0.02);
  EXPECT_EQ(jitter.split, 0.2);
  EXPECT_EQ(jitter.late_turn_max, 20ms);
  EXPECT_EQ(jitter.delay_min, 20us);
  EXPECT_EQ(jitter.delay_max, 2ms);
  EXPECT_EQ(jitter.slow_segment_max, 400ms);
  EXPECT_EQ(jitter.buffer_bytes_min, 2048U);
  EXPECT_EQ(jitter.step_max, 5ms);
  World world({.seed = 9});
  EXPECT_EQ(world.seed(), 9U);
  Random same(9);
  EXPECT_EQ(world.random().next(), same.next());
}

TEST(WorldOptionsTest, NoJitterHasNoRatesAndFixedDelays) {
  for (const double rate :
       {no_jitter.deferred, no_jitter.partial, no_jitter.cancelled, no_jitter.skewed_accept,
        no_jitter.late_turn, no_jitter.slow_segment, no_jitter.split}) {
    EXPECT_EQ(rate, 0);
  }
  EXPECT_EQ(no_jitter.delay_min, 100us);
  EXPECT_EQ(no_jitter.delay_max, 100us);
  EXPECT_EQ(no_jitter.late_turn_max, 0s);
  EXPECT_EQ(no_jitter.slow_segment_max, 0s);
  EXPECT_EQ(no_jitter.step_max, 0s);
  EXPECT_EQ(no_jitter.buffer_bytes_min, 0U) << "a buffer has the size that its host sets";
}

}  // namespace
}  // namespace weir::sim::world_run_test

// Tests of the verb `weir top`: its picture, its errors, and its requests to a service in a World.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "tools/weir/command_fixture.hpp"
#include "tools/weir/top_command.hpp"
#include "weir/admin/listener.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/host.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/sleep.hpp"

namespace weir::top::top_test {
namespace {

using namespace std::chrono_literals;

Snapshot sample() {
  Snapshot snapshot;
  snapshot.overview = {.title = "shop",
                       .findings = {{"core 1 does not answer"}},
                       .summary = {.busy = 0.5,
                                   .requests_per_second = 12345,
                                   .connections = 7,
                                   .slow_turns = 2,
                                   .resident_bytes = 64 << 20}};
  snapshot.cores.cores = {{.core = 0, .busy = 0.25, .state = "answers", .streams = 3},
                          {.core = 1, .busy = 1, .state = "no answer since 2 s"}};
  snapshot.routes = Routes{{{"GET /slow", 2, 0.2, 0.4}, {"GET /fast", 90, 0.0001, std::nullopt}}};
  snapshot.pools.pools = {{"shared", "saturated", 4, 4, 20, "all blocked"}};
  snapshot.slow_turns.slow_turns = {{"GET /slow", 2, 1, 0.34}};
  return snapshot;
}

TEST(TopView, ShowsEachPart) {
  const std::string picture = draw(sample(), {});
  EXPECT_TRUE(
      picture.starts_with("shop  12.3k requests/s  50 % busy  7 connections  64 MiB  2 slow turns\n"
                          "! core 1 does not answer\n"))
      << picture;
  EXPECT_TRUE(picture.contains("   0  [#####...............]  25 %")) << picture;
  EXPECT_TRUE(picture.contains("100 %")) << picture;
  EXPECT_TRUE(picture.contains("no answer since 2 s")) << picture;
  EXPECT_LT(picture.find("GET /fast"), picture.find("GET /slow")) << "most requests first";
  EXPECT_TRUE(picture.contains("saturated")) << picture;
  EXPECT_TRUE(picture.contains("340.0 ms  GET /slow")) << picture;
  EXPECT_EQ(picture.find('\x1b'), picture.npos);
}

TEST(TopView, FitsOnTheScreen) {
  const std::string picture = draw(sample(), {.columns = 40, .lines = 6});
  std::size_t lines = 0;
  for (std::size_t at = 0; at < picture.size(); ++lines) {
    const std::size_t end = picture.find('\n', at);
    ASSERT_NE(end, picture.npos);
    EXPECT_LE(end - at, 40U);
    at = end + 1;
  }
  EXPECT_LE(lines, 6U);
  EXPECT_NE(draw(sample(), {.colours = true}).find("\x1b[31;1m"), std::string::npos);
}

TEST(TopView, HasNoControlCharactersOfTheService) {
  Snapshot hostile = sample();
  hostile.overview.title = "\x1b]0;x\a";
  hostile.cores.cores[1].state = "\x1b[2J\xc2\x9b";
  hostile.pools.pools[0].name = "a\nb";
  const std::string picture = draw(hostile, {});
  EXPECT_EQ(picture.find('\x1b'), picture.npos);
  EXPECT_EQ(picture.find('\a'), picture.npos);
  EXPECT_TRUE(picture.contains("a?b")) << picture;
  Snapshot refused;
  refused.error = "x\x1b[2J";
  EXPECT_EQ(draw(refused, {}), "x?[2J\n");
}

TEST(TopCommand, SaysThatNothingAnswers) {
  std::string output;
  EXPECT_EQ(run_command(&add_command, "top", {"unix:/no/such.sock", "--once"}, output), 1);
  EXPECT_TRUE(output.starts_with("http://localhost/weir/: ")) << output;
  EXPECT_EQ(run_command(&add_command, "top", {}, output), 2);
  EXPECT_EQ(run_command(&add_command, "top", {"x", "--interval", "0"}, output), 2);
}

/// Serves the admin pages on a host of a World, and asks them from another host.
Snapshot ask_in_world(const std::string& token) {
  sim::World world({.seed = 7});
  AdminListener admin(
      {.endpoint = Endpoint::any(9090), .title = "shop", .token = "s3cret", .hosts = {"server"}});
  const RuntimeOptions quiet{.announce = false};
  world.host("server", {.cores = 2}).start_service([&](loop::Platform& platform) {
    return Runtime(platform, quiet).run_on_each_core([&](Scope& scope) {
      return admin.serve(scope);
    });
  });
  Snapshot snapshot;
  const auto look = [&](Scope&) -> Task<> {
    std::ignore = co_await sleep(1s);
    http::Client client;
    const Target target{"http://server:9090/weir/", token};
    snapshot = co_await ask(client, target);
  };
  world.host("client").start(
      [&](loop::Platform& platform) { return Runtime(platform, quiet).run_on_each_core(look); });
  const sim::WorldReport report = world.run_until_done(1min);
  EXPECT_TRUE(report.ok());
  return snapshot;
}

TEST(TopCommand, AsksTheAdminPages) {
  const Snapshot snapshot = ask_in_world("s3cret");
  EXPECT_EQ(snapshot.error, "");
  EXPECT_EQ(snapshot.overview.title, "shop");
  ASSERT_EQ(snapshot.cores.cores.size(), 2U);
  EXPECT_EQ(snapshot.cores.cores[1].state, "answers");
}

TEST(TopCommand, NeedsTheToken) {
  EXPECT_TRUE(ask_in_world("other").error.contains("401: the service needs a --token-file"));
}

}  // namespace
}  // namespace weir::top::top_test

#include "tools/weir/check/check_command.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/weir/check/faulty_server_fixture.hpp"
#include "tools/weir/command_fixture.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/net/listen/listener.hpp"

namespace weir::check {
namespace {

/// The exit status of `weir check ...`; what it printed is in `output`.
int run_tool(std::vector<std::string> arguments, std::string& output) {
  return run_command(&add_command, "check", std::move(arguments), output);
}

TEST(CheckCommand, RefusesWhatCannotBeChecked) {
  // Port 1 is reserved and taken by nothing; 192.0.2.0/24 is for documentation.
  const std::string url = "http://127.0.0.1:1/";
  const std::vector<std::vector<std::string>> wrong{
      {},
      {url},
      {"127.0.0.1"},
      {"https://127.0.0.1/"},
      {"http://192.0.2.1/"},
      {url, "--only", "manners"},
      {url, "--skip", "manners"},
      {url, "--only", "slow", "--skip", "slow"},
      {url, "--path", "no-path"},
      {url, "--post-path", "/a b"},
      {url, "--timeout", "0"},
      {url, "--timeout", "nan"},
      {url, "--slow-deadline", "-1"},
      {url, "--idle-deadline", "inf"},
      {url, "--at-once", "0"},
  };
  for (const auto& arguments : wrong) {
    std::string output;
    EXPECT_EQ(run_tool(arguments, output), 2) << testing::PrintToString(arguments) << output;
  }
  std::string output;
  EXPECT_EQ(run_tool({"http://192.0.2.1/"}, output), 2);
  EXPECT_TRUE(output.contains("--yes-remote")) << output;
  EXPECT_EQ(run_tool({url}, output), 2);
  EXPECT_TRUE(output.contains("no connection: ")) << output;
}

TEST(CheckCommand, ListsItsCasesWithoutAServer) {
  std::string output;
  EXPECT_EQ(run_tool({"--list", "--only", "slow", "--only", "rule-01-01"}, output), 0);
  EXPECT_TRUE(output.contains("slow/reader ")) << output;
  EXPECT_TRUE(output.contains("rule-01-01 ")) << output;
  EXPECT_EQ(std::ranges::count(output, '\n'), 12);
}

Task<> serve(Scope& scope, FaultyServer& server, std::promise<std::uint16_t>& port) {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  port.set_value(listener->local_address().port());
  co_await server.serve(scope, std::move(*listener));
}

/// Plays `arguments` against a server with these faults on a thread of its own.
int check_live(const Faults& faults, std::vector<std::string> arguments, std::string& output) {
  RuntimeOptions options;
  options.cores = 1;
  options.pin = options.announce = options.handle_signals = false;
  Runtime runtime(options);
  FaultyServer server(faults);
  std::promise<std::uint16_t> listening;
  auto port = listening.get_future();
  std::jthread thread(
      [&] { runtime.run_on_each_core(serve, std::ref(server), std::ref(listening)); });
  arguments.push_back("http://127.0.0.1:" + std::to_string(port.get()));
  const int status = run_tool(std::move(arguments), output);
  runtime.stop();
  return status;
}

TEST(CheckCommand, TellsWhatFailedByItsExitStatusAndInWords) {
  const std::vector<std::string> dates{"--only", "answers/date", "--timeout", "60"};
  std::string output;
  EXPECT_EQ(check_live({}, dates, output), 0) << output;
  EXPECT_TRUE(output.contains("1 passed, 0 failed, 0 not applicable, in ")) << output;

  Faults faults;
  faults.lacks_date = true;
  EXPECT_EQ(check_live(faults, dates, output), 1) << output;
  EXPECT_TRUE(output.contains("\n  came    200, closed, without one\n") ||
              output.contains("\n  came    200, kept open, without one\n"))
      << output;
  EXPECT_TRUE(output.contains("0 passed, 1 failed, 0 not applicable, in ")) << output;
}

TEST(CheckCommand, TellsProgramsTheSame) {
  std::string output;
  EXPECT_EQ(check_live({}, {"--only", "host-05", "--json", "--timeout", "60"}, output), 0);
  EXPECT_TRUE(output.contains("\"passed\":1,\"failed\":0,")) << output;
  EXPECT_TRUE(output.contains("\"name\":\"host-05\",\"verdict\":\"passed\"")) << output;
}

TEST(CheckCommand, WantsAPathThatIsThere) {
  std::string output;
  EXPECT_EQ(check_live({}, {"--path", "/nothing", "--timeout", "60"}, output), 2);
  EXPECT_EQ(output, "weir check: GET /nothing answers 404; --path names one that answers 2xx\n");
}

}  // namespace
}  // namespace weir::check

// Tests of the verb `weir check`.
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
#include "tools/weir/test/list_options.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::check::check_command_test {
namespace {

/// Runs `weir check ...` and stores what it printed in `output`.
/// Returns: the exit status.
int run_tool(std::vector<std::string> arguments, std::string& output) {
  return run_command(&add_command, "check", std::move(arguments), output);
}

TEST(CheckCommand, RejectsWrongCommandLines) {
  // Port 1 is reserved and unused; 192.0.2.0/24 is for documentation.
  const std::string url = "http://127.0.0.1:1/";
  const std::vector<std::vector<std::string>> wrong{
      {},
      {url},
      {"127.0.0.1"},
      {"ftp://127.0.0.1/"},
      {url, "--cacert", "/dev/null"},
      {url, "--only", "tls"},
      {"https://127.0.0.1:1/", "--cacert", "/dev/null"},
      {"http://192.0.2.1/"},
      {url, "--only", "manners"},
      {url, "--skip", "manners"},
      {url, "--only", "slow", "--skip", "slow"},
      {url, "--path", "no-path"},
      {url, "--post-path", "/a b"},
      {url, "--websocket-path", "x"},
      {url, "--echo-path", "x"},
      {url, "--only", "bodies"},
      {url, "--only", "websocket"},
      {url, "--timeout", "0"},
      {url, "--timeout", "nan"},
      {url, "--slow-timeout", "-1"},
      {url, "--idle-timeout", "inf"},
      {url, "--concurrency", "0"},
      {url, "--server-pid", "1073741824"},
      {url, "--memory-max", "0"},
      {url, "--latency-max", "0"},
  };
  for (const auto& arguments : wrong) {
    std::string output;
    EXPECT_EQ(run_tool(arguments, output), 2) << testing::PrintToString(arguments) << output;
  }
  std::string output;
  EXPECT_EQ(run_tool({"http://192.0.2.1/"}, output), 2);
  EXPECT_TRUE(output.contains("--allow-remote")) << output;
  EXPECT_EQ(run_tool({url}, output), 2);
  EXPECT_TRUE(output.contains("no connection: ")) << output;
}

TEST(CheckCommand, ListsCasesWithoutAServer) {
  std::string output;
  EXPECT_EQ(run_tool({"--list", "--only", "slow", "--only", "rule-01-01"}, output), 0);
  EXPECT_TRUE(output.contains("slow/reader ")) << output;
  EXPECT_TRUE(output.contains("rule-01-01 ")) << output;
  EXPECT_EQ(std::ranges::count(output, '\n'), 13);
}

Task<> serve(Scope& scope, FaultyServer& server, std::promise<std::uint16_t>& port) {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  port.set_value(listener->local_address().port());
  co_await server.serve(scope, std::move(*listener));
}

/// Runs `weir check` with `arguments` against a server with these faults, which has its own
/// thread.
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

TEST(CheckCommand, ReportsFailuresByExitStatusAndText) {
  const std::vector<std::string> dates{"--only", "answers/date", "--timeout", "60"};
  std::string output;
  EXPECT_EQ(check_live({}, dates, output), 0) << output;
  EXPECT_TRUE(output.contains("1 passed, 0 failed, 0 not applicable, in ")) << output;

  Faults faults;
  faults.lacks_date = true;
  EXPECT_EQ(check_live(faults, dates, output), 1) << output;
  EXPECT_TRUE(output.contains("\n  actual    200, closed, no Date header\n") ||
              output.contains("\n  actual    200, kept open, no Date header\n"))
      << output;
  EXPECT_TRUE(output.contains("0 passed, 1 failed, 0 not applicable, in ")) << output;
}

TEST(CheckCommand, PostsToThePathOfGetUnlessAnotherIsGiven) {
  const auto printed = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--only", "host-05", "--timeout", "60"});
    std::string output;
    check_live({}, std::move(arguments), output);
    return output;
  };
  std::string output = printed({"--path", "/?x=1"});
  EXPECT_TRUE(output.contains("\n  GET /?x=1 answers 200, POST /?x=1 answers 200\n")) << output;
  output = printed({"--path", "/?x=1", "--post-path", "/?y=2"});
  EXPECT_TRUE(output.contains("\n  GET /?x=1 answers 200, POST /?y=2 answers 200\n")) << output;
  output = printed({"--post-path", "/?y=2"});
  EXPECT_TRUE(output.contains("\n  GET / answers 200, POST /?y=2 answers 200\n")) << output;
}

TEST(CheckCommand, ReportsJson) {
  std::string output;
  EXPECT_EQ(check_live({}, {"--only", "host-05", "--json", "--timeout", "60"}, output), 0);
  EXPECT_TRUE(output.contains("\"passed\":1,\"failed\":0,")) << output;
  EXPECT_TRUE(output.contains("\"name\":\"host-05\",\"verdict\":\"passed\"")) << output;
}

TEST(CheckCommand, RequiresAPathThatAnswers2xx) {
  std::string output;
  EXPECT_EQ(check_live({}, {"--path", "/nothing", "--timeout", "60"}, output), 2);
  EXPECT_EQ(output,
            "weir check: GET /nothing answers 404 (use --path for a path that answers 2xx)\n");
  EXPECT_EQ(check_live({}, {"--path", "/300", "--timeout", "60"}, output), 2);
  const std::vector<std::string> last{"--path",       "/299",      "--only",
                                      "answers/date", "--timeout", "60"};
  EXPECT_EQ(check_live({}, last, output), 0) << output;
}

TEST(CheckCommand, BehaviourThatARuleAllowsPassesWithLenient) {
  Faults faults;
  faults.takes_bare_lf = true;
  std::vector<std::string> arguments{"--only", "rule-01-01", "--timeout", "60"};
  std::string output;
  EXPECT_EQ(check_live(faults, arguments, output), 1) << output;
  arguments.emplace_back("--lenient");
  EXPECT_EQ(check_live(faults, arguments, output), 0) << output;
  EXPECT_FALSE(output.contains("rule-01-01")) << "a passed case is not printed";
  arguments.emplace_back("--all");
  EXPECT_EQ(check_live(faults, arguments, output), 0) << output;
  EXPECT_TRUE(output.contains("rule-01-01")) << output;
}

TEST(CheckCommand, SlowAndSilentClientsHaveTheGivenTimeouts) {
  Faults faults;
  faults.never_times_out = true;
  std::string output;
  EXPECT_EQ(check_live(faults,
                       {"--only", "slow/head-bytes", "--only", "slow/idle", "--skip",
                        "slow/idle-after-an-answer", "--slow-timeout", "0.2", "--idle-timeout",
                        "0.3", "--timeout", "60"},
                       output),
            1);
  EXPECT_TRUE(output.contains("cut off within 0.2 s")) << output;
  EXPECT_TRUE(output.contains("closed within 0.3 s")) << output;
  EXPECT_TRUE(output.contains("0 passed, 2 failed, 0 not applicable, in ")) << output;
}

TEST(CheckCommand, AcceptsNumbersWithinTheirLimitsOnly) {
  const auto status = [](const char* option, const char* value) {
    std::string output;
    return run_tool({"--list", option, value}, output);
  };
  for (const char* option : {"--timeout", "--slow-timeout", "--idle-timeout"}) {
    for (const char* value : {"0.05", "7", "1000000"})
      EXPECT_EQ(status(option, value), 0) << option;
    for (const char* value : {"0.049", "1000001", "-7", "7s", ""}) {
      EXPECT_EQ(status(option, value), 2) << option << " " << value;
    }
  }
  for (const char* value : {"1", "256"}) EXPECT_EQ(status("--concurrency", value), 0);
  for (const char* value : {"0", "257", "1.5"}) EXPECT_EQ(status("--concurrency", value), 2);
}

TEST(CheckCommand, ExplainsWrongCommandLines) {
  const auto printed = [](std::vector<std::string> arguments) {
    std::string output;
    EXPECT_EQ(run_tool(std::move(arguments), output), 2);
    return output;
  };
  const std::string url = "http://127.0.0.1:1/";
  EXPECT_EQ(printed({}), "weir check: the URL is missing\n");
  EXPECT_EQ(printed({"ftp://127.0.0.1/"}),
            "weir check: only http:// and https:// can be checked\n");
  EXPECT_EQ(printed({url, "--only", "tls"}), "weir check: the cases about TLS require https://\n");
  EXPECT_EQ(printed({url, "--cacert", "ca.pem"}), "weir check: --cacert requires https://\n");
  EXPECT_EQ(printed({url, "--only", "websocket"}),
            "weir check: the cases about WebSockets require --websocket-path\n");
  EXPECT_EQ(printed({url, "--only", "bodies"}),
            "weir check: the cases about bodies require --echo-path\n");
  EXPECT_EQ(printed({url, "--websocket-path", "x"}), "weir check: not a path: 'x'\n");
  EXPECT_EQ(printed({"here"}), "weir check: not a URL of a server: 'here'\n");
  EXPECT_EQ(printed({url, "--only", "manners"}),
            "weir check: there is no case or category 'manners' (see --list)\n");
  EXPECT_EQ(printed({url, "--only", "slow", "--skip", "slow"}),
            "weir check: --only and --skip leave no case\n");
  EXPECT_EQ(printed({url, "--path", "no"}), "weir check: not a path: 'no'\n");
  EXPECT_EQ(printed({url, "--post-path", "/a b"}), "weir check: not a path: '/a b'\n");
  EXPECT_EQ(printed({url, "--path", "http://a/"}), "weir check: not a path: 'http://a/'\n");
  for (const std::string header : {"A", "A:b", "A : b", "A: b\r\nC: d"}) {
    EXPECT_EQ(printed({url, "--header", header}), "weir check: not a header: '" + header + "'\n");
  }
  EXPECT_EQ(printed({"http://192.0.2.1/", "--allow-remote", "--path", "no"}),
            "weir check: not a path: 'no'\n")
      << "the address is no error";
}

TEST(CheckCommand, SkipsSelectedCases) {
  std::string output;
  EXPECT_EQ(run_tool({"--list", "--only", "slow", "--skip", "slow/head"}, output), 0);
  EXPECT_EQ(std::ranges::count(output, '\n'), 10);
  EXPECT_FALSE(output.contains("slow/head-")) << output;
  std::string all;
  EXPECT_EQ(run_tool({"--list"}, all), 0);
  std::string without;
  EXPECT_EQ(run_tool({"--list", "--skip", "slow", "--skip", "limits"}, without), 0);
  EXPECT_EQ(std::ranges::count(all, '\n') - std::ranges::count(without, '\n'), 12 + 14);
}

TEST(CheckCommand, OffersItsOptionsWithTheirDefaults) {
  EXPECT_EQ(list_options(&add_command, "check"), R"(-h,--help
url
--path
--post-path
--websocket-path
--echo-path
--cacert
--header
--only
--skip
--list
--lenient
--timeout 5
--slow-timeout 20
--idle-timeout
--concurrency 16
--server-pid
--memory-max 32
--latency-max 200
--allow-remote
--all
--json
)");
}

}  // namespace
}  // namespace weir::check::check_command_test

// Tests of the verb `weir bench`.
#include "tools/weir/bench_command.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/weir/command_fixture.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::bench {
namespace {

/// Runs `weir bench ...` and stores what it printed in `output`.
/// Returns: the exit status.
int run_tool(std::vector<std::string> arguments, std::string& output) {
  return run_command(&add_command, "bench", std::move(arguments), output);
}

TEST(BenchCommand, RejectsWrongCommandLines) {
  const std::string url = "http://127.0.0.1:1/";
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"127.0.0.1"},
      {"https://127.0.0.1/"},
      {url, "--connections", "0"},
      {url, "--connections", "1", "--threads", "2"},
      {url, "--connections", "1000000"},
      {url, "--depth", "5000"},
      {url, "--new-connections", "--depth", "2"},
      {url, "--new-connections", "--rate", "5"},
      {url, "--requests", "5", "--seconds", "5"},
      {url, "--header", "no colon"},
      {url, "--numbered"},
      {url, "--numbered", "--body", "# and #"},
      {url, "--method", "two words"},
      {url, "--backend", "carrier pigeon"},
      {url, "--server-pid", "1073741824"},
      {url, "--requests", "0"},
      {url, "--requests", "-1"},
      {url, "--seconds", "nan"},
      {url, "--timeout", "inf"},
      {url, "--rate", "nan"},
      {url, "--rate", "0"},
      {url, "--rate", "3e9"},
      {url, "--body-bytes", "-1"},
      {url, "--header", "Content-Length: 3", "--body", "hello"},
  };
  for (const auto& arguments : wrong) {
    std::string output;
    EXPECT_EQ(run_tool(arguments, output), 2) << testing::PrintToString(arguments) << output;
  }
}

TEST(BenchCommand, FailsWithoutAServer) {
  // Port 1 is reserved and unused; only root may listen on it.
  std::string output;
  EXPECT_EQ(run_tool({"http://127.0.0.1:1/", "--requests", "3", "--connections", "1"}, output), 1);
  EXPECT_NE(output.find("3 × connection refused"), std::string::npos) << output;
}

Task<> answer(tcp::Stream stream) {
  while (const auto asked = co_await stream.read()) {
    if (!co_await stream.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")) co_return;
  }
}

Task<> serve(Scope& scope, std::promise<std::uint16_t>& port) {
  auto listener = co_await tcp::listen(Endpoint::loopback(0));
  port.set_value(listener->local_address().port());
  for (;;) {
    auto stream = co_await listener->accept();
    if (!stream) co_return;
    scope.spawn(answer(std::move(*stream)));
  }
}

TEST(BenchCommand, MeasuresAServerOverLoopbackOnEachBackend) {
  RuntimeOptions options;
  options.cores = 1;
  options.pin = options.announce = options.handle_signals = false;
  Runtime server(options);
  std::promise<std::uint16_t> listening;
  auto port = listening.get_future();
  std::jthread thread([&] { server.run_on_each_core(serve, std::ref(listening)); });
  const std::string url = "http://127.0.0.1:" + std::to_string(port.get()) + "/";

  for (const char* backend : {"auto", "epoll", "poll"}) {
    std::string output;
    const std::string own_pid = std::to_string(::getpid());
    EXPECT_EQ(run_tool({url, "--requests", "1000", "--connections", "7", "--threads", "2",
                        "--server-pid", own_pid, "--json", "--backend", backend},
                       output),
              0);
    EXPECT_NE(output.find("\"responses\": 1000,"), std::string::npos) << output;
    EXPECT_NE(output.find("\"body_bytes\": 5,"), std::string::npos) << output;
    // Does not check the CPU time: the time of this process's ended threads is lost.
  }
  std::string one;
  EXPECT_EQ(run_tool({url, "-n", "1", "-c", "2", "-t", "2", "--json"}, one), 0);
  EXPECT_NE(one.find("\"responses\": 1,"), std::string::npos) << one;
  server.drain();
  server.stop();
}

}  // namespace
}  // namespace weir::bench

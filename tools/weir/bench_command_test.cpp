// Tests of the verb `weir bench`.
#include "tools/weir/bench_command.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tools/weir/command_fixture.hpp"
#include "tools/weir/test/list_options.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/tls/server.hpp"

namespace weir::bench::bench_command_test {
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
      {"ftp://127.0.0.1/"},
      {url, "--tls-version", "1.3"},
      {url, "--new-connections", "--resume"},
      {"https://127.0.0.1:1/", "--resume"},
      {"https://127.0.0.1:1/", "--tls-version", "1.1"},
      {url, "--connections", "0"},
      {url, "--connections", "1", "--threads", "2"},
      {url, "--connections", "1000000"},
      {url, "--depth", "5000"},
      {url, "--new-connections", "--depth", "2"},
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

/// A server on loopback, in a thread of its own.
class BenchServer {
 public:
  explicit BenchServer(std::unique_ptr<tls::Server> tls = nullptr)
      : tls_(std::move(tls)), port_(listening_.get_future().get()) {}
  ~BenchServer() {
    runtime_.drain();
    runtime_.stop();
  }
  std::string url(const std::string& host = "127.0.0.1") const {
    return (tls_ == nullptr ? "http://" : "https://") + host + ":" + std::to_string(port_) + "/";
  }
  /// Return the numbers of connections and of requests that have arrived so far.
  int connections() const noexcept { return connections_; }
  int requests() const noexcept { return requests_; }
  /// Returns the request that arrived last. Call it when no request is in progress.
  std::string last_request() const {
    const std::lock_guard lock(mutex_);
    return last_request_;
  }

 private:
  static RuntimeOptions options() {
    RuntimeOptions options;
    options.cores = 1;
    options.pin = options.announce = options.handle_signals = false;
    return options;
  }
  static Task<> serve(Scope& scope, BenchServer& server) {
    if (server.tls_ != nullptr) {
      const auto loaded = co_await server.tls_->load();
      EXPECT_TRUE(loaded) << loaded.error().text();
    }
    auto listener = co_await tcp::listen(Endpoint::loopback(0));
    server.listening_.set_value(listener->local_address().port());
    for (;;) {
      auto stream = co_await listener->accept();
      if (!stream) co_return;
      ++server.connections_;
      scope.spawn(server.answer(scope.loop(), AnyStream(std::move(*stream))));
    }
  }
  /// Answers each request, except for those of "/silent".
  Task<> answer(Loop& loop, AnyStream stream) {
    if (tls_ != nullptr) {
      tls::Acceptor acceptor(loop, *tls_);
      auto secured = co_await acceptor.accept(std::move(stream));
      if (!secured) co_return;
      stream = AnyStream(std::move(*secured));
    }
    while (const auto asked = co_await stream->read()) {
      ++requests_;
      const std::string_view request = asked->text();
      {
        const std::lock_guard lock(mutex_);
        last_request_ = request;
      }
      if (request.contains(" /silent ")) continue;
      std::string response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
      if (!request.starts_with("HEAD ")) response += "hello";
      const bool closes = request.contains("\r\nConnection: close\r\n");
      const auto written = co_await stream->write(response);
      if (!written || closes) co_return;
    }
  }

  std::unique_ptr<tls::Server> tls_;
  Runtime runtime_{options()};
  std::promise<std::uint16_t> listening_;
  std::atomic<int> connections_ = 0;
  std::atomic<int> requests_ = 0;
  mutable std::mutex mutex_;  // guards last_request_
  std::string last_request_;
  std::jthread thread_{[this] { runtime_.run_on_each_core(serve, std::ref(*this)); }};
  std::uint16_t port_;
};

TEST(BenchCommand, MeasuresAServerOverLoopbackOnEachBackend) {
  const BenchServer server;
  const std::string url = server.url();
  for (const char* backend : {"auto", "epoll", "poll"}) {
    std::string output;
    const std::string own_pid = std::to_string(::getpid());
    EXPECT_EQ(run_tool({url, "--requests", "1000", "--connections", "7", "--threads", "2",
                        "--server-pid", own_pid, "--json", "--backend", backend},
                       output),
              0);
    EXPECT_NE(output.find("\"responses\": 1000,"), std::string::npos) << output;
    EXPECT_NE(output.find("\"body_bytes\": 5,"), std::string::npos) << output;
    const std::string name = "\"backend\": \"" + std::string(backend) + "\"";
    EXPECT_EQ(output.find(name) != std::string::npos, backend != std::string("auto")) << output;
    // Does not check the CPU time: the time of this process's ended threads is lost.
  }
  std::string one;
  EXPECT_EQ(run_tool({url, "-n", "1", "-c", "2", "-t", "2", "--json"}, one), 0);
  EXPECT_NE(one.find("\"responses\": 1,"), std::string::npos) << one;
}

TEST(BenchCommand, MeasuresHandshakesOfTheChosenVersion) {
  tls::ServerOptions options;
  options.self_signed.emplace();
  options.version_min = TlsVersion::tls_1_3;
  const BenchServer server(std::make_unique<tls::Server>(std::move(options)));
  const std::vector<std::string> load{server.url(), "-n", "6", "-c", "2", "--json"};
  const auto printed = [&](const std::vector<std::string>& more, int status) {
    std::vector<std::string> arguments = load;
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::string output;
    EXPECT_EQ(run_tool(std::move(arguments), output), status) << output;
    return output;
  };
  EXPECT_TRUE(printed({}, 0).contains("\"handshakes\": 2, \"resumed\": 0,"));
  EXPECT_TRUE(printed({"--new-connections"}, 0).contains("\"handshakes\": 6, \"resumed\": 0,"));
  EXPECT_TRUE(printed({"--new-connections", "--resume", "--tls-version", "1.3"}, 0)
                  .contains("\"handshakes\": 6, \"resumed\": 4,"));
  EXPECT_TRUE(printed({"--tls-version", "1.2"}, 1).contains("TLS handshake failed"));
}

TEST(BenchCommand, PrintsOneObjectAndSendsNothingBesidesTheLoad) {
  const BenchServer server;
  std::string output;
  EXPECT_EQ(run_tool({server.url(), "-n", "3", "-c", "1", "--json"}, output), 0);
  EXPECT_TRUE(output.starts_with("{\"connections\": 1,")) << output;
  EXPECT_EQ(output.find('\n'), output.size() - 1) << output;
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(server.requests(), 3);
}

TEST(BenchCommand, ExpectsNoBodyInAResponseToHead) {
  const BenchServer server;
  std::string output;
  EXPECT_EQ(run_tool({server.url(), "-n", "3", "-c", "1", "-m", "HEAD", "--json"}, output), 0);
  EXPECT_NE(output.find("\"responses\": 3,"), std::string::npos) << output;
  EXPECT_NE(output.find("\"body_bytes\": 0,"), std::string::npos) << output;
}

TEST(BenchCommand, SendsTheRequestOfItsOptions) {
  const BenchServer server;
  std::string output;
  EXPECT_EQ(run_tool({server.url() + "a?b", "-n", "1", "-c", "1", "-m", "POST", "-b", "ping", "-H",
                      "X: y", "-H", "Host: z"},
                     output),
            0)
      << output;
  EXPECT_EQ(server.last_request(),
            "POST /a?b HTTP/1.1\r\nX: y\r\nHost: z\r\nContent-Length: 4\r\n\r\nping");
}

TEST(BenchCommand, NumbersTheRequestsIfAsked) {
  const BenchServer server;
  std::string output;
  // The server does not return the number, so the response is wrong.
  EXPECT_EQ(run_tool({server.url(), "-n", "1", "-c", "1", "-b", "<####>", "--numbered"}, output),
            1);
  EXPECT_TRUE(server.last_request().ends_with("\r\n\r\n<1000>")) << server.last_request();
  EXPECT_NE(output.find("expected 1000, got: hello"), std::string::npos) << output;
}

TEST(BenchCommand, ANewConnectionIsClosedAfterItsRequest) {
  const BenchServer server;
  std::string output;
  EXPECT_EQ(run_tool({server.url(), "-n", "3", "-c", "1", "--new-connections", "--json"}, output),
            0);
  EXPECT_NE(output.find("\"opened\": 3,"), std::string::npos) << output;
  EXPECT_EQ(server.connections(), 3);
  EXPECT_TRUE(server.last_request().ends_with("\r\nConnection: close\r\n\r\n"));
}

TEST(BenchCommand, WaitsForAnAnswerUntilTheTimeout) {
  const BenchServer server;
  std::string output;
  EXPECT_EQ(run_tool({server.url() + "silent", "-n", "1", "-c", "1", "--timeout", "0.05", "--json"},
                     output),
            1);
  EXPECT_NE(output.find("\"timed out\": {\"count\": 1,"), std::string::npos) << output;
}

TEST(BenchCommand, FindsTheAddressOfANameThatAServerListensOn) {
  const BenchServer server;
  std::string output;
  EXPECT_EQ(run_tool({server.url("localhost"), "-n", "1", "-c", "1"}, output), 0) << output;
}

TEST(BenchCommand, AFixedRateLastsForTheWarmUpAndTheMeasurement) {
  // One request is due every millisecond from 0 to 5 ms. A slow machine does not send them all.
  const BenchServer server;
  std::string output;
  static_cast<void>(run_tool({server.url(), "--rate", "1000", "--seconds", "0.0035", "--warm-up",
                              "0.002", "-c", "1", "--json"},
                             output));
  const std::string_view name = "\"unsent\": ";
  const std::size_t at = output.find(name);
  ASSERT_NE(at, std::string::npos) << output;
  EXPECT_EQ(server.requests() + std::stoi(output.substr(at + name.size())), 6) << output;
}

TEST(BenchCommand, AcceptsNumbersWithinTheirLimitsOnly) {
  // Port 1 is unused. A command line that is accepted fails to connect with status 1.
  const auto status = [](std::vector<std::string> arguments) {
    for (const char* each : {"http://127.0.0.1:1/", "-n", "1", "-c", "1"}) {
      arguments.emplace_back(each);
    }
    std::string output;
    return run_tool(std::move(arguments), output);
  };
  struct Limits {
    const char* option;
    std::vector<std::string> accepted;
    std::vector<std::string> rejected;
  };
  for (const Limits& each : {Limits{"--timeout", {"0.001", "1000000"}, {"0.0009", "1000001", "-1"}},
                             Limits{"--rate", {"0.001", "1000000000"}, {"0.0009", "1000000001"}},
                             Limits{"--status", {"200", "599"}, {"199", "600"}},
                             Limits{"--body-bytes", {"0", "1000000000000"}, {"1000000000001"}},
                             Limits{"--depth", {"1", "1000"}, {"0", "10001"}},
                             Limits{"--threads", {"1"}, {"0", "1025"}}}) {
    for (const std::string& value : each.accepted) {
      EXPECT_EQ(status({each.option, value}), 1) << each.option << " " << value;
    }
    for (const std::string& value : each.rejected) {
      EXPECT_EQ(status({each.option, value}), 2) << each.option << " " << value;
    }
  }
}

TEST(BenchCommand, LimitsTheSizeOfRequestsThatAreWrittenTogether) {
  const auto status = [](const std::string& depth, std::size_t body) {
    std::string output;
    return run_tool({"http://127.0.0.1:1/", "-n", "1", "-c", "1", "--depth", depth, "--body",
                     std::string(body, 'x')},
                    output);
  };
  EXPECT_EQ(status("1", 70'000), 1) << "one request has no limit";
  EXPECT_EQ(status("2", 70'000), 2);
  // The head of each request has 60 bytes.
  EXPECT_EQ(status("2", 32 * 1024 - 60), 1);
  EXPECT_EQ(status("2", 32 * 1024 - 59), 2);
}

TEST(BenchCommand, ExplainsWrongCommandLines) {
  const auto printed = [](std::vector<std::string> arguments) {
    std::string output;
    EXPECT_EQ(run_tool(std::move(arguments), output), 2);
    return output;
  };
  const std::string url = "http://127.0.0.1:1/";
  EXPECT_EQ(printed({"ftp://127.0.0.1/"}),
            "weir bench: only http:// and https:// can be measured\n");
  EXPECT_EQ(printed({"here"}), "weir bench: not a URL of a server: 'here'\n");
  EXPECT_EQ(printed({url, "--numbered"}),
            "weir bench: --numbered takes one run of at most 18 # in the body\n");
  EXPECT_EQ(printed({url, "--new-connections", "--depth", "2"}),
            "weir bench: --new-connections requires --depth 1\n");
  EXPECT_EQ(printed({url, "--connections", "1", "--threads", "2"}),
            "weir bench: more threads than connections\n");
  EXPECT_EQ(printed({url, "--server-pid", "1073741824"}),
            "weir bench: --server-pid: there is no such process\n");
  EXPECT_EQ(printed({url, "--header", "no colon"}),
            "weir bench: the method is not a token, a header is not \"Name: value\", or both a "
            "header and --body give the length\n");
  EXPECT_EQ(printed({url, "--threads", "0"}),
            "--threads: '0' is not a whole number from 1 to 1024");
  EXPECT_EQ(printed({url, "--rate", "nan"}),
            "--rate: 'nan' is not a number from 0.001 to 1000000000");
  EXPECT_EQ(printed({url, "--depth", "5000"}),
            "weir bench: requests written together may have 65536 bytes in total: --depth or "
            "--body is too large\n");
}

TEST(BenchCommand, OffersItsOptionsWithTheirDefaults) {
  EXPECT_EQ(list_options(&add_command, "bench"), R"(-h,--help
url
-c,--connections 64
-d,--depth 1
-t,--threads 1
-s,--seconds 4
--warm-up
-n,--requests
--abandon
--rate
--new-connections
--resume
--tls-version
-m,--method GET
-b,--body
-H,--header
--numbered
--timeout 5
--status 200
--body-bytes
--bodies-vary
--backend auto
--busy-poll
--server-pid
--json
)");
}

}  // namespace
}  // namespace weir::bench::bench_command_test

// Runs `weir check` against whole servers: Weir's own, which pass everything, and installed
// servers of other projects, which have known failures.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/process.hpp"
#include "tests/server.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/test/temporary_tree.hpp"
#include "weir/task/test/sweep_budget.hpp"
#include "weir/tls/certificate/identity.hpp"

namespace weir::tests::check_test {
namespace {

struct Checked {
  std::optional<int> status;
  std::string output;
};

/// Runs `weir check` on a server of this machine ("127.0.0.1:8080"). The tool waits for an answer
/// as long as a test does, unless `timeout` says otherwise.
Checked check(const std::string& server, std::vector<std::string> more,
              std::chrono::seconds timeout = default_timeout, const std::string& scheme = "http") {
  more.insert(more.begin(), {"check", scheme + "://" + server + "/"});
  // Other tests run beside this one, and delay the answers too.
  more.insert(more.end(), {"--timeout", std::to_string(timeout.count()), "--latency-max", "2000"});
  Process tool(WEIR_TOOL_PROGRAM, more);
  Checked checked;
  checked.status = tool.wait_for_exit(2 * default_timeout);
  checked.output = tool.output() + tool.errors();
  return checked;
}

Checked check(std::uint16_t port, std::vector<std::string> more,
              std::chrono::seconds timeout = default_timeout) {
  return check("127.0.0.1:" + std::to_string(port), std::move(more), timeout);
}

/// Returns the options that select the cases of a run. If the process samples, they select a sixth
/// of the cases; see SweepBudget.
std::vector<std::string> protocol_cases() {
  std::vector<std::string> options{"--skip", "slow", "--skip", "limits/upload"};
  if (!SweepBudget::samples()) return options;
  Process tool(WEIR_TOOL_PROGRAM, {"check", "--list", "http://127.0.0.1/"});
  EXPECT_EQ(tool.wait_for_exit(), 0) << tool.errors();
  std::vector<std::string> names;
  std::istringstream lines(tool.output());
  for (std::string line; std::getline(lines, line);)
    names.push_back(line.substr(0, line.find(' ')));
  EXPECT_GT(names.size(), 500U);
  for (const std::string& each : SweepBudget::sample(std::move(names), 6)) {
    options.insert(options.end(), {"--only", each});
  }
  return options;
}

class Check : public EachBackend {};

TEST_P(Check, TheHelloExamplePassesEveryProtocolCase) {
  Server server("hello", GetParam());
  const Checked checked = check(server.port(), protocol_cases());
  EXPECT_EQ(checked.status, 0) << checked.output;
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(Check, TheWebSocketsOfAnExamplePassAllCases) {
  Server server("websocket_echo", GetParam());
  for (const std::string path : {"/ws", "/compressed"}) {
    const Checked checked = check(server.port(), {"--only", "websocket", "--websocket-path", path});
    EXPECT_EQ(checked.status, 0) << checked.output;
  }
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(Check, TheHelloExamplePassesThemOnARouteThatReadsBodies) {
  Server server("hello", GetParam());
  std::vector<std::string> options = protocol_cases();
  options.insert(options.end(), {"--post-path", "/users/1/notes"});
  const Checked checked = check(server.port(), options);
  EXPECT_EQ(checked.status, 0) << checked.output;
  EXPECT_TRUE(checked.output.contains("POST /users/1/notes answers 200\n")) << checked.output;
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(Check, TheHelloExamplePassesThemOverTls) {
  Server server("hello", GetParam(), {"--tls-self-signed"});
  const std::string at = "127.0.0.1:" + std::to_string(server.port());
  std::vector<std::string> options = protocol_cases();
  options.insert(options.end(), {"--skip", "tls/silent", "--skip", "tls/hello-slow"});
  const Checked checked = check(at, options, default_timeout, "https");
  EXPECT_EQ(checked.status, 0) << checked.output;
  EXPECT_TRUE(checked.output.contains(", certificate not verified (--cacert)\n")) << checked.output;
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

// They run alone: a server waits for a second for more of a body that it has refused, and the
// client may take longer while it computes the inputs of other cases.
TEST_P(Check, AnEarlyAnswerReachesAClientThatSendsOn) {
  for (const bool tls : {false, true}) {
    std::vector<std::string> options;
    if (tls) options.emplace_back("--tls-self-signed");
    Server server("hello", GetParam(), options);
    const std::string at = "127.0.0.1:" + std::to_string(server.port());
    for (const std::string path : {"/", "/users/1/notes"}) {
      const Checked checked = check(at, {"--only", "limits/upload", "--post-path", path},
                                    default_timeout, tls ? "https" : "http");
      EXPECT_EQ(checked.status, 0) << checked.output;
    }
    EXPECT_EQ(server.stop(), 0) << server.process().errors();
  }
}

TEST_P(Check, VerifiesACertificateWithTheCasOfAFile) {
  const auto identity_of = [](const char* name) {
    tls::SelfSigned certificate;
    certificate.names = {name};
    certificate.not_before = OsPlatform().wall_time();
    return tls::Identity::self_signed(certificate).value();
  };
  const tls::Identity identity = identity_of("127.0.0.1");
  os::TemporaryTree folder;
  folder.write("own.pem", identity.chain());
  folder.write("own.key", identity.key());
  folder.write("other.pem", identity_of("127.0.0.1").chain());
  Server server("hello", GetParam(),
                {"--tls-cert", folder.path("own.pem"), "--tls-key", folder.path("own.key")});
  const std::string at = "127.0.0.1:" + std::to_string(server.port());
  const auto checked_with = [&](const char* file) {
    return check(at, {"--only", "answers/date", "--cacert", folder.path(file)}, default_timeout,
                 "https");
  };
  const Checked trusted = checked_with("own.pem");
  EXPECT_EQ(trusted.status, 0) << trusted.output;
  EXPECT_TRUE(trusted.output.contains(", certificate verified\n")) << trusted.output;
  const Checked rejected = checked_with("other.pem");
  EXPECT_EQ(rejected.status, 2) << rejected.output;
  EXPECT_TRUE(rejected.output.contains(": no TLS connection: certificate_")) << rejected.output;
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(Check, HandlersWithArgumentsRefuseContentsThatDoNotFit) {
  Server server("arguments", GetParam());
  const std::pair<const char*, const char*> cases[] = {
      {"/login", "35 passed, 0 failed, 22 not applicable"},  // JSON and other types get 415
      {"/boards/1/notes", "35 passed, 0 failed, 22 not applicable"},
  };
  for (const auto& [path, counts] : cases) {
    const Checked checked =
        check(server.port(), {"--only", "contents", "--path", "/notes?word=x", "--post-path", path,
                              "--header", "Authorization: Bearer Ann"});
    EXPECT_EQ(checked.status, 0) << checked.output;
    EXPECT_TRUE(checked.output.contains(counts)) << checked.output;
  }
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(Check, SilentCompressedUploadsCostOthersNothing) {
  Server server("compression", GetParam());
  const Checked checked =
      check(server.port(), {"--only", "slow/crowd-gzip", "--only", "limits/gzip", "--path",
                            "/catalogue", "--post-path", "/measure"});
  EXPECT_EQ(checked.status, 0) << checked.output;
  EXPECT_TRUE(checked.output.contains("4 passed, 0 failed, ")) << checked.output;
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(Check, SlowStreamsBehindTheGatewayCostOthersNothing) {
  Server behind("hello", GetParam());
  const std::string upstream = "http://127.0.0.1:" + std::to_string(behind.port());
  Server gateway("gateway", GetParam(), {upstream, "--tls-self-signed"});
  const std::string at = "127.0.0.1:" + std::to_string(gateway.port());
  const Checked checked =
      check(at, {"--only", "http2/share", "--path", "/api/", "--post-path", "/api/users/1/notes"},
            default_timeout, "https");
  EXPECT_EQ(checked.status, 0) << checked.output;
  EXPECT_TRUE(checked.output.contains("2 passed, 0 failed, ")) << checked.output;
  EXPECT_EQ(gateway.stop(), 0) << gateway.process().errors();
  EXPECT_EQ(behind.stop(), 0) << behind.process().errors();
}

// Most machines resolve localhost to ::1 first, and no server listens there.
TEST_P(Check, FindsAServerThatListensOnOneOfTwoAddresses) {
  Server server("hello", GetParam());
  const std::string name = "localhost:" + std::to_string(server.port());
  const Checked checked = check(name, {"--only", "connection"});
  EXPECT_EQ(checked.status, 0) << checked.output;
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

INSTANTIATE_TEST_SUITE_P(On, Check, testing::ValuesIn(sampled_backends()), name_of);

// The server allows 10 s for a head and 5 s of grace for a body, far less than the test's limit.
// Tests in virtual time cover the idle timeout of one minute.
TEST(CheckSlow, TheHelloExamplePassesTheSlowCases) {
  Server server("hello", {"auto"});
  const Checked checked =
      check(server.port(), {"--only", "slow", "--skip", "slow/idle", "--post-path",
                            "/users/1/notes", "--slow-timeout", "50"});
  EXPECT_EQ(checked.status, 0) << checked.output;
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

// ---- Servers of other projects
// -----------------------------------------------------------------------------

const std::filesystem::path root = std::filesystem::path(WEIR_TEST_DATA_DIR) / "../..";

// The server may have to be built first.
constexpr std::chrono::seconds start_max{230};

/// Runs these cases against a server that prints its port. Each case must fail.
void expect_failures(Process& server, const std::vector<std::string>& names) {
  const auto port = server.wait_for_port(start_max);
  ASSERT_TRUE(port) << server.errors();
  std::vector<std::string> arguments{"--slow-timeout", "2"};
  for (const std::string& name : names) arguments.insert(arguments.end(), {"--only", name});
  // The events that these cases wait for, such as an end, do not come.
  const Checked checked = check(*port, arguments, std::chrono::seconds(10));
  EXPECT_EQ(checked.status, 1) << checked.output;
  for (const std::string& name : names) {
    EXPECT_TRUE(checked.output.contains("\n" + name + ": ")) << checked.output;
  }
  EXPECT_TRUE(checked.output.contains("\n0 passed, ")) << checked.output;
}

TEST(CheckOthers, NodeTakesAnyHostAndWaitsForSlowHeads) {
  const std::string node = in_path("node");
  if (node.empty()) GTEST_SKIP() << "there is no node";
  Process server(node, {(root / "tools/differential/peers/reporter.js").string()});
  expect_failures(server, {"host-02", "rule-05-06", "slow/head-bytes"});
}

TEST(CheckOthers, GoTakesBothLengthsAndBareLineFeeds) {
  const std::string python = in_path("python3");
  if (python.empty() || in_path("go").empty()) GTEST_SKIP() << "there is no python3 or no go";
  Process server(python, {(root / "tools/differential/peers.py").string(), "go", "--build",
                          (root / "build").string()});
  expect_failures(server, {"transfer-encoding-01", "request-line-02", "slow/body"});
}

TEST(CheckOthers, NginxTakesBareLineFeeds) {
  std::filesystem::path folder = root / "bench/peers/nginx";
  const std::filesystem::path unpacked = root / "build/bench/peers/nginx";
  const std::string python = in_path("python3");
  if (in_path("nginx").empty()) folder = unpacked;
  const bool found =
      folder != unpacked || std::filesystem::exists(folder / "package/usr/sbin/nginx");
  if (python.empty() || !found) {
    GTEST_SKIP() << "there is no python3, or no nginx: neither installed nor unpacked by ./dev "
                    "bench";
  }
  const std::filesystem::path prefix =
      std::filesystem::temp_directory_path() / ("weir-nginx-" + std::to_string(::getpid()));
  std::filesystem::create_directories(prefix);
  {
    Process server(python, {(folder / "start.py").string(), "--prefix", prefix.string()});
    expect_failures(server, {"request-line-02", "rule-01-04", "slow/head-bytes"});
  }
  std::filesystem::remove_all(prefix);
}

}  // namespace
}  // namespace weir::tests::check_test

// Tests how the server programs start and fail to start: options, banner, exit status, error
// line.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/process.hpp"
#include "tests/server.hpp"
#include "weir/base/version.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::tests::command_line_test {
namespace {

constexpr std::array<std::string_view, 6> every_example{"hello",     "echo",      "params",
                                                        "streaming", "deadlines", "bench"};

struct Outcome {
  std::optional<int> status;
  std::string output;
  std::string errors;
};

Outcome run(std::string_view example, const std::vector<std::string>& arguments) {
  Process process = Process::example(example, arguments);
  const auto status = process.wait_for_exit();
  return {status, process.output(), process.errors()};
}

bool one_line(std::string_view text) {
  return text.size() > 1 && text.find('\n') == text.size() - 1;
}

/// Returns the last line of `text` without its newline.
std::string_view last_line(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

TEST(CommandLine, EveryExampleExplainsItsOptions) {
  for (const std::string_view example : every_example) {
    const Outcome help = run(example, {"--help"});
    EXPECT_EQ(help.status, 0) << example;
    EXPECT_EQ(help.errors, "") << example;
    for (const char* const option :
         {"--port", "--cores", "--backend", "--no-pin", "--drain-timeout", "--busy-poll",
          "--busy-wait", "--real-time", "--real-time-required", "--hot-restart", "--processes",
          "--help", "--version"}) {
      EXPECT_TRUE(help.output.contains(option)) << example << " " << option;
    }
  }
}

TEST(CommandLine, OnlyServersTakeTheOptionsOfTls) {
  for (const std::string_view example : {"echo", "chat", "bench", "report", "files", "events",
                                         "services_notes", "notes_api", "pool_lab", "https"}) {
    EXPECT_TRUE(run(example, {"--help"}).output.contains("--tls-self-signed")) << example;
  }
  for (const std::string_view example : {"fan_out", "udp_echo", "services_hello"}) {
    EXPECT_EQ(run(example, {"--tls-self-signed"}).status, 2) << example;
  }
}

TEST(CommandLine, OnlyServersOfHttpTakePlainHttp2) {
  for (const std::string_view example : {"hello", "bench", "report", "files", "events", "metrics",
                                         "services_notes", "notes_api", "pool_lab", "https"}) {
    EXPECT_TRUE(run(example, {"--help"}).output.contains("--http2-plain")) << example;
  }
  for (const std::string_view example : {"echo", "chat", "udp_echo", "services_hello"}) {
    EXPECT_EQ(run(example, {"--http2-plain"}).status, 2) << example;
  }
  EXPECT_EQ(run("hello", {"--http2-plain", "--tls-self-signed"}).status, 2);
}

TEST(CommandLine, EveryServerPrintsItsVersion) {
  for (const std::string_view example : every_example) {
    const Outcome asked = run(example, {"--port", "0", "--version"});
    EXPECT_EQ(asked.status, 0) << example;
    EXPECT_EQ(asked.errors, "") << example;
    EXPECT_EQ(asked.output,
              "example_" + std::string(example) + " on Weir " + std::string(version()) + "\n");
  }
}

TEST(CommandLine, AnInvalidArgumentPrintsOneLineAndExitsWithStatus2) {
  const std::vector<std::vector<std::string>> wrong{{"--nonsense"},
                                                    {"stray"},
                                                    {"--port"},
                                                    {"--port", "x"},
                                                    {"--port", "65536"},
                                                    {"--port", "-1"},
                                                    {"--cores", "0"},
                                                    {"--cores", "many"},
                                                    {"--backend", "kqueue"},
                                                    {"--backend", "0"},
                                                    {"--drain-timeout", "-1"},
                                                    {"--drain-timeout", "nan"},
                                                    {"--address", "moon"},
                                                    {"--address", ""},
                                                    {"--address="},
                                                    {"--hot-restart", ""},
                                                    {"--processes", "0"},
                                                    {"--processes", "2", "--hot-restart", "x"},
                                                    {"--real-time", "0"},
                                                    {"--real-time", "100"},
                                                    {"--real-time-required"},
                                                    {"--port", "1", "--port", "2"}};
  for (const std::vector<std::string>& arguments : wrong) {
    std::string words;
    for (const std::string& each : arguments) words += each + " ";
    const Outcome outcome = run("hello", arguments);
    EXPECT_EQ(outcome.status, 2) << words << outcome.errors;
    EXPECT_EQ(outcome.output, "") << words;
    EXPECT_TRUE(one_line(outcome.errors)) << words << outcome.errors;
  }
  for (const std::string_view example : every_example) {
    EXPECT_EQ(run(example, {"--nonsense"}).status, 2) << example;
  }
}

class CommandLineOn : public EachBackend {};

TEST_P(CommandLineOn, TheBannerNamesLoopsBackendAndLimits) {
  Server server("hello", GetParam(), {"--cores", "2"});
  const std::string backend(GetParam().option);
  ASSERT_TRUE(server.process().wait_for("listening on 127.0.0.1:" + std::to_string(server.port())));
  const std::string banner = server.process().output() + server.process().errors();
  EXPECT_TRUE(banner.contains("2 event loops")) << banner;
  EXPECT_TRUE(banner.contains("backend " + backend + " (")) << banner;
  EXPECT_TRUE(banner.contains(" connections")) << banner;
  EXPECT_TRUE(banner.contains("open files: ")) << banner;
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

/// Returns the answer to the preface of HTTP/2 and empty SETTINGS.
std::string answer_to_http2(std::uint16_t port) {
  using namespace std::string_view_literals;
  Client client(port);
  EXPECT_TRUE(client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"sv));
  client.finish_sending();
  return client.read_to_end().value_or("");
}

/// Returns true if the bytes begin with SETTINGS.
bool begins_with_settings(std::string_view bytes) {
  return bytes.size() >= 9 && bytes[3] == 4 && !bytes.starts_with("HTTP/");
}

TEST_P(CommandLineOn, SpeaksHttp2OnPlainConnectionsByOption) {
  Server plain("hello", GetParam());
  EXPECT_TRUE(answer_to_http2(plain.port()).starts_with("HTTP/1.1 "));
  EXPECT_EQ(plain.stop(), 0) << plain.process().errors();
  for (const std::string_view example : {"hello", "report", "services_notes"}) {
    Server server(example, GetParam(), {"--http2-plain"});
    EXPECT_TRUE(begins_with_settings(answer_to_http2(server.port()))) << example;
    EXPECT_EQ(server.exchange(get("/"))->has_header("Date"), true) << "HTTP/1.1 works too";
    EXPECT_EQ(server.stop(), 0) << server.process().errors();
  }
}

TEST_P(CommandLineOn, ATakenPortPrintsOneLineAndExitsWithStatus1) {
  // The kernel chooses the port. This listener owns it and does not share it.
  const os::Fd taken =
      os::open_listener(os::Address::loopback(0), {.reuse_address = false}).value();
  const std::string port = std::to_string(os::local_address(taken.get()).value().port());
  for (const char* const cores : {"1", "2"}) {
    for (const std::string_view example : {"hello", "echo"}) {
      const Outcome outcome = run(example, {"--address", "127.0.0.1", "--port", port, "--backend",
                                            std::string(GetParam().option), "--cores", cores});
      EXPECT_EQ(outcome.status, 1) << outcome.errors;
      const std::string_view line = last_line(outcome.errors);
      EXPECT_TRUE(line.contains("127.0.0.1:" + port) && line.contains("in use")) << outcome.errors;
      EXPECT_EQ(outcome.errors.find("in use"), outcome.errors.rfind("in use")) << outcome.errors;
    }
  }
}

TEST_P(CommandLineOn, ASecondServerCannotTakeThePortOfTheFirst) {
  Server server("hello", GetParam());
  const Outcome second =
      run("hello", {"--address", "127.0.0.1", "--port", std::to_string(server.port()), "--backend",
                    std::string(GetParam().option)});
  EXPECT_EQ(second.status, 1) << second.errors;
  EXPECT_TRUE(last_line(second.errors).contains("in use")) << second.errors;
  const auto answer = server.exchange(get("/"));
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST(CommandLine, SelectsTheBestBackendByDefault) {
  Process process = Process::example("hello", {"--port", "0", "--cores", "1"});
  const auto port = process.wait_for_port();
  ASSERT_TRUE(port) << process.errors();
  const bool uring = !skip_reason({"uring"});
  EXPECT_TRUE(process.errors().contains(uring ? "backend uring (" : "backend epoll ("))
      << process.errors();
  EXPECT_EQ(Client(*port).exchange(get("/"))->status, 200);
  process.signal(SIGINT);
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
}

// The two options are tested one after the other. A real-time thread that never sleeps would
// leave almost no time to other tests.
TEST(CommandLine, ServesInRealTimeAndWithBusyPolling) {
  const std::array<std::vector<std::string>, 2> kinds{{{"--real-time", "1"}, {"--busy-poll"}}};
  for (const std::vector<std::string>& kind : kinds) {
    std::vector<std::string> arguments{"--port", "0", "--address", "127.0.0.1", "--cores", "1"};
    arguments.insert(arguments.end(), kind.begin(), kind.end());
    Process process = Process::example("hello", arguments);
    const auto port = process.wait_for_port();
    ASSERT_TRUE(port) << process.errors();
    EXPECT_EQ(Client(*port).exchange(get("/"))->status, 200);
    EXPECT_TRUE(process.errors().contains(kind.size() == 1 ? "busy polling" : "real time"));
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  }
}

TEST(CommandLine, ListensOnIpv6Too) {
  Process process = Process::example("hello", {"--port", "0", "--address", "::1", "--cores", "2",
                                               "--no-pin", "--drain-timeout", "5"});
  const auto port = process.wait_for_port();
  if (!port && process.errors().contains("cannot assign")) GTEST_SKIP() << "no IPv6 here";
  ASSERT_TRUE(port) << process.errors();
  Client client(os::Address::parse("[::1]:" + std::to_string(*port)).value());
  EXPECT_EQ(client.exchange(get("/"))->status, 200);
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
}

TEST(CommandLine, AnAddressOfNoInterfacePrintsOneLineAndExitsWithStatus1) {
  // RFC 5737 reserves 192.0.2.0/24 for documentation, so no machine has this address.
  const Outcome outcome = run("hello", {"--port", "0", "--address", "192.0.2.1"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(last_line(outcome.errors).contains("192.0.2.1:0")) << outcome.errors;
}

INSTANTIATE_TEST_SUITE_P(On, CommandLineOn, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::command_line_test

// Tests of the command line of a server, and of the documented defaults of a runtime.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "weir/base/version.hpp"
#include "weir/runtime/messaging/broadcast.hpp"
#include "weir/runtime/messaging/mailbox.hpp"
#include "weir/runtime/options.hpp"

namespace weir::server_options_test {
namespace {

using Arguments = std::vector<std::string>;

ServerOptions parse(Arguments arguments, TlsArguments* tls = nullptr) {
  arguments.insert(arguments.begin(), "/opt/bin/shop");
  std::vector<char*> pointers;
  for (std::string& each : arguments) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  const int count = static_cast<int>(arguments.size());
  return tls == nullptr ? ServerOptions::from_args(count, pointers.data())
                        : ServerOptions::from_args(count, pointers.data(), *tls);
}

void expect_defaults(const RuntimeOptions& options) {
  EXPECT_EQ(options.cores, 0U);
  EXPECT_EQ(options.backend, BackendChoice::automatic);
  EXPECT_TRUE(options.pin);
  EXPECT_EQ(options.drain_timeout, 10s);
  EXPECT_TRUE(options.handle_signals);
  EXPECT_TRUE(options.announce);
  EXPECT_FALSE(options.busy_poll);
  EXPECT_EQ(options.busy_wait, Duration(0));
  EXPECT_FALSE(options.real_time);
  EXPECT_TRUE(options.inherited.empty());
  EXPECT_FALSE(options.hot_restart);
  EXPECT_FALSE(options.processes);
}

TEST(RuntimeOptions, HaveTheDocumentedDefaults) {
  expect_defaults(RuntimeOptions());
  expect_defaults(ServerOptions());
  EXPECT_EQ(ServerOptions().endpoint, Endpoint::any(8080));
  const RealTime real_time;
  EXPECT_EQ(real_time.priority, 50);
  EXPECT_TRUE(real_time.lock_memory);
  EXPECT_EQ(real_time.pool_bytes, std::size_t{4} * 1024 * 1024);
  EXPECT_FALSE(real_time.required);
  EXPECT_EQ(ProcessOptions().count, 2U);
  EXPECT_TRUE(ProcessOptions().endpoints.empty());
}

TEST(MessagingOptions, HaveTheDocumentedDefaults) {
  EXPECT_EQ(Mailbox<int>().capacity(), 1024U);
  EXPECT_EQ(MailboxOptions().overflow_policy, OverflowPolicy::wait);
  EXPECT_EQ(Broadcast<int>().capacity(), 256U);
  EXPECT_EQ(BroadcastOptions().slow_reader_policy, SlowReaderPolicy::lag);
}

TEST(ServerCommandLine, KeepsTheDefaultsWithoutOptions) {
  const ServerOptions options = parse({});
  expect_defaults(options);
  EXPECT_EQ(options.endpoint, Endpoint::any(8080));
}

TEST(ServerCommandLine, KeepsTheDefaultsWithoutAProgramName) {
  char* none = nullptr;
  const ServerOptions options = ServerOptions::from_args(0, &none);
  expect_defaults(options);
  EXPECT_EQ(options.endpoint, Endpoint::any(8080));
}

TEST(ServerCommandLine, SetsTheEndpoint) {
  const auto endpoint = [](const Arguments& arguments) {
    return parse(arguments).endpoint.to_string();
  };
  EXPECT_EQ(endpoint({"--port", "0"}), "[::]:0");
  EXPECT_EQ(endpoint({"--port", "1"}), "[::]:1");
  EXPECT_EQ(endpoint({"--port", "65535"}), "[::]:65535");
  EXPECT_EQ(endpoint({"--address", "127.0.0.1"}), "127.0.0.1:8080");
  EXPECT_EQ(endpoint({"--address", "::1", "--port", "7"}), "[::1]:7");
  EXPECT_EQ(endpoint({"--address", "[::1]", "--port", "7"}), "[::1]:7");
}

TEST(ServerCommandLine, SetsTheLoops) {
  EXPECT_EQ(parse({"--cores", "1"}).cores, 1U);
  EXPECT_EQ(parse({"--cores", "1024"}).cores, 1024U);
  EXPECT_FALSE(parse({"--no-pin"}).pin);
  EXPECT_EQ(parse({"--backend", "auto"}).backend, BackendChoice::automatic);
  EXPECT_EQ(parse({"--backend", "uring"}).backend, BackendChoice::uring);
  EXPECT_EQ(parse({"--backend", "uring:6.1"}).backend, BackendChoice::uring_6_1);
  EXPECT_EQ(parse({"--backend", "epoll"}).backend, BackendChoice::epoll);
  EXPECT_EQ(parse({"--backend", "poll"}).backend, BackendChoice::poll);
}

TEST(ServerCommandLine, SetsTimes) {
  EXPECT_EQ(parse({"--drain-timeout", "0"}).drain_timeout, Duration(0));
  EXPECT_EQ(parse({"--drain-timeout", "0.25"}).drain_timeout, 250ms);
  EXPECT_EQ(parse({"--drain-timeout", "1000000"}).drain_timeout, 1'000'000s);
  EXPECT_EQ(parse({"--busy-wait", "0"}).busy_wait, Duration(0));
  EXPECT_EQ(parse({"--busy-wait", "1"}).busy_wait, 1us);
  EXPECT_EQ(parse({"--busy-wait", "1000000"}).busy_wait, 1s);
  EXPECT_TRUE(parse({"--busy-poll"}).busy_poll);
}

TEST(ServerCommandLine, SetsRealTime) {
  for (const int priority : {1, 99}) {
    const ServerOptions options = parse({"--real-time", std::to_string(priority)});
    ASSERT_TRUE(options.real_time);
    EXPECT_EQ(options.real_time->priority, priority);
    EXPECT_TRUE(options.real_time->lock_memory);
    EXPECT_EQ(options.real_time->pool_bytes, RealTime().pool_bytes);
    EXPECT_FALSE(options.real_time->required);
  }
  const ServerOptions strict = parse({"--real-time", "7", "--real-time-required"});
  ASSERT_TRUE(strict.real_time);
  EXPECT_TRUE(strict.real_time->required);
}

TEST(ServerCommandLine, SetsTheProcesses) {
  const ServerOptions two = parse({"--processes", "2", "--address", "::1", "--port", "81"});
  ASSERT_TRUE(two.processes);
  EXPECT_EQ(two.processes->count, 2U);
  EXPECT_EQ(two.processes->endpoints, std::vector<Endpoint>{two.endpoint});
  EXPECT_EQ(two.endpoint.to_string(), "[::1]:81");
  EXPECT_EQ(parse({"--processes", "1024"}).processes->count, 1024U);
  EXPECT_FALSE(parse({"--processes", "1"}).processes);
  const ServerOptions restarting = parse({"--processes", "1", "--hot-restart", "/run/shop"});
  ASSERT_TRUE(restarting.hot_restart);
  EXPECT_EQ(restarting.hot_restart->path, "/run/shop");
  EXPECT_FALSE(restarting.processes);
}

TEST(ServerCommandLine, SetsTls) {
  const std::string file = "/dev/null";
  TlsArguments none;
  parse({}, &none);
  EXPECT_FALSE(none.used());
  TlsArguments one;
  EXPECT_EQ(parse({"--tls-cert", file, "--tls-key", file, "--port", "7"}, &one).endpoint.port(), 7);
  EXPECT_TRUE(one.used());
  EXPECT_EQ(one.certificates, Arguments{file});
  EXPECT_EQ(one.keys, Arguments{file});
  TlsArguments two;
  parse({"--tls-cert", "/dev/zero", "--tls-key", file, "--tls-cert", file, "--tls-key", file},
        &two);
  EXPECT_EQ(two.certificates, (Arguments{"/dev/zero", file}));
  EXPECT_EQ(two.keys.size(), 2U);
  TlsArguments own;
  parse({"--tls-self-signed"}, &own);
  EXPECT_TRUE(own.used() && own.self_signed);
  TlsArguments fleet;
  parse({"--tls-self-signed", "--tls-ticket-keys", "/dev/zero"}, &fleet);
  EXPECT_EQ(fleet.ticket_keys, "/dev/zero");
  TlsArguments mutual;
  parse({"--tls-self-signed", "--tls-client-ca", file, "--tls-client-ca", "/dev/zero"}, &mutual);
  EXPECT_EQ(mutual.client_cas, (Arguments{file, "/dev/zero"}));
}

TEST(ServerCommandLineDeathTest, InvalidTlsOptionsEndTheProgramWithOneLine) {
  struct Case {
    Arguments arguments;
    std::string named;
  };
  const std::vector<Case> cases = {
      {{"--tls-cert", "/nowhere/a.pem", "--tls-key", "/dev/null"}, "/nowhere/a.pem"},
      {{"--tls-cert", "", "--tls-key", "/dev/null"}, "--tls-cert"},
      {{"--tls-cert", "/dev/null"}, "--tls-key"},
      {{"--tls-key", "/dev/null"}, "--tls-cert"},
      {{"--tls-cert", "/dev/null", "--tls-cert", "/dev/null", "--tls-key", "/dev/null"},
       "each certificate needs one key"},
      {{"--tls-ticket-keys", "/dev/null"}, "--tls-ticket-keys needs --tls-cert"},
      {{"--tls-self-signed", "--tls-ticket-keys", "/nowhere/keys"}, "/nowhere/keys"},
      {{"--tls-client-ca", "/dev/null"}, "--tls-client-ca needs --tls-cert"},
      {{"--tls-self-signed", "--tls-client-ca", "/nowhere/ca.pem"}, "/nowhere/ca.pem"},
      {{"--tls-self-signed", "--tls-cert", "/dev/null", "--tls-key", "/dev/null"},
       "--tls-self-signed"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(testing::PrintToString(each.arguments));
    TlsArguments tls;
    EXPECT_EXIT(parse(each.arguments, &tls), testing::ExitedWithCode(2),
                "^/opt/bin/shop: [^\n]*" + each.named + "[^\n]* \\(--help shows the options\\)\n$");
  }
  for (const std::string name : {"--tls-self-signed", "--tls-cert=/dev/null"}) {
    EXPECT_EXIT(parse({name}), testing::ExitedWithCode(2), name)
        << "a program without TLS refuses it";
  }
}

TEST(ServerCommandLineDeathTest, InvalidOptionsEndTheProgramWithOneLine) {
  struct Case {
    Arguments arguments;
    std::string named;  // a part of the line
  };
  const std::vector<Case> cases = {
      {{"--port", "-1"}, "--port"},
      {{"--port", "65536"}, "--port"},
      {{"--address", ""}, "--address"},
      {{"--address", "example"}, "--address: 'example' is not an IP address"},
      {{"--address", "1::2::3"}, "--address: '1::2::3' is not an IP address"},
      {{"--cores", "0"}, "--cores"},
      {{"--cores", "1025"}, "--cores"},
      {{"--processes", "0"}, "--processes"},
      {{"--processes", "1025"}, "--processes"},
      {{"--backend", "select"}, "--backend"},
      {{"--drain-timeout", "-0.5"}, "--drain-timeout"},
      {{"--drain-timeout", "1000001"}, "--drain-timeout"},
      {{"--drain-timeout", "nan"}, "--drain-timeout: not a number of seconds"},
      {{"--busy-wait", "-1"}, "--busy-wait"},
      {{"--busy-wait", "1000001"}, "--busy-wait"},
      {{"--real-time", "0"}, "--real-time"},
      {{"--real-time", "100"}, "--real-time"},
      {{"--real-time-required"}, "--real-time"},
      {{"--hot-restart", ""}, "--hot-restart"},
      {{"--processes", "2", "--hot-restart", "/run/shop"},
       "--processes and --hot-restart cannot be combined"},
      {{"--unknown"}, "--unknown"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(testing::PrintToString(each.arguments));
    EXPECT_EXIT(parse(each.arguments), testing::ExitedWithCode(2),
                "^/opt/bin/shop: [^\n]*" + each.named + "[^\n]* \\(--help shows the options\\)\n$");
  }
}

ServerOptions parse_http(Arguments arguments, TlsArguments& tls, HttpArguments& http) {
  arguments.insert(arguments.begin(), "/opt/bin/shop");
  std::vector<char*> pointers;
  for (std::string& each : arguments) pointers.push_back(each.data());
  return ServerOptions::from_args(static_cast<int>(pointers.size()), pointers.data(), tls, http);
}

TEST(ServerCommandLine, SetsPlainHttp2) {
  TlsArguments tls;
  HttpArguments http;
  parse_http({}, tls, http);
  EXPECT_FALSE(http.http2_plain);
  EXPECT_EQ(parse_http({"--http2-plain", "--port", "7"}, tls, http).endpoint.port(), 7);
  EXPECT_TRUE(http.http2_plain);
}

TEST(ServerCommandLineDeathTest, PlainHttp2IsForPlainServersOfHttp) {
  TlsArguments tls;
  HttpArguments http;
  EXPECT_EXIT(parse_http({"--http2-plain", "--tls-self-signed"}, tls, http),
              testing::ExitedWithCode(2), "--http2-plain and the options of TLS");
  EXPECT_EXIT(parse({"--http2-plain"}), testing::ExitedWithCode(2), "--http2-plain");
  EXPECT_EXIT(parse({"--http2-plain"}, &tls), testing::ExitedWithCode(2), "--http2-plain")
      << "a program without HTTP refuses it";
}

/// Sends the standard output to the standard error, which a death test can read.
ServerOptions parse_with_visible_output(const Arguments& arguments) {
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return parse(arguments);
}

TEST(ServerCommandLineDeathTest, PrintsTheVersionAndEndsWell) {
  EXPECT_EXIT(parse_with_visible_output({"--version"}), testing::ExitedWithCode(0),
              "^shop on Weir " + std::string(version()) + "\n$");
}

TEST(ServerCommandLineDeathTest, HelpListsTheOptionsInTheDocumentedOrder) {
  std::string in_order;
  for (const std::string option :
       {"--help", "--port", "--address", "--cores", "--processes", "--backend", "--no-pin",
        "--drain-timeout", "--busy-poll", "--busy-wait", "--real-time", "--real-time-required",
        "--hot-restart", "--version"}) {
    in_order += option + "[ \n].*";
  }
  EXPECT_EXIT(parse_with_visible_output({"--help"}), testing::ExitedWithCode(0), in_order);
}

TEST(ServerCommandLineDeathTest, HelpShowsTheDefaults) {
  for (const std::string line :
       {"--port [^\n]*65535\\][ =]\\[?8080", "--processes [^\n]*1024\\][ =]\\[?1[^0-9]",
        "--drain-timeout [^\n]*06\\][ =]\\[?10[^0-9]"}) {
    EXPECT_EXIT(parse_with_visible_output({"--help"}), testing::ExitedWithCode(0), line);
  }
}

}  // namespace
}  // namespace weir::server_options_test

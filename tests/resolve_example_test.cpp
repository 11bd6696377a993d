// Tests the example that resolves a name and connects to it, with a name server of the test.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <string>
#include <thread>

#include "tests/process.hpp"
#include "weir/net/test/name_server_fixture.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::tests::resolve_example_test {
namespace {

/// A TestNameServer runs a name server on a core of its own during its lifetime.
class TestNameServer {
 public:
  TestNameServer() { address_ = opened_.get_future().get(); }
  ~TestNameServer() {
    runtime_.stop();
    thread_.join();
  }

  std::string address() const { return address_.to_string(); }
  std::string port() const { return std::to_string(address_.port()); }

 private:
  static Task<> serve(Scope&, TestNameServer& name_server) {
    // The name server itself listens for connections at this address. No server listens at the
    // other.
    name_server.server_.rules["www.example.test"].addresses.push_back(dns::ip("127.0.0.1"));
    name_server.server_.rules["silent.example.test"].behavior = dns::DnsRule::Behavior::never;
    const auto until_stopped = [&name_server]() -> Task<> {
      name_server.opened_.set_value(name_server.server_.address());
      std::ignore = co_await sleep_until(never);
    };
    co_await dns::with_name_server(name_server.server_, until_stopped);
  }

  dns::FakeDnsServer server_;
  std::promise<Endpoint> opened_;
  Endpoint address_;
  Runtime runtime_{{.cores = 1, .pin = false, .handle_signals = false, .announce = false}};
  std::thread thread_{[this] { runtime_.run_on_each_core(serve, std::ref(*this)); }};
};

TEST(ExampleResolve, PrintsTheAddressesAndTheOneThatAnswers) {
  const TestNameServer names;
  Process process =
      Process::example("resolve", {"www.example.test", names.port(), names.address()});
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  EXPECT_EQ(process.output(),
            "127.0.0.1:" + names.port() + "\nconnected to 127.0.0.1:" + names.port() + "\n");
}

TEST(ExampleResolve, PrintsTheError) {
  const TestNameServer names;
  Process process = Process::example("resolve", {"missing.example.test", "80", names.address()});
  EXPECT_EQ(process.wait_for_exit(), 1);
  EXPECT_TRUE(process.errors().contains("no such name")) << process.errors();
  Process misused = Process::example("resolve", {"a", "99999"});
  EXPECT_EQ(misused.wait_for_exit(), 2);
}

TEST(ExampleResolve, ResolvesLocalhostWithoutAServer) {
  Process process = Process::example("resolve", {"localhost"});
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  EXPECT_EQ(process.output(), "[::1]:0\n127.0.0.1:0\n");
}

}  // namespace
}  // namespace weir::tests::resolve_example_test

// The program that looks a name up and connects to it, with a name server of ours.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <string>
#include <thread>

#include "tests/process.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/net/test/name_server_fixture.hpp"

namespace weir::tests {
namespace {

/// The server on a core of its own, as long as this lives.
class NamesOfOurs {
 public:
  NamesOfOurs() { address_ = opened_.get_future().get(); }
  ~NamesOfOurs() {
    runtime_.stop();
    thread_.join();
  }

  std::string address() const { return address_.to_string(); }
  std::string port() const { return std::to_string(address_.port()); }

 private:
  static Task<> serve(Scope&, NamesOfOurs& ours) {
    // What answers there is its own listener for connections; nobody listens at the other address.
    ours.server_.rules["www.example.test"].addresses.push_back(names::ip("127.0.0.1"));
    ours.server_.rules["silent.example.test"].manner = names::NameRule::Manner::never;
    const auto until_stopped = [&ours]() -> Task<> {
      ours.opened_.set_value(ours.server_.address());
      static_cast<void>(co_await sleep_until(never));
    };
    co_await names::with_name_server(ours.server_, until_stopped);
  }

  names::NameServer server_;
  std::promise<Endpoint> opened_;
  Endpoint address_;
  Runtime runtime_{{.cores = 1, .pin = false, .handle_signals = false, .announce = false}};
  std::thread thread_{[this] { runtime_.run_on_each_core(serve, std::ref(*this)); }};
};

TEST(ExampleResolve, TellsTheAddressesAndWhichOfThemAnswers) {
  const NamesOfOurs names;
  Process process =
      Process::example("resolve", {"www.example.test", names.port(), names.address()});
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  EXPECT_EQ(process.output(),
            "127.0.0.1:" + names.port() + "\nconnected to 127.0.0.1:" + names.port() + "\n");
}

TEST(ExampleResolve, SaysWhatIsWrong) {
  const NamesOfOurs names;
  Process process = Process::example("resolve", {"missing.example.test", "80", names.address()});
  EXPECT_EQ(process.wait_for_exit(), 1);
  EXPECT_TRUE(process.errors().contains("no such name")) << process.errors();
  Process misused = Process::example("resolve", {"a", "99999"});
  EXPECT_EQ(misused.wait_for_exit(), 2);
}

TEST(ExampleResolve, KnowsThisMachineWithoutAServer) {
  Process process = Process::example("resolve", {"localhost"});
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  EXPECT_EQ(process.output(), "[::1]:0\n127.0.0.1:0\n");
}

}  // namespace
}  // namespace weir::tests

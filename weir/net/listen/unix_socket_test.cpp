#include "weir/net/listen/unix_socket.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "weir/net/test/net_fixture.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::unix_socket_test {
namespace {

class UnixSocketTest : public NetTest {
 protected:
  /// Returns a path that only this process uses. No file is left there at the end of a test.
  std::string path() const {
    return (std::filesystem::temp_directory_path() / ("weir-unix-" + std::to_string(::getpid())))
        .string();
  }
  void TearDown() override {
    EXPECT_FALSE(std::filesystem::exists(path())) << "the file was left behind";
    NetTest::TearDown();
  }
};
INSTANTIATE_TEST_SUITE_P(On, UnixSocketTest, every_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

Task<> talk(std::string name) {
  auto listener = co_await unix_socket::listen(name);
  EXPECT_TRUE(listener) << listener.error().message();
  if (!listener) co_return;
  auto both = co_await all(as_task(listener->accept()), unix_socket::connect(name));
  EXPECT_TRUE(both);
  if (!both) co_return;
  auto& [server, client] = *both;
  EXPECT_TRUE(client.set_no_delay(true)) << "the option does not exist here";
  EXPECT_TRUE(co_await client.write("through a file"));
  EXPECT_TRUE(client.finish_writing());
  const auto heard = co_await read_to_end(server);
  EXPECT_EQ(heard.first, "through a file");
  EXPECT_EQ(heard.second, Errc::end_of_stream);
  EXPECT_TRUE(co_await server.write("and back"));
  EXPECT_EQ(co_await read_some(client, 8), "and back");
  const ListenOptions alone{.reuse_port = false};
  const auto taken = co_await tcp::listen(listener->local_address(), alone);
  EXPECT_EQ(taken.error(), std::errc::address_in_use);
}

TEST_P(UnixSocketTest, ConnectsByPath) {
  run(talk(path()));
}

TEST_P(UnixSocketTest, ConnectsByAbstractName) {
  run(talk("@" + std::filesystem::path(path()).filename().string()));
}

TEST_P(UnixSocketTest, RejectsInvalidNames) {
  const auto try_names = []() -> Task<> {
    for (const std::string& name : {std::string(), std::string(200, 'x')}) {
      EXPECT_EQ((co_await unix_socket::listen(name)).error(), Errc::bad_input);
      EXPECT_EQ((co_await unix_socket::connect(name)).error(), Errc::bad_input);
    }
  };
  run(try_names());
}

TEST_P(UnixSocketTest, ConnectFailsWithoutAListener) {
  const auto connect = [](std::string name) -> Task<std::error_code> {
    co_return (co_await unix_socket::connect(name)).error();
  };
  const std::error_code error = run(connect(path()));
  EXPECT_TRUE(error == std::errc::no_such_file_or_directory ||
              error == std::errc::connection_refused)
      << error.message();
}

TEST_P(UnixSocketTest, DrainAcceptsWaitingConnectionsAndCloses) {
  const auto drain = [](std::string name) -> Task<> {
    const Context own = co_await this_context();
    auto listener = co_await unix_socket::listen(name);
    EXPECT_TRUE(listener);
    std::vector<tcp::Stream> clients;
    for (int i = 0; i < 5; ++i) {
      auto client = co_await unix_socket::connect(name);
      EXPECT_TRUE(client);
      EXPECT_TRUE(co_await client->write(std::to_string(i)));
      clients.push_back(std::move(*client));
    }
    own.loop->drain();
    for (int i = 0; i < 5; ++i) {
      auto stream = co_await listener->accept();
      EXPECT_TRUE(stream);
      if (!stream) co_return;
      EXPECT_EQ(co_await read_some(*stream, 1), std::to_string(i));
    }
    EXPECT_EQ((co_await listener->accept()).error(), Errc::closed);
    EXPECT_EQ((co_await listener->accept()).error(), Errc::closed);
  };
  run(drain(path()));
}

Task<> read_and_close(tcp::Stream peer) {
  EXPECT_EQ((co_await peer.read()).error(), Errc::end_of_stream);
}

struct SharedSocket {
  Runtime& runtime;
  std::string name;
  std::atomic<int> listening{0};
  std::array<int, 2> accepted{};  // by core
};

constexpr int connection_count = 20;

Task<> connect_then_drain(SharedSocket& test) {
  for (int i = 0; i < connection_count; ++i) EXPECT_TRUE(co_await unix_socket::connect(test.name));
  test.runtime.drain();
}

Task<Result<>> accept_on_each_core(Scope& scope, SharedSocket& test) {
  WEIR_CO_TRY(auto listener, co_await unix_socket::listen(test.name));
  if (++test.listening == 2) scope.spawn(connect_then_drain(test));
  for (;;) {
    WEIR_CO_TRY(auto peer, co_await listener.accept());
    ++test.accepted[scope.loop().core()];
    scope.spawn(read_and_close(std::move(peer)));
  }
}

TEST_P(UnixSocketTest, TwoCoresShareASocket) {
  RuntimeOptions options;
  options.cores = 2;
  options.pin = false;
  options.announce = false;
  options.backend = GetParam().backend;
  options.handle_signals = false;
  Runtime runtime(*platform_, options);
  loop_.reset();
  SharedSocket test{runtime, path()};
  EXPECT_EQ(runtime.run_on_each_core(accept_on_each_core, std::ref(test)), 0);
  EXPECT_EQ(test.accepted[0] + test.accepted[1], connection_count);
}

}  // namespace
}  // namespace weir::unix_socket_test

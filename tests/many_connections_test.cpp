// Tests as many connections as descriptors allow, and a few more. Each gets an answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/client.hpp"
#include "tests/server.hpp"
#include "weir/os/detail/machine/limits.hpp"

namespace weir::tests::many_connections_test {
namespace {

class ManyConnections : public EachBackend {};

TEST_P(ManyConnections, IdleConnectionsAreKeptAndAnswered) {
  // This test holds one end of each connection, so it needs descriptors too.
  const auto limit = static_cast<std::size_t>(os::raise_descriptor_limit().now);
  const std::size_t count = std::min<std::size_t>(4000, limit - std::min<std::size_t>(limit, 200));
  Server server("hello", GetParam());
  ASSERT_TRUE(server.exchange(get("/")));
  const std::size_t base = server.process().descriptors();
  std::vector<Client> clients;
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(server.connect());
    ASSERT_TRUE(clients.back().exchange(get("/"))) << i;
  }
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(clients[i].send(get("/hello/" + std::to_string(i)))) << i;
    }
    for (std::size_t i = count; i-- > 0;) {
      const auto answer = clients[i].read();
      ASSERT_TRUE(answer) << i << ": " << answer.error().message();
      ASSERT_EQ(answer->body, "Hello, " + std::to_string(i) + "!\n");
    }
    EXPECT_GE(server.process().descriptors(), count);
  }
  clients.clear();
  EXPECT_TRUE(eventually([&] { return server.process().descriptors() <= base; }))
      << server.process().descriptors() << " > " << base;
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(ManyConnections, ConnectionsBeyondTheLimitGetAnAnswer) {
  // The limit is 160 descriptors minus the 64 that a server reserves for other purposes.
  constexpr std::size_t served = 96;
  const std::string backend(GetParam().option);
  Process process("/bin/sh",
                  {"-c", "ulimit -n 160; exec \"$0\" \"$@\"", example_path("hello"), "--port", "0",
                   "--address", "127.0.0.1", "--cores", "1", "--backend", backend});
  const auto port = process.wait_for_port();
  ASSERT_TRUE(port) << process.errors();
  EXPECT_TRUE(process.errors().contains("at most 96 connections")) << process.errors();
  std::vector<Client> clients;
  for (std::size_t i = 0; i < served; ++i) {
    clients.emplace_back(*port);
    const auto answer = clients.back().exchange(get("/"));
    ASSERT_TRUE(answer) << i << ": " << answer.error().message();
    ASSERT_EQ(answer->status, 200) << i;
  }
  for (int i = 0; i < 200; ++i) {
    Client late(*port);
    const auto answer = late.exchange(get("/"));
    ASSERT_TRUE(answer) << i << ": " << answer.error().message();
    EXPECT_EQ(answer->status, 503);
    EXPECT_EQ(answer->header("Connection"), "close");
    const auto end = late.expect_end();
    ASSERT_TRUE(end) << i << ": " << end.error().message();
  }
  for (Client& each : clients) ASSERT_EQ(each.exchange(get("/"))->status, 200);
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return Client(*port).exchange(get("/"))->status == 200; }));
  clients.clear();
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
}

INSTANTIATE_TEST_SUITE_P(On, ManyConnections, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::many_connections_test

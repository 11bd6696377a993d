// Tests that a process names its tasks after SIGQUIT and in an HTTP response, on every backend.
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server.hpp"

namespace weir::tests::live_tasks_test {
namespace {

using std::string_view;

class LiveTasks : public EachBackend {
 protected:
  static bool has(const std::string& text, string_view part) {
    return text.find(part) != text.npos;
  }
  /// Returns the log lines of a dump after `kill -QUIT`.
  static std::string dump_of(Server& server) {
    server.process().signal(SIGQUIT);
    EXPECT_TRUE(server.process().wait_for("SIGQUIT: end of the tasks"));
    return server.process().errors();
  }
};

TEST_P(LiveTasks, ASignalNamesTheStuckRequestAmongIdleConnections) {
  constexpr std::size_t idle = 300;
  Server server("live_tasks", GetParam());
  std::vector<Client> connections;
  for (std::size_t i = 0; i < idle; ++i) {
    connections.push_back(server.connect());
    const auto coffee = connections.back().exchange(get("/orders/coffee"));
    ASSERT_TRUE(coffee) << coffee.error().message();
    ASSERT_EQ(coffee->body, "coffee is on its way\n");
  }
  Client stuck = server.connect();
  ASSERT_TRUE(stuck.send(get("/orders/tea")));
  // The request has begun when a later connection of each core is answered; a dump says so.
  std::string dump;
  for (int tries = 0; tries < 50 && !has(dump, "ask_supplier awaits sleep"); ++tries) {
    const auto text = server.exchange(get("/tasks"));
    ASSERT_TRUE(text) << text.error().message();
    dump = text->body;
  }
  EXPECT_TRUE(has(dump, "ask_supplier awaits sleep")) << dump;
  const std::string log = dump_of(server);
  EXPECT_TRUE(has(log, "weir: SIGQUIT: tasks of this process:")) << log;
  EXPECT_TRUE(has(log, "core 0: ") && has(log, "core 1: ")) << log;
  EXPECT_TRUE(has(log, "place_order [request]")) << log;
  EXPECT_TRUE(has(log, "ask_supplier awaits sleep")) << log;
  EXPECT_TRUE(has(log, "(GET /orders/{item})")) << log;
  EXPECT_TRUE(has(log, " x weir::http::serve_opened [scope] awaits read")) << log;
  EXPECT_LT(log.size(), 20'000U) << "one line for the idle connections";
  connections.clear();
  EXPECT_EQ(server.exchange(get("/orders/coffee"))->status, 200) << "it still serves";
  EXPECT_EQ(server.stop(), 0);
}

TEST_P(LiveTasks, ManySignalsDoNoHarm) {
  Server server("live_tasks", GetParam());
  for (int i = 0; i < 20; ++i) {
    server.process().signal(SIGQUIT);
    EXPECT_EQ(server.exchange(get("/orders/coffee"))->status, 200);
  }
  EXPECT_TRUE(server.process().wait_for("SIGQUIT: end of the tasks"));
  server.process().signal(SIGQUIT);
  EXPECT_EQ(server.stop(), 0) << "a dump that is being made delays no end";
}

TEST_P(LiveTasks, ASupervisorPassesTheSignalOnToItsWorkers) {
  Server server("live_tasks", GetParam(), {"--processes", "2"});
  const auto dumps = [&server] {
    const std::string log = server.process().errors();
    std::size_t count = 0;
    for (auto at = log.find("end of the tasks"); at != log.npos;
         at = log.find("end of the tasks", at + 1)) {
      ++count;
    }
    return count;
  };
  server.process().signal(SIGQUIT);
  EXPECT_TRUE(server.process().wait_for("SIGQUIT: passed on to all workers"));
  for (int tries = 0; tries < 3000 && dumps() < 2; ++tries) ::poll(nullptr, 0, 10);
  EXPECT_EQ(dumps(), 2U) << server.process().errors();
  EXPECT_EQ(server.stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(Signal, LiveTasks, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::live_tasks_test

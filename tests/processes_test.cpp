// Tests several processes of one service over real sockets. A crash affects one worker only, all
// workers drain together, and none outlives the supervisor.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/client.hpp"
#include "tests/server.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/io/text_file.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::tests::processes_test {
namespace {

class Processes : public EachBackend {
 protected:
  /// Starts two workers with one loop each, and waits until both serve.
  Process begin(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{
        "--processes",     "2",
        "--cores",         "2",
        "--port",          "0",
        "--address",       "127.0.0.1",
        "--backend",       std::string(GetParam().option),
        "--drain-timeout", "3600"};  // long enough for a busy machine
    arguments.insert(arguments.end(), more.begin(), more.end());
    Process supervisor = Process::example("processes", arguments);
    port_ = supervisor.wait_for_port().value_or(0);
    EXPECT_TRUE(eventually([&] { return find_two_workers().size() == 2; })) << supervisor.errors();
    return supervisor;
  }
  Result<Response> ask(std::string_view target = "/") const {
    WEIR_TRY(auto client, Client::connect(os::Address::loopback(port_)));
    return client.exchange(get(target));
  }
  /// Returns the workers that answer, at most two, from at most 100 requests.
  std::set<pid_t> find_two_workers() const {
    std::set<pid_t> workers;
    for (int i = 0; i < 100 && workers.size() < 2; ++i) {
      const auto answer = ask();
      EXPECT_TRUE(answer) << answer.error().message();
      if (!answer) break;
      const std::string_view text = answer->body;
      pid_t worker = 0;
      const auto digits = text.find_last_of(' ') + 1;
      std::from_chars(text.data() + digits, text.data() + text.size(), worker);
      workers.insert(worker);
    }
    return workers;
  }
  static bool runs(pid_t process) { return ::kill(process, 0) == 0; }

  std::uint16_t port_ = 0;
};

TEST_P(Processes, AKilledWorkerIsRestartedAndNoClientIsRefused) {
  Process supervisor = begin();
  const std::set<pid_t> before = find_two_workers();
  ASSERT_EQ(before.size(), 2U);
  const pid_t victim = *before.begin();
  ::kill(victim, SIGKILL);
  ASSERT_TRUE(supervisor.wait_for("killed by signal 9")) << supervisor.errors();
  // New clients are served by the other worker or by the restarted one. They wait in the queue of
  // its socket.
  for (int i = 0; i < 60; ++i) {
    const auto answer = ask();
    ASSERT_TRUE(answer) << answer.error().message();
  }
  std::set<pid_t> after;
  EXPECT_TRUE(eventually([&] {
    after = find_two_workers();
    return after.size() == 2 && !after.contains(victim);
  })) << supervisor.errors();
  EXPECT_TRUE(after.contains(*before.rbegin())) << "the other worker has continued";
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait_for_exit(), 0) << supervisor.errors();
}

TEST_P(Processes, ACrashAffectsOneWorkerOnly) {
  Process supervisor = begin();
  EXPECT_FALSE(ask("/crash")) << "the worker has ended without an answer";
  EXPECT_TRUE(supervisor.wait_for("exit status 3, restarting in")) << supervisor.errors();
  EXPECT_TRUE(eventually([&] { return find_two_workers().size() == 2; }));
  supervisor.signal(SIGINT);
  EXPECT_EQ(supervisor.wait_for_exit(), 0) << supervisor.errors();
}

TEST_P(Processes, ASignalDrainsAllWorkers) {
  Process supervisor = begin();
  std::vector<Client> connected;
  for (int i = 0; i < 20; ++i) connected.emplace_back(port_);
  for (Client& each : connected) ASSERT_TRUE(each.exchange(get("/")));
  for (Client& each : connected) ASSERT_TRUE(each.send("GET / HTTP/1.1\r\nHo"));
  const std::set<pid_t> workers = find_two_workers();
  // A worker ignores this signal.
  for (const pid_t each : workers) ::kill(each, SIGTERM);
  supervisor.signal(SIGTERM);
  ASSERT_TRUE(supervisor.wait_for("draining all workers"));
  for (Client& each : connected) {
    ASSERT_TRUE(each.send("st: x\r\n\r\n"));
    const auto answer = each.read();
    ASSERT_TRUE(answer) << answer.error().message();
    // The worker may have answered just before it received the drain command. The connection ends
    // anyway.
    EXPECT_TRUE(each.expect_end());
  }
  EXPECT_EQ(supervisor.wait_for_exit(), 0) << supervisor.errors();
  for (const pid_t each : workers) EXPECT_FALSE(runs(each));
}

TEST_P(Processes, ADrainServesClientsThatWaitForACrashedWorker) {
  Process supervisor = begin();
  const std::set<pid_t> workers = find_two_workers();
  ASSERT_FALSE(workers.empty());
  ::kill(*workers.begin(), SIGKILL);
  ASSERT_TRUE(supervisor.wait_for("killed by signal 9")) << supervisor.errors();
  // Half of the connections reach the queue of the killed worker.
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(port_);
  for (Client& each : clients) ASSERT_TRUE(each.send(get("/")));
  supervisor.signal(SIGTERM);
  for (Client& each : clients) {
    const auto answer = each.read();
    ASSERT_TRUE(answer) << answer.error().message() << supervisor.errors();
    EXPECT_EQ(answer->status, 200);
  }
  EXPECT_EQ(supervisor.wait_for_exit(), 0) << supervisor.errors();
}

/// A PollingClient sends each request on a new connection until it is destroyed.
class PollingClient {
 public:
  explicit PollingClient(std::uint16_t port)
      : thread_([this, port](const std::stop_token& leave) {
          while (!leave.stop_requested()) send_request(port);
        }) {}
  int answers() const { return answers_; }
  int refused() const { return refused_; }
  int broken() const { return broken_; }

 private:
  void send_request(std::uint16_t port) {
    auto client = Client::connect(os::Address::loopback(port));
    if (!client) {
      ++refused_;
    } else if (client->exchange(get("/"))) {
      ++answers_;
    } else {
      ++broken_;
    }
  }
  std::atomic<int> answers_ = 0;
  std::atomic<int> refused_ = 0;
  std::atomic<int> broken_ = 0;
  std::jthread thread_;
};

void expect_more_answers(const std::deque<PollingClient>& clients) {
  for (const PollingClient& each : clients) {
    const int before = each.answers();
    EXPECT_TRUE(eventually([&] { return each.answers() > before + 5; }));
  }
}

TEST_P(Processes, CrashesUnderLoadBreakOnlyTheConnectionsOfTheWorker) {
  Process supervisor = begin();
  std::deque<PollingClient> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(port_);
  constexpr int crashes = 4;
  for (int crash = 0; crash < crashes; ++crash) {
    const std::set<pid_t> workers = find_two_workers();
    ASSERT_FALSE(workers.empty());
    const pid_t victim = crash % 2 == 0 ? *workers.begin() : *workers.rbegin();
    ::kill(victim, SIGKILL);
    ASSERT_TRUE(supervisor.wait_for("(process " + std::to_string(victim) + ") has ended"));
    expect_more_answers(clients);
  }
  for (const PollingClient& each : clients) {
    EXPECT_EQ(each.refused(), 0);
    EXPECT_LE(each.broken(), crashes) << "at most one connection in each crash";
  }
  clients.clear();
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait_for_exit(), 0) << supervisor.errors();
}

TEST_P(Processes, AWorkerThatLeavesServesItsClients) {
  Process supervisor = begin();
  std::deque<PollingClient> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(port_);
  ASSERT_TRUE(ask("/leave"));
  ASSERT_TRUE(supervisor.wait_for("exited with status 0: not restarted"));
  expect_more_answers(clients);
  for (const PollingClient& each : clients) {
    EXPECT_EQ(each.refused(), 0);
    EXPECT_EQ(each.broken(), 0);
  }
  clients.clear();
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait_for_exit(), 0) << supervisor.errors();
}

TEST_P(Processes, ASecondSignalStopsAllWorkers) {
  Process supervisor = begin();
  Client slow(port_);
  ASSERT_TRUE(slow.exchange(get("/")));
  ASSERT_TRUE(slow.send("GET / HTTP/1.1\r\nHo"));
  supervisor.signal(SIGTERM);
  ASSERT_TRUE(supervisor.wait_for("draining all workers"));
  supervisor.signal(SIGINT);
  EXPECT_TRUE(supervisor.wait_for("SIGINT again: stopping all workers immediately"));
  // The status is 0, or 1 if the supervisor has to kill a worker on a busy machine.
  EXPECT_TRUE(supervisor.wait_for_exit()) << "the supervisor does not wait for the deadline";
}

TEST_P(Processes, NoWorkerStartsIfTheAddressIsTaken) {
  const os::Fd taken = os::open_listener(os::Address::loopback(0)).value();
  const std::uint16_t port = os::local_address(taken.get()).value().port();
  Process supervisor = Process::example(
      "processes", {"--processes", "2", "--address", "127.0.0.1", "--port", std::to_string(port)});
  EXPECT_EQ(supervisor.wait_for_exit(), 1);
  EXPECT_TRUE(supervisor.errors().contains("cannot listen on")) << supervisor.errors();
}

TEST_P(Processes, NoWorkerOutlivesItsSupervisor) {
  Process supervisor = begin();
  const std::set<pid_t> workers = find_two_workers();
  supervisor.signal(SIGKILL);
  EXPECT_EQ(supervisor.wait_for_exit(), 128 + SIGKILL);
  for (const pid_t each : workers) {
    EXPECT_TRUE(eventually([&] {
      const auto state = os::read_text_file("/proc/" + std::to_string(each) + "/stat");
      return !state || state->contains(") Z ");
    })) << each;
  }
}

TEST_P(Processes, RejectsOptionsThatCannotBeCombined) {
  const os::TemporaryTree tree;
  Process both =
      Process::example("processes", {"--processes", "2", "--hot-restart", tree.path("meet")});
  EXPECT_EQ(both.wait_for_exit(), 2);
  EXPECT_TRUE(both.errors().contains("cannot be combined")) << both.errors();
}

INSTANTIATE_TEST_SUITE_P(On, Processes, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::processes_test

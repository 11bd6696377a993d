// Tests hot restarts of real programs under traffic, on every backend. No connection is refused
// or reset, and every request is answered. A failed start changes nothing.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/client.hpp"
#include "tests/server.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::tests::restart_test {
namespace {

/// The example that serves.
enum class Example : std::uint8_t { hello, hot_restart };

/// TrafficClients send requests all the time and record everything except for correct answers.
class TrafficClients {
 public:
  explicit TrafficClients(const os::Address& server, Example example = Example::hello)
      : server_(server), example_(example) {
    for (unsigned client_index = 0; client_index < threads_.size(); ++client_index) {
      threads_[client_index] = std::thread([this, client_index] { run_client(client_index); });
    }
  }
  ~TrafficClients() { stop(); }

  std::uint64_t answers() const { return answers_.load(); }
  void stop() {
    stopping_ = true;
    for (std::thread& each : threads_) {
      if (each.joinable()) each.join();
    }
  }
  /// Returns the failures of all clients. The caller has called stop().
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// The time that a draining server waits for the first request of a connection.
  static constexpr std::chrono::seconds first_request_timeout{1};

  /// Uses a connection for each request, or one for as long as the server keeps it open.
  void run_client(unsigned client_index) {
    const bool keep_alive = client_index % 2 == 1;
    while (!stopping_) {
      const Clock::time_point connect_start = Clock::now();
      auto client = Client::connect(server_);
      if (!client) {
        fail_with("connect", client.error());
        return;
      }
      if (!ask(*client, keep_alive, connect_start) || !keep_alive) continue;
      while (!stopping_ && !has_ended(*client) && ask(*client, keep_alive, {})) {
      }
    }
  }

  /// Returns true if the server has ended the connection between two requests, as it may.
  static bool has_ended(const Client& client) {
    char byte = 0;
    return ::recv(client.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  /// Sends one request and checks the answer. `connect_start` is the time at which a client that
  /// has no answer yet began to connect.
  /// Returns: true if the connection stays open.
  bool ask(Client& client, bool keep_alive, std::optional<Clock::time_point> connect_start) {
    const std::string name = std::to_string(next_.fetch_add(1));
    const bool hello = example_ == Example::hello;
    const std::string request = "GET " + (hello ? "/hello/" + name : "/") +
                                " HTTP/1.1\r\nHost: x\r\n" +
                                (keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
    const auto sent = client.send(request);
    // A draining server treats a client that was delayed this long as silent.
    if (connect_start && Clock::now() - *connect_start > first_request_timeout / 2)
      connect_start.reset();
    if (!sent) return fail_with("send", sent.error());
    const auto answer = client.read();
    if (!answer) {
      // The connection ended while the request was on its way. The request was not answered, and
      // the client may retry it (RFC 9112 section 9.3). This holds for kept connections only,
      // because the server answers new clients.
      const bool ended_first =
          !connect_start && answer.error() == Errc::end_of_stream && client.unread().empty();
      return ended_first ? false : fail_with("read", answer.error());
    }
    const bool right =
        hello ? answer->body == "Hello, " + name + "!\n" : answer->body.starts_with("served by ");
    if (!right) return fail_with("got " + answer->body, {});
    ++answers_;
    if (answer->header("Connection") != "close") return true;
    if (auto end = client.expect_end(); !end) return fail_with("end", end.error());
    return false;
  }

  bool fail_with(std::string_view what, std::error_code error) {
    const std::lock_guard lock(mutex_);
    failures_.push_back(std::string(what) + ": " + error.message());
    return false;
  }

  os::Address server_;
  Example example_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> answers_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<std::string> failures_;
  std::array<std::thread, 6> threads_;
};

class Restart : public EachBackend {
 protected:
  std::vector<std::string> arguments(unsigned cores) const {
    return {"--hot-restart", tree_.path("meet"),
            "--address",     "127.0.0.1",
            "--port",        std::to_string(port_),
            "--cores",       std::to_string(cores),
            "--backend",     std::string(GetParam().option)};
  }
  /// Starts the first process. A newer process can take over from it when this returns.
  std::unique_ptr<Process> start_first(unsigned cores = 2) {
    auto first = std::make_unique<Process>(Process::example("hello", arguments(cores)));
    port_ = first->wait_for_port().value_or(0);
    EXPECT_TRUE(first->wait_for(open_for_newer)) << first->errors();
    EXPECT_TRUE(eventually([&] { return first->sockets() >= 2 * cores; })) << "each core listens";
    return first;
  }
  std::unique_ptr<Process> start_next(unsigned cores = 2) {
    return std::make_unique<Process>(Process::example("hello", arguments(cores)));
  }
  /// Starts a process that never becomes ready, because it listens at another address.
  std::unique_ptr<Process> start_invalid() {
    auto given = arguments(1);
    given[3] = "127.0.0.2";
    given[5] = "0";
    auto wrong = std::make_unique<Process>(Process::example("hello", given));
    EXPECT_TRUE(wrong->wait_for("taking over 2 sockets")) << wrong->errors();
    return wrong;
  }
  /// Waits until the clients have received 50 more answers.
  static testing::AssertionResult are_served(const TrafficClients& clients) {
    const std::uint64_t before = clients.answers();
    if (eventually([&] { return clients.answers() > before + 50; })) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << clients.answers() - before << " answers";
  }
  static void expect_content(TrafficClients& clients) {
    clients.stop();
    EXPECT_EQ(clients.failures(), std::vector<std::string>());
  }
  os::Address address() const { return os::Address::loopback(port_); }

  static constexpr std::string_view open_for_newer = "a newer process can take over";
  static constexpr std::string_view accepts =
      "hot restart complete: this process accepts connections";
  os::TemporaryTree tree_;
  std::uint16_t port_ = 0;
};

TEST_P(Restart, NoClientNoticesRepeatedRestarts) {
  auto older = start_first();
  TrafficClients clients(address());
  for (const unsigned cores : {2U, 3U, 1U, 2U, 4U}) {
    EXPECT_TRUE(are_served(clients));
    auto newer = start_next(cores);
    ASSERT_TRUE(newer->wait_for(accepts)) << newer->errors();
    EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
    EXPECT_FALSE(older->errors().contains("drain timed out")) << older->errors();
    older = std::move(newer);
  }
  EXPECT_TRUE(are_served(clients));
  expect_content(clients);
  older->signal(SIGTERM);
  EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet")));
}

TEST_P(Restart, ANewerProcessThatIsKilledBeforeItIsReadyChangesNothing) {
  const auto older = start_first();
  TrafficClients clients(address());
  for (int round = 0; round < 3; ++round) {
    const auto wrong = start_invalid();
    wrong->signal(SIGKILL);
    EXPECT_EQ(wrong->wait_for_exit(), 128 + SIGKILL);
    EXPECT_TRUE(are_served(clients));
  }
  EXPECT_TRUE(older->wait_for("this process continues")) << older->errors();
  const auto newer = start_next();
  ASSERT_TRUE(newer->wait_for(accepts)) << newer->errors();
  EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
  expect_content(clients);
}

TEST_P(Restart, ANewerProcessThatIsKilledAfterTheHandoverLeavesThePortToTheNext) {
  const auto older = start_first();
  Client slow(port_);
  ASSERT_TRUE(slow.exchange("GET /hello/a HTTP/1.1\r\nHost: x\r\n\r\n"));
  // The older process waits some seconds for the rest of this request, although it drains.
  ASSERT_TRUE(slow.send("POST /users/1/notes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nh"));
  const auto newer = start_next();
  ASSERT_TRUE(newer->wait_for(accepts)) << newer->errors();
  EXPECT_TRUE(eventually([&] { return older->sockets() <= 1; }))
      << "except for the socket of a client";
  newer->signal(SIGKILL);
  EXPECT_EQ(newer->wait_for_exit(), 128 + SIGKILL);
  const auto next = start_next();
  EXPECT_TRUE(next->wait_for(open_for_newer)) << next->errors();
  EXPECT_TRUE(Client(port_).exchange("GET /hello/b HTTP/1.1\r\nHost: x\r\n\r\n"));
  slow.close();
  EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
}

// The kernel ends the io_uring operations on a killed process's sockets shortly after the
// process's end is reported. No other process uses this address, so none can take the port
// meanwhile.
TEST_P(Restart, TheNextProcessGetsThePortOfAKilledOneImmediately) {
  const std::string address = "127.77.0.1";
  std::string port = "0";
  for (int round = 0; round < 10; ++round) {
    Process process = Process::example("hello", {"--port", port, "--address", address, "--cores",
                                                 "2", "--backend", std::string(GetParam().option)});
    const auto bound = process.wait_for_port();
    ASSERT_TRUE(bound) << round << ": " << process.errors();
    port = std::to_string(*bound);
    Client client(os::Address::parse(address + ":" + port).value());
    ASSERT_TRUE(client.exchange(get("/hello/a"))) << process.errors();
    process.signal(SIGKILL);
    EXPECT_EQ(process.wait_for_exit(), 128 + SIGKILL);
  }
}

TEST_P(Restart, AnOlderProcessThatIsKilledLeavesItsSocketsToTheNewer) {
  const auto older = start_first();
  const auto newer = start_invalid();
  Client waiting(port_);  // in the queue of a socket, or accepted by the older process
  older->signal(SIGKILL);
  EXPECT_EQ(older->wait_for_exit(), 128 + SIGKILL);
  EXPECT_TRUE(newer->wait_for("the older process ended")) << newer->errors();
  // The sockets are open, so no connection is refused.
  EXPECT_TRUE(Client::connect(address()));
}

TEST_P(Restart, ASignalDuringAHandoverDrainsWhenTheNewerProcessIsReady) {
  const auto older = start_first();
  TrafficClients clients(address());
  const auto wrong = start_invalid();
  older->signal(SIGTERM);
  EXPECT_TRUE(older->wait_for("draining when it is ready")) << older->errors();
  EXPECT_TRUE(are_served(clients));
  expect_content(clients);
  wrong->signal(SIGKILL);
  EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet")));
}

// The sockets outlive each process, as with systemd. A client that connects in between waits in a
// queue.
TEST_P(Restart, SocketsOfAServiceManagerAreServedByOneProcessAfterTheOther) {
  const os::Fd socket = os::open_listener(os::Address::loopback(0)).value();
  const os::Address bound = os::local_address(socket.get()).value();
  for (int round = 0; round < 3; ++round) {
    std::vector<Client> waiting;
    for (int i = 0; i < 10; ++i) waiting.emplace_back(bound);
    Process process(example_path("hot_restart"),
                    {"--cores", "2", "--backend", std::string(GetParam().option)}, {socket.get()});
    for (Client& each : waiting) {
      const auto answer = each.exchange(get("/"));
      ASSERT_TRUE(answer) << answer.error().message() << process.errors();
      EXPECT_EQ(answer->body, "served by process " + std::to_string(process.pid()) + "\n");
    }
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
  }
}

// Clients connect all the time. A process answers the connections that it has accepted before it
// ends, and the next process answers the others.
TEST_P(Restart, NoClientNoticesSuccessiveProcessesOnAManagersSocket) {
  const os::Fd socket = os::open_listener(os::Address::loopback(0)).value();
  TrafficClients clients(os::local_address(socket.get()).value(), Example::hot_restart);
  for (int round = 0; round < 4; ++round) {
    Process process(example_path("hot_restart"),
                    {"--cores", "2", "--backend", std::string(GetParam().option)}, {socket.get()});
    EXPECT_TRUE(are_served(clients)) << process.errors();
    if (round == 3) expect_content(clients);
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
    EXPECT_FALSE(process.errors().contains("drain timed out")) << process.errors();
  }
}

// Both ways are combined: each process gets the manager's socket and takes it over from the older
// process.
TEST_P(Restart, SocketsOfAServiceManagerAreTakenOverOnlyOnce) {
  const os::Fd socket = os::open_listener(os::Address::loopback(0)).value();
  const os::Address bound = os::local_address(socket.get()).value();
  const auto begin = [&] {
    const std::vector<std::string> options{"--hot-restart", tree_.path("meet"),
                                           "--cores",       "2",
                                           "--backend",     std::string(GetParam().option)};
    return std::make_unique<Process>(example_path("hot_restart"), options,
                                     std::vector<int>{socket.get()});
  };
  const auto serves = [&](const Process& process) {
    const auto answer = Client(bound).exchange(get("/"));
    return answer && answer->body == "served by process " + std::to_string(process.pid()) + "\n";
  };
  auto older = begin();
  ASSERT_TRUE(older->wait_for(open_for_newer)) << older->errors();
  TrafficClients clients(bound, Example::hot_restart);
  for (int generation = 0; generation < 3; ++generation) {
    EXPECT_TRUE(are_served(clients));
    EXPECT_TRUE(serves(*older)) << older->errors();
    auto newer = begin();
    ASSERT_TRUE(newer->wait_for(accepts)) << newer->errors();
    EXPECT_TRUE(newer->errors().contains("taking over 1 socket from")) << newer->errors();
    EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
    older = std::move(newer);
  }
  EXPECT_TRUE(are_served(clients));
  expect_content(clients);
  older->signal(SIGTERM);
  EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
  // The manager still has the socket, so a new client waits for the next process.
  Client waiting(bound);
  const auto next = begin();
  const auto answer = waiting.exchange(get("/"));
  ASSERT_TRUE(answer) << next->errors();
  EXPECT_EQ(answer->body, "served by process " + std::to_string(next->pid()) + "\n");
}

TEST_P(Restart, RejectsAnInheritedSocketThatDoesNotListen) {
  const os::Fd stream = os::open_stream(os::AddressFamily::ipv4).value();
  Process process(example_path("hot_restart"), {}, {stream.get()});
  EXPECT_EQ(process.wait_for_exit(), 2);
  EXPECT_TRUE(process.errors().contains("LISTEN_FDS")) << process.errors();
}

TEST_P(Restart, RejectsAProgramOfAnotherService) {
  const auto older = start_first();
  Process other = Process::example("hot_restart", arguments(2));
  EXPECT_EQ(other.wait_for_exit(), 1);
  EXPECT_TRUE(other.errors().contains("this is the service ''")) << other.errors();
  EXPECT_TRUE(Client::connect(address())->exchange(get("/")));
}

TEST_P(Restart, AnUnusablePathIsReportedInOneLine) {
  tree_.write("meet", "precious");
  Process server = Process::example("hello", arguments(1));
  EXPECT_EQ(server.wait_for_exit(), 1);
  EXPECT_TRUE(server.errors().contains(tree_.path("meet"))) << server.errors();
  EXPECT_FALSE(server.errors().contains("listening")) << server.errors();
}

INSTANTIATE_TEST_SUITE_P(On, Restart, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::restart_test

// Hot restarts of real programs under traffic, on every backend: nobody is refused, nobody sees a
// reset, every request is answered; and a start that fails changes nothing.
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

namespace weir::tests {
namespace {

/// Which example serves.
enum class Site : std::uint8_t { hello, hot_restart };

/// Clients that ask all the time, and complain about everything but an answer.
class Visitors {
 public:
  explicit Visitors(const os::Address& server, Site site = Site::hello)
      : server_(server), site_(site) {
    for (unsigned habit = 0; habit < threads_.size(); ++habit) {
      threads_[habit] = std::thread([this, habit] { visit(habit); });
    }
  }
  ~Visitors() { leave(); }

  std::uint64_t answers() const { return answers_.load(); }
  void leave() {
    leaving_ = true;
    for (std::thread& each : threads_) {
      if (each.joinable()) each.join();
    }
  }
  /// After leave(): what must not have happened.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// A server that drains waits so long for a newcomer's request.
  static constexpr std::chrono::seconds newcomer_grace{1};

  /// A connection for each request, or one for as long as the server keeps it.
  void visit(unsigned habit) {
    const bool stays = habit % 2 == 1;
    while (!leaving_) {
      const Clock::time_point came = Clock::now();
      auto client = Client::connect(server_);
      if (!client) {
        complain("connect", client.error());
        return;
      }
      if (!ask(*client, stays, came) || !stays) continue;
      while (!leaving_ && !has_ended(*client) && ask(*client, stays, {})) {
      }
    }
  }

  /// Whether the server has ended the connection between two requests, as it may.
  static bool has_ended(const Client& client) {
    char byte = 0;
    return ::recv(client.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  /// Whether the connection goes on. `came`: when who has not been answered yet began to connect.
  bool ask(Client& client, bool stays, std::optional<Clock::time_point> came) {
    const std::string name = std::to_string(next_.fetch_add(1));
    const bool hello = site_ == Site::hello;
    const std::string request = "GET " + (hello ? "/hello/" + name : "/") +
                                " HTTP/1.1\r\nHost: x\r\n" +
                                (stays ? "\r\n" : "Connection: close\r\n\r\n");
    const auto sent = client.send(request);
    // Whom this machine has held up for so long has been silent to a server that drains.
    if (came && Clock::now() - *came > newcomer_grace / 2) came.reset();
    if (!sent) return complain("send", sent.error());
    const auto answer = client.read();
    if (!answer) {
      // The end met the request on its way: it was not answered, and is asked again (RFC 9112
      // §9.3). That is for connections that were kept: newcomers are served.
      const bool met = !came && answer.error() == Errc::end_of_stream && client.unread().empty();
      return met ? false : complain("read", answer.error());
    }
    const bool right =
        hello ? answer->body == "Hello, " + name + "!\n" : answer->body.starts_with("served by ");
    if (!right) return complain("got " + answer->body, {});
    ++answers_;
    if (answer->field("Connection") != "close") return true;
    if (auto end = client.expect_end(); !end) return complain("end", end.error());
    return false;
  }

  bool complain(std::string_view what, std::error_code error) {
    const std::lock_guard lock(mutex_);
    complaints_.push_back(std::string(what) + ": " + error.message());
    return false;
  }

  os::Address server_;
  Site site_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> answers_{0};
  std::atomic<bool> leaving_{false};
  std::mutex mutex_;
  std::vector<std::string> complaints_;
  std::array<std::thread, 6> threads_;
};

class Restart : public EachBackend {
 protected:
  std::vector<std::string> arguments(unsigned cores) const {
    return {"--takeover", tree_.path("meet"),
            "--address",  "127.0.0.1",
            "--port",     std::to_string(port_),
            "--cores",    std::to_string(cores),
            "--backend",  std::string(GetParam().option)};
  }
  /// The first, which others can take over from when this returns.
  std::unique_ptr<Process> begin_first(unsigned cores = 2) {
    auto first = std::make_unique<Process>(Process::example("hello", arguments(cores)));
    port_ = first->wait_for_port().value_or(0);
    EXPECT_TRUE(first->wait_for(open_for_newer)) << first->errors();
    EXPECT_TRUE(eventually([&] { return first->sockets() >= 2 * cores; })) << "each core listens";
    return first;
  }
  std::unique_ptr<Process> begin_next(unsigned cores = 2) {
    return std::make_unique<Process>(Process::example("hello", arguments(cores)));
  }
  /// One that will never be ready: it listens elsewhere.
  std::unique_ptr<Process> begin_wrong() {
    auto given = arguments(1);
    given[3] = "127.0.0.2";
    given[5] = "0";
    auto wrong = std::make_unique<Process>(Process::example("hello", given));
    EXPECT_TRUE(wrong->wait_for("taking over 2 sockets")) << wrong->errors();
    return wrong;
  }
  /// Waits until the visitors have seen what comes now, too.
  static testing::AssertionResult are_served(const Visitors& visitors) {
    const std::uint64_t before = visitors.answers();
    if (eventually([&] { return visitors.answers() > before + 50; })) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << visitors.answers() - before << " answers";
  }
  static void expect_content(Visitors& visitors) {
    visitors.leave();
    EXPECT_EQ(visitors.complaints(), std::vector<std::string>());
  }
  os::Address address() const { return os::Address::loopback(port_); }

  static constexpr std::string_view open_for_newer = "a newer process can take over";
  static constexpr std::string_view accepts = "taken over: this process accepts";
  os::TemporaryTree tree_;
  std::uint16_t port_ = 0;
};

TEST_P(Restart, NobodyNoticesHoweverOftenItIsDone) {
  auto older = begin_first();
  Visitors visitors(address());
  for (const unsigned cores : {2U, 3U, 1U, 2U, 4U}) {
    EXPECT_TRUE(are_served(visitors));
    auto newer = begin_next(cores);
    ASSERT_TRUE(newer->wait_for(accepts)) << newer->errors();
    EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
    EXPECT_FALSE(older->errors().contains("deadline")) << older->errors();
    older = std::move(newer);
  }
  EXPECT_TRUE(are_served(visitors));
  expect_content(visitors);
  older->signal(SIGTERM);
  EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet")));
}

TEST_P(Restart, ANewerOneThatIsKilledBeforeItIsReadyChangesNothing) {
  const auto older = begin_first();
  Visitors visitors(address());
  for (int round = 0; round < 3; ++round) {
    const auto wrong = begin_wrong();
    wrong->signal(SIGKILL);
    EXPECT_EQ(wrong->wait_for_exit(), 128 + SIGKILL);
    EXPECT_TRUE(are_served(visitors));
  }
  EXPECT_TRUE(older->wait_for("this one goes on")) << older->errors();
  const auto newer = begin_next();
  ASSERT_TRUE(newer->wait_for(accepts)) << newer->errors();
  EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
  expect_content(visitors);
}

TEST_P(Restart, ANewerOneThatIsKilledWhenTheSocketsAreItsOwnLeavesThePortToTheNext) {
  const auto older = begin_first();
  Client slow(port_);
  ASSERT_TRUE(slow.exchange("GET /hello/a HTTP/1.1\r\nHost: x\r\n\r\n"));
  // Half a request, for which the older one waits for some seconds although it drains.
  ASSERT_TRUE(slow.send("POST /users/1/notes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nh"));
  const auto newer = begin_next();
  ASSERT_TRUE(newer->wait_for(accepts)) << newer->errors();
  EXPECT_TRUE(eventually([&] { return older->sockets() <= 1; })) << "but for that one's";
  newer->signal(SIGKILL);
  EXPECT_EQ(newer->wait_for_exit(), 128 + SIGKILL);
  const auto next = begin_next();
  EXPECT_TRUE(next->wait_for(open_for_newer)) << next->errors();
  EXPECT_TRUE(Client(port_).exchange("GET /hello/b HTTP/1.1\r\nHost: x\r\n\r\n"));
  slow.close();
  EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
}

// What its io_uring was doing with its sockets ends a moment after its end has been told. Nobody
// else is at that address, who might have the port meanwhile.
TEST_P(Restart, WhoFollowsAKilledOneAtOnceHasItsPort) {
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

TEST_P(Restart, AnOlderOneThatIsKilledLeavesItsSocketsToTheNewer) {
  const auto older = begin_first();
  const auto newer = begin_wrong();
  Client waiting(port_);  // in the queue of one of the sockets, or served by the older one
  older->signal(SIGKILL);
  EXPECT_EQ(older->wait_for_exit(), 128 + SIGKILL);
  EXPECT_TRUE(newer->wait_for("the older process has gone")) << newer->errors();
  // Nobody is refused: the sockets are open.
  EXPECT_TRUE(Client::connect(address()));
}

TEST_P(Restart, ASignalWhileANewerOneBeginsWaitsForIt) {
  const auto older = begin_first();
  Visitors visitors(address());
  const auto wrong = begin_wrong();
  older->signal(SIGTERM);
  EXPECT_TRUE(older->wait_for("draining when the newer process is ready")) << older->errors();
  EXPECT_TRUE(are_served(visitors));
  expect_content(visitors);
  wrong->signal(SIGKILL);
  EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
  EXPECT_FALSE(std::filesystem::exists(tree_.path("meet")));
}

// As systemd does it: the sockets outlive each process, and who comes in between waits in a queue.
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

// The same with visitors all the time: whom a process has let in it answers before it ends, and
// whom it has not waits for the next.
TEST_P(Restart, NobodyNoticesProcessesThatFollowEachOtherOnAManagersSocket) {
  const os::Fd socket = os::open_listener(os::Address::loopback(0)).value();
  Visitors visitors(os::local_address(socket.get()).value(), Site::hot_restart);
  for (int round = 0; round < 4; ++round) {
    Process process(example_path("hot_restart"),
                    {"--cores", "2", "--backend", std::string(GetParam().option)}, {socket.get()});
    EXPECT_TRUE(are_served(visitors)) << process.errors();
    if (round == 3) expect_content(visitors);
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait_for_exit(), 0) << process.errors();
    EXPECT_FALSE(process.errors().contains("deadline")) << process.errors();
  }
}

// Both at once: each version is given the manager's socket and takes it over from the one before.
TEST_P(Restart, SocketsOfAServiceManagerAreTakenOverOnlyOnce) {
  const os::Fd socket = os::open_listener(os::Address::loopback(0)).value();
  const os::Address bound = os::local_address(socket.get()).value();
  const auto begin = [&] {
    const std::vector<std::string> options{"--takeover", tree_.path("meet"),
                                           "--cores",    "2",
                                           "--backend",  std::string(GetParam().option)};
    return std::make_unique<Process>(example_path("hot_restart"), options,
                                     std::vector<int>{socket.get()});
  };
  const auto serves = [&](const Process& process) {
    const auto answer = Client(bound).exchange(get("/"));
    return answer && answer->body == "served by process " + std::to_string(process.pid()) + "\n";
  };
  auto older = begin();
  ASSERT_TRUE(older->wait_for(open_for_newer)) << older->errors();
  Visitors visitors(bound, Site::hot_restart);
  for (int generation = 0; generation < 3; ++generation) {
    EXPECT_TRUE(are_served(visitors));
    EXPECT_TRUE(serves(*older)) << older->errors();
    auto newer = begin();
    ASSERT_TRUE(newer->wait_for(accepts)) << newer->errors();
    EXPECT_TRUE(newer->errors().contains("taking over 1 socket from")) << newer->errors();
    EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
    older = std::move(newer);
  }
  EXPECT_TRUE(are_served(visitors));
  expect_content(visitors);
  older->signal(SIGTERM);
  EXPECT_EQ(older->wait_for_exit(), 0) << older->errors();
  // The manager has it still: who comes now waits for the next.
  Client waiting(bound);
  const auto next = begin();
  const auto answer = waiting.exchange(get("/"));
  ASSERT_TRUE(answer) << next->errors();
  EXPECT_EQ(answer->body, "served by process " + std::to_string(next->pid()) + "\n");
}

TEST_P(Restart, WhatAServiceManagerGivesMustListen) {
  const os::Fd stream = os::open_stream(os::AddressFamily::ipv4).value();
  Process process(example_path("hot_restart"), {}, {stream.get()});
  EXPECT_EQ(process.wait_for_exit(), 2);
  EXPECT_TRUE(process.errors().contains("LISTEN_FDS")) << process.errors();
}

TEST_P(Restart, AProgramOfAnotherServiceIsRefused) {
  const auto older = begin_first();
  Process other = Process::example("hot_restart", arguments(2));
  EXPECT_EQ(other.wait_for_exit(), 1);
  EXPECT_TRUE(other.errors().contains("this is the service ''")) << other.errors();
  EXPECT_TRUE(Client::connect(address())->exchange(get("/")));
}

TEST_P(Restart, APathThatCannotBeUsedIsOneClearLine) {
  tree_.write("meet", "precious");
  Process server = Process::example("hello", arguments(1));
  EXPECT_EQ(server.wait_for_exit(), 1);
  EXPECT_TRUE(server.errors().contains(tree_.path("meet"))) << server.errors();
  EXPECT_FALSE(server.errors().contains("listening")) << server.errors();
}

INSTANTIATE_TEST_SUITE_P(On, Restart, testing::ValuesIn(every_backend), name_of);

}  // namespace
}  // namespace weir::tests

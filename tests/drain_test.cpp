// Shutting down under load, over real sockets and on every backend: whoever is connected gets whole
// answers and an orderly end, never a reset; and the process ends by itself, when it shall.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/client.hpp"
#include "tests/server.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::tests {
namespace {

using std::chrono::milliseconds;

/// Clients that connect and ask in a tight loop, until nobody listens any more.
class Crowd {
 public:
  explicit Crowd(std::uint16_t port) : server_(os::Address::loopback(port)) {
    for (unsigned habit = 0; habit < threads_.size(); ++habit) {
      threads_[habit] = std::thread([this, habit] { run(habit); });
    }
  }
  ~Crowd() { leave(); }

  std::uint64_t answers() const { return answers_.load(); }
  /// The server has ended: whoever still tries to connect may stop.
  void leave() {
    gone_ = true;
    for (std::thread& each : threads_) {
      if (each.joinable()) each.join();
    }
  }
  /// After leave(): what must not have happened to a client.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  /// One request each, several one after the other, many at once.
  void run(unsigned habit) {
    const std::size_t batch = habit % 3 == 2 ? 16 : 1;
    const std::size_t rounds = habit % 3 == 0 ? 1 : 50;
    while (connect_and_ask(batch, rounds)) {
    }
  }

  /// False when nobody listens.
  bool connect_and_ask(std::size_t batch, std::size_t rounds) {
    auto client = Client::connect(server_, milliseconds(100));
    if (!client) {
      // A draining server leaves a first SYN unanswered: the kernel would try again in a second.
      if (client.error() == Errc::timed_out) return !gone_;
      if (client.error() != system_error(ECONNREFUSED)) complain("connect", client.error());
      return false;
    }
    client->set_patience(patience);
    for (std::size_t round = 0; round < rounds; ++round) {
      if (!ask(*client, batch, rounds == 1)) break;
    }
    return true;
  }

  /// False when the connection has ended.
  bool ask(Client& client, std::size_t batch, bool once) {
    std::string requests;
    const std::uint64_t first = next_.fetch_add(batch);
    for (std::size_t i = 0; i < batch; ++i) {
      requests += "GET /hello/" + std::to_string(first + i) + " HTTP/1.1\r\nHost: x\r\n" +
                  (once ? "Connection: close\r\n\r\n" : "\r\n");
    }
    if (auto sent = client.send(requests); !sent) return complain("send", sent.error());
    for (std::size_t i = 0; i < batch; ++i) {
      const auto answer = client.read();
      if (!answer) {
        // Between answers an orderly end is fine.
        if (answer.error() != Errc::end_of_stream || client.unread() != "") {
          complain("read", answer.error());
        }
        return false;
      }
      if (answer->body != "Hello, " + std::to_string(first + i) + "!\n") {
        return complain("wrong answer: " + answer->body, {});
      }
      ++answers_;
      if (answer->field("Connection") != "close") continue;
      if (auto end = client.expect_end(); !end) complain("end", end.error());
      return false;
    }
    return true;
  }

  bool complain(std::string_view what, std::error_code error) {
    const std::lock_guard lock(mutex_);
    complaints_.push_back(std::string(what) + ": " + error.message());
    return false;
  }

  os::Address server_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> answers_{0};
  std::atomic<bool> gone_{false};
  std::mutex mutex_;
  std::vector<std::string> complaints_;
  std::array<std::thread, 6> threads_;
};

class Drain : public EachBackend {};

TEST_P(Drain, NobodySeesAResetHoweverOftenItIsDone) {
  for (const int number : {SIGTERM, SIGINT, SIGTERM, SIGTERM, SIGTERM, SIGINT}) {
    Server server("hello", GetParam());
    Crowd crowd(server.port());
    ASSERT_TRUE(eventually([&] { return crowd.answers() > 300; })) << crowd.answers();
    server.process().signal(number);
    EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
    crowd.leave();
    EXPECT_EQ(crowd.complaints(), std::vector<std::string>()) << server.process().errors();
    EXPECT_FALSE(server.process().errors().contains("deadline")) << server.process().errors();
  }
}

TEST_P(Drain, WhatIsUnderWayIsAnsweredThenTheConnectionEnds) {
  Server server("hello", GetParam());
  Client idle = server.connect();
  ASSERT_TRUE(idle.exchange(get("/")));
  Client head = server.connect();
  ASSERT_TRUE(head.exchange(get("/")));
  ASSERT_TRUE(head.send("GET /hello/half HTTP/1.1\r\nHo"));
  Client body = server.connect();
  ASSERT_TRUE(
      body.send("POST /users/5/notes HTTP/1.1\r\nHost: x\r\nExpect: "
                "100-continue\r\nContent-Length: 9\r\n\r\n"));
  ASSERT_EQ(body.read()->status, 100);
  ASSERT_TRUE(body.send("half"));
  server.process().signal(SIGTERM);
  ASSERT_TRUE(server.process().wait_for("draining"));
  EXPECT_TRUE(idle.expect_end());

  ASSERT_TRUE(head.send("st: x\r\n\r\n"));
  const auto first = head.read();
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->body, "Hello, half!\n");
  EXPECT_EQ(first->field("Connection"), "close");
  EXPECT_TRUE(head.expect_end());
  ASSERT_TRUE(body.send(" a do"));
  const auto second = body.read();
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_EQ(second->body, "user 5 said half a do\n");
  EXPECT_EQ(second->field("Connection"), "close");
  EXPECT_TRUE(body.expect_end());
  EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
}

TEST_P(Drain, HandlersAndStreamsFinish) {
  Server slow("deadlines", GetParam());
  Client waiting = slow.connect();
  ASSERT_TRUE(waiting.send(get("/wait/150")));
  Server streaming("streaming", GetParam());
  Client ticking = streaming.connect();
  ASSERT_TRUE(ticking.exchange("HEAD /ticks HTTP/1.1\r\nHost: x\r\n\r\n", "HEAD"));
  ASSERT_TRUE(ticking.send(get("/ticks")));
  // A byte of the answer: it is under way.
  ASSERT_TRUE(eventually([&] { return !ticking.unread().empty(); }));
  slow.process().signal(SIGTERM);
  streaming.process().signal(SIGTERM);
  const auto answer = waiting.read();
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->body, "it answered\n");
  EXPECT_TRUE(waiting.expect_end());
  const auto ticks = ticking.read();
  ASSERT_TRUE(ticks) << ticks.error().message();
  EXPECT_TRUE(ticks->body.ends_with("data: tick 4\n\n")) << ticks->body;
  EXPECT_TRUE(ticking.expect_end());
  EXPECT_EQ(slow.process().wait_for_exit(), 0) << slow.process().errors();
  EXPECT_EQ(streaming.process().wait_for_exit(), 0) << streaming.process().errors();
}

/// What an endless peer of echo sees when its server must not wait any longer.
void expect_cut(Client& peer) {
  const auto rest = peer.read_to_end();
  if (!rest) {
    EXPECT_EQ(rest.error(), system_error(ECONNRESET)) << rest.error().message();
  }
}

TEST_P(Drain, TheDeadlineCutsWhatDoesNotEnd) {
  Server server("echo", GetParam(), {"--deadline", "0.3"});
  Client quiet = server.connect();
  Client busy = server.connect();
  ASSERT_TRUE(busy.send("half of a conversation"));
  ASSERT_TRUE(eventually([&] { return busy.unread().size() == 22; }));
  server.process().signal(SIGTERM);
  ASSERT_TRUE(server.process().wait_for("draining"));
  (void)busy.send(" and the rest");  // too late where this process was held up
  EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
  EXPECT_TRUE(server.process().errors().contains("deadline")) << server.process().errors();
  expect_cut(quiet);
  expect_cut(busy);
}

TEST_P(Drain, TheDeadlineCutsAClientThatDoesNotReadItsAnswer) {
  Server server("streaming", GetParam(), {"--deadline", "0.3"});
  Client deaf = server.connect();
  ASSERT_TRUE(deaf.send(get("/lines/2000000000")));
  ASSERT_TRUE(eventually([&] { return !deaf.unread().empty(); }));
  server.process().signal(SIGINT);
  EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
  EXPECT_TRUE(server.process().errors().contains("deadline")) << server.process().errors();
}

TEST_P(Drain, ASecondSignalEndsItAtOnce) {
  Server server("echo", GetParam(), {"--deadline", "3600"});
  Client peer = server.connect();
  ASSERT_TRUE(peer.send("hello"));
  ASSERT_TRUE(eventually([&] { return peer.unread().size() == 5; }));
  server.process().signal(SIGINT);
  ASSERT_TRUE(server.process().wait_for("draining"));
  EXPECT_EQ(server.process().wait_for_exit(milliseconds(300)), std::nullopt)
      << "it waits for its peer";
  server.process().signal(SIGTERM);
  EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
  expect_cut(peer);
}

/// Fills a pipe that nobody reads; writing to it does not wait.
void fill(int pipe) {
  const std::string much(4096, '.');
  while (::write(pipe, much.data(), much.size()) > 0) {
  }
}

TEST_P(Drain, ALogThatNobodyReadsKeepsItFromNothing) {
  const os::TemporaryTree tree;
  const std::string path = tree.path("log");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const os::Fd log(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(log);
  Process server("/bin/sh", {"-c", "exec \"$@\" 2>" + path, "sh", example_path("hello"), "--port",
                             "0", "--address", "127.0.0.1", "--cores", "2", "--backend",
                             std::string(GetParam().option)});
  std::string said;
  ASSERT_TRUE(eventually([&] {
    std::array<char, 4096> some{};
    const auto got = ::read(log.get(), some.data(), some.size());
    if (got > 0) said.append(some.data(), static_cast<std::size_t>(got));
    return said.contains("listening on 127.0.0.1:") && said.ends_with('\n');
  })) << said;
  fill(log.get());
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait_for_exit(), 0);
}

TEST_P(Drain, APortIsFreeWhenItsServerHasEnded) {
  const auto once = [&] {
    Server first("hello", GetParam());
    Client client = first.connect();
    ASSERT_TRUE(client.exchange(get("/")));
    client.close();
    EXPECT_EQ(first.stop(), 0);
    Server second("hello", GetParam(), {"--port", std::to_string(first.port())});
    EXPECT_EQ(second.port(), first.port());
    EXPECT_TRUE(second.ask(get("/")));
    EXPECT_EQ(second.stop(), 0);
  };
  // Meanwhile the kernel may give it to somebody else on this machine, but not each time.
  for (int tries = 0; tries < 3; ++tries) {
    try {
      once();
      return;
    } catch (const std::runtime_error& error) {
      EXPECT_TRUE(std::string_view(error.what()).contains("in use")) << error.what();
    }
  }
  ADD_FAILURE() << "in use, three times";
}

INSTANTIATE_TEST_SUITE_P(On, Drain, testing::ValuesIn(every_backend), name_of);

}  // namespace
}  // namespace weir::tests

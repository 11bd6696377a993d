// Tests draining under load, over real sockets and on every backend. Connected clients get
// complete answers and an orderly end, never a reset. The process then exits on its own.
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

namespace weir::tests::drain_test {
namespace {

using std::chrono::milliseconds;

/// A ClientPool runs clients that connect and send requests in a tight loop until no server
/// listens.
class ClientPool {
 public:
  explicit ClientPool(std::uint16_t port) : server_(os::Address::loopback(port)) {
    for (unsigned variant = 0; variant < threads_.size(); ++variant) {
      threads_[variant] = std::thread([this, variant] { run(variant); });
    }
  }
  ~ClientPool() { stop(); }

  std::uint64_t answers() const { return answers_.load(); }
  /// Stops the clients that still try to connect, and waits for all clients. The caller has seen
  /// the end of the server.
  void stop() {
    server_ended_ = true;
    for (std::thread& each : threads_) {
      if (each.joinable()) each.join();
    }
  }
  /// Returns the failures of the clients. The caller has called stop().
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  /// Sends one request per connection, several in sequence, or many in a pipeline.
  void run(unsigned variant) {
    const std::size_t batch = variant % 3 == 2 ? 16 : 1;
    const std::size_t rounds = variant % 3 == 0 ? 1 : 50;
    while (connect_and_exchange(batch, rounds)) {
    }
  }

  /// Returns false if no server listens.
  bool connect_and_exchange(std::size_t batch, std::size_t rounds) {
    auto client = Client::connect(server_, milliseconds(100));
    if (!client) {
      // A draining server does not answer a first SYN. The kernel would try again after a second.
      if (client.error() == Errc::timed_out) return !server_ended_;
      if (client.error() != system_error(ECONNREFUSED)) add_error("connect", client.error());
      return false;
    }
    client->set_timeout(default_timeout);
    for (std::size_t round = 0; round < rounds; ++round) {
      if (!ask(*client, batch, rounds == 1)) break;
    }
    return true;
  }

  /// Returns false if the connection has ended.
  bool ask(Client& client, std::size_t batch, bool once) {
    std::string requests;
    const std::uint64_t first = next_.fetch_add(batch);
    for (std::size_t i = 0; i < batch; ++i) {
      requests += "GET /hello/" + std::to_string(first + i) + " HTTP/1.1\r\nHost: x\r\n" +
                  (once ? "Connection: close\r\n\r\n" : "\r\n");
    }
    if (auto sent = client.send(requests); !sent) return add_error("send", sent.error());
    for (std::size_t i = 0; i < batch; ++i) {
      const auto answer = client.read();
      if (!answer) {
        // An orderly end is correct between two answers.
        if (answer.error() != Errc::end_of_stream || client.unread() != "") {
          add_error("read", answer.error());
        }
        return false;
      }
      if (answer->body != "Hello, " + std::to_string(first + i) + "!\n") {
        return add_error("wrong answer: " + answer->body, {});
      }
      ++answers_;
      if (answer->header("Connection") != "close") continue;
      if (auto end = client.expect_end(); !end) add_error("end", end.error());
      return false;
    }
    return true;
  }

  bool add_error(std::string_view what, std::error_code error) {
    const std::lock_guard lock(mutex_);
    errors_.push_back(std::string(what) + ": " + error.message());
    return false;
  }

  os::Address server_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> answers_{0};
  std::atomic<bool> server_ended_{false};
  std::mutex mutex_;
  std::vector<std::string> errors_;
  std::array<std::thread, 6> threads_;
};

class Drain : public EachBackend {};

TEST_P(Drain, NoClientSeesAResetInRepeatedDrains) {
  for (const int number : {SIGTERM, SIGINT, SIGTERM, SIGTERM, SIGTERM, SIGINT}) {
    Server server("hello", GetParam());
    ClientPool clients(server.port());
    ASSERT_TRUE(eventually([&] { return clients.answers() > 300; })) << clients.answers();
    server.process().signal(number);
    EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
    clients.stop();
    EXPECT_EQ(clients.errors(), std::vector<std::string>()) << server.process().errors();
    EXPECT_FALSE(server.process().errors().contains("drain timed out"))
        << server.process().errors();
  }
}

TEST_P(Drain, AnswersStartedRequestsAndThenEndsTheConnections) {
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
  EXPECT_EQ(first->header("Connection"), "close");
  EXPECT_TRUE(head.expect_end());
  ASSERT_TRUE(body.send(" a do"));
  const auto second = body.read();
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_EQ(second->body, "user 5 said half a do\n");
  EXPECT_EQ(second->header("Connection"), "close");
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
  // The first byte shows that the answer has begun.
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

/// Expects that the server has cut the connection, with or without a reset.
void expect_cut(Client& peer) {
  const auto rest = peer.read_to_end();
  if (!rest) {
    EXPECT_EQ(rest.error(), system_error(ECONNRESET)) << rest.error().message();
  }
}

TEST_P(Drain, TheDeadlineCutsConnectionsThatDoNotEnd) {
  Server server("echo", GetParam(), {"--drain-timeout", "0.3"});
  Client quiet = server.connect();
  Client busy = server.connect();
  ASSERT_TRUE(busy.send("half of a conversation"));
  ASSERT_TRUE(eventually([&] { return busy.unread().size() == 22; }));
  server.process().signal(SIGTERM);
  ASSERT_TRUE(server.process().wait_for("draining"));
  (void)busy.send(" and the rest");  // too late if this process was delayed
  EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
  EXPECT_TRUE(server.process().errors().contains("drain timed out")) << server.process().errors();
  expect_cut(quiet);
  expect_cut(busy);
}

TEST_P(Drain, TheDeadlineCutsAClientThatDoesNotReadItsAnswer) {
  Server server("streaming", GetParam(), {"--drain-timeout", "0.3"});
  Client unreading = server.connect();
  ASSERT_TRUE(unreading.send(get("/lines/2000000000")));
  ASSERT_TRUE(eventually([&] { return !unreading.unread().empty(); }));
  server.process().signal(SIGINT);
  EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
  EXPECT_TRUE(server.process().errors().contains("drain timed out")) << server.process().errors();
}

TEST_P(Drain, ASecondSignalEndsTheServerImmediately) {
  Server server("echo", GetParam(), {"--drain-timeout", "3600"});
  Client peer = server.connect();
  ASSERT_TRUE(peer.send("hello"));
  ASSERT_TRUE(eventually([&] { return peer.unread().size() == 5; }));
  server.process().signal(SIGINT);
  ASSERT_TRUE(server.process().wait_for("draining"));
  EXPECT_EQ(server.process().wait_for_exit(milliseconds(300)), std::nullopt)
      << "the server waits for its peer";
  server.process().signal(SIGTERM);
  EXPECT_EQ(server.process().wait_for_exit(), 0) << server.process().errors();
  expect_cut(peer);
}

/// Fills a pipe that no process reads. Writing to the pipe does not block.
void fill(int pipe) {
  const std::string much(4096, '.');
  while (::write(pipe, much.data(), much.size()) > 0) {
  }
}

TEST_P(Drain, AFullLogPipeDoesNotBlockTheServer) {
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
    EXPECT_TRUE(second.exchange(get("/")));
    EXPECT_EQ(second.stop(), 0);
  };
  // The kernel may give the port to another process of this machine meanwhile, but not each time.
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

INSTANTIATE_TEST_SUITE_P(On, Drain, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::drain_test

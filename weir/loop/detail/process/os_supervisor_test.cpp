// Tests of a supervisor and its workers as real processes: restarts, signals, sockets.
#include "weir/loop/detail/process/os_supervisor.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/process/signals.hpp"
#include "weir/os/test/denied_call.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::loop::os_supervisor_test {
namespace {

using namespace std::chrono_literals;

class QuietPlatform : public OsPlatform {
 public:
  void write_line(std::string_view) noexcept override {}
};

/// Writes a byte to a pipe for each line.
class RecordingPlatform : public OsPlatform {
 public:
  explicit RecordingPlatform(const os::Pipe& pipe) : pipe_(pipe) {}
  void write_line(std::string_view) noexcept override {
    EXPECT_EQ(::write(pipe_.write_end.get(), "l", 1), 1);
  }

 private:
  const os::Pipe& pipe_;
};

/// Writes a byte each time it cannot listen, and then calls a function.
class RefusedPlatform final : public QuietPlatform {
 public:
  RefusedPlatform(const os::Pipe& pipe, void (*then)()) : pipe_(pipe), then_(then) {}
  Result<Descriptor> listen(const os::Address& address, const ListenOptions& options) override {
    auto listener = OsPlatform::listen(address, options);
    if (!listener) {
      EXPECT_EQ(::write(pipe_.write_end.get(), "r", 1), 1);
      then_();
    }
    return listener;
  }

 private:
  const os::Pipe& pipe_;
  void (*then_)();
};

SupervisionOptions two_workers() {
  return {.loops = {1, 1},
          .endpoints = {},
          .restart = {.pause_first = 1ms, .pause_max = 1ms, .in_a_row_max = 3},
          .announce = false};
}

/// Starts a supervisor in a child process. Its workers run `work(worker)`, which returns their
/// status.
template <class Work>
os::ChildProcess supervise(const SupervisionOptions& options, Work work,
                           std::unique_ptr<Platform> platform = std::make_unique<QuietPlatform>()) {
  auto forked = os::fork_child();
  if (forked && !*forked) {
    Supervised supervised = OsSupervisor::run(*platform, options);
    if (supervised.worker) ::_exit(work(*supervised.worker));
    ::_exit(supervised.failure.empty() ? supervised.status : 99);
  }
  return std::move(**forked);
}

/// Waits until the supervisor sends a command.
WorkerCommand wait_for_command(const WorkerHandle& worker) {
  while (worker.command() == WorkerCommand::serve) ::poll(nullptr, 0, 1);
  return worker.command();
}

/// Handles signals as a runtime does: a signal only announces a command.
void take_signals() {
  for (const int each : {SIGTERM, SIGINT}) ::signal(each, [](int) {});
}

void wait_for_bytes(const os::Pipe& pipe) {
  pollfd wanted{pipe.read_end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
}

/// Reads one byte; -1 when no process can write any more.
int read_one(const os::Pipe& pipe) {
  wait_for_bytes(pipe);
  char byte = 0;
  return ::read(pipe.read_end.get(), &byte, 1) == 1 ? byte : -1;
}

void write_one(const os::Pipe& pipe, char byte) {
  EXPECT_EQ(::write(pipe.write_end.get(), &byte, 1), 1);
}

void write_port(const os::Pipe& pipe, std::uint16_t port) {
  EXPECT_EQ(::write(pipe.write_end.get(), &port, sizeof port), ssize_t{sizeof port});
}

std::uint16_t read_port(const os::Pipe& pipe) {
  std::uint16_t port = 0;
  wait_for_bytes(pipe);
  EXPECT_EQ(::read(pipe.read_end.get(), &port, sizeof port), ssize_t{sizeof port});
  return port;
}

/// Ends this process by a signal with its default action.
void end_by(int signal) {
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
}

TEST(OsSupervisor, WorkersThatSucceedAreNotRestarted) {
  os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerHandle& worker) {
    EXPECT_TRUE(worker.is_first_run());
    write_one(pipe, static_cast<char>('a' + worker.index()));
    return 0;
  });
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  pipe.write_end.close();
  const int first = read_one(pipe);
  const int second = read_one(pipe);
  EXPECT_EQ(first + second, 'a' + 'b') << "each once";
  EXPECT_EQ(read_one(pipe), -1);
}

TEST(OsSupervisor, GivesUpAfterTooManyCrashesInARow) {
  auto runs = os::SharedInt::make().value();
  auto command = os::SharedInt::make().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerHandle& worker) {
    take_signals();
    if (worker.index() == 1) {
      command.store(static_cast<int>(wait_for_command(worker)));
      return 0;
    }
    EXPECT_EQ(worker.is_first_run(), runs.load() == 0);
    runs.store(runs.load() + 1);
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 1");
  EXPECT_EQ(runs.load(), 4) << "one start and three restarts";
  EXPECT_EQ(command.load(), static_cast<int>(WorkerCommand::drain)) << "the other worker drains";
}

TEST(OsSupervisor, AWorkerThatAnySignalEndsIsRestarted) {
  for (const int signal : {SIGTERM, SIGINT, SIGKILL}) {
    auto runs = os::SharedInt::make().value();
    SupervisionOptions options = two_workers();
    options.loops = {1};
    os::ChildProcess supervisor = supervise(options, [&](WorkerHandle& worker) {
      runs.store(runs.load() + 1);
      if (worker.is_first_run()) end_by(signal);
      return 0;
    });
    EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
    EXPECT_EQ(runs.load(), 2) << signal;
  }
}

TEST(OsSupervisor, ASignalDrainsAllWorkers) {
  const os::Pipe pipe = os::open_pipe().value();
  for (const int signal : {SIGTERM, SIGINT}) {
    os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerHandle& worker) {
      take_signals();
      write_one(pipe, 'r');
      return wait_for_command(worker) == WorkerCommand::drain ? 0 : 1;
    });
    for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
    supervisor.signal(signal);
    EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  }
}

TEST(OsSupervisor, TheStatusReportsAWorkerThatFailsInADrain) {
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerHandle& worker) {
    take_signals();
    write_one(pipe, 'r');
    wait_for_command(worker);
    return worker.index() == 0 ? 0 : 1;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 1");
}

TEST(OsSupervisor, ASecondSignalStopsAllWorkers) {
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerHandle& worker) {
    take_signals();
    write_one(pipe, 'r');
    if (wait_for_command(worker) == WorkerCommand::drain) write_one(pipe, 'd');
    while (worker.command() != WorkerCommand::stop) ::poll(nullptr, 0, 1);
    return 0;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  supervisor.signal(SIGTERM);
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'd');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
}

TEST(OsSupervisor, KillsWorkersThatDoNotEndInTime) {
  SupervisionOptions options = two_workers();
  options.drain_timeout = options.kill_timeout = 1ms;
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(options, [&](WorkerHandle&) {
    take_signals();
    write_one(pipe, 'r');
    for (;;) ::pause();
    return 0;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 1");
}

TEST(OsSupervisor, WorkersEndWithTheSupervisor) {
  os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerHandle&) {
    write_one(pipe, 'r');
    for (;;) ::pause();
    return 0;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  supervisor.signal(SIGKILL);
  EXPECT_TRUE(supervisor.wait().killed_by(SIGKILL));
  pipe.write_end.close();
  EXPECT_EQ(read_one(pipe), -1) << "no process has the writing end any more";
}

/// Connects, and reads one byte.
int read_as_client(const os::Address& server) {
  const os::Fd client = os::open_stream(server.family()).value();
  EXPECT_TRUE(os::start_connect(client.get(), server));
  pollfd wanted{client.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
  char byte = 0;
  return ::recv(client.get(), &byte, 1, 0) == 1 ? byte : -1;
}

TEST(OsSupervisor, ARestartedWorkerServesTheQueueOfTheCrashedOne) {
  const os::Address address = [] {
    const os::Fd free = os::open_listener(os::Address::loopback(0)).value();
    return os::local_address(free.get()).value();
  }();
  SupervisionOptions options = two_workers();
  options.loops = {2};
  options.endpoints = {address};
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(options, [&](WorkerHandle& worker) {
    const std::vector<WorkerHandle::Socket> sockets = worker.take_sockets();
    EXPECT_EQ(sockets.size(), 2U);
    std::array<pollfd, 2> listening{
        {{sockets[0].descriptor.value(), POLLIN, 0}, {sockets[1].descriptor.value(), POLLIN, 0}}};
    if (worker.is_first_run()) {
      write_one(pipe, 'r');
      // A client waits in the queue, and keeps waiting.
      ::poll(listening.data(), listening.size(), 30'000);
      ::raise(SIGKILL);
    }
    for (;;) {
      ::poll(listening.data(), listening.size(), 30'000);
      for (const pollfd& each : listening) {
        if (each.revents == 0) continue;
        const auto client = os::accept_one(each.fd);
        if (client) {
          EXPECT_EQ(::send(client->get(), "x", 1, MSG_NOSIGNAL), 1);
        }
      }
    }
    return 0;
  });
  EXPECT_EQ(read_one(pipe), 'r');
  for (int client = 0; client < 5; ++client) EXPECT_EQ(read_as_client(address), 'x');
}

/// Serves the next client; another process may be faster.
void serve_one(const WorkerHandle::Socket& socket) {
  for (;;) {
    pollfd wanted{socket.descriptor.value(), POLLIN, 0};
    EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
    const auto client = os::accept_one(wanted.fd);
    if (!client) continue;
    EXPECT_EQ(::send(client->get(), "x", 1, MSG_NOSIGNAL), 1);
    return;
  }
}

TEST(OsSupervisor, ADrainRestartsACrashedWorkerToServeItsQueue) {
  const os::Fd free = os::open_listener(os::Address::loopback(0)).value();
  const os::Address address = os::local_address(free.get()).value().with_port(0);
  SupervisionOptions options = two_workers();
  options.loops = {1};
  options.endpoints = {address};
  options.restart.pause_first = options.restart.pause_max = 1h;
  const os::Pipe port = os::open_pipe().value();
  const os::Pipe lines = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(
      options,
      [&](WorkerHandle& worker) {
        const auto sockets = worker.take_sockets();
        if (worker.is_first_run()) {
          write_port(port, sockets[0].bound.port());
          ::raise(SIGKILL);
        }
        if (worker.command() != WorkerCommand::drain) return 4;
        auto signals = os::SignalFd::open().value();
        pollfd command{signals.get(), POLLIN, 0};
        if (::poll(&command, 1, 30'000) != 1) return 5;  // it must learn of the command
        serve_one(sockets[0]);
        return 0;
      },
      std::make_unique<RecordingPlatform>(lines));
  const std::uint16_t bound = read_port(port);
  EXPECT_EQ(read_one(lines), 'l') << "the worker has ended; its restart is due in an hour";
  const os::Fd client = os::open_stream(address.family()).value();
  EXPECT_TRUE(os::start_connect(client.get(), address.with_port(bound)));
  pollfd wanted{client.get(), POLLOUT, 0};
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
  EXPECT_EQ(wanted.revents, POLLOUT) << "connected";
  supervisor.signal(SIGTERM);
  wanted.events = POLLIN;
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
  char byte = 0;
  EXPECT_EQ(::recv(client.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
}

/// Returns the result of a connect.
std::error_code error_of_connect(const os::Address& server) {
  const os::Fd client = os::open_stream(server.family()).value();
  const auto started = os::start_connect(client.get(), server);
  if (!started) return started.error();
  pollfd wanted{client.get(), POLLOUT, 0};
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
  const auto connected = os::take_error(client.get());
  return connected ? std::error_code() : connected.error();
}

// A client would wait in the queue of a socket that no worker has any more.
TEST(OsSupervisor, KeepsNoSocketOfAWorkerThatDrains) {
  SupervisionOptions options = two_workers();
  options.loops = {1};
  options.endpoints = {os::Address::loopback(0)};
  const os::Pipe port = os::open_pipe().value();
  const os::Pipe closed = os::open_pipe().value();
  const os::Pipe end = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(options, [&](WorkerHandle& worker) {
    auto sockets = worker.take_sockets();
    write_port(port, sockets[0].bound.port());
    auto signals = os::SignalFd::open().value();
    pollfd command{signals.get(), POLLIN, 0};
    if (::poll(&command, 1, 30'000) != 1) return 4;
    sockets.clear();
    write_one(closed, 'c');
    return read_one(end) == 'e' ? 0 : 5;
  });
  const os::Address address = os::Address::loopback(read_port(port));
  supervisor.signal(SIGTERM);
  EXPECT_EQ(read_one(closed), 'c');
  EXPECT_EQ(error_of_connect(address), system_error(ECONNREFUSED));
  write_one(end, 'e');
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
}

// A client that has come to the worker before its end is reset.
TEST(OsSupervisor, KeepsNoSocketOfAWorkerThatHasEnded) {
  SupervisionOptions options = two_workers();
  options.endpoints = {os::Address::loopback(0)};
  const os::Pipe port = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(options, [&](WorkerHandle& worker) {
    const auto sockets = worker.take_sockets();
    if (worker.index() == 1) return 0;
    write_port(port, sockets[0].bound.port());
    for (;;) serve_one(sockets[0]);
    return 0;
  });
  const os::Address address = os::Address::loopback(read_port(port));
  for (int served = 0; served < 20 && !testing::Test::HasFailure();) {
    served += read_as_client(address) == 'x' ? 1 : 0;
  }
  supervisor.signal(SIGKILL);
  EXPECT_TRUE(supervisor.wait().killed_by(SIGKILL));
}

TEST(OsSupervisor, ASignalStaysPendingUntilTheWorkerReadsIt) {
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerHandle& worker) {
    write_one(pipe, 'r');
    // The signal has the default action here, which would end the process.
    wait_for_command(worker);
    auto signals = os::SignalFd::open().value();
    pollfd wanted{signals.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
    return signals.read() == os::StopSignal::terminate ? 0 : 1;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
}

TEST(OsSupervisor, DetectsCrashesAlthoughSigchldWasIgnored) {
  auto runs = os::SharedInt::make().value();
  ::signal(SIGCHLD, SIG_IGN);
  SupervisionOptions options = two_workers();
  options.loops = {1};
  os::ChildProcess supervisor = supervise(options, [&](WorkerHandle&) {
    runs.store(runs.load() + 1);
    return runs.load() == 1 ? 3 : 0;
  });
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  EXPECT_EQ(runs.load(), 2);
}

TEST(OsSupervisor, AllWorkersShareTheSocketOfAPath) {
  const os::TemporaryTree tree;
  SupervisionOptions options = two_workers();
  options.loops = {2, 2};
  options.endpoints = {os::Address::local(tree.path("socket")).value()};
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(options, [&](WorkerHandle& worker) {
    const auto sockets = worker.take_sockets();
    EXPECT_EQ(sockets.size(), 1U);
    write_one(pipe, 'r');
    serve_one(sockets[0]);
    return 0;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  for (int client = 0; client < 2; ++client) EXPECT_EQ(read_as_client(options.endpoints[0]), 'x');
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
}

TEST(OsSupervisor, FailsIfTheProcessHasThreads) {
  QuietPlatform platform;
  std::jthread another([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  const Supervised supervised = OsSupervisor::run(platform, two_workers());
  EXPECT_EQ(supervised.worker, nullptr);
  EXPECT_EQ(supervised.failure,
            "cannot start worker processes: this process already has threads, and fork() does not "
            "copy them");
  EXPECT_EQ(platform.supervise(two_workers()).failure, supervised.failure);
}

TEST(OsSupervisor, StartsNoWorkerIfItCannotListen) {
  const os::Fd taken = os::open_listener(os::Address::loopback(0)).value();
  SupervisionOptions options = two_workers();
  options.endpoints = {os::local_address(taken.get()).value()};
  os::ChildProcess supervisor = supervise(options, [](WorkerHandle&) { return 0; });
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 99");
}

TEST(OsSupervisor, WaitsForAPortThatIsReleasedSoon) {
  const os::Pipe refused = os::open_pipe().value();
  const os::Pipe port_pipe = os::open_pipe().value();
  auto holder = os::fork_child().value();
  if (!holder) {
    const os::Fd taken = os::open_listener(os::Address::loopback(0)).value();
    const std::uint16_t port = os::local_address(taken.get()).value().port();
    if (::write(port_pipe.write_end.get(), &port, sizeof port) != sizeof port) ::_exit(1);
    ::_exit(read_one(refused) == 'r' ? 0 : 2);
  }
  std::uint16_t port = 0;
  wait_for_bytes(port_pipe);
  ASSERT_EQ(::read(port_pipe.read_end.get(), &port, sizeof port), sizeof port);
  SupervisionOptions options = two_workers();
  options.endpoints = {os::Address::loopback(port)};
  auto platform = std::make_unique<RefusedPlatform>(refused, [] {});
  os::ChildProcess supervisor = supervise(
      options, [](WorkerHandle& worker) { return worker.take_sockets().size() == 1 ? 0 : 3; },
      std::move(platform));
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  EXPECT_EQ(holder->wait().to_string(), "exit status 0");
}

TEST(OsSupervisor, ASignalEndsTheWaitForAPort) {
  os::Pipe refused = os::open_pipe().value();
  const os::Fd taken = os::open_listener(os::Address::loopback(0)).value();
  SupervisionOptions options = two_workers();
  options.endpoints = {os::local_address(taken.get()).value()};
  auto platform = std::make_unique<RefusedPlatform>(refused, [] { ::raise(SIGTERM); });
  os::ChildProcess supervisor =
      supervise(options, [](WorkerHandle&) { return 0; }, std::move(platform));
  EXPECT_TRUE(supervisor.wait().to_string().starts_with("killed by signal 15"))
      << "the default action";
  refused.write_end.close();
  EXPECT_EQ(read_one(refused), 'r');
  EXPECT_EQ(read_one(refused), -1) << "tried once";
}

/// Writes its log lines to a pipe. The number of a process is written as N.
class LinesPlatform final : public OsPlatform {
 public:
  explicit LinesPlatform(const os::Pipe& pipe) : pipe_(pipe) {}
  void write_line(std::string_view line) noexcept override {
    std::string text(line);
    const std::string before = "(process ";
    if (const auto found = text.find(before); found != text.npos) {
      const auto begin = found + before.size();
      text.replace(begin, text.find(')', begin) - begin, "N");
    }
    text += "\n";
    EXPECT_EQ(::write(pipe_.write_end.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }

 private:
  const os::Pipe& pipe_;
};

class SupervisorLog : public testing::Test {
 protected:
  template <class Work>
  os::ChildProcess supervise_logged(const SupervisionOptions& options, Work work) {
    return supervise(options, work, std::make_unique<LinesPlatform>(lines_));
  }
  /// Returns all lines, after the supervisor and its workers have ended.
  std::string all_lines() {
    lines_.write_end.close();
    std::string text;
    std::array<char, 4096> room;
    for (;;) {
      wait_for_bytes(lines_);
      const auto count = ::read(lines_.read_end.get(), room.data(), room.size());
      if (count <= 0) return text;
      text.append(room.data(), static_cast<std::size_t>(count));
    }
  }

  os::Pipe lines_ = os::open_pipe().value();
  const os::Pipe started_ = os::open_pipe().value();
};

TEST_F(SupervisorLog, ReportsEachRestartAndItsEnd) {
  SupervisionOptions options = two_workers();
  options.loops = {1};
  options.restart = {.pause_first = 1ms, .pause_max = 2ms, .in_a_row_max = 3};
  os::ChildProcess supervisor = supervise_logged(options, [](WorkerHandle&) { return 3; });
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 1");
  EXPECT_EQ(all_lines(),
            "weir: worker 0 (process N) has ended: exit status 3, restarting in 1 ms\n"
            "weir: worker 0 (process N) has ended: exit status 3, restarting in 2 ms\n"
            "weir: worker 0 (process N) has ended: exit status 3, restarting in 2 ms\n"
            "weir: worker 0 (process N) has ended: exit status 3, after 3 restarts in a row: no "
            "further restart, draining all workers\n");
}

TEST_F(SupervisorLog, AWorkerThatCannotStartIsTriedAgain) {
  SupervisionOptions options = two_workers();
  options.loops = {1};
  options.restart = {.pause_first = 1ms, .pause_max = 2ms, .in_a_row_max = 2};
  auto forked = os::fork_child();
  if (forked && !*forked) {
    if (!os::deny_fork()) ::_exit(98);
    LinesPlatform platform(lines_);
    const Supervised supervised = OsSupervisor::run(platform, options);
    ::_exit(supervised.worker == nullptr && supervised.failure.empty() ? supervised.status : 99);
  }
  const os::ExitStatus end = (**forked).wait();
  if (end.code == 98) GTEST_SKIP() << "fork() cannot be denied here";
  EXPECT_EQ(end.to_string(), "exit status 1");
  const std::string cannot =
      "weir: worker 0 cannot start: " + system_error(EAGAIN).message() + ", ";
  EXPECT_EQ(all_lines(), cannot + "restarting in 1 ms\n" + cannot + "restarting in 2 ms\n" +
                             cannot +
                             "after 2 restarts in a row: no further restart, draining all "
                             "workers\n");
}

TEST_F(SupervisorLog, ReportsWorkersThatSucceed) {
  SupervisionOptions options = two_workers();
  options.loops = {1};
  os::ChildProcess supervisor = supervise_logged(options, [](WorkerHandle&) { return 0; });
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  EXPECT_EQ(all_lines(), "weir: worker 0 (process N) exited with status 0: not restarted\n");
}

TEST_F(SupervisorLog, ReportsTheFirstAndTheSecondSignal) {
  SupervisionOptions options = two_workers();
  options.loops = {1};
  os::ChildProcess supervisor = supervise_logged(options, [&](WorkerHandle& worker) {
    take_signals();
    write_one(started_, 'r');
    wait_for_command(worker);
    write_one(started_, 'd');
    while (worker.command() != WorkerCommand::stop) ::poll(nullptr, 0, 1);
    return 0;
  });
  EXPECT_EQ(read_one(started_), 'r');
  supervisor.signal(SIGINT);
  EXPECT_EQ(read_one(started_), 'd');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  EXPECT_EQ(all_lines(),
            "weir: SIGINT: draining all workers\n"
            "weir: SIGTERM again: stopping all workers immediately\n");
}

TEST_F(SupervisorLog, ReportsAKilledWorkerOnce) {
  SupervisionOptions options = two_workers();
  options.loops = {1};
  options.drain_timeout = options.kill_timeout = 1ms;
  os::ChildProcess supervisor = supervise_logged(options, [&](WorkerHandle&) {
    take_signals();
    write_one(started_, 'r');
    for (;;) ::pause();
    return 0;
  });
  EXPECT_EQ(read_one(started_), 'r');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 1");
  EXPECT_EQ(all_lines(),
            "weir: SIGTERM: draining all workers\n"
            "weir: drain timeout: killing the remaining workers\n"
            "weir: worker 0 (process N) has ended: killed by signal 9 (Killed)\n");
}

/// A platform whose time is a number of minutes that the test sets.
class MinutesPlatform final : public QuietPlatform {
 public:
  explicit MinutesPlatform(const os::SharedInt& minutes) : minutes_(minutes) {}
  Instant now() noexcept override { return Instant(100h) + minutes_.load() * 1min; }

 private:
  const os::SharedInt& minutes_;
};

// The supervisor looks at its clock when a signal arrives. Each signal after the first is another
// command to stop.
TEST(OsSupervisor, FurtherSignalsBringTheKillForwardAndNeverDelayIt) {
  struct {
    int second_at;
    int killed_at;
  } const cases[] = {{179, 180}, {1, 121}, {60, 180}, {59, 179}};
  for (const auto& each : cases) {
    os::SharedInt minutes = os::SharedInt::make().value();
    const os::Pipe signalled = os::open_pipe().value();
    SupervisionOptions options = two_workers();
    options.loops = {1};
    options.drain_timeout = 1h;
    options.kill_timeout = 2h;
    os::ChildProcess supervisor = supervise(
        options,
        [&](WorkerHandle&) {
          sigset_t terminate;
          ::sigemptyset(&terminate);
          ::sigaddset(&terminate, SIGTERM);
          write_one(signalled, 'r');
          for (int signal = 0; ::sigwait(&terminate, &signal) == 0;) write_one(signalled, 's');
          return 0;
        },
        std::make_unique<MinutesPlatform>(minutes));
    EXPECT_EQ(read_one(signalled), 'r');
    for (const int now : {0, each.second_at, each.killed_at - 1}) {
      minutes.store(now);
      supervisor.signal(SIGTERM);
      EXPECT_EQ(read_one(signalled), 's') << now;
    }
    pollfd ended{supervisor.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ended, 1, 0), 0);
    minutes.store(each.killed_at);
    supervisor.signal(SIGTERM);
    EXPECT_EQ(::poll(&ended, 1, 30'000), 1) << each.second_at;
    supervisor.signal(SIGKILL);  // if it still runs
    EXPECT_EQ(supervisor.wait().to_string(), "exit status 1");
  }
}

// The signal has its default action in the worker, which ends before it can handle it.
TEST_F(SupervisorLog, AWorkerThatASignalEndsEarlyIsNoFailure) {
  SupervisionOptions options = two_workers();
  options.loops = {1};
  os::ChildProcess supervisor = supervise_logged(options, [&](WorkerHandle& worker) {
    sigset_t all;
    ::sigfillset(&all);
    write_one(started_, 'r');
    wait_for_command(worker);
    ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
    for (;;) ::pause();
    return 0;
  });
  EXPECT_EQ(read_one(started_), 'r');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  EXPECT_EQ(all_lines(), "weir: SIGTERM: draining all workers\n");
}

TEST_F(SupervisorLog, AWorkerThatAnInterruptEndsInADrainIsNoFailure) {
  SupervisionOptions options = two_workers();
  options.loops = {1};
  os::ChildProcess supervisor = supervise_logged(options, [&](WorkerHandle& worker) {
    write_one(started_, 'r');
    wait_for_command(worker);
    end_by(SIGINT);
    return 4;
  });
  EXPECT_EQ(read_one(started_), 'r');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  EXPECT_EQ(all_lines(), "weir: SIGTERM: draining all workers\n");
}

TEST_F(SupervisorLog, AnnouncesItsAddressesOnRequest) {
  const os::TemporaryTree tree;
  SupervisionOptions options = two_workers();
  const os::Address path = os::Address::local(tree.path("socket")).value();
  options.endpoints = {path};
  options.announce = true;
  os::ChildProcess supervisor = supervise_logged(options, [&](WorkerHandle& worker) {
    take_signals();
    write_one(started_, 'r');
    wait_for_command(worker);
    return 0;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(started_), 'r');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  EXPECT_EQ(all_lines(),
            "weir: listening on " + path.to_string() + "\nweir: SIGTERM: draining all workers\n");
}

TEST(OsSupervisor, EachWorkerGetsASocketOfEachAddressForEachLoop) {
  SupervisionOptions options = two_workers();
  options.loops = {1, 3};
  options.endpoints = {os::Address::loopback(0), os::Address::loopback(0)};
  os::ChildProcess supervisor = supervise(options, [&](WorkerHandle& worker) {
    const auto sockets = worker.take_sockets();
    if (sockets.size() != 2 * options.loops[worker.index()]) return 5;
    std::vector<std::uint16_t> ports;
    for (const auto& each : sockets) {
      const auto bound = os::local_address(each.descriptor.value());
      if (!bound || *bound != each.bound || each.bound.port() == 0) return 6;
      ports.push_back(bound->port());
    }
    const std::size_t half = ports.size() / 2;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (ports[i] != ports[i < half ? 0 : half]) return 7;
    }
    return ports[0] != ports[half] ? 0 : 8;
  });
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
}

TEST(OsSupervisor, NamesTheAddressOnWhichItCannotListen) {
  const os::Fd taken = os::open_listener(os::Address::loopback(0)).value();
  const os::Pipe text = os::open_pipe().value();
  SupervisionOptions options = two_workers();
  options.endpoints = {os::local_address(taken.get()).value()};
  auto child = os::fork_child().value();
  if (!child) {
    QuietPlatform platform;
    const Supervised supervised = OsSupervisor::run(platform, options);
    const auto& failure = supervised.failure;
    const bool wrote = ::write(text.write_end.get(), failure.data(), failure.size()) > 0;
    ::_exit(wrote && supervised.worker == nullptr && supervised.status == 0 ? 0 : 1);
  }
  EXPECT_EQ(child->wait().to_string(), "exit status 0");
  std::array<char, 256> room{};
  EXPECT_GT(::read(text.read_end.get(), room.data(), room.size()), 0);
  EXPECT_EQ(std::string(room.data()),
            "cannot listen on " + options.endpoints[0].to_string() + ": Address already in use");
}

}  // namespace
}  // namespace weir::loop::os_supervisor_test

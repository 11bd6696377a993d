// A supervisor and its workers, as real processes: who begins again, who is told what, and what
// becomes of the sockets.
#include "weir/loop/detail/process/os_supervisor.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/process/signals.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir {
namespace {

using namespace std::chrono_literals;

class QuietHost : public OsHost {
 public:
  void log(std::string_view) noexcept override {}
};

/// Writes a byte for each line, for somebody who waits for it.
class TellingHost : public OsHost {
 public:
  explicit TellingHost(const os::Pipe& pipe) : pipe_(pipe) {}
  void log(std::string_view) noexcept override {
    EXPECT_EQ(::write(pipe_.write_end.get(), "l", 1), 1);
  }

 private:
  const os::Pipe& pipe_;
};

/// Writes a byte for each time that it cannot listen, and then does something.
class RefusedHost final : public QuietHost {
 public:
  RefusedHost(const os::Pipe& pipe, void (*then)()) : pipe_(pipe), then_(then) {}
  Result<Descriptor> listen(const os::Address& address, const ListenOptions& options) override {
    auto listener = OsHost::listen(address, options);
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

/// A supervisor in a child of its own, whose workers do `work(seat)`, which gives their status.
template <class Work>
os::ChildProcess supervise(const SupervisionOptions& options, Work work,
                           std::unique_ptr<Host> host = std::make_unique<QuietHost>()) {
  auto forked = os::fork_child();
  if (forked && !*forked) {
    Supervised supervised = OsSupervisor::run(*host, options);
    if (supervised.seat) ::_exit(work(*supervised.seat));
    ::_exit(supervised.failure.empty() ? supervised.status : 99);
  }
  return std::move(**forked);
}

/// Until the supervisor wants something.
WorkerOrder wait_for_order(const WorkerSeat& seat) {
  while (seat.order() == WorkerOrder::serve) ::poll(nullptr, 0, 1);
  return seat.order();
}

/// As a runtime does: a signal only says that there is an order.
void take_signals() {
  for (const int each : {SIGTERM, SIGINT}) ::signal(each, [](int) {});
}

void wait_for_bytes(const os::Pipe& pipe) {
  pollfd wanted{pipe.read_end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
}

/// One byte, which somebody writes; -1 when nobody can any more.
int read_one(const os::Pipe& pipe) {
  wait_for_bytes(pipe);
  char byte = 0;
  return ::read(pipe.read_end.get(), &byte, 1) == 1 ? byte : -1;
}

void write_one(const os::Pipe& pipe, char byte) {
  EXPECT_EQ(::write(pipe.write_end.get(), &byte, 1), 1);
}

TEST(OsSupervisor, WorkersThatEndWellAreDone) {
  os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerSeat& seat) {
    EXPECT_TRUE(seat.first_life());
    write_one(pipe, static_cast<char>('a' + seat.index()));
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
  auto lives = os::SharedNumber::make().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerSeat& seat) {
    take_signals();
    if (seat.index() == 1) {
      wait_for_order(seat);
      return 0;
    }
    EXPECT_EQ(seat.first_life(), lives.load() == 0);
    lives.store(lives.load() + 1);
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 1");
  EXPECT_EQ(lives.load(), 4) << "once, and three times again";
}

TEST(OsSupervisor, ASignalDrainsAllWorkers) {
  const os::Pipe pipe = os::open_pipe().value();
  for (const int signal : {SIGTERM, SIGINT}) {
    os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerSeat& seat) {
      take_signals();
      write_one(pipe, 'r');
      return wait_for_order(seat) == WorkerOrder::drain ? 0 : 1;
    });
    for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
    supervisor.signal(signal);
    EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  }
}

TEST(OsSupervisor, AWorkerThatFailsInADrainIsToldByTheStatus) {
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerSeat& seat) {
    take_signals();
    write_one(pipe, 'r');
    wait_for_order(seat);
    return seat.index() == 0 ? 0 : 1;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 1");
}

TEST(OsSupervisor, ASecondSignalStopsThem) {
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerSeat& seat) {
    take_signals();
    write_one(pipe, 'r');
    if (wait_for_order(seat) == WorkerOrder::drain) write_one(pipe, 'd');
    while (seat.order() != WorkerOrder::stop) ::poll(nullptr, 0, 1);
    return 0;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  supervisor.signal(SIGTERM);
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'd');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
}

TEST(OsSupervisor, WhoDoesNotEndInTimeIsKilled) {
  SupervisionOptions options = two_workers();
  options.deadline = options.patience = 1ms;
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(options, [&](WorkerSeat&) {
    take_signals();
    write_one(pipe, 'r');
    for (;;) ::pause();
    return 0;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 1");
}

TEST(OsSupervisor, WorkersEndWithIt) {
  os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerSeat&) {
    write_one(pipe, 'r');
    for (;;) ::pause();
    return 0;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  supervisor.signal(SIGKILL);
  EXPECT_TRUE(supervisor.wait().killed_by(SIGKILL));
  pipe.write_end.close();
  EXPECT_EQ(read_one(pipe), -1) << "nobody has the writing end any more";
}

/// Connects, and reads the byte that it is sent.
int visit(const os::Address& server) {
  const os::Fd client = os::open_stream(server.family()).value();
  EXPECT_TRUE(os::start_connect(client.get(), server));
  pollfd wanted{client.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
  char byte = 0;
  return ::recv(client.get(), &byte, 1, 0) == 1 ? byte : -1;
}

TEST(OsSupervisor, WhoWaitsInTheQueueOfAWorkerThatCrashesIsServedByItsNextLife) {
  const os::Address address = [] {
    const os::Fd free = os::open_listener(os::Address::loopback(0)).value();
    return os::local_address(free.get()).value();
  }();
  SupervisionOptions options = two_workers();
  options.loops = {2};
  options.endpoints = {address};
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(options, [&](WorkerSeat& seat) {
    const std::vector<WorkerSeat::Socket> sockets = seat.take_sockets();
    EXPECT_EQ(sockets.size(), 2U);
    std::array<pollfd, 2> listening{
        {{sockets[0].descriptor.value(), POLLIN, 0}, {sockets[1].descriptor.value(), POLLIN, 0}}};
    if (seat.first_life()) {
      write_one(pipe, 'r');
      // Somebody waits, and waits on.
      ::poll(listening.data(), listening.size(), 30'000);
      ::raise(SIGKILL);
    }
    for (;;) {
      ::poll(listening.data(), listening.size(), 30'000);
      for (const pollfd& each : listening) {
        if (each.revents == 0) continue;
        const auto visitor = os::accept_one(each.fd);
        if (visitor) {
          EXPECT_EQ(::send(visitor->get(), "x", 1, MSG_NOSIGNAL), 1);
        }
      }
    }
    return 0;
  });
  EXPECT_EQ(read_one(pipe), 'r');
  for (int visitor = 0; visitor < 5; ++visitor) EXPECT_EQ(visit(address), 'x');
}

/// Serves the next who comes; another process may be faster.
void serve_one(const WorkerSeat::Socket& socket) {
  for (;;) {
    pollfd wanted{socket.descriptor.value(), POLLIN, 0};
    EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
    const auto visitor = os::accept_one(wanted.fd);
    if (!visitor) continue;
    EXPECT_EQ(::send(visitor->get(), "x", 1, MSG_NOSIGNAL), 1);
    return;
  }
}

TEST(OsSupervisor, ADrainBeginsACrashedWorkerOnceMoreForWhoWaitsInItsQueue) {
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
      [&](WorkerSeat& seat) {
        const auto sockets = seat.take_sockets();
        if (seat.first_life()) {
          const std::uint16_t bound = sockets[0].bound.port();
          EXPECT_EQ(::write(port.write_end.get(), &bound, sizeof bound), ssize_t{sizeof bound});
          ::raise(SIGKILL);
        }
        EXPECT_EQ(seat.order(), WorkerOrder::drain);
        serve_one(sockets[0]);
        return 0;
      },
      std::make_unique<TellingHost>(lines));
  std::uint16_t bound = 0;
  pollfd told{port.read_end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&told, 1, 30'000), 1);
  EXPECT_EQ(::read(port.read_end.get(), &bound, sizeof bound), ssize_t{sizeof bound});
  EXPECT_EQ(read_one(lines), 'l') << "it has ended, and begins again in an hour";
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

TEST(OsSupervisor, ASignalThatComesBeforeAWorkerReadsThemWaits) {
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(two_workers(), [&](WorkerSeat& seat) {
    write_one(pipe, 'r');
    // With the disposition that would end it.
    wait_for_order(seat);
    auto signals = os::SignalFd::open().value();
    pollfd wanted{signals.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&wanted, 1, 30'000), 1);
    return signals.read() == os::StopSignal::terminate ? 0 : 1;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  supervisor.signal(SIGTERM);
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
}

TEST(OsSupervisor, CrashesAreSeenWhereTheEndsOfChildrenWereIgnored) {
  auto lives = os::SharedNumber::make().value();
  ::signal(SIGCHLD, SIG_IGN);
  SupervisionOptions options = two_workers();
  options.loops = {1};
  os::ChildProcess supervisor = supervise(options, [&](WorkerSeat&) {
    lives.store(lives.load() + 1);
    return lives.load() == 1 ? 3 : 0;
  });
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  EXPECT_EQ(lives.load(), 2);
}

TEST(OsSupervisor, AllWorkersHaveTheOneSocketOfAPath) {
  const os::TemporaryTree tree;
  SupervisionOptions options = two_workers();
  options.loops = {2, 2};
  options.endpoints = {os::Address::local(tree.path("socket")).value()};
  const os::Pipe pipe = os::open_pipe().value();
  os::ChildProcess supervisor = supervise(options, [&](WorkerSeat& seat) {
    const auto sockets = seat.take_sockets();
    EXPECT_EQ(sockets.size(), 1U);
    write_one(pipe, 'r');
    serve_one(sockets[0]);
    return 0;
  });
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(read_one(pipe), 'r');
  for (int visitor = 0; visitor < 2; ++visitor) EXPECT_EQ(visit(options.endpoints[0]), 'x');
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
}

TEST(OsSupervisor, AThreadIsInTheWay) {
  QuietHost host;
  std::jthread another([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  const Supervised supervised = OsSupervisor::run(host, two_workers());
  EXPECT_EQ(supervised.seat, nullptr);
  EXPECT_TRUE(supervised.failure.contains("threads")) << supervised.failure;
}

TEST(OsSupervisor, WhereItCannotListenNothingBegins) {
  const os::Fd taken = os::open_listener(os::Address::loopback(0)).value();
  SupervisionOptions options = two_workers();
  options.endpoints = {os::local_address(taken.get()).value()};
  os::ChildProcess supervisor = supervise(options, [](WorkerSeat&) { return 0; });
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 99");
}

TEST(OsSupervisor, APortThatIsLetGoSoonIsWaitedFor) {
  const os::Pipe refused = os::open_pipe().value();
  const os::Pipe told = os::open_pipe().value();
  auto holder = os::fork_child().value();
  if (!holder) {
    const os::Fd taken = os::open_listener(os::Address::loopback(0)).value();
    const std::uint16_t port = os::local_address(taken.get()).value().port();
    if (::write(told.write_end.get(), &port, sizeof port) != sizeof port) ::_exit(1);
    ::_exit(read_one(refused) == 'r' ? 0 : 2);
  }
  std::uint16_t port = 0;
  wait_for_bytes(told);
  ASSERT_EQ(::read(told.read_end.get(), &port, sizeof port), sizeof port);
  SupervisionOptions options = two_workers();
  options.endpoints = {os::Address::loopback(port)};
  auto host = std::make_unique<RefusedHost>(refused, [] {});
  os::ChildProcess supervisor = supervise(
      options, [](WorkerSeat& seat) { return seat.take_sockets().size() == 1 ? 0 : 3; },
      std::move(host));
  EXPECT_EQ(supervisor.wait().to_string(), "exit status 0");
  EXPECT_EQ(holder->wait().to_string(), "exit status 0");
}

TEST(OsSupervisor, ASignalEndsTheWaitForAPort) {
  os::Pipe refused = os::open_pipe().value();
  const os::Fd taken = os::open_listener(os::Address::loopback(0)).value();
  SupervisionOptions options = two_workers();
  options.endpoints = {os::local_address(taken.get()).value()};
  auto host = std::make_unique<RefusedHost>(refused, [] { ::raise(SIGTERM); });
  os::ChildProcess supervisor = supervise(options, [](WorkerSeat&) { return 0; }, std::move(host));
  EXPECT_TRUE(supervisor.wait().to_string().starts_with("killed by signal 15")) << "as ever";
  refused.write_end.close();
  EXPECT_EQ(read_one(refused), 'r');
  EXPECT_EQ(read_one(refused), -1) << "tried once";
}

}  // namespace
}  // namespace weir

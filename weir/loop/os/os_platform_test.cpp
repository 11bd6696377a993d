// Tests of OsPlatform with the real kernel: sockets, backends, threads and signals.
#include "weir/loop/os/os_platform.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"
#include "weir/os/detail/io/datagram_socket.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/detail/machine/limits.hpp"
#include "weir/os/test/io_uring_refusal.hpp"
#include "weir/os/test/temporary_tree.hpp"

namespace weir::os_platform_test {
namespace {

std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}
std::size_t threads() {
  return entries_of("/proc/self/task");
}
/// Returns the number of threads while the test has only its own. The thread sanitizer makes its
/// thread with the first thread of a test, so that is made here.
std::size_t threads_at_rest() {
  const std::size_t before = threads();
  std::thread([] {}).join();
  // The joined thread may stay visible for a moment; the sanitizer's thread stays for good.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (threads() > before && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return threads();
}
/// Waits until at most `count` threads are left: a joined thread may stay visible for a moment.
bool comes_down_to(std::size_t count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (threads() > count) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}
std::size_t descriptors() {
  return entries_of("/proc/self/fd");
}

/// Waits until a socket reports `events`; arrivals over loopback may take some time.
bool becomes(int socket, short events) {
  pollfd wanted{socket, events, 0};
  return ::poll(&wanted, 1, 10'000) == 1;
}

bool blocks(int signal) {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return ::sigismember(&mask, signal) == 1;
}

/// Runs a function once on a loop.
struct Call : loop::Runnable {
  explicit Call(std::function<void()> what)
      : loop::Runnable([](loop::Runnable& self) { static_cast<Call&>(self).call(); }),
        call(std::move(what)) {}
  std::function<void()> call;
};

struct Control : loop::RunControl {
  explicit Control(std::function<void(loop::Signal)> what) : handler(std::move(what)) {}
  void on_signal(loop::Signal signal) override { handler(signal); }
  std::function<void(loop::Signal)> handler;
};

std::vector<std::unique_ptr<Loop>> make_loops(loop::Platform& platform, unsigned count) {
  std::vector<std::unique_ptr<Loop>> loops;
  for (unsigned core = 0; core < count; ++core) {
    auto loop = Loop::make(platform, {.backend = BackendChoice::epoll, .core = core});
    EXPECT_TRUE(loop.has_value());
    loops.push_back(std::move(*loop));
  }
  return loops;
}

std::vector<loop::LoopPlacement> placements_of(const std::vector<std::unique_ptr<Loop>>& loops) {
  std::vector<loop::LoopPlacement> placements;
  for (const auto& loop : loops) placements.push_back({loop.get(), -1});
  return placements;
}

TEST(OsPlatformTest, ClocksGoForwardAndRandomNumbersDiffer) {
  OsPlatform platform;
  const Instant first = platform.now();
  EXPECT_GE(platform.now(), first);
  const auto age = std::chrono::system_clock::now() - platform.wall_time();
  EXPECT_LT(std::chrono::abs(age), std::chrono::hours(1));
  EXPECT_NE(platform.random(), platform.random());
}

TEST(OsPlatformTest, ListenersOfOnePortShareIt) {
  OsPlatform platform;
  auto first = platform.listen(os::Address::loopback(0), {});
  ASSERT_TRUE(first.has_value());
  const auto address = platform.local_address(first->value());
  ASSERT_TRUE(address.has_value());
  EXPECT_NE(address->port(), 0);
  auto second = platform.listen(*address, {});
  EXPECT_TRUE(second.has_value());
  auto alone = platform.listen(*address, {.reuse_port = false});
  ASSERT_FALSE(alone.has_value());
  EXPECT_EQ(alone.error(), system_error(EADDRINUSE));
}

TEST(OsPlatformTest, ADescriptorIsClosedWithItsOwner) {
  OsPlatform platform;
  auto listener = platform.listen(os::Address::loopback(0), {});
  const int value = listener->value();
  EXPECT_EQ(::fcntl(value, F_GETFD), FD_CLOEXEC);
  listener->reset();
  EXPECT_EQ(::fcntl(value, F_GETFD), -1);
}

TEST(OsPlatformTest, OpensTheStandardDescriptorsThatAreClosed) {
  const auto reopen = [] {
    for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(each);
    const OsPlatform platform;
    for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      if (::fcntl(each, F_GETFD) < 0) std::_Exit(1);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(reopen(), testing::ExitedWithCode(0), "");
}

TEST(OsPlatformTest, ConfiguresTcpAndLeavesUnixSocketsAlone) {
  OsPlatform platform;
  auto tcp = platform.open_stream(os::Address::loopback(1));
  ASSERT_TRUE(tcp.has_value());
  ASSERT_TRUE(platform.configure(tcp->value(), {.no_delay = true}).has_value());
  int on = 0;
  socklen_t size = sizeof on;
  ASSERT_EQ(::getsockopt(tcp->value(), IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
  EXPECT_EQ(on, 1);
  auto pair = os::open_socket_pair();
  EXPECT_TRUE(platform.configure(pair->first.get(), {}).has_value());
  EXPECT_FALSE(platform.configure(-1, {}).has_value());
  EXPECT_FALSE(platform.peer_address(tcp->value()).has_value());
}

TEST(OsPlatformTest, ADrainingListenerStillAcceptsEarlierConnections) {
  OsPlatform platform;
  auto listener = platform.listen(os::Address::loopback(0), {});
  const auto address = *platform.local_address(listener->value());
  auto early = os::open_stream(os::AddressFamily::ipv4);
  ASSERT_TRUE(os::start_connect(early->get(), address).has_value());
  ASSERT_TRUE(becomes(listener->value(), POLLIN));
  ASSERT_TRUE(platform.refuse_new_connections(listener->value()).has_value());
  auto late = os::open_stream(os::AddressFamily::ipv4);
  const auto state = os::start_connect(late->get(), address);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(*state, os::ConnectState::in_progress);
  EXPECT_TRUE(os::accept_one(listener->value()).has_value());
  EXPECT_FALSE(os::accept_one(listener->value()).has_value());
}

TEST(OsPlatformTest, TheDescriptorLimitIsRaisedOnceAndExplained) {
  OsPlatform platform;
  const auto first = platform.descriptor_limit();
  EXPECT_GE(first.descriptors_max, 256u);
  EXPECT_FALSE(first.explanation.empty());
  const auto second = platform.descriptor_limit();
  EXPECT_EQ(second.descriptors_max, first.descriptors_max);
  EXPECT_EQ(second.explanation, first.explanation);
}

TEST(OsPlatformTest, MakesTheRequestedOrTheBestBackendWithAReason) {
  OsPlatform platform;
  loop::RunQueue ready;
  const auto epoll = platform.make_backend(BackendChoice::epoll, ready);
  ASSERT_TRUE(epoll.has_value());
  EXPECT_EQ(epoll->backend->name(), "epoll");
  const auto poll = platform.make_backend(BackendChoice::poll, ready);
  ASSERT_TRUE(poll.has_value());
  EXPECT_EQ(poll->backend->name(), "poll");
  const auto uring = platform.make_backend(BackendChoice::uring, ready);
  const auto best = platform.make_backend(BackendChoice::automatic, ready);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->backend->name(), uring ? "uring" : "epoll");
  EXPECT_NE(best->reason.find("io_uring"), std::string::npos) << best->reason;
  if (!uring) {
    EXPECT_NE(best->reason.find(uring.error().message()), std::string::npos) << best->reason;
  }
}

TEST(OsPlatformTest, MakesBothKindsOfUringBackendWhereTheKernelOffersIt) {
  if (const auto reason = os::io_uring_refusal(); !reason.empty()) GTEST_SKIP() << reason;
  OsPlatform platform;
  loop::RunQueue ready;
  EXPECT_TRUE(platform.make_backend(BackendChoice::uring, ready));
  EXPECT_TRUE(platform.make_backend(BackendChoice::uring_6_1, ready));
}

TEST(OsPlatformTest, ALogLineIsOneLine) {
  OsPlatform platform;
  auto pipe = os::open_pipe();
  const int before = ::dup(STDERR_FILENO);
  ::dup2(pipe->write_end.get(), STDERR_FILENO);
  platform.log("first");
  platform.log("");
  platform.log("third");
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  std::array<char, 64> bytes{};
  const auto count = ::read(pipe->read_end.get(), bytes.data(), bytes.size());
  EXPECT_EQ(std::string(bytes.data(), static_cast<std::size_t>(count)), "first\n\nthird\n");
}

/// Makes standard error a full pipe.
os::Pipe fill_standard_error() {
  os::Pipe pipe = os::open_pipe().value();
  const std::array<char, 4096> bytes{};
  while (::write(pipe.write_end.get(), bytes.data(), bytes.size()) > 0) {
  }
  ::dup2(pipe.write_end.get(), STDERR_FILENO);
  return pipe;
}

/// Logs lines to a full pipe inside a turn. Ends this process with 0 if one of them takes the time
/// of a loop's thread, and none takes less. On a slow machine, some may take longer.
[[noreturn]] void log_in_a_turn() {
  const os::Pipe pipe = fill_standard_error();
  OsPlatform platform;
  const auto loops = make_loops(platform, 1);
  Duration shortest = 1h;
  Call call([&] {
    for (int attempt = 0; attempt < 3 && shortest >= 1900ms; ++attempt) {
      const Instant begun = platform.now();
      platform.log("lost");
      shortest = std::min<Duration>(shortest, platform.now() - begun);
    }
  });
  loops[0]->ready(call);
  loops[0]->turn(Instant::min());
  std::_Exit(shortest >= 100ms && shortest < 1900ms ? 0 : 1);
}

/// Logs a line to a full pipe that is read later than the time limit of a loop's thread. Ends this
/// process with 0 if the line is not lost.
[[noreturn]] void log_outside_of_turns() {
  os::Pipe pipe = fill_standard_error();
  std::thread late_reader([&] {
    ::poll(nullptr, 0, 300);
    std::vector<char> all(65'536);
    if (::read(pipe.read_end.get(), all.data(), all.size()) <= 0) std::_Exit(2);
  });
  OsPlatform platform;
  platform.log("kept");
  late_reader.join();
  std::array<char, 64> bytes{};
  const auto count = ::read(pipe.read_end.get(), bytes.data(), bytes.size());
  std::_Exit(count == 5 && std::string_view(bytes.data(), 5) == "kept\n" ? 0 : 1);
}

TEST(OsPlatformDeathTest, ALineWaitsLongerForAFullLogOutsideOfLoops) {
  EXPECT_EXIT(log_in_a_turn(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(log_outside_of_turns(), testing::ExitedWithCode(0), "");
}

TEST(OsPlatformTest, RunsEachLoopOnAThreadOfItsOwnAndLeavesNothingBehind) {
  OsPlatform platform;
  const std::size_t threads_before = threads_at_rest();
  const std::size_t descriptors_before = descriptors();
  for (int round = 0; round < 3; ++round) {
    auto loops = make_loops(platform, 3);
    std::array<std::thread::id, 3> ids;
    std::array<std::string, 3> names;
    std::vector<std::unique_ptr<Call>> calls;
    for (unsigned core = 0; core < 3; ++core) {
      calls.push_back(std::make_unique<Call>([&, core] {
        ids[core] = std::this_thread::get_id();
        std::array<char, 16> name{};
        ::pthread_getname_np(::pthread_self(), name.data(), name.size());
        names[core] = name.data();
        loops[core]->stop();
      }));
      loops[core]->post(*calls.back());
    }
    ASSERT_TRUE(platform.run(placements_of(loops), nullptr).has_value());
    EXPECT_NE(ids[0], ids[1]);
    EXPECT_NE(ids[1], ids[2]);
    EXPECT_NE(ids[0], std::this_thread::get_id());
    EXPECT_EQ(names[0], "weir-0");
    EXPECT_EQ(names[2], "weir-2");
  }
  EXPECT_TRUE(comes_down_to(threads_before));
  EXPECT_EQ(descriptors(), descriptors_before);
}

TEST(OsPlatformTest, PinsThreadsAndRunsThemUnpinnedIfRefused) {
  OsPlatform platform;
  const std::vector<int> allowed = os::allowed_cpus();
  ASSERT_FALSE(allowed.empty());
  auto loops = make_loops(platform, 2);
  std::array<std::vector<int>, 2> seen;
  std::vector<std::unique_ptr<Call>> calls;
  for (unsigned core = 0; core < 2; ++core) {
    calls.push_back(std::make_unique<Call>([&, core] {
      seen[core] = os::allowed_cpus();
      loops[core]->stop();
    }));
    loops[core]->post(*calls.back());
  }
  const int no_such_cpu = 1 << 19;
  const std::array<loop::LoopPlacement, 2> placements{
      {{loops[0].get(), allowed.back()}, {loops[1].get(), no_such_cpu}}};
  ASSERT_TRUE(platform.run(placements, nullptr).has_value());
  EXPECT_EQ(seen[0], std::vector<int>{allowed.back()});
  EXPECT_EQ(seen[1], allowed);
  EXPECT_EQ(os::allowed_cpus(), allowed);
}

TEST(OsPlatformTest, SignalsGoToTheControlAndTheMaskIsRestored) {
  ASSERT_FALSE(blocks(SIGINT));
  OsPlatform platform;
  for (int round = 0; round < 2; ++round) {
    auto loops = make_loops(platform, 2);
    std::atomic<int> loops_that_block = 0;
    std::vector<std::unique_ptr<Call>> calls;
    for (unsigned core = 0; core < 2; ++core) {
      calls.push_back(std::make_unique<Call>([&] {
        const bool both = blocks(SIGINT) && blocks(SIGTERM);
        if (both && ++loops_that_block == 2) ::kill(::getpid(), SIGINT);  // the last one, once
      }));
      loops[core]->post(*calls.back());
    }
    std::vector<loop::Signal> signals;
    const auto caller = std::this_thread::get_id();
    Control control([&](loop::Signal signal) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      signals.push_back(signal);
      if (signal == loop::Signal::interrupt) {
        ::kill(::getpid(), SIGTERM);
      } else {
        for (auto& loop : loops) loop->stop();
      }
    });
    ASSERT_TRUE(platform.run(placements_of(loops), &control).has_value());
    EXPECT_EQ(signals, (std::vector{loop::Signal::interrupt, loop::Signal::terminate}));
    EXPECT_FALSE(blocks(SIGINT));
    EXPECT_FALSE(blocks(SIGTERM));
    EXPECT_FALSE(blocks(SIGPIPE));
  }
}

TEST(OsPlatformTest, LeavesSignalsAloneWithoutAControl) {
  OsPlatform platform;
  auto loops = make_loops(platform, 1);
  bool blocked = true;
  Call call([&] {
    blocked = blocks(SIGINT) || blocks(SIGTERM);
    loops[0]->stop();
  });
  loops[0]->post(call);
  ASSERT_TRUE(platform.run(placements_of(loops), nullptr).has_value());
  EXPECT_FALSE(blocked);
}

TEST(OsPlatformTest, TwoRunsAtTheSameTimeDoNotInterfere) {
  OsPlatform first_platform;
  OsPlatform second_platform;
  const std::size_t threads_before = threads_at_rest();
  auto first = make_loops(first_platform, 2);
  auto second = make_loops(second_platform, 2);
  std::atomic<int> stopped = 0;
  // The first run ends only because the second one runs. The second one continues without the
  // first.
  Call in_second([&] {
    for (auto& loop : first) loop->stop();
  });
  std::thread other([&] {
    EXPECT_TRUE(second_platform.run(placements_of(second), nullptr).has_value());
    ++stopped;
  });
  second[0]->post(in_second);
  ASSERT_TRUE(first_platform.run(placements_of(first), nullptr).has_value());
  EXPECT_EQ(stopped, 0);
  for (auto& loop : second) loop->stop();
  other.join();
  EXPECT_EQ(stopped, 1);
  EXPECT_TRUE(comes_down_to(threads_before));
}

/// Leaves address space for one more thread's stack, but not for two.
class StackShortage {
 public:
  StackShortage() {
    ::pthread_getattr_default_np(&attributes_before_);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, stack);
    ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
    ::getrlimit(RLIMIT_AS, &limit_before_);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = limit_before_;
    limit.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + stack * 3 / 2;
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~StackShortage() {
    ::setrlimit(RLIMIT_AS, &limit_before_);
    ::pthread_setattr_default_np(&attributes_before_);
    ::pthread_attr_destroy(&attributes_before_);
  }

 private:
  static constexpr std::size_t stack = std::size_t{256} << 20;
  pthread_attr_t attributes_before_;
  rlimit limit_before_{};
};

TEST(OsPlatformTest, RunsNoLoopIfAThreadCannotStart) {
  OsPlatform platform;
  const std::size_t threads_before = threads_at_rest();
  auto loops = make_loops(platform, 3);
  Control control([](loop::Signal) {});
  Result<> ran;
  {
    const StackShortage shortage;
    ran = platform.run(placements_of(loops), &control);
  }
  ASSERT_FALSE(ran.has_value());
  EXPECT_EQ(ran.error(), system_error(EAGAIN));
  for (const auto& loop : loops) EXPECT_EQ(loop->counters().turns.value(), 0U);
  EXPECT_TRUE(comes_down_to(threads_before));
  EXPECT_FALSE(blocks(SIGINT));
}

TEST(OsPlatformTest, RunsNoLoopWithoutDescriptorsForItsEvents) {
  OsPlatform platform;
  auto loops = make_loops(platform, 1);
  loops[0]->stop();
  Control control([](loop::Signal) {});
  const std::size_t before = descriptors();
  // run() opens two events, and with a control also a descriptor for signals and one more event.
  for (const std::size_t room : {0U, 1U, 2U, 3U}) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    rlimit tight = limit;
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    tight.rlim_cur = static_cast<rlim_t>(lowest_free) + room;
    ::setrlimit(RLIMIT_NOFILE, &tight);
    const auto ran = platform.run(placements_of(loops), &control);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ASSERT_FALSE(ran) << room;
    EXPECT_EQ(ran.error(), system_error(EMFILE));
    EXPECT_EQ(descriptors(), before);
    EXPECT_FALSE(blocks(SIGINT));
  }
  EXPECT_EQ(loops[0]->counters().turns.value(), 0U);
}

TEST(OsPlatformTest, ErrorsOfTheKernelAreReturned) {
  OsPlatform platform;
  EXPECT_EQ(platform.open_stream(os::Address()).error(), system_error(EAFNOSUPPORT));
  EXPECT_EQ(platform.open_datagrams({}).error(), system_error(EAFNOSUPPORT));
  EXPECT_EQ(platform.share(-1).error(), system_error(EBADF));
  EXPECT_EQ(platform.local_address(-1).error(), system_error(EBADF));
  EXPECT_FALSE(platform.unacked_bytes(-1));
  EXPECT_FALSE(platform.refuse_new_connections(-1));
}

TEST(OsPlatformTest, DelayOfSmallWritesCanBeAllowed) {
  OsPlatform platform;
  auto tcp = platform.open_stream(os::Address::loopback(1));
  for (const bool no_delay : {true, false}) {
    ASSERT_TRUE(platform.configure(tcp->value(), {.no_delay = no_delay}));
    int on = -1;
    socklen_t size = sizeof on;
    ASSERT_EQ(::getsockopt(tcp->value(), IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
    EXPECT_EQ(on != 0, no_delay);
  }
}

TEST(OsPlatformTest, ConnectionsAcceptedInADrainReceiveAfterConfigure) {
  OsPlatform platform;
  auto listener = platform.listen(os::Address::loopback(0), {});
  auto client = os::open_stream(os::AddressFamily::ipv4);
  ASSERT_TRUE(os::start_connect(client->get(), *platform.local_address(listener->value())));
  ASSERT_TRUE(becomes(listener->value(), POLLIN));
  ASSERT_TRUE(platform.refuse_new_connections(listener->value()));
  const auto accepted = os::accept_one(listener->value());
  ASSERT_TRUE(accepted);
  ASSERT_TRUE(platform.configure(accepted->get(), {}));
  ASSERT_EQ(::send(client->get(), "late", 4, MSG_NOSIGNAL), 4);
  ASSERT_TRUE(becomes(accepted->get(), POLLIN));
  std::array<char, 8> bytes{};
  EXPECT_EQ(::recv(accepted->get(), bytes.data(), bytes.size(), 0), 4);
}

TEST(OsPlatformTest, AHandoverNeedsAPath) {
  OsPlatform platform;
  const loop::HandoverStart begun = platform.begin_handover({.path = ""});
  EXPECT_EQ(begun.handover, nullptr);
  EXPECT_EQ(begun.failure, "cannot take sockets over at '': the path must have 1 to 107 bytes");
}

TEST(OsPlatformTest, InheritsOnlyListeningSockets) {
  OsPlatform platform;
  const os::Fd listening = os::open_listener(os::Address::loopback(0)).value();
  const int inherited = ::dup(listening.get());
  ASSERT_EQ(::fcntl(inherited, F_SETFL, 0), 0);  // blocking, and open after exec
  {
    const auto socket = platform.inherit_listener(inherited);
    ASSERT_TRUE(socket);
    EXPECT_EQ(socket->value(), inherited);
    EXPECT_EQ(::fcntl(inherited, F_GETFD), FD_CLOEXEC);
    EXPECT_NE(::fcntl(inherited, F_GETFL) & O_NONBLOCK, 0);
  }
  EXPECT_EQ(::fcntl(inherited, F_GETFD), -1);
  const auto refuses = [&](os::Fd wrong) {
    const int number = wrong.get();
    const auto error = platform.inherit_listener(wrong.release()).error();
    EXPECT_EQ(::fcntl(number, F_GETFD), -1) << "it is closed";
    return error;
  };
  EXPECT_EQ(refuses(os::open_stream(os::AddressFamily::ipv4).value()), system_error(EINVAL));
  EXPECT_EQ(refuses(os::open_event().value()), system_error(ENOTSOCK));
  auto datagrams = os::open_datagram_socket({.local = os::Address::loopback(0)});
  EXPECT_EQ(refuses(std::move(*datagrams)), system_error(EPROTOTYPE));
  EXPECT_EQ(platform.inherit_listener(-1).error(), system_error(EBADF));
}

TEST(OsPlatformTest, RemovesThePathsOfItsOwnSocketsOnly) {
  const os::TemporaryTree tree;
  const auto address_of = [&](const char* name) {
    return os::Address::local(tree.path(name)).value();
  };
  const auto exists = [&](const char* name) { return std::filesystem::exists(tree.path(name)); };
  OsPlatform platform;
  OsPlatform other;
  auto first = platform.listen(address_of("first"), {}).value();
  const auto second = platform.listen(address_of("second"), {}).value();
  const os::Fd foreign = os::open_listener(address_of("foreign")).value();
  platform.remove_local_path(address_of("foreign"));
  platform.remove_local_path(os::Address::loopback(80));
  EXPECT_TRUE(exists("foreign"));
  platform.remove_local_path(address_of("first"));
  EXPECT_FALSE(exists("first"));
  EXPECT_TRUE(exists("second"));
  first = platform.listen(address_of("first"), {}).value();
  platform.remove_local_path(address_of("first"));
  EXPECT_FALSE(exists("first")) << "the file of the newer socket";
  const auto successor = other.listen(address_of("first"), {}).value();
  platform.remove_local_path(address_of("first"));
  EXPECT_TRUE(exists("first")) << "removed once";
  platform.remove_local_path(address_of("second"));
  EXPECT_FALSE(exists("second"));
  const auto inherited = other.inherit_listener(::dup(foreign.get()));
  ASSERT_TRUE(inherited);
  other.remove_local_path(address_of("foreign"));
  EXPECT_FALSE(exists("foreign")) << "an inherited socket is its own";
}

TEST(OsPlatformTest, ReachesTheFilesOfTheSystem) {
  const os::TemporaryTree tree;
  OsPlatform platform;
  loop::FileSystem& files = platform.files();
  EXPECT_EQ(files.open(tree.path("absent"), {}).error(), system_error(ENOENT));
  ASSERT_TRUE(files.make_directory(tree.path("folder"), 0700));
  const std::string from = tree.path("folder/from");
  const std::string to = tree.path("folder/to");
  tree.write("folder/from", "");
  {
    const int written = ::open(from.c_str(), O_RDWR | O_CLOEXEC);
    const loop::Descriptor file(platform, written);
    EXPECT_EQ(files.write_at(file.value(), to_bytes("hello"), 2).value(), 5U);
    std::array<std::byte, 8> room{};
    EXPECT_EQ(files.read_at(file.value(), room, 3).value(), 4U);
    EXPECT_EQ(room[0], std::byte{'e'});
    EXPECT_TRUE(files.resize(file.value(), 4));
    EXPECT_TRUE(files.sync(file.value()));
    EXPECT_EQ(files.file_status(file.value())->size, 4U);
  }
  ASSERT_TRUE(files.rename(from, to));
  EXPECT_EQ(files.path_status(to)->size, 4U);
  EXPECT_EQ(files.path_status(from).error(), system_error(ENOENT));
  const auto entries = files.list(tree.path("folder"), 10);
  ASSERT_TRUE(entries);
  EXPECT_EQ(*entries, (std::vector<os::DirectoryEntry>{{"to", os::FileKind::file}}));
  EXPECT_TRUE(files.sync_directory(tree.path("folder")));
  {
    const auto readable = files.open(to, {});
    ASSERT_TRUE(readable);
    EXPECT_EQ(::fcntl(readable->value(), F_GETFD), FD_CLOEXEC);
  }
  EXPECT_TRUE(files.remove(to));
  EXPECT_FALSE(std::filesystem::exists(to));
}

TEST(OsPlatformTest, ItsTopologyIsThatOfTheThreadThatMadeIt) {
  const std::vector<int> allowed = os::allowed_cpus();
  OsPlatform platform;
  const os::Topology before = platform.topology();
  EXPECT_EQ(before.cpus_allowed, allowed.size());
  ASSERT_TRUE(os::pin_current_thread(allowed.back()));
  EXPECT_EQ(platform.topology().cpus_allowed, allowed.size());
  ASSERT_TRUE(os::set_allowed_cpus(allowed));
}

TEST(OsPlatformTest, ThreadsOfAPoolAreLimited) {
  OsPlatform platform;
  EXPECT_GE(platform.threads_max(), 1U);
  EXPECT_LE(platform.threads_max(), 1024U);
  // The limit of a container changes with the threads of other processes.
  const bool is_large = os::read_thread_limit().threads_max > 8192;
  EXPECT_TRUE(!is_large || platform.threads_max() == 1024);
}

TEST(OsPlatformTest, NamesTheReasonOfARequestedBackend) {
  OsPlatform platform;
  loop::RunQueue ready;
  for (const BackendChoice choice : {BackendChoice::epoll, BackendChoice::poll}) {
    EXPECT_EQ(platform.make_backend(choice, ready)->reason, "set by the program");
  }
  const auto best = platform.make_backend(BackendChoice::automatic, ready);
  if (best->backend->name() == "uring") {
    EXPECT_EQ(best->reason, "io_uring is available");
  }
}

/// Makes system calls fail until this thread ends, by default with EPERM, as the profiles of
/// container runtimes do.
void refuse_system_calls(std::initializer_list<int> numbers, unsigned error = EPERM) {
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  for (const int number : numbers) {
    std::array<sock_filter, 4> program = {
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{program.size(), program.data()};
    ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
  }
}

TEST(OsPlatformTest, FallsBackToTheNextBestBackendAndSaysWhy) {
  const std::string filter = "io_uring: a seccomp filter refuses it, such as a container's profile";
  std::thread([&] {
    OsPlatform platform;
    loop::RunQueue ready;
    ASSERT_NO_FATAL_FAILURE(refuse_system_calls({SYS_io_uring_setup}));
    const auto second = platform.make_backend(BackendChoice::automatic, ready);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->backend->name(), "epoll");
    EXPECT_EQ(second->reason, filter);
    EXPECT_EQ(platform.make_backend(BackendChoice::uring, ready).error(), system_error(EPERM));
    EXPECT_EQ(platform.make_backend(BackendChoice::uring_6_1, ready).error(), system_error(EPERM));
    ASSERT_NO_FATAL_FAILURE(refuse_system_calls({SYS_epoll_create1}));
    const auto third = platform.make_backend(BackendChoice::automatic, ready);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->backend->name(), "poll");
    EXPECT_EQ(third->reason, filter + "; epoll: Operation not permitted");
    EXPECT_EQ(platform.make_backend(BackendChoice::epoll, ready).error(), system_error(EPERM));
  }).join();
}

TEST(OsPlatformTest, NamesTheLimitOfLockedMemoryIfARingFindsNoMemory) {
  std::thread([] {
    OsPlatform platform;
    loop::RunQueue ready;
    ASSERT_NO_FATAL_FAILURE(refuse_system_calls({SYS_io_uring_setup}, ENOMEM));
    const auto made = platform.make_backend(BackendChoice::automatic, ready);
    ASSERT_TRUE(made);
    rlimit locked{};
    ::getrlimit(RLIMIT_MEMLOCK, &locked);
    const bool is_limited = locked.rlim_max != RLIM_INFINITY;
    const std::string reason = is_limited ? "not enough locked memory: RLIMIT_MEMLOCK is " +
                                                std::to_string(locked.rlim_max) + " bytes"
                                          : std::system_category().message(ENOMEM);
    EXPECT_EQ(made->reason, "io_uring: " + reason);
  }).join();
}

TEST(OsPlatformTest, ABackendNeedsDescriptors) {
  OsPlatform platform;
  loop::RunQueue ready;
  const std::size_t before = descriptors();
  for (const BackendChoice choice : {BackendChoice::epoll, BackendChoice::poll}) {
    for (const int room : {0, 1}) {
      rlimit limit{};
      ::getrlimit(RLIMIT_NOFILE, &limit);
      rlimit tight = limit;
      const int lowest_free = ::dup(0);
      ::close(lowest_free);
      tight.rlim_cur = static_cast<rlim_t>(lowest_free + room);
      ::setrlimit(RLIMIT_NOFILE, &tight);
      const auto made = platform.make_backend(choice, ready);
      ::setrlimit(RLIMIT_NOFILE, &limit);
      ASSERT_FALSE(made);
      EXPECT_EQ(made.error(), system_error(EMFILE));
    }
  }
  EXPECT_EQ(descriptors(), before);
}

TEST(OsPlatformTest, ThreadsMayListenOnPathsAtTheSameTime) {
  const os::TemporaryTree tree;
  OsPlatform platform;
  const auto listen_often = [&](const std::string& name) {
    const os::Address path = os::Address::local(tree.path(name)).value();
    for (int i = 0; i < 500; ++i) {
      const auto listener = platform.listen(path, {});
      ASSERT_TRUE(listener);
      platform.remove_local_path(path);
      ASSERT_FALSE(std::filesystem::exists(path.path()));
    }
  };
  std::thread other(listen_often, "other");
  listen_often("one");
  other.join();
}

}  // namespace
}  // namespace weir::os_platform_test

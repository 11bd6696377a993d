// W-publish: the CPU time of a message of 100 bytes to 10,000 WebSockets on two cores, and of plain
// writes of the same frame to as many connections on two threads. Another process receives. Prints
// one line of JSON per round: microseconds of each message.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/inside/child_process.hpp"
#include "weir/http.hpp"
#include "weir/runtime.hpp"
#include "weir/task.hpp"

using namespace weir;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t subscribers = 10'000;
constexpr unsigned warm_up = 10;  // messages
constexpr unsigned messages = 40;
const std::string text(100, 'x');

struct Results {
  double microseconds;  // of CPU time of each message
};

double cpu_microseconds() {
  rusage usage{};
  require(::getrusage(RUSAGE_SELF, &usage) == 0);
  const auto in_microseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return in_microseconds(usage.ru_utime) + in_microseconds(usage.ru_stime);
}

void allow_files() {
  rlimit limit{};
  require(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  require(::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > subscribers + 100);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

/// Returns a socket that listens on a free port, and the port.
std::pair<int, std::uint16_t> listen_anywhere() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  require(::bind(listener, generic, size) == 0 && ::listen(listener, 4096) == 0);
  require(::getsockname(listener, generic, &size) == 0);
  return {listener, ntohs(address.sin_port)};
}

/// Opens the connections, and drops what arrives.
[[noreturn]] void receive(std::uint16_t port, std::string_view request) {
  const int epoll = ::epoll_create1(0);
  const sockaddr_in address = loopback(port);
  for (std::size_t count = 0; count < subscribers;) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(socket);
      std::this_thread::sleep_for(10ms);  // the server does not listen yet
      continue;
    }
    require(::send(socket, request.data(), request.size(), 0) ==
            static_cast<ssize_t>(request.size()));
    epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
    require(::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) == 0);
    ++count;
  }
  std::array<epoll_event, 512> events;
  std::array<char, 65'536> bytes;
  for (;;) {
    const int ready = ::epoll_wait(epoll, events.data(), events.size(), -1);
    for (int index = 0; index < ready; ++index) {
      const int socket = events[static_cast<std::size_t>(index)].data.fd;
      if (::recv(socket, bytes.data(), bytes.size(), 0) == 0) ::close(socket);
    }
  }
}

/// Starts the process that receives. It must be started before any thread.
pid_t start_receiver(std::uint16_t port, std::string_view request) {
  const pid_t child = ::fork();
  require(child >= 0);
  if (child == 0) receive(port, request);
  return child;
}

void end_receiver(pid_t receiver) {
  ::kill(receiver, SIGKILL);
  ::waitpid(receiver, nullptr, 0);
}

// The topic.

using Topic = http::Topic<http::SlowSubscriber::drop_oldest>;

Task<> publish_one(Topic& topic) {
  const std::uint64_t wanted = topic.statistics().delivered + subscribers;
  require(topic.publish(text).has_value());
  while (topic.statistics().delivered < wanted) require((co_await sleep(1ms)).has_value());
}

Task<> publish_all(Topic& topic, double& used) {
  while (topic.subscribers() < subscribers) require((co_await sleep(10ms)).has_value());
  for (unsigned number = 0; number < warm_up; ++number) co_await publish_one(topic);
  const double before = cpu_microseconds();
  for (unsigned number = 0; number < messages; ++number) co_await publish_one(topic);
  used = cpu_microseconds() - before;
}

Results measure_topic() {
  allow_files();
  const auto [listener, port] = listen_anywhere();
  ::close(listener);  // the server listens on this port
  const pid_t receiver = start_receiver(
      port,
      "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  Topic topic;
  http::Router router;
  router.websocket("/ws", [&topic](http::WebSocket& socket) -> Task<Result<>> {
    const http::TopicSubscription subscription = topic.subscribe(socket);
    for (;;) WEIR_CO_TRY(co_await socket.read());
  });
  double used = 0;
  const auto serve = [&](Scope& scope) -> Task<Result<>> {
    const auto both = [&](Scope& inner) -> Task<Result<>> {
      const auto publish = [&]() -> Task<> {
        co_await publish_all(topic, used);
        end_receiver(receiver);
        ::kill(::getpid(), SIGTERM);  // the server ends
      };
      if (inner.loop().core() == 0) inner.spawn(publish());
      http::ServeOptions options{.endpoint = Endpoint::loopback(port)};
      options.limits.connections_max = 2 * subscribers;
      co_return co_await http::serve(inner, router, options);
    };
    std::ignore = scope;
    co_return co_await with_scope(OnFailure::isolate, both);
  };
  require(Runtime({.cores = 2, .announce = false}).run_on_each_core(serve) == 0);
  return {used / messages};
}

// The plain writes.

Results measure_writes() {
  allow_files();
  const auto [listener, port] = listen_anywhere();
  const pid_t receiver = start_receiver(port, {});
  std::vector<int> sockets;
  while (sockets.size() < subscribers) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    require(socket >= 0);
    sockets.push_back(socket);
  }
  const std::string frame = "\x81" + std::string(1, static_cast<char>(text.size())) + text;
  double before = 0;
  unsigned turns = 0;
  std::barrier turn(2, [&]() noexcept {
    if (turns++ == warm_up) before = cpu_microseconds();
  });
  const auto write = [&](std::size_t first) {
    for (unsigned number = 0; number < warm_up + messages; ++number) {
      turn.arrive_and_wait();
      for (std::size_t at = first; at < sockets.size(); at += 2) {
        require(::send(sockets[at], frame.data(), frame.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(frame.size()));
      }
    }
  };
  std::thread other(write, 1);
  write(0);
  other.join();
  const double used = cpu_microseconds() - before;
  end_receiver(receiver);
  return {used / messages};
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  for (int round = 0; round < rounds; ++round) {
    const Results topic = run_in_child_process(measure_topic);
    const Results writes = run_in_child_process(measure_writes);
    std::printf(R"({"topic": {"microseconds": %.1f}, "writes": {"microseconds": %.1f}})"
                "\n",
                topic.microseconds, writes.microseconds);
    std::fflush(stdout);
  }
}

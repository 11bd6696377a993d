// A load generator of WebSocket echoes: keeps a number of messages on their way over each of its
// connections, and prints the number of echoes in a second. It has one thread.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "bench/limit/arguments/arguments.hpp"
#include "bench/limit/canned.hpp"
#include "weir/os/address.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/machine/affinity.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::uint16_t port = 0;
  int cpu = -1;
  int connections = 64;
  std::size_t depth = 1;
  std::size_t payload = 5;
  double seconds = 2;
  double warm_up = 0.3;
  std::string path = "/ws";
};

Options parse(int argc, char** argv) {
  Options options;
  limit::read_arguments(
      argc, argv, "A load generator of WebSocket echoes",
      {{.name = "--port", .value = &options.port, .help = "port on 127.0.0.1", .required = true},
       {.name = "--cpu", .value = &options.cpu, .help = "CPU to run on"},
       {.name = "--connections", .value = &options.connections, .help = "number of connections"},
       {.name = "--depth",
        .value = &options.depth,
        .help = "messages on their way on each connection"},
       {.name = "--payload", .value = &options.payload, .help = "bytes of a message, below 126"},
       {.name = "--seconds", .value = &options.seconds, .help = "seconds that count"},
       {.name = "--warm-up", .value = &options.warm_up, .help = "seconds before them"},
       {.name = "--path", .value = &options.path, .help = "path of the WebSocket"}});
  return options;
}

/// Connects, and performs the handshake.
int open_socket(const Options& options) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = weir::os::Address::loopback(options.port);
  if (socket < 0 ||
      ::connect(socket, static_cast<const sockaddr*>(address.data()), address.size()) != 0) {
    limit::exit_with_error("connecting");
  }
  static_cast<void>(weir::os::set_no_delay(socket, true));
  const std::string request = "GET " + options.path +
                              " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                              "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    limit::exit_with_error("sending the handshake");
  }
  std::string answer;
  while (answer.find("\r\n\r\n") == std::string::npos) {
    std::array<char, 4096> bytes;
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got <= 0) limit::exit_with_error("receiving the handshake");
    answer.append(bytes.data(), static_cast<std::size_t>(got));
  }
  if (!answer.starts_with("HTTP/1.1 101 ")) {
    std::fprintf(stderr, "load: no WebSocket: %.60s\n", answer.c_str());
    std::exit(1);
  }
  return socket;
}

class Generator {
 public:
  explicit Generator(const Options& options) : options_(options) {
    std::string frame = "\x82";
    frame += static_cast<char>(0x80 | options.payload);
    frame += "mask" + std::string(options.payload, 'y');
    for (std::size_t count = 0; count < options.depth; ++count) frames_ += frame;
    left_over_.resize(65536);
    for (int count = 0; count < options.connections; ++count) {
      const int socket = open_socket(options);
      epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
      if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) limit::exit_with_error("epoll");
      sockets_.push_back(socket);
    }
  }

  /// Returns the echoes in a second.
  double run() {
    for (const int socket : sockets_) send(socket, options_.depth);
    run_for(options_.warm_up);
    std::printf("begin\n");
    std::fflush(stdout);
    const Clock::time_point start = Clock::now();
    const std::uint64_t before = echoes_;
    run_for(options_.seconds);
    const std::chrono::duration<double> passed = Clock::now() - start;
    return static_cast<double>(echoes_ - before) / passed.count();
  }

 private:
  void send(int socket, std::size_t count) {
    const std::size_t size = count * frames_.size() / options_.depth;
    if (::send(socket, frames_.data(), size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) {
      limit::exit_with_error("sending");
    }
  }
  void run_for(double seconds) {
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    std::array<epoll_event, 256> events;
    while (Clock::now() < end) {
      const int ready = ::epoll_wait(epoll_, events.data(), events.size(), 100);
      for (int index = 0; index < ready; ++index)
        receive(events[static_cast<std::size_t>(index)].data.fd);
    }
  }
  void receive(int socket) {
    const ssize_t got = ::recv(socket, input_.data(), input_.size(), 0);
    if (got <= 0) limit::exit_with_error("receiving");
    std::size_t& left_over = left_over_[static_cast<std::size_t>(socket)];
    const std::size_t total = left_over + static_cast<std::size_t>(got);
    const std::size_t count = total / (options_.payload + 2);
    left_over = total % (options_.payload + 2);
    echoes_ += count;
    if (count != 0) send(socket, count);
  }

  const Options options_;
  std::string frames_;
  int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<int> sockets_;
  std::vector<std::size_t> left_over_;
  std::uint64_t echoes_ = 0;
  std::array<char, 64 * 1024> input_;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.cpu >= 0 && !weir::os::pin_current_thread(options.cpu)) {
    limit::exit_with_error("pinning");
  }
  std::printf("%.0f\n", Generator(options).run());
}

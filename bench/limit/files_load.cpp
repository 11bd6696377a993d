// A load generator of large responses: repeats one GET over each of its connections. It reads each
// head, but the kernel discards the bodies (MSG_TRUNC), so that a server on another processor is
// the bottleneck. The first body of each connection is read and compared with a file. It has one
// thread, and prints the responses in a second: received bytes of bodies over the file's size.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
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
  double seconds = 1;
  double warm_up = 0.3;
  std::string path = "/";
  std::string file;
};

Options parse(int argc, char** argv) {
  Options options;
  limit::read_arguments(
      argc, argv, "A load generator of large responses",
      {{.name = "--port", .value = &options.port, .help = "port on 127.0.0.1", .required = true},
       {.name = "--cpu", .value = &options.cpu, .help = "CPU to run on"},
       {.name = "--connections", .value = &options.connections, .help = "number of connections"},
       {.name = "--seconds", .value = &options.seconds, .help = "seconds that count"},
       {.name = "--warm-up", .value = &options.warm_up, .help = "seconds before them"},
       {.name = "--path", .value = &options.path, .help = "path of the requests"},
       {.name = "--file",
        .value = &options.file,
        .help = "file with the expected body",
        .required = true}});
  return options;
}

[[noreturn]] void exit_with(const char* what, std::string_view head) {
  std::fprintf(stderr, "load: %s: %.200s\n", what, std::string(head).c_str());
  std::exit(1);
}

struct Connection {
  bool in_body = false;
  bool verified = false;  // true after the first body
  std::string head;       // received bytes of the head
  std::size_t read = 0;   // received bytes of the body
};

class Generator {
 public:
  explicit Generator(const Options& options)
      : options_(options),
        request_("GET " + options.path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        input_(std::size_t{256} * 1024) {
    std::ifstream file(options.file, std::ios::binary);
    expected_.assign(std::istreambuf_iterator<char>(file), {});
    if (expected_.empty()) exit_with("no such file", options.file);
    for (int count = 0; count < options.connections; ++count) open();
  }

  /// Returns the responses in a second.
  double run() {
    const Clock::time_point begin = Clock::now();
    run_for(options_.warm_up);
    // Each connection has verified a body.
    while (unverified_ != 0) {
      if (Clock::now() - begin > std::chrono::seconds(30)) exit_with("too slow", options_.path);
      run_for(0.05);
    }
    std::printf("begin\n");
    std::fflush(stdout);
    const Clock::time_point start = Clock::now();
    const std::uint64_t before = body_bytes_;
    run_for(options_.seconds);
    const std::chrono::duration<double> passed = Clock::now() - start;
    const auto received = static_cast<double>(body_bytes_ - before);
    return received / static_cast<double>(expected_.size()) / passed.count();
  }

 private:
  void open() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = weir::os::Address::loopback(options_.port);
    if (socket < 0 ||
        ::connect(socket, static_cast<const sockaddr*>(address.data()), address.size()) != 0) {
      limit::exit_with_error("connecting");
    }
    static_cast<void>(weir::os::set_no_delay(socket, true));
    epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) limit::exit_with_error("epoll");
    const auto index = static_cast<std::size_t>(socket);
    if (index >= connections_.size()) connections_.resize(index + 1);
    ++unverified_;
    request(socket);
  }

  void request(int socket) {
    if (::send(socket, request_.data(), request_.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request_.size())) {
      limit::exit_with_error("sending");
    }
  }

  /// Does not sleep, because a server that is waited for would wake this thread for each response.
  void run_for(double seconds) {
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    std::array<epoll_event, 256> events;
    while (Clock::now() < end) {
      const int ready = ::epoll_wait(epoll_, events.data(), events.size(), 0);
      for (int index = 0; index < ready; ++index) {
        const int socket = events[static_cast<std::size_t>(index)].data.fd;
        while (receive(socket)) {
        }
      }
    }
  }

  /// Returns true if more bytes may be there.
  bool receive(int socket) {
    Connection& connection = connections_[static_cast<std::size_t>(socket)];
    return connection.in_body ? receive_body(socket, connection) : receive_head(socket, connection);
  }

  bool receive_head(int socket, Connection& connection) {
    constexpr std::size_t head_max = 2048;
    const ssize_t got = ::recv(socket, input_.data(), head_max, MSG_DONTWAIT);
    if (!received(got)) return false;
    const std::size_t before = connection.head.size();
    connection.head.append(input_.data(), static_cast<std::size_t>(got));
    const std::size_t end = connection.head.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (connection.head.size() > head_max) exit_with("no head", connection.head);
      return false;
    }
    check(std::string_view(connection.head).substr(0, end + 2));
    connection.in_body = true;
    const std::size_t begin = end + 4 - before;
    count(connection, std::string_view(input_.data(), static_cast<std::size_t>(got)).substr(begin));
    connection.head.clear();
    return ended(socket, connection);
  }

  bool receive_body(int socket, Connection& connection) {
    const std::size_t left = expected_.size() - connection.read;
    if (connection.verified) {
      const ssize_t got = ::recv(socket, nullptr, left, MSG_DONTWAIT | MSG_TRUNC);
      if (!received(got)) return false;
      body_bytes_ += static_cast<std::size_t>(got);
      connection.read += static_cast<std::size_t>(got);
    } else {
      const std::size_t most = std::min(left, input_.size());
      const ssize_t got = ::recv(socket, input_.data(), most, MSG_DONTWAIT);
      if (!received(got)) return false;
      count(connection, {input_.data(), static_cast<std::size_t>(got)});
    }
    return ended(socket, connection);
  }

  static bool received(ssize_t got) {
    if (got == 0) exit_with("a connection has ended", "");
    if (got < 0 && errno != EAGAIN) limit::exit_with_error("receiving");
    return got > 0;
  }

  void count(Connection& connection, std::string_view body) {
    if (expected_.compare(connection.read, body.size(), body) != 0) exit_with("wrong body", "");
    body_bytes_ += body.size();
    connection.read += body.size();
  }

  /// Sends the next request if the response is whole. Returns true if it is not.
  bool ended(int socket, Connection& connection) {
    if (connection.read < expected_.size()) return true;
    if (!connection.verified) --unverified_;
    connection.verified = true;
    connection.in_body = false;
    connection.read = 0;
    request(socket);
    return false;
  }

  void check(std::string_view head) const {
    constexpr std::string_view name = "\r\nContent-Length: ";
    const std::size_t at = head.find(name);
    if (!head.starts_with("HTTP/1.1 200 ") || at == std::string_view::npos) {
      exit_with("not the file", head);
    }
    std::size_t length = 0;
    std::from_chars(head.data() + at + name.size(), head.data() + head.size(), length);
    if (length != expected_.size()) exit_with("wrong length", head);
  }

  const Options options_;
  const std::string request_;
  std::vector<char> input_;
  std::string expected_;
  int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<Connection> connections_;  // by descriptor
  int unverified_ = 0;                   // connections without a verified body
  std::uint64_t body_bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.cpu >= 0 && !weir::os::pin_current_thread(options.cpu)) {
    limit::exit_with_error("pinning");
  }
  std::printf("%.1f\n", Generator(options).run());
}

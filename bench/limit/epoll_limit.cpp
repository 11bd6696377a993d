// The limit of epoll: sends canned responses, edge-triggered, without unnecessary receives.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "bench/limit/canned.hpp"

namespace {

using limit::exit_with_error;

struct Connection {
  limit::RequestCount requests;
  std::size_t owed = 0;  // unsent bytes of responses
  bool blocked = false;  // the send buffer is full
};

class Server {
 public:
  explicit Server(const limit::Options& options)
      : options_(options), answers_(options), listener_(limit::start_listening(options)) {
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) exit_with_error("epoll_create1");
    add(listener_.get(), EPOLLIN);
  }

  [[noreturn]] void run() {
    std::array<epoll_event, 512> events;
    for (;;) {
      const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      if (count < 0 && errno != EINTR) exit_with_error("epoll_wait");
      for (int index = 0; index < count; ++index) {
        const epoll_event& event = events[static_cast<std::size_t>(index)];
        if (event.data.fd == listener_.get()) {
          accept_all();
        } else {
          serve(event.data.fd, event.events);
        }
      }
    }
  }

 private:
  void add(int descriptor, std::uint32_t interest) {
    epoll_event event{.events = interest, .data = {.fd = descriptor}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) exit_with_error("epoll_ctl");
  }

  void accept_all() {
    for (;;) {
      const int descriptor =
          ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (descriptor < 0) return;  // none left, or a failed connection
      const auto index = static_cast<std::size_t>(descriptor);
      if (index >= connections_.size()) connections_.resize(2 * index + 1);
      connections_[index] = {};
      // A connection that closes needs no registration if its request is there already.
      if (options_.close && receive(descriptor)) continue;
      add(descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    }
  }

  void serve(int descriptor, std::uint32_t events) {
    Connection& connection = connections_[static_cast<std::size_t>(descriptor)];
    if ((events & EPOLLOUT) != 0 && connection.blocked) {
      connection.blocked = false;
      if (send_owed(descriptor, connection)) return;
    }
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) receive(descriptor);
  }

  /// Returns whether the connection is gone.
  bool receive(int descriptor) {
    for (;;) {
      const ssize_t got = ::recv(descriptor, input_.data(), input_.size(), 0);
      if (got <= 0) {
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        ::close(descriptor);
        return true;
      }
      Connection& connection = connections_[static_cast<std::size_t>(descriptor)];
      const std::string_view bytes(input_.data(), static_cast<std::size_t>(got));
      const std::size_t count = connection.requests.add(bytes, options_.request_bytes);
      connection.owed += count * answers_.size();
      if (count != 0 && !connection.blocked && send_owed(descriptor, connection)) return true;
      // A short receive has emptied the socket; the next edge reports new bytes.
      if (bytes.size() < input_.size()) return false;
    }
  }

  /// Returns whether the connection is gone.
  bool send_owed(int descriptor, Connection& connection) {
    while (connection.owed != 0) {
      const std::string_view next = answers_.next(connection.owed);
      const ssize_t sent = ::send(descriptor, next.data(), next.size(), MSG_NOSIGNAL);
      if (sent < 0) {
        connection.blocked = errno == EAGAIN;
        if (connection.blocked) return false;
        break;
      }
      connection.owed -= static_cast<std::size_t>(sent);
    }
    if (connection.owed == 0 && !options_.close) return false;
    ::close(descriptor);
    return true;
  }

  const limit::Options options_;
  const limit::CannedResponses answers_;
  weir::os::Fd listener_;
  int epoll_;
  std::vector<Connection> connections_;  // by descriptor
  std::array<char, 16 * 1024> input_;
};

}  // namespace

int main(int argc, char** argv) {
  Server(limit::parse_options(argc, argv)).run();
}

// EpollServer: the loop of the limit servers over epoll.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/limit/canned.hpp"

namespace limit {

/// Accepts connections and reports their events, edge-triggered. `Server` derives from it and has:
/// - `bool accepted(int descriptor)`: returns false if the connection has ended;
/// - `void serve(int descriptor, std::uint32_t events)`.
template <class Server, class Connection>
class EpollServer {
 public:
  explicit EpollServer(weir::os::Fd listener)
      : listener_(std::move(listener)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
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
          self().serve(event.data.fd, event.events);
        }
      }
    }
  }

 protected:
  Connection& connection_of(int descriptor) {
    return connections_[static_cast<std::size_t>(descriptor)];
  }

  /// Returns the new state of a connection.
  Connection& make_connection(int descriptor) {
    const auto index = static_cast<std::size_t>(descriptor);
    if (index >= connections_.size()) connections_.resize(2 * index + 1);
    return connections_[index] = {};
  }

  void observe(int descriptor) { add(descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET); }

 private:
  Server& self() { return static_cast<Server&>(*this); }

  void add(int descriptor, std::uint32_t interest) {
    epoll_event event{.events = interest, .data = {.fd = descriptor}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) exit_with_error("epoll_ctl");
  }

  void accept_all() {
    for (;;) {
      const int descriptor =
          ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (descriptor < 0) return;  // none left, or a failed connection
      make_connection(descriptor);
      if (self().accepted(descriptor)) observe(descriptor);
    }
  }

  weir::os::Fd listener_;
  int epoll_;
  std::vector<Connection> connections_;  // by descriptor
};

}  // namespace limit

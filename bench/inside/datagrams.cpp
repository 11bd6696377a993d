// Measures how many datagrams of 64 bytes per second one core echoes, one or many per system call:
// with one peer, with 16 peers, and with a peer that uses segmentation offload (UDP_SEGMENT). Plain
// epoll loops are the comparison. The load is a thread on another processor that keeps 128
// datagrams in flight. Prints one line of JSON per round: millions per second.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "bench/inside/two_cores.hpp"
#include "weir/net/udp.hpp"
#include "weir/os/detail/io/datagram_socket.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/machine/affinity.hpp"

namespace weir {
namespace {

constexpr std::size_t datagrams = 400'000;
constexpr std::size_t on_the_way = 128;
constexpr std::size_t datagram_bytes = 64;
constexpr std::size_t batch = 32;
constexpr std::size_t end_bytes = 1;  // a datagram of this size ends the server

using Clock = std::chrono::steady_clock;

void require(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(1);
}

/// Buffers for some datagrams, and the message headers for the kernel.
class Batch {
 public:
  Batch() {
    for (std::size_t index = 0; index < batch; ++index) {
      pieces_[index] = {bytes_[index].data(), bytes_[index].size()};
      msghdr& header = messages_[index].msg_hdr;
      header = {};
      header.msg_iov = &pieces_[index];
      header.msg_iovlen = 1;
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  int receive(int socket, int flags) noexcept {
    for (std::size_t index = 0; index < batch; ++index) {
      messages_[index].msg_hdr.msg_name = &peers_[index];
      messages_[index].msg_hdr.msg_namelen = sizeof peers_[index];
      pieces_[index].iov_len = bytes_[index].size();
    }
    const int count = ::recvmmsg(socket, messages_.data(), batch, flags, nullptr);
    for (int index = 0; index < count; ++index) {
      const auto at = static_cast<std::size_t>(index);
      pieces_[at].iov_len = messages_[at].msg_len;
    }
    return count;
  }
  /// Sends the received datagrams back to their senders, or to the connected peer if `connected`.
  int send(int socket, std::size_t count, bool connected) noexcept {
    for (std::size_t index = 0; connected && index < count; ++index) {
      messages_[index].msg_hdr.msg_name = nullptr;
      messages_[index].msg_hdr.msg_namelen = 0;
      pieces_[index].iov_len = datagram_bytes;
    }
    return ::sendmmsg(socket, messages_.data(), static_cast<unsigned>(count), 0);
  }
  /// Sends one message to the connected peer; the kernel segments it into datagrams.
  int send_as_one(int socket, std::size_t count) noexcept {
    for (std::size_t index = 0; index < count; ++index) pieces_[index].iov_len = datagram_bytes;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control{};
    msghdr header{};
    header.msg_iov = pieces_.data();
    header.msg_iovlen = count;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const message = CMSG_FIRSTHDR(&header);
    message->cmsg_level = IPPROTO_UDP;
    message->cmsg_type = UDP_SEGMENT;
    message->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const std::uint16_t size = datagram_bytes;
    std::memcpy(CMSG_DATA(message), &size, sizeof size);
    return ::sendmsg(socket, &header, 0) < 0 ? -1 : static_cast<int>(count);
  }
  std::size_t size(std::size_t index) const noexcept { return pieces_[index].iov_len; }

 private:
  std::array<mmsghdr, batch> messages_{};
  std::array<iovec, batch> pieces_{};
  std::array<sockaddr_in, batch> peers_{};
  std::array<std::array<char, 2048>, batch> bytes_{};
};

// ---- The load -----------------------------------------------------------------------------------

struct Load {
  std::size_t peers = 1;
  bool as_one = false;  // see Batch::send_as_one()
};
constexpr std::array<Load, 3> loads = {{{}, {.peers = 16}, {.as_one = true}}};

/// Sends until all datagrams have come back, then ends the server. Sends lost datagrams again.
void load(const os::Address& server, Load how) {
  static_cast<void>(os::pin_current_thread(1));
  std::vector<os::Fd> sockets;
  for (std::size_t peer = 0; peer < how.peers; ++peer) {
    sockets.push_back(os::open_datagram_socket({.peer = server}).value());
  }
  Batch messages;
  const std::size_t each = on_the_way / how.peers;
  std::size_t back = 0;
  while (back < datagrams) {
    for (const os::Fd& socket : sockets) {
      for (std::size_t sent = 0; sent < each;) {
        const std::size_t next = std::min(batch, each - sent);
        const int count = how.as_one ? messages.send_as_one(socket.get(), next)
                                     : messages.send(socket.get(), next, true);
        require(count > 0, "send");
        sent += static_cast<std::size_t>(count);
      }
    }
    for (const os::Fd& socket : sockets) {
      for (std::size_t came = 0; came < each;) {
        pollfd wanted{socket.get(), POLLIN, 0};
        if (::poll(&wanted, 1, 100) != 1) break;
        const int count = messages.receive(socket.get(), MSG_DONTWAIT);
        if (count > 0) came += static_cast<std::size_t>(count);
        if (count > 0) back += static_cast<std::size_t>(count);
      }
    }
  }
  const char end = 'e';
  require(::send(sockets.front().get(), &end, end_bytes, 0) == 1, "send");
}

// ---- Plain loops --------------------------------------------------------------------------------

/// Calls `serve` when datagrams have arrived, until `serve` reports the end.
template <class Serve>
void loop_on_epoll(int socket, Serve serve) {
  const os::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  require(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket, &event) == 0, "epoll_ctl");
  do {
    require(::epoll_wait(epoll.get(), &event, 1, -1) == 1, "epoll_wait");
  } while (!serve(socket));
}

bool echo_one_by_one(int socket) {
  std::array<char, 2048> room;
  for (;;) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    auto* const where = reinterpret_cast<sockaddr*>(&peer);
    const ssize_t count = ::recvfrom(socket, room.data(), room.size(), 0, where, &size);
    if (count < 0) return false;
    const auto bytes = static_cast<std::size_t>(count);
    if (bytes == end_bytes) return true;
    require(::sendto(socket, room.data(), bytes, 0, where, size) == count, "sendto");
  }
}

bool echo_many(int socket) {
  static Batch messages;
  for (;;) {
    const int count = messages.receive(socket, 0);
    if (count <= 0) return false;
    const auto received = static_cast<std::size_t>(count);
    if (messages.size(received - 1) == end_bytes) return true;
    require(messages.send(socket, received, false) == count, "sendmmsg");
    if (received < batch) return false;
  }
}

// ---- Weir ---------------------------------------------------------------------------------------

Task<> serve_one_by_one(udp::Socket& socket) {
  for (;;) {
    const auto arrived = co_await socket.receive();
    require(arrived.has_value(), "receive");
    if (arrived->buffer.size() == end_bytes) co_return;
    require((co_await socket.send(arrived->buffer, arrived->peer)).has_value(), "send");
  }
}

Task<> serve_many(udp::Socket& socket) {
  std::array<udp::Datagram, batch> arrived;
  std::vector<udp::Outgoing> answers;
  for (;;) {
    const auto count = co_await socket.receive(arrived);
    require(count.has_value(), "receive");
    answers.clear();
    for (const udp::Datagram& each : std::span(arrived).first(*count)) {
      if (each.buffer.size() == end_bytes) co_return;
      answers.push_back({each.buffer, each.peer});
    }
    require((co_await socket.send(answers)).has_value(), "send");
  }
}

Task<> serve_joined(udp::Socket& socket) {
  std::array<udp::Datagram, batch> arrived;
  std::vector<udp::Outgoing> answers;
  for (;;) {
    const auto count = co_await socket.receive(arrived);
    require(count.has_value(), "receive");
    answers.clear();
    bool ends = false;
    for (const udp::Datagram& several : std::span(arrived).first(*count)) {
      several.for_each([&](Bytes each) {
        ends = ends || each.size() == end_bytes;
        answers.push_back({each, several.peer});
      });
    }
    if (ends) co_return;
    require((co_await socket.send(answers)).has_value(), "send");
  }
}

// ---- All measurements ---------------------------------------------------------------------------

double millions_since(Clock::time_point began) {
  const std::chrono::duration<double> took = Clock::now() - began;
  return static_cast<double>(datagrams) / took.count() / 1e6;
}

template <class Serve>
double by_epoll(Serve serve, Load how) {
  const os::Fd socket = os::open_datagram_socket({.local = os::Address::loopback(0)}).value();
  const os::Address address = os::local_address(socket.get()).value();
  const auto began = Clock::now();
  std::jthread sender(load, std::cref(address), how);
  loop_on_epoll(socket.get(), serve);
  return millions_since(began);
}

Task<double> by_weir(Task<> (*serve)(udp::Socket&), bool joined, Load how) {
  const udp::Options options{.bytes_max = 2048, .gro = joined};
  auto socket = co_await udp::bind(Endpoint::loopback(0), options);
  require(socket.has_value(), "bind");
  const os::Address address = socket->local_address();
  const auto began = Clock::now();
  std::jthread sender(load, std::cref(address), how);
  co_await serve(*socket);
  co_return millions_since(began);
}

void print(const char* name, const std::array<double, loads.size()>& millions, const char* behind) {
  std::printf("\"%s\": {\"one peer\": %.3f, \"16 peers\": %.3f, \"one peer, as one\": %.3f}%s",
              name, millions[0], millions[1], millions[2], behind);
}

template <class Serve>
void print_epoll(const char* name, Serve serve, const char* behind) {
  std::array<double, loads.size()> millions{};
  for (std::size_t index = 0; index < loads.size(); ++index) {
    millions[index] = by_epoll(serve, loads[index]);
  }
  print(name, millions, behind);
}

Task<> print_weir(const char* name, Task<> (*serve)(udp::Socket&), bool joined) {
  std::array<double, loads.size()> millions{};
  for (std::size_t index = 0; index < loads.size(); ++index) {
    millions[index] = co_await by_weir(serve, joined, loads[index]);
  }
  print(name, millions, ", ");
}

Task<> measure_once(Loop&) {
  std::fputs("{", stdout);
  co_await print_weir("weir, joined by the kernel", serve_joined, true);
  co_await print_weir("weir, many at once", serve_many, false);
  co_await print_weir("weir, one by one", serve_one_by_one, false);
  print_epoll("epoll, recvmmsg and sendmmsg", echo_many, ", ");
  print_epoll("epoll, recvfrom and sendto", echo_one_by_one, "}\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  return weir::measure_on_two_cores(argc, argv, weir::measure_once);
}

#include "tests/attack.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "weir/os/address.hpp"
#include "weir/os/socket.hpp"

namespace weir::tests {
namespace {

using Then = Attack::Then;

std::string repeated(std::string_view text, int count) {
  std::string all;
  while (count-- > 0) all += text;
  return all;
}

std::string post(std::string_view fields) {
  return "POST /count HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n\r\n";
}

std::vector<Attack> make_attacks() {
  const std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
  const std::string large = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string chunked = post("Transfer-Encoding: chunked");
  const std::string many = repeated(large, 200);
  std::vector<Attack> all;
  all.push_back({.name = "says nothing"});
  all.push_back({.name = "a head by bytes", .opening = head + "X: ", .more = "x", .slowly = true});
  all.push_back({.name = "a head by lines", .opening = head, .more = "X: y\r\n", .slowly = true});
  all.push_back({.name = "a large head, but for its end",
                 .opening = head + repeated("X: " + std::string(1000, 'x') + "\r\n", 60)});
  all.push_back({.name = "a head without an end",
                 .opening = head,
                 .more = "X: " + std::string(2000, 'y') + "\r\n"});
  all.push_back({.name = "empty lines", .more = "\r\n", .slowly = true});
  all.push_back({.name = "a body by bytes",
                 .opening = post("Content-Length: 60000"),
                 .more = "b",
                 .slowly = true});
  all.push_back({.name = "a body, but for its end",
                 .opening = post("Content-Length: 60000") + std::string(59'999, 'b')});
  all.push_back({.name = "chunks of one byte",
                 .opening = chunked,
                 .more = "1;name=\"value\"\r\nc\r\n",
                 .slowly = true});
  all.push_back({.name = "extensions",
                 .opening = chunked,
                 .more = repeated("1;name=\"value\"\r\nc\r\n", 50)});
  all.push_back({.name = "chunks, but for the last",
                 .opening = chunked + repeated("ff0\r\n" + std::string(0xff0, 'c') + "\r\n", 16)});
  all.push_back({.name = "trailers",
                 .opening = chunked + "0\r\n",
                 .more = "X: " + std::string(2000, 'y') + "\r\n"});
  all.push_back({.name = "a body that is invited in vain",
                 .opening = post("Content-Length: 9\r\nExpect: 100-continue")});
  all.push_back({.name = "reads nothing", .opening = many, .more = many, .takes = 0});
  all.push_back({.name = "reads by bytes", .opening = many, .takes = 1});
  all.push_back({.name = "reads nothing, says no more",
                 .opening = many,
                 .takes = 0,
                 .then = Then::half_closes});
  all.push_back({.name = "half a head, no more", .opening = head, .then = Then::half_closes});
  all.push_back({.name = "no more at once", .then = Then::half_closes});
  all.push_back(
      {.name = "resets with answers on their way", .opening = many, .then = Then::resets});
  all.push_back({.name = "resets at once", .then = Then::resets});
  all.push_back({.name = "TLS", .opening = std::string("\x16\x03\x01\x02\0\x01\0\x01\xfc", 9)});
  all.push_back({.name = "HTTP/2", .opening = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"});
  all.push_back({.name = "PROXY", .opening = "PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + head});
  return all;
}

}  // namespace

const std::vector<Attack>& every_attack() {
  static const std::vector<Attack> all = make_attacks();
  return all;
}

/// One connection. Never waits.
class Herd::Attacker {
 public:
  enum class Life : std::uint8_t { goes_on, ended_by_server, over };

  Attacker(const Attack& attack, std::uint16_t port) : attack_(&attack) {
    auto socket = os::open_stream(os::AddressFamily::ipv4);
    if (!socket) return;
    // What a test leaves must not keep the ports of the next one.
    (void)os::set_linger(socket->get(), std::chrono::seconds(0));
    if (!os::start_connect(socket->get(), os::Address::loopback(port))) return;
    socket_ = std::move(*socket);
  }

  Life step(bool in_time) {
    if (!socket_ || std::chrono::steady_clock::now() > leaves_) return Life::over;
    pollfd state{socket_.get(), POLLOUT | POLLRDHUP, 0};
    if (::poll(&state, 1, 0) < 0) return Life::over;
    if ((state.revents & (POLLERR | POLLHUP | POLLRDHUP)) != 0) return Life::ended_by_server;
    take();
    if ((state.revents & POLLOUT) == 0) return Life::goes_on;
    if (!opened_ && sent_ < attack_->opening.size()) return send_from(attack_->opening);
    if (!std::exchange(opened_, true)) {
      if (attack_->then == Then::resets) return Life::over;
      if (attack_->then == Then::half_closes) (void)os::shut_down_sending(socket_.get());
      sent_ = 0;
      return Life::goes_on;
    }
    if (attack_->more.empty() || (attack_->slowly && !in_time)) return Life::goes_on;
    if (sent_ == attack_->more.size()) sent_ = 0;
    return send_from(attack_->more);
  }

 private:
  Life send_from(std::string_view text) {
    const std::string_view rest = text.substr(sent_);
    const auto count = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count > 0) sent_ += static_cast<std::size_t>(count);
    return count < 0 && errno != EAGAIN ? Life::ended_by_server : Life::goes_on;
  }
  void take() {
    std::array<char, 1024> room;
    if (attack_->takes != 0) {
      (void)::recv(socket_.get(), room.data(), std::min(room.size(), attack_->takes), 0);
    }
  }

  const Attack* attack_;
  os::Fd socket_;
  // Whoever only sits there must not keep all others out for as long as an idle connection may.
  std::chrono::steady_clock::time_point leaves_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(3);
  std::size_t sent_ = 0;  // of the opening, then of what follows
  bool opened_ = false;
};

Herd::Herd(std::uint16_t port, std::size_t size, std::uint32_t seed)
    : port_(port),
      random_(seed),
      ended_(every_attack().size()),
      thread_([this, size] { run(size); }) {}

void Herd::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

Herd::Attacker Herd::next() {
  return {every_attack()[random_() % every_attack().size()], port_};
}

void Herd::run(std::size_t size) {
  std::vector<Attacker> attackers;
  for (std::size_t i = 0; i < size; ++i) attackers.push_back(next());
  for (unsigned round = 0; !stopping_; ++round) {
    for (Attacker& each : attackers) {
      const auto life = each.step(round % 8 == 0);
      if (life == Attacker::Life::goes_on) continue;
      if (life == Attacker::Life::ended_by_server) ++ended_;
      each = next();
    }
    // Leaves the processor to the server.
    (void)::poll(nullptr, 0, 2);
  }
}

}  // namespace weir::tests

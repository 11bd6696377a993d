#include "tests/attacker_pool.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "weir/os/address.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir::tests {
namespace {

using Then = HttpAttack::Then;

}  // namespace

/// One connection. Never waits.
class Herd::Attacker {
 public:
  enum class Life : std::uint8_t { goes_on, ended_by_server, over };

  Attacker(const HttpAttack& attack, std::uint16_t port) : attack_(&attack) {
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

  const HttpAttack* attack_;
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
      ended_(every_http_attack().size()),
      thread_([this, size] { run(size); }) {}

void Herd::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

Herd::Attacker Herd::next() {
  return {every_http_attack()[random_() % every_http_attack().size()], port_};
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

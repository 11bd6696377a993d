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

using EndAction = sim::HttpAttack::EndAction;

}  // namespace

/// An Attacker is one connection. Its functions never block.
class AttackerPool::Attacker {
 public:
  enum class Progress : std::uint8_t { active, closed_by_server, over };

  Attacker(const sim::HttpAttack& attack, std::uint16_t port) : attack_(&attack) {
    auto socket = os::open_stream(os::AddressFamily::ipv4);
    if (!socket) return;
    // Connections of this test must not occupy the ports of the next test.
    (void)os::set_linger(socket->get(), std::chrono::seconds(0));
    if (!os::start_connect(socket->get(), os::Address::loopback(port))) return;
    socket_ = std::move(*socket);
  }

  Progress step(bool in_time) {
    if (!socket_ || std::chrono::steady_clock::now() > end_) return Progress::over;
    pollfd state{socket_.get(), POLLOUT | POLLRDHUP, 0};
    if (::poll(&state, 1, 0) < 0) return Progress::over;
    if ((state.revents & (POLLERR | POLLHUP | POLLRDHUP)) != 0) return Progress::closed_by_server;
    take();
    if ((state.revents & POLLOUT) == 0) return Progress::active;
    if (!opened_ && sent_ < attack_->initial_data.size()) return send_from(attack_->initial_data);
    if (!std::exchange(opened_, true)) {
      if (attack_->end_action == EndAction::reset) return Progress::over;
      if (attack_->end_action == EndAction::half_close) (void)os::shut_down_sending(socket_.get());
      sent_ = 0;
      return Progress::active;
    }
    if (attack_->repeated_data.empty() || (attack_->is_slow && !in_time)) return Progress::active;
    if (sent_ == attack_->repeated_data.size()) sent_ = 0;
    return send_from(attack_->repeated_data);
  }

 private:
  Progress send_from(std::string_view text) {
    const std::string_view rest = text.substr(sent_);
    const auto count = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count > 0) sent_ += static_cast<std::size_t>(count);
    return count < 0 && errno != EAGAIN ? Progress::closed_by_server : Progress::active;
  }
  void take() {
    std::array<char, 1024> room;
    if (attack_->read_size != 0) {
      (void)::recv(socket_.get(), room.data(), std::min(room.size(), attack_->read_size), 0);
    }
  }

  const sim::HttpAttack* attack_;
  os::Fd socket_;
  // An idle attacker must not keep other attackers out until the server's idle timeout.
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(3);
  std::size_t sent_ = 0;  // bytes sent of initial_data, then of repeated_data
  bool opened_ = false;
};

AttackerPool::AttackerPool(std::uint16_t port, std::size_t size, std::uint32_t seed)
    : port_(port),
      random_(seed),
      ended_(sim::http_attacks().size()),
      thread_([this, size] { run(size); }) {}

void AttackerPool::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

AttackerPool::Attacker AttackerPool::make_attacker() {
  return {sim::http_attacks()[random_() % sim::http_attacks().size()], port_};
}

void AttackerPool::run(std::size_t size) {
  std::vector<Attacker> attackers;
  for (std::size_t i = 0; i < size; ++i) attackers.push_back(make_attacker());
  for (unsigned round = 0; !stopping_; ++round) {
    for (Attacker& each : attackers) {
      const auto progress = each.step(round % 8 == 0);
      if (progress == Attacker::Progress::active) continue;
      if (progress == Attacker::Progress::closed_by_server) ++ended_;
      each = make_attacker();
    }
    // Leaves the processor to the server.
    (void)::poll(nullptr, 0, 2);
  }
}

}  // namespace weir::tests

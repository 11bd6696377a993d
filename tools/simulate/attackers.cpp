// Hostile peers of a server.
#include "tools/simulate/attackers.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "weir/base/result.hpp"

namespace weir::simulate {
namespace {

using EndAction = sim::HttpAttack::EndAction;

// The status of the response to an attack of this name. The server may also reject any connection
// with 503, or close it without a response.
struct SuitableStatus {
  std::string_view attack;
  int status;
};
constexpr std::array suitable_statuses{
    SuitableStatus{"a head by bytes", 408},
    SuitableStatus{"a head by lines", 408},
    SuitableStatus{"a large head without its last line", 408},
    SuitableStatus{"a head without an end", 408},
    SuitableStatus{"a head without an end", 431},
    SuitableStatus{"empty lines", 400},
    SuitableStatus{"empty lines", 408},
    SuitableStatus{"a body by bytes", 408},
    SuitableStatus{"a body without its last byte", 408},
    SuitableStatus{"chunks of one byte", 408},
    SuitableStatus{"extensions", 400},
    SuitableStatus{"extensions", 408},
    SuitableStatus{"chunks without the last one", 408},
    SuitableStatus{"trailers", 408},
    SuitableStatus{"trailers", 431},
    SuitableStatus{"no body after 100 Continue", 100},
    SuitableStatus{"reads nothing", 200},
    SuitableStatus{"reads by bytes", 200},
    SuitableStatus{"reads nothing, half-closes", 200},
    SuitableStatus{"half a head, half-closes", 400},
    SuitableStatus{"resets with responses in flight", 200},
    SuitableStatus{"TLS", 400},
    SuitableStatus{"HTTP/2", 505},
    SuitableStatus{"PROXY", 400},
};

bool is_suitable(std::string_view attack, int status) {
  return status == 503 || std::ranges::any_of(suitable_statuses, [&](const SuitableStatus& each) {
           return each.attack == attack && each.status == status;
         });
}

}  // namespace

/// One attacking connection.
class Attackers::Attacker {
 public:
  enum class Progress : std::uint8_t { active, ended_by_server, over };

  Attacker(sim::World& world, sim::Host& host, const Endpoint& server,
           const sim::HttpAttack& attack)
      : attack_(attack),
        random_(world.random().next()),
        stream_(host.network().open_stream()),
        reads_(attack.read_size >= 1024) {
    static_cast<void>(host.network().connect(*stream_, server));
    heard_ = world.now();
  }

  std::string_view name() const noexcept { return attack_.name; }
  /// Returns when the attacker began, or last received data. The server must serve an attacker
  /// that reads.
  Instant heard() const noexcept { return heard_; }
  bool connected() const noexcept { return stream_->connected(); }
  std::size_t in_flight_bytes() const noexcept {
    return stream_->unread() + stream_->in_flight_bytes();
  }
  sim::Random& random() noexcept { return random_; }
  void reset() { stream_->reset(); }
  /// Returns the status of the first response; 0: none yet; -1: not a response.
  int status() const {
    constexpr std::string_view version = "HTTP/1.1 ";
    if (beginning_.size() < version.size() + 3) return 0;
    int status = -1;
    if (beginning_.starts_with(version)) {
      std::from_chars(beginning_.data() + version.size(), beginning_.data() + beginning_.size(),
                      status);
    }
    return status;
  }

  /// Returns true if the server has kept the connection past the timeout. An attacker that did
  /// not read yet begins to read, to find out whether a close follows the data in flight.
  bool is_kept() {
    if (reads_) return true;
    listens_ = reads_ = true;
    return false;
  }
  /// Returns true if the server has sent more than was in flight.
  bool is_still_told() const noexcept { return heard_at_last_ > 64 * 1024; }

  Progress step(Instant now) {
    take(now);
    const bool told = stream_->unread() == 0 && stream_->receivable() != system_error(EAGAIN);
    if (told || stream_->dead()) return Progress::ended_by_server;
    if (!opened_ && !send_all(attack_.initial_data)) return Progress::active;
    if (!std::exchange(opened_, true)) {
      if (attack_.end_action == EndAction::reset) return Progress::over;
      if (attack_.end_action == EndAction::half_close)
        static_cast<void>(stream_->shut_down_sending());
      return Progress::active;
    }
    const bool in_time = !attack_.is_slow || random_.bernoulli(0.2);
    if (!attack_.repeated_data.empty() && attack_.end_action == EndAction::none && in_time) {
      static_cast<void>(send_all(attack_.repeated_data));
    }
    return Progress::active;
  }

 private:
  /// Sends from where the last call has stopped. Returns true if all of `text` is sent.
  bool send_all(std::string_view text) {
    while (sent_ < text.size()) {
      const auto count = stream_->send(to_bytes(text.substr(sent_)));
      if (!count) return false;
      sent_ += *count;
    }
    sent_ = 0;
    return true;
  }
  void take(Instant now) {
    std::array<char, 1024> room;
    const std::size_t most = reads_ ? room.size() : std::min(room.size(), attack_.read_size);
    if (most == 0) return;
    const auto count = stream_->receive(std::as_writable_bytes(std::span(room)).first(most));
    constexpr std::size_t beginning_max = 16;
    if (!count) return;
    if (reads_) heard_ = now;
    if (listens_) heard_at_last_ += *count;
    beginning_.append(room.data(), std::min(*count, beginning_max - beginning_.size()));
  }

  const sim::HttpAttack& attack_;
  sim::Random random_;
  std::unique_ptr<MemoryStream> stream_;
  Instant heard_{};
  std::size_t sent_ = 0;  // bytes sent of the initial data, then of the repeated data
  bool opened_ = false;
  bool reads_;            // true: reads as fast as it can
  bool listens_ = false;  // true: reads only since its timeout
  std::size_t heard_at_last_ = 0;
  std::string beginning_;  // first bytes received
};

Attackers::Attackers(sim::World& world, sim::Host& host, const Endpoint& server,
                     const AttackersOptions& options)
    : world_(world), host_(host), server_(server), options_(options) {}

Attackers::~Attackers() = default;

void Attackers::begin() {
  attackers_.resize(options_.count);
  for (std::size_t place = 0; place < attackers_.size(); ++place) {
    start_next(place);
    step(place);
  }
}

void Attackers::end() {
  for (auto& each : attackers_) {
    if (each != nullptr) each->reset();
    each.reset();
  }
}

void Attackers::start_next(std::size_t place) {
  const auto& kinds = sim::http_attacks();
  attackers_[place] = std::make_unique<Attacker>(world_, host_, server_,
                                                 kinds[world_.random().below(kinds.size())]);
}

void Attackers::step(std::size_t place) {
  if (attackers_[place] == nullptr) return;
  Attacker& attacker = *attackers_[place];
  switch (attacker.step(world_.now())) {
    case Attacker::Progress::active:
      if ((world_.now() > after(attacker.heard(), options_.wait_timeout) && attacker.is_kept()) ||
          attacker.is_still_told()) {
        violation_ = "neither answered nor closed: " + std::string(attacker.name());
      }
      break;
    case Attacker::Progress::ended_by_server:
      if (attacker.connected()) ++ended_;
      check_response(attacker);
      start_next(place);
      break;
    case Attacker::Progress::over:
      attacker.reset();
      start_next(place);
      break;
  }
  const Duration pause = attackers_[place]->random().between(std::chrono::milliseconds(2),
                                                             std::chrono::milliseconds(60));
  world_.schedule(pause, [this, place] { step(place); });
}

void Attackers::check_response(const Attacker& attacker) {
  const int status = attacker.status();
  if (status == 0) return;
  ++answers_[status];
  if (is_suitable(attacker.name(), status)) return;
  violation_ = std::string(attacker.name()) + ": answered by " + std::to_string(status);
}

std::size_t Attackers::answers(int status) const {
  const auto found = answers_.find(status);
  return found == answers_.end() ? 0 : found->second;
}

std::size_t Attackers::in_flight_bytes() const {
  std::size_t held = 0;
  for (const auto& each : attackers_) {
    if (each != nullptr) held += each->in_flight_bytes();
  }
  return held;
}

}  // namespace weir::simulate

#include "tools/simulate/attackers.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "weir/base/error.hpp"

namespace weir::simulate {
namespace {

using Then = HttpAttack::Then;

// What they are answered: their requests themselves, that they are none, and that it is too much,
// too late or one too many.
constexpr std::array right_statuses = {100, 200, 400, 408, 413, 414, 431, 503, 505};

}  // namespace

/// One connection.
class Attackers::Attacker {
 public:
  enum class Life : std::uint8_t { goes_on, ended_by_server, over };

  Attacker(World& world, WorldHost& host, const Endpoint& server, const HttpAttack& attack)
      : attack_(attack),
        draw_(world.draw().next()),
        stream_(host.network().open_stream()),
        reads_(attack.takes >= 1024) {
    static_cast<void>(host.network().connect(*stream_, server));
    heard_ = world.now();
  }

  std::string_view name() const noexcept { return attack_.name; }
  /// When it began, or was told something last: whoever reads is to be served.
  Instant heard() const noexcept { return heard_; }
  bool connected() const noexcept { return stream_->connected(); }
  std::size_t held() const noexcept { return stream_->unread() + stream_->on_the_way(); }
  WorldDraw& draw() noexcept { return draw_; }
  void reset() { stream_->reset(); }
  /// 0: none; -1: that was no answer.
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

  /// Its patience is over: whether the server has kept it. Who has not listened does so from now
  /// on, to hear whether the end is behind what was on its way.
  bool is_kept() {
    if (reads_) return true;
    listens_ = reads_ = true;
    return false;
  }
  /// More than can have been on its way.
  bool is_still_told() const noexcept { return heard_at_last_ > 64 * 1024; }

  Life step(Instant now) {
    take(now);
    const bool told = stream_->unread() == 0 && stream_->receivable() != system_error(EAGAIN);
    if (told || stream_->dead()) return Life::ended_by_server;
    if (!opened_ && !send_all(attack_.opening)) return Life::goes_on;
    if (!std::exchange(opened_, true)) {
      if (attack_.then == Then::resets) return Life::over;
      if (attack_.then == Then::half_closes) static_cast<void>(stream_->shut_down_sending());
      return Life::goes_on;
    }
    const bool in_time = !attack_.slowly || draw_.happens(0.2);
    if (!attack_.more.empty() && attack_.then == Then::stays && in_time) {
      static_cast<void>(send_all(attack_.more));
    }
    return Life::goes_on;
  }

 private:
  /// Whether all of it has left, from where the last call has stopped.
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
    const std::size_t most = reads_ ? room.size() : std::min(room.size(), attack_.takes);
    if (most == 0) return;
    const auto count = stream_->receive(std::as_writable_bytes(std::span(room)).first(most));
    constexpr std::size_t beginning_max = 16;
    if (!count) return;
    if (reads_) heard_ = now;
    if (listens_) heard_at_last_ += *count;
    beginning_.append(room.data(), std::min(*count, beginning_max - beginning_.size()));
  }

  const HttpAttack& attack_;
  WorldDraw draw_;
  std::unique_ptr<MemoryStream> stream_;
  Instant heard_{};
  std::size_t sent_ = 0;  // of the opening, then of what follows
  bool opened_ = false;
  bool reads_;            // as fast as it is asked to
  bool listens_ = false;  // only since its patience is over
  std::size_t heard_at_last_ = 0;
  std::string beginning_;  // of what was received
};

Attackers::Attackers(World& world, WorldHost& host, const Endpoint& server,
                     const AttackersOptions& options)
    : world_(world), host_(host), server_(server), options_(options) {}

Attackers::~Attackers() = default;

void Attackers::begin() {
  attackers_.resize(options_.count);
  for (std::size_t place = 0; place < attackers_.size(); ++place) {
    follow(place);
    step(place);
  }
}

void Attackers::end() {
  for (auto& each : attackers_) {
    if (each != nullptr) each->reset();
    each.reset();
  }
}

void Attackers::follow(std::size_t place) {
  const auto& kinds = every_http_attack();
  attackers_[place] =
      std::make_unique<Attacker>(world_, host_, server_, kinds[world_.draw().below(kinds.size())]);
}

void Attackers::step(std::size_t place) {
  if (attackers_[place] == nullptr) return;
  Attacker& attacker = *attackers_[place];
  switch (attacker.step(world_.now())) {
    case Attacker::Life::goes_on:
      if ((world_.now() > after(attacker.heard(), options_.patience) && attacker.is_kept()) ||
          attacker.is_still_told()) {
        fault_ = "neither answered nor closed: " + std::string(attacker.name());
      }
      break;
    case Attacker::Life::ended_by_server:
      if (attacker.connected()) ++ended_;
      judge(attacker);
      follow(place);
      break;
    case Attacker::Life::over:
      attacker.reset();
      follow(place);
      break;
  }
  const Duration pause = attackers_[place]->draw().between(std::chrono::milliseconds(2),
                                                           std::chrono::milliseconds(60));
  world_.at(pause, [this, place] { step(place); });
}

void Attackers::judge(const Attacker& attacker) {
  const int status = attacker.status();
  if (status == 0) return;
  ++answers_[status];
  if (std::ranges::find(right_statuses, status) != right_statuses.end()) return;
  fault_ = std::string(attacker.name()) + ": answered by " + std::to_string(status);
}

std::size_t Attackers::answers(int status) const {
  const auto found = answers_.find(status);
  return found == answers_.end() ? 0 : found->second;
}

std::size_t Attackers::held() const {
  std::size_t held = 0;
  for (const auto& each : attackers_) {
    if (each != nullptr) held += each->held();
  }
  return held;
}

}  // namespace weir::simulate

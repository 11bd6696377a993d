#include "weir/sim/detail/handover_connection.hpp"

#include <cerrno>
#include <utility>

#include "weir/sim/host.hpp"
#include "weir/testing/world_place.hpp"

namespace weir {

bool WorldLine::say(Side from, Letter letter) {
  End& to = at(other(from));
  if (at(from).gone || to.gone || to.deaf) return false;
  to.letters.push_back(std::move(letter));
  if (to.who != nullptr) to.who->call();
  return true;
}

std::optional<WorldLine::Letter> WorldLine::hear(Side side) {
  std::deque<Letter>& letters = at(side).letters;
  if (letters.empty()) return std::nullopt;
  std::optional<Letter> first = std::move(letters.front());
  letters.pop_front();
  return first;
}

void WorldLine::leave(Side side) {
  End& own = at(side);
  own.who = nullptr;
  own.letters.clear();  // and the sockets in them
  if (std::exchange(own.gone, true)) return;
  if (WorldPlace* const who = at(other(side)).who; who != nullptr) who->call();
}

WorldTalk::WorldTalk(WorldPlace& place, std::shared_ptr<WorldLine> line, WorldLine::Side side)
    : place_(place), line_(std::move(line)), side_(side) {
  line_->join(side_, place_);
  place_.add(*this);
}

WorldTalk::~WorldTalk() {
  leave();
  place_.remove(*this);
}

HandoverTalk::Heard WorldTalk::hear(Instant until) {
  for (;;) {
    place_.begin_step();
    if (place_.take_ring()) return Heard::interruption;
    if (auto letter = line_->hear(side_)) return open(std::move(*letter));
    if (line_->ended(side_)) return Heard::end;
    if (place_.host().now() >= until) return Heard::nothing;
    place_.wait_for_call(until);
  }
}

/// As with packets, descriptors for which there is no room are lost, and the message with them.
HandoverTalk::Heard WorldTalk::open(WorldLine::Letter letter) {
  sockets_.clear();
  for (std::shared_ptr<MemoryEndpoint>& each : letter.sockets) {
    const auto number = place_.host().descriptors().add(std::move(each));
    if (!number) return Heard::garbage;
    sockets_.emplace_back(place_.host(), *number);
  }
  message_ = std::move(letter.message);
  return Heard::message;
}

Result<> WorldTalk::send(const HandoverMessage& message, std::span<const int> sockets) {
  place_.begin_step();
  if (place_.dead()) return fail(system_error(EPIPE));
  WorldLine::Letter letter{message};
  for (const int each : sockets) letter.sockets.push_back(place_.host().descriptors().share(each));
  if (!line_->say(side_, std::move(letter))) return fail(system_error(EPIPE));
  return {};
}

}  // namespace weir

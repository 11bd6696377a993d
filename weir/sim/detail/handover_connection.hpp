// What the processes of one simulated machine say to each other when one takes over from another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weir/loop/handover_talk.hpp"
#include "weir/testing/network/detail/memory_endpoint.hpp"

namespace weir {

class WorldPlace;

/// The connection of an older and a newer process. What was said is there at once, as on a Unix
/// socket; the other one's thread takes its time. Threads: one at a time.
class WorldLine {
 public:
  enum class Side : std::uint8_t { older, newer };
  struct Letter {
    HandoverMessage message;
    std::vector<std::shared_ptr<MemoryEndpoint>> sockets = {};  ///< one for each that it names
  };

  /// Who is called when there is something to hear.
  void join(Side side, WorldPlace& who) noexcept { at(side).who = &who; }
  /// False: the other one has gone, or does not listen.
  bool say(Side from, Letter letter);
  /// What was said to it first; nullopt: nothing.
  std::optional<Letter> hear(Side side);
  /// Whether nobody can say anything to it any more.
  bool ended(Side side) const noexcept {
    return at(side).gone || at(side).deaf || at(other(side)).gone;
  }
  /// From now on nothing can be said to it.
  void stop_listening(Side side) noexcept { at(side).deaf = true; }
  void leave(Side side);

 private:
  struct End {
    WorldPlace* who = nullptr;
    std::deque<Letter> letters;
    bool deaf = false;
    bool gone = false;
  };
  static Side other(Side side) noexcept { return side == Side::older ? Side::newer : Side::older; }
  End& at(Side side) noexcept { return ends_[static_cast<std::size_t>(side)]; }
  const End& at(Side side) const noexcept { return ends_[static_cast<std::size_t>(side)]; }

  std::array<End, 2> ends_;
};

/// One side of it; see HandoverTalk. Whoever is dead says nothing and hears the end.
class WorldTalk final : public HandoverTalk {
 public:
  WorldTalk(WorldPlace& place, std::shared_ptr<WorldLine> line, WorldLine::Side side);
  ~WorldTalk() override;
  WorldTalk(const WorldTalk&) = delete;
  WorldTalk& operator=(const WorldTalk&) = delete;

  /// All processes of a machine are one user's.
  std::string distrust() override { return {}; }
  Heard hear(Instant until) override;
  void stop_listening() noexcept override { line_->stop_listening(side_); }
  void leave() { line_->leave(side_); }

 private:
  Result<> send(const HandoverMessage& message, std::span<const int> sockets) override;
  Heard open(WorldLine::Letter letter);

  WorldPlace& place_;
  std::shared_ptr<WorldLine> line_;
  WorldLine::Side side_;
};

}  // namespace weir

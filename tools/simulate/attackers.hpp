// Peers that mean a server ill, on a host of a World.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/testing/http_attacks.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"
#include "weir/sim/world.hpp"

namespace weir::simulate {

struct AttackersOptions {
  std::size_t count = 70;  ///< at once
  /// How long the server may say nothing to one that stays, and reads what it is told.
  Duration patience = std::chrono::seconds(5);
};

/// Each is of a kind that is drawn; whoever is at its end is followed by another. They keep next to
/// nothing of what they are told, so that their memory does not hide the server's.
/// What must hold: the server has an answer for each, one of those for such as they are, or closes.
/// Threads: those of one World. Lifetime: until its World has run.
class Attackers {
 public:
  Attackers(World& world, WorldHost& host, const Endpoint& server, const AttackersOptions& options);
  ~Attackers();
  Attackers(const Attackers&) = delete;
  Attackers& operator=(const Attackers&) = delete;

  /// For an event of the World.
  void begin();
  /// Those that are there reset, and nobody follows.
  void end();

  /// Connections that the server has ended.
  std::size_t ended() const noexcept { return ended_; }
  /// How often an answer with this status came first.
  std::size_t answers(int status) const;
  /// What is on its way on their connections, which is the network's memory.
  std::size_t held() const;
  /// What did not hold, for World::check().
  const std::string& fault() const noexcept { return fault_; }

 private:
  class Attacker;

  void follow(std::size_t place);
  void step(std::size_t place);
  void judge(const Attacker& attacker);

  World& world_;
  WorldHost& host_;
  Endpoint server_;
  AttackersOptions options_;
  std::vector<std::unique_ptr<Attacker>> attackers_;  // by place; nullptr: nobody any more
  std::map<int, std::size_t> answers_;
  std::size_t ended_ = 0;
  std::string fault_;
};

}  // namespace weir::simulate

// Simulates hostile peers of a server, on one host of a World.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http_testing/detail/http_attacks.hpp"
#include "weir/sim/world.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"

namespace weir::simulate {

struct AttackersOptions {
  std::size_t count = 70;  ///< connections at the same time
  /// Longest time without data from the server, for an attacker that stays and reads.
  Duration wait_timeout = std::chrono::seconds(5);
};

/// Each attacker has a random kind of attack, and a new attacker replaces it when it ends.
/// Attackers store almost nothing of what they receive, so that their memory does not hide the
/// server's.
/// The test requires that the server answers each attacker with a suitable status, or closes.
/// Threads: those of one World.
/// Lifetime: until its World has run.
class Attackers {
 public:
  Attackers(sim::World& world, sim::Host& host, const Endpoint& server,
            const AttackersOptions& options);
  ~Attackers();
  Attackers(const Attackers&) = delete;
  Attackers& operator=(const Attackers&) = delete;

  /// Begins the attacks. The caller schedules it as an event of the World.
  void begin();
  /// Resets all attackers without replacement.
  void end();

  /// Returns the number of connections that the server has ended.
  std::size_t ended() const noexcept { return ended_; }
  /// Returns how often the first response had this status.
  std::size_t answers(int status) const;
  /// Returns the bytes in flight on the attackers' connections, which are memory of the network.
  std::size_t in_flight_bytes() const;
  /// Returns the violation for sim::World::check(), or an empty text.
  const std::string& violation() const noexcept { return violation_; }

 private:
  class Attacker;

  void start_next(std::size_t place);
  void step(std::size_t place);
  void check_response(const Attacker& attacker);

  sim::World& world_;
  sim::Host& host_;
  Endpoint server_;
  AttackersOptions options_;
  std::vector<std::unique_ptr<Attacker>> attackers_;  // nullptr: no attacker any more
  std::map<int, std::size_t> answers_;
  std::size_t ended_ = 0;
  std::string violation_;
};

}  // namespace weir::simulate

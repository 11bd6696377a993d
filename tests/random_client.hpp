// Clients that come and go as they like: they ask in pipelines, stall, end in the middle, reset,
// and judge whatever they are answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/client.hpp"
#include "weir/os/address.hpp"

namespace weir::tests {

/// One request that a wanderer may make, and the body that a 200 has.
struct WandererAsks {
  std::string request;
  std::string body;
  bool may_be_missing = false;  ///< its route comes and goes: 404 is right too
};

/// What all wanderers of a thread have done.
struct WandererCounts {
  std::size_t clients = 0;
  std::size_t refused = 0;   ///< there was no server at that moment
  std::size_t requests = 0;  ///< that were sent, perhaps in part
  std::size_t answers = 0;   ///< that came, whole and right
  std::vector<std::string> faults;

  WandererCounts& operator+=(const WandererCounts& other);
};

/// The clients of one thread. Answers come in the order of the requests, each of them is right, and
/// none is cut but by the end of its connection; how many come is the server's business, which may
/// drain, stop, or have been left.
/// For the routes of the stress test: /number, /slow, /lines, /echo and /course.
class Wanderer {
 public:
  Wanderer(const os::Address& server, std::uint32_t seed) : server_(server), random_(seed) {}
  /// One more client, from its beginning to its end, or until it stalls: then it is left as it is,
  /// for some clients more. False where there was no server.
  bool send_one();
  const WandererCounts& counts() const noexcept { return counts_; }

 private:
  struct Stalled {
    Client client;
    std::vector<WandererAsks> asked;
  };

  std::size_t below(std::size_t end) { return random_() % end; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  WandererAsks choose();
  void send(Client& client, std::string_view text);
  void finish(Client client, const std::vector<WandererAsks>& asked);
  void judge(const std::vector<WandererAsks>& asked, Client& client);

  os::Address server_;
  std::minstd_rand random_;
  std::vector<Stalled> stalled_;
  WandererCounts counts_;
};

}  // namespace weir::tests

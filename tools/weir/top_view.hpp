// The data that `weir top` reads from the admin pages of a service, and their picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::top {

// The members that are shown of the pages' JSON.

struct Finding {
  std::string finding;
};
struct Summary {
  double busy = 0;
  double requests_per_second = 0;
  std::uint64_t connections = 0;
  std::uint64_t slow_turns = 0;
  std::optional<std::uint64_t> resident_bytes;
};
struct Overview {
  std::string title;
  std::vector<Finding> findings;
  Summary summary;
};

struct Core {
  unsigned core = 0;
  double busy = 0;
  std::string state;
  double requests_per_second = 0;
  double system_calls_per_second = 0;
  std::uint64_t streams = 0;
  std::uint64_t slow_turns = 0;
};
struct Cores {
  std::vector<Core> cores;
};

struct Pool {
  std::string name;
  std::string state;
  std::uint64_t size = 0;
  std::uint64_t running = 0;
  std::uint64_t queued = 0;
  std::string reason;
};
struct Pools {
  std::vector<Pool> pools;
};

struct SlowTurn {
  std::string cause;
  std::uint64_t turns = 0;
  std::uint64_t recent = 0;
  double longest_seconds = 0;
};
struct SlowTurnList {
  std::vector<SlowTurn> slow_turns;
};

struct Route {
  std::string route;
  double requests_per_second = 0;
  std::optional<double> p50_seconds;
  std::optional<double> p99_seconds;
};
struct Routes {
  std::vector<Route> routes;
};

/// The data of all pages. A part that the service does not have is missing.
struct Snapshot {
  std::string error;  ///< why there is no answer; empty if there is one
  Overview overview;
  Cores cores;
  std::optional<Routes> routes;
  Pools pools;
  SlowTurnList slow_turns;
};

/// The size of a terminal in characters, and if it shows colours.
struct Screen {
  std::size_t columns = 80;
  std::size_t lines = 24;
  bool colours = false;
};

/// Returns the picture in at most `screen.lines` lines, each with at most `screen.columns`
/// characters and a newline. Control characters of the service become question marks.
std::string draw(const Snapshot& snapshot, const Screen& screen);

}  // namespace weir::top

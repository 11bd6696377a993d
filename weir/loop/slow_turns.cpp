#include "weir/loop/slow_turns.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "weir/os/symbol.hpp"

namespace weir {
namespace {

// Of templates within templates; the beginning says what it is.
constexpr std::size_t name_max = 160;

std::string name_of(const TurnPlace& place) {
  if (!place.name.empty()) return place.name;
  if (place.function == nullptr) return "no one thing was seen to take long";
  std::string name = os::function_at(place.function);
  if (name.size() > name_max) name.replace(name_max, name.npos, "...");
  return name;
}

}  // namespace

SlowTurns::Known* SlowTurns::find(const TurnPlace& place) {
  const auto found = std::ranges::find(known_, place, &Known::place);
  return found == known_.end() ? nullptr : &*found;
}

std::string SlowTurns::add(const TurnPlace& place, Duration took) {
  static const TurnPlace others{.name = "others"};
  const std::lock_guard lock(mutex_);
  Known* known = find(place);
  if (known == nullptr) {
    const TurnPlace& kept = known_.size() < places_max ? place : others;
    known = find(kept);
    if (known == nullptr) known = &known_.emplace_back(Known{kept, {.name = name_of(kept)}});
  }
  ++known->seen.turns;
  known->seen.longest = std::max(known->seen.longest, took);
  return known->seen.turns == 1 ? known->seen.name : std::string();
}

std::vector<SlowPlace> SlowTurns::places() const {
  std::vector<SlowPlace> places;
  {
    const std::lock_guard lock(mutex_);
    for (const Known& each : known_) places.push_back(each.seen);
  }
  std::ranges::sort(places, [](const SlowPlace& one, const SlowPlace& other) {
    return one.turns != other.turns ? one.turns > other.turns : one.name < other.name;
  });
  return places;
}

}  // namespace weir

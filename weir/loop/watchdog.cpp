#include "weir/loop/watchdog.hpp"

#include <utility>

#include "weir/loop/loop.hpp"

namespace weir {

Result<Watchdog> Watchdog::make(Host& host, std::span<const LoopPlace> places) {
  auto event = os::open_event();
  if (!event) return fail(event.error());
  Watchdog watchdog(host, std::move(*event));
  for (const LoopPlace& place : places) watchdog.watched_.push_back({place.loop});
  return watchdog;
}

Watchdog::~Watchdog() {
  for (const Watched& each : watched_) each.loop->watch().set_watchdog(nullptr, nullptr);
}

void Watchdog::start() {
  for (const Watched& each : watched_) each.loop->watch().set_watchdog(&wake_up, this);
  rest();
}

void Watchdog::wake_up(void* self) {
  os::signal_event(static_cast<Watchdog*>(self)->woken_.get());
}

/// Whether the loop has something to do.
bool Watchdog::look_at(Watched& watched) {
  Loop& loop = *watched.loop;
  const std::uint64_t turns = loop.counters().turns.value();
  const bool in_turn = !loop.sleeps();
  if (in_turn) loop.watch().tick();
  return std::exchange(watched.turns, turns) != turns || in_turn;
}

void Watchdog::tell_of_sleep(bool sleeps) {
  for (const Watched& each : watched_) each.loop->watch().watchdog_sleeps(sleeps);
}

void Watchdog::look() {
  bool quiet = true;
  for (Watched& each : watched_) quiet = !look_at(each) && quiet;
  rest();  // from now on, and not from when it was called: ticks are never closer
  if (!quiet) {
    if (quiet_looks_ >= quiet_looks_max) tell_of_sleep(false);
    quiet_looks_ = 0;
    return;
  }
  ++quiet_looks_;
  if (quiet_looks_ == quiet_looks_max) {
    tell_of_sleep(true);
  } else if (quiet_looks_ > quiet_looks_max) {
    // A loop that had not seen that it is to wake it would have been seen by now.
    next_ = never;
  }
}

void Watchdog::wake() {
  os::drain_event(woken_.get());
  tell_of_sleep(false);
  quiet_looks_ = 0;
  rest();
}

}  // namespace weir

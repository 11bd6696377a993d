#include "weir/loop/detail/stall_detector.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/os/detail/process/symbol.hpp"

namespace weir::loop {

std::coroutine_handle<> CurrentActivity::check_and_transfer_to(
    std::coroutine_handle<> coroutine) noexcept {
  Loop::current()->stall_detector().check_part();
  set_function(function_of(coroutine));
  return coroutine;
}

bool StallDetector::check() noexcept {
  // The ticks stay non-zero if the clock is read, so that every check runs.
  const std::uint32_t left = exact_ ? 1 : 0;
  std::uint32_t ticks = ticks_.exchange(left, std::memory_order_relaxed) & ~part_stalled;
  if (exact_) {
    const Instant now = clock_.now();
    ticks = static_cast<std::uint32_t>((now - checked_at_) / tick_length) + 1;
    checked_at_ = now;
  }
  if (ticks <= longest_) return false;
  longest_ = ticks;
  return true;
}

void StallDetector::check_part() noexcept {
  const bool part = is_part_stalled();
  const bool stalled = check();
  if (stalled) suspect_ = {CurrentActivity::function()};
  if (stalled || part) ticks_.fetch_or(part_stalled, std::memory_order_relaxed);
}

void StallDetector::notify_watchdog() noexcept {
  watchdog_sleeping_.store(false, std::memory_order_relaxed);
  if (wake_ != nullptr) wake_(watchdog_);
}

namespace {

// Limit for names of nested templates; the beginning is enough to find the function.
constexpr std::size_t name_max = 160;

std::string name_of(const StallSite& site) {
  if (!site.name.empty()) return site.name;
  if (site.function == nullptr) return "no single slow function";
  std::string name = os::function_name_at(site.function);
  if (name.size() > name_max) name.replace(name_max, name.npos, "...");
  return name;
}

}  // namespace

StallLog::Entry* StallLog::find(const StallSite& site) {
  const auto found = std::ranges::find(entries_, site, &Entry::site);
  return found == entries_.end() ? nullptr : &*found;
}

std::string StallLog::add(const StallSite& site, Duration took) {
  static const StallSite others{.name = "others"};
  const std::lock_guard lock(mutex_);
  Entry* entry = find(site);
  if (entry == nullptr) {
    const StallSite& kept = entries_.size() < sites_max ? site : others;
    entry = find(kept);
    if (entry == nullptr) entry = &entries_.emplace_back(Entry{kept, {.name = name_of(kept)}});
  }
  ++entry->summary.turns;
  entry->summary.longest = std::max(entry->summary.longest, took);
  return entry->summary.turns == 1 ? entry->summary.name : std::string();
}

std::vector<StallSummary> StallLog::summaries() const {
  std::vector<StallSummary> summaries;
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& each : entries_) summaries.push_back(each.summary);
  }
  std::ranges::sort(summaries, [](const StallSummary& one, const StallSummary& other) {
    return one.turns != other.turns ? one.turns > other.turns : one.name < other.name;
  });
  return summaries;
}

Result<Watchdog> Watchdog::make(PlatformClock& clock, std::span<const LoopPlacement> placements) {
  WEIR_TRY(auto event, os::open_event());
  Watchdog watchdog(clock, std::move(event));
  for (const LoopPlacement& each : placements) watchdog.watched_.push_back({each.loop});
  return watchdog;
}

Watchdog::~Watchdog() {
  for (const WatchedLoop& each : watched_)
    each.loop->stall_detector().set_watchdog(nullptr, nullptr);
}

void Watchdog::start() {
  for (const WatchedLoop& each : watched_) each.loop->stall_detector().set_watchdog(&wake_up, this);
  schedule_next();
}

void Watchdog::wake_up(void* self) {
  os::signal_event(static_cast<Watchdog*>(self)->wake_event_.get());
}

/// Adds a tick if the loop is in a turn.
/// Returns: true if the loop has had work since the last check.
bool Watchdog::check_as(WatchedLoop& watched) {
  Loop& loop = *watched.loop;
  const std::uint64_t turns = loop.counters().turns.value();
  const bool in_turn = !loop.is_sleeping();
  if (in_turn) loop.stall_detector().tick();
  return std::exchange(watched.turns, turns) != turns || in_turn;
}

void Watchdog::set_sleeping(bool sleeps) {
  for (const WatchedLoop& each : watched_)
    each.loop->stall_detector().set_watchdog_sleeping(sleeps);
}

void Watchdog::check() {
  bool idle = true;
  for (WatchedLoop& each : watched_) idle = !check_as(each) && idle;
  schedule_next();  // counted from now and not from the due time: ticks are never closer
  if (!idle) {
    if (idle_checks_ >= idle_checks_max) set_sleeping(false);
    idle_checks_ = 0;
    return;
  }
  ++idle_checks_;
  if (idle_checks_ == idle_checks_max) {
    set_sleeping(true);
  } else if (idle_checks_ > idle_checks_max) {
    // A loop that had not seen the flag at the first idle check would have been seen in a turn by
    // now.
    next_ = never;
  }
}

void Watchdog::wake() {
  os::drain_event(wake_event_.get());
  set_sleeping(false);
  idle_checks_ = 0;
  schedule_next();
}

}  // namespace weir::loop

#include "weir/runtime/pool_watch.hpp"

#include <algorithm>

namespace weir {
namespace {

constexpr std::size_t states_max = 16;  // of each kind
constexpr unsigned still_looks = 8;

}  // namespace

PoolWatch::Seen PoolWatch::look(std::span<WatchedThread* const> threads) {
  moved_.clear();
  still_.clear();
  for (WatchedThread* const each : threads) {
    const Duration now = each->thread->cpu_time();
    const bool moved = now != each->cpu_time;
    each->cpu_time = now;
    each->looks_still = moved ? 0 : each->looks_still + 1;
    (moved ? moved_ : still_).push_back(each);
  }
  ++looks_;
  states_known_ = false;
  const double running = running_among(moved_) + running_among(still_);
  if (threads.empty()) return {};
  return {running, states_known_ ? SizeEvidence::thread_states : SizeEvidence::cpu_clocks};
}

double PoolWatch::running_among(std::span<WatchedThread* const> threads) {
  if (threads.empty()) return 0;
  const std::size_t count = std::min(threads.size(), states_max);
  // Evenly spread, beginning elsewhere each time.
  const std::size_t stride = threads.size() / count;
  std::size_t running = 0;
  for (std::size_t i = 0; i < count; ++i) {
    WatchedThread& each = *threads[(looks_ + i * stride) % threads.size()];
    const os::ThreadState state = each.thread->state();
    if (state != os::ThreadState::unknown) states_known_ = true;
    const bool runs = state == os::ThreadState::unknown ? each.looks_still < still_looks
                                                        : state == os::ThreadState::running;
    // relaxed: it guards nothing, and being late by a moment does no harm.
    running += runs || !each.in_work.load(std::memory_order_relaxed) ? 1 : 0;
  }
  return static_cast<double>(running) * static_cast<double>(threads.size()) /
         static_cast<double>(count);
}

}  // namespace weir

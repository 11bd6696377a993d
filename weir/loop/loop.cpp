#include "weir/loop/loop.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace weir {
namespace {

// Limit of runnables per turn before the loop looks at the backend and the timers. Coroutines that
// wake each other forever then cannot keep I/O out.
constexpr unsigned runs_per_turn = 4096;
// Runnables after which the loop takes its inbox, so that a busy core answers other cores soon. A
// look costs one load of memory that is written only when a runnable arrives.
constexpr unsigned runs_per_inbox_check = 16;

}  // namespace

constinit thread_local Loop* Loop::current_ = nullptr;

Loop::Loop(loop::Platform& platform, const Options& options)
    : platform_(platform),
      destroy_queue_(loop::DestroyQueue::make(*this)),
      now_(platform.now()),
      timers_(now_),
      own_group_(options.group == nullptr ? std::make_unique<loop::LoopGroup>() : nullptr),
      group_(options.group == nullptr ? own_group_.get() : options.group),
      core_(options.core),
      stall_detector_(platform) {
  if (own_group_ != nullptr) own_group_->set_loops({this});
}

Result<std::unique_ptr<Loop>> Loop::make(loop::Platform& platform, const Options& options) {
  std::unique_ptr<Loop> loop(new Loop(platform, options));
  WEIR_TRY(auto chosen, platform.make_backend(options.backend, loop->ready_));
  loop->backend_ = std::move(chosen.backend);
  loop->backend_reason_ = std::move(chosen.reason);
  return loop;
}

Loop::~Loop() {
  while (producers_in_flight_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  assert(drain_observers_.empty() && accept_observers_.empty());
  Loop* const before = std::exchange(current_, this);
  const ScopedBlockPool blocks(blocks_);
  destroy_queue_.close();
  backend_.reset();
  current_ = before;
}

void Loop::take_inbox() noexcept {
  loop::RunQueue arrived = inbox_.take();
  std::uint64_t count = 0;
  while (loop::Runnable* runnable = arrived.pop()) {
    ++count;
    ready_.push(*runnable);
  }
  counters_.received.add(count);
  counters_.inbox_depth_max.update_max(count);
}

bool Loop::run_ready() {
  unsigned ran = 0;
  while (ran < runs_per_turn) {
    if (ran % runs_per_inbox_check == 0 && !inbox_.empty()) take_inbox();
    loop::Runnable* runnable = ready_.pop();
    if (runnable == nullptr) break;
    loop::CurrentActivity::begin(*runnable);
    runnable->run();
    if (stall_detector_.ticked()) [[unlikely]]
      stall_detector_.check_runnable();
    ++ran;
  }
  loop::CurrentActivity::end();
  if (ran != 0) counters_.ran.add(ran);
  return ran != 0;
}

bool Loop::has_work() const noexcept {
  return !ready_.empty() || !next_turn_.empty() || !inbox_.empty() ||
         timers_.next() <= platform_.now() || stopping();
}

void Loop::wait(Instant until) {
  if (!ready_.empty() || stopping()) until = Instant::min();
  until = std::min(until, timers_.next());
  if (blocks_.surplus_bytes() > 0) until = std::min(until, trim_at_);
  if (until <= now_) {
    backend_->wait(Instant::min());
  } else if (inbox_.prepare_to_sleep()) {
    backend_->wait(until);
    inbox_.woke();
  } else {
    backend_->wait(Instant::min());
  }
}

bool Loop::turn(Instant until) {
  Loop* const before = std::exchange(current_, this);
  const ScopedBlockPool blocks(blocks_);
  stall_detector_.wake_watchdog();
  const Instant started = now_ = platform_.now();
  blocks_.set_time(started);
  const loop::StallDetector::Turn watched(stall_detector_, started);
  bool did = run_ready();
  while (loop::Runnable* const runnable = next_turn_.pop()) ready_.push(*runnable);
  now_ = platform_.now();
  if (!turn_observers_.empty()) {
    notify_turn_observers();
    now_ = platform_.now();
  }
  const Instant ran = now_;
  if (ran - started > slow_turn) report_slow_turn(ran - started);
  counters_.run_time.add(static_cast<std::uint64_t>((ran - started).count()));
  wait(until);
  now_ = platform_.now();
  counters_.wait_time.add(static_cast<std::uint64_t>((now_ - ran).count()));
  if (timers_.next() <= now_) {
    timers_.advance(now_);
    did = true;
  }
  counters_.turns.add();
  current_ = before;
  return did || !ready_.empty() || !next_turn_.empty();
}

void Loop::notify_turn_observers() {
  detail::List<TurnObserver> observers;
  observers.splice_back(turn_observers_);
  while (TurnObserver* observer = observers.pop_front()) observer->function_(*observer);
}

void Loop::report_slow_turn(Duration took) {
  counters_.slow_turns.add();
  try {
    const std::string site = group_->stall_log().add(stall_detector_.suspect(), took);
    if (site.empty()) return;
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
    platform_.log("weir: core " + std::to_string(core_) +
                  ": slow loop turn: " + std::to_string(milliseconds) + " ms: " + site +
                  " (logged once; see Runtime::report())");
  } catch (const std::bad_alloc&) {
    platform_.log("weir: slow loop turn, location unknown (out of memory)");
  }
}

bool Loop::turn_and_trim(Instant until) {
  if (trim_at_ == never) trim_at_ = after(platform_.now(), trim_interval);
  // The pool has the fewest free blocks between turns: operations that have finished hold them.
  unneeded_ = std::min(unneeded_, blocks_.surplus_bytes());
  const bool worked = turn(until);
  if (now_ < trim_at_) return worked;
  unneeded_ = blocks_.trim(unneeded_);
  if (unneeded_ > 0) return worked;  // the next turn goes on
  trim_at_ = after(now_, trim_interval);
  unneeded_ = blocks_.surplus_bytes();
  return worked;
}

void Loop::run() {
  while (!stopping()) turn_and_trim();
  trim_at_ = never;
  unneeded_ = 0;
}

void Loop::stop() noexcept {
  // Set before the wake-up, which no wait() misses: the turn after it finds the flag.
  stopping_.store(true, std::memory_order_release);
  backend_->wake();
}

void Loop::drain() {
  if (std::exchange(draining_, true)) return;
  detail::List<DrainObserver> observers;
  observers.splice_back(drain_observers_);
  while (DrainObserver* observer = observers.pop_front()) observer->function_(*observer);
}

void Loop::resume_accepting() {
  if (!std::exchange(accepting_paused_, false)) return;
  detail::List<AcceptObserver> observers;
  observers.splice_back(accept_observers_);
  while (AcceptObserver* observer = observers.pop_front()) observer->function_(*observer);
}

}  // namespace weir

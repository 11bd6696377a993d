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

// One turn runs at most this many before it looks at the backend and the timers again, so that
// coroutines which wake each other for ever cannot keep input out.
constexpr unsigned runs_per_turn = 4096;
// And after so many it takes what has arrived in its inbox meanwhile, so that a core that is busy
// answers others soon. A look costs one load, of memory that is written only when something comes.
constexpr unsigned runs_per_look = 16;

}  // namespace

constinit thread_local Loop* Loop::current_ = nullptr;

Loop::Loop(Host& host, const Options& options)
    : host_(host),
      homecoming_(Homecoming::of(*this)),
      now_(host.now()),
      timers_(now_),
      own_group_(options.group == nullptr ? std::make_unique<LoopGroup>() : nullptr),
      group_(options.group == nullptr ? own_group_.get() : options.group),
      core_(options.core),
      watch_(host) {
  if (own_group_ != nullptr) own_group_->set_loops({this});
}

Result<std::unique_ptr<Loop>> Loop::make(Host& host, const Options& options) {
  std::unique_ptr<Loop> loop(new Loop(host, options));
  auto chosen = host.make_backend(options.backend, loop->ready_);
  if (!chosen) return fail(chosen.error());
  loop->backend_ = std::move(chosen->backend);
  loop->backend_reason_ = std::move(chosen->reason);
  return loop;
}

Loop::~Loop() {
  while (outsiders_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  assert(drain_watchers_.empty() && admission_watchers_.empty());
  Loop* const before = std::exchange(current_, this);
  const BlockPool::Use blocks(blocks_);
  homecoming_.close();
  backend_.reset();
  current_ = before;
}

void Loop::take_inbox() noexcept {
  RunQueue arrived = inbox_.take();
  std::uint64_t count = 0;
  while (Runnable* runnable = arrived.pop()) {
    ++count;
    ready_.push(*runnable);
  }
  counters_.received.add(count);
  counters_.inbox_most.raise_to(count);
}

bool Loop::run_ready() {
  unsigned ran = 0;
  while (ran < runs_per_turn) {
    if (ran % runs_per_look == 0 && !inbox_.empty()) take_inbox();
    Runnable* runnable = ready_.pop();
    if (runnable == nullptr) break;
    Running::begin(*runnable);
    runnable->run();
    if (watch_.ticked()) [[unlikely]]
      watch_.look_at_all();
    ++ran;
  }
  Running::end();
  if (ran != 0) counters_.ran.add(ran);
  return ran != 0;
}

bool Loop::has_work() const noexcept {
  return !ready_.empty() || !inbox_.empty() || timers_.next() <= host_.now() || stopping();
}

void Loop::wait(Instant until) {
  if (!ready_.empty() || stopping()) until = Instant::min();
  until = std::min(until, timers_.next());
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
  const BlockPool::Use blocks(blocks_);
  watch_.wake_watchdog();
  const Instant started = now_ = host_.now();
  const TurnWatch::Turn watched(watch_, started);
  bool did = run_ready();
  const Instant ran = host_.now();
  if (ran - started > slow_turn) report_slow_turn(ran - started);
  counters_.run_time.add(static_cast<std::uint64_t>((ran - started).count()));
  now_ = ran;
  wait(until);
  now_ = host_.now();
  counters_.wait_time.add(static_cast<std::uint64_t>((now_ - ran).count()));
  if (timers_.next() <= now_) {
    timers_.advance(now_);
    did = true;
  }
  counters_.turns.add();
  current_ = before;
  return did || !ready_.empty();
}

void Loop::report_slow_turn(Duration took) {
  counters_.slow_turns.add();
  try {
    const std::string place = group_->slow_turns().add(watch_.suspect(), took);
    if (place.empty()) return;
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
    host_.log("weir: core " + std::to_string(core_) + ": a turn took " +
              std::to_string(milliseconds) + " ms: " + place +
              " (told once; see Runtime::report())");
  } catch (const std::bad_alloc&) {
    host_.log("weir: a turn took long, and there is no memory to say which");
  }
}

void Loop::run() {
  while (!stopping()) turn();
}

void Loop::stop() noexcept {
  // Before the wake-up, which no wait() misses: the turn after it finds the flag.
  stopping_.store(true, std::memory_order_release);
  backend_->wake();
}

void Loop::drain() {
  if (std::exchange(draining_, true)) return;
  List<DrainWatcher> told;
  told.splice_back(drain_watchers_);
  while (DrainWatcher* watcher = told.pop_front()) watcher->asked_(*watcher);
}

void Loop::admit() {
  if (!std::exchange(holding_, false)) return;
  List<AdmissionWatcher> told;
  told.splice_back(admission_watchers_);
  while (AdmissionWatcher* watcher = told.pop_front()) watcher->admitted_(*watcher);
}

}  // namespace weir

#include "weir/testing/world_watch.hpp"

#include <cstdio>
#include <cstdlib>

namespace weir {
namespace {

constexpr auto pause = std::chrono::milliseconds(50);

}  // namespace

WorldWatch::~WorldWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ending_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WorldWatch::call_begins() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { look_again_and_again(); });
  ++calls_;
  calling_ = os::ThreadProbe::of_this_thread();
}

void WorldWatch::call_ends() {
  const std::lock_guard lock(mutex_);
  calling_.reset();
}

void WorldWatch::look_again_and_again() {
  std::uint64_t seen = 0;
  Duration used{};
  Duration asleep{};
  std::unique_lock lock(mutex_);
  while (!ending_.wait_for(lock, pause, [this] { return ends_; })) {
    if (!calling_) continue;
    const Duration uses = calling_->cpu_time();
    const bool sleeps = calling_->state() == os::ThreadState::blocked;
    asleep = sleeps && seen == calls_ && uses == used ? asleep + pause : Duration{};
    seen = calls_;
    used = uses;
    if (asleep >= asleep_max_) report();
  }
}

void WorldWatch::report() const {
  std::fprintf(stderr,
               "weir: not supported in a World: a function in a blocking pool waits, for another "
               "one perhaps; it has one thread for all.\nagain by: %s\n",
               replay_.c_str());
  std::abort();
}

}  // namespace weir

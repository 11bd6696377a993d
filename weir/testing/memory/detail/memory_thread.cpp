// The simulated thread: each step is an event of the clock.
#include "weir/testing/memory/detail/memory_thread.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace weir {

MemoryThread::~MemoryThread() {
  assert(!stepping_);
  if (next_) clock_.cancel(*next_);
  end();
}

void MemoryThread::end() noexcept {
  if (std::exchange(started_, false)) --count_.running;
}

Result<> MemoryThread::start() {
  if (count_.running >= count_.max) return fail(system_error(EAGAIN));
  ++count_.running;
  started_ = true;
  step_at(after(clock_.now(), nondeterminism_.step_delay()));
  return {};
}

void MemoryThread::wake() noexcept {
  wake_pending_ = true;
  if (!started_ || stepping_) return;
  const Instant moment = after(clock_.now(), nondeterminism_.step_delay());
  if (!next_ || next_->first >= moment) step_at(moment);
}

void MemoryThread::step_at(Instant moment) {
  if (next_) clock_.cancel(*std::exchange(next_, std::nullopt));
  if (moment != never) next_ = clock_.at(moment, [this] { step(); });
}

void MemoryThread::step() {
  next_.reset();
  if (const Instant end = nondeterminism_.paused_until(); end > clock_.now()) return step_at(end);
  wake_pending_ = false;
  stepping_ = true;
  nondeterminism_.on_step_begin();
  const auto until = work_.step();
  nondeterminism_.on_step_end();
  stepping_ = false;
  if (!until) {
    end();
  } else {
    const Instant moment = wake_pending_ ? clock_.now() : std::max(*until, clock_.now());
    step_at(after(moment, nondeterminism_.step_delay()));
  }
}

}  // namespace weir

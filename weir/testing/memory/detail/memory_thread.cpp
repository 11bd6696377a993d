#include "weir/testing/memory/detail/memory_thread.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace weir {

MemoryThread::~MemoryThread() {
  assert(!stepping_);
  if (next_) clock_.forget(*next_);
  end();
}

void MemoryThread::end() noexcept {
  if (std::exchange(started_, false)) --count_.running;
}

Result<> MemoryThread::start() {
  if (count_.running >= count_.max) return fail(system_error(EAGAIN));
  ++count_.running;
  started_ = true;
  step_at(after(clock_.now(), chance_.step_time()));
  return {};
}

void MemoryThread::wake() noexcept {
  called_ = true;
  if (!started_ || stepping_) return;
  const Instant moment = after(clock_.now(), chance_.step_time());
  if (!next_ || next_->first >= moment) step_at(moment);
}

void MemoryThread::step_at(Instant moment) {
  if (next_) clock_.forget(*std::exchange(next_, std::nullopt));
  if (moment != never) next_ = clock_.at(moment, [this] { step(); });
}

void MemoryThread::step() {
  next_.reset();
  called_ = false;
  stepping_ = true;
  chance_.step_begins();
  const auto until = work_.step();
  chance_.step_ends();
  stepping_ = false;
  if (!until) {
    end();
  } else {
    const Instant moment = called_ ? clock_.now() : std::max(*until, clock_.now());
    step_at(after(moment, chance_.step_time()));
  }
}

}  // namespace weir

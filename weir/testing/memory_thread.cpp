#include "weir/testing/memory_thread.hpp"

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
  step_at(clock_.now());
  return {};
}

void MemoryThread::wake() noexcept {
  called_ = true;
  if (started_ && !stepping_) step_at(clock_.now());
}

void MemoryThread::step_at(Instant moment) {
  if (next_) clock_.forget(*std::exchange(next_, std::nullopt));
  if (moment != never) next_ = clock_.at(moment, [this] { step(); });
}

void MemoryThread::step() {
  next_.reset();
  called_ = false;
  stepping_ = true;
  const auto until = work_.step();
  stepping_ = false;
  if (!until) {
    end();
  } else {
    step_at(called_ ? clock_.now() : *until);
  }
}

}  // namespace weir

#include "weir/runtime/messaging/detail/broadcast_ring.hpp"

#include <algorithm>
#include <array>

namespace weir::detail {

BroadcastRing::BroadcastRing(const BroadcastOptions& options)
    : slow_reader_policy_(options.slow_reader_policy),
      values_(std::max<std::size_t>(options.capacity, 1)) {}

BroadcastRing::~BroadcastRing() {
  assert(waiting_.empty() && readers() == 0 && "destroyed while there are readers");
}

Result<> BroadcastRing::publish(Value value) {
  loop::RunQueue woken;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return fail(Errc::closed);
    if (readers() == 0) return {};
    std::swap(values_[next_ % values_.size()], value);  // the old one is destroyed outside the lock
    ++next_;
    take_waiting(woken);
  }
  resume_on_owner(woken);
  return {};
}

void BroadcastRing::close() {
  loop::RunQueue woken;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    take_waiting(woken);
  }
  resume_on_owner(woken);
}

Result<> BroadcastRing::publish_without_readers() const {
  const std::lock_guard lock(mutex_);
  if (closed_) return fail(Errc::closed);
  return {};
}

/// Drops the kept values when the last reader has left; called without the mutex. The next
/// readers start after these values.
void BroadcastRing::clear_unread() noexcept {
  for (std::size_t index = 0; index < values_.size();) {
    std::array<Value, 16> unread;  // destroyed outside the lock
    const std::lock_guard lock(mutex_);
    if (readers() != 0) return;
    for (Value& each : unread) {
      if (index < values_.size()) std::swap(each, values_[index++]);
    }
  }
}

/// Takes all waiting readers off the list; the caller holds the mutex, and posts them afterwards.
void BroadcastRing::take_waiting(loop::RunQueue& woken) noexcept {
  while (BroadcastWaiter* const each = waiting_.pop_front()) woken.push(*each);
}

void BroadcastRing::resume_on_owner(loop::RunQueue& woken) noexcept {
  while (loop::Runnable* const next = woken.pop()) {
    auto& waiter = static_cast<BroadcastWaiter&>(*next);
    waiter.loop_->post_from_foreign_thread(waiter);
  }
}

// ---- Readers ------------------------------------------------------------------------------------

BroadcastReader::BroadcastReader(BroadcastRing& ring) : ring_(&ring) {
  const std::lock_guard lock(ring.mutex_);
  ring.add_reader();
  position_.next = ring.next_;
}

BroadcastReader::BroadcastReader(BroadcastReader&& other) noexcept
    : ring_(std::exchange(other.ring_, nullptr)), position_(other.position_) {
  assert(!position_.waiting && "moved while it waits");
}

void BroadcastReader::unsubscribe() noexcept {
  if (ring_ == nullptr) return;
  assert(!position_.waiting && "destroyed while it waits");
  if (position_.disconnected) return;
  {
    const std::lock_guard lock(ring_->mutex_);
    ring_->remove_reader();
  }
  ring_->clear_unread();
}

/// Does the same as take_locked(), but takes nothing.
BroadcastReader::ReadResult BroadcastReader::peek_locked() const {
  ReadResult seen;
  const bool more = position_.disconnected || position_.next < ring_->next_;
  seen.has_result = more || ring_->closed_;
  if (!more && seen.has_result) seen.error = Errc::end_of_stream;
  return seen;
}

BroadcastReader::ReadResult BroadcastReader::take_locked() {
  BroadcastRing& ring = *ring_;
  ReadResult taken;
  taken.has_result = true;
  const std::uint64_t oldest =
      ring.next_ - std::min<std::uint64_t>(ring.next_, ring.values_.size());
  if (position_.disconnected) {
    taken.error = Errc::limit_reached;
    return taken;
  }
  if (position_.next < oldest) {
    position_.missed += oldest - std::exchange(position_.next, oldest);
    if (ring.slow_reader_policy_ != SlowReaderPolicy::drop_oldest) {
      taken.error = Errc::limit_reached;
      if (ring.slow_reader_policy_ == SlowReaderPolicy::lag) return taken;
      position_.disconnected = true;
      ring.remove_reader();
      return taken;
    }
  }
  if (position_.next < ring.next_) {
    taken.value = ring.values_[position_.next++ % ring.values_.size()];
  } else if (ring.closed_) {
    taken.error = Errc::end_of_stream;
  } else {
    taken.has_result = false;
  }
  return taken;
}

BroadcastReader::ReadResult BroadcastReader::next(Mode mode, BroadcastWaiter* waiter) {
  const bool disconnected_before = position_.disconnected;
  ReadResult taken;
  {
    const std::lock_guard lock(ring_->mutex_);
    taken = mode == Mode::peek ? peek_locked() : take_locked();
    if (!taken.has_result && waiter != nullptr) ring_->waiting_.push_back(*waiter);
  }
  if (position_.disconnected && !disconnected_before) ring_->clear_unread();
  return taken;
}

BroadcastReader::ReadResult BroadcastWaiter::read(Loop& loop, BroadcastReader::Mode mode,
                                                  BroadcastWaiter* waiter) {
  const std::uint64_t before = reader_.missed();
  BroadcastReader::ReadResult taken = reader_.next(mode, waiter);
  const std::uint64_t missed = reader_.missed() - before;
  if (missed != 0) MissedValues::of(loop).count.add(missed);
  return taken;
}

bool BroadcastWaiter::start(Loop& loop, BroadcastReader::Mode mode, bool waits) {
  loop_ = &loop;
  assert(!reader_.position_.waiting && "one receive() at a time");
  taken_ = read(loop, mode, waits ? this : nullptr);
  if (taken_.has_result) {
    if (++reader_.position_.streak < BroadcastReader::streak_max) return false;
    loop.timers().start(end_of_turn_, loop.now());
  } else if (!waits) {
    return false;
  }
  // A publisher may already have posted this wait. The wait runs later, because the loop is still
  // running this function.
  reader_.position_.streak = 0;
  reader_.position_.waiting = true;
  return true;
}

bool BroadcastWaiter::poll() noexcept {
  return reader_.next(BroadcastReader::Mode::peek, nullptr).has_result &&
         ++reader_.position_.streak < BroadcastReader::streak_max;
}

bool BroadcastWaiter::withdraw() noexcept {
  if (end_of_turn_.armed()) {
    end_of_turn_.cancel();
    return true;
  }
  const std::lock_guard lock(reader_.ring_->mutex_);
  if (!linked()) return false;
  unlink();
  return true;
}

void BroadcastWaiter::EndOfTurn::on_turn_end(loop::Timer& timer) {
  BroadcastWaiter& waiter = static_cast<EndOfTurn&>(timer).waiter;
  waiter.loop_->ready(waiter);
}

bool BroadcastAwaiter::begin(const Context& context) {
  if (!start(*context.loop, mode_, !context.cancelled())) {
    if (!taken_.has_result) taken_.error = Errc::cancelled;
    return false;
  }
  // A publisher may post it meanwhile, but it runs later: this loop is busy here.
  if (!taken_.has_result) static_cast<void>(cancel_hook_.join(context.cancel));
  return true;
}

void BroadcastAwaiter::run(loop::Runnable& self) {
  auto& awaiter = static_cast<BroadcastAwaiter&>(self);
  awaiter.cancel_hook_.leave();
  awaiter.end_wait();
  // A value takes precedence over a cancellation that came after the wait was posted.
  if (!awaiter.taken_.has_result && !awaiter.taken_.error) {
    awaiter.taken_ = awaiter.read(awaiter.loop(), awaiter.mode_);
    assert(awaiter.taken_.has_result);
  }
  resume_coroutine(awaiter.handle_);
}

void BroadcastAwaiter::CancelHook::on_cancel(CancelNode& node) {
  BroadcastAwaiter& awaiter = static_cast<CancelHook&>(node).awaiter;
  // A wait that is off the list has been posted and must run before its frame may be destroyed.
  if (!awaiter.withdraw()) return;
  awaiter.taken_.error = Errc::cancelled;
  awaiter.loop().ready(awaiter);
}

Result<BroadcastRing::Value> BroadcastWait::take(BroadcastReader::Mode mode) {
  // A wait that was ready immediately has not begun, so it knows no loop.
  BroadcastReader::ReadResult taken = read(*Loop::current(), mode);
  assert(taken.has_result);
  if (taken.error) return fail(taken.error);
  return std::move(taken.value);
}

void BroadcastWait::run(loop::Runnable& self) {
  auto& wait = static_cast<BroadcastWait&>(self);
  wait.end_wait();
  wait.grant();
}

}  // namespace weir::detail

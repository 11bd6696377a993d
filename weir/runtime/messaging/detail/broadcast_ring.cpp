#include "weir/runtime/messaging/detail/broadcast_ring.hpp"

#include <algorithm>
#include <array>

namespace weir::detail {

BroadcastRing::BroadcastRing(const BroadcastOptions& options)
    : when_slow_(options.when_slow), kept_(std::max<std::size_t>(options.capacity, 1)) {}

BroadcastRing::~BroadcastRing() {
  assert(waiting_.empty() && readers() == 0 && "destroyed while there are readers");
}

Result<> BroadcastRing::publish(Value value) {
  RunQueue woken;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return fail(Errc::closed);
    if (readers() == 0) return {};
    std::swap(kept_[next_ % kept_.size()], value);  // what it held dies outside the lock
    ++next_;
    take_waiting(woken);
  }
  send_home(woken);
  return {};
}

void BroadcastRing::close() {
  RunQueue woken;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    take_waiting(woken);
  }
  send_home(woken);
}

Result<> BroadcastRing::publish_to_nobody() const {
  const std::lock_guard lock(mutex_);
  if (closed_) return fail(Errc::closed);
  return {};
}

/// Without the mutex: when the last reader has gone, nobody will read what is kept. The next ones
/// begin behind it.
void BroadcastRing::forget_unread() noexcept {
  for (std::size_t place = 0; place < kept_.size();) {
    std::array<Value, 16> unread;  // dies outside the lock
    const std::lock_guard lock(mutex_);
    if (readers() != 0) return;
    for (Value& each : unread) {
      if (place < kept_.size()) std::swap(each, kept_[place++]);
    }
  }
}

/// Under the mutex. Who is off the list is only posted, by whoever took it off.
void BroadcastRing::take_waiting(RunQueue& woken) noexcept {
  while (BroadcastWait* const wait = waiting_.pop_front()) woken.push(*wait);
}

void BroadcastRing::send_home(RunQueue& woken) noexcept {
  while (Runnable* const next = woken.pop()) {
    auto& wait = static_cast<BroadcastWait&>(*next);
    wait.loop_->post_from_outside(wait);
  }
}

// ---- Readers ------------------------------------------------------------------------------------

BroadcastReader::BroadcastReader(BroadcastRing& ring) : ring_(&ring) {
  const std::lock_guard lock(ring.mutex_);
  ring.add_reader();
  place_.next = ring.next_;
}

BroadcastReader::BroadcastReader(BroadcastReader&& other) noexcept
    : ring_(std::exchange(other.ring_, nullptr)), place_(other.place_) {
  assert(!place_.waits && "moved while it waits");
}

void BroadcastReader::leave() noexcept {
  if (ring_ == nullptr) return;
  assert(!place_.waits);
  if (place_.expelled) return;
  {
    const std::lock_guard lock(ring_->mutex_);
    ring_->remove_reader();
  }
  ring_->forget_unread();
}

/// take_locked() without effect.
BroadcastReader::Taken BroadcastReader::look_locked() const {
  Taken seen;
  const bool more = place_.expelled || place_.next < ring_->next_;
  seen.anything = more || ring_->closed_;
  if (!more && seen.anything) seen.error = Errc::end_of_stream;
  return seen;
}

BroadcastReader::Taken BroadcastReader::take_locked() {
  BroadcastRing& ring = *ring_;
  Taken taken;
  taken.anything = true;
  const std::uint64_t oldest = ring.next_ - std::min<std::uint64_t>(ring.next_, ring.kept_.size());
  if (place_.expelled) {
    taken.error = Errc::limit_reached;
    return taken;
  }
  if (place_.next < oldest) {
    place_.missed += oldest - std::exchange(place_.next, oldest);
    if (ring.when_slow_ != WhenSlow::drop_oldest) {
      taken.error = Errc::limit_reached;
      if (ring.when_slow_ == WhenSlow::lag) return taken;
      place_.expelled = true;
      ring.remove_reader();
      return taken;
    }
  }
  if (place_.next < ring.next_) {
    taken.value = ring.kept_[place_.next++ % ring.kept_.size()];
  } else if (ring.closed_) {
    taken.error = Errc::end_of_stream;
  } else {
    taken.anything = false;
  }
  return taken;
}

BroadcastReader::Taken BroadcastReader::next(Mode mode, BroadcastWait* wait) {
  const bool expelled_before = place_.expelled;
  Taken taken;
  {
    const std::lock_guard lock(ring_->mutex_);
    taken = mode == Mode::look ? look_locked() : take_locked();
    if (!taken.anything && wait != nullptr) ring_->waiting_.push_back(*wait);
  }
  if (place_.expelled && !expelled_before) ring_->forget_unread();
  return taken;
}

/// Its loop counts what was missed.
BroadcastReader::Taken BroadcastWait::look(BroadcastWait* wait) {
  const std::uint64_t before = reader_.missed();
  BroadcastReader::Taken taken = reader_.next(mode_, wait);
  loop_->count_missed(reader_.missed() - before);
  return taken;
}

bool BroadcastWait::begin(const Context& context) {
  loop_ = context.loop;
  assert(!reader_.place_.waits && "one receive() at a time");
  taken_ = look(context.cancelled() ? nullptr : this);
  if (taken_.anything) {
    if (++reader_.place_.streak < BroadcastReader::streak_max) return false;
    loop_->timers().start(end_of_turn_, loop_->now());
  } else if (context.cancelled()) {
    taken_.error = Errc::cancelled;
    return false;
  } else if (context.cancel != nullptr) {
    // Whoever posts it meanwhile, it runs later: this loop is busy here.
    context.cancel->add(cancelling_);
  }
  reader_.place_.streak = 0;
  reader_.place_.waits = true;
  return true;
}

void BroadcastWait::EndOfTurn::has_come(Timer& timer) {
  BroadcastWait& wait = static_cast<EndOfTurn&>(timer).wait;
  wait.loop_->ready(wait);
}

void BroadcastWait::run(Runnable& self) {
  auto& wait = static_cast<BroadcastWait&>(self);
  wait.cancelling_.unlink();
  wait.reader_.place_.waits = false;
  // Even if it was cancelled on its way: what has come beats that.
  if (!wait.taken_.anything && !wait.taken_.error) {
    wait.taken_ = wait.look(nullptr);
    assert(wait.taken_.anything);
  }
  go_on_with(wait.handle_);
}

void BroadcastWait::Cancelling::ask(CancelNode& node) {
  BroadcastWait& wait = static_cast<Cancelling&>(node).wait;
  {
    // Off the list it is on its way home, and has to arrive before its frame may go.
    const std::lock_guard lock(wait.reader_.ring_->mutex_);
    if (!wait.linked()) return;
    static_cast<ListNode&>(wait).unlink();
  }
  wait.taken_.error = Errc::cancelled;
  wait.loop_->ready(wait);
}

}  // namespace weir::detail

#include "weir/loop/detail/destroy_queue.hpp"

#include <thread>
#include <utility>

#include "weir/loop/loop.hpp"

namespace weir {
namespace {

/// The value of returned_ after close(). No code dereferences it.
DestroyQueue::Destroyable* closed_mark() noexcept {
  static char mark = 0;
  return reinterpret_cast<DestroyQueue::Destroyable*>(&mark);
}

}  // namespace

void DestroyQueue::add_reference() noexcept {
  // relaxed: the caller holds a reference already.
  references_.fetch_add(1, std::memory_order_relaxed);
}

void DestroyQueue::remove_reference() noexcept {
  // acq_rel: the thread that deletes the queue sees that all others have finished with it.
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void DestroyQueue::Destroyable::destroy_on_owner() noexcept {
  const Loop* const here = Loop::current();
  const bool on_owner = here != nullptr && &here->destroy_queue() == &queue_;
  if (on_owner || !queue_.push(*this)) destroy_(*this);
}

/// Returns false if the loop no longer exists.
bool DestroyQueue::push(Destroyable& item) noexcept {
  // relaxed: the exchange below publishes it if that succeeds. No thread needs it otherwise.
  producers_in_flight_.fetch_add(1, std::memory_order_relaxed);
  // relaxed, here and when the exchange fails: the head is only compared, or stored for the loop.
  Destroyable* head = returned_.load(std::memory_order_relaxed);
  bool pushed = false;
  while (head != closed_mark() && !pushed) {
    item.next_ = head;
    // release: the loop that takes the item sees what this thread did with it. close() sees that
    // this producer is in flight.
    pushed = returned_.compare_exchange_weak(head, &item, std::memory_order_release,
                                             std::memory_order_relaxed);
  }
  // The item may be destroyed now. The loop may then hold the last reference to this queue. It
  // waits in close() for the producers that pushed in time.
  if (pushed) notify();
  // release pairs with close().
  producers_in_flight_.fetch_sub(1, std::memory_order_release);
  return pushed;
}

/// Posts the wakeup unless it is posted already. The thread that sets the flag posts it.
/// acq_rel: a thread that finds the flag set has published its item to the wakeup that still has
/// to run. See destroy_returned().
void DestroyQueue::notify() noexcept {
  if (!notified_.exchange(true, std::memory_order_acq_rel)) loop_.post(wakeup_);
}

/// Appends the returned items to the list of the loop, oldest first. Runs on the thread of the
/// loop.
void DestroyQueue::take_returned(Destroyable* newest) noexcept {
  Destroyable* oldest = nullptr;
  Destroyable* const last = newest;
  while (newest != nullptr) {
    Destroyable* const next = std::exchange(newest->next_, oldest);
    oldest = std::exchange(newest, next);
  }
  if (oldest == nullptr) return;
  (last_ == nullptr ? first_ : last_->next_) = oldest;
  last_ = last;
}

/// Runs on the thread of the loop when the wakeup arrives.
void DestroyQueue::destroy_returned() noexcept {
  // The flag is cleared first: an item that is pushed after the look below posts the wakeup again.
  // The order acq_rel makes the items of threads that found the flag set visible.
  notified_.exchange(false, std::memory_order_acq_rel);
  // acquire pairs with the release in push().
  take_returned(returned_.exchange(nullptr, std::memory_order_acquire));
  const std::uint64_t turn = loop_.counters().turns.value();
  if (std::exchange(turn_, turn) != turn) budget_ = destroys_per_turn;
  for (; first_ != nullptr && budget_ != 0; --budget_) {
    Destroyable& item = *first_;
    first_ = item.next_;
    if (first_ == nullptr) last_ = nullptr;
    item.destroy_(item);
  }
  // A timer, because a busy loop looks into its inbox many times in one turn.
  if (first_ != nullptr) loop_.timers().start(turn_end_, loop_.now());
}

void DestroyQueue::close() noexcept {
  // acquire: a producer of an item that is taken here was counted before.
  take_returned(returned_.exchange(closed_mark(), std::memory_order_acq_rel));
  // Later producers find the mark and do not use the loop. acquire: the earlier ones have left it.
  while (producers_in_flight_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  while (first_ != nullptr) {
    Destroyable& item = *std::exchange(first_, first_->next_);
    item.destroy_(item);
  }
  turn_end_.cancel();
  remove_reference();
}

}  // namespace weir

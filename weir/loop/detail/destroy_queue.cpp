#include "weir/loop/detail/destroy_queue.hpp"

#include <thread>
#include <utility>

#include "weir/loop/loop.hpp"

namespace weir::loop {

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
  // relaxed: the push publishes it if that succeeds. No thread needs it otherwise. close() then
  // sees that this producer is in flight.
  producers_in_flight_.fetch_add(1, std::memory_order_relaxed);
  // The item may be destroyed as soon as it is in the queue. The loop may then hold the last
  // reference to this queue. It waits in close() for the producers that pushed in time.
  const bool pushed = returned_.push(item, loop_);
  // release pairs with close().
  producers_in_flight_.fetch_sub(1, std::memory_order_release);
  return pushed;
}

/// Runs on the thread of the loop.
void DestroyQueue::destroy_returned() noexcept {
  const std::uint64_t turn = loop_.counters().turns.value();
  if (std::exchange(turn_, turn) != turn) budget_ = destroys_per_turn;
  for (; returned_.front() != nullptr && budget_ != 0; --budget_) {
    Destroyable& item = *returned_.pop();
    item.destroy_(item);
  }
  if (returned_.front() != nullptr) returned_.receive_again(loop_);
}

void DestroyQueue::close() noexcept {
  // A producer of an item that is taken here was counted before.
  returned_.close();
  // Later producers find it closed and do not use the loop. acquire: the earlier ones have left it.
  while (producers_in_flight_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  while (Destroyable* const item = returned_.pop()) item->destroy_(*item);
  remove_reference();
}

}  // namespace weir::loop

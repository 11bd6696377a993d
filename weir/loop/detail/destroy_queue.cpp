#include "weir/loop/homecoming.hpp"

#include <thread>
#include <utility>

#include "weir/loop/loop.hpp"

namespace weir {
namespace {

/// What returned_ is after close(); nobody follows it.
Homecoming::Guest* closed() noexcept {
  static char mark = 0;
  return reinterpret_cast<Homecoming::Guest*>(&mark);
}

}  // namespace

void Homecoming::keep() noexcept {
  // relaxed: who keeps one more has it already.
  keepers_.fetch_add(1, std::memory_order_relaxed);
}

void Homecoming::release() noexcept {
  // acq_rel: who deletes it has seen all others finish with it.
  if (keepers_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void Homecoming::Guest::let_go() noexcept {
  const Loop* const here = Loop::current();
  const bool at_home = here != nullptr && &here->homecoming() == &home_;
  if (at_home || !home_.push(*this)) destroy_(*this);
}

/// False: the loop has gone.
bool Homecoming::push(Guest& guest) noexcept {
  // relaxed: published by the exchange below, if that succeeds; if not, nobody needs to know.
  visitors_.fetch_add(1, std::memory_order_relaxed);
  // relaxed, here and when the exchange fails: the head is only compared, or kept for the loop.
  Guest* head = returned_.load(std::memory_order_relaxed);
  bool came = false;
  while (head != closed() && !came) {
    guest.next_ = head;
    // release: who takes it sees what this thread did with it, and close() sees this visitor.
    came = returned_.compare_exchange_weak(head, &guest, std::memory_order_release,
                                           std::memory_order_relaxed);
  }
  // The guest may be gone now, and with it whatever keeps this alive but the loop; that waits, in
  // close(), for those visitors that were in time.
  if (came) ring();
  // release pairs with close().
  visitors_.fetch_sub(1, std::memory_order_release);
  return came;
}

/// At most one bell is under way: whoever turns the flag posts it. acq_rel: who finds it turned has
/// published its guest to the bell that is still to come; see receive().
void Homecoming::ring() noexcept {
  if (!rung_.exchange(true, std::memory_order_acq_rel)) loop_.post(bell_);
}

/// At home: behind what was taken before, oldest first.
void Homecoming::take_returned(Guest* newest) noexcept {
  Guest* oldest = nullptr;
  Guest* const last = newest;
  while (newest != nullptr) {
    Guest* const next = std::exchange(newest->next_, oldest);
    oldest = std::exchange(newest, next);
  }
  if (oldest == nullptr) return;
  (last_ == nullptr ? first_ : last_->next_) = oldest;
  last_ = last;
}

/// At home, when the bell has come.
void Homecoming::receive() noexcept {
  // Before it looks: a guest who comes after this look rings again. acq_rel: those who found the
  // flag turned before are seen.
  rung_.exchange(false, std::memory_order_acq_rel);
  // acquire pairs with the release in push().
  take_returned(returned_.exchange(nullptr, std::memory_order_acquire));
  const std::uint64_t turn = loop_.counters().turns.value();
  if (std::exchange(turn_, turn) != turn) left_ = guests_per_turn;
  for (; first_ != nullptr && left_ != 0; --left_) {
    Guest& guest = *first_;
    first_ = guest.next_;
    if (first_ == nullptr) last_ = nullptr;
    guest.destroy_(guest);
  }
  // Not by ringing now: a busy loop looks into its inbox again and again in one turn.
  if (first_ != nullptr) loop_.timers().start(turn_end_, loop_.now());
}

void Homecoming::close() noexcept {
  // acquire: a visitor whose guest is taken here has been counted before.
  take_returned(returned_.exchange(closed(), std::memory_order_acq_rel));
  // Later ones find the mark, and touch the loop no more. acquire: the others have left it.
  while (visitors_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  while (first_ != nullptr) {
    Guest& guest = *std::exchange(first_, first_->next_);
    guest.destroy_(guest);
  }
  last_ = nullptr;
  turn_end_.cancel();
  release();
}

}  // namespace weir

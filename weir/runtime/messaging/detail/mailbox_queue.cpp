#include "weir/runtime/messaging/detail/mailbox_queue.hpp"

#include <algorithm>
#include <bit>

namespace weir::detail {

MailboxGate::MailboxGate(std::size_t capacity, WhenFull when_full)
    : capacity_(std::max<std::size_t>(capacity, 1)),
      mask_(std::bit_ceil(capacity_) - 1),
      when_full_(when_full),
      turns_(std::make_unique<std::atomic<std::uint64_t>[]>(mask_ + 1)) {}

MailboxGate::~MailboxGate() {
  // relaxed: nobody else is left who could write it.
  assert(receiver_.load(std::memory_order_relaxed) == nullptr && "destroyed while waited on");
  assert(waiting_.empty() && "destroyed while waited on");
}

// ---- The receiver -------------------------------------------------------------------------------

/// Lets it wait; false: there is something for it already.
bool MailboxGate::rest(MailboxReceiver& receiver) noexcept {
  assert(receiver_.load(std::memory_order_relaxed) == nullptr && "one receiver at a time");
  streak_ = 0;
  // A sender stores its turn (or close() its bit) and then looks for the receiver; the receiver
  // stores itself and then looks at the turn and the bit. All four are seq_cst, so at least one of
  // the two sees the other. Both may: then whoever takes the receiver out first decides.
  receiver_.store(&receiver, std::memory_order_seq_cst);
  if (!arrived() && !ended()) return true;
  return !withdraw(receiver);
}

/// False: somebody has taken it out and is about to post it.
bool MailboxGate::withdraw(MailboxReceiver& receiver) noexcept {
  MailboxReceiver* expected = &receiver;
  // relaxed: nothing passes from one to the other here; what a sender brought is ordered by its
  // turn, and what the receiver wrote about itself by wake_receiver() and the loop's inbox.
  return receiver_.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed);
}

void MailboxGate::wake_receiver() noexcept {
  // acquire pairs with the store in rest(): its loop is known here. Only one can take it out, so it
  // is in one inbox at most once, and not resumed, nor gone, before it is there.
  MailboxReceiver* const receiver = receiver_.exchange(nullptr, std::memory_order_acquire);
  if (receiver != nullptr) receiver->loop_->post_from_outside(*receiver);
}

bool MailboxReceiver::begin(const Context& context) {
  loop_ = context.loop;
  if (gate_.arrived()) {  // the end of a streak
    gate_.streak_ = 0;
    loop_->timers().start(*this, loop_->now());  // the end of this turn
    return true;
  }
  if (context.cancelled()) {
    cancelled_ = true;
    return false;
  }
  // Whoever posts it meanwhile, it runs later: this loop is busy here.
  if (!gate_.rest(*this)) return false;
  if (context.cancel != nullptr) context.cancel->add(*this);
  return true;
}

void MailboxReceiver::run(Runnable& self) {
  auto& receiver = static_cast<MailboxReceiver&>(self);
  MailboxGate& gate = receiver.gate_;
  // Who woke it may have published a later position than the one that is due.
  const bool over = receiver.cancelled_ || gate.arrived() || gate.ended();
  if (!over && gate.rest(receiver)) return;
  static_cast<CancelNode&>(receiver).unlink();
  go_on_with(receiver.handle_);
}

void MailboxReceiver::turned(Timer& timer) {
  auto& receiver = static_cast<MailboxReceiver&>(timer);
  receiver.loop_->ready(receiver);
}

void MailboxReceiver::ask(CancelNode& node) {
  auto& receiver = static_cast<MailboxReceiver&>(node);
  receiver.cancelled_ = true;
  // Else it is on its way home, and has to arrive before its frame may go.
  if (receiver.gate_.withdraw(receiver)) receiver.loop_->ready(receiver);
}

void MailboxGate::taken() {
  const std::uint64_t head = front();
  if (!lets_wait()) {
    // release: the place may be used again once this is seen.
    head_.store(head + 1, std::memory_order_release);
    return;
  }
  head_.store(head + 1, std::memory_order_seq_cst);  // see wait_for_room()
  if (waiting_count_.load(std::memory_order_seq_cst) == 0) return;
  RunQueue entered;
  {
    const std::lock_guard lock(mutex_);
    let_in(entered);
  }
  send_home(entered);
}

// ---- Senders who wait ---------------------------------------------------------------------------

/// False: it did not have to, and knows how it ended.
bool MailboxGate::wait_for_room(MailboxSender& sender) {
  RunQueue entered;
  bool waits = false;
  bool published = false;
  {
    const std::lock_guard lock(mutex_);
    // close() sets its bit before it takes the mutex: it finds this sender, or this the bit.
    if (closed()) {
      sender.refuse(Errc::closed);
      return false;
    }
    waiting_.push_back(sender);
    // The receiver stores the head and then looks for somebody who waits; this stores that somebody
    // does and then (in claim()) looks at the head. All four are seq_cst: one sees the other.
    waiting_count_.fetch_add(1, std::memory_order_seq_cst);
    published = let_in(entered);
    waits = sender.linked();
  }
  if (published) wake_receiver();
  while (Runnable* const other = entered.pop()) {
    auto& let_go = static_cast<MailboxSender&>(*other);
    if (&let_go != &sender) let_go.loop_->post_from_outside(let_go);
  }
  return waits;
}

/// Under the mutex: lets in whom there is room for. Returns whether it was anybody.
bool MailboxGate::let_in(RunQueue& entered) noexcept {
  bool any = false;
  while (MailboxSender* const sender = waiting_.front()) {
    const auto position = claim();
    if (!position) break;
    sender->unlink();
    waiting_count_.fetch_sub(1, std::memory_order_relaxed);  // see there
    sender->put(*position);
    turns_[*position & mask_].store(*position + 1, std::memory_order_seq_cst);  // see rest()
    entered.push(*sender);
    any = true;
  }
  return any;
}

/// Without the mutex: waking a loop may be a system call. Who is off the list is only posted.
void MailboxGate::send_home(RunQueue& senders) noexcept {
  while (Runnable* const next = senders.pop()) {
    auto& sender = static_cast<MailboxSender&>(*next);
    sender.loop_->post_from_outside(sender);
  }
}

/// False: it has been let in or refused, and is about to be posted.
bool MailboxGate::withdraw(MailboxSender& sender) {
  const std::lock_guard lock(mutex_);
  if (!sender.linked()) return false;
  sender.unlink();
  waiting_count_.fetch_sub(1, std::memory_order_relaxed);  // see there
  return true;
}

bool MailboxSender::begin(const Context& context) {
  loop_ = context.loop;
  if (context.cancelled()) {
    error_ = Errc::cancelled;
    return false;
  }
  if (!gate_.wait_for_room(*this)) return false;
  if (context.cancel != nullptr) context.cancel->add(cancelling_);
  return true;
}

void MailboxSender::run(Runnable& self) {
  auto& sender = static_cast<MailboxSender&>(self);
  sender.cancelling_.unlink();
  go_on_with(sender.handle_);
}

void MailboxSender::Cancelling::ask(CancelNode& node) {
  MailboxSender& sender = static_cast<Cancelling&>(node).sender;
  if (!sender.gate_.withdraw(sender)) return;
  sender.error_ = Errc::cancelled;
  sender.loop_->ready(sender);
}

void MailboxGate::close() {
  // seq_cst: see rest(); and all claims come before it or fail.
  tail_.fetch_or(closed_bit, std::memory_order_seq_cst);
  RunQueue refused;
  {
    const std::lock_guard lock(mutex_);
    while (MailboxSender* const sender = waiting_.pop_front()) {
      sender->refuse(Errc::closed);
      refused.push(*sender);
    }
    waiting_count_.store(0, std::memory_order_relaxed);  // see there
  }
  send_home(refused);
  // seq_cst, behind the bit: see rest().
  if (receiver_.load(std::memory_order_seq_cst) != nullptr) wake_receiver();
}

}  // namespace weir::detail

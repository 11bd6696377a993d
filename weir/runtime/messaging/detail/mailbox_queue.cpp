#include "weir/runtime/messaging/detail/mailbox_queue.hpp"

#include <algorithm>
#include <bit>

namespace weir::detail {

MailboxQueue::MailboxQueue(std::size_t capacity, OverflowPolicy overflow_policy)
    : capacity_(std::max<std::size_t>(capacity, 1)),
      mask_(std::bit_ceil(capacity_) - 1),
      overflow_policy_(overflow_policy),
      sequences_(std::make_unique<std::atomic<std::uint64_t>[]>(mask_ + 1)) {}

MailboxQueue::~MailboxQueue() {
  // relaxed: no other thread may write it any more.
  assert(receiver_.load(std::memory_order_relaxed) == nullptr && "destroyed while waited on");
  assert(waiting_.empty() && "destroyed while waited on");
}

// ---- The receiver -------------------------------------------------------------------------------

/// Makes the receiver wait. Returns false if there is something for it already.
bool MailboxQueue::park(MailboxReceiver& receiver) noexcept {
  assert(receiver_.load(std::memory_order_relaxed) == nullptr && "one receiver at a time");
  streak_ = 0;
  // A sender stores its sequence number (or close() its bit) and then loads the receiver. The
  // receiver stores itself and then loads the sequence number and the bit. All four accesses are
  // seq_cst, so at least one side sees the other. If both do, the side that takes the receiver
  // out first decides.
  receiver_.store(&receiver, std::memory_order_seq_cst);
  if (!has_front() && !at_end()) return true;
  return !withdraw(receiver);
}

/// Returns false if a sender has taken the receiver out and is about to post it.
bool MailboxQueue::withdraw(MailboxReceiver& receiver) noexcept {
  MailboxReceiver* expected = &receiver;
  // relaxed: this access transfers no data. A sender's value is ordered by its sequence number.
  // The receiver's own state is ordered by wake_receiver() and the loop's inbox.
  return receiver_.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed);
}

void MailboxQueue::wake_receiver() noexcept {
  // acquire pairs with the store in park(): the receiver's loop is visible here. Only one thread
  // can take the receiver out, so it is posted at most once. It is neither resumed nor destroyed
  // before that.
  MailboxReceiver* const receiver = receiver_.exchange(nullptr, std::memory_order_acquire);
  if (receiver != nullptr) receiver->loop_->post_from_foreign_thread(*receiver);
}

bool MailboxReceiver::park(Loop& loop) {
  loop_ = &loop;
  if (queue_.has_front() && queue_.streak_ >= MailboxQueue::streak_max) {
    queue_.streak_ = 0;
    loop.timers().start(*this, loop.now());  // the end of this turn
    return true;
  }
  // A sender may post it meanwhile, but it runs later: this loop is busy here.
  return queue_.park(*this);
}

bool MailboxReceiver::park_again() noexcept {
  // The sender that posted it may have published a later position than the one that is due.
  return !queue_.has_front() && !queue_.at_end() && queue_.park(*this);
}

bool MailboxReceiver::withdraw() noexcept {
  if (armed()) {
    loop::Timer::cancel();
    return true;
  }
  return queue_.withdraw(*this);
}

bool MailboxAwaiter::begin(const Context& context) {
  if (!queue().has_front() && !join(context.cancel)) return false;
  if (park(*context.loop)) return true;
  leave();
  return false;
}

void MailboxAwaiter::run(loop::Runnable& self) {
  auto& awaiter = static_cast<MailboxAwaiter&>(self);
  if (!awaiter.cancelled_ && awaiter.park_again()) return;
  awaiter.leave();
  resume_coroutine(awaiter.handle_);
}

void MailboxAwaiter::on_turn_end(loop::Timer& timer) {
  auto& awaiter = static_cast<MailboxAwaiter&>(timer);
  awaiter.loop().ready(awaiter);
}

void MailboxAwaiter::on_cancel(CancelNode& node) {
  auto& awaiter = static_cast<MailboxAwaiter&>(node);
  awaiter.cancelled_ = true;
  // Otherwise it has been posted and must run before its frame may be destroyed.
  if (awaiter.withdraw()) awaiter.loop().ready(awaiter);
}

void MailboxWait::run(loop::Runnable& self) {
  auto& wait = static_cast<MailboxWait&>(self);
  if (!wait.withdrawn_ && wait.park_again()) return;
  wait.grant();
}

void MailboxWait::on_turn_end(loop::Timer& timer) {
  static_cast<MailboxWait&>(timer).grant();
}

void MailboxQueue::release_front() {
  const std::uint64_t head = front();
  if (!senders_can_wait()) {
    // release: a sender that sees this may use the slot again.
    head_.store(head + 1, std::memory_order_release);
    return;
  }
  head_.store(head + 1, std::memory_order_seq_cst);  // see wait_for_room()
  if (waiting_count_.load(std::memory_order_seq_cst) == 0) return;
  loop::RunQueue granted;
  {
    const std::lock_guard lock(mutex_);
    grant_waiters(granted);
  }
  resume_on_owner(granted);
}

// ---- Waiting senders ----------------------------------------------------------------------------

/// Returns false if the sender need not wait: its outcome is already set.
bool MailboxQueue::wait_for_room(MailboxSender& sender) {
  loop::RunQueue granted;
  bool waits = false;
  bool published = false;
  {
    const std::lock_guard lock(mutex_);
    // close() sets its bit before it takes the mutex: it finds this sender, or this call finds
    // the bit.
    if (closed()) {
      sender.reject(Errc::closed);
      return false;
    }
    waiting_.push_back(sender);
    // The receiver stores the head and then loads the count of waiting senders. This call stores
    // that count and then (in claim()) loads the head. All four accesses are seq_cst: one side
    // sees the other.
    waiting_count_.fetch_add(1, std::memory_order_seq_cst);
    published = grant_waiters(granted);
    waits = sender.linked();
  }
  if (published) wake_receiver();
  while (loop::Runnable* const other = granted.pop()) {
    auto& granted_sender = static_cast<MailboxSender&>(*other);
    if (&granted_sender != &sender) granted_sender.loop_->post_from_foreign_thread(granted_sender);
  }
  return waits;
}

/// Admits waiting senders while there is room; the caller holds the mutex. Returns true if it
/// admitted any.
bool MailboxQueue::grant_waiters(loop::RunQueue& granted) noexcept {
  bool any = false;
  while (MailboxSender* const sender = waiting_.front()) {
    const auto position = claim();
    if (!position) break;
    sender->unlink();
    waiting_count_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: see the member
    sender->put(*position);
    sequences_[*position & mask_].store(*position + 1, std::memory_order_seq_cst);  // see park()
    granted.push(*sender);
    any = true;
  }
  return any;
}

/// Posts senders that are off the list; called without the mutex, because waking a loop may be a
/// system call.
void MailboxQueue::resume_on_owner(loop::RunQueue& senders) noexcept {
  while (loop::Runnable* const next = senders.pop()) {
    auto& sender = static_cast<MailboxSender&>(*next);
    sender.loop_->post_from_foreign_thread(sender);
  }
}

/// Returns false if the sender has been admitted or rejected and is about to be posted.
bool MailboxQueue::withdraw(MailboxSender& sender) {
  const std::lock_guard lock(mutex_);
  if (!sender.linked()) return false;
  sender.unlink();
  waiting_count_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: see the member
  return true;
}

bool MailboxSender::begin(const Context& context) {
  loop_ = context.loop;
  if (!cancel_hook_.join(context.cancel)) {
    error_ = Errc::cancelled;
    return false;
  }
  if (queue_.wait_for_room(*this)) return true;
  cancel_hook_.leave();
  return false;
}

void MailboxSender::run(loop::Runnable& self) {
  auto& sender = static_cast<MailboxSender&>(self);
  sender.cancel_hook_.leave();
  resume_coroutine(sender.handle_);
}

void MailboxSender::CancelHook::on_cancel(CancelNode& node) {
  MailboxSender& sender = static_cast<CancelHook&>(node).sender;
  if (!sender.queue_.withdraw(sender)) return;
  sender.error_ = Errc::cancelled;
  sender.loop_->ready(sender);
}

void MailboxQueue::close() {
  // seq_cst: see park(). All claims come before this or fail.
  tail_.fetch_or(closed_bit, std::memory_order_seq_cst);
  loop::RunQueue rejected;
  {
    const std::lock_guard lock(mutex_);
    while (MailboxSender* const sender = waiting_.pop_front()) {
      sender->reject(Errc::closed);
      rejected.push(*sender);
    }
    waiting_count_.store(0, std::memory_order_relaxed);  // relaxed: see the member
  }
  resume_on_owner(rejected);
  // seq_cst, after the bit: see park().
  if (receiver_.load(std::memory_order_seq_cst) != nullptr) wake_receiver();
}

}  // namespace weir::detail

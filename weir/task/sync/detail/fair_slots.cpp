#include "weir/task/sync/detail/fair_slots.hpp"

#include <algorithm>
#include <cassert>

namespace weir::detail {

FairSlots::FairSlots(Loop& loop, std::size_t slots)
    : loop::Timer([](loop::Timer& self) { static_cast<FairSlots&>(self).revoke_stalls(); }),
      loop_(loop),
      slots_(slots) {
  spare_.reserve(spare_max);
}

FairSlots::~FairSlots() {
  assert(in_use_ == 0 && waiting_ == 0);
}

// Accounts.

FairSlots::Account& FairSlots::account_of(Client client) {
  if (const auto found = accounts_.find(client); found != accounts_.end()) return found->second;
  if (spare_.empty()) {
    Account& made = accounts_[client];
    made.client = client;
    return made;
  }
  Accounts::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = client;
  node.mapped().client = client;
  return accounts_.insert(std::move(node)).position->second;
}

/// Forgets a client that has nothing. The memory is kept for the next one.
void FairSlots::drop_if_unused(Account& account) noexcept {
  if (account.held != 0 || !account.waits.empty()) return;
  const auto found = accounts_.find(account.client);
  if (spare_.size() == spare_max) {
    accounts_.erase(found);
  } else {
    spare_.push_back(accounts_.extract(found));
  }
}

bool FairSlots::has_right(const Account& account) const noexcept {
  const std::size_t free = slots_ - in_use_;
  return slots_ < shared_min ? free > 0 : account.held < free;
}

void FairSlots::take(Account& account) noexcept {
  ++in_use_;
  ++account.held;
}

void FairSlots::release(Account& account, bool revoked) {
  --in_use_;
  --account.held;
  if (revoked) --revoked_;
  drop_if_unused(account);
  if (waiting_ != 0) grant_waiters();
}

std::optional<FairSlots::Slot> FairSlots::try_acquire(Client client) {
  Acquire wait(*this, client);
  if (!wait.ready()) return std::nullopt;
  return Slot(*this, *wait.account_);
}

// The queue.

/// Gives free slots to the clients in turn.
void FairSlots::grant_waiters() {
  for (Account* each = queue_.front(); each != nullptr && in_use_ < slots_;) {
    if (!has_right(*each)) {
      each = queue_.next(*each);
      continue;
    }
    each->unlink();
    take(*each);
    --waiting_;
    each->waits.front()->grant();
    if (!each->waits.empty()) queue_.push_back(*each);
    each = queue_.front();
  }
}

void FairSlots::add(Acquire& wait) {
  wait.account_->waits.push_back(wait);
  if (!wait.account_->linked()) queue_.push_back(*wait.account_);
  ++waiting_;
  if (!stalls_.empty()) arm(loop_.now());
}

bool FairSlots::Acquire::ready() {
  Account& account = slots_.account_of(client_);
  if (!account.waits.empty() || !slots_.has_right(account)) {
    slots_.drop_if_unused(account);
    return false;
  }
  slots_.take(account);
  account_ = &account;
  return true;
}

bool FairSlots::Acquire::begin(Loop&) {
  account_ = &slots_.account_of(client_);
  slots_.add(*this);
  return true;
}

void FairSlots::Acquire::withdraw() noexcept {
  unlink();
  --slots_.waiting_;
  if (account_->waits.empty()) account_->unlink();
}

void FairSlots::Acquire::on_withdrawn() noexcept {
  slots_.drop_if_unused(*account_);
}

// Stalls.

FairSlots::Stall::Stall(Slot& slot, Instant until, Revoke revoke)
    : slot_(slot), until_(until), revoke_(revoke) {
  if (!slot || slot.revoked_) return;
  FairSlots& slots = *slot.slots_;
  slots.stalls_.push_back(*this);
  if (slots.waiting_ != 0) slots.arm(until);
}

/// Looks at the stalls at `time`, and not too often.
void FairSlots::arm(Instant time) {
  time = std::max(time, next_check_);
  if (!armed() || time < deadline()) loop_.timers().start(*this, time);
}

/// Revokes slots whose time is over, at most one for each wait of a client with fewer slots.
void FairSlots::revoke_stalls() {
  const Instant now = loop_.now();
  next_check_ = after(now, check_interval);
  std::size_t fewest = slots_;
  for (Account* each = queue_.front(); each != nullptr; each = queue_.next(*each)) {
    fewest = std::min(fewest, each->held);
  }
  Instant next = never;
  for (Stall* each = stalls_.front(); each != nullptr && revoked_ < waiting_;) {
    Stall& stall = *each;
    each = stalls_.next(stall);
    if (stall.slot_.account_->held <= fewest) continue;
    if (stall.until_ > now) {
      next = std::min(next, stall.until_);
      continue;
    }
    stall.unlink();
    stall.slot_.revoked_ = true;
    ++revoked_;
    stall.revoke_(stall);
  }
  if (waiting_ != 0 && next != never) arm(next);
}

}  // namespace weir::detail

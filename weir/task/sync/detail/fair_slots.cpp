#include "weir/task/sync/detail/fair_slots.hpp"

#include <algorithm>
#include <cassert>

namespace weir::detail {

FairSlots::FairSlots(Loop& loop, const Limits& limits)
    : loop::Timer([](loop::Timer& self) { static_cast<FairSlots&>(self).revoke_stalls(); }),
      loop_(loop),
      limits_(limits) {
  spare_.reserve(spare_max);
}

FairSlots::~FairSlots() {
  assert(in_use_ == 0 && waiting_ == 0 && accounts_.empty());
}

// Accounts.

FairSlots::Account& FairSlots::find_or_add(const Client& client) {
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

FairSlots::Account& FairSlots::account_of(const Client& client) {
  assert(client.connection != nullptr);
  note_group(client.group);
  Account& group = find_or_add({client.group, nullptr});
  try {
    Account& account = find_or_add(client);
    if (account.group == nullptr) ++group.connections;
    account.group = &group;
    return account;
  } catch (...) {
    drop_if_unused(group);
    throw;
  }
}

/// Forgets an account that has nothing. The memory is kept for the next one.
void FairSlots::drop_if_unused(Account& account) noexcept {
  if (account.held != 0 || account.waiting != 0 || account.connections != 0) return;
  Account* const group = std::exchange(account.group, nullptr);
  const auto found = accounts_.find(account.client);
  if (spare_.size() == spare_max) {
    accounts_.erase(found);
  } else {
    spare_.push_back(accounts_.extract(found));
  }
  if (group == nullptr) return;
  --group->connections;
  drop_if_unused(*group);
}

/// Notes that a client of the group has come.
void FairSlots::note_group(std::uint64_t group) noexcept {
  if (newest_group_ == group) return;
  if (newest_group_) groups_until_ = after(loop_.now(), groups_time);
  newest_group_ = group;
}

/// Returns the number of slots that the connections of a group may still get.
std::size_t FairSlots::room(const Account& group) const noexcept {
  const std::size_t free = limits_.slots - std::min(in_use_, limits_.slots);
  if (loop_.now() >= groups_until_) return free;
  if (free <= group.held) return 0;
  const std::size_t rest = free - group.held;
  return rest / 2 + rest % 2;
}

bool FairSlots::has_right(const Account& account) const noexcept {
  if (limits_.slots < shared_min) return in_use_ < limits_.slots;
  return account.held < room(*account.group);
}

void FairSlots::take(Account& account, bool is_claim) noexcept {
  if (!is_claim) ++in_use_;
  ++account.held;
  ++account.group->held;
}

void FairSlots::release(Account& account, bool revoked, bool is_claim) {
  Account* const heir = revoked ? heir_of(account) : nullptr;
  if (!is_claim) --in_use_;
  --account.held;
  --account.group->held;
  if (revoked) count_revoked(account, -1);
  if (heir != nullptr && in_use_ < limits_.slots) grant_first(*heir);
  drop_if_unused(account);
  if (waiting_ != 0) grant_waiters();
}

void FairSlots::set_slots(std::size_t slots) {
  limits_.slots = std::max<std::size_t>(slots, 1);
  if (waiting_ != 0) grant_waiters();
}

std::optional<FairSlots::Slot> FairSlots::try_acquire(const Client& client) {
  Acquire wait(*this, client);
  if (!wait.ready()) return std::nullopt;
  return Slot(*this, *wait.account_);
}

std::optional<FairSlots::Slot> FairSlots::try_claim(const Client& client) {
  Account& account = account_of(client);
  const bool is_first = account.group->held == 0;
  if (!is_first && limits_.slots >= shared_min && !has_right(account)) {
    drop_if_unused(account);
    return std::nullopt;
  }
  take(account, true);
  return Slot(*this, account, true);
}

void FairSlots::Slot::hand_over(Slot& claim) noexcept {
  assert(slots_ != nullptr && slots_ == claim.slots_ && !claim_ && claim.claim_ && !revoked_);
  claim_ = true;
  claim.claim_ = false;
}

// The queue.

void FairSlots::add(Acquire& wait) {
  Account& account = *wait.account_;
  account.waits.push_back(wait);
  ++waiting_;
  ++account.waiting;
  ++account.group->waiting;
  if (!account.linked()) account.group->queue.push_back(account);
  if (!account.group->linked()) queue_.push_back(*account.group);
  if (!stalls_.empty()) arm(loop_.now());
}

void FairSlots::remove(Acquire& wait) noexcept {
  Account& account = *wait.account_;
  wait.unlink();
  --waiting_;
  if (--account.waiting == 0) account.unlink();
  if (--account.group->waiting == 0) account.group->unlink();
}

/// Gives a free slot to the first wait of a connection. The turn is then that of others.
void FairSlots::grant_first(Account& account) {
  Account& group = *account.group;
  auto& wait = static_cast<Acquire&>(*account.waits.front());
  remove(wait);
  take(account);
  wait.grant();
  account.unlink();
  if (account.waiting != 0) group.queue.push_back(account);
  group.unlink();
  if (group.waiting != 0) queue_.push_back(group);
}

/// Gives free slots to the clients in turn.
void FairSlots::grant_waiters() {
  for (Account* group = queue_.front(); group != nullptr && in_use_ < limits_.slots;) {
    Account* account = group->queue.front();
    while (account != nullptr && !has_right(*account)) account = group->queue.next(*account);
    if (account == nullptr) {
      group = queue_.next(*group);
      continue;
    }
    grant_first(*account);
    group = queue_.front();
  }
}

FairSlots::Account* FairSlots::with_fewest_slots(const List<Account>& queue) noexcept {
  Account* found = queue.front();
  for (Account* each = found; each != nullptr; each = queue.next(*each)) {
    if (each->held < found->held) found = each;
  }
  return found;
}

FairSlots::Account* FairSlots::with_most_waits(const List<Account>& queue) noexcept {
  Account* found = queue.front();
  for (Account* each = found; each != nullptr; each = queue.next(*each)) {
    if (each->waiting >= found->waiting) found = each;
  }
  return found;
}

/// Makes room in the queue for a wait of `account`. Returns false if that wait has to give way.
bool FairSlots::make_room(Account& account) {
  if (waiting_ < limits_.waiting_max) return true;
  // The new wait counts too. It is the newest one of its connection and of its group.
  Account* group = with_most_waits(queue_);
  if (group == nullptr) return false;
  if (group->waiting <= account.group->waiting + 1) group = account.group;
  Account* const loser = with_most_waits(group->queue);
  if (group == account.group && (loser == nullptr || loser->waiting <= account.waiting + 1)) {
    return false;
  }
  QueuedWait* newest = loser->waits.front();
  while (QueuedWait* const next = loser->waits.next(*newest)) newest = next;
  auto& wait = static_cast<Acquire&>(*newest);
  remove(wait);
  wait.account_ = nullptr;
  wait.grant();
  drop_if_unused(*loser);
  return true;
}

bool FairSlots::Acquire::ready() {
  Account& account = slots_.account_of(client_);
  if (account.waiting != 0 || !slots_.has_right(account)) {
    slots_.drop_if_unused(account);
    return false;
  }
  slots_.take(account);
  account_ = &account;
  return true;
}

bool FairSlots::Acquire::begin(Loop&) {
  Account& account = slots_.account_of(client_);
  if (slots_.limits_.slots == 0 || !slots_.make_room(account)) {
    slots_.drop_if_unused(account);
    return false;
  }
  account_ = &account;
  slots_.add(*this);
  return true;
}

// Stalls.

FairSlots::Stall::Stall(Slot& slot, Instant until, Revoke revoke, std::size_t lead)
    : slot_(slot), until_(until), revoke_(revoke), lead_(lead) {
  if (!slot || slot.revoked_) return;
  FairSlots& slots = *slot.slots_;
  slots.stalls_.push_back(*this);
  if (slots.waiting_ != 0) slots.arm(until);
}

void FairSlots::Stall::renew() noexcept {
  if (!linked()) return;  // it is none, or was revoked
  unlink();
  slot_.slots_->stalls_.push_back(*this);
}

/// Looks at the stalls at `time`, and not too often.
void FairSlots::arm(Instant time) {
  time = std::max(time, next_check_);
  if (!armed() || time < deadline()) loop_.timers().start(*this, time);
}

FairSlots::Demand FairSlots::demand_of(const List<Account>& queue) noexcept {
  Demand demand;
  for (Account* each = queue.front(); each != nullptr; each = queue.next(*each)) {
    if (demand.waits == 0 || each->held < demand.fewest) demand = {each->held, 0};
    if (each->held == demand.fewest) demand.waits += each->waiting;
  }
  return demand;
}

/// Changes the number of slots that were revoked and not given back yet.
void FairSlots::count_revoked(Account& account, int change) noexcept {
  revoked_ += static_cast<std::size_t>(change);
  account.revoked += static_cast<std::size_t>(change);
  account.group->revoked += static_cast<std::size_t>(change);
}

/// Returns the number of waits for which the slot of a stall may be revoked: those of the groups,
/// and of the connections of its group, that have the fewest slots.
std::size_t FairSlots::rivals_of(const Stall& stall, const Demand& groups) noexcept {
  const Account& account = *stall.slot_.account_;
  const auto rivals = [&](const Demand& demand, const Account& holder) {
    return holder.kept() >= demand.fewest + stall.lead_ ? demand.waits : 0;
  };
  std::size_t waits = rivals(groups, *account.group);
  if (account.group->waiting != 0) waits += rivals(account.group->demand, account);
  return waits;
}

/// Returns the connection that gets the revoked slot of `account`, for which it was revoked.
FairSlots::Account* FairSlots::heir_of(const Account& account) const noexcept {
  const Account* group = with_fewest_slots(queue_);
  if (group == nullptr) return nullptr;
  if (group->held < account.group->held) return with_fewest_slots(group->queue);
  Account* const own = with_fewest_slots(account.group->queue);
  return own != nullptr && own->held < account.held ? own : nullptr;
}

/// Returns the stall to revoke next, or nullptr. `next` becomes the time of the next look, if a
/// stall may be revoked later.
FairSlots::Stall* FairSlots::next_to_revoke(const Demand& groups, Instant& next) const noexcept {
  Stall* found = nullptr;
  for (Stall* each = stalls_.front(); each != nullptr; each = stalls_.next(*each)) {
    const std::size_t rivals = rivals_of(*each, groups);
    if (rivals == 0 || each->slot_.revoked_) continue;  // a slot may have two stalls
    if (each->until_ > loop_.now() || revoked_ >= rivals) {
      next = std::min(next, std::max(each->until_, next_check_));
      continue;
    }
    const auto kept = [](const Stall& stall) { return stall.slot_.account_->group->kept(); };
    if (found == nullptr || kept(*each) > kept(*found)) found = each;
  }
  return found;
}

/// Revokes slots whose time is over, at most one for each wait of the clients with the fewest
/// slots.
void FairSlots::revoke_stalls() {
  next_check_ = after(loop_.now(), check_interval);
  // Nobody gets a slot that is given back while more are in use than there are.
  if (in_use_ > limits_.slots) {
    if (waiting_ != 0) arm(next_check_);
    return;
  }
  Instant next = never;
  for (std::size_t count = 0; waiting_ != 0; ++count) {
    const Demand groups = demand_of(queue_);
    for (Account* each = queue_.front(); each != nullptr; each = queue_.next(*each)) {
      each->demand = demand_of(each->queue);
    }
    Stall* const stall = next_to_revoke(groups, next);
    if (stall == nullptr) break;
    if (count == revocations_max) {
      next = next_check_;
      break;
    }
    stall->unlink();
    stall->slot_.revoked_ = true;
    count_revoked(*stall->slot_.account_, 1);
    stall->revoke_(*stall);
  }
  if (waiting_ != 0 && next != never) arm(next);
}

}  // namespace weir::detail

// FairSlots: a number of slots that the clients of a service share, with a queue that is fair
// between them.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/detail/list.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/detail/wait.hpp"

namespace weir::detail {

/// FairSlots bound what the tasks of one core do at the same time for clients that may be slow or
/// hostile, so that a client costs others nothing.
///
/// *Share.* A client may have another slot while it has fewer than are free: one client gets at
/// most half of the slots, the next one half of the rest. A newcomer thus finds a free slot. Fewer
/// than `shared_min` slots have no shares.
///
/// *Queue.* Clients that wait get slots in turn, one each, however many requests a client has.
///
/// *Stalls.* A slot whose work waits for its client may be revoked when its time is over, if a
/// client with fewer slots waits. The bytes of a client that sends or reads slowly thus delay only
/// itself. Threads: its loop's. Lifetime: it outlives its slots and waits (asserted).
class FairSlots : loop::Timer {
 public:
  /// Identifies a client, such as the address of its connection.
  using Client = const void*;
  static constexpr std::size_t shared_min = 8;

  class Slot;
  class Stall;
  class Acquire;

  FairSlots(Loop& loop, std::size_t slots);
  FairSlots(const FairSlots&) = delete;
  FairSlots& operator=(const FairSlots&) = delete;
  ~FairSlots();

  std::size_t slots() const noexcept { return slots_; }
  std::size_t in_use() const noexcept { return in_use_; }
  /// Returns the number of waits.
  std::size_t waiting() const noexcept { return waiting_; }

  /// Takes a slot without waiting; nullopt if the client has no right to one now.
  /// Errors: throws std::bad_alloc.
  std::optional<Slot> try_acquire(Client client);
  /// Waits for a slot: `co_await slots.acquire(client)`.
  /// Returns: a Result<Slot>.
  /// Errors: Errc::cancelled. Throws std::bad_alloc.
  /// Cancel: leaves the queue. A slot that was granted before is kept.
  Acquire acquire(Client client) noexcept;

 private:
  /// A client with slots or waits.
  struct Account : ListNode {
    Client client = nullptr;
    std::size_t held = 0;
    WaitQueue<QueuedWait> waits;  // each is an Acquire
  };
  using Accounts = std::unordered_map<Client, Account>;

  /// The time between two looks at the stalls, which bounds their cost.
  static constexpr Duration check_interval = std::chrono::milliseconds(10);
  static constexpr std::size_t spare_max = 64;

  Account& account_of(Client client);
  void drop_if_unused(Account& account) noexcept;
  bool has_right(const Account& account) const noexcept;
  void take(Account& account) noexcept;
  void release(Account& account, bool revoked);
  void grant_waiters();
  void add(Acquire& wait);
  void arm(Instant time);
  void revoke_stalls();

  Loop& loop_;
  std::size_t slots_;
  std::size_t in_use_ = 0;
  std::size_t waiting_ = 0;
  std::size_t revoked_ = 0;  // slots that were revoked and not given back yet
  Instant next_check_ = Instant::min();
  Accounts accounts_;                       // of the clients with a slot or a wait
  std::vector<Accounts::node_type> spare_;  // memory of clients that have left
  List<Account> queue_;                     // accounts with waits, the next one first
  List<Stall> stalls_;
};

/// A Slot is given back when it is destroyed or released. A moved-from slot is none.
/// Threads: the loop's.
class [[nodiscard]] FairSlots::Slot {
 public:
  Slot() noexcept = default;
  Slot(Slot&& other) noexcept
      : slots_(std::exchange(other.slots_, nullptr)),
        account_(other.account_),
        revoked_(other.revoked_) {}
  Slot& operator=(Slot&& other) noexcept {
    Slot before(std::move(other));  // gives back the slot of this object
    std::swap(slots_, before.slots_);
    std::swap(account_, before.account_);
    std::swap(revoked_, before.revoked_);
    return *this;
  }
  ~Slot() { release(); }

  explicit operator bool() const noexcept { return slots_ != nullptr; }
  /// Returns true if a Stall of the slot was revoked.
  bool revoked() const noexcept { return revoked_; }
  void release() {
    if (FairSlots* const slots = std::exchange(slots_, nullptr)) {
      slots->release(*account_, revoked_);
    }
  }

 private:
  friend FairSlots;
  Slot(FairSlots& slots, Account& account) noexcept : slots_(&slots), account_(&account) {}

  FairSlots* slots_ = nullptr;
  Account* account_ = nullptr;
  bool revoked_ = false;
};

/// A Stall exists while the work of a slot waits for its client.
/// Threads: the loop's.
/// Lifetime: the slot stays where it is, and is held, as long as its Stall exists.
class FairSlots::Stall : public ListNode {
 public:
  /// Ends the work of the slot soon, which gives the slot back.
  using Revoke = void (*)(Stall& stall) noexcept;

  /// The slot may be revoked from `until` on. A slot that is none is never revoked.
  Stall(Slot& slot, Instant until, Revoke revoke);

 private:
  friend FairSlots;
  Slot& slot_;
  Instant until_;
  Revoke revoke_;
};

/// The wait for a slot; see acquire().
class [[nodiscard]] FairSlots::Acquire : public QueuedWait {
 public:
  using Value = Result<Slot>;

  Acquire(FairSlots& slots, Client client) noexcept : slots_(slots), client_(client) {}
  bool ready();
  bool begin(Loop& loop);
  void withdraw() noexcept;
  void on_withdrawn() noexcept;
  Value value() noexcept { return Slot(slots_, *account_); }
  WaitAwaiter<Acquire> operator co_await() && noexcept { return WaitAwaiter<Acquire>(*this); }

 private:
  friend FairSlots;
  FairSlots& slots_;
  Client client_;
  Account* account_ = nullptr;  // since it waits, or has a slot
};

inline FairSlots::Acquire FairSlots::acquire(Client client) noexcept {
  return {*this, client};
}

}  // namespace weir::detail

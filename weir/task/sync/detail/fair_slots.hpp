// FairSlots: a number of slots that the clients of a service share, with a queue that is fair
// between them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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
/// hostile, so that a client costs others nothing. Clients have two levels: a group, such as the
/// network of an address, has connections. Groups are compared first.
///
/// *Share.* A group may have another slot while it has fewer than are free: one group gets at most
/// half of the slots, the next one half of the rest. The connections of a group divide its share in
/// the same way. A newcomer thus finds a free slot. If all clients of the last ten minutes are of
/// one group, such as those behind a load balancer, the connections alone divide the slots. Fewer
/// than `shared_min` slots have no shares.
///
/// *Queue.* The groups that wait get slots in turn, one each, and so do the connections of a group,
/// however many requests a client has. If the queue is full, the newest wait of the connection with
/// the most waits of the group with the most waits gives way.
///
/// *Claims.* A client may use what another client has a slot for, such as an open file. It then has
/// a claim: it counts for the share of the client, and takes no slot. If the slot is given back
/// before, the claim takes it over.
///
/// *Stalls.* A slot whose work waits for its client may be revoked when its time is over. The
/// condition is that a group, or a connection of the same group, waits with fewer slots. The
/// waiting client then gets the slot. The group with the most slots loses the first one. The bytes
/// of a client that sends or reads slowly thus delay only itself.
/// Threads: its loop's.
/// Lifetime: it outlives its slots and waits (asserted).
class FairSlots : loop::Timer {
 public:
  /// Identifies a client.
  struct Client {
    std::uint64_t group = 0;
    const void* connection = nullptr;  ///< an address that no other connection has
    bool operator==(const Client&) const = default;
  };
  struct Limits {
    std::size_t slots;
    std::size_t waiting_max;  ///< waits in the queue
    bool operator==(const Limits&) const = default;
  };
  static constexpr std::size_t shared_min = 8;
  /// The time for which groups have shares after two of them have used the slots.
  static constexpr Duration groups_time = std::chrono::minutes(10);

  class Slot;
  class Stall;
  class Acquire;

  FairSlots(Loop& loop, const Limits& limits);
  FairSlots(const FairSlots&) = delete;
  FairSlots& operator=(const FairSlots&) = delete;
  ~FairSlots();

  std::size_t slots() const noexcept { return limits_.slots; }
  /// Changes the number of slots, at least to 1. Slots in use above the new number stay with their
  /// clients, and nobody gets one until enough of them were given back.
  void set_slots(std::size_t slots);
  std::size_t in_use() const noexcept { return in_use_; }
  /// Returns the number of waits.
  std::size_t waiting() const noexcept { return waiting_; }

  /// Takes a slot without waiting; nullopt if the client has no right to one now.
  /// Errors: throws std::bad_alloc.
  std::optional<Slot> try_acquire(const Client& client);
  /// Makes a claim; nullopt if the client has a slot or a claim and no right to another one.
  /// Errors: throws std::bad_alloc.
  std::optional<Slot> try_claim(const Client& client);
  /// Waits for a slot: `co_await slots.acquire(client)`.
  /// Returns: a Result<Slot>.
  /// Errors: Errc::limit_reached if it gives way in a full queue; Errc::cancelled. Throws
  /// std::bad_alloc.
  /// Cancel: leaves the queue. A slot that was granted before is kept.
  Acquire acquire(const Client& client) noexcept;

 private:
  /// The accounts of a queue with the fewest slots.
  struct Demand {
    std::size_t fewest = 0;  // slots of each
    std::size_t waits = 0;   // of all
  };
  /// A group, or a connection, with slots or waits.
  struct Account : ListNode {
    Client client;
    Account* group = nullptr;     // of a connection
    std::size_t connections = 0;  // accounts of a group
    std::size_t held = 0;         // slots and claims
    std::size_t waiting = 0;      // waits
    std::size_t revoked = 0;      // slots that were revoked and not given back yet
    List<Account> queue;          // of a group: connections with waits, the next one first
    Demand demand;                // of the queue, while stalls are looked at
    WaitQueue<QueuedWait> waits;  // of a connection; each is an Acquire

    std::size_t kept() const noexcept { return held - revoked; }
  };
  struct Hash {
    std::size_t operator()(const Client& client) const noexcept {
      return static_cast<std::size_t>(client.group) ^ std::hash<const void*>()(client.connection);
    }
  };
  using Accounts = std::unordered_map<Client, Account, Hash>;

  /// The time between two looks at the stalls, which bounds their cost.
  static constexpr Duration check_interval = std::chrono::milliseconds(10);
  static constexpr std::size_t revocations_max = 16;  // of one look
  static constexpr std::size_t spare_max = 64;

  Account& account_of(const Client& client);
  Account& find_or_add(const Client& client);
  void drop_if_unused(Account& account) noexcept;
  void note_group(std::uint64_t group) noexcept;
  std::size_t room(const Account& group) const noexcept;
  bool has_right(const Account& account) const noexcept;
  void take(Account& account, bool is_claim = false) noexcept;
  void release(Account& account, bool revoked, bool is_claim);

  void add(Acquire& wait);
  void remove(Acquire& wait) noexcept;
  void grant_first(Account& account);
  void grant_waiters();
  bool make_room(Account& account);
  static Account* with_fewest_slots(const List<Account>& queue) noexcept;
  static Account* with_most_waits(const List<Account>& queue) noexcept;

  static Demand demand_of(const List<Account>& queue) noexcept;
  static std::size_t rivals_of(const Stall& stall, const Demand& groups) noexcept;
  Account* heir_of(const Account& account) const noexcept;
  Stall* next_to_revoke(const Demand& groups, Instant& next) const noexcept;
  void count_revoked(Account& account, int change) noexcept;
  void arm(Instant time);
  void revoke_stalls();

  Loop& loop_;
  Limits limits_;
  std::size_t in_use_ = 0;
  std::size_t waiting_ = 0;
  std::size_t revoked_ = 0;  // slots that were revoked and not given back yet
  Instant next_check_ = Instant::min();
  std::optional<std::uint64_t> newest_group_;
  Instant groups_until_ = Instant::min();   // when groups have no shares any more
  Accounts accounts_;                       // of groups and connections with a slot or a wait
  std::vector<Accounts::node_type> spare_;  // memory of clients that have left
  List<Account> queue_;                     // groups with waits, the next one first
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
        revoked_(other.revoked_),
        claim_(other.claim_) {}
  Slot& operator=(Slot&& other) noexcept {
    Slot before(std::move(other));  // gives back the slot of this object
    std::swap(slots_, before.slots_);
    std::swap(account_, before.account_);
    std::swap(revoked_, before.revoked_);
    std::swap(claim_, before.claim_);
    return *this;
  }
  ~Slot() { release(); }

  explicit operator bool() const noexcept { return slots_ != nullptr; }
  /// Returns true if a Stall of the slot was revoked.
  bool revoked() const noexcept { return revoked_; }
  /// Returns true if this is a claim.
  bool is_claim() const noexcept { return claim_; }
  /// Gives the slot to a claim, and becomes the claim. Both are of the same FairSlots (asserted).
  void hand_over(Slot& claim) noexcept;
  void release() {
    if (FairSlots* const slots = std::exchange(slots_, nullptr)) {
      slots->release(*account_, revoked_, claim_);
    }
  }

 private:
  friend FairSlots;
  Slot(FairSlots& slots, Account& account, bool is_claim = false) noexcept
      : slots_(&slots), account_(&account), claim_(is_claim) {}

  FairSlots* slots_ = nullptr;
  Account* account_ = nullptr;
  bool revoked_ = false;
  bool claim_ = false;
};

/// A Stall exists while the work of a slot waits for its client.
/// Threads: the loop's.
/// Lifetime: the slot stays where it is, and is held, as long as its Stall exists.
class FairSlots::Stall : public ListNode {
 public:
  /// Ends the work of the slot soon, which gives the slot back.
  using Revoke = void (*)(Stall& stall) noexcept;

  /// The slot may be revoked from `until` on, if a waiting client has at least `lead` slots fewer.
  /// The stalls of a group are revoked in the order in which they began. An empty Slot is never
  /// revoked.
  Stall(Slot& slot, Instant until, Revoke revoke, std::size_t lead = 1);
  /// Begins anew: the other stalls of its group are revoked before this one.
  void renew() noexcept;

 private:
  friend FairSlots;
  Slot& slot_;
  Instant until_;
  Revoke revoke_;
  std::size_t lead_;
};

/// The wait for a slot; see acquire().
class [[nodiscard]] FairSlots::Acquire : public QueuedWait {
 public:
  using Value = Result<Slot>;

  Acquire(FairSlots& slots, const Client& client) noexcept : slots_(slots), client_(client) {}
  bool ready();
  bool begin(Loop& loop);
  void withdraw() noexcept { slots_.remove(*this); }
  void on_withdrawn() noexcept { slots_.drop_if_unused(*account_); }
  Value value() noexcept {
    if (account_ == nullptr) return fail(Errc::limit_reached);
    return Slot(slots_, *account_);
  }
  WaitAwaiter<Acquire> operator co_await() && noexcept { return WaitAwaiter<Acquire>(*this); }

 private:
  friend FairSlots;
  FairSlots& slots_;
  Client client_;
  Account* account_ = nullptr;  // since it waits, or has a slot; nullptr again if it gave way
};

inline FairSlots::Acquire FairSlots::acquire(const Client& client) noexcept {
  return {*this, client};
}

}  // namespace weir::detail

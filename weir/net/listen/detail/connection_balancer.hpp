// Balancing of connections between the cores that listen on one address. A core with too many
// connections hands new ones to the core with the fewest, before a byte has been read.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/loop/detail/cross_core_queue.hpp"
#include "weir/os/address.hpp"
#include "weir/runtime/detail/connection_counters.hpp"

namespace weir {

/// BalancePolicy decides when a core hands connections over. The core must have at least
/// `connections_min` connections. It begins at 1.25 times the mean of all cores and ends at the
/// mean. Strictly even traffic therefore never starts a handover.
///
/// Clients that the kernel spreads at random rarely start one, and only while they are few. A core
/// may then have a quarter too many by chance. The shares of moved connections were calculated for
/// the first 4,000 clients that come and stay. They are 0.02 % on 2 cores, 0.1 % on 4, and 0.6 %
/// on 16.
class BalancePolicy {
 public:
  static constexpr std::size_t connections_min = 32;

  /// Returns true if a core with `own` connections hands the next one over. All `cores` cores
  /// together have `all` connections. Remembers if the core has begun.
  bool should_hand_over(std::size_t own, std::size_t all, std::size_t cores) noexcept;

 private:
  bool active_ = false;
};

/// The connections that other cores hand over to the listener of one core. A queued connection is
/// served or closed. No connection is lost between the cores, even while one of them drains.
class HandoffQueue {
 public:
  explicit HandoffQueue(Loop& loop);
  ~HandoffQueue() { close(); }
  HandoffQueue(const HandoffQueue&) = delete;
  HandoffQueue& operator=(const HandoffQueue&) = delete;

  /// A Receiver is notified on the thread of the loop after a connection has been queued.
  class Receiver {
   public:
    virtual void on_connections() = 0;

   protected:
    ~Receiver() = default;
  };

  // Any thread may call these functions.

  /// Returns the number of open connections of the core plus the connections in this queue.
  std::size_t load() const noexcept;
  bool is_open() const noexcept { return open_.load(std::memory_order_relaxed); }
  /// Takes the connection over, if the queue is open and memory suffices.
  /// Returns: true if it was taken; the caller keeps it otherwise.
  [[nodiscard]] bool try_push(loop::Descriptor& connection);

  // Only the loop's thread may call these functions.

  /// Opens the queue for `receiver`.
  /// Returns: false if the queue has a receiver already.
  [[nodiscard]] bool open(Receiver& receiver);
  /// Refuses new connections. The queued ones can still be taken.
  void stop_receiving();
  /// Refuses new connections, closes the queued ones and removes the receiver, which is not
  /// notified any more.
  void close();
  bool empty() const noexcept { return connections_.empty(); }
  /// Removes and returns the oldest connection; empty if the queue is empty.
  loop::Descriptor take();

 private:
  friend class ConnectionBalancer;
  struct Item {
    loop::Descriptor connection;
    Item* next = nullptr;
  };

  Loop& loop_;
  const ConnectionCounters& counters_;
  Receiver* receiver_ = nullptr;  // used only by the loop
  BalancePolicy policy_;          // used only by the loop
  std::atomic<bool> open_{false};
  std::atomic<std::size_t> size_{0};  // of the connections in the queue, or about to be
  loop::CrossCoreQueue<Item, &Item::next> connections_;  // closed unless `open_`
};

/// The handoff queues of the loops of a group, for one address.
/// Threads: any, except where a function documents other threads.
/// Lifetime: outlives the loops.
class ConnectionBalancer {
 public:
  explicit ConnectionBalancer(std::span<Loop* const> loops);
  /// Returns the balancer of the group of `loop` for the address `bound`, and creates it if needed.
  /// It lives as long as the group. Returns nullptr if the group has only one loop.
  static ConnectionBalancer* of(Loop& loop, const os::Address& bound);

  HandoffQueue& handoff_queue(unsigned core) noexcept { return *queues_[core]; }
  /// Hands over the connection that `core` has just accepted, if the policy decides so. Call it on
  /// the thread of `core`, with its handoff queue open.
  /// Returns: true if another core has taken it; the caller keeps it otherwise.
  [[nodiscard]] bool hand_over(unsigned core, loop::Descriptor& connection);

 private:
  std::vector<std::unique_ptr<HandoffQueue>> queues_;  // by core
};

}  // namespace weir

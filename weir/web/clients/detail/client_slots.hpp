// ClientSlots: what the clients of a service share on one core, such as the requests to upstreams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/message/request.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/sync/detail/fair_slots.hpp"
#include "weir/task/task.hpp"

namespace weir::http::detail {

/// The slots of one core for requests. Clients share them by address, and by connection below it;
/// see FairSlots. The address is client_address(), or its network of 64 bits for IPv6.
/// Threads: its loop's.
/// Lifetime: that of FairSlots.
class ClientSlots {
 public:
  using Slots = weir::detail::FairSlots;
  using Client = Slots::Client;
  using Slot = Slots::Slot;
  using Stall = Slots::Stall;
  struct Limits {
    Slots::Limits slots;
    Duration queue_timeout = Duration::zero();
    bool operator==(const Limits&) const = default;
  };

  ClientSlots(Loop& loop, const Limits& limits)
      : limits_(limits), seed_(loop.platform().random()), slots_(loop, limits.slots) {}

  const Limits& limits() const noexcept { return limits_; }
  std::size_t slots() const noexcept { return slots_.slots(); }
  /// Changes the number of slots; see FairSlots::set_slots().
  void set_slots(std::size_t slots) { slots_.set_slots(slots); }
  std::size_t in_use() const noexcept { return slots_.in_use(); }
  /// Returns the number of waits.
  std::size_t waiting() const noexcept { return slots_.waiting(); }

  /// Returns the client of a request.
  Client client_of(const Request& request) const;
  /// Takes a slot without waiting; nullopt if the client has no right to one now.
  /// Errors: throws std::bad_alloc.
  std::optional<Slot> try_acquire(const Client& client) { return slots_.try_acquire(client); }
  /// Makes a claim of what another client has a slot for; see FairSlots::try_claim().
  /// Errors: throws std::bad_alloc.
  std::optional<Slot> try_claim(const Client& client) { return slots_.try_claim(client); }
  /// Waits for a slot.
  /// Errors: ClientError::queue_full if the wait gives way in a full queue;
  /// ClientError::queue_timed_out after Limits::queue_timeout; Errc::cancelled. Throws
  /// std::bad_alloc.
  /// Cancel: leaves the queue.
  Task<Result<Slot>> acquire(Client client);

 private:
  Limits limits_;
  std::uint64_t seed_;
  Slots slots_;
};

}  // namespace weir::http::detail

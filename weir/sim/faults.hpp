// Faults that a World injects, at random or at an exact point.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weir/loop/contract/detail/operation.hpp"
#include "weir/os/address.hpp"
#include "weir/sim/detail/random.hpp"

namespace weir::sim {

/// A kind of failure that a World can inject.
enum class Fault : std::uint8_t {
  reset,           ///< a reset at both ends (ECONNRESET); a connect is refused
  half_close,      ///< the other side can send no more data; after a connect, it can send none
  stall,           ///< a random time during which no new data arrives
  full_buffer,     ///< a random time during which no data can be sent
  accept_failure,  ///< an accept(2) that fails with EMFILE, ENFILE, ENOBUFS or ENOMEM
  allocation,    ///< a failed allocation in a core's pool: std::bad_alloc, or ENOMEM from functions
                 ///< that return errors
  loss,          ///< a datagram that does not arrive
  doubling,      ///< a datagram that arrives twice
  file_failure,  ///< a read, write or sync of an open file that does nothing and fails with EIO
};
inline constexpr std::size_t fault_count = 9;

std::string_view to_string(Fault fault) noexcept;

/// The probability of each fault, from 0 (never) to 1 (always). It applies to each operation on a
/// connection. The probability of accept_failure applies to each accept, those of loss and
/// doubling to each datagram, and that of file_failure to each read, write or sync of a file.
struct FaultRates {
  double reset = 0;
  double half_close = 0;
  double stall = 0;
  double full_buffer = 0;
  double accept_failure = 0;
  double loss = 0;
  double doubling = 0;
  double file_failure = 0;
  Duration stall_max = std::chrono::seconds(20);  ///< maximum duration of a stall or a full_buffer
};

/// A FaultInjector decides which faults happen, and when. A fault happens when an operation
/// begins, just before it. Each host counts its operations on connections from 0. It counts its
/// accepts of waiting connections, the datagrams that it sends, and its reads, writes and syncs of
/// files in the same way, each separately.
/// Threads: one.
class FaultInjector {
 public:
  FaultRates rates;

  /// Plans `fault` once, for the operation of `host` that has this number. The number is that of
  /// an accept for accept_failure, that of a datagram for loss and doubling, and that of a read,
  /// write or sync of a file for file_failure. The fault does not happen if that operation has
  /// begun already. `fault` is not an allocation (asserted); see fail_allocation().
  void inject(std::string_view host, std::uint64_t number, Fault fault) {
    assert(fault != Fault::allocation);
    planned_.push_back({std::string(host), number, fault, {}});
  }
  /// Plans an accept_failure with the error `reason`: EMFILE, ENFILE, ENOBUFS or ENOMEM.
  void fail_accept(std::string_view host, std::uint64_t number, std::error_code reason) {
    planned_.push_back({std::string(host), number, Fault::accept_failure, reason});
  }
  /// Makes the allocation `number` of a core fail once. The next run of its runtime counts the
  /// allocations from 0 at its start. Each run takes the first planned allocation of its core.
  void fail_allocation(std::string_view host, unsigned core, std::size_t number) {
    allocations_.push_back({std::string(host), core, number});
  }
  /// Stops injecting faults: sets all rates to 0 and drops the planned faults. stop() keeps the
  /// counts.
  void stop() {
    rates = {};
    planned_.clear();
    allocations_.clear();
  }
  /// Returns how often the fault has happened.
  std::uint64_t injected(Fault fault) const noexcept {
    return injected_[static_cast<std::size_t>(fault)];
  }

  /// Returns how often any fault has happened.
  std::uint64_t injected() const noexcept;
  /// Returns true if a fault has happened on a connection that has the address `end` at one of
  /// its ends.
  bool has_injected(const os::Address& end) const;
  /// Returns the number of connects in which a fault has happened. has_injected() does not cover
  /// them, because their addresses are not known yet.
  std::uint64_t injected_connects() const noexcept { return injected_connects_; }
  /// Returns the hosts of planned faults that have not happened yet, sorted and without
  /// duplicates.
  std::vector<std::string> planned_hosts() const;

  // Functions for the hosts.

  /// Returns the fault that happens at this operation on a connection, if any.
  std::optional<Fault> at_operation(std::string_view host, std::uint64_t number, Random& random);
  /// Returns the error of this accept; no error if it does not fail.
  std::error_code at_accept(std::string_view host, std::uint64_t number, Random& random);
  std::optional<Fault> at_datagram(std::string_view host, std::uint64_t number, Random& random);
  /// Returns true if this read, write or sync of a file fails.
  bool at_file(std::string_view host, std::uint64_t number, Random& random);
  std::optional<std::size_t> failing_allocation(std::string_view host, unsigned core);
  void count(Fault fault) noexcept { ++injected_[static_cast<std::size_t>(fault)]; }
  void add_injected(const os::Address& one, const os::Address& other) {
    injected_endpoints_.insert(injected_endpoints_.end(), {one, other});
  }
  void count_injected_connect() noexcept { ++injected_connects_; }

 private:
  struct Planned {
    std::string host;
    std::uint64_t number;
    Fault fault;
    std::error_code reason;
  };
  struct PlannedAllocation {
    std::string host;
    unsigned core;
    std::size_t number;
  };
  enum class Trigger : std::uint8_t { operation, accept, datagram, file };
  static Trigger trigger_of(Fault fault) noexcept;
  std::optional<Planned> planned(std::string_view host, std::uint64_t number, Trigger trigger);

  std::vector<Planned> planned_;
  std::vector<PlannedAllocation> allocations_;
  std::array<std::uint64_t, fault_count> injected_{};
  std::vector<os::Address> injected_endpoints_;
  std::uint64_t injected_connects_ = 0;
};

}  // namespace weir::sim

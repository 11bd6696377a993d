// What goes wrong in a World: so often, or at an exact point.
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

namespace weir {

enum class Fault : std::uint8_t {
  reset,           ///< both sides of the connection get ECONNRESET; a connect is refused
  half_close,      ///< the other side can send nothing more, of a connect from its beginning
  stall,           ///< nothing new arrives for a drawn time
  full_buffer,     ///< there is no room for anything that is sent, for a drawn time
  accept_failure,  ///< accept(2) gives EMFILE, ENFILE, ENOBUFS or ENOMEM
  allocation,      ///< a core's pool has no block: std::bad_alloc, or ENOMEM where that is a value
  loss,            ///< a datagram does not arrive
  doubling,        ///< a datagram arrives twice
};
inline constexpr std::size_t fault_count = 8;

std::string_view to_string(Fault fault) noexcept;

/// How often each strikes: at one of so many operations on average; an accept_failure at one of so
/// many accepts, loss and doubling at one of so many datagrams.
struct FaultRates {
  double reset = 0;
  double half_close = 0;
  double stall = 0;
  double full_buffer = 0;
  double accept_failure = 0;
  double loss = 0;
  double doubling = 0;
  Duration stall_max = std::chrono::seconds(20);  ///< of a full_buffer, too
};

/// Strikes when an operation begins, just before it. Operations on connections are counted for each
/// host, from 0, and so are attempts to accept what waits, and datagrams that it sends. Threads:
/// one.
class WorldFaults {
 public:
  FaultRates rates;

  /// Lets it strike once, at the operation of `host` (the accept, for an accept_failure; the
  /// datagram, for loss and doubling) that has this number, unless that one has been already. Not
  /// for an allocation (asserted): see fail_allocation().
  void strike(std::string_view host, std::uint64_t number, Fault fault) {
    assert(fault != Fault::allocation);
    planned_.push_back({std::string(host), number, fault, {}});
  }
  /// An accept_failure for this reason: EMFILE, ENFILE, ENOBUFS or ENOMEM.
  void fail_accept(std::string_view host, std::uint64_t number, std::error_code reason) {
    planned_.push_back({std::string(host), number, Fault::accept_failure, reason});
  }
  /// Lets one allocation of a core fail, once, the one with this number from the start of the next
  /// run of its runtime.
  void fail_allocation(std::string_view host, unsigned core, std::size_t number) {
    allocations_.push_back({std::string(host), core, number});
  }
  /// From now on nothing strikes: what was asked for is forgotten.
  void stop() {
    rates = {};
    planned_.clear();
    allocations_.clear();
  }
  /// How often it has struck.
  std::uint64_t struck(Fault fault) const noexcept {
    return struck_[static_cast<std::size_t>(fault)];
  }

  /// How often anything has.
  std::uint64_t struck() const noexcept;
  /// Whether anything has struck a connection that has this address at one of its ends.
  bool has_struck(const os::Address& end) const;
  /// How many connects have been struck: of those nobody knows an address yet.
  std::uint64_t struck_connects() const noexcept { return struck_connects_; }
  /// The hosts of what has been asked for at a point that has not come yet, each once, in order.
  std::vector<std::string> planned_hosts() const;

  // For the hosts.

  /// What strikes at this operation; one on a connection.
  std::optional<Fault> at_operation(std::string_view host, std::uint64_t number, WorldDraw& draw);
  /// Why this accept fails; no error: it does not.
  std::error_code at_accept(std::string_view host, std::uint64_t number, WorldDraw& draw);
  std::optional<Fault> at_datagram(std::string_view host, std::uint64_t number, WorldDraw& draw);
  std::optional<std::size_t> failing_allocation(std::string_view host, unsigned core);
  void count(Fault fault) noexcept { ++struck_[static_cast<std::size_t>(fault)]; }
  void add_struck(const os::Address& one, const os::Address& other) {
    struck_ends_.insert(struck_ends_.end(), {one, other});
  }
  void add_struck_connect() noexcept { ++struck_connects_; }

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
  enum class Place : std::uint8_t { operation, accept, datagram };
  static Place place_of(Fault fault) noexcept;
  std::optional<Planned> planned(std::string_view host, std::uint64_t number, Place place);

  std::vector<Planned> planned_;
  std::vector<PlannedAllocation> allocations_;
  std::array<std::uint64_t, fault_count> struck_{};
  std::vector<os::Address> struck_ends_;
  std::uint64_t struck_connects_ = 0;
};

}  // namespace weir

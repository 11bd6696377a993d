// In which order the addresses of a name are tried.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "weir/net/dns/detail/host_name.hpp"
#include "weir/os/address.hpp"

namespace weir::names {

/// IPv6 first, then both families in turn, each in the order in which it came (RFC 8305 §4 with a
/// First Address Family Count of 1). Of RFC 6724 that leaves out what would need the kernel's
/// routes: an address without a way to it fails at once when it is tried, and the next one follows.
/// Threads: one.
class AddressOrder {
 public:
  /// Behind those that the family has already.
  void add(Family family, const std::vector<Endpoint>& addresses) {
    auto& queue = queues_[index_of(family)].addresses;
    queue.insert(queue.end(), addresses.begin(), addresses.end());
  }
  bool empty() const noexcept { return left(Family::ipv6) + left(Family::ipv4) == 0; }

  /// Takes the next one.
  std::optional<Endpoint> next() {
    if (empty()) return std::nullopt;
    const Family family = left(turn_) > 0 ? turn_ : other(turn_);
    turn_ = other(family);
    Queue& queue = queues_[index_of(family)];
    return queue.addresses[queue.taken++];
  }

 private:
  struct Queue {
    std::vector<Endpoint> addresses;
    std::size_t taken = 0;
  };
  static std::size_t index_of(Family family) noexcept { return static_cast<std::size_t>(family); }
  static Family other(Family family) noexcept {
    return family == Family::ipv6 ? Family::ipv4 : Family::ipv6;
  }
  std::size_t left(Family family) const noexcept {
    const Queue& queue = queues_[index_of(family)];
    return queue.addresses.size() - queue.taken;
  }

  std::array<Queue, 2> queues_;
  Family turn_ = Family::ipv6;
};

}  // namespace weir::names

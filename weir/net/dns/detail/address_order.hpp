// The order in which the addresses of a name are tried.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "weir/net/dns/detail/host_name.hpp"
#include "weir/os/address.hpp"

namespace weir::dns {

/// A queue of addresses that begins with IPv6 and then alternates between both families. Each
/// family keeps its order of insertion (RFC 8305 §4 with a First Address Family Count of 1). It
/// omits the rules of RFC 6724 that need the kernel's routes. An address without a route fails
/// immediately when it is tried, and the next one follows.
/// Threads: one.
class AddressOrder {
 public:
  /// Appends addresses to the queue of `family`.
  void add(Family family, const std::vector<Endpoint>& addresses) {
    auto& queue = queues_[index_of(family)].addresses;
    queue.insert(queue.end(), addresses.begin(), addresses.end());
  }
  bool empty() const noexcept { return left(Family::ipv6) + left(Family::ipv4) == 0; }

  /// Removes and returns the next address; nullopt if none is left.
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

}  // namespace weir::dns

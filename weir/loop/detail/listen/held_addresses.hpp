// The addresses that sockets of one runtime are bound to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "weir/os/address.hpp"

namespace weir::loop {

/// HeldAddresses tells if a socket of this runtime is the reason why an address is in use. To wait
/// for such an address is useless, because this runtime itself would have to release it. Listeners
/// and datagram sockets have a HeldAddresses each.
/// Threads: any.
class HeldAddresses {
 public:
  /// The socket of the address is open while its owner keeps the Hold.
  using Hold = std::shared_ptr<const os::Address>;

  /// Records that a socket is bound to `bound`. `owner` is its loop. Takes amortised constant time.
  Hold hold(const os::Address& bound, const void* owner = nullptr) {
    auto hold = std::make_shared<const os::Address>(bound);
    const std::lock_guard lock(mutex_);
    if (holds_.size() >= prune_at_) {
      std::erase_if(holds_, [](const Entry& each) { return each.hold.expired(); });
      prune_at_ = std::max(prune_min, 2 * holds_.size());
    }
    holds_.push_back({hold, owner});
    return hold;
  }

  /// Returns the bound address of a socket that keeps others from binding to `asked`.
  std::optional<os::Address> find_conflict(const os::Address& asked) const {
    const std::lock_guard lock(mutex_);
    for (const Entry& each : holds_) {
      const Hold held = each.hold.lock();
      if (held != nullptr && conflict(asked, *held)) return *held;
    }
    return std::nullopt;
  }

  /// Returns true if `owner` has a socket that is bound to `bound`. nullptr owns nothing.
  bool holds(const void* owner, const os::Address& bound) const {
    if (owner == nullptr) return false;
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(holds_, [&](const Entry& each) {
      if (each.owner != owner) return false;
      const Hold held = each.hold.lock();
      return held != nullptr && *held == bound;
    });
  }

 private:
  struct Entry {
    std::weak_ptr<const os::Address> hold;
    const void* owner;
  };
  static bool conflict(const os::Address& one, const os::Address& other) noexcept {
    return one == other || covers(one, other) || covers(other, one);
  }
  /// Returns true if `all` means every address of its port, and `one` is an address of that port.
  static bool covers(const os::Address& all, const os::Address& one) noexcept {
    if (!all.is_any() || all.port() == 0 || all.port() != one.port()) return false;
    // [::] also receives what IPv4 peers send.
    return all.family() == os::AddressFamily::ipv6 || all.family() == one.family();
  }

  static constexpr std::size_t prune_min = 16;

  mutable std::mutex mutex_;
  std::vector<Entry> holds_;
  std::size_t prune_at_ = prune_min;
};

}  // namespace weir::loop

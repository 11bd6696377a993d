// The network of a World: a way from each host to each, which can be cut and slowed down.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "weir/testing/network/detail/memory_datagram_network.hpp"
#include "weir/testing/network/detail/memory_network.hpp"
#include "weir/testing/network/detail/link_model.hpp"
#include "weir/testing/world_state.hpp"

namespace weir {

/// One direction.
class WorldPath final : public MemoryPath {
 public:
  WorldPath(WorldState& state, bool inside) noexcept : state_(state), inside_(inside) {}

  MemoryClock& clock() noexcept override { return state_.clock; }
  Duration delay() override;
  std::size_t parcel(std::size_t most) override;
  bool open() const noexcept override { return open_; }
  void set_open(bool open) noexcept { open_ = open; }
  void set_extra_delay(Duration delay) noexcept { extra_delay_ = delay; }

 private:
  WorldState& state_;
  bool inside_;  // of one host
  bool open_ = true;
  Duration extra_delay_{};
};

/// Threads: one at a time.
class WorldLinks final : public MemoryRoutes {
 public:
  explicit WorldLinks(WorldState& state) noexcept : state_(state) {}

  /// `own`: the address of the host that has these, with port 0.
  void add(const os::Address& own, MemoryNetwork& streams, MemoryDatagramNetwork& datagrams) {
    sites_.push_back({own, &streams, &datagrams});
  }
  MemoryNetwork* network_at(const os::Address& address) override;
  MemoryDatagramNetwork* datagrams_at(const os::Address& address) override;
  WorldPath& path(const os::Address& from, const os::Address& to) override;

 private:
  struct Site {
    os::Address own;
    MemoryNetwork* streams;
    MemoryDatagramNetwork* datagrams;
  };
  /// Of the host that has this address, or how many hosts there are.
  std::size_t number_of(const os::Address& address) const;

  WorldState& state_;
  std::vector<Site> sites_;
  std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<WorldPath>> paths_;
};

}  // namespace weir

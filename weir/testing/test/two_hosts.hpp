// Two simulated hosts and the links between them, which a test controls. For tests only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>

#include "weir/testing/network/detail/link_model.hpp"
#include "weir/testing/network/detail/memory_datagram_network.hpp"
#include "weir/testing/network/detail/memory_network.hpp"
#include "weir/testing/test/scripted_platform.hpp"

namespace weir {

/// A link whose delays and segments a test sets.
class ScriptedLink final : public LinkModel {
 public:
  explicit ScriptedLink(MemoryClock& clock) noexcept : clock_(clock) {}

  MemoryClock& clock() noexcept override { return clock_; }
  Duration delay() override {
    if (delays.empty()) return usual_delay;
    const Duration next = delays.front();
    delays.pop_front();
    return next;
  }
  std::size_t segment(std::size_t most) override { return std::min(most, segment_max); }
  bool open() const noexcept override { return is_open; }

  std::deque<Duration> delays;  ///< delays of the next segments
  Duration usual_delay = std::chrono::milliseconds(10);
  std::size_t segment_max = std::numeric_limits<std::size_t>::max();
  bool is_open = true;

 private:
  MemoryClock& clock_;
};

/// Two hosts, 10.0.0.1 and 10.0.0.2. Connections hold 100 bytes in each direction.
class TwoHosts final : public NetworkTopology {
 public:
  TwoHosts() {
    one.join(*this, one_address);
    other.join(*this, other_address.with_port(9));  // the port has no meaning
    one_datagrams.join(*this, one_address);
    other_datagrams.join(*this, other_address);
  }
  MemoryNetwork* network_at(const os::Address& address) override {
    if (is_at(address, one_address)) return &one;
    return is_at(address, other_address) ? &other : nullptr;
  }
  MemoryDatagramNetwork* datagrams_at(const os::Address& address) override {
    if (is_at(address, one_address)) return &one_datagrams;
    return is_at(address, other_address) ? &other_datagrams : nullptr;
  }
  ScriptedLink& link(const os::Address& from, const os::Address& to) override {
    if (is_at(from, to)) return inside;
    return is_at(from, one_address) ? there : back;
  }
  void pass(Duration length) { clock.move_to(after(clock.now(), length)); }

  const os::Address one_address = os::Address::ipv4({10, 0, 0, 1}, 0);
  const os::Address other_address = os::Address::ipv4({10, 0, 0, 2}, 0);
  MemoryClock clock;
  ScriptedNondeterminism one_script;
  ScriptedNondeterminism other_script;
  ScriptedLink there{clock};   ///< from `one` to `other`
  ScriptedLink back{clock};    ///< from `other` to `one`
  ScriptedLink inside{clock};  ///< within one host
  MemoryNetwork one{100, one_script};
  MemoryNetwork other{100, other_script};
  MemoryDatagramNetwork one_datagrams;
  MemoryDatagramNetwork other_datagrams;

 private:
  static bool is_at(const os::Address& address, const os::Address& host) {
    return address.with_port(0) == host.with_port(0);
  }
};

/// A MemoryObserver that counts its calls.
class ChangeProbe final : public MemoryObserver {
 public:
  void on_change() override { ++changes; }
  int changes = 0;
};

}  // namespace weir

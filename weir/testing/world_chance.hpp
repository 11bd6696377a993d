// What one host of a World leaves to its seed, and where faults strike it.
#pragma once

#include <cstdint>
#include <string>

#include "weir/testing/memory_chance.hpp"
#include "weir/testing/world_state.hpp"

namespace weir {

/// Threads: one at a time. Lifetime: shorter than that of its state.
class WorldChance final : public MemoryChance {
 public:
  WorldChance(WorldState& state, std::string host) : state_(state), host_(std::move(host)) {}

  /// Operations on connections that have begun, and attempts to accept somebody who waits.
  std::uint64_t operations() const noexcept { return operations_; }
  std::uint64_t accepts() const noexcept { return accepts_; }
  /// That were sent.
  std::uint64_t datagrams() const noexcept { return datagrams_; }

  /// Whoever is dead accepts nobody, connects to nobody and sends nothing.
  void set_dead(bool dead) noexcept { dead_ = dead; }

  void beginning(const Operation& operation, MemoryStream* stream) override;
  void finished(const Operation& operation, std::size_t bytes) override;
  bool at_once() override { return !state_.draw.happens(state_.variation.deferred); }
  bool completes_when_cancelled() override {
    return !state_.draw.happens(state_.variation.cancelled);
  }
  std::size_t part(std::size_t most) override;
  bool crowds() override { return state_.draw.happens(state_.variation.crowding); }
  std::size_t pick(std::size_t count) override { return state_.draw.below(count); }
  std::error_code accept_failure() override;
  std::size_t datagram_copies() override;
  bool cut_off() override { return dead_; }
  Duration connect_time() override;
  Duration step_time() override { return state_.draw.between({}, state_.variation.step_max); }
  void step_begins() override { state_.watch.call_begins(); }
  void step_ends() override { state_.watch.call_ends(); }
  std::size_t buffer_bytes(std::size_t usual) override;

 private:
  void strike(Fault fault, MemoryStream& stream);
  Instant some_time();

  WorldState& state_;
  std::string host_;
  bool dead_ = false;
  std::uint64_t operations_ = 0;
  std::uint64_t accepts_ = 0;
  std::uint64_t datagrams_ = 0;
};

}  // namespace weir

// A simulated platform whose open decisions a test makes. This file is for tests only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"
#include "weir/testing/network/detail/nondeterminism.hpp"

namespace weir {

/// A Nondeterminism that returns what the test has set, and records its calls.
class ScriptedNondeterminism final : public Nondeterminism {
 public:
  static std::string name_of(loop::Operation::Kind kind) {
    constexpr std::array names = {"receive",           "send",          "accept", "connect", "file",
                                  "receive datagrams", "send datagrams"};
    return names[static_cast<std::size_t>(kind)];
  }

  void on_begin(const loop::Operation& operation, MemoryStream* stream) override {
    begun.push_back(name_of(operation.kind()) + (stream == nullptr ? "" : " on a stream"));
  }
  void on_finish(const loop::Operation& operation, std::size_t bytes) override {
    std::string text = name_of(operation.kind()) + " " + std::to_string(bytes);
    if (operation.state() != loop::Operation::State::finished) text += ", not finished";
    if (operation.error()) text += ", " + operation.error().message();
    finished.push_back(text);
  }
  bool completes_immediately() override { return immediate; }
  bool completes_when_cancelled() override { return completes_cancelled; }
  std::size_t transfer_size(std::size_t most) override { return std::min(most, transfer_max); }
  bool picks_first_listener() override { return first_listener; }
  std::size_t pick(std::size_t count) override {
    picked_from.push_back(count);
    return picks_last ? count - 1 : 0;
  }
  std::error_code accept_error() override {
    ++accepts;
    return std::exchange(next_accept_error, {});
  }
  std::size_t datagram_copies() override { return copies; }
  bool is_isolated() override { return isolated; }
  Duration connect_delay() override { return connect_time; }
  Duration step_delay() override { return step_time; }
  void on_step_begin() override { steps += '('; }
  void on_step_end() override { steps += ')'; }
  std::size_t buffer_bytes(std::size_t usual) override { return std::min(usual, buffer_max); }

  // Decisions.
  bool immediate = true;
  bool completes_cancelled = true;
  std::size_t transfer_max = std::numeric_limits<std::size_t>::max();
  bool first_listener = false;
  bool picks_last = false;
  std::error_code next_accept_error;
  std::size_t copies = 1;
  bool isolated = false;
  Duration connect_time{};
  Duration step_time{};
  std::size_t buffer_max = std::numeric_limits<std::size_t>::max();

  // Records.
  std::vector<std::string> begun;
  std::vector<std::string> finished;
  std::vector<std::size_t> picked_from;
  int accepts = 0;
  std::string steps;
};

/// The parts of a ScriptedPlatform that its base class needs.
struct ScriptedParts {
  MemoryClock shared_clock;
  ScriptedNondeterminism script;
};

/// A MemoryPlatform with a ScriptedNondeterminism.
class ScriptedPlatform final : public ScriptedParts, public MemoryPlatform {
 public:
  explicit ScriptedPlatform(const MemoryPlatformOptions& options = {})
      : MemoryPlatform(options, {shared_clock, script, nullptr}) {}
  /// Makes one more process of `machine`.
  explicit ScriptedPlatform(ScriptedPlatform& machine)
      : MemoryPlatform(MemoryPlatformOptions{}, {machine.shared_clock, script, &machine}) {}

  using MemoryPlatform::backends;
  using MemoryPlatform::take_signal;
  using MemoryPlatform::threads_running;
};

}  // namespace weir

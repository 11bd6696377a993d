// What happened in a World, line by line.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "weir/testing/network/detail/memory_clock.hpp"

namespace weir {

/// Two runs are the same if their traces are: no line holds an address of memory, or anything else
/// that the seed does not decide. Threads: one.
class WorldTrace {
 public:
  WorldTrace(const MemoryClock& clock, bool on) : clock_(clock), start_(clock.now()), on_(on) {}

  bool on() const noexcept { return on_; }
  /// Where what is noted from now on happens: "server/1", or "-" for no core's turn.
  void set_place(std::string place) { place_ = std::move(place); }
  /// Adds "12.345678901 server/1 <what>".
  void note(std::string_view what);
  const std::string& text() const noexcept { return text_; }

 private:
  const MemoryClock& clock_;
  Instant start_;
  bool on_;
  std::string place_ = "-";
  std::string text_;
};

}  // namespace weir

// The work with compressed data in one turn of a loop, bounded by input and by output.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/compression/progress.hpp"

namespace weir::compression {

/// TurnWork bounds what one task does with compressed data in one turn of its loop. A bound of the
/// output alone is not enough: all formats have blocks, members or frames without output, and a
/// compressor keeps its input. A step has a price too, because a block may have two bytes. The
/// bounds are less than a millisecond of any input.
/// Threads: one at a time.
class TurnWork {
 public:
  static constexpr std::size_t input_max = 16 * 1024;    ///< bytes of input per turn
  static constexpr std::size_t output_max = 256 * 1024;  ///< bytes of output per turn
  static constexpr std::size_t step_price = 16;          ///< bytes of input that a step counts more

  /// `input` is the number of bytes of input per turn, if it is not that of a decompressor.
  explicit TurnWork(std::uint32_t input = input_max) noexcept : input_of_turn_(input) {}

  /// Begins the work of a turn unless it has begun. `turn` is the loop's number of turns.
  void enter(std::uint64_t turn) noexcept {
    if (std::exchange(turn_, turn) == turn) return;
    input_left_ = input_of_turn_;
    output_left_ = output_max;
  }
  /// Returns true if the work goes on in the next turn.
  bool is_used() const noexcept { return input_left_ == 0 || output_left_ == 0; }
  /// Returns the first bytes of `input`: those that the next step may take.
  Bytes input(Bytes input) const noexcept {
    return input.first(std::min<std::size_t>(input.size(), input_left_));
  }
  /// Returns the room of the next step, at most `room`.
  std::size_t output(std::size_t room) const noexcept {
    return std::min<std::size_t>(room, output_left_);
  }
  void count(const Progress& step) noexcept {
    input_left_ -=
        static_cast<std::uint32_t>(std::min<std::size_t>(input_left_, step.consumed + step_price));
    output_left_ -= static_cast<std::uint32_t>(std::min<std::size_t>(output_left_, step.produced));
  }

 private:
  static constexpr std::uint64_t no_turn = ~std::uint64_t{0};

  std::uint64_t turn_ = no_turn;
  std::uint32_t input_of_turn_;
  std::uint32_t input_left_ = 0;
  std::uint32_t output_left_ = 0;
};

}  // namespace weir::compression

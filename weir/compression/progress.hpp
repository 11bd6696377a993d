// The result of one step of a compressor or a decompressor, and the flush of a compressor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::compression {

/// The result of one call that reads input and writes output.
struct Progress {
  std::size_t consumed = 0;  ///< bytes of the input that are finished
  std::size_t produced = 0;  ///< bytes that were written to the start of the output
  /// True if the call has done all work for this input. The caller repeats a call with the rest of
  /// the input and new room for output until `complete` is true.
  bool complete = false;
};

/// The amount of output that a call of a compressor must complete.
enum class Flush : std::uint8_t {
  none,    ///< nothing; the compressor may keep the input for a better ratio
  sync,    ///< a receiver can decompress all input so far
  finish,  ///< the end of the compressed data
};

}  // namespace weir::compression

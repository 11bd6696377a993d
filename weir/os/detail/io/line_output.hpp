// LineWriter: writes lines of the log to a descriptor whose reader may have stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "weir/base/time.hpp"

namespace weir::os {

/// A LineWriter writes whole lines to a descriptor that it does not own, such as a pipe whose
/// reader has stopped. A writing thread waits for room for a limited time. The line is then lost.
/// The next line that finds room follows a line with the number of lost lines. A line that has at
/// most 4 KiB (PIPE_BUF, pipe(7)) with its newline stays in one piece, even if other processes
/// write to the same pipe.
/// Threads: any.
/// Lifetime: the owner of the descriptor keeps it open.
class LineWriter {
 public:
  constexpr explicit LineWriter(int descriptor) noexcept : descriptor_(descriptor) {}

  /// Writes a line and a newline. It waits at most `timeout` for room. It does not wait if a line
  /// has been lost and the reader has not made room since. `errno` does not change.
  /// Returns: false if the line or its end is lost. A line that the descriptor rejects with an
  /// error is not counted as lost.
  bool write(std::string_view line, Duration timeout) noexcept;

 private:
  enum class WriteResult : std::uint8_t { written, no_room, failed };
  WriteResult write_piece(std::string_view line, std::size_t& written) noexcept;
  WriteResult write_some(std::string_view line, std::size_t& written) noexcept;
  bool drop(bool begun) noexcept;
  bool has_room(int milliseconds) const noexcept;

  const int descriptor_;
  std::mutex mutex_;  // never held while waiting for room
  std::uint64_t lines_dropped_ = 0;
  bool partly_written_ = false;  // true if the start of a lost line was written
};

}  // namespace weir::os

// Lines to standard error or the like, which somebody else reads, or has ceased to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "weir/base/time.hpp"

namespace weir::os {

/// Writes whole lines to a descriptor that it does not own, such as a pipe whose reader may have
/// ceased to read. Whoever writes waits for room, but not for ever: after that the line is lost,
/// and the next that finds room follows one that says how many were. A line of up to 4 KiB
/// (PIPE_BUF, pipe(7)) stays in one piece, whichever other processes write there.
/// Threads: any. Lifetime: the descriptor's owner keeps it open.
class LineOutput {
 public:
  constexpr explicit LineOutput(int descriptor) noexcept : descriptor_(descriptor) {}

  /// Waits at most that long, and not at all once a line has been lost, until there is room again.
  /// False: the line, or its end, is lost. `errno` stays as it is.
  bool write(std::string_view line, Duration patience) noexcept;

 private:
  enum class Piece : std::uint8_t { written, no_room, failed };
  Piece write_piece(std::string_view line, std::size_t& written) noexcept;
  Piece write_what_fits(std::string_view line, std::size_t& written) noexcept;
  bool lose(bool begun) noexcept;
  bool has_room(int milliseconds) const noexcept;

  const int descriptor_;
  std::mutex mutex_;  // who has it does not wait for room
  std::uint64_t lost_ = 0;
  bool cut_ = false;  // the last that was lost has begun
};

}  // namespace weir::os

#include "weir/os/detail/io/line_output.hpp"

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "weir/os/detail/io/clock.hpp"

namespace weir::os {

bool LineWriter::has_room(int milliseconds) const noexcept {
  pollfd wanted{descriptor_, POLLOUT, 0};
  // A closed or broken descriptor counts as having room; the write then returns the error.
  return ::poll(&wanted, 1, milliseconds) == 1;
}

/// Writes the next part of the line, and the newline after the last part. `written` counts the
/// newline too.
LineWriter::WriteResult LineWriter::write_piece(std::string_view line,
                                                std::size_t& written) noexcept {
  if (!has_room(0)) return WriteResult::no_room;
  char newline = '\n';
  const std::string_view rest = line.substr(std::min(written, line.size()));
  const bool last = rest.size() < PIPE_BUF;
  const std::array<iovec, 2> parts{
      {{const_cast<char*>(rest.data()), last ? rest.size() : PIPE_BUF}, {&newline, 1}}};
  const auto done = ::writev(descriptor_, parts.data(), last ? 2 : 1);
  if (done < 0 && errno == EAGAIN) return WriteResult::no_room;
  if (done < 0 && errno != EINTR) return WriteResult::failed;
  written += done < 0 ? 0 : static_cast<std::size_t>(done);
  return WriteResult::written;
}

/// Writes the part of the line for which there is room, after the notice about lost lines.
LineWriter::WriteResult LineWriter::write_some(std::string_view line,
                                               std::size_t& written) noexcept {
  const std::lock_guard lock(mutex_);
  while (lines_dropped_ != 0) {
    std::array<char, 96> text{};
    const int size = std::snprintf(
        text.data(), text.size(), "%sweir: log: %llu lines lost: the reader was too slow",
        partly_written_ ? "\n" : "", static_cast<unsigned long long>(lines_dropped_));
    std::size_t notice_written = 0;
    const auto piece = write_piece({text.data(), static_cast<std::size_t>(size)}, notice_written);
    if (piece != WriteResult::written) return piece;
    if (notice_written == 0) continue;
    lines_dropped_ = 0;
    partly_written_ = false;
  }
  while (written <= line.size()) {
    const auto piece = write_piece(line, written);
    if (piece != WriteResult::written) return piece;
  }
  return WriteResult::written;
}

bool LineWriter::drop(bool begun) noexcept {
  const std::lock_guard lock(mutex_);
  ++lines_dropped_;
  partly_written_ = partly_written_ || begun;
  return false;
}

bool LineWriter::write(std::string_view line, Duration timeout) noexcept {
  const int saved = errno;
  std::size_t written = 0;
  auto piece = write_some(line, written);
  if (piece == WriteResult::no_room) {
    bool may_wait = false;
    {
      const std::lock_guard lock(mutex_);
      may_wait = lines_dropped_ == 0;
    }
    const Instant until = after(monotonic_now(), timeout);
    for (Instant now = monotonic_now(); may_wait && piece == WriteResult::no_room && now < until;
         now = monotonic_now()) {
      // Another writer may have taken the room, or it may be too small. Wait another millisecond.
      if (has_room(to_poll_timeout(until, now))) ::poll(nullptr, 0, 1);
      piece = write_some(line, written);
    }
  }
  const bool whole =
      piece == WriteResult::written || (piece == WriteResult::no_room && drop(written > 0));
  errno = saved;
  return whole;
}

}  // namespace weir::os

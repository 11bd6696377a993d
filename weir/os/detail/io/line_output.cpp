#include "weir/os/line_output.hpp"

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "weir/os/detail/io/clock.hpp"

namespace weir::os {

bool LineOutput::has_room(int milliseconds) const noexcept {
  pollfd wanted{descriptor_, POLLOUT, 0};
  // What is closed, or broken, has room: writing says why it fails.
  return ::poll(&wanted, 1, milliseconds) == 1;
}

/// The next part of the line, and behind its last one the newline. `written` counts that one, too.
LineOutput::Piece LineOutput::write_piece(std::string_view line, std::size_t& written) noexcept {
  if (!has_room(0)) return Piece::no_room;
  char newline = '\n';
  const std::string_view rest = line.substr(std::min(written, line.size()));
  const bool last = rest.size() < PIPE_BUF;
  const std::array<iovec, 2> parts{
      {{const_cast<char*>(rest.data()), last ? rest.size() : PIPE_BUF}, {&newline, 1}}};
  const auto done = ::writev(descriptor_, parts.data(), last ? 2 : 1);
  if (done < 0 && errno == EAGAIN) return Piece::no_room;
  if (done < 0 && errno != EINTR) return Piece::failed;
  written += done < 0 ? 0 : static_cast<std::size_t>(done);
  return Piece::written;
}

/// As much of the line as there is room for, after what there is to say about those before.
LineOutput::Piece LineOutput::write_what_fits(std::string_view line,
                                              std::size_t& written) noexcept {
  const std::lock_guard lock(mutex_);
  while (lost_ != 0) {
    std::array<char, 96> text{};
    const int size = std::snprintf(text.data(), text.size(),
                                   "%sweir: %llu lines are lost here: nobody read the log",
                                   cut_ ? "\n" : "", static_cast<unsigned long long>(lost_));
    std::size_t told = 0;
    const auto piece = write_piece({text.data(), static_cast<std::size_t>(size)}, told);
    if (piece != Piece::written) return piece;
    if (told == 0) continue;
    lost_ = 0;
    cut_ = false;
  }
  while (written <= line.size()) {
    const auto piece = write_piece(line, written);
    if (piece != Piece::written) return piece;
  }
  return Piece::written;
}

bool LineOutput::lose(bool begun) noexcept {
  const std::lock_guard lock(mutex_);
  ++lost_;
  cut_ = cut_ || begun;
  return false;
}

bool LineOutput::write(std::string_view line, Duration patience) noexcept {
  const int saved = errno;
  std::size_t written = 0;
  auto piece = write_what_fits(line, written);
  if (piece == Piece::no_room) {
    bool patient = false;
    {
      const std::lock_guard lock(mutex_);
      patient = lost_ == 0;
    }
    const Instant until = after(monotonic_now(), patience);
    for (Instant now = monotonic_now(); patient && piece == Piece::no_room && now < until;
         now = monotonic_now()) {
      // Somebody else may have taken the room, or it may not do; then another millisecond.
      if (has_room(to_poll_timeout(until, now))) ::poll(nullptr, 0, 1);
      piece = write_what_fits(line, written);
    }
  }
  const bool whole = piece == Piece::written || (piece == Piece::no_room && lose(written > 0));
  errno = saved;
  return whole;
}

}  // namespace weir::os

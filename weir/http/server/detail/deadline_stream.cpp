#include "weir/http/server/detail/deadline_stream.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "weir/base/buffer.hpp"
#include "weir/http/server/detail/connection_io.hpp"

namespace weir::http {

void DeadlineStream::on_timer(Timer& timer) {
  auto& self = static_cast<DeadlineStream&>(timer);
  const Instant now = self.loop().now();
  Instant next = self.check_read(now);
  if (self.io_ != nullptr) next = std::min(next, self.io_->check_write(now));
  if (next != never) self.watch_until(next);
}

/// Returns the time of the next check of the read in progress.
Instant DeadlineStream::check_read(Instant now) {
  if (read_purpose_ == ReadPurpose::nothing || read_expired_) return never;
  if (now < read_deadline_) return read_deadline_;
  read_expired_ = true;
  stream_.cancel_read();
  return never;
}

Task<> DeadlineStream::linger(const Limits& limits) {
  if (!stream_.finish_writing()) co_return;
  const Instant deadline = after(loop().now(), limits.linger_timeout);
  std::array<std::byte, 1024> scratch;
  // One byte beyond the limit ends the connection. A buffer may hold more than that.
  for (std::uint64_t left = limits.linger_bytes_max;;) {
    const MutableBytes room(scratch);
    begin_read(ReadPurpose::lingering, deadline);
    std::size_t dropped = 0;
    if (left >= Buffer::default_capacity) {
      const auto read = co_await stream_.read();
      if (read) dropped = read->size();
    } else {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left + 1, room.size()));
      const auto read = co_await stream_.read_into(room.first(count));
      dropped = read.value_or(0);
    }
    end_read();
    if (dropped == 0 || dropped > left) co_return;
    left -= dropped;
  }
}

}  // namespace weir::http

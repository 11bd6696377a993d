#include "weir/http/server/detail/deadline_stream.hpp"

#include <algorithm>

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
  for (std::uint64_t dropped = 0; dropped <= limits.linger_bytes_max;) {
    begin_read(ReadPurpose::lingering, deadline);
    const auto read = co_await stream_.read();
    end_read();
    if (!read) break;
    dropped += read->size();
  }
}

}  // namespace weir::http

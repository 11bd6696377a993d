#include "weir/http/server/detail/deadline_stream.hpp"

#include <algorithm>

#include "weir/http/server/detail/connection_io.hpp"

namespace weir::http {

void TimedStream::fired(Timer& timer) {
  auto& self = static_cast<TimedStream&>(timer);
  const Instant now = self.loop().now();
  Instant next = self.check_read(now);
  if (self.transport_ != nullptr) next = std::min(next, self.transport_->check_write(now));
  if (next != never) self.watch_until(next);
}

/// When to look again at the read that is under way.
Instant TimedStream::check_read(Instant now) {
  if (waiting_ == Waiting::nothing || read_expired_) return never;
  if (now < read_deadline_) return read_deadline_;
  read_expired_ = true;
  stream_.cancel_read();
  return never;
}

Task<> TimedStream::linger(const Limits& limits) {
  if (!stream_.finish_writing()) co_return;
  const Instant deadline = after(loop().now(), limits.linger_timeout);
  for (std::uint64_t dropped = 0; dropped <= limits.linger_bytes_max;) {
    begin_read(Waiting::lingering, deadline);
    const auto read = co_await stream_.read();
    end_read();
    if (!read) break;
    dropped += read->size();
  }
}

}  // namespace weir::http

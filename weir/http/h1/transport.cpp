#include "weir/http/h1/transport.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/task/sleep.hpp"

namespace weir::http {

void Transport::fired(Timer& timer) {
  auto& self = static_cast<Transport&>(timer);
  const Instant now = self.loop_.now();
  const Instant next = std::min(self.check_read(now), self.check_write(now));
  if (next != never) self.watch_until(next);
}

/// When to look again at the read that is under way.
Instant Transport::check_read(Instant now) {
  if (waiting_ == Waiting::nothing || read_expired_) return never;
  if (now < read_deadline_) return read_deadline_;
  read_expired_ = true;
  stream_.cancel_read();
  return never;
}

/// When to look again at the write that is under way.
Instant Transport::check_write(Instant now) {
  if (!writing_) return never;
  if (now < write_look_) return write_look_;
  // It counts from some place in the stream, which does not matter for the difference.
  const auto arrived = static_cast<std::int64_t>(stream_.sent_of_pending_write()) -
                       static_cast<std::int64_t>(stream_.unacknowledged());
  std::int64_t more = std::max<std::int64_t>(0, arrived - write_seen_);
  if (!std::exchange(write_looked_, true)) {
    write_patience_ = Patience(limits_.write_rate);
    more = 0;  // it only filled the kernel's buffers
  }
  write_patience_.note(now - write_looked_at_, static_cast<std::uint64_t>(more));
  write_seen_ = arrived;
  write_looked_at_ = now;
  if (write_patience_.exhausted()) {
    stream_.cancel_write();
    return never;
  }
  write_look_ = after(now, write_patience_.left());
  return write_look_;
}

Task<Result<>> Transport::fill(Waiting what, Instant deadline) {
  if (share_used()) static_cast<void>(co_await sleep(Duration::zero()));
  if (input_.empty()) {
    input_ = {};
    begin_read(what, deadline);
    auto read = co_await stream_.read();
    end_read();
    if (!read) co_return fail(explain(read.error()));
    input_ = std::move(*read);
    co_return {};
  }
  // Behind a head that is not complete.
  constexpr std::size_t worth_reading = 2048;
  input_.make_room(worth_reading);
  begin_read(what, deadline);
  const auto count = co_await stream_.read_into(input_.room());
  end_read();
  if (!count) co_return fail(explain(count.error()));
  input_.grow(*count);
  co_return {};
}

Task<Result<>> Transport::send(Bytes first, Bytes second, Bytes third) {
  if (share_used()) static_cast<void>(co_await sleep(Duration::zero()));
  while (writing_) co_await WriteTurn(*this);
  if (broken_) co_return fail(broken_);
  std::array<Bytes, 4> pieces{output_.bytes(), first, second, third};
  const auto end =
      std::remove_if(pieces.begin(), pieces.end(), [](Bytes each) { return each.empty(); });
  if (end == pieces.begin()) co_return {};
  begin_write();
  const auto sent = co_await stream_.write(std::span<const Bytes>(pieces.begin(), end));
  end_write(sent ? std::error_code() : sent.error());
  output_.clear();
  if (!sent) co_return fail(sent.error());
  co_return {};
}

Task<> Transport::linger() {
  output_ = {};
  input_ = {};
  if (!stream_.finish_writing()) co_return;
  const Instant deadline = after(loop_.now(), limits_.linger_timeout);
  for (std::uint64_t dropped = 0; dropped <= limits_.linger_bytes_max;) {
    begin_read(Waiting::lingering, deadline);
    const auto read = co_await stream_.read();
    end_read();
    if (!read) break;
    dropped += read->size();
  }
}

}  // namespace weir::http

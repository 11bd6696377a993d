#include "weir/http/server/detail/connection_io.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/task/sleep.hpp"

namespace weir::http {

/// When to look again at the write that is under way.
Instant Transport::check_write(Instant now) {
  if (!writing_) return never;
  if (now < write_look_) return write_look_;
  // It counts from some place in the stream, which does not matter for the difference.
  const auto arrived = static_cast<std::int64_t>(stream().sent_of_pending_write()) -
                       static_cast<std::int64_t>(stream().unacknowledged());
  std::int64_t more = std::max<std::int64_t>(0, arrived - write_seen_);
  if (!std::exchange(write_looked_, true)) {
    write_patience_ = Patience(limits_.write_rate);
    more = 0;  // it only filled the kernel's buffers
  }
  write_patience_.note(now - write_looked_at_, static_cast<std::uint64_t>(more));
  write_seen_ = arrived;
  write_looked_at_ = now;
  if (write_patience_.exhausted()) {
    write_expired_ = true;
    stream().cancel_write();
    return never;
  }
  write_look_ = after(now, write_patience_.left());
  return write_look_;
}

Task<Result<>> Transport::fill(Waiting what, Instant deadline) {
  if (timed_.share_used()) static_cast<void>(co_await sleep(Duration::zero()));
  if (input_.empty()) {
    input_ = {};
    timed_.begin_read(what, deadline);
    auto read = co_await stream().read();
    timed_.end_read();
    if (!read) co_return fail(timed_.explain(read.error()));
    input_ = std::move(*read);
    co_return {};
  }
  // Behind a head that is not complete.
  constexpr std::size_t worth_reading = 2048;
  input_.make_room(worth_reading);
  timed_.begin_read(what, deadline);
  const auto count = co_await stream().read_into(input_.room());
  timed_.end_read();
  if (!count) co_return fail(timed_.explain(count.error()));
  input_.grow(*count);
  co_return {};
}

Task<Result<>> Transport::send(Bytes first, Bytes second, Bytes third) {
  if (timed_.share_used()) static_cast<void>(co_await sleep(Duration::zero()));
  while (writing_) co_await WriteTurn(*this);
  if (broken_) co_return fail(broken_);
  std::array<Bytes, 4> pieces{output_.bytes(), first, second, third};
  const auto end =
      std::remove_if(pieces.begin(), pieces.end(), [](Bytes each) { return each.empty(); });
  if (end == pieces.begin()) co_return {};
  begin_write();
  const auto sent = co_await stream().write(std::span<const Bytes>(pieces.begin(), end));
  end_write(sent ? std::error_code() : sent.error());
  output_.clear();
  if (!sent) co_return fail(broken_);
  co_return {};
}

}  // namespace weir::http

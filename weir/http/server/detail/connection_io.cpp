#include "weir/http/server/detail/connection_io.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/task/sleep.hpp"

namespace weir::http {

/// Returns the time of the next check of the write in progress.
Instant ConnectionIo::check_write(Instant now) {
  if (!writing_) return never;
  if (now < next_write_check_) return next_write_check_;
  // It counts from an arbitrary position in the stream; only differences are used.
  const auto arrived = static_cast<std::int64_t>(stream().pending_write_sent()) -
                       static_cast<std::int64_t>(stream().unacked_bytes());
  std::int64_t more = std::max<std::int64_t>(0, arrived - write_progress_);
  if (!std::exchange(write_checked_, true)) {
    write_rate_tracker_ = RateTracker(limits_.write_rate);
    more = 0;  // the first bytes only filled the kernel's buffers
  }
  write_rate_tracker_.record(now - last_write_check_, static_cast<std::uint64_t>(more));
  write_progress_ = arrived;
  last_write_check_ = now;
  if (write_rate_tracker_.exhausted()) {
    write_expired_ = true;
    stream().cancel_write();
    return never;
  }
  next_write_check_ = after(now, write_rate_tracker_.time_left());
  return next_write_check_;
}

Task<Result<>> ConnectionIo::fill(ReadPurpose what, Instant deadline) {
  if (timed_.turn_budget_used()) static_cast<void>(co_await sleep(Duration::zero()));
  if (input_.empty()) {
    input_ = {};
    timed_.begin_read(what, deadline);
    auto read = co_await stream().read();
    timed_.end_read();
    if (!read) co_return fail(timed_.to_timeout(read.error()));
    input_ = std::move(*read);
    co_return {};
  }
  // Read behind an incomplete head.
  constexpr std::size_t worth_reading = 2048;
  input_.make_room(worth_reading);
  timed_.begin_read(what, deadline);
  const auto count = co_await stream().read_into(input_.room());
  timed_.end_read();
  if (!count) co_return fail(timed_.to_timeout(count.error()));
  input_.commit(*count);
  co_return {};
}

Task<Result<>> ConnectionIo::send(Bytes first, Bytes second, Bytes third) {
  if (timed_.turn_budget_used()) static_cast<void>(co_await sleep(Duration::zero()));
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

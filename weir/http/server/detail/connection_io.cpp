#include "weir/http/server/detail/connection_io.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/base/detail/state_table.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {

void ConnectionIo::change(WriteState next) noexcept {
  static constexpr weir::detail::StateTable<WriteState, 4> table{
      {WriteState::none, {WriteState::started}},
      {WriteState::started, {WriteState::checked, WriteState::none}},
      {WriteState::checked, {WriteState::expired, WriteState::none}},
      {WriteState::expired, {WriteState::none}},
  };
  table.change(write_state_, next);
}

bool ConnectionIo::WriteAwaiter::await_ready() {
  io_.change(WriteState::started);
  io_.last_write_check_ = io_.loop().now();
  io_.next_write_check_ = after(io_.last_write_check_, io_.limits_.write_rate.grace / 10);
  io_.connection_.watch_until(io_.next_write_check_);
  return Awaiter::await_ready();
}

/// A failed write may have sent a part of the bytes, so no later bytes can be sent.
bool ConnectionIo::WriteAwaiter::await_resume() noexcept {
  const auto sent = Awaiter::await_resume();
  const bool too_slow = io_.write_state_ == WriteState::expired;
  io_.change(WriteState::none);
  std::uint64_t bytes = 0;
  for (const Bytes& each : pieces) bytes += each.size();
  if (sent) {
    io_.connection_.count_sent(bytes);
  } else {
    io_.connection_.count_sent(this->sent);
    io_.unsent_ = bytes - this->sent;
    io_.broken_ = too_slow && sent.error() == Errc::cancelled ? make_error_code(Errc::timed_out)
                                                              : sent.error();
  }
  io_.output_.clear();
  if (io_.last_waiting_ != nullptr) std::exchange(io_.last_waiting_, nullptr)->resume_all();
  return sent.has_value();
}

/// Returns the time of the next check of the write in progress.
Instant ConnectionIo::check_write(Instant now) {
  if (!writing() || write_state_ == WriteState::expired) return never;
  if (now < next_write_check_) return next_write_check_;
  // It counts from an arbitrary position in the stream; only differences are used.
  const auto arrived = static_cast<std::int64_t>(stream().pending_write_sent()) -
                       static_cast<std::int64_t>(stream().unacked_bytes());
  std::int64_t more = std::max<std::int64_t>(0, arrived - write_progress_);
  if (write_state_ == WriteState::started) {
    change(WriteState::checked);
    write_rate_tracker_ = RateTracker(limits_.write_rate);
    more = 0;  // the first bytes only filled the kernel's buffers
  }
  write_rate_tracker_.record(now - last_write_check_, static_cast<std::uint64_t>(more));
  write_progress_ = arrived;
  last_write_check_ = now;
  if (write_rate_tracker_.exhausted()) {
    change(WriteState::expired);
    stream().cancel_write();
    return never;
  }
  next_write_check_ = after(now, write_rate_tracker_.time_left());
  return next_write_check_;
}

Task<Result<>> ConnectionIo::fill(ReadState what, Instant deadline) {
  // HTTP/2 uses its budget before it computes the deadline.
  if (what != ReadState::http2 && connection_.turn_budget_used()) {
    std::ignore = co_await sleep(Duration::zero());
  }
  if (input_.empty()) {
    input_ = {};
    auto read = co_await connection_.read(what, deadline);
    if (!read) co_return fail(read.error());
    input_ = std::move(*read);
    co_return {};
  }
  // Read behind an incomplete head.
  constexpr std::size_t worth_reading = 2048;
  input_.make_room(worth_reading);
  const auto count = co_await connection_.read_into(input_.room(), what, deadline);
  if (!count) co_return fail(count.error());
  input_.commit(*count);
  co_return {};
}

Task<Result<>> ConnectionIo::send(Bytes first, Bytes second, Bytes third) {
  if (connection_.turn_budget_used()) std::ignore = co_await sleep(Duration::zero());
  while (writing()) co_await WriteTurn(*this);
  if (broken_) co_return fail(broken_);
  std::array<Bytes, 4> pieces{output_.bytes(), first, second, third};
  const auto end =
      std::remove_if(pieces.begin(), pieces.end(), [](Bytes each) { return each.empty(); });
  if (end == pieces.begin()) co_return {};
  const Write write = stream().write(std::span<const Bytes>(pieces.begin(), end));
  const bool sent = co_await WriteAwaiter(*this, write);
  if (!sent) co_return fail(broken_);
  co_return {};
}

Result<std::size_t> ConnectionIo::try_send_file(const os::FilePart& part) {
  if (broken_) return fail(broken_);
  if (writing()) return 0;
  const auto sent = stream().try_write_file(output_.bytes(), part);
  if (!sent) {
    broken_ = sent.error();
    return sent;
  }
  connection_.count_sent(*sent);
  const std::size_t of_output = std::min(*sent, output_.size());
  output_.consume(of_output);
  if (output_.empty()) output_.clear();
  return *sent - of_output;
}

}  // namespace weir::http

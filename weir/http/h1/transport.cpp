#include "weir/http/h1/transport.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace weir::http {

void Transport::fired(Timer& timer) {
  auto& self = static_cast<Transport&>(timer);
  const Instant now = self.loop_.now();
  Instant next = never;
  if (self.waiting_ != Waiting::nothing && !self.read_expired_) {
    if (now >= self.read_deadline_) {
      self.read_expired_ = true;
      self.stream_.cancel_read();
    } else {
      next = self.read_deadline_;
    }
  }
  if (self.writing_) {
    const Instant deadline =
        self.limits_.write_rate.deadline(self.write_start_, self.stream_.sent_of_pending_write());
    if (now >= deadline) {
      self.stream_.cancel_write();
    } else {
      next = std::min(next, deadline);
    }
  }
  if (next != never && !self.armed()) self.loop_.timers().start(self, next);
}

void Transport::make_input_room() {
  constexpr std::size_t enough = 2048;
  if (input_.room().size() >= enough) return;
  const std::size_t used = input_.size();
  const std::size_t capacity = std::max<std::size_t>(Buffer::default_capacity, 2 * used);
  Buffer larger = Buffer::with_capacity(static_cast<std::uint32_t>(capacity));
  if (used != 0) std::memcpy(larger.room().data(), input_.data(), used);
  larger.grow(used);
  input_ = std::move(larger);
}

Task<Result<>> Transport::fill(Waiting what, Instant deadline) {
  if (input_.empty()) {
    input_ = {};
    begin_read(what, deadline);
    auto read = co_await stream_.read();
    end_read();
    if (!read) co_return fail(explain(read.error()));
    input_ = std::move(*read);
    co_return {};
  }
  make_input_room();
  begin_read(what, deadline);
  const auto count = co_await stream_.read_into(input_.room());
  end_read();
  if (!count) co_return fail(explain(count.error()));
  input_.grow(*count);
  co_return {};
}

Task<Result<>> Transport::send(Bytes more, Bytes last) {
  co_await WriteTurn(*this);
  const std::array<Bytes, 3> pieces{output_.bytes(), more, last};
  if (pieces[0].empty() && more.empty() && last.empty()) co_return {};
  begin_write();
  const auto sent = co_await stream_.write(std::span<const Bytes>(pieces));
  end_write();
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

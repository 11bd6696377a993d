// Simulated sockets: the effects of sending, closing and resetting that peers can observe on
// Linux.
#include "weir/testing/network/detail/memory_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weir/testing/network/detail/memory_network.hpp"

namespace weir {

std::size_t MemoryBytes::take(MutableBytes target) {
  const std::size_t count = std::min(size(), target.size());
  if (count == 0) return 0;
  std::memcpy(target.data(), bytes_.data() + begin_, count);
  begin_ += count;
  if (size() == 0) {
    bytes_ = {};
    begin_ = 0;
  } else if (begin_ > bytes_.size() / 2) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
  }
  return count;
}

MemoryStream::~MemoryStream() {
  leave();
  release_if_empty();
}

/// Disconnects from the other side, which sees the end of the stream or a reset.
void MemoryStream::leave() {
  MemoryStream* const other = std::exchange(other_, nullptr);
  if (other == nullptr) return;
  other->other_ = nullptr;
  other->lost_bytes_ = unread() + in_flight_.bytes();
  const MemorySegment reset{MemorySegment::Kind::reset, {}, system_error(ECONNRESET)};
  if (unread() > 0 || (close_mode_ == CloseMode::reset && !is_local())) {
    other->in_flight_.send(reset);
    return;
  }
  other->in_flight_.send(MemorySegment{MemorySegment::Kind::end});
  // The data that is still on its way here finds a closed socket.
  if (in_flight_.bytes() > 0) other->in_flight_.send(reset);
}

void MemoryStream::close_on_kill() {
  leave();
  reset_with(system_error(ECONNRESET));
}

void MemoryStream::on_segment(MemorySegment& segment) {
  switch (segment.kind) {
    case MemorySegment::Kind::bytes:
      if (state_ == State::connected) {
        arrived_.append(segment.bytes);
      } else if (other_ != nullptr) {
        other_->in_flight_.send(
            MemorySegment{MemorySegment::Kind::reset, {}, system_error(ECONNRESET)});
      }
      break;
    case MemorySegment::Kind::end:
      receiving_ended_ = true;
      break;
    case MemorySegment::Kind::reset:
      reset_with(segment.error);
      return;
  }
  notify_observers();
}

/// Reports ETIMEDOUT to the side whose data was lost. This side does not notice, unless the lost
/// segment was the answer to its own data.
void MemoryStream::on_lost() {
  if (other_ != nullptr) {
    other_->reset_with(system_error(ETIMEDOUT));
  } else if (lost_bytes_ > 0) {
    reset_with(system_error(ETIMEDOUT));
  }
}

void MemoryStream::fill_until(MemoryClock& clock, Instant moment) {
  release_if_empty();
  full_by_ = &clock;
  full_until_ = clock.at(moment, [this] {
    full_by_ = nullptr;
    notify_observers();
  });
}

void MemoryStream::release_if_empty() noexcept {
  if (full_by_ != nullptr) std::exchange(full_by_, nullptr)->cancel(full_until_);
}

void MemoryStream::end_receiving() {
  if (state_ == State::unconnected) ends_early_ = true;
  if (other_ != nullptr) static_cast<void>(other_->shut_down_sending());
}

void MemoryStream::reset_with(std::error_code error) {
  if (state_ != State::connected) return;
  state_ = State::reset;
  reset_error_ = error;
  in_flight_.clear();
  notify_observers();
}

void MemoryStream::reset() {
  if (state_ == State::unconnected) refused_ = true;
  MemoryStream* const other = std::exchange(other_, nullptr);
  if (other != nullptr) {
    other->other_ = nullptr;
    other->reset_with(system_error(ECONNRESET));
  }
  reset_with(system_error(ECONNRESET));
}

std::error_code MemoryStream::receivable() const noexcept {
  if (state_ == State::unconnected) return system_error(ENOTCONN);
  if (unread() > 0) return {};
  if (receiving_ended_) return Errc::end_of_stream;
  return state_ == State::reset ? reset_error_ : system_error(EAGAIN);
}

Result<std::size_t> MemoryStream::receive(MutableBytes target) {
  if (const std::error_code error = receivable()) return fail(error);
  const std::size_t count = arrived_.take(target);
  received_ += count;
  if (other_ != nullptr) other_->notify_observers();
  return count;
}

std::error_code MemoryStream::sendable() const noexcept {
  if (state_ == State::unconnected) return system_error(ENOTCONN);
  if (sending_ended_) return system_error(EPIPE);
  if (state_ == State::reset) return reset_error_;
  if (full_by_ != nullptr) return system_error(EAGAIN);
  if (other_ == nullptr && is_local()) return system_error(EPIPE);
  return room() > 0 ? std::error_code{} : system_error(EAGAIN);
}

std::size_t MemoryStream::room() const noexcept {
  const std::size_t taken =
      other_ == nullptr ? lost_bytes_ : other_->unread() + other_->in_flight_.bytes();
  return buffer_bytes_ - std::min(buffer_bytes_, taken);
}

Result<std::size_t> MemoryStream::send(Bytes bytes) {
  if (const std::error_code error = sendable()) return fail(error);
  const std::size_t count = std::min(bytes.size(), room());
  if (other_ == nullptr) {
    // A TCP sender notices a closed peer only by the answer.
    if (std::exchange(lost_bytes_, lost_bytes_ + count) == 0) {
      in_flight_.send(MemorySegment{MemorySegment::Kind::reset, {}, system_error(EPIPE)});
    }
    return count;
  }
  if (other_->in_flight_.at_once()) {
    other_->arrived_.append(bytes.first(count));
    other_->notify_observers();
  } else {
    other_->in_flight_.send(bytes.first(count));
  }
  return count;
}

Result<> MemoryStream::shut_down_sending() {
  if (state_ != State::connected) return fail(system_error(ENOTCONN));
  if (std::exchange(sending_ended_, true)) return {};
  if (other_ != nullptr) other_->in_flight_.send(MemorySegment{MemorySegment::Kind::end});
  notify_observers();
  return {};
}

bool MemoryStream::dead() const noexcept {
  if (state_ == State::unconnected) return false;
  if (state_ == State::reset || (sending_ended_ && receiving_ended_)) return true;
  // A Unix socket notices that the other side is closed; a TCP peer has only ended its sending.
  return other_ == nullptr && is_local();
}

MemoryListener::MemoryListener(MemoryNetwork& network, const os::Address& local,
                               std::size_t backlog, bool reuse_port)
    : MemoryEndpoint(Kind::listener),
      network_(network),
      backlog_(backlog),
      reuse_port_(reuse_port) {
  local_ = local;
}

MemoryListener::~MemoryListener() {
  close_on_kill();
}

void MemoryListener::close_on_kill() {
  network_.remove(*this);
  for (auto& waiting : queue_) waiting->reset();
  queue_.clear();
}

std::unique_ptr<MemoryStream> MemoryListener::take() {
  if (queue_.empty()) return nullptr;
  std::unique_ptr<MemoryStream> oldest = std::move(queue_.front());
  queue_.pop_front();
  return oldest;
}

namespace {

// TCP's retransmission time-outs, doubled each time (RFC 6298; Linux' TCP_RTO_MIN, TCP_RTO_MAX
// and tcp_retries2).
constexpr Duration retry_first = std::chrono::milliseconds(200);
constexpr Duration retry_max = std::chrono::seconds(120);
constexpr unsigned retries_max = 15;

Duration wait_before(unsigned retry) {
  return std::min(retry_max, retry_first * (1 << std::min(retry, 10U)));
}

}  // namespace

void InFlightData::send(Bytes bytes) {
  while (!bytes.empty()) {
    const std::size_t size = link_ == nullptr ? bytes.size() : link_->segment(bytes.size());
    MemorySegment segment;
    segment.bytes.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    send(std::move(segment));
    bytes = bytes.subspan(size);
  }
}

void InFlightData::send(MemorySegment segment) {
  if (link_ == nullptr) {
    receiver_.on_segment(segment);
    return;
  }
  segment.arrives = std::max(after(link_->clock().now(), link_->delay()), earliest_arrival_);
  if (!in_flight_.empty()) segment.arrives = std::max(segment.arrives, in_flight_.back().arrives);
  bytes_ += segment.bytes.size();
  in_flight_.push_back(std::move(segment));
  if (!next_) deliver_at(in_flight_.front().arrives);
}

void InFlightData::clear() noexcept {
  if (next_) link_->clock().cancel(*std::exchange(next_, std::nullopt));
  in_flight_.clear();
  bytes_ = 0;
}

void InFlightData::deliver_at(Instant moment) {
  next_ = link_->clock().at(moment, [this] {
    next_.reset();
    deliver();
  });
}

void InFlightData::deliver() {
  if (!link_->open()) {
    retry();
    return;
  }
  retries_ = 0;
  while (!in_flight_.empty() && in_flight_.front().arrives <= link_->clock().now()) {
    MemorySegment segment = std::move(in_flight_.front());
    in_flight_.pop_front();
    bytes_ -= segment.bytes.size();
    receiver_.on_segment(segment);
  }
  if (!in_flight_.empty()) deliver_at(in_flight_.front().arrives);
}

void InFlightData::retry() {
  if (retries_ == retries_max) {
    clear();
    receiver_.on_lost();
    return;
  }
  deliver_at(after(link_->clock().now(), wait_before(retries_++)));
}

}  // namespace weir

// Simulated sockets: what Linux does on sending, closing and resetting, as far as peers can tell.
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
  empty_again();
}

/// The other side learns that nobody is here any more.
void MemoryStream::leave() {
  MemoryStream* const other = std::exchange(other_, nullptr);
  if (other == nullptr) return;
  other->other_ = nullptr;
  other->lost_bytes_ = unread() + coming_.bytes();
  const MemoryParcel reset{MemoryParcel::What::reset, {}, system_error(ECONNRESET)};
  if (unread() > 0) {
    other->coming_.send(reset);
    return;
  }
  other->coming_.send(MemoryParcel{MemoryParcel::What::end});
  // What has not come yet will find nobody here.
  if (coming_.bytes() > 0) other->coming_.send(reset);
}

void MemoryStream::die() {
  leave();
  reset_with(system_error(ECONNRESET));
}

void MemoryStream::arrived(MemoryParcel& parcel) {
  switch (parcel.what) {
    case MemoryParcel::What::bytes:
      if (state_ == State::connected) {
        arrived_.append(parcel.bytes);
      } else if (other_ != nullptr) {
        other_->coming_.send(MemoryParcel{MemoryParcel::What::reset, {}, system_error(ECONNRESET)});
      }
      break;
    case MemoryParcel::What::end:
      receiving_ended_ = true;
      break;
    case MemoryParcel::What::reset:
      reset_with(parcel.error);
      return;
  }
  changed();
}

/// Who has sent in vain learns of it; here nothing is known, unless it was the answer to what this
/// side has sent.
void MemoryStream::lost() {
  if (other_ != nullptr) {
    other_->reset_with(system_error(ETIMEDOUT));
  } else if (lost_bytes_ > 0) {
    reset_with(system_error(ETIMEDOUT));
  }
}

void MemoryStream::fill_until(MemoryClock& clock, Instant moment) {
  empty_again();
  full_by_ = &clock;
  full_until_ = clock.at(moment, [this] {
    full_by_ = nullptr;
    changed();
  });
}

void MemoryStream::empty_again() noexcept {
  if (full_by_ != nullptr) std::exchange(full_by_, nullptr)->forget(full_until_);
}

void MemoryStream::end_receiving() {
  if (state_ == State::unconnected) ends_early_ = true;
  if (other_ != nullptr) static_cast<void>(other_->shut_down_sending());
}

void MemoryStream::reset_with(std::error_code error) {
  if (state_ != State::connected) return;
  state_ = State::reset;
  reset_error_ = error;
  coming_.clear();
  changed();
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
  if (other_ != nullptr) other_->changed();
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
      other_ == nullptr ? lost_bytes_ : other_->unread() + other_->coming_.bytes();
  return buffer_bytes_ - std::min(buffer_bytes_, taken);
}

Result<std::size_t> MemoryStream::send(Bytes bytes) {
  if (const std::error_code error = sendable()) return fail(error);
  const std::size_t count = std::min(bytes.size(), room());
  if (other_ == nullptr) {
    // TCP learns only from the answer that nobody is there any more.
    if (std::exchange(lost_bytes_, lost_bytes_ + count) == 0) {
      coming_.send(MemoryParcel{MemoryParcel::What::reset, {}, system_error(EPIPE)});
    }
    return count;
  }
  if (other_->coming_.at_once()) {
    other_->arrived_.append(bytes.first(count));
    other_->changed();
  } else {
    other_->coming_.send(bytes.first(count));
  }
  return count;
}

Result<> MemoryStream::shut_down_sending() {
  if (state_ != State::connected) return fail(system_error(ENOTCONN));
  if (std::exchange(sending_ended_, true)) return {};
  if (other_ != nullptr) other_->coming_.send(MemoryParcel{MemoryParcel::What::end});
  changed();
  return {};
}

bool MemoryStream::dead() const noexcept {
  if (state_ == State::unconnected) return false;
  if (state_ == State::reset || (sending_ended_ && receiving_ended_)) return true;
  // A Unix socket knows that the other side is closed; for TCP it has only ended its sending.
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
  die();
}

void MemoryListener::die() {
  network_.forget(*this);
  for (auto& waiting : queue_) waiting->reset();
  queue_.clear();
}

std::unique_ptr<MemoryStream> MemoryListener::take() {
  if (queue_.empty()) return nullptr;
  std::unique_ptr<MemoryStream> oldest = std::move(queue_.front());
  queue_.pop_front();
  return oldest;
}

}  // namespace weir

#include "weir/testing/memory_arrivals.hpp"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

// TCP's waits for an acknowledgement, doubled each time (RFC 6298; Linux' TCP_RTO_MIN, TCP_RTO_MAX
// and tcp_retries2).
constexpr Duration retry_first = std::chrono::milliseconds(200);
constexpr Duration retry_max = std::chrono::seconds(120);
constexpr unsigned tries_max = 15;

Duration wait_before(unsigned retry) {
  return std::min(retry_max, retry_first * (1 << std::min(retry, 10U)));
}

}  // namespace

void MemoryArrivals::send(Bytes bytes) {
  while (!bytes.empty()) {
    const std::size_t size = path_ == nullptr ? bytes.size() : path_->parcel(bytes.size());
    MemoryParcel parcel;
    parcel.bytes.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    send(std::move(parcel));
    bytes = bytes.subspan(size);
  }
}

void MemoryArrivals::send(MemoryParcel parcel) {
  if (path_ == nullptr) {
    receiver_.arrived(parcel);
    return;
  }
  parcel.arrives = std::max(after(path_->clock().now(), path_->delay()), held_until_);
  if (!coming_.empty()) parcel.arrives = std::max(parcel.arrives, coming_.back().arrives);
  bytes_ += parcel.bytes.size();
  coming_.push_back(std::move(parcel));
  if (!next_) call_at(coming_.front().arrives);
}

void MemoryArrivals::clear() noexcept {
  if (next_) path_->clock().forget(*std::exchange(next_, std::nullopt));
  coming_.clear();
  bytes_ = 0;
}

void MemoryArrivals::call_at(Instant moment) {
  next_ = path_->clock().at(moment, [this] {
    next_.reset();
    deliver();
  });
}

void MemoryArrivals::deliver() {
  if (!path_->open()) {
    try_again();
    return;
  }
  tries_ = 0;
  while (!coming_.empty() && coming_.front().arrives <= path_->clock().now()) {
    MemoryParcel parcel = std::move(coming_.front());
    coming_.pop_front();
    bytes_ -= parcel.bytes.size();
    receiver_.arrived(parcel);
  }
  if (!coming_.empty()) call_at(coming_.front().arrives);
}

void MemoryArrivals::try_again() {
  if (tries_ == tries_max) {
    clear();
    receiver_.lost();
    return;
  }
  call_at(after(path_->clock().now(), wait_before(tries_++)));
}

}  // namespace weir

#include "weir/app/log_ring.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "weir/log/detail/record.hpp"

namespace weir {

LogRing::LogRing(std::size_t bytes, unsigned number)
    : size_(std::bit_ceil(std::clamp(bytes, 2 * LogRecord::bytes_max, std::size_t{1} << 30))),
      number_(number),
      bytes_(new std::byte[size_]) {}

void LogRing::copy_in(std::uint64_t at, Bytes bytes) noexcept {
  const std::size_t place = at & (size_ - 1);
  const std::size_t first = std::min(bytes.size(), size_ - place);
  std::memcpy(bytes_.get() + place, bytes.data(), first);
  if (first == bytes.size()) return;
  std::memcpy(bytes_.get(), bytes.data() + first, bytes.size() - first);
}

void LogRing::copy_out(std::uint64_t at, MutableBytes bytes) const noexcept {
  const std::size_t place = at & (size_ - 1);
  const std::size_t first = std::min(bytes.size(), size_ - place);
  std::memcpy(bytes.data(), bytes_.get() + place, first);
  if (first == bytes.size()) return;
  std::memcpy(bytes.data() + first, bytes_.get(), bytes.size() - first);
}

bool LogRing::push(Bytes record) noexcept {
  const std::uint64_t at = pushed_.load(std::memory_order_relaxed);
  if (at + record.size() - taken_seen_ > size_) {
    // acquire: what was taken has been copied out.
    taken_seen_ = taken_.load(std::memory_order_acquire);
    if (at + record.size() - taken_seen_ > size_) {
      dropped_.add();
      return false;
    }
  }
  copy_in(at, record);
  // seq_cst, for who pushes then looks whether the other side sleeps; see Logs::wake_writer().
  pushed_.store(at + record.size(), std::memory_order_seq_cst);
  return true;
}

void LogRing::tell(FigureSum& sum) const {
  sum.add({"log records dropped", dropped_.value()});
}

bool LogRing::empty() const noexcept {
  return pushed_.load(std::memory_order_seq_cst) == taken_.load(std::memory_order_relaxed);
}

void LogRing::mark() noexcept {
  marked_ = pushed_.load(std::memory_order_acquire);
}

bool LogRing::take(std::vector<std::byte>& record) {
  const std::uint64_t at = taken_.load(std::memory_order_relaxed);
  if (at == marked_) return false;
  std::array<std::byte, log_size_bytes> beginning;
  copy_out(at, beginning);
  record.resize(log_record_size(beginning));
  copy_out(at, record);
  taken_.store(at + record.size(), std::memory_order_release);
  return true;
}

}  // namespace weir

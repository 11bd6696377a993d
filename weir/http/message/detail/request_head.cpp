// Header look-up and copying of message heads.
#include "weir/http/message/detail/request_head.hpp"

#include <algorithm>
#include <new>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {

std::optional<std::string_view> MessageHead::header(std::string_view name) const noexcept {
  for (std::size_t index = 0; index < info_.header_count; ++index) {
    const HeaderSlices& each = headers_[index];
    if (each.name.length == name.size() && equals_ignoring_case(view(each.name), name)) {
      return view(each.value);
    }
  }
  return std::nullopt;
}

bool MessageHead::repeats(std::string_view name) const noexcept {
  std::size_t count = 0;
  for (std::size_t index = 0; index < info_.header_count; ++index) {
    const HeaderSlices& each = headers_[index];
    if (each.name.length == name.size() && equals_ignoring_case(view(each.name), name)) ++count;
  }
  return count > 1;
}

void MessageHead::copy(const MessageHead& other) {
  info_.header_count = 0;  // none of the old ones is kept
  while (capacity_ < other.info_.header_count) {
    if (!grow()) throw std::bad_alloc();
  }
  base_ = other.base_;
  info_ = other.info_;
  std::copy_n(other.headers_, other.info_.header_count, headers_);
}

bool MessageHead::grow() noexcept {
  const std::uint32_t capacity = 2 * capacity_;
  HeaderSlices* const more = new (std::nothrow) HeaderSlices[capacity];
  if (more == nullptr) return false;
  std::copy_n(headers_, info_.header_count, more);
  release();
  headers_ = more;
  capacity_ = capacity;
  return true;
}

}  // namespace weir::http

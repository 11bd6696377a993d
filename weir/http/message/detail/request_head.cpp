#include "weir/http/message/detail/request_head.hpp"

#include <algorithm>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {

std::optional<std::string_view> RequestHead::field(std::string_view name) const noexcept {
  for (std::size_t index = 0; index < about_.field_count; ++index) {
    const FieldSlices& each = fields_[index];
    if (each.name.length == name.size() && equals_ignoring_case(view(each.name), name)) {
      return view(each.value);
    }
  }
  return std::nullopt;
}

void RequestHead::copy(const RequestHead& other) noexcept {
  base_ = other.base_;
  about_ = other.about_;
  std::copy_n(other.fields_.begin(), other.about_.field_count, fields_.begin());
}

}  // namespace weir::http

#include "weir/http/h1/usual_head.hpp"

#include <cassert>
#include <cstring>

#include "weir/http/h1/put.hpp"
#include "weir/http/h1/writer.hpp"

namespace weir::http {
namespace {

constexpr std::string_view any_length = "0\r\n\r\n";  // how write_head() ends a head
static_assert(digits_max + empty_line.size() <= 24);

}  // namespace

void UsualHead::begin(const Date& date, std::string_view content_type) noexcept {
  assert(content_type.size() <= type_size_max);
  ResponseHead head;
  head.date = &date;
  head.content_type = content_type;
  // More than fits start_ may be used on the way.
  std::array<char, 512> whole;
  assert(head_size_max(head) <= whole.size());
  const char* const end = write_head(head, whole.data());
  start_size_ = static_cast<std::size_t>(end - whole.data()) - any_length.size();
  assert(start_size_ <= start_max);
  std::memcpy(start_.data(), whole.data(), start_size_);
  type_ = content_type.data();
  type_size_ = content_type.size();
}

char* UsualHead::write(std::uint64_t content_length, char* out) const noexcept {
  // All of it, because a copy of a fixed size takes the fewest instructions.
  std::memcpy(out, start_.data(), start_.size());
  out += start_size_;
  return put(put_number(out, content_length), empty_line);
}

}  // namespace weir::http

#include "weir/http/detail/h2/response_writer.hpp"

#include <cassert>

#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/message/headers.hpp"

namespace weir::http {
namespace {

/// Writes Content-Length as a literal with the name of the static table and without indexing.
char* write_length(std::uint64_t length, char* out) noexcept {
  *out++ = 0x0F;  // the index 28 does not fit into 4 bits
  *out++ = 28 - 15;
  char* const digits = out + 1;
  char* const end = append_number(digits, length);
  *out = static_cast<char>(end - digits);
  return end;
}

}  // namespace

std::size_t response_block_size_max(const ResponseHead& head) noexcept {
  std::size_t size = hpack_status_size_max + 3 + digits_max;
  size += hpack_field_size_max("date", {}) + date_size;
  size += hpack_field_size_max("content-type", head.content_type);
  for (Headers::Iterator at(head.lines); at != Headers::Iterator(); ++at) {
    size += hpack_field_size_max((*at).name, (*at).value);
  }
  return size;
}

char* write_response_block(const ResponseHead& head, char* out) noexcept {
  out = write_hpack_status(head.status, out);
  if (head.date != nullptr) out = write_hpack_field("date", head.date->text(), out);
  if (!head.content_type.empty()) out = write_hpack_field("content-type", head.content_type, out);
  if (head.framing == BodyFraming::length) out = write_length(head.content_length, out);
  for (Headers::Iterator at(head.lines); at != Headers::Iterator(); ++at) {
    out = write_hpack_field((*at).name, (*at).value, out);
  }
  return out;
}

void ResponseBlockCache::begin(const Date& date, std::string_view content_type) noexcept {
  assert(content_type.size() <= ResponseHeadCache::type_size_max);
  ResponseHead head;
  head.date = &date;
  head.content_type = content_type;
  head.framing = BodyFraming::none;
  std::array<char, 256> whole;
  assert(response_block_size_max(head) <= whole.size());
  const char* const end = write_response_block(head, whole.data());
  start_size_ = static_cast<std::size_t>(end - whole.data());
  assert(start_size_ <= start_max);
  std::memcpy(start_.data(), whole.data(), start_size_);
  type_ = content_type.data();
  type_size_ = content_type.size();
}

char* ResponseBlockCache::write(std::uint64_t content_length, char* out) const noexcept {
  // Copies the whole array, because a copy of a fixed size takes the fewest instructions.
  std::memcpy(out, start_.data(), start_.size());
  return write_length(content_length, out + start_size_);
}

}  // namespace weir::http

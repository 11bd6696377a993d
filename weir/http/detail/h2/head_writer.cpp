#include "weir/http/detail/h2/head_writer.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

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

/// The parts of a head of HTTP/1.1.
struct HeadParts {
  std::string_view method;
  std::string_view target;
  std::string_view lines;  // without the empty line
};

HeadParts parts_of(std::string_view head) noexcept {
  const std::size_t method = head.find(' ');
  const std::size_t target = head.find(' ', method + 1);
  const std::size_t line = head.find("\r\n", target);
  assert(line != head.npos && head.ends_with("\r\n\r\n"));
  HeadParts parts;
  parts.method = head.substr(0, method);
  parts.target = head.substr(method + 1, target - method - 1);
  parts.lines = head.substr(line + 2, head.size() - line - 4);
  return parts;
}

bool is_one_of(std::string_view name, const auto& names) noexcept {
  return std::ranges::any_of(
      names, [name](std::string_view each) { return equals_ignoring_case(name, each); });
}

/// Returns true if HTTP/2 does not have the header (RFC 9113 §8.2.2).
bool is_left_out(const HeaderField& field) noexcept {
  if (equals_ignoring_case(field.name, "te")) {
    return !equals_ignoring_case(field.value, "trailers");
  }
  return is_connection_header(field.name);
}

HpackIndexing indexing_of(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 3> secrets{"authorization", "proxy-authorization",
                                                    "cookie"};
  return is_one_of(name, secrets) ? HpackIndexing::never : HpackIndexing::allowed;
}

/// Calls `visit(name, value, indexing)` for each field of the block.
template <class Visit>
void for_each_field(std::string_view scheme, std::string_view head, const Visit& visit) {
  const HeadParts parts = parts_of(head);
  visit(":method", parts.method, HpackIndexing::allowed);
  if (parts.method == "CONNECT") visit(":protocol", "websocket", HpackIndexing::allowed);
  visit(":scheme", scheme, HpackIndexing::allowed);
  visit(":path", parts.target, HpackIndexing::allowed);
  const Headers::Iterator end;
  for (Headers::Iterator at(parts.lines); at != end; ++at) {
    const HeaderField field = *at;
    if (!equals_ignoring_case(field.name, "host")) continue;
    visit(":authority", field.value, HpackIndexing::allowed);
    break;
  }
  for (Headers::Iterator at(parts.lines); at != end; ++at) {
    const HeaderField field = *at;
    if (is_left_out(field) || equals_ignoring_case(field.name, "host")) continue;
    visit(field.name, field.value, indexing_of(field.name));
  }
}

}  // namespace

std::size_t response_block_size_max(const ResponseHead& head) noexcept {
  std::size_t size = hpack_status_size_max + 3 + digits_max;
  size += hpack_field_size_max("date", {}) + date_size;
  size += hpack_field_size_max("content-type", head.content_type);
  return size + field_lines_size_max(head.lines);
}

char* write_response_block(const ResponseHead& head, char* out) noexcept {
  out = write_hpack_status(head.status, out);
  if (head.date != nullptr) out = write_hpack_field("date", head.date->text(), out);
  if (!head.content_type.empty()) out = write_hpack_field("content-type", head.content_type, out);
  if (head.framing == BodyFraming::length) out = write_length(head.content_length, out);
  return write_field_lines(head.lines, out);
}

std::size_t field_lines_size_max(std::string_view lines) noexcept {
  std::size_t size = 0;
  for (Headers::Iterator at(lines); at != Headers::Iterator(); ++at) {
    const HeaderField field = *at;
    size += hpack_field_size_max(field.name, field.value);
  }
  return size;
}

char* write_field_lines(std::string_view lines, char* out) noexcept {
  for (Headers::Iterator at(lines); at != Headers::Iterator(); ++at) {
    const HeaderField field = *at;
    if (!is_left_out(field)) out = write_hpack_field(field.name, field.value, out);
  }
  return out;
}

void send_end(H2Session& session, HpackEncoderState& encoder, H2Stream& stream,
              std::string_view trailers) {
  if (trailers.empty()) {
    session.send_data(stream, {}, true);
    return;
  }
  const auto write = [&](char* out) {
    return write_field_lines(trailers, encoder.write_size_update(out));
  };
  session.send_headers(stream, HpackEncoderState::size_update_max + field_lines_size_max(trailers),
                       write, true);
}

void ResponseBlockCache::begin(const Date& date, std::string_view content_type,
                               std::uint64_t number) noexcept {
  assert(content_type.size() <= ResponseHeadCache::type_size_max);
  // More than the most that the three fields need.
  std::array<char, 256> whole;
  char* end = write_hpack_status(Status::ok, whole.data());
  end = write_hpack_field("date", date.text(), end, HpackIndexing::insert);
  if (!content_type.empty()) {
    end = write_hpack_field("content-type", content_type, end, HpackIndexing::insert);
  }
  start_size_ = static_cast<std::size_t>(end - whole.data());
  assert(start_size_ <= start_max);
  std::memcpy(start_.data(), whole.data(), start_size_);
  type_.set(content_type);
  number_ = number;
}

char* ResponseBlockCache::write(std::uint64_t content_length, HpackEncoderState& encoder,
                                char* out) const noexcept {
  out = encoder.write_size_update(out);
  if (!encoder.inserted(number_)) {
    // Copies the whole array, because a copy of a fixed size takes the fewest instructions.
    std::memcpy(out, start_.data(), start_.size());
    return write_length(content_length, out + start_size_);
  }
  constexpr unsigned indexed_bits = 0x80;
  constexpr auto newest = static_cast<char>(indexed_bits | HpackEncoderState::first_dynamic_index);
  *out++ = start_.front();  // the status
  if (!type_.empty()) *out++ = newest + 1;
  *out++ = newest;
  return write_length(content_length, out);
}

std::size_t request_block_size_max(std::string_view scheme, std::string_view head) noexcept {
  std::size_t size = 0;
  for_each_field(scheme, head, [&](std::string_view name, std::string_view value, HpackIndexing) {
    size += hpack_field_size_max(name, value);
  });
  return size;
}

bool request_list_fits(std::string_view scheme, std::string_view head,
                       std::size_t bytes_max) noexcept {
  // A line of five bytes is a field of 33 bytes, and the pseudo-fields have fixed names.
  if (head.size() < bytes_max / 8 && bytes_max > 4096) return true;
  std::size_t size = 0;
  for_each_field(scheme, head, [&](std::string_view name, std::string_view value, HpackIndexing) {
    size += name.size() + value.size() + hpack_field_overhead;
  });
  return size <= bytes_max;
}

char* write_request_block(std::string_view scheme, std::string_view head, char* out) noexcept {
  for_each_field(scheme, head,
                 [&](std::string_view name, std::string_view value, HpackIndexing indexing) {
                   out = write_hpack_field(name, value, out, indexing);
                 });
  return out;
}

}  // namespace weir::http

#include "weir/http/h1/writer.hpp"

#include <array>
#include <bit>
#include <cassert>
#include <charconv>

#include "weir/http/h1/put.hpp"

namespace weir::http {
namespace {

constexpr std::string_view version = "HTTP/1.1 ";
constexpr std::string_view ok_line = "HTTP/1.1 200 OK\r\n";
constexpr std::string_view date_name = "Date: ";
constexpr std::string_view type_name = "Content-Type: ";
constexpr std::string_view length_name = "Content-Length: ";
constexpr std::string_view chunked_line = "Transfer-Encoding: chunked\r\n";
constexpr std::string_view close_line = "Connection: close\r\n";
constexpr std::string_view keep_alive_line = "Connection: keep-alive\r\n";

/// More than everything of a head that has a fixed or bounded length.
constexpr std::size_t fixed_size_max = 256;
constexpr std::size_t reason_size_max = 40;
static_assert(version.size() + 4 + reason_size_max + date_name.size() + date_size +
                  type_name.size() + length_name.size() + digits_max + chunked_line.size() +
                  keep_alive_line.size() + 5 * line_end.size() <
              fixed_size_max);

char* put_status_line(char* out, Status status) noexcept {
  const std::string_view reason = reason_of(status);
  assert(is_valid(status) && reason.size() <= reason_size_max);
  out = put(out, version);
  const int code = code_of(status);
  *out++ = static_cast<char>('0' + code / 100);
  *out++ = static_cast<char>('0' + code / 10 % 10);
  *out++ = static_cast<char>('0' + code % 10);
  *out++ = ' ';
  out = put(out, reason);
  return put(out, line_end);
}

}  // namespace

std::size_t head_size_max(const ResponseHead& head) noexcept {
  return fixed_size_max + head.content_type.size() + head.lines.size();
}

char* write_head(const ResponseHead& head, char* out) noexcept {
  out = head.status == Status::ok ? put(out, ok_line) : put_status_line(out, head.status);
  if (head.date != nullptr) out = put(put(put(out, date_name), head.date->text()), line_end);
  if (!head.content_type.empty()) {
    out = put(put_short(put(out, type_name), head.content_type), line_end);
  }
  if (head.framing == BodyFraming::length) {
    out = put(put_number(put(out, length_name), head.content_length), line_end);
  } else if (head.framing == BodyFraming::chunked) {
    out = put(out, chunked_line);
  }
  if (head.connection == ConnectionField::close) {
    out = put(out, close_line);
  } else if (head.connection == ConnectionField::keep_alive) {
    out = put(out, keep_alive_line);
  }
  return put(put(out, head.lines), line_end);
}

void append_head(std::string& out, const ResponseHead& head) {
  const std::size_t before = out.size();
  out.resize(before + head_size_max(head));
  const char* const end = write_head(head, out.data() + before);
  out.resize(static_cast<std::size_t>(end - out.data()));
}

char* write_chunk_size(std::uint64_t size, char* out) noexcept {
  assert(size > 0);
  out = std::to_chars(out, out + chunk_size_max, size, 16).ptr;
  return put(out, line_end);
}

}  // namespace weir::http

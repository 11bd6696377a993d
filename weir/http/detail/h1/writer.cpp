// The writer of response heads and chunk sizes, and the cache of the common head.
#include "weir/http/detail/h1/writer.hpp"

#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <cstring>

namespace weir::http {
namespace {

constexpr std::string_view version = "HTTP/1.1 ";
constexpr std::string_view ok_line = "HTTP/1.1 200 OK\r\n";
constexpr std::string_view date_name = "Date: ";
constexpr std::string_view type_name = "Content-Type: ";
constexpr std::string_view length_name = "Content-Length: ";
constexpr std::string_view chunked_line = "Transfer-Encoding: chunked\r\n";
// The lines of a ConnectionHeader, without and with ResponseHead::has_upgrade.
constexpr std::array<std::array<std::string_view, 2>, 3> connection_lines{{
    {"", "Connection: Upgrade\r\n"},
    {"Connection: close\r\n", "Connection: close, Upgrade\r\n"},
    {"Connection: keep-alive\r\n", "Connection: keep-alive, Upgrade\r\n"},
}};

/// An upper bound for all parts of a head whose length is fixed or bounded.
constexpr std::size_t fixed_size_max = 256;
constexpr std::size_t reason_size_max = 40;
static_assert(version.size() + 4 + reason_size_max + date_name.size() + date_size +
                  type_name.size() + length_name.size() + digits_max + chunked_line.size() +
                  connection_lines.back().back().size() + 5 * line_end.size() <
              fixed_size_max);

char* append_status_line(char* out, Status status) noexcept {
  const std::string_view reason = reason_of(status);
  assert(is_valid(status) && reason.size() <= reason_size_max);
  out = append(out, version);
  const int code = code_of(status);
  *out++ = static_cast<char>('0' + code / 100);
  *out++ = static_cast<char>('0' + code / 10 % 10);
  *out++ = static_cast<char>('0' + code % 10);
  *out++ = ' ';
  out = append(out, reason);
  return append(out, line_end);
}

}  // namespace

std::size_t head_size_max(const ResponseHead& head) noexcept {
  return fixed_size_max + head.content_type.size() + head.lines.size();
}

char* write_head(const ResponseHead& head, char* out) noexcept {
  out = head.status == Status::ok ? append(out, ok_line) : append_status_line(out, head.status);
  if (head.date != nullptr)
    out = append(append(append(out, date_name), head.date->text()), line_end);
  if (!head.content_type.empty()) {
    out = append(append_short(append(out, type_name), head.content_type), line_end);
  }
  if (head.framing == BodyFraming::length) {
    out = append(append_number(append(out, length_name), head.content_length), line_end);
  } else if (head.framing == BodyFraming::chunked) {
    out = append(out, chunked_line);
  }
  const auto& lines = connection_lines[static_cast<std::size_t>(head.connection)];
  const std::string_view line = lines[head.has_upgrade ? 1 : 0];
  if (!line.empty()) out = append(out, line);
  return append(append(out, head.lines), line_end);
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
  return append(out, line_end);
}

namespace {

constexpr std::string_view any_length = "0\r\n\r\n";  // the end of a head from write_head()
static_assert(digits_max + empty_line.size() <= 24);

}  // namespace

void ResponseHeadCache::begin(const Date& date, std::string_view content_type) noexcept {
  assert(content_type.size() <= type_size_max);
  ResponseHead head;
  head.date = &date;
  head.content_type = content_type;
  // write_head() may need more room than start_ has.
  std::array<char, 512> whole;
  assert(head_size_max(head) <= whole.size());
  const char* const end = write_head(head, whole.data());
  start_size_ = static_cast<std::size_t>(end - whole.data()) - any_length.size();
  assert(start_size_ <= start_max);
  std::memcpy(start_.data(), whole.data(), start_size_);
  type_.set(content_type);
}

char* ResponseHeadCache::write(std::uint64_t content_length, char* out) const noexcept {
  // Copies the whole array, because a copy of a fixed size takes the fewest instructions.
  std::memcpy(out, start_.data(), start_.size());
  out += start_size_;
  return append(append_number(out, content_length), empty_line);
}

char* write_last_chunk(std::string_view trailers, char* out) noexcept {
  constexpr std::size_t size_line = 3;
  out = append(out, last_chunk.substr(0, size_line));
  out = append(out, trailers);
  return append(out, last_chunk.substr(size_line));
}

}  // namespace weir::http

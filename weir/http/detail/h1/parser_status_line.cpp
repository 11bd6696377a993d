// The parser's reading of a response's status line (RFC 9112 §4).
#include <algorithm>
#include <cassert>

#include "weir/http/detail/h1/framing.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

constexpr std::string_view status_pattern = "HTTP/0.0 000";  // '0' stands for any digit
constexpr std::size_t version_size = 8;

int digit_at(std::string_view text, std::size_t index) noexcept {
  return text[index] - '0';
}

}  // namespace

/// Reads the status line, whose reason phrase may be missing with or without its space, as clients
/// do. `position_` is the end of the bytes that were checked before.
HeadParser::Step HeadParser::read_status_line(std::string_view input, MessageHead& head) noexcept {
  const std::size_t line_max = std::size_t{limits_.request_line_max} + line_end.size();
  const std::string_view line = input.substr(0, line_max);
  std::size_t position = position_;
  const auto stop = [&] {
    position_ = static_cast<std::uint32_t>(position);
    return line.size() < line_max ? Step::need_more : fail_with(ParseError::status_line_too_long);
  };
  for (; position < status_pattern.size(); ++position) {
    if (position == line.size()) return stop();
    const char expected = status_pattern[position];
    const char found = line[position];
    if (expected == '0' ? is_in(found, CharClass::digit) : found == expected) continue;
    return fail_with(error_at(
        found, position < version_size ? ParseError::bad_version : ParseError::bad_status));
  }
  if (line[5] != '1') return fail_with(ParseError::unsupported_version);
  const int status = digit_at(line, 9) * 100 + digit_at(line, 10) * 10 + digit_at(line, 11);
  // A status from 600 on is processed like one of 5xx (RFC 9110 §15).
  if (status < 100) return fail_with(ParseError::bad_status);
  while (position < line.size() && is_in(line[position], CharClass::value)) {
    if (position == status_pattern.size() && line[position] != ' ') break;
    ++position;
  }
  if (position == line.size()) return stop();
  if (line[position] != '\r') return fail_with(error_at(line[position], ParseError::bad_status));
  if (position + 1 == line.size()) return stop();
  if (line[position + 1] != '\n') return fail_with(ParseError::bad_line_end);
  head.info_ = {};
  head.info_.status = static_cast<Status>(status);
  head.info_.version_minor = line[7] == '0' ? 0 : 1;
  position_ = static_cast<std::uint32_t>(position + line_end.size());
  end_max_ = position_ + limits_.headers_bytes_max;
  stage_ = Stage::line;
  return Step::done;
}

ParseResult HeadParser::parse(std::string_view input, ReceivedResponseHead& head) noexcept {
  assert(error_ == ParseError::none);
  if (stage_ == Stage::start) {
    reads_responses_ = true;
    const Step step = read_status_line(input, head);
    if (step == Step::need_more) return {};
    if (step == Step::failed) return {ParseResult::Kind::error, error_, 0};
  }
  return parse_resumable(input, head);
}

}  // namespace weir::http

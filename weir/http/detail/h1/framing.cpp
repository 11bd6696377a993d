// Parsers of Content-Length, Transfer-Encoding, Connection and Expect.
#include "weir/http/detail/h1/framing.hpp"

#include <algorithm>
#include <limits>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

/// True if the member is a transfer-coding other than "chunked": a token with optional
/// parameters. The parameters are not checked, because the server rejects the coding anyway.
bool is_other_coding(std::string_view member) noexcept {
  const std::string_view name = trim(member.substr(0, member.find(';')));
  return is_token(name) && !equals_ignoring_case(name, "chunked");
}

}  // namespace

std::string_view take_member(std::string_view& list) noexcept {
  const std::size_t length = std::min(list.find(','), list.size());
  const std::string_view member = trim(list.substr(0, length));
  list.remove_prefix(std::min(length + 1, list.size()));
  return member;
}

ParseError parse_content_length(std::string_view value, std::uint64_t& length) noexcept {
  constexpr std::uint64_t length_max = std::numeric_limits<std::int64_t>::max();
  constexpr std::uint64_t before_last_digit_max = length_max / 10;
  if (value.empty()) return ParseError::bad_content_length;
  std::uint64_t number = 0;
  for (char each : value) {
    if (!is_in(each, CharClass::digit)) {
      return each == ',' ? ParseError::repeated_content_length : ParseError::bad_content_length;
    }
    const auto digit = static_cast<std::uint64_t>(each - '0');
    if (number > before_last_digit_max) return ParseError::bad_content_length;
    number = number * 10 + digit;
    if (number > length_max) return ParseError::bad_content_length;
  }
  length = number;
  return ParseError::none;
}

ParseError check_transfer_encoding(std::string_view value) noexcept {
  if (equals_ignoring_case(value, "chunked")) return ParseError::none;
  bool unknown = false;
  while (!value.empty()) {
    const std::string_view member = take_member(value);
    if (is_other_coding(member)) {
      unknown = true;
    } else if (!equals_ignoring_case(member, "chunked") || !value.empty()) {
      return ParseError::bad_transfer_encoding;
    }
  }
  return unknown ? ParseError::unknown_transfer_coding : ParseError::bad_transfer_encoding;
}

ParseError parse_connection(std::string_view value, ConnectionOptions& options) noexcept {
  if (value == "keep-alive") {  // the value that most clients send
    options.keep_alive = true;
    return ParseError::none;
  }
  while (!value.empty()) {
    const std::string_view member = take_member(value);
    if (member.empty()) continue;
    if (!is_token(member)) return ParseError::bad_connection;
    options.close |= equals_ignoring_case(member, "close");
    options.keep_alive |= equals_ignoring_case(member, "keep-alive");
    options.upgrade |= equals_ignoring_case(member, "upgrade");
  }
  return ParseError::none;
}

Expectation parse_expect(std::string_view value) noexcept {
  Expectation expectation = Expectation::none;
  while (!value.empty()) {
    const std::string_view member = take_member(value);
    if (member.empty()) continue;
    if (!equals_ignoring_case(member, "100-continue")) return Expectation::other;
    expectation = Expectation::continue_;
  }
  return expectation;
}

}  // namespace weir::http

#include "weir/http/detail/h1/framing.hpp"

#include <algorithm>
#include <limits>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

/// Takes the first member off a comma-separated list, without white space around it.
std::string_view take_member(std::string_view& list) noexcept {
  const std::size_t length = std::min(list.find(','), list.size());
  const std::string_view member = trim(list.substr(0, length));
  list.remove_prefix(std::min(length + 1, list.size()));
  return member;
}

/// True for a transfer-coding that is not "chunked": a token, then perhaps parameters. Those are
/// not looked at: whatever they say, it is not done here.
bool is_other_coding(std::string_view member) noexcept {
  const std::string_view name = trim(member.substr(0, member.find(';')));
  return is_token(name) && !equals_ignoring_case(name, "chunked");
}

}  // namespace

Refusal parse_content_length(std::string_view value, std::uint64_t& length) noexcept {
  constexpr std::uint64_t length_max = std::numeric_limits<std::int64_t>::max();
  constexpr std::uint64_t before_last_digit_max = length_max / 10;
  if (value.empty()) return Refusal::bad_content_length;
  std::uint64_t number = 0;
  for (char each : value) {
    if (!is_in(each, CharacterClass::digit)) {
      return each == ',' ? Refusal::repeated_content_length : Refusal::bad_content_length;
    }
    const auto digit = static_cast<std::uint64_t>(each - '0');
    if (number > before_last_digit_max) return Refusal::bad_content_length;
    number = number * 10 + digit;
    if (number > length_max) return Refusal::bad_content_length;
  }
  length = number;
  return Refusal::none;
}

Refusal check_transfer_encoding(std::string_view value) noexcept {
  if (equals_ignoring_case(value, "chunked")) return Refusal::none;
  bool unknown = false;
  while (!value.empty()) {
    const std::string_view member = take_member(value);
    if (is_other_coding(member)) {
      unknown = true;
    } else if (!equals_ignoring_case(member, "chunked") || !value.empty()) {
      return Refusal::bad_transfer_encoding;
    }
  }
  return unknown ? Refusal::unknown_transfer_coding : Refusal::bad_transfer_encoding;
}

Refusal parse_connection(std::string_view value, ConnectionOptions& options) noexcept {
  if (value == "keep-alive") {  // what most clients send, most of the time
    options.keep_alive = true;
    return Refusal::none;
  }
  while (!value.empty()) {
    const std::string_view member = take_member(value);
    if (member.empty()) continue;
    if (!is_token(member)) return Refusal::bad_connection;
    options.close |= equals_ignoring_case(member, "close");
    options.keep_alive |= equals_ignoring_case(member, "keep-alive");
    options.upgrade |= equals_ignoring_case(member, "upgrade");
  }
  return Refusal::none;
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

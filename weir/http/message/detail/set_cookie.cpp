#include "weir/http/message/detail/set_cookie.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

constexpr std::size_t attribute_bytes_max = 1024;

/// Takes the text before the first `mark`, and the mark.
std::string_view take_until(std::string_view& text, char mark) noexcept {
  const std::string_view taken = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

/// Takes `least` to `most` digits.
/// Returns: nullopt for fewer or more digits.
std::optional<int> take_digits(std::string_view& text, std::size_t least,
                               std::size_t most) noexcept {
  std::size_t count = 0;
  int value = 0;
  for (; count < text.size() && is_in(text[count], CharClass::digit); ++count) {
    if (count == most) return std::nullopt;
    value = value * 10 + (text[count] - '0');
  }
  if (count < least) return std::nullopt;
  text.remove_prefix(count);
  return value;
}

struct TimeOfDay {
  int hour = 0;
  int minute = 0;
  int second = 0;
};

std::optional<TimeOfDay> time_of_day(std::string_view token) noexcept {
  TimeOfDay time;
  for (int* const each : {&time.hour, &time.minute, &time.second}) {
    const bool first = each == &time.hour;
    if (!first && !token.starts_with(':')) return std::nullopt;
    if (!first) token.remove_prefix(1);
    const std::optional<int> number = take_digits(token, 1, 2);
    if (!number) return std::nullopt;
    *each = *number;
  }
  return time;
}

/// Returns 1 to 12 for a token that begins with the name of a month.
std::optional<int> month_of(std::string_view token) noexcept {
  constexpr std::array<std::string_view, 12> names{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (equals_ignoring_case(token.substr(0, 3), names[index])) return static_cast<int>(index) + 1;
  }
  return std::nullopt;
}

/// Returns true for the bytes between the tokens of a date.
bool separates_tokens(char byte) noexcept {
  const auto code = static_cast<unsigned char>(byte);
  return code == 0x09 || (code >= 0x20 && code <= 0x2f) || (code >= 0x3b && code <= 0x40) ||
         (code >= 0x5b && code <= 0x60) || (code >= 0x7b && code <= 0x7e);
}

std::optional<WallTime> wall_time(int year, int month, int day, const TimeOfDay& time) noexcept {
  if (year < 1601 || time.hour > 23 || time.minute > 59 || time.second > 59) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok()) return std::nullopt;
  if (year < 1678) return WallTime::min();
  if (year > 2261) return WallTime::max();
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(time.hour) +
         std::chrono::minutes(time.minute) + std::chrono::seconds(time.second);
}

std::optional<Duration> parse_max_age(std::string_view text) noexcept {
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || !all_in(digits, CharClass::digit)) return std::nullopt;
  if (negative) return -Duration(std::chrono::seconds(1));
  constexpr auto seconds_max = std::chrono::duration_cast<std::chrono::seconds>(Duration::max());
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  if (error != std::errc() || seconds > seconds_max.count()) return Duration::max();
  return std::chrono::seconds(seconds);
}

void read_attribute(std::string_view name, std::string_view value,
                    ParsedSetCookie& cookie) noexcept {
  if (value.size() > attribute_bytes_max) return;
  if (equals_ignoring_case(name, "expires")) {
    if (const auto expires = parse_cookie_date(value)) cookie.expires = expires;
  } else if (equals_ignoring_case(name, "max-age")) {
    if (const auto max_age = parse_max_age(value)) cookie.max_age = max_age;
  } else if (equals_ignoring_case(name, "domain")) {
    if (value.starts_with('.')) value.remove_prefix(1);
    if (!value.empty()) cookie.domain = value;
  } else if (equals_ignoring_case(name, "path")) {
    cookie.path = value.starts_with('/') ? value : std::string_view();
  } else if (equals_ignoring_case(name, "secure")) {
    cookie.secure = true;
  }
}

}  // namespace

std::optional<WallTime> parse_cookie_date(std::string_view text) noexcept {
  std::optional<TimeOfDay> time;
  std::optional<int> day;
  std::optional<int> month;
  std::optional<int> year;
  while (!text.empty()) {
    const auto end = std::ranges::find_if(text, separates_tokens);
    const std::string_view token = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(std::min(token.size() + 1, text.size()));
    std::string_view digits = token;
    if (!time && (time = time_of_day(token))) continue;
    if (!day && (day = take_digits(digits, 1, 2))) continue;
    if (!month && (month = month_of(token))) continue;
    digits = token;
    if (!year) year = take_digits(digits, 2, 4);
  }
  if (!time || !day || !month || !year) return std::nullopt;
  if (*year < 70) {
    *year += 2000;
  } else if (*year < 100) {
    *year += 1900;
  }
  return wall_time(*year, *month, *day, *time);
}

std::optional<ParsedSetCookie> parse_set_cookie(std::string_view text) noexcept {
  if (!all_in(text, CharClass::value)) return std::nullopt;
  std::string_view pair = take_until(text, ';');
  if (pair.find('=') == pair.npos) return std::nullopt;
  ParsedSetCookie cookie;
  cookie.name = trim(take_until(pair, '='));
  cookie.value = trim(pair);
  if (cookie.name.empty()) return std::nullopt;
  while (!text.empty()) {
    std::string_view attribute = take_until(text, ';');
    const std::string_view name = trim(take_until(attribute, '='));
    read_attribute(name, trim(attribute), cookie);
  }
  return cookie;
}

CookiePrefix cookie_prefix(std::string_view name) noexcept {
  constexpr std::string_view secure = "__Secure-";
  constexpr std::string_view host = "__Host-";
  if (equals_ignoring_case(name.substr(0, secure.size()), secure)) return CookiePrefix::secure;
  if (equals_ignoring_case(name.substr(0, host.size()), host)) return CookiePrefix::host;
  return CookiePrefix::none;
}

}  // namespace weir::http

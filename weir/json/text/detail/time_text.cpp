// Converts between texts of RFC 3339 and numbers of ticks.
#include "weir/json/text/detail/time_text.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "weir/json/text/units.hpp"

namespace weir::json::detail {
namespace {

using Wide = __int128;

constexpr Wide second_length = 1'000'000'000;  // in nanoseconds
constexpr std::int64_t day_length = 86'400;    // in seconds
constexpr std::int64_t days_of_400_years = 146'097;

/// The first and the last second that has a text, since 1970.
constexpr std::int64_t first_second = -62'167'219'200;
constexpr std::int64_t last_second = 253'402'300'799;

/// Rounds towards negative infinity.
constexpr Wide floor_divide(Wide number, Wide divisor) noexcept {
  return number / divisor - (number % divisor < 0 ? 1 : 0);
}

/// Takes exactly `digits` digits from the front of `text`.
bool take_number(std::string_view& text, std::size_t digits, int& number) noexcept {
  if (text.size() < digits) return false;
  number = 0;
  for (std::size_t index = 0; index < digits; ++index) {
    const char each = text[index];
    if (each < '0' || each > '9') return false;
    number = number * 10 + (each - '0');
  }
  text.remove_prefix(digits);
  return true;
}

bool take_mark(std::string_view& text, char mark) noexcept {
  if (!text.starts_with(mark)) return false;
  text.remove_prefix(1);
  return true;
}

/// Takes a letter in either case (RFC 3339 §5.6).
bool take_letter(std::string_view& text, char upper) noexcept {
  return take_mark(text, upper) || take_mark(text, static_cast<char>(upper | 0x20));
}

/// The parts of a time as they stand in a text.
struct Parts {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  std::int64_t nanoseconds = 0;
  bool finer = false;  ///< true if a nanosecond does not divide the time
  int offset_sign = 0;
  int offset_hour = 0;
  int offset_minute = 0;
};

bool take_date_and_time(std::string_view& text, Parts& parts) noexcept {
  return take_number(text, 4, parts.year) && take_mark(text, '-') &&
         take_number(text, 2, parts.month) && take_mark(text, '-') &&
         take_number(text, 2, parts.day) && take_letter(text, 'T') &&
         take_number(text, 2, parts.hour) && take_mark(text, ':') &&
         take_number(text, 2, parts.minute) && take_mark(text, ':') &&
         take_number(text, 2, parts.second);
}

/// Takes a point with at least one digit behind it, or nothing.
bool take_fraction(std::string_view& text, Parts& parts) noexcept {
  if (!take_mark(text, '.')) return true;
  std::int64_t weight = 100'000'000;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    const int digit = text[digits] - '0';
    parts.nanoseconds += digit * weight;
    parts.finer |= weight == 0 && digit != 0;
    weight /= 10;
  }
  text.remove_prefix(digits);
  return digits > 0;
}

bool take_offset(std::string_view& text, Parts& parts) noexcept {
  if (take_letter(text, 'Z')) return true;
  parts.offset_sign = text.starts_with('-') ? -1 : 1;
  return (take_mark(text, '-') || take_mark(text, '+')) &&
         take_number(text, 2, parts.offset_hour) && take_mark(text, ':') &&
         take_number(text, 2, parts.offset_minute);
}

/// Returns the description of the parts that fit if these do not; else an empty text.
std::string_view expected_parts(const Parts& parts) noexcept {
  const std::chrono::year_month_day date{std::chrono::year(parts.year),
                                         std::chrono::month(static_cast<unsigned>(parts.month)),
                                         std::chrono::day(static_cast<unsigned>(parts.day))};
  if (!date.ok()) return "a date of the calendar";
  if (parts.second == 60) return "a time without a leap second (seconds from 00 to 59)";
  if (parts.hour > 23 || parts.minute > 59 || parts.second > 59) {
    return "a time of day from 00:00:00 to 23:59:59";
  }
  if (parts.offset_hour > 23 || parts.offset_minute > 59) return "an offset from -23:59 to +23:59";
  return {};
}

/// Returns the seconds since 1970, in UTC.
std::int64_t seconds_of(const Parts& parts) noexcept {
  const std::chrono::sys_days date = std::chrono::year(parts.year) /
                                     std::chrono::month(static_cast<unsigned>(parts.month)) /
                                     std::chrono::day(static_cast<unsigned>(parts.day));
  const int minutes = parts.hour * 60 + parts.minute -
                      parts.offset_sign * (parts.offset_hour * 60 + parts.offset_minute);
  return date.time_since_epoch().count() * day_length + minutes * 60 + parts.second;
}

std::string expected_range(const TimeScale& scale) {
  const Wide first = first_second * second_length;
  const Wide last = last_second * second_length;
  const Wide tick = static_cast<Wide>(scale.tick);
  const auto least = std::max(static_cast<Wide>(scale.min), -floor_divide(-first, tick));
  const auto most = std::min(static_cast<Wide>(scale.max), floor_divide(last, tick));
  return "a time from " + time_text(static_cast<std::int64_t>(least), scale.tick) + " to " +
         time_text(static_cast<std::int64_t>(most), scale.tick);
}

void append_number(std::string& out, Wide number, std::size_t digits) {
  const std::string text = std::to_string(static_cast<std::int64_t>(number));
  out.append(digits - std::min(digits, text.size()), '0').append(text);
}

}  // namespace

std::string expected_time(const TimeScale& scale) {
  std::string text = "a time such as 2026-11-25T22:14:43Z or 2026-11-25T23:14:43+01:00";
  if (scale.tick > 1) text += ", a multiple of " + ticks_text(1, scale.tick);
  return text;
}

std::expected<std::int64_t, std::string> parse_time(std::string_view text, const TimeScale& scale) {
  Parts parts;
  if (!take_date_and_time(text, parts) || !take_fraction(text, parts)) {
    return std::unexpected(expected_time(scale));
  }
  if (!take_offset(text, parts) || !text.empty()) {
    return std::unexpected(std::string("a time that ends with Z or an offset such as +01:00"));
  }
  if (const std::string_view expected = expected_parts(parts); !expected.empty()) {
    return std::unexpected(std::string(expected));
  }
  const std::int64_t seconds = seconds_of(parts);
  const Wide nanoseconds = seconds * second_length + parts.nanoseconds;
  const Wide tick = static_cast<Wide>(scale.tick);
  const Wide ticks = floor_divide(nanoseconds, tick);
  if (seconds < first_second || seconds > last_second || ticks < scale.min || ticks > scale.max) {
    return std::unexpected(expected_range(scale));
  }
  if (parts.finer || ticks * tick != nanoseconds) {
    return std::unexpected("a time that is a multiple of " + ticks_text(1, scale.tick));
  }
  return static_cast<std::int64_t>(ticks);
}

std::string time_text(std::int64_t ticks, std::uint64_t tick) {
  const Wide nanoseconds = Wide{ticks} * static_cast<Wide>(tick);
  const Wide seconds = floor_divide(nanoseconds, second_length);
  const Wide days = floor_divide(seconds, day_length);
  // The calendar repeats every 400 years. The library knows years of 16 bits only.
  const Wide cycle = floor_divide(days, days_of_400_years);
  const std::chrono::year_month_day date{std::chrono::sys_days(
      std::chrono::days(static_cast<std::int64_t>(days - cycle * days_of_400_years)))};
  const Wide year = static_cast<int>(date.year()) + cycle * 400;
  const Wide time = seconds - days * day_length;
  std::string text;
  const bool is_plain = year >= 0 && year <= 9999;
  if (!is_plain) text = year < 0 ? "-" : "+";
  append_number(text, year < 0 ? -year : year, is_plain ? 4 : 6);
  const auto append = [&text](char before, Wide number) {
    text += before;
    append_number(text, number, 2);
  };
  append('-', static_cast<unsigned>(date.month()));
  append('-', static_cast<unsigned>(date.day()));
  append('T', time / 3600);
  append(':', time / 60 % 60);
  append(':', time % 60);
  if (const Wide fraction = nanoseconds - seconds * second_length; fraction != 0) {
    text += '.';
    append_number(text, fraction, 9);
    while (text.ends_with("000")) text.resize(text.size() - 3);
  }
  return text += 'Z';
}

}  // namespace weir::json::detail

// The formatter of IMF-fixdate.
#include "weir/http/message/detail/date.hpp"

#include <algorithm>
#include <chrono>

namespace weir::http {
namespace {

constexpr std::string_view weekdays = "SunMonTueWedThuFriSat";
constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";

/// Writes `value` as `digits` decimal digits to `out` and returns the end.
char* append_number(char* out, unsigned value, std::size_t digits) noexcept {
  for (std::size_t index = digits; index-- > 0; value /= 10) {
    out[index] = static_cast<char>('0' + value % 10);
  }
  return out + digits;
}

char* append(char* out, std::string_view text) noexcept {
  return std::copy(text.begin(), text.end(), out);
}

}  // namespace

Date::Date(WallTime time) noexcept {
  using std::chrono::floor;
  const auto day = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(floor<std::chrono::seconds>(time) - day);
  const auto number = [](auto part) { return static_cast<unsigned>(part.count()); };
  char* out = text_.data();
  out = append(out, weekdays.substr(std::chrono::weekday(day).c_encoding() * 3, 3));
  out = append(out, ", ");
  out = append_number(out, static_cast<unsigned>(date.day()), 2);
  out = append(out, " ");
  out = append(out, months.substr((static_cast<unsigned>(date.month()) - 1) * 3, 3));
  out = append(out, " ");
  out = append_number(out, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  out = append(out, " ");
  out = append_number(out, number(clock.hours()), 2);
  out = append(out, ":");
  out = append_number(out, number(clock.minutes()), 2);
  out = append(out, ":");
  out = append_number(out, number(clock.seconds()), 2);
  append(out, " GMT");
}

}  // namespace weir::http

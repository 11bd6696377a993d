// The formatter and the parser of HTTP-dates.
#include "weir/http/message/detail/date.hpp"

#include <algorithm>
#include <chrono>

#include "weir/http/message/detail/set_cookie.hpp"

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

namespace {

constexpr std::string_view long_weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                              "Thursday", "Friday", "Saturday"};

/// Returns true if `text` begins with the name of a day, short as in "Sun".
bool begins_with_weekday(std::string_view text) noexcept {
  const std::size_t at = weekdays.find(text.substr(0, 3));
  return text.size() > 3 && at != weekdays.npos && at % 3 == 0;
}

}  // namespace

// The lenient parser of cookies reads the parts. The date is valid if they give the same text.
std::optional<WallTime> parse_http_date(std::string_view text) noexcept {
  const auto time = parse_cookie_date(text);
  if (!time || !begins_with_weekday(text)) return std::nullopt;
  const Date date(*time);
  const std::string_view usual = date.text();
  if (text.substr(3) == usual.substr(3)) return time;
  std::array<char, date_size> other;
  char* end = other.data();
  const std::string_view day = usual.substr(5, 2);
  const std::string_view month = usual.substr(8, 3);
  const std::string_view year = usual.substr(12, 4);
  const std::string_view clock = usual.substr(17, 8);
  const auto is_equal = [&](std::string_view rest) {
    return rest == std::string_view(other.data(), static_cast<std::size_t>(end - other.data()));
  };
  if (const std::size_t comma = text.find(", "); comma != text.npos) {  // RFC 850
    if (std::ranges::find(long_weekdays, text.substr(0, comma)) == std::end(long_weekdays)) {
      return std::nullopt;
    }
    end = append(append(append(append(end, day), "-"), month), "-");
    end = append(append(append(append(end, year.substr(2)), " "), clock), " GMT");
    return is_equal(text.substr(comma + 2)) ? time : std::nullopt;
  }
  end = append(append(append(end, " "), month), " ");  // asctime()
  if (day[0] == '0') {
    end = append(append(end, " "), day.substr(1));
  } else {
    end = append(end, day);
  }
  end = append(append(append(append(end, " "), clock), " "), year);
  return is_equal(text.substr(3)) ? time : std::nullopt;
}

}  // namespace weir::http

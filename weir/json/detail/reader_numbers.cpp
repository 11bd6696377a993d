// Reads numbers: RFC 8259 §6.
#include <charconv>
#include <string>

#include "weir/json/detail/reader.hpp"

namespace weir::json {
namespace {

bool is_digit(char each) noexcept {
  return each >= '0' && each <= '9';
}

/// Returns true if the number [position, end), which is out of the range of our floating-point
/// types, is too large and not too small. It computes the place of the first digit that is not 0,
/// moved by the exponent.
bool is_large(const char* position, const char* end) noexcept {
  constexpr std::int64_t far = std::int64_t{1} << 40;  // no text is that long
  std::int64_t magnitude = 0;
  bool significant = false;
  bool fraction = false;
  if (*position == '-') ++position;
  for (; position != end && (is_digit(*position) || *position == '.'); ++position) {
    if (*position == '.') {
      fraction = true;
      continue;
    }
    significant = significant || *position != '0';
    if (significant && !fraction) ++magnitude;
    if (!significant && fraction) --magnitude;
  }
  if (position == end) return magnitude > 0;
  ++position;
  const bool negative = *position == '-';
  if (!is_digit(*position)) ++position;
  std::int64_t exponent = 0;
  for (; position != end; ++position) {
    if (exponent < far) exponent = exponent * 10 + (*position - '0');
  }
  return magnitude + (negative ? -exponent : exponent) > 0;
}

}  // namespace

/// Reads digits without a sign; `fits` becomes true if a uint64 holds their value.
bool Reader::read_magnitude(std::uint64_t& magnitude, bool& fits) {
  constexpr std::ptrdiff_t digits_safe = 19;  // no number with at most 19 digits is too large
  const char* digit = position_;
  std::uint64_t value = 0;
  for (; digit != end_ && is_digit(*digit); ++digit) {
    value = value * 10 + static_cast<std::uint64_t>(*digit - '0');
  }
  if (digit == position_) return fail_expected("a digit");
  if (*position_ == '0' && digit - position_ > 1) return fail("a number with a leading zero");
  if (digit != end_ && (*digit == '.' || *digit == 'e' || *digit == 'E')) {
    return fail_at(digit, "expected an integer, found a fraction or an exponent");
  }
  fits = true;
  if (digit - position_ > digits_safe) {
    fits = std::from_chars(position_, digit, value).ec == std::errc();
  }
  position_ = digit;
  magnitude = value;
  return true;
}

bool Reader::fail_range(const char* start, std::string_view min, std::string_view max) {
  std::string what("expected an integer from ");
  return fail_at(
      start, what.append(min).append(" to ").append(max).append(", found a number out of range"));
}

bool Reader::read_signed(std::int64_t& value, std::int64_t min, std::int64_t max) {
  if (kind() != Kind::number) return fail_expected("an integer");
  const char* const start = position_;
  const bool negative = *position_ == '-';
  if (negative) ++position_;
  std::uint64_t magnitude = 0;
  bool fits = false;
  if (!read_magnitude(magnitude, fits)) return false;
  const std::uint64_t limit =
      negative ? -static_cast<std::uint64_t>(min) : static_cast<std::uint64_t>(max);
  if (!fits || magnitude > limit) {
    return fail_range(start, std::to_string(min), std::to_string(max));
  }
  value = static_cast<std::int64_t>(negative ? -magnitude : magnitude);
  return true;
}

bool Reader::read_unsigned(std::uint64_t& value, std::uint64_t max) {
  if (kind() != Kind::number) return fail_expected("an integer");
  const char* const start = position_;
  const bool negative = *position_ == '-';
  if (negative) ++position_;
  bool fits = false;
  if (!read_magnitude(value, fits)) return false;
  fits = fits && value <= max && (!negative || value == 0);
  return fits || fail_range(start, "0", std::to_string(max));
}

/// Finds the end of the number at the position of the reader.
bool Reader::scan_number(const char*& end) {
  const char* next = position_;
  const auto digits = [this, &next] {
    const char* const first = next;
    while (next != end_ && is_digit(*next)) ++next;
    return next != first;
  };
  const auto fail_digit = [this, &next] {
    position_ = next;
    return fail_expected("a digit");
  };
  if (*next == '-') ++next;
  const char* const first = next;
  if (!digits()) return fail_digit();
  if (*first == '0' && next - first > 1) return fail("a number with a leading zero");
  if (next != end_ && *next == '.') {
    ++next;
    if (!digits()) return fail_digit();
  }
  if (next != end_ && (*next == 'e' || *next == 'E')) {
    ++next;
    if (next != end_ && (*next == '+' || *next == '-')) ++next;
    if (!digits()) return fail_digit();
  }
  end = next;
  return true;
}

bool Reader::at_integer() noexcept {
  if (kind() != Kind::number) return false;
  const char* next = position_ + 1;
  while (next != end_ && is_digit(*next)) ++next;
  return next == end_ || (*next != '.' && *next != 'e' && *next != 'E');
}

template <class T>
bool Reader::read_real(T& value) {
  if (kind() != Kind::number) return fail_expected("a number");
  const char* end = nullptr;
  if (!scan_number(end)) return false;
  const auto [stop, error] = std::from_chars(position_, end, value);
  if (error == std::errc::result_out_of_range) {
    if (is_large(position_, end)) return fail("a number out of range");
    value = *position_ == '-' ? T{-0.0F} : T{0};
  }
  position_ = end;
  return true;
}

bool Reader::read(double& value) {
  return read_real(value);
}

bool Reader::read(float& value) {
  return read_real(value);
}

}  // namespace weir::json

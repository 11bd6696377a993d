// Parses and prints durations and sizes.
#include "weir/json/text/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <span>

namespace weir::json {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest unit first.
constexpr std::array<Unit, 7> time_units{{{"d", 86'400'000'000'000},
                                          {"h", 3'600'000'000'000},
                                          {"min", 60'000'000'000},
                                          {"s", 1'000'000'000},
                                          {"ms", 1'000'000},
                                          {"us", 1'000},
                                          {"ns", 1}}};
constexpr std::array<Unit, 9> size_units{{{"TiB", std::uint64_t{1} << 40},
                                          {"TB", 1'000'000'000'000},
                                          {"GiB", std::uint64_t{1} << 30},
                                          {"GB", 1'000'000'000},
                                          {"MiB", std::uint64_t{1} << 20},
                                          {"MB", 1'000'000},
                                          {"KiB", std::uint64_t{1} << 10},
                                          {"kB", 1'000},
                                          {"B", 1}}};

// A number of 20 digits times the largest unit is far below 2^127.
using UnsignedWide = unsigned __int128;
constexpr std::size_t digits_max = 20;

/// The number `digits` / `scale`.
struct Number {
  UnsignedWide digits = 0;
  UnsignedWide scale = 1;
};

bool is_digit(char each) noexcept {
  return each >= '0' && each <= '9';
}

bool is_letter(char each) noexcept {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z');
}

/// Removes a number such as `12` or `1.25` from the front and returns it.
std::optional<Number> take_number(std::string_view& text) noexcept {
  Number number;
  std::size_t length = 0;
  std::size_t digits = 0;
  bool fraction = false;
  for (; length < text.size(); ++length) {
    const char each = text[length];
    if (each == '.' && !fraction && length > 0) {
      fraction = true;
      continue;
    }
    if (!is_digit(each)) break;
    if (++digits > digits_max) return std::nullopt;
    number.digits = number.digits * 10 + static_cast<unsigned>(each - '0');
    if (fraction) number.scale *= 10;
  }
  if (length == 0 || text[length - 1] == '.') return std::nullopt;
  text.remove_prefix(length);
  return number;
}

/// Removes the letters from the front and returns them.
std::string_view take_word(std::string_view& text) noexcept {
  const auto end = std::ranges::find_if_not(text, is_letter);
  const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(word.size());
  return word;
}

/// Parses an amount of at most `most`, in the smallest of `units`.
std::optional<UnsignedWide> parse_amount(std::string_view text, std::span<const Unit> units,
                                         UnsignedWide most) noexcept {
  UnsignedWide total = 0;
  do {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    const auto unit = std::ranges::find(units, take_word(text), &Unit::name);
    if (unit == units.end()) return std::nullopt;
    const UnsignedWide amount = number->digits * unit->factor;
    if (amount % number->scale != 0) return std::nullopt;
    total += amount / number->scale;
    if (total > most) return std::nullopt;
    units = units.subspan(static_cast<std::size_t>(unit - units.begin()) + 1);
  } while (!text.empty());
  return total;
}

std::string in_unit(UnsignedWide amount, const Unit& unit) {
  std::string text(unit.name);
  amount /= unit.factor;
  do {
    text.insert(text.begin(), static_cast<char>('0' + amount % 10));
    amount /= 10;
  } while (amount != 0);
  return text;
}

}  // namespace

namespace detail {

std::optional<std::uint64_t> parse_ticks(std::string_view text, std::uint64_t tick,
                                         std::uint64_t most) noexcept {
  const auto amount = parse_amount(text, time_units, UnsignedWide{most} * tick);
  if (!amount || *amount % tick != 0) return std::nullopt;
  return static_cast<std::uint64_t>(*amount / tick);
}

std::string ticks_text(std::uint64_t ticks, std::uint64_t tick) {
  if (ticks == 0) return "0s";
  const UnsignedWide amount = UnsignedWide{ticks} * tick;
  return in_unit(amount, *std::ranges::find_if(time_units, [amount](const Unit& each) {
                   return amount % each.factor == 0;
                 }));
}

}  // namespace detail

std::optional<Duration> parse_duration(std::string_view text) noexcept {
  constexpr auto most = static_cast<std::uint64_t>(Duration::max().count());
  const auto amount = detail::parse_ticks(text, 1, most);
  if (!amount) return std::nullopt;
  return Duration(static_cast<Duration::rep>(*amount));
}

std::optional<ByteSize> parse_byte_size(std::string_view text) noexcept {
  if (std::ranges::all_of(text, is_digit)) {
    std::uint64_t bytes = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (read.ec != std::errc()) return std::nullopt;
    return ByteSize(bytes);
  }
  const auto bytes = parse_amount(text, size_units, std::numeric_limits<std::uint64_t>::max());
  if (!bytes) return std::nullopt;
  return ByteSize(static_cast<std::uint64_t>(*bytes));
}

std::string to_text(Duration length) {
  const auto count = static_cast<std::uint64_t>(length.count());
  if (length.count() < 0) return "-" + detail::ticks_text(0 - count, 1);
  return detail::ticks_text(count, 1);
}

std::string to_text(ByteSize size) {
  if (size.bytes() == 0) return "0B";
  // Units of 1024 come first: 1024000 is printed as 1000KiB.
  for (const bool binary : {true, false}) {
    for (const Unit& unit : size_units) {
      if (unit.name.contains('i') != binary) continue;
      if (size.bytes() % unit.factor == 0) return in_unit(size.bytes(), unit);
    }
  }
  return in_unit(size.bytes(), size_units.back());
}

}  // namespace weir::json

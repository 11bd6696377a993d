// Reads strings: RFC 8259 §7, in UTF-8 (§8.1).
#include "weir/base/text/detail/utf8.hpp"
#include "weir/json/detail/reader.hpp"
#include "weir/json/text/detail/plain_text.hpp"

namespace weir::json {
namespace {

/// Returns the character of a two-character escape, or 0.
char escaped(char letter) noexcept {
  switch (letter) {
    case '"':
    case '\\':
    case '/':
      return letter;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return '\0';
  }
}

int hexadecimal(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

constexpr bool is_high_surrogate(std::uint32_t unit) noexcept {
  return unit >= 0xD800 && unit < 0xDC00;
}
constexpr bool is_low_surrogate(std::uint32_t unit) noexcept {
  return unit >= 0xDC00 && unit < 0xE000;
}

}  // namespace

bool Reader::read(std::string& value) {
  return read_text(&value, "a string");
}

/// Reads a string and decodes it into `value`, unless that is nullptr.
bool Reader::read_text(std::string* value, std::string_view expected) {
  skip_space();
  if (!at('"')) return fail_expected(expected);
  text_start_ = position_;
  const char* const first = ++position_;
  const char* const stop = detail::find_not_plain(start_, first, end_);
  if (value != nullptr) value->assign(first, stop);
  position_ = stop;
  if (at('"')) {
    ++position_;
    return true;
  }
  return read_text_slow(value);
}

/// Reads the rest of a string, up to its quote; `value` has its beginning.
bool Reader::read_text_slow(std::string* value) {
  for (;;) {
    const char* const first = position_;
    position_ = detail::find_not_plain(start_, first, end_);
    while (position_ != end_ && static_cast<unsigned char>(*position_) >= 0x80) {
      const std::size_t length = utf8_length(position_, end_);
      if (length == 0) return fail("a string that is not UTF-8");
      position_ += length;
    }
    if (value != nullptr) value->append(first, position_);
    if (position_ == end_) return fail_text("an unterminated string");
    if (detail::is_plain(*position_)) continue;
    if (*position_ == '"') {
      ++position_;
      return true;
    }
    if (*position_ != '\\') return fail("a control character in a string");
    if (!read_escape(value)) return false;
  }
}

bool Reader::read_escape(std::string* value) {
  if (left() < 2) return fail("an incomplete escape");
  if (position_[1] != 'u') {
    const char character = escaped(position_[1]);
    if (character == '\0') return fail("an unknown escape");
    if (value != nullptr) value->push_back(character);
    position_ += 2;
    return true;
  }
  const char* const start = position_;
  std::uint32_t code_point = 0;
  if (!read_four_digits(code_point)) return false;
  if (is_high_surrogate(code_point) && left() >= 2 && position_[0] == '\\' && position_[1] == 'u') {
    std::uint32_t low = 0;
    if (!read_four_digits(low)) return false;
    if (!is_low_surrogate(low)) return fail_at(start, "an unpaired surrogate");
    code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
  } else if (is_high_surrogate(code_point) || is_low_surrogate(code_point)) {
    return fail_at(start, "an unpaired surrogate");
  }
  if (value != nullptr) {
    char bytes[4];
    value->append(bytes, put_utf8(bytes, code_point));
  }
  return true;
}

/// Reads `\uXXXX` at the position of the reader.
bool Reader::read_four_digits(std::uint32_t& unit) {
  if (left() < 6) return fail("an incomplete escape");
  unit = 0;
  for (const char* digit = position_ + 2; digit != position_ + 6; ++digit) {
    const int value = hexadecimal(*digit);
    if (value < 0) return fail("\\u without four hexadecimal digits");
    unit = unit << 4 | static_cast<std::uint32_t>(value);
  }
  position_ += 6;
  return true;
}

/// Reads a key and its colon. `key` is a view of the text if nothing is escaped, else of
/// `decoded`.
bool Reader::read_key_in_place(std::string& decoded, std::string_view& key) {
  skip_space();
  if (at('"')) {
    const char* const first = position_ + 1;
    const char* const stop = detail::find_not_plain(start_, first, end_);
    if (stop != end_ && *stop == '"') {
      key = std::string_view(first, static_cast<std::size_t>(stop - first));
      position_ = stop + 1;
      return read_colon();
    }
  }
  if (!read_key(decoded)) return false;
  key = decoded;
  return true;
}

}  // namespace weir::json

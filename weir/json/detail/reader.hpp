// Reads the tokens of one JSON text, strictly as RFC 8259 has them; what codecs are made of.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "weir/json/detail/error.hpp"
#include "weir/json/read_options.hpp"

namespace weir::json {

/// Integers that stand for numbers, not for characters or truth.
template <class T>
concept Integer =
    std::integral<T> && sizeof(T) <= sizeof(std::uint64_t) && !std::same_as<T, bool> &&
    !std::same_as<T, char> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
    !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// What stands at a place in a text, by its first character; `other` begins no value.
enum class Kind : std::uint8_t { null, boolean, number, text, array, object, other };

/// The names of a struct's fields, in order.
struct FieldTable {
  std::span<const std::string_view> names;
  std::uint32_t required;  ///< bit n: field n must be there
};

/// Where the reading of one object stands.
struct FieldWalk {
  enum class Next : std::uint8_t { first_key, key, separator, closed, failed };
  std::uint32_t seen = 0;  ///< bit n: field n was there
  std::uint32_t index = 0;
  Next next = Next::first_key;
};

/// One pass over one text. Every `bool` is false after an error, which error() then tells; nothing
/// may be read any more. Threads: one at a time. Lifetime: keeps a view of the text.
class Reader {
 public:
  Reader(std::string_view text, const ReadOptions& options) noexcept;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Refuses a text that is too long, and a byte order mark (RFC 8259 §8.1).
  bool begin();
  /// What comes next, behind white space.
  Kind kind() noexcept;
  bool read(bool& value);
  /// The nearest double; beyond the greatest one is an error.
  bool read(double& value);
  bool read(float& value);
  bool read(std::string& value);
  /// The exact number; one with a fraction or an exponent is an error, whatever its value.
  template <Integer T>
  bool read(T& value) {
    if constexpr (std::is_signed_v<T>) {
      std::int64_t number = 0;
      if (!read_signed(number, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())) {
        return false;
      }
      value = static_cast<T>(number);
    } else {
      std::uint64_t number = 0;
      if (!read_unsigned(number, std::numeric_limits<T>::max())) return false;
      value = static_cast<T>(number);
    }
    return true;
  }
  /// Whether the number that comes next is written without fraction and exponent.
  bool at_integer() noexcept;
  /// Reads `null` if it comes next.
  bool take_null() noexcept;
  /// Any value, for nobody.
  bool skip_value();

  /// Arrays and maps: open, then items as long as next_item() says. What goes wrong in an item is
  /// handed on through failed_in_element() or failed_in_key().
  bool open_array() { return open('[', "an array"); }
  bool open_object() { return open('{', "an object"); }
  /// Whether an item follows; `index` counts them from 0 on and `close` is ']' or '}'. False at the
  /// end and after an error: tell them apart by ok().
  bool next_item(std::size_t index, char close) {
    if (index == 0 || !at(',')) return next_item_further(index, close);
    ++position_;
    skip_space();
    return !at(close) || fail("a comma with nothing behind it");
  }
  /// The key of a map's next item, and the colon behind it.
  bool read_key(std::string& key);
  /// Accounts for an element of so many bytes.
  bool charge(std::size_t bytes) {
    element_bytes_ += bytes;
    return element_bytes_ <= options_.element_bytes_max || fail_charge();
  }
  bool ok() const noexcept { return error_.what.empty(); }

  // Structs: open_object(), then take() and next_separator() for as long as the fields come in
  // order, next_field() for the rest until it is false, and finish_fields(); see codec_object.hpp.

  /// Takes `token`, a whole key with its quotes and colon, if that comes next.
  template <std::size_t N>
  bool take(const std::array<char, N>& token) noexcept {
    if (left() < N || std::memcmp(position_, token.data(), N) != 0) return false;
    position_ += N;
    return true;
  }
  /// Behind a value in an object: takes the comma or the brace that comes next.
  void next_separator(FieldWalk& walk) noexcept {
    walk.next = FieldWalk::Next::separator;
    if (position_ == end_) return;
    if (*position_ == ',') {
      walk.next = FieldWalk::Next::key;
      ++position_;
      skip_space();
    } else if (*position_ == '}') {
      walk.next = FieldWalk::Next::closed;
      ++position_;
      --depth_;
    }
  }
  /// Finds the next field of the struct: its key has been read, `walk.index` says which it is.
  /// False at the object's end, with all that must be there, and after an error.
  bool next_field(const FieldTable& table, FieldWalk& walk);
  /// Checks at the end of the object that no field is missing.
  bool finish_fields(const FieldTable& table, const FieldWalk& walk);
  /// Whether a field that the text does not mention is left as it is.
  bool keeps_missing_fields() const noexcept {
    return options_.missing_fields == MissingFields::keep;
  }

  /// Which of some structs the object that comes next is: the first that has all of the object's
  /// names and no required ones besides, else the one that is left when they are looked at in turn.
  /// Nothing is read. Returns its index, or tables.size() after an error.
  std::size_t choose(std::span<const FieldTable> tables);

  /// Nothing but white space may be left.
  bool finish();

  /// Says what is wrong, at the place where the reader stands. Returns false.
  bool fail(std::string_view what) { return fail_at(position_, what); }
  /// The same about the string or key that was read last.
  bool fail_text(std::string_view what) { return fail_at(text_start_, what); }
  /// The same: `expected` something, found what stands there.
  bool fail_expected(std::string_view expected);
  /// On the way out of what failed: it was inside this field, element or key. Returns false.
  bool failed_in_field(std::string_view name);
  bool failed_in_element(std::size_t index);
  bool failed_in_key(std::string_view key);
  Error&& error() noexcept { return static_cast<Error&&>(error_); }

 private:
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - position_); }
  bool at(char character) const noexcept { return position_ != end_ && *position_ == character; }
  void skip_space() noexcept {
    if (position_ != end_ && static_cast<unsigned char>(*position_) <= ' ') skip_more_space();
  }
  void skip_more_space() noexcept;
  bool next_item_further(std::size_t index, char close);
  bool open(char bracket, std::string_view expected);
  bool enter();
  bool read_signed(std::int64_t& value, std::int64_t min, std::int64_t max);
  bool read_unsigned(std::uint64_t& value, std::uint64_t max);
  bool read_magnitude(std::uint64_t& magnitude, bool& fits);
  bool fail_range(const char* start, std::string_view min, std::string_view max);
  bool scan_number(const char*& end);
  template <class T>
  bool read_real(T& value);
  bool read_text(std::string* value, std::string_view expected);
  bool read_text_further(std::string* value);
  bool read_escape(std::string* value);
  bool read_four_digits(std::uint32_t& unit);
  bool read_key_in_place(std::string& decoded, std::string_view& key);
  bool read_colon();
  bool take_word(std::string_view word) noexcept;
  bool skip_scalar();
  bool fail_at(const char* position, std::string_view what, Errc code = Errc::bad_input);
  bool fail_charge();
  bool fail_unknown(const char* position, std::string_view key, std::string_view what);

  const char* start_;
  const char* position_;
  const char* end_;
  const char* text_start_;  // of the string that was read last
  std::size_t depth_ = 0;
  std::size_t element_bytes_ = 0;
  ReadOptions options_;
  Error error_;
};

}  // namespace weir::json

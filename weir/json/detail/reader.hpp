// A Reader reads the tokens of one JSON text, strictly as RFC 8259 defines them. Codecs use it.
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
#include <vector>

#include "weir/json/error.hpp"
#include "weir/json/read_options.hpp"

namespace weir::json {

/// An Integer is an integer type for numbers, not for characters or truth values.
template <class T>
concept Integer =
    std::integral<T> && sizeof(T) <= sizeof(std::uint64_t) && !std::same_as<T, bool> &&
    !std::same_as<T, char> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
    !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// The kind of the value at a position, by its first character; `other` begins no value.
enum class Kind : std::uint8_t { null, boolean, number, text, array, object, other };

/// The names of a struct's fields, in order.
struct FieldTable {
  std::span<const std::string_view> names;
  std::uint32_t required;  ///< bit n is set if field n is required
};

/// The state of reading one object.
struct FieldCursor {
  enum class State : std::uint8_t { first_key, key, separator, closed, failed };
  std::uint32_t seen = 0;  ///< bit n is set if field n was read
  std::uint32_t index = 0;
  State state = State::first_key;
};

/// A Reader makes one pass over one text. A function that fails returns false, and error()
/// returns the error. The caller reads nothing more after an error, unless the reader has recovered
/// from it.
/// Threads: one at a time.
/// Lifetime: the text outlives the reader, which holds a view.
class Reader {
 public:
  /// A Mark is a position before a value, to which the reader can return.
  struct Mark {
    const char* position;
    std::size_t depth;
    std::size_t errors;  ///< number of errors that were kept before
  };

  /// Keeps at most `errors_max` - 1 errors and continues; fails with the next one.
  Reader(std::string_view text, const ReadOptions& options, std::size_t errors_max = 1) noexcept;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Refuses a text that is too long, and a byte order mark (RFC 8259 §8.1).
  bool begin();
  /// Skips white space and returns the kind of the next value.
  Kind kind() noexcept;
  bool read(bool& value);
  /// Reads the nearest double; a number beyond the greatest double is an error.
  bool read(double& value);
  bool read(float& value);
  bool read(std::string& value);
  /// Reads the exact number; a number with a fraction or an exponent is an error, whatever its
  /// value.
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
  /// Returns true if the next value is a number without fraction and exponent.
  bool at_integer() noexcept;
  /// Reads `null` if it comes next; returns true if it did.
  bool take_null() noexcept;
  /// Skips a value of any kind.
  bool skip_value();

  /// Open an array or a map. The caller then reads items as long as next_item() returns true. It
  /// reports an error in an item to recover_in_element() or recover_in_field().
  bool open_array() { return open('[', "an array"); }
  bool open_object() { return open('{', "an object"); }
  /// Returns true if an item follows. `index` counts the items from 0, and `close` is ']' or '}'.
  /// It returns false at the end and after an error; ok() distinguishes the two.
  bool next_item(std::size_t index, char close) {
    if (index == 0 || !at(',')) return next_item_slow(index, close);
    ++position_;
    skip_space();
    return !at(close) || fail("a trailing comma");
  }
  /// Reads the key of a map's next item and the colon behind it.
  bool read_key(std::string& key);
  /// Counts an element of `bytes` bytes; fails if ReadOptions::element_bytes_max is exceeded.
  bool charge(std::size_t bytes) {
    element_bytes_ += bytes;
    return element_bytes_ <= options_.element_bytes_max || fail_charge();
  }
  bool ok() const noexcept { return error_.what.empty(); }

  // Structs are read with open_object(). The caller then calls take() and next_separator() as
  // long as the fields come in order. It calls next_field() for the other keys until that returns
  // false, and finish_fields() at the end; see codec_object.hpp.

  /// Takes `token`, a whole key with its quotes and colon, if it comes next.
  template <std::size_t N>
  bool take(const std::array<char, N>& token) noexcept {
    if (left() < N || std::memcmp(position_, token.data(), N) != 0) return false;
    position_ += N;
    return true;
  }
  /// Takes the comma or the brace that follows a value in an object, if it comes next.
  void next_separator(FieldCursor& cursor) noexcept {
    cursor.state = FieldCursor::State::separator;
    if (position_ == end_) return;
    if (*position_ == ',') {
      cursor.state = FieldCursor::State::key;
      ++position_;
      skip_space();
    } else if (*position_ == '}') {
      cursor.state = FieldCursor::State::closed;
      ++position_;
      --depth_;
    }
  }
  /// Reads the key of the next field of the struct; `cursor.index` is then the index of the
  /// field. It returns false at the object's end and after an error.
  bool next_field(const FieldTable& table, FieldCursor& cursor);
  /// Checks at the end of the object that no field is missing.
  bool finish_fields(const FieldTable& table, const FieldCursor& cursor);
  /// Returns true if a field that the text does not contain keeps its value.
  bool keeps_missing_fields() const noexcept {
    return options_.missing_fields == MissingFields::keep;
  }

  /// Chooses a struct for the object that comes next; nothing is read. Each name of the object
  /// excludes the structs without this name, until one struct is left or the object ends.
  /// UnknownFields::skip ignores names that no struct has. The choice is the first remaining
  /// struct whose required names are all present, else the first remaining one.
  /// Returns: the index of the struct, or tables.size() after an error.
  std::size_t choose(std::span<const FieldTable> tables);

  /// Checks that only white space is left.
  bool finish();

  /// Reports an error at the position of the reader. Returns false.
  bool fail(std::string_view what) { return fail_at(position_, what); }
  /// Reports an error at the string or key that was read last. Returns false.
  bool fail_text(std::string_view what) { return fail_at(text_start_, what); }
  /// Reports the error that `expected` was expected and another value found. Returns false.
  bool fail_expected(std::string_view expected);
  /// Reports that the value at `mark`, which was read, breaks a rule. Returns false.
  bool fail_rule(const Mark& mark, std::string_view expected);
  /// Add this element or key to the front of the error's path. Each returns false.
  bool failed_in_element(std::size_t index);
  bool failed_in_key(std::string_view key);

  Mark mark() const noexcept { return {position_, depth_, errors_.size()}; }
  /// Returns a mark for a value that began at `position` and contains no other values.
  Mark mark_at(const char* position) const noexcept { return {position, depth_, errors_.size()}; }
  const char* position() const noexcept { return position_; }
  /// Returns true if an error was kept since `mark`.
  bool has_kept_since(const Mark& mark) const noexcept { return errors_.size() != mark.errors; }
  /// Adds this field, key or element to the front of the paths of all errors since `mark`. Then
  /// keeps the present error and skips the value at `mark`.
  /// Returns: false if there is an error that cannot be kept; the caller then fails.
  bool recover_in_field(std::string_view name, const Mark& mark);
  bool recover_in_element(std::size_t index, const Mark& mark);
  /// Returns all errors, in the order of the text. The call moves them out.
  std::vector<Error> errors();
  Error&& error() noexcept { return static_cast<Error&&>(error_); }

 private:
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - position_); }
  bool at(char character) const noexcept { return position_ != end_ && *position_ == character; }
  void skip_space() noexcept {
    if (position_ != end_ && static_cast<unsigned char>(*position_) <= ' ') skip_more_space();
  }
  void skip_more_space() noexcept;
  bool next_item_slow(std::size_t index, char close);
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
  bool read_text_slow(std::string* value);
  bool read_escape(std::string* value);
  bool read_four_digits(std::uint32_t& unit);
  bool read_key_in_place(std::string& decoded, std::string_view& key);
  bool read_colon();
  bool take_literal(std::string_view word) noexcept;
  bool skip_scalar();
  bool fail_at(const char* position, std::string_view what, Errc code = Errc::bad_input);
  bool fail_charge();
  bool fail_unknown(const char* position, std::string_view key, std::string_view what);
  struct PathPart;
  static PathPart part_of(std::string_view name);
  static PathPart part_of(std::size_t index);
  static void prepend(Error& error, const PathPart& part);
  bool recover(const PathPart& part, const Mark& mark);
  bool keep_error();

  const char* start_;
  const char* position_;
  const char* end_;
  const char* text_start_;  // start of the string that was read last
  std::size_t depth_ = 0;
  std::size_t element_bytes_ = 0;
  ReadOptions options_;
  std::size_t errors_max_;
  Error error_;
  bool malformed_ = false;     // a value could not be skipped
  std::vector<Error> errors_;  // those that were kept
};

}  // namespace weir::json

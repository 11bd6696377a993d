// A RawValue is a value that a source gives, before its C++ type is known.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

/// The first character's line and column in a file, counted from 1. Both are 0 if there is no
/// file.
struct Position {
  unsigned line = 0;
  unsigned column = 0;
  auto operator<=>(const Position&) const noexcept = default;
};

struct RawValue {
  enum class Kind : std::uint8_t {
    untyped,  ///< The text of a variable or an option, which may be of any type.
    string,
    integer,
    real,
    boolean,
    date_time,  ///< A date, a time, or both.
    array,
    table,
  };

  Kind kind = Kind::untyped;
  Position position;
  std::string name;  ///< The key, if the value is an item of a table.
  Position name_position;
  /// The text of an untyped value or a string; of a date with a time, as RFC 3339 writes it.
  std::string text;
  std::int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::vector<RawValue> items;  ///< The items of an array or a table.

  static RawValue untyped(std::string_view text);
  /// Returns nested tables, one for each name of `path`, with `innermost` in the last one.
  static RawValue nested(std::span<const std::string> path, RawValue innermost);

  bool is_text() const noexcept { return kind == Kind::untyped || kind == Kind::string; }
  /// Returns the text for messages after "found": `"http"`, `70000`, `a table`.
  std::string describe() const;
};

/// Returns a text as the name of an environment variable: upper-case letters, digits and
/// underscores.
std::string to_variable_name(std::string_view text);

}  // namespace weir::config

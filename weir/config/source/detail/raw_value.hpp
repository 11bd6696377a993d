// What a file, the environment or the command line gives, before anybody knows what it should be.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

/// Where something begins in a file, from 1; 0: it is in no file.
struct Position {
  unsigned line = 0;
  unsigned column = 0;
  auto operator<=>(const Position&) const noexcept = default;
};

struct Given {
  enum class Kind : std::uint8_t {
    bare,  ///< a text whose type nobody has told: of a variable or an option
    text,
    integer,
    real,
    boolean,
    moment,  ///< a date or a time
    list,
    table,
  };

  Kind kind = Kind::bare;
  Position position;
  std::string name;  ///< its key, in a table
  Position name_position;
  std::string text;  ///< if it is bare or a text
  std::int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::vector<Given> items;  ///< of a list or a table

  static Given bare(std::string_view text);
  /// Tables in tables, one for each name of `path`, with `innermost` in the last.
  static Given nested(std::span<const std::string> path, Given innermost);

  bool is_text() const noexcept { return kind == Kind::bare || kind == Kind::text; }
  /// For `found …`: `"http"`, `70000`, `a table`.
  std::string describe() const;
};

}  // namespace weir::config

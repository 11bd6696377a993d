#include "weir/app/config_toml.hpp"

#define TOML_ENABLE_FORMATTERS 0
// The parser of toml++ 3.3 states of a file's bytes what it only then looks at ("[.5g]"): it ended
// the program with assertions, and without them anything could happen. Not stated, it is an error.
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_ASSERT_ASSUME(expr) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <string>
#include <utility>

namespace weir::config {
namespace {

Position position_of(const toml::source_region& region) {
  return {region.begin.line, region.begin.column};
}

Given given_of(const toml::node& node);

std::vector<Given> items_of(const toml::table& table) {
  std::vector<Given> items;
  items.reserve(table.size());
  for (const auto& [key, value] : table) {
    Given& item = items.emplace_back(given_of(value));
    item.name = key.str();
    item.name_position = position_of(key.source());
  }
  // The library has them by name.
  std::ranges::stable_sort(items, {}, &Given::name_position);
  return items;
}

std::vector<Given> items_of(const toml::array& array) {
  std::vector<Given> items;
  items.reserve(array.size());
  for (const toml::node& element : array) items.push_back(given_of(element));
  return items;
}

Given given_of(const toml::node& node) {
  Given given;
  given.position = position_of(node.source());
  if (const auto* const table = node.as_table()) {
    given.kind = Given::Kind::table;
    given.items = items_of(*table);
  } else if (const auto* const array = node.as_array()) {
    given.kind = Given::Kind::list;
    given.items = items_of(*array);
  } else if (const auto* const text = node.as_string()) {
    given.kind = Given::Kind::text;
    given.text = text->get();
  } else if (const auto* const integer = node.as_integer()) {
    given.kind = Given::Kind::integer;
    given.integer = integer->get();
  } else if (const auto* const real = node.as_floating_point()) {
    given.kind = Given::Kind::real;
    given.real = real->get();
  } else if (const auto* const boolean = node.as_boolean()) {
    given.kind = Given::Kind::boolean;
    given.boolean = boolean->get();
  } else {
    given.kind = Given::Kind::moment;
  }
  return given;
}

// Each dot of a key is a table in a table, whose destructors call each other.
constexpr std::ptrdiff_t dots_max = 256;

/// The number of the first line with more dots outside of quotes, or 0.
unsigned line_with_too_many_dots(std::string_view text) {
  unsigned line = 1;
  std::ptrdiff_t dots = 0;
  char quote = '\0';
  for (const char each : text) {
    if (each == '\n') {
      ++line;
      dots = 0;
      quote = '\0';
    } else if (quote != '\0') {
      if (each == quote) quote = '\0';
    } else if (each == '"' || each == '\'') {
      quote = each;
    } else if (each == '.' && ++dots > dots_max) {
      return line;
    }
  }
  return 0;
}

/// What the library says goes on with what it was doing and what it saw; one line of it, safe to
/// show.
std::string first_line(std::string_view text) {
  std::string line(text.substr(0, std::min<std::size_t>(text.find('\n'), 200)));
  std::ranges::replace_if(line, [](char each) { return each < ' ' || each > '~'; }, '?');
  return line;
}

}  // namespace

std::string place(std::string_view source, Position position) {
  std::string text(source);
  if (position.line == 0) return text;
  text.append(":").append(std::to_string(position.line));
  return text.append(":").append(std::to_string(position.column));
}

std::expected<Given, Error> parse_toml(std::string_view text, std::string_view source) {
  if (const unsigned line = line_with_too_many_dots(text); line != 0) {
    return std::unexpected(Error{place(source, {line, 1}), "", "a line with more than 256 dots"});
  }
  try {
    return given_of(toml::parse(text));
  } catch (const toml::parse_error& error) {
    return std::unexpected(Error{place(source, position_of(error.source())), "",
                                 "this is no TOML: " + first_line(error.description())});
  }
}

std::expected<Given, std::string> parse_toml_value(std::string_view text) {
  // A line of its own would begin another key.
  if (text.find_first_of("\r\n") != text.npos) return std::unexpected("it has more than one line");
  const auto table = parse_toml("value = " + std::string(text), "");
  if (!table) return std::unexpected(table.error().what);
  Given given = table->items.front();
  given.position = given.name_position = {};
  given.name.clear();
  return given;
}

}  // namespace weir::config

#include "weir/config/source/detail/raw_value.hpp"

#include <ranges>
#include <utility>

#include "weir/config/source/detail/error.hpp"
#include "weir/json/detail/writer.hpp"

namespace weir::config {
namespace {

template <class T>
std::string written(T value) {
  std::string text;
  json::StringWriter writer(text);
  writer.write(value);
  writer.finish();
  return text;
}

}  // namespace

Given Given::bare(std::string_view text) {
  Given given;
  given.text = text;
  return given;
}

Given Given::nested(std::span<const std::string> path, Given innermost) {
  for (const std::string& name : std::views::reverse(path)) {
    innermost.name = name;
    Given table;
    table.kind = Kind::table;
    table.items.push_back(std::move(innermost));
    innermost = std::move(table);
  }
  return innermost;
}

std::string Given::describe() const {
  switch (kind) {
    case Kind::bare:
      return shown(text);
    case Kind::text:
      return "the string " + shown(text);
    case Kind::integer:
      return std::to_string(integer);
    case Kind::real:
      return "the number " + written(real);
    case Kind::boolean:
      return written(boolean);
    case Kind::moment:
      return "a date or time";
    case Kind::list:
      return "an array";
    case Kind::table:
      return "a table";
  }
  return "something else";
}

}  // namespace weir::config

// Makes and describes raw values.
#include "weir/config/source/detail/raw_value.hpp"

#include <ranges>
#include <utility>

#include "weir/config/source/error.hpp"
#include "weir/json/detail/writer.hpp"

namespace weir::config {
namespace {

template <class T>
std::string to_json(T value) {
  std::string text;
  json::StringWriter writer(text);
  writer.write(value);
  writer.finish();
  return text;
}

}  // namespace

RawValue RawValue::untyped(std::string_view text) {
  RawValue raw;
  raw.text = text;
  return raw;
}

RawValue RawValue::nested(std::span<const std::string> path, RawValue innermost) {
  for (const std::string& name : std::views::reverse(path)) {
    innermost.name = name;
    RawValue table;
    table.kind = Kind::table;
    table.items.push_back(std::move(innermost));
    innermost = std::move(table);
  }
  return innermost;
}

std::string RawValue::describe() const {
  switch (kind) {
    case Kind::untyped:
      return quote(text);
    case Kind::string:
      return "the string " + quote(text);
    case Kind::integer:
      return std::to_string(integer);
    case Kind::real:
      return "the number " + to_json(real);
    case Kind::boolean:
      return to_json(boolean);
    case Kind::date_time:
      return "a date or time";
    case Kind::array:
      return "an array";
    case Kind::table:
      return "a table";
  }
  return "a value of another type";
}

std::string to_variable_name(std::string_view text) {
  std::string name(text);
  for (char& each : name) {
    if (each >= 'a' && each <= 'z') each = static_cast<char>(each - 'a' + 'A');
    const bool plain = (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9');
    if (!plain) each = '_';
  }
  return name;
}

}  // namespace weir::config

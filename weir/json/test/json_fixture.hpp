// Any JSON value at all, for tests: what a variant and a codec of the user's make possible.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/json/read.hpp"
#include "weir/json/write.hpp"

namespace weir::json {

/// A value of a kind that only the text knows.
struct AnyValue {
  std::variant<std::nullptr_t, bool, double, std::string, std::vector<AnyValue>,
               std::map<std::string, AnyValue>>
      held;
};

template <>
struct Codec<AnyValue> {
  using Held = decltype(AnyValue::held);
  static bool read(Reader& in, AnyValue& value) { return Codec<Held>::read(in, value.held); }
  static void write(Writer& out, const AnyValue& value) { Codec<Held>::write(out, value.held); }
};

/// Whether `text` is JSON, and not too deep, as a value and as something that is skipped.
inline Read<AnyValue> read_any(std::string_view text) {
  return read<AnyValue>(text, {.depth_max = 1000});
}
inline bool can_skip(std::string_view text) {
  struct Nothing {};
  const std::string member = "{\"x\":" + std::string(text) + "}";
  return read<Nothing>(member, {.unknown_fields = UnknownFields::skip, .depth_max = 1000})
      .has_value();
}

}  // namespace weir::json

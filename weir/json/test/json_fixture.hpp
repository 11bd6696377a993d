// AnyValue is any JSON value, for tests; it is made of a variant and a user's codec.
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

/// An AnyValue is a JSON value of any kind.
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

/// Reads any JSON `text` with a depth of at most 1000.
inline Read<AnyValue> read_any(std::string_view text) {
  return read<AnyValue>(text, {.depth_max = 1000});
}
/// Returns true if the reader can skip `text` as the value of an unknown field.
inline bool can_skip(std::string_view text) {
  struct Nothing {};
  const std::string member = "{\"x\":" + std::string(text) + "}";
  return read<Nothing>(member, {.unknown_fields = UnknownFields::skip, .depth_max = 1000})
      .has_value();
}

}  // namespace weir::json

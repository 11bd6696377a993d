// The decoder of the pairs of queries and forms.
#include "weir/http/message/detail/urlencoded.hpp"

#include <utility>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

/// Decodes `text` to `out`, which may be the begin of the text itself. A '%' without two
/// hexadecimal digits stands for itself (WHATWG URL §1.3).
/// Returns: the number of bytes, which is at most text.size().
std::size_t decode(std::string_view text, char* out) noexcept {
  char* const start = out;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const char each = text[index];
    if (each == '%' && text.size() - index >= 3) {
      const int high = hex_value(text[index + 1]);
      const int low = hex_value(text[index + 2]);
      if (high >= 0 && low >= 0) {
        *out++ = static_cast<char>(high * 16 + low);
        index += 2;
        continue;
      }
    }
    *out++ = each == '+' ? ' ' : each;
  }
  return static_cast<std::size_t>(out - start);
}

}  // namespace

void decode_value(const RawPair& pair, std::string& value) {
  value.assign(pair.value);
  if (pair.value_has_escapes) [[unlikely]]
    value.resize(decode(value, value.data()));
}

std::optional<std::string_view> decode_form(std::string_view text, std::span<char> room) noexcept {
  if (text.size() > room.size()) return std::nullopt;
  return std::string_view(room.data(), decode(text, room.data()));
}

std::string decode_form(std::string_view text) {
  std::string decoded;
  decode_value({.name = {}, .value = text, .value_has_escapes = true}, decoded);
  return decoded;
}

std::optional<UrlencodedPair> UrlencodedPairs::next() {
  RawPair pair;
  if (!take_pair(rest_, pair)) return std::nullopt;
  return UrlencodedPair{decode_form(pair.name), decode_form(pair.value)};
}

std::optional<std::string> UrlencodedPairs::find(std::string_view name) const {
  UrlencodedPairs walk = *this;
  while (auto pair = walk.next()) {
    if (pair->name == name) return std::move(pair->value);
  }
  return std::nullopt;
}

}  // namespace weir::http

// The decoder of the pairs of queries and forms.
#include "weir/http/message/detail/urlencoded.hpp"

#include <algorithm>
#include <utility>

#include "weir/http/syntax/uri.hpp"

namespace weir::http {

bool decode_value(const RawPair& pair, std::string& value) {
  value.assign(pair.value);
  if (!pair.value_has_escapes) [[likely]]
    return true;
  std::replace(value.begin(), value.end(), '+', ' ');
  const std::optional<std::size_t> size = percent_decode(value, value.data());
  if (size) value.resize(*size);
  return size.has_value();
}

std::optional<std::string_view> decode_form(std::string_view text, std::span<char> room) noexcept {
  if (text.size() > room.size()) return std::nullopt;
  std::replace_copy(text.begin(), text.end(), room.begin(), '+', ' ');
  const std::optional<std::size_t> size = percent_decode({room.data(), text.size()}, room.data());
  if (!size) return std::nullopt;
  return std::string_view(room.data(), *size);
}

Result<std::string> decode_form(std::string_view text) {
  std::string decoded;
  if (!decode_value({.name = {}, .value = text, .value_has_escapes = true}, decoded)) {
    return fail(Errc::bad_input);
  }
  return decoded;
}

Result<std::optional<UrlencodedPair>> UrlencodedPairs::next() {
  RawPair pair;
  if (!take_pair(rest_, pair)) return std::optional<UrlencodedPair>();
  WEIR_TRY(std::string name, decode_form(pair.name));
  std::string value;
  if (!decode_value(pair, value)) return fail(Errc::bad_input);
  return std::optional<UrlencodedPair>(UrlencodedPair{std::move(name), std::move(value)});
}

std::optional<std::string> UrlencodedPairs::find(std::string_view name) const {
  UrlencodedPairs walk = *this;
  while (true) {
    Result<std::optional<UrlencodedPair>> pair = walk.next();
    if (!pair) continue;
    if (!pair->has_value()) return std::nullopt;
    if ((*pair)->name == name) return std::move((*pair)->value);
  }
}

}  // namespace weir::http

// Reader of the name=value pairs of a query or a form body; it decodes them one by one.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::http {

/// One decoded pair. `a` and `a=` both have an empty value.
struct UrlencodedPair {
  std::string name;
  std::string value;
};

/// Iterates over the pairs of a raw query (RFC 3986 §3.4) or of an
/// application/x-www-form-urlencoded body (WHATWG URL §5). Pairs are split on '&', and names from
/// values on the first '=', before they are decoded. A '+' is a space, and a '%' without two
/// hexadecimal digits is itself. Empty pairs ("a&&b") are left out.
/// Lifetime: it borrows the text.
class UrlencodedPairs {
 public:
  explicit UrlencodedPairs(std::string_view raw) noexcept : rest_(raw) {}

  /// Returns the next pair, or std::nullopt after the last one.
  std::optional<UrlencodedPair> next();

  /// Returns the decoded value of the first pair, from the current position, whose decoded name
  /// is `name`. The position does not change.
  std::optional<std::string> find(std::string_view name) const;

 private:
  std::string_view rest_;
};

/// One pair as it was sent. The escapes are '%' and '+'.
struct RawPair {
  std::string_view name = {};
  std::string_view value = {};
  bool name_has_escapes = false;
  bool value_has_escapes = false;
};

/// Takes the text up to the next '&', or up to a '=' as well, from the front of `rest`.
template <bool EndsAtEquals>
std::string_view take_until(std::string_view& rest, bool& has_escapes) noexcept {
  std::size_t size = 0;
  bool escapes = false;
  for (; size < rest.size() && rest[size] != '&' && !(EndsAtEquals && rest[size] == '='); ++size) {
    escapes |= rest[size] == '%' || rest[size] == '+';
  }
  has_escapes = escapes;
  const std::string_view taken = rest.substr(0, size);
  rest.remove_prefix(size);
  return taken;
}

/// Takes the '&' at the front of `rest`. Returns false at the end.
inline bool take_separators(std::string_view& rest) noexcept {
  while (!rest.empty() && rest.front() == '&') rest.remove_prefix(1);
  return !rest.empty();
}

/// Takes the next pair from the front of `rest`, without decoding it. Empty pairs are left out.
/// Returns: false at the end.
inline bool take_pair(std::string_view& rest, RawPair& pair) noexcept {
  if (!take_separators(rest)) return false;
  pair.name = take_until<true>(rest, pair.name_has_escapes);
  if (rest.starts_with('=')) rest.remove_prefix(1);
  pair.value = take_until<false>(rest, pair.value_has_escapes);
  return true;
}

/// Takes the next pair if it has this name, without escapes, and a '='. `rest` begins with no '&'.
inline bool take_pair_of(std::string_view name, std::string_view& rest, RawPair& pair) noexcept {
  if (rest.size() <= name.size() || rest[name.size()] != '=' || !rest.starts_with(name)) {
    return false;
  }
  rest.remove_prefix(name.size() + 1);
  pair.value = take_until<false>(rest, pair.value_has_escapes);
  return true;
}

/// Decodes the value of a pair into `value`, whose memory is reused.
void decode_value(const RawPair& pair, std::string& value);
/// Decodes `text` into `room`.
/// Returns: the decoded text; std::nullopt if `text` is longer than `room`.
std::optional<std::string_view> decode_form(std::string_view text, std::span<char> room) noexcept;

/// Returns `text` with '+' replaced by a space and every escape decoded.
std::string decode_form(std::string_view text);

}  // namespace weir::http

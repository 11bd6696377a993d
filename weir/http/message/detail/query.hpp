// The name=value pairs of a query or of a form body, decoded one by one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"

namespace weir::http {

/// One decoded pair. `a` and `a=` both have an empty value.
struct QueryPair {
  std::string name;
  std::string value;
};

/// Walks the pairs of a raw query (RFC 3986 §3.4) or of an application/x-www-form-urlencoded body
/// (WHATWG URL §5): pairs are split on '&', names from values on the first '=', before decoding;
/// '+' is a space; empty pairs ("a&&b") are left out. It borrows the text.
class Query {
 public:
  explicit Query(std::string_view raw) noexcept : rest_(raw) {}

  /// The next pair, or nothing behind the last one. Errors: bad_input for a '%' without two
  /// hexadecimal digits; the pair is left out and the next call goes on behind it. A query that
  /// came with a request was checked and has none.
  Result<std::optional<QueryPair>> next();

  /// The decoded value of the first pair called `name` (in its decoded form), from here on.
  /// Pairs with bad escapes are passed over. Does not move this walk.
  std::optional<std::string> find(std::string_view name) const;

 private:
  std::string_view rest_;
};

/// `text` with '+' as space and every escape decoded. Errors: bad_input.
Result<std::string> decode_form(std::string_view text);

}  // namespace weir::http

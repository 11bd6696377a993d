// Reader of the name=value pairs of a query or a form body; it decodes them one by one.
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

/// Iterates over the pairs of a raw query (RFC 3986 §3.4) or of an
/// application/x-www-form-urlencoded body (WHATWG URL §5). Pairs are split on '&', and names from
/// values on the first '=', before they are decoded. A '+' is a space. Empty pairs ("a&&b") are
/// left out.
/// Lifetime: it borrows the text.
class Query {
 public:
  explicit Query(std::string_view raw) noexcept : rest_(raw) {}

  /// Returns the next pair, or std::nullopt after the last one.
  /// Errors: bad_input for a '%' without two hexadecimal digits. That pair is skipped, and the
  /// next call continues after it. The query of a request has no such error, because the parser
  /// checked it.
  Result<std::optional<QueryPair>> next();

  /// Returns the decoded value of the first pair, from the current position, whose decoded name
  /// is `name`. Pairs with bad escapes are skipped. The position does not change.
  std::optional<std::string> find(std::string_view name) const;

 private:
  std::string_view rest_;
};

/// Returns `text` with '+' replaced by a space and every escape decoded.
/// Errors: bad_input.
Result<std::string> decode_form(std::string_view text);

}  // namespace weir::http

// The decoder of query and form pairs.
#include "weir/http/message/detail/query.hpp"

#include <algorithm>
#include <utility>

#include "weir/http/syntax/uri.hpp"

namespace weir::http {

Result<std::string> decode_form(std::string_view text) {
  std::string decoded(text);
  std::replace(decoded.begin(), decoded.end(), '+', ' ');
  const std::optional<std::size_t> size = percent_decode(decoded, decoded.data());
  if (!size) return fail(Errc::bad_input);
  decoded.resize(*size);
  return decoded;
}

Result<std::optional<QueryPair>> Query::next() {
  std::string_view pair;
  while (pair.empty() && !rest_.empty()) {
    const std::size_t length = std::min(rest_.find('&'), rest_.size());
    pair = rest_.substr(0, length);
    rest_.remove_prefix(std::min(length + 1, rest_.size()));
  }
  if (pair.empty()) return std::optional<QueryPair>();
  const std::size_t equals = std::min(pair.find('='), pair.size());
  Result<std::string> name = decode_form(pair.substr(0, equals));
  if (!name) return fail(name.error());
  Result<std::string> value = decode_form(pair.substr(std::min(equals + 1, pair.size())));
  if (!value) return fail(value.error());
  return std::optional<QueryPair>(QueryPair{std::move(*name), std::move(*value)});
}

std::optional<std::string> Query::find(std::string_view name) const {
  Query walk = *this;
  while (true) {
    Result<std::optional<QueryPair>> pair = walk.next();
    if (!pair) continue;
    if (!pair->has_value()) return std::nullopt;
    if ((*pair)->name == name) return std::move((*pair)->value);
  }
}

}  // namespace weir::http

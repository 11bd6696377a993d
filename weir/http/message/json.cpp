// JSON bodies: the check of the media type, the body writer and the answer to an invalid body.
#include "weir/http/message/json.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/json/read.hpp"

namespace weir::http::detail {
namespace {

/// Removes the value of a parameter from the front of `rest`. The value is a token, or a quoted
/// string that is returned without its quotes. Escapes stay as they are, because no charset name
/// needs them (RFC 9110 §5.6.6). Returns false if it is neither.
bool take_parameter_value(std::string_view& rest, std::string_view& value) noexcept {
  if (!rest.starts_with('"')) {
    value = trim(rest.substr(0, rest.find(';')));
    rest.remove_prefix(std::min(rest.find(';'), rest.size()));
    return is_token(value);
  }
  std::size_t end = 1;
  while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
  if (end >= rest.size()) return false;
  value = rest.substr(1, end - 1);
  rest = trim(rest.substr(end + 1));
  return rest.empty() || rest.front() == ';';
}

/// True if the name is one that clients send for UTF-8, or for US-ASCII, a subset of UTF-8.
bool is_utf8_charset(std::string_view name) noexcept {
  return equals_ignoring_case(name, "utf-8") || equals_ignoring_case(name, "utf8") ||
         equals_ignoring_case(name, "us-ascii");
}

/// Returns false if the parameters of a media type are malformed or name a charset other than UTF-8
/// (RFC 8259 §8.1).
bool allow_utf8(std::string_view parameters) noexcept {
  while (!parameters.empty()) {
    parameters = trim(parameters.substr(1));  // the semicolon
    if (parameters.empty() || parameters.front() == ';') continue;
    const std::size_t equals = parameters.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view name = parameters.substr(0, equals);
    std::string_view value;
    parameters.remove_prefix(equals + 1);
    if (!is_token(name) || !take_parameter_value(parameters, value)) return false;
    if (equals_ignoring_case(name, "charset") && !is_utf8_charset(value)) return false;
  }
  return true;
}

/// Returns true for JSON, and for application/problem+json and similar types (RFC 6839 §3.1).
bool is_json_type(std::string_view type) noexcept {
  constexpr std::string_view suffix = "+json";
  return equals_ignoring_case(type, json_type) ||
         (type.size() > suffix.size() &&
          equals_ignoring_case(type.substr(type.size() - suffix.size()), suffix));
}

/// Returns true if a Content-Type is of such a type, in UTF-8.
bool is_utf8_of_type(std::string_view header, bool (*is_type)(std::string_view type)) noexcept {
  const std::size_t end = std::min(header.find(';'), header.size());
  return is_type(trim(header.substr(0, end))) && allow_utf8(header.substr(end));
}

}  // namespace

void JsonBodyWriter::append(std::string_view part) {
  if (part.empty()) return;
  earlier_.make_room(part.size());
  std::memcpy(earlier_.room().data(), part.data(), part.size());
  earlier_.commit(part.size());
}

Body JsonBodyWriter::finish() {
  if (earlier_.empty()) {
    if (buffered().size() <= Body::inline_max) return Body(buffered());
    earlier_ = Buffer::with_capacity(static_cast<std::uint32_t>(buffered().size()));
  }
  append(buffered());
  return Body(std::move(earlier_));
}

bool accepts_type(const Request& request, bool (*is_type)(std::string_view type)) noexcept {
  const RequestHead& head = request.head();
  bool typed = false;
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField header = head.header_at(index);
    if (equals_ignoring_case(header.name, "Content-Type")) {
      if (typed || !is_utf8_of_type(header.value, is_type)) return false;
      typed = true;
    } else if (equals_ignoring_case(header.name, "Content-Encoding") &&
               !request.has_decoded_body()) {
      // Encoded content is not of the type itself (RFC 9110 §8.4). Some clients name "identity",
      // which means no encoding.
      if (!header.value.empty() && !equals_ignoring_case(header.value, "identity")) return false;
    }
  }
  return typed || request.method() != Method::query;
}

Status status_of_type(const Request& request) noexcept {
  const bool lacks_type = request.method() == Method::query && !request.header("Content-Type");
  return lacks_type ? Status::bad_request : Status::unsupported_media_type;
}

bool accepts_json(const Request& request) noexcept {
  return accepts_type(request, &is_json_type);
}

Response invalid_json_response(const std::vector<json::Error>& errors, std::string_view text) {
  Problem described;
  const bool fits_no_type = errors.back().code != Errc::limit_reached && json::is_well_formed(text);
  described.status = fits_no_type ? Status::unprocessable_content : Status::bad_request;
  described.detail = errors.front().message();
  for (const json::Error& each : errors) {
    described.add_violation({"body", each.pointer, each.what, each.offset});
  }
  return problem(std::move(described));
}

}  // namespace weir::http::detail

#include "weir/web/middleware/etag.hpp"

#include <array>

#include "weir/base/text/detail/hash.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

constexpr std::uint64_t seed = 0;  // all machines of a service send the same tags

void append_hex(std::string& out, std::uint64_t value) {
  std::array<char, 16> digits;
  digits.fill('0');
  for (auto at = digits.rbegin(); value != 0; ++at, value >>= 4) {
    *at = "0123456789abcdef"[value & 15];
  }
  out.append(digits.data(), digits.size());
}

/// Returns the tag without W/, which the weak comparison ignores (RFC 9110 §8.8.3.2).
std::string_view opaque(std::string_view tag) noexcept {
  return tag.starts_with("W/") ? tag.substr(2) : tag;
}

/// Returns true if the list of tags has `tag`, or is "*".
bool has_tag(std::string_view list, std::string_view tag) noexcept {
  if (trim(list) == "*") return true;
  for (;;) {
    while (!list.empty() && (is_space(list.front()) || list.front() == ',')) list.remove_prefix(1);
    const std::string_view item = opaque(list);
    if (!item.starts_with('"')) return false;  // malformed, or the end
    const std::size_t end = item.find('"', 1);
    if (end == item.npos) return false;
    if (item.substr(0, end + 1) == opaque(tag)) return true;
    list = item.substr(end + 1);
  }
}

bool is_known(const RequestHead& head, std::string_view tag) noexcept {
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (equals_ignoring_case(field.name, "if-none-match") && has_tag(field.value, tag)) return true;
  }
  return false;
}

}  // namespace

/// Adds a tag of the body. Returns false if the response has no body of that kind.
bool Etag::add_tag(Response& response) const {
  if (response.body().is_stream()) return false;
  const std::string_view body = response.body().text();
  if (body.size() < options_.body_bytes_min || body.size() > options_.body_bytes_max) return false;
  const Hash128 hash = hash_bytes(body, seed);
  std::string tag = options_.weak ? "W/\"" : "\"";
  append_hex(tag, hash.high);
  append_hex(tag, hash.low);
  response.set_header("ETag", tag += '"');
  return true;
}

void Etag::after(Request& request, Response& response) const {
  const Method method = request.method();
  if (response.status() != Status::ok || (method != Method::get && method != Method::head)) return;
  if (!response.headers().contains("ETag") && !add_tag(response)) return;
  if (!is_known(request.head(), *response.headers().get("ETag"))) return;
  response.set_status(Status::not_modified);
  response.body() = Body();
}

}  // namespace weir::http

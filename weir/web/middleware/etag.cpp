#include "weir/web/middleware/etag.hpp"

#include <array>

#include "weir/base/text/detail/hash.hpp"
#include "weir/web/files/preconditions.hpp"

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
  const std::string tag(*response.headers().get("ETag"));
  const Precondition result = evaluate_preconditions(request.head(), {.etag = tag});
  if (result == Precondition::failed) response = Response(Status::precondition_failed);
  if (result != Precondition::not_modified) return;
  response.set_status(Status::not_modified);
  response.body() = Body();
}

}  // namespace weir::http

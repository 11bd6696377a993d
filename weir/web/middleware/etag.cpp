#include "weir/web/middleware/etag.hpp"

#include <string>

#include "weir/http/message/detail/date.hpp"
#include "weir/http/message/detail/weak_etag.hpp"
#include "weir/web/files/entity_tag.hpp"
#include "weir/web/files/preconditions.hpp"

namespace weir::http {

/// Adds a tag of the body. Returns false if the response has no body of that kind. The handler of a
/// route for HEAD need not make the body of GET, and then nothing tells its tag.
bool Etag::add_tag(const Request& request, Response& response) const {
  if (response.body().is_stream()) return false;
  const std::string_view body = response.body().text();
  if (body.empty() && request.method() == Method::head) return false;
  if (body.size() < options_.body_bytes_min || body.size() > options_.body_bytes_max) return false;
  const std::string tag = entity_tag_of(body);
  response.set_header("ETag", options_.weak ? weak_etag(tag) : tag);
  return true;
}

void Etag::after(Request& request, Response& response) const {
  const Method method = request.method();
  if (response.status() != Status::ok || (method != Method::get && method != Method::head)) return;
  if (response.body().is_upgrade()) return;  // over HTTP/2 a WebSocket is a 200 without content
  if (!response.headers().contains("ETag") && !add_tag(request, response)) return;
  const std::string tag(*response.headers().get("ETag"));
  Validators validators{.etag = tag};
  const auto modified = response.headers().get("Last-Modified");
  if (modified) validators.last_modified = parse_http_date(*modified);
  const Precondition result = evaluate_preconditions(request.head(), validators);
  if (result == Precondition::failed) response = Response(Status::precondition_failed);
  if (result != Precondition::not_modified) return;
  // The content stays for the middleware outside, such as compress(). The server does not send it.
  response.set_status(Status::not_modified);
}

}  // namespace weir::http

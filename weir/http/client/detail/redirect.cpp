#include "weir/http/client/detail/redirect.hpp"

#include <utility>

#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/url.hpp"

namespace weir::http {
namespace {

bool is_redirect(Status status) noexcept {
  return status == Status::moved_permanently || status == Status::found ||
         status == Status::see_other || status == Status::temporary_redirect ||
         status == Status::permanent_redirect;
}

bool becomes_get(Method method, Status status) noexcept {
  if (status == Status::see_other) return method != Method::head;
  return method == Method::post && (status == Status::moved_permanently || status == Status::found);
}

}  // namespace

Result<Redirect> follow_redirect(ClientRequest& request, Status status, std::string_view location,
                                 std::span<const std::string> sensitive) {
  if (!is_redirect(status)) return Redirect::none;
  const bool to_get = becomes_get(request.method(), status);
  if (!to_get && request.body().is_stream()) return Redirect::none;
  Result<Url> target = request.url().resolve(location);
  if (!target) return fail(ClientError::bad_redirect);
  if (request.url().scheme() == "https" && target->scheme() == "http") {
    return fail(ClientError::bad_redirect);
  }
  if (to_get) {
    request.set_method(Method::get);
    request.clear_body();
    for (const std::string_view name :
         {"content-type", "content-encoding", "content-language", "content-location"}) {
      request.remove_header(name);
    }
  }
  if (target->origin() != request.url().origin()) {
    for (const std::string_view name : {"host", "authorization", "cookie", "proxy-authorization"}) {
      request.remove_header(name);
    }
    for (const std::string& name : sensitive) request.remove_header(name);
  }
  request.set_url(std::move(*target));
  return Redirect::follow;
}

}  // namespace weir::http

#include "weir/http/router.hpp"

#include "weir/http/characters.hpp"

namespace weir::http {

Result<RouteId> Router::try_add(std::string_view method, Pattern pattern, Handler handler,
                                const RouteOptions& options, std::string* why) {
  if (!is_token(method) || method == name_of(Method::connect)) {
    if (why != nullptr) *why = "no path is asked for with this method";
    return fail(Errc::bad_input);
  }
  auto added =
      table_.add({std::string(method), std::move(pattern), std::move(handler), options, {}});
  if (!added) return fail(added.error());
  if (added->conflict == nullptr) return added->id;
  if (why != nullptr) *why = "the same as " + added->conflict->pattern.text();
  return fail(Errc::conflict);
}

RouteId Router::keep(std::string_view method, std::string_view text, Handler handler,
                     const RouteOptions& options) {
  std::string why;
  Result<RouteId> added = RouteId();
  if (auto pattern = Pattern::parse(text)) {
    added = try_add(method, std::move(*pattern), std::move(handler), options, &why);
  } else {
    added = fail(pattern.error());
  }
  if (added) return *added;
  if (why.empty()) why = added.error().message();
  errors_.append(method).append(" ").append(text).append(": ").append(why).append("\n");
  return RouteId{RouteId::none};
}

Result<> Router::check() const {
  if (errors_.empty()) return {};
  return fail(Errc::conflict);
}

void Router::match(const RequestHead& head, RouteMatch& match) const {
  const std::string_view path = head.path();
  const Route* const literal =
      head.path_has_escapes() ? nullptr : table_.find_literal(head.method(), path);
  if (literal != nullptr) {
    match.set_literal(literal);
  } else {
    table_.find({head.method(), head.method_text(), path, head.path_has_escapes()}, match);
  }
  match.middleware_ = middleware_;
}

}  // namespace weir::http

#include "weir/http/request.hpp"

#include "weir/http/query.hpp"

namespace weir::http {

std::optional<std::string> Request::query(std::string_view name) const {
  return Query(query_text()).find(name);
}

Task<Result<std::string>> Request::body() {
  auto whole = co_await body_.read_all();
  if (!whole) co_return fail(whole.error());
  co_return std::string(*whole);
}

}  // namespace weir::http

#include "weir/http/message/request.hpp"

#include <array>

#include "weir/http/message/detail/query.hpp"

namespace weir::http {

std::optional<std::string> Request::query(std::string_view name) const {
  return Query(query_text()).find(name);
}

std::string Request::id() const {
  if (unit_ == nullptr) return {};
  std::array<char, WorkUnit::id_bytes_max> room;
  return std::string(unit_->id(room));
}

Task<Result<std::string>> Request::body() {
  auto whole = co_await body_.read_all();
  if (!whole) co_return fail(whole.error());
  co_return std::string(*whole);
}

}  // namespace weir::http

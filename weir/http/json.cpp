#include "weir/http/json.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "weir/http/characters.hpp"

namespace weir::http::detail {
namespace {

constexpr char problem_type[] = "application/problem+json";

struct Problem {
  std::string_view title;
  int status;
  std::string detail;
  std::string_view path;
  std::size_t offset;
};

}  // namespace

void JsonBodyWriter::take(std::string_view part) {
  if (part.empty()) return;
  earlier_.make_room(part.size());
  std::memcpy(earlier_.room().data(), part.data(), part.size());
  earlier_.grow(part.size());
}

Body JsonBodyWriter::finish() {
  if (earlier_.empty()) {
    if (gathered().size() <= Body::inline_max) return Body(gathered());
    earlier_ = Buffer::with_capacity(static_cast<std::uint32_t>(gathered().size()));
  }
  take(gathered());
  return Body(std::move(earlier_));
}

bool accepts_json(const Request& request) noexcept {
  const auto field = request.field("Content-Type");
  if (!field) return true;
  const std::string_view type = trim(field->substr(0, field->find(';')));
  if (equals_ignoring_case(type, json_type)) return true;
  // RFC 6839 §3.1: application/problem+json and the like.
  constexpr std::string_view suffix = "+json";
  return type.size() > suffix.size() &&
         equals_ignoring_case(type.substr(type.size() - suffix.size()), suffix);
}

Response bad_json(const json::Error& error) {
  Response response = json(Problem{"Bad Request", code_of(Status::bad_request), error.message(),
                                   error.path, error.offset},
                           Status::bad_request);
  return Response(Status::bad_request, problem_type, std::move(response.body()));
}

}  // namespace weir::http::detail

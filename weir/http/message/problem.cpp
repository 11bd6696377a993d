// The problem document, and the functions that make a problem the response.
#include "weir/http/message/problem.hpp"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/message/json.hpp"
#include "weir/http/message/response.hpp"
#include "weir/json/detail/codec_lists.hpp"
#include "weir/json/detail/codec_object.hpp"

namespace weir::http {
namespace {

constexpr char problem_type[] = "application/problem+json";

/// A problem document (RFC 9457 §3.1), and a violation in it. Empty members are not written.
struct ViolationDocument {
  std::string_view in;
  std::optional<std::string_view> name;
  std::optional<std::string_view> pointer;
  std::string_view detail;
  std::optional<std::size_t> offset;
};
struct ProblemDocument {
  std::optional<std::string_view> type;
  std::optional<std::string_view> title;
  int status;
  std::optional<std::string_view> detail;
  std::optional<std::vector<ViolationDocument>> errors;
};

std::optional<std::string_view> unless_empty(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

}  // namespace

void Problem::add_violation(Violation violation) {
  if (violations.size() == violations_max) return;
  std::size_t bytes = violation.name.size() + violation.detail.size();
  for (const Violation& each : violations) bytes += each.name.size() + each.detail.size();
  if (violations.empty() || bytes <= violation_bytes_max) {
    violations.push_back(std::move(violation));
  }
}

Response problem_document(const Problem& problem) {
  ProblemDocument document;
  document.type = unless_empty(problem.type);
  document.title = unless_empty(reason_of(problem.status));
  document.status = code_of(problem.status);
  document.detail = unless_empty(problem.detail);
  for (const Violation& each : problem.violations) {
    if (!document.errors) document.errors.emplace();
    const bool has_pointer = each.in == "body";
    ViolationDocument& violation = document.errors->emplace_back();
    violation.in = each.in;
    if (has_pointer) {
      violation.pointer = each.name;
    } else {
      violation.name = each.name;
    }
    violation.detail = each.detail;
    violation.offset = each.offset;
  }
  detail::JsonBodyWriter writer;
  json::Codec<ProblemDocument>::write(writer, document);
  return Response(problem.status, problem_type, writer.finish());
}

Response problem(Problem problem) {
  Response response(problem.status);
  response.set_problem(std::move(problem));
  return response;
}

Response problem(Status status, std::string detail) {
  Problem described;
  described.status = status;
  described.detail = std::move(detail);
  return problem(std::move(described));
}

}  // namespace weir::http

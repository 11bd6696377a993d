// Reads any bytes as a JSON body, a form and a query of structs with rules. What does not fit is
// answered with a problem document: JSON in UTF-8 of a bounded size that names existing places.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/require.hpp"
#include "weir/http/matching/detail/argument_reader.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/json.hpp"
#include "weir/json/test/json_fixture.hpp"

namespace {

using weir::Checked;
using weir::fuzz::ExactCopy;
using weir::fuzz::require;
namespace http = weir::http;
namespace rule = weir::rule;

enum class Color : std::uint8_t { red, green };

/// The fields of a query or a form.
struct Filter {
  Checked<int, rule::Range<1, 5>> stars;
  Checked<std::string, rule::Length<1, 4>> title;
  std::optional<Checked<std::string, rule::Pattern<"[a-z]+">>> tag;
  std::vector<Checked<std::chrono::seconds, rule::Range<1, 60>>> waits;
  std::optional<std::chrono::sys_seconds> at;
  std::optional<std::filesystem::path> file;
  Color color = Color::green;
};
/// A JSON body.
struct Review {
  Filter filter;
  std::vector<Review> replies;
  std::map<std::string, Checked<std::string, rule::OneOf<"a", "b">>> marks;
};

/// A problem document, as a client reads it.
struct ViolationDocument {
  std::string in;
  std::optional<std::string> name;
  std::optional<std::string> pointer;
  std::string detail;
  std::optional<std::size_t> offset;
};
struct ProblemDocument {
  std::string title;
  int status;
  std::string detail;
  std::vector<ViolationDocument> errors;
};

}  // namespace

template <>
inline constexpr std::array weir::json::enumerators<Color>{
    weir::json::Named{Color::red, "red"}, weir::json::Named{Color::green, "green"}};

namespace {

// Each byte of the names and the details needs at most six bytes in JSON.
constexpr std::size_t document_bytes_max = 16 * 1024;

/// Reads the document of a response back.
ProblemDocument document_of(const http::Response& response, http::Status status) {
  const http::Response page = http::problem_document(response.problem());
  const std::string_view text = page.body().text();
  require(text.size() <= document_bytes_max);
  require(nlohmann::json::accept(text));
  auto document = weir::json::read<ProblemDocument>(ExactCopy(text).view());
  require(document.has_value());
  require(document->status == http::code_of(status) && response.status() == status);
  require(!document->title.empty() && !document->detail.empty());
  require(!document->errors.empty() && document->errors.size() <= http::Problem::violations_max);
  return std::move(*document);
}

/// Checks the names in the answer to a query or a form.
void check_names(const http::Response& response, http::Status status, std::string_view in) {
  constexpr auto& names = weir::json::detail::names<Filter>;
  const ProblemDocument document = document_of(response, status);
  for (const ViolationDocument& each : document.errors) {
    require(each.in == in && each.name && !each.pointer && !each.detail.empty());
    const bool is_of_all = each.name->empty() && each.detail == "more than 1024 values";
    require(is_of_all || std::ranges::find(names, *each.name) != names.end());
  }
  const ViolationDocument& first = document.errors.front();
  require(document.detail == std::string(in) + " " + *first.name + ": " + first.detail);
}

void check_query(std::string_view text) {
  Filter filter;
  http::detail::Violations violations;
  http::TextRequest request("GET /");
  http::detail::read_pairs("query", text, request.request(), filter, violations);
  if (violations.empty()) return;
  const http::Status status = http::Status::bad_request;
  check_names(std::move(violations).answer(status), status, "query");
}

void check_form(std::string_view text) {
  http::Form<Filter> form;
  http::TextRequest request("POST /");
  const auto rejection = http::detail::read_body(text, request.request(), form);
  if (rejection == nullptr) return;
  if (rejection->status() == http::Status::unprocessable_content) {
    return check_names(*rejection, http::Status::unprocessable_content, "form");
  }
  const ProblemDocument document = document_of(*rejection, http::Status::bad_request);
  require(document.errors.size() == 1 && document.errors[0].offset.has_value());
  require(text.at(*document.errors[0].offset) == '%');
}

/// Checks that a pointer leads to a value of the body, or that its field is missing there.
void check_pointer(const nlohmann::json& body, const ViolationDocument& violation, bool is_whole) {
  const nlohmann::json::json_pointer pointer(*violation.pointer);
  if (violation.detail == "missing" && is_whole) {
    require(!body.contains(pointer) && body.at(pointer.parent_pointer()).is_object());
  } else {
    require(body.contains(pointer) || violation.detail == "missing");
  }
}

void check_body(std::string_view text) {
  http::Json<Review> review;
  http::TextRequest request("POST /");
  const auto rejection = http::detail::read_body(text, request.request(), review);
  if (rejection == nullptr) return;
  const bool well_formed = rejection->status() == http::Status::unprocessable_content;
  require(!well_formed || nlohmann::json::accept(text));
  const ProblemDocument document = document_of(
      *rejection, well_formed ? http::Status::unprocessable_content : http::Status::bad_request);
  // The other library forgets the first of two values with one name.
  const bool is_comparable = well_formed && weir::json::read_any(text).has_value();
  nlohmann::json body;
  if (is_comparable) body = nlohmann::json::parse(text);
  const bool is_whole = text.size() <= 512;  // no pointer is cut to an enclosing value
  for (const ViolationDocument& each : document.errors) {
    require(each.in == "body" && each.pointer && !each.name && !each.detail.empty());
    require(each.offset && *each.offset <= text.size());
    if (is_comparable) check_pointer(body, each, is_whole);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ExactCopy copy({reinterpret_cast<const char*>(data) + 1, size - 1});
  switch (data[0] % 3) {
    case 0:
      check_body(copy.view());
      break;
    case 1:
      check_form(copy.view());
      break;
    default:
      check_query(copy.view());
      break;
  }
  return 0;
}

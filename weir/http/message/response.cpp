// The headers and problems of responses, and the check for headers that the server owns.
#include "weir/http/message/response.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/http/message/detail/date.hpp"
#include "weir/http/message/detail/scoped_body.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/status_category.hpp"
#include "weir/http/syntax/uri.hpp"

namespace weir::http {
namespace {

// The sender decides the framing of the message (RFC 9112 §6).
constexpr std::array<std::string_view, 3> owned_by_server{"content-length", "transfer-encoding",
                                                          "connection"};

bool is_name(std::string_view lower, std::string_view name) noexcept {
  return lower.size() == name.size() && equals_ignoring_case(lower, name);
}

}  // namespace

bool detail::belongs_to_server(std::string_view name) noexcept {
  return std::ranges::any_of(owned_by_server,
                             [name](std::string_view each) { return is_name(each, name); });
}

BodySource& detail::body_of(const Request& request) noexcept {
  return request.body_source();
}

Task<Result<>> detail::write_with_body(Request& request, BodySource& body, Task<Result<>> writing) {
  const ScopedBody scoped(request, body);
  co_return co_await std::move(writing);
}

Response::Response(std::error_code error) : Response(to_status(error)) {
  set_cause(error);
  if (status_ < Status::internal_error && StatusCategory::of(error) != nullptr) {
    set_problem({.status = status_, .detail = error.message()});
  }
}

Response::Extras& Response::extras() {
  if (extras_ == nullptr) extras_ = make_block<Extras>();
  return *extras_;
}

void Response::add_vary(std::string_view name) {
  std::string names;
  for (const HeaderField field : headers()) {
    if (!equals_ignoring_case(field.name, "vary")) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      const std::string_view item = trim(rest.substr(0, rest.find(',')));
      rest.remove_prefix(std::min(rest.find(','), rest.size() - 1) + 1);
      if (item == "*" || equals_ignoring_case(item, name)) return;
    }
    names.append(field.value).append(", ");
  }
  set_header("Vary", names.append(name));
}

const Headers& Response::headers() const noexcept {
  static const Headers none{};
  return extras_ != nullptr ? extras_->headers : none;
}

std::error_code Response::cause() const noexcept {
  return extras_ != nullptr ? extras_->cause : std::error_code();
}

void Response::set_cause(std::error_code cause) {
  if (cause || extras_ != nullptr) extras().cause = cause;
}

Problem Response::problem() const {
  Problem problem;
  if (extras_ != nullptr && extras_->problem != nullptr) problem = *extras_->problem;
  problem.status = status_;
  return problem;
}

void Response::set_problem(Problem problem) {
  extras().problem = std::make_unique<Problem>(std::move(problem));
}

std::string_view Response::invalid_header() const noexcept {
  return extras_ != nullptr ? std::string_view(extras_->invalid_header) : std::string_view();
}

void Response::add_header(std::string_view name, std::string_view value) {
  if (may_set_header(name, value)) record_invalid_header(name, extras().headers.add(name, value));
}

void Response::set_header(std::string_view name, std::string_view value) {
  if (may_set_header(name, value)) record_invalid_header(name, extras().headers.set(name, value));
}

void Response::set_headers(const Headers& headers) {
  extras().headers = headers;
  for (const HeaderField each : headers) static_cast<void>(may_set_header(each.name, each.value));
}

bool Response::may_set_header(std::string_view name, std::string_view value) {
  const bool valid =
      !detail::belongs_to_server(name) && (!is_name("date", name) || parse_http_date(value));
  if (!valid) record_invalid_header(name, fail(Errc::bad_input));
  return valid;
}

void Response::record_invalid_header(std::string_view name, const Result<>& added) {
  if (added || !invalid_header().empty()) return;
  // The log gets printable characters only.
  std::string shown(name.empty() ? "(an empty name)" : name.substr(0, 64));
  std::replace_if(
      shown.begin(), shown.end(), [](char each) { return each < ' ' || each > '~'; }, '?');
  extras().invalid_header = std::move(shown);
}

Response redirect(std::string_view location, Status status) {
  Response response(status);
  const bool has_line_end = location.find_first_of("\r\n") != std::string_view::npos;
  response.set_header("Location",
                      has_line_end ? std::string(location) : encode_reference(location));
  const int code = code_of(status);
  const bool redirects = (code >= 301 && code <= 303) || code == 307 || code == 308;
  if (location.empty() || !redirects) {
    const std::string shown = location.empty() ? "Location, which is empty"
                                               : "Location of a status " + std::to_string(code);
    response.record_invalid_header(shown, fail(Errc::bad_input));
  }
  return response;
}

}  // namespace weir::http

// Cases about validators and about the fields of answers that have no body: HEAD and 304.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/exchange.hpp"
#include "tools/weir/check/scripts.hpp"

namespace weir::check {
namespace {

constexpr std::string_view accept_gzip = "Accept-Encoding: gzip\r\n";
constexpr std::string_view past = "Mon, 01 Jan 1990 00:00:00 GMT";
constexpr std::string_view future = "Fri, 01 Jan 2100 00:00:00 GMT";

/// Returns the value of a field, or "none".
std::string value_of(const Response& response, std::string_view name) {
  return response.header(name).value_or("none");
}

/// Returns the first response to a request of this method; nullopt: there is none.
Task<std::optional<Response>> response_to(const CheckTarget& target, std::string_view method,
                                          std::string fields) {
  std::string sent = request(target, method, fields);
  const Exchange made = co_await exchange(target, method, std::move(sent), 1);
  const Response* const first = made.outcome.first();
  if (first == nullptr) co_return std::nullopt;
  co_return *first;
}

// ---- HEAD ---------------------------------------------------------------------------------------

/// Checks that a response to HEAD has no other value than those to GET (RFC 9110 9.3.2). `fields`
/// are those of all requests. A field that differs between two GETs is not compared.
Task<Verdict> check_head_fields(const CheckTarget& target, std::string fields) {
  const std::string expected = "in the answer to HEAD, the fields of GET";
  const std::string sent = request(target, "HEAD", fields);
  const auto got = co_await response_to(target, "GET", fields);
  const auto headed = co_await response_to(target, "HEAD", fields);
  const auto again = co_await response_to(target, "GET", fields);
  if (!got || !headed || !again) co_return with_sent(failed(expected, "no answer"), sent);
  if (headed->status != got->status) {
    const std::string actual = std::to_string(headed->status) + ": the server has another answer";
    co_return with_sent(not_applicable(expected, actual), sent);
  }
  for (const std::string_view name :
       {"Content-Type", "Content-Encoding", "Content-Language", "ETag", "Last-Modified"}) {
    const bool varies = got->header(name) != again->header(name);
    if (varies || !headed->header(name) || headed->header(name) == got->header(name)) continue;
    const std::string actual = std::string(name) + ": " + value_of(*headed, name) + " instead of ";
    co_return with_sent(failed(expected, actual + value_of(*got, name)), sent);
  }
  const auto length = headed->header("Content-Length");
  const std::string right = std::to_string(got->body_bytes);
  if (length && *length != right && got->body_bytes == again->body_bytes) {
    const std::string actual = "Content-Length: " + *length + " instead of " + right;
    co_return with_sent(failed(expected, actual), sent);
  }
  co_return with_sent(passed(expected, "no other value"), sent);
}

Task<Verdict> check_head_of_identity(const CheckTarget& target, const Case&) {
  return check_head_fields(target, std::string());
}

Task<Verdict> check_head_of_gzip(const CheckTarget& target, const Case&) {
  return check_head_fields(target, std::string(accept_gzip));
}

// ---- 304 ----------------------------------------------------------------------------------------

/// Returns the condition that `response` makes false; empty: it has no validator.
std::string false_condition(const Response& response) {
  if (const auto tag = response.header("ETag")) return "If-None-Match: " + *tag + "\r\n";
  if (const auto date = response.header("Last-Modified"))
    return "If-Modified-Since: " + *date + "\r\n";
  return {};
}

/// Returns a description of the first field that the 304 must have and has not (RFC 9110 15.4.5);
/// empty: there is none.
std::string missing_in_304(const Response& whole, const Response& same) {
  for (const std::string_view name : {"ETag", "Cache-Control", "Content-Location", "Vary"}) {
    if (whole.header(name) == same.header(name)) continue;
    if (!whole.header(name) && name != "ETag") continue;
    return std::string(name) + ": " + value_of(same, name) + " instead of " + value_of(whole, name);
  }
  for (const std::string_view name : {"Date", "Expires"}) {  // whose values vary with time
    if (whole.header(name) && !same.header(name)) return "no " + std::string(name);
  }
  return {};
}

Task<Verdict> check_304_fields(const CheckTarget& target, std::string fields) {
  const std::string expected = "304 with the fields of the 200, ETag included";
  const auto whole = co_await response_to(target, "GET", fields);
  if (!whole) co_return failed(expected, "no answer");
  const std::string condition = false_condition(*whole);
  if (condition.empty()) co_return not_applicable(expected, "the 200 has no validator");
  const std::string sent = request(target, "GET", fields + condition);
  const auto same = co_await response_to(target, "GET", fields + condition);
  if (!same) co_return with_sent(failed(expected, "no answer"), sent);
  const std::string status = std::to_string(same->status);
  if (same->status != 304) {
    co_return with_sent(not_applicable(expected, status + ": the server ignores conditions here"),
                        sent);
  }
  const std::string missing = missing_in_304(*whole, *same);
  if (!missing.empty()) co_return with_sent(failed(expected, status + ", " + missing), sent);
  co_return with_sent(passed(expected, status), sent);
}

Task<Verdict> check_304_of_identity(const CheckTarget& target, const Case&) {
  return check_304_fields(target, std::string());
}

Task<Verdict> check_304_of_gzip(const CheckTarget& target, const Case&) {
  return check_304_fields(target, std::string(accept_gzip));
}

/// Checks that two representations have no strong ETag in common (RFC 9110 8.8.3.3).
Task<Verdict> check_tags_of_codings(const CheckTarget& target, const Case&) {
  const std::string expected = "another ETag for the compressed form, or a weak one";
  const std::string sent = request(target, "GET", accept_gzip);
  const auto plain = co_await response_to(target, "GET", std::string());
  const auto coded = co_await response_to(target, "GET", std::string(accept_gzip));
  if (!plain || !coded) co_return with_sent(failed(expected, "no answer"), sent);
  const auto tag = coded->header("ETag");
  if (!tag || !coded->header("Content-Encoding") || plain->header("Content-Encoding")) {
    co_return with_sent(not_applicable(expected, "no compressed form with an ETag"), sent);
  }
  const bool shared = tag == plain->header("ETag") && !tag->starts_with("W/");
  co_return with_sent(shared ? failed(expected, *tag + " for both") : passed(expected, *tag), sent);
}

// ---- Repeated conditions ------------------------------------------------------------------------

/// Checks that no copy of a repeated date decides. Two dates are no valid date, and an invalid one
/// is ignored (RFC 9110 13.1.4); the server may also refuse it.
Task<Verdict> check_repeated_condition(const CheckTarget& target, const Case&) {
  const std::string expected = "the dates are ignored or refused, in both orders";
  const auto line = [](std::string_view date) {
    return "If-Unmodified-Since: " + std::string(date) + "\r\n";
  };
  const auto alone = co_await response_to(target, "GET", line(past));
  if (!alone) co_return failed(expected, "no answer");
  if (alone->status != 412) {
    const std::string actual = std::to_string(alone->status) + ": the server ignores conditions";
    co_return not_applicable(expected, actual + " here");
  }
  const std::array orders{line(past) + line(future), line(future) + line(past)};
  std::string actual;
  bool decided = false;
  for (const std::string& each : orders) {
    const auto response = co_await response_to(target, "GET", each);
    decided = decided || !response || response->status == 412 || response->status >= 500;
    const std::string status = response ? std::to_string(response->status) : "no answer";
    actual += (actual.empty() ? "" : ", ") + status;
  }
  Verdict verdict = decided ? failed(expected, actual) : passed(expected, actual);
  co_return with_sent(std::move(verdict), request(target, "GET", orders.back()));
}

}  // namespace

void add_validator_scripts(CaseRegistry& registry) {
  registry.add("answers", "head-fields", "the fields of HEAD and GET", check_head_of_identity);
  registry.add("answers", "head-fields-gzip", "the fields of HEAD and GET, with gzip",
               check_head_of_gzip);
  registry.add("answers", "not-modified-fields", "the fields of 304 and 200",
               check_304_of_identity);
  registry.add("answers", "not-modified-fields-gzip", "the fields of 304 and 200, with gzip",
               check_304_of_gzip);
  registry.add("answers", "tags-of-codings", "the ETags of a page and of its compressed form",
               check_tags_of_codings);
  registry.add("answers", "condition-repeated", "two dates in If-Unmodified-Since",
               check_repeated_condition);
}

}  // namespace weir::check

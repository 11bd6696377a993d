// Cases about methods that a server may not know, over HTTP/1.1 and HTTP/2.
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/exchange.hpp"
#include "tools/weir/check/h2_requests.hpp"
#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/scripts.hpp"

namespace weir::check {
namespace {

struct MethodCase {
  std::string_view name;
  std::string_view method;
  std::string_view why;
};

// RFC 10008, RFC 4918, and a method that caches invented.
constexpr std::array method_cases{
    MethodCase{"query", "QUERY", "QUERY with a body, which is safe and idempotent"},
    MethodCase{"propfind", "PROPFIND", "PROPFIND of WebDAV with a body"},
    MethodCase{"purge", "PURGE", "PURGE with a body"},
};
constexpr std::string_view expected_answer =
    "an answer that is not 5xx, except 501, and 405 with Allow; then the next answer";
constexpr std::string_view text_of_body = "hello";

const MethodCase& row_of(const Case& test_case) {
  const std::string_view name =
      std::string_view(test_case.name).substr(test_case.rule->name.size() + 1);
  for (const MethodCase& each : method_cases) {
    if (name.ends_with(each.name)) return each;
  }
  return method_cases.front();
}

/// Judges an answer to a method that the resource may not have. A server should answer 405 or 501
/// (RFC 9110 9.1), and 405 must name the methods that the resource has (15.5.6).
Verdict judge(const CheckTarget& target, int status, bool has_allow, const std::string& actual) {
  std::string expected(expected_answer);
  if (status == 405 && !has_allow) return failed(std::move(expected), actual + " without Allow");
  if (status >= 500 && status != 501) return failed(std::move(expected), actual);
  if (status == 400) {
    return lenient_verdict(target, std::move(expected), actual + ": the method is a valid token");
  }
  return passed(std::move(expected), actual);
}

Task<Verdict> check_method(const CheckTarget& target, const Case& test_case) {
  const std::string expected(expected_answer);
  const MethodCase& row = row_of(test_case);
  const std::string fields = "Content-Type: text/plain\r\nContent-Length: 5\r\n";
  std::string sent = request(target, row.method, fields, text_of_body) + get_request(target);
  const Exchange made = co_await exchange(target, row.method, std::move(sent), 2);
  const Outcome& outcome = made.outcome;
  const std::string actual = describe(outcome);
  const Response* const first = outcome.first();
  if (first == nullptr || !outcome.protocol_error.empty()) {
    co_return with_sent(failed(expected, actual), made.sent);
  }
  Verdict verdict = judge(target, first->status, first->header("Allow").has_value(), actual);
  const bool in_step = outcome.final_count == 2 || first->closes || outcome.closed_by_server;
  if (verdict.kind == VerdictKind::passed && !in_step) {
    verdict = failed(expected, actual + ": the next request gets no answer");
  }
  co_return with_sent(std::move(verdict), made.sent);
}

Task<Verdict> check_http2_method(const CheckTarget& target, const Case& test_case) {
  const std::string expected(expected_answer);
  std::vector<H2Field> fields = h2_get_fields(target);
  fields[0].value = row_of(test_case).method;
  fields.push_back({"content-length", "5"});
  const std::string bytes =
      h2_begin() +
      h2_frame(http::FrameType::headers, http::FrameFlag::end_headers, 1, h2_block(fields)) +
      h2_frame(http::FrameType::data, http::FrameFlag::end_stream, 1, text_of_body) +
      h2_get(target, 3);
  H2Wire wire(target);
  const H2Wire::Done done = [](const H2Answers& answers) {
    return answers.goaway() || (answers.on(1).complete() && answers.on(3).complete());
  };
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(bytes, done, target.timeout);
  if (auto verdict = wire.verdict_without_h2(expected)) co_return *std::move(verdict);
  const H2Answer& answer = wire.answers().on(1);
  if (answer.status == 0) co_return with_sent(failed(expected, wire.describe()), bytes);
  Verdict verdict = judge(target, answer.status, answer.has("allow"), wire.describe());
  const bool in_step = wire.answers().on(3).status == target.get.status;
  if (verdict.kind == VerdictKind::passed && !in_step) {
    verdict = failed(expected, wire.describe() + ", then " + wire.describe(3));
  }
  co_return with_sent(std::move(verdict), bytes);
}

}  // namespace

void add_method_scripts(CaseRegistry& registry) {
  for (const MethodCase& each : method_cases) {
    registry.add("method", each.name, each.why, check_method);
  }
  for (const MethodCase& each : method_cases) {
    const std::string name = "method-" + std::string(each.name);
    registry.add("http2", name, each.why, check_http2_method);
  }
}

}  // namespace weir::check

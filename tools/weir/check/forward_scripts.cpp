// Cases about what a server or a proxy must not pass on or send back: TRACE, hops and names.
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

constexpr std::string_view marker = "X-Weir-Check";

H2Wire::Done first_is_complete() {
  return [](const H2Answers& answers) { return answers.goaway() || answers.on(1).complete(); };
}

// ---- TRACE --------------------------------------------------------------------------------------

constexpr std::string_view trace_is_off = "TRACE is off: no 2xx, nothing echoed";

/// The first server that reads it answers (RFC 9110 7.6.2). Its answer would show the client what
/// a proxy adds to requests.
Task<Verdict> check_trace_of_no_hop(const CheckTarget& target, const Case&) {
  const std::string expected(trace_is_off);
  std::string sent = request(target, "TRACE", "Max-Forwards: 0\r\nX-Weir-Check: echo\r\n");
  const Exchange made = co_await exchange(target, "TRACE", std::move(sent), 1);
  const Response* const first = made.outcome.first();
  const std::string actual = describe(made.outcome);
  const bool ended = made.outcome.closed_by_server || made.outcome.reset;
  const bool right =
      first == nullptr ? ended : first->status >= 300 && !first->body.contains(marker);
  co_return with_sent(right ? passed(expected, actual) : failed(expected, actual), made.sent);
}

Task<Verdict> check_trace_of_http2(const CheckTarget& target, const Case&) {
  const std::string expected(trace_is_off);
  std::vector<H2Field> fields = h2_get_fields(target);
  fields[0].value = "TRACE";
  fields.push_back({"x-weir-check", "echo"});
  const std::string bytes =
      h2_begin() + h2_frame(http::FrameType::headers, h2_whole, 1, h2_block(fields));
  H2Wire wire(target);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(bytes, first_is_complete(), target.timeout);
  if (auto verdict = wire.verdict_without_h2(expected)) co_return *std::move(verdict);
  const H2Answer& answer = wire.answers().on(1);
  const bool ended = answer.reset || wire.is_closed() || wire.answers().goaway();
  const bool echoed = answer.body.contains("x-weir-check") || answer.body.contains(marker);
  const bool right = answer.status == 0 ? ended : answer.status >= 300 && !echoed;
  const std::string actual = wire.describe();
  co_return with_sent(right ? passed(expected, actual) : failed(expected, actual), bytes);
}

// ---- Names with a dot at their end --------------------------------------------------------------

/// Returns the authority with a dot behind its name: "a.example.:8080". An address stays the same.
std::string dotted(const std::string& authority) {
  if (authority.starts_with('[')) return authority;
  const std::size_t colon = authority.find(':');
  return authority.substr(0, colon) + "." +
         (colon == authority.npos ? "" : authority.substr(colon));
}

constexpr std::string_view as_without = "the answer to the name without the dot";

/// A server knows its names also in this form, which is the same name (RFC 3986 3.2.2). It may
/// still refuse it.
Verdict judge_name(const CheckTarget& target, int status, std::string actual) {
  const std::string expected(as_without);
  if (status == target.get.status) return passed(expected, std::move(actual));
  const bool refused = status >= 400 && status < 500;
  return refused ? lenient_verdict(target, expected, std::move(actual))
                 : failed(expected, std::move(actual));
}

Task<Verdict> check_name(const CheckTarget& target, const Case&) {
  std::string sent =
      "GET " + target.path + " HTTP/1.1\r\nHost: " + dotted(target.authority) + "\r\n\r\n";
  const Exchange made = co_await exchange(target, "GET", std::move(sent), 1);
  const Response* const first = made.outcome.first();
  const int status = first == nullptr ? 0 : first->status;
  co_return with_sent(judge_name(target, status, describe(made.outcome)), made.sent);
}

Task<Verdict> check_name_of_http2(const CheckTarget& target, const Case&) {
  std::vector<H2Field> fields = h2_get_fields(target);
  fields[2].value = dotted(target.authority);
  const std::string bytes =
      h2_begin() + h2_frame(http::FrameType::headers, h2_whole, 1, h2_block(fields));
  H2Wire wire(target);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(bytes, first_is_complete(), target.timeout);
  const std::string expected(as_without);
  if (auto verdict = wire.verdict_without_h2(expected)) co_return *std::move(verdict);
  co_return with_sent(judge_name(target, wire.answers().on(1).status, wire.describe()), bytes);
}

}  // namespace

void add_forward_scripts(CaseRegistry& registry) {
  registry.add("host", "trailing-dot", "a Host whose name ends with a dot", check_name);
  registry.add("answers", "trace-of-no-hop", "TRACE with Max-Forwards: 0", check_trace_of_no_hop);
  registry.add("http2", "trailing-dot", "an :authority whose name ends with a dot",
               check_name_of_http2);
  registry.add("http2", "trace", "TRACE", check_trace_of_http2);
}

}  // namespace weir::check

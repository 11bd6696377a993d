// Cases about responses: their number, order and bodies, and the end of the connection.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_connection.hpp"
#include "tools/weir/check/exchange.hpp"
#include "tools/weir/check/scripts.hpp"
#include "tools/weir/check/wire_check.hpp"

namespace weir::check {
namespace {

constexpr std::string_view missing_path = "/weir-check-there-is-no-such-thing";
constexpr Duration drain_timeout = std::chrono::seconds(1);

// ---- Pipelining ---------------------------------------------------------------------------------

constexpr std::size_t pipeline_length = 64;

/// Returns true if request `index` has the missing path. The pattern has no period.
bool requests_missing_path(std::size_t index) {
  constexpr std::uint64_t pattern = 0x9e3779b97f4a7c15;
  return (pattern >> index & 1U) != 0;
}

Task<Verdict> check_pipelining(const CheckTarget& target, const Case& test_case) {
  const std::string expected = "64 answers in the order of the requests";
  const std::string to_missing = get_request(target, {}, missing_path);
  const Exchange alone = co_await exchange(target, "GET", to_missing, 1);
  const Response* const missing = alone.outcome.first();
  if (missing == nullptr)
    co_return with_sent(failed(test_case.why, describe(alone.outcome)), to_missing);

  std::string batch;
  for (std::size_t index = 0; index < pipeline_length; ++index) {
    batch += requests_missing_path(index) ? to_missing : get_request(target);
  }
  const Exchange made = co_await exchange(target, "GET", batch, pipeline_length);
  const Outcome& outcome = made.outcome;
  const std::string actual = describe(outcome);
  std::size_t index = 0;
  for (const Response& each : outcome.responses) {
    if (!each.is_final()) continue;
    if (index == pipeline_length) {
      co_return with_sent(failed(expected, actual + ": more answers than requests"), made.sent);
    }
    const int right = requests_missing_path(index) ? missing->status : target.get.status;
    if (each.status != right) {
      co_return with_sent(failed(expected, actual + ": answer " + std::to_string(index + 1) +
                                               " is " + std::to_string(each.status) +
                                               " instead of " + std::to_string(right)),
                          made.sent);
    }
    ++index;
  }
  const bool announced_close = !outcome.responses.empty() && outcome.responses.back().closes;
  if (outcome.final_count == pipeline_length && outcome.protocol_error.empty()) {
    if (missing->status != target.get.status)
      co_return with_sent(passed(expected, actual), made.sent);
    co_return with_sent(
        not_applicable(expected, actual + ": the server answers all requests with one status"),
        made.sent);
  }
  if (announced_close && outcome.closed_by_server) {
    co_return with_sent(
        not_applicable(expected, actual + ": the server closes earlier, as announced"), made.sent);
  }
  co_return with_sent(failed(expected, actual), made.sent);
}

Task<Verdict> check_keep_alive(const CheckTarget& target, const Case&) {
  const std::string expected = "a second answer on the same connection";
  CheckConnection connection(target);
  const bool opened = co_await connection.open();
  const std::string sent = get_request(target);
  if (opened) co_await connection.send_and_receive(sent, until_final_responses(target, 1));
  const Outcome first = connection.outcome();
  if (first.final_count == 1 && first.responses.back().closes) {
    co_return not_applicable(
        expected, describe(first) + ": the server closes after each answer, as announced");
  }
  if (opened) co_await connection.send_and_receive(sent, until_final_responses(target, 2));
  const Outcome second = connection.outcome();
  co_return second.final_count == 2 ? passed(expected, describe(second))
                                    : failed(expected, describe(second));
}

// ---- The end ------------------------------------------------------------------------------------

Task<Verdict> check_end(const CheckTarget& target, std::string sent, std::string expected) {
  CheckConnection connection(target);
  const bool opened = co_await connection.open();
  if (opened) co_await connection.send_and_receive(sent, until_final_responses(target, 1));
  const bool ended = co_await connection.wait_for_close(target.timeout);
  const Outcome outcome = connection.outcome();
  const bool right =
      outcome.final_count == 1 && ended && !outcome.reset && outcome.protocol_error.empty();
  Verdict verdict =
      right ? passed(expected, describe(outcome)) : failed(expected, describe(outcome));
  co_return with_sent(std::move(verdict), std::move(sent));
}

Task<Verdict> check_close(const CheckTarget& target, const Case& test_case) {
  return check_end(target, get_request(target, "Connection: close\r\n"), test_case.why);
}

Task<Verdict> check_close_of_1_0(const CheckTarget& target, const Case& test_case) {
  return check_end(target,
                   "GET " + target.path + " HTTP/1.0\r\nHost: " + target.authority + "\r\n\r\n",
                   test_case.why);
}

// ---- Bodies and headers ------------------------------------------------------------------------

Task<Verdict> check_head(const CheckTarget& target, const Case&) {
  const std::string expected =
      "the status of GET without a body, then the answer to the next request";
  CheckConnection connection(target);
  connection.expect_response_to("HEAD");
  const std::string sent = request(target, "HEAD", {}) + get_request(target);
  const bool opened = co_await connection.open();
  if (opened) co_await connection.send_and_receive(sent, until_final_responses(target, 2));
  const Outcome outcome = connection.outcome();
  const std::string actual = describe(outcome);
  const Response* const head = outcome.first();
  if (head != nullptr && (head->status == 405 || head->status == 501)) {
    co_return with_sent(failed(expected, actual + ": GET and HEAD are required"), sent);
  }
  const bool one_only = outcome.final_count == 1 && head->closes && outcome.protocol_error.empty();
  const bool right = head != nullptr && head->status == target.get.status &&
                     outcome.protocol_error.empty() && (outcome.final_count == 2 || one_only);
  co_return with_sent(right ? passed(expected, actual) : failed(expected, actual), sent);
}

Task<Verdict> check_head_length(const CheckTarget& target, const Case&) {
  const std::string expected = "in the answer to HEAD, no Content-Length or that of GET";
  std::string getting = get_request(target);
  std::string heading = request(target, "HEAD", {});
  const Exchange got = co_await exchange(target, "GET", std::move(getting), 1);
  const Exchange headed = co_await exchange(target, "HEAD", std::move(heading), 1);
  const Response* const get = got.outcome.first();
  const Response* const head = headed.outcome.first();
  if (get == nullptr || head == nullptr) {
    co_return with_sent(failed(expected, describe(headed.outcome)), headed.sent);
  }
  const auto length = head->header("Content-Length");
  const std::string actual = length ? *length : "none";
  const std::string of_get = get->header("Content-Length").value_or("");
  if (!length || *length == of_get) co_return with_sent(passed(expected, actual), headed.sent);
  if (get->body != target.get.body) {
    co_return with_sent(not_applicable(expected, actual + ": bodies of GET vary"), headed.sent);
  }
  co_return with_sent(failed(expected, actual + " instead of " + of_get), headed.sent);
}

Task<Verdict> check_not_modified(const CheckTarget& target, const Case&) {
  const std::string expected = "304 without a body";
  const std::string sent = request(target, "GET", "If-None-Match: *\r\n") + get_request(target);
  const Exchange made = co_await exchange(target, "GET", sent, 2);
  const std::string actual = describe(made.outcome);
  const Response* const first = made.outcome.first();
  if (first != nullptr && first->status != 304) {
    co_return with_sent(not_applicable(expected, actual + ": the server ignores conditions here"),
                        sent);
  }
  const bool right = first != nullptr && made.outcome.protocol_error.empty() &&
                     (made.outcome.final_count == 2 || first->closes);
  co_return with_sent(right ? passed(expected, actual) : failed(expected, actual), sent);
}

Task<Verdict> check_no_content(const CheckTarget& target, const Case&) {
  const std::string expected = "204 without a body or a length";
  const std::string sent = request(target, "OPTIONS", {}) + get_request(target);
  const Exchange made = co_await exchange(target, "OPTIONS", sent, 2);
  const std::string actual = describe(made.outcome);
  const Response* const first = made.outcome.first();
  if (first != nullptr && first->status != 204) {
    co_return with_sent(
        not_applicable(expected, actual + ": the server does not answer OPTIONS with 204"), sent);
  }
  const bool right = first != nullptr && made.outcome.protocol_error.empty();
  co_return with_sent(right ? passed(expected, actual) : failed(expected, actual), sent);
}

Task<Verdict> check_date(const CheckTarget& target, const Case&) {
  const std::string expected = "a Date";
  std::string sent = get_request(target);
  const Exchange made = co_await exchange(target, "GET", std::move(sent), 1);
  const Response* const first = made.outcome.first();
  const bool right = first != nullptr && first->header("Date").has_value();
  const std::string actual = describe(made.outcome) + (right ? "" : ", no Date header");
  co_return with_sent(right ? passed(expected, actual) : failed(expected, actual), made.sent);
}

Task<Verdict> check_trace(const CheckTarget& target, const Case&) {
  const std::string expected = "TRACE is off: no 2xx, nothing echoed";
  const std::string sent = request(target, "TRACE", "X-Weir-Check: echo\r\n");
  const Exchange made = co_await exchange(target, "TRACE", sent, 1);
  const Response* const first = made.outcome.first();
  const bool echoed = first != nullptr && (first->status < 300 ||
                                           first->body.find("X-Weir-Check") != std::string::npos);
  const bool right =
      !echoed && (first != nullptr || made.outcome.closed_by_server || made.outcome.reset);
  const std::string actual = describe(made.outcome);
  co_return with_sent(right ? passed(expected, actual) : failed(expected, actual), sent);
}

// ---- Splitting ----------------------------------------------------------------------------------

/// Checks that the target of a request never becomes a header of the response, wherever it is
/// echoed.
Task<Verdict> check_splitting(const CheckTarget& target, const Case&) {
  const std::string expected = "no header of the answer comes from the request's target";
  constexpr std::string_view injected = "X-Weir-Check:%20split";
  for (const std::string_view line_end : {"%0d%0a", "%0a", "%0d", "%E5%98%8A%E5%98%8D"}) {
    const std::string tail = std::string(line_end) + std::string(injected);
    const std::string request_targets[] = {target.path + tail, target.path + "?next=" + tail,
                                           "//weir.invalid/" + tail,
                                           std::string(missing_path) + tail};
    for (const std::string& request_target : request_targets) {
      const std::string sent = get_request(target, {}, request_target);
      const Exchange made = co_await exchange(target, "GET", sent, 1);
      const Outcome& outcome = made.outcome;
      const bool split = std::ranges::any_of(outcome.responses, [](const Response& each) {
        return each.header("X-Weir-Check").has_value();
      });
      if (split || !outcome.connect_error.empty() || !outcome.protocol_error.empty() ||
          outcome.final_count > 1) {
        co_return with_sent(
            failed(expected, describe(outcome) + (split ? ", X-Weir-Check header found" : "")),
            sent);
      }
    }
  }
  co_return passed(expected, "16 answers without an injected header");
}

// ---- Expect -------------------------------------------------------------------------------------

Task<Verdict> check_continue(const CheckTarget& target, const Case&) {
  const std::string expected = "100 or a final answer before the body, one final answer in all";
  const std::string head = request(target, "POST", "Content-Length: 5\r\nExpect: 100-continue\r\n");
  CheckConnection connection(target);
  StopCondition until = until_final_responses(target, 1);
  until.interim = true;
  const bool opened = co_await connection.open();
  if (opened) co_await connection.send_and_receive(head, until);
  const Outcome before = connection.outcome();
  if (!before.interim && before.final_count == 0) {
    co_return with_sent(failed(expected, describe(before) + " before the body"), head);
  }
  if (before.interim)
    co_await connection.send_and_receive("hello", until_final_responses(target, 1));
  connection.finish_writing();
  const bool ended = co_await connection.wait_for_close(std::min(drain_timeout, target.timeout));
  static_cast<void>(ended);
  const Outcome outcome = connection.outcome();
  const bool right = outcome.final_count == 1 && outcome.protocol_error.empty();
  co_return with_sent(
      right ? passed(expected, describe(outcome)) : failed(expected, describe(outcome)), head);
}

}  // namespace

void add_answer_scripts(CaseRegistry& registry) {
  registry.add("connection", "pipelining", "64 pipelined requests of two kinds", check_pipelining);
  registry.add("connection", "keep-alive", "a second request on the same connection",
               check_keep_alive);
  registry.add("connection", "close", "an answer, and the server closes", check_close);
  registry.add("connection", "close-of-1.0", "an answer to 1.0, and the server closes",
               check_close_of_1_0);
  registry.add("answers", "head", "HEAD, followed by a GET", check_head);
  registry.add("answers", "head-length", "HEAD compared with GET", check_head_length);
  registry.add("answers", "not-modified", "a false condition, followed by a GET",
               check_not_modified);
  registry.add("answers", "no-content", "OPTIONS, followed by a GET", check_no_content);
  registry.add("answers", "date", "the headers of an answer", check_date);
  registry.add("answers", "trace", "TRACE", check_trace);
  registry.add("answers", "splitting", "line ends in targets that may be echoed", check_splitting);
  registry.add("expect", "continue", "the body comes after the 100", check_continue);
}

}  // namespace weir::check

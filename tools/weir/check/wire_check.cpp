// Cases that are bytes and a response: sending the bytes and evaluating the response.
#include "tools/weir/check/wire_check.hpp"

#include <algorithm>
#include <string_view>

#include "tools/weir/check/check_connection.hpp"
#include "weir/http/detail/h2/session.hpp"

namespace weir::check {
namespace {

// Length of the silence that ends a case about silence.
constexpr Duration silence_timeout = std::chrono::milliseconds(300);
// Limit for further bytes after this side has ended its sending.
constexpr Duration drain_timeout = std::chrono::seconds(1);

bool expects(const Case& test_case, std::string_view kind) {
  return std::ranges::find(test_case.expect, kind) != test_case.expect.end();
}
bool is_post(const Case& test_case) {
  return test_case.bytes.starts_with("POST ");
}

/// Returns true if the server refused the request. A missing target or an unknown method may get
/// 404 or 405. Other cases take these statuses as a sign that the server understood the request,
/// unless it closes.
bool is_refusal(const CheckTarget& target, const Case& test_case, const Outcome& outcome) {
  const Response* const first = outcome.first();
  if (first == nullptr || first->status < 400) return false;
  const bool about_names = test_case.rule->name == "target" || test_case.rule->name == "method";
  if (about_names || outcome.closed_by_server || outcome.reset || first->closes) return true;
  return !is_accepting_status(target, is_post(test_case), first->status);
}

bool meets(const CheckTarget& target, const Case& test_case, std::string_view expected,
           const Outcome& outcome) {
  const Response* const first = outcome.first();
  const int status = first == nullptr ? 0 : first->status;
  if (expected == "wait")
    return outcome.responses.empty() && !outcome.closed_by_server && !outcome.reset;
  if (expected == "100") return outcome.interim;
  if (expected == "400") return is_refusal(target, test_case, outcome);
  if (expected == "200")
    return status != 0 && is_accepting_status(target, is_post(test_case), status);
  if (expected == "closeok") return status != 0 && outcome.closed_by_server;
  return expected == std::to_string(status);
}

bool meets_any(const CheckTarget& target, const Case& test_case,
               const std::vector<std::string>& expected, const Outcome& outcome) {
  return std::ranges::any_of(
      expected, [&](const std::string& each) { return meets(target, test_case, each, outcome); });
}

/// HTTP/1.0 has no interim responses (RFC 9110, section 15.2).
bool has_interim_to_http_1_0(const Case& test_case, const Outcome& outcome) {
  const std::string_view line =
      std::string_view(test_case.bytes).substr(0, test_case.bytes.find('\r'));
  return outcome.interim && line.ends_with(" HTTP/1.0");
}

/// Returns true if the server closed after a response that announced it. Later requests are then
/// not answered, which RFC 9112, section 9.6, always allows.
bool closed_as_announced(const Outcome& outcome) {
  return outcome.closed_by_server && !outcome.responses.empty() && outcome.responses.back().closes;
}

bool concerns_body(const Case& test_case) {
  return test_case.rule->name == "chunks" || test_case.rule->name == "after-an-error" ||
         test_case.rule->name == "smuggling";
}

/// Returns true if the case can only still pass if the server closes the connection on its own.
bool must_close(const CheckTarget& target, const Case& test_case, const Outcome& outcome) {
  if (meets_any(target, test_case, test_case.expect, outcome) ||
      meets_any(target, test_case, test_case.also, outcome)) {
    return false;
  }
  const bool may_close = std::ranges::find(test_case.lenient, "closeok") != test_case.lenient.end();
  return expects(test_case, "closeok") || may_close ||
         (expects(test_case, "400") && concerns_body(test_case));
}

std::string describe_expectation(const std::string& expected) {
  if (expected == "wait") return "no answer yet";
  if (expected == "100") return "100 first";
  if (expected == "400") return "a rejection (4xx or 5xx)";
  if (expected == "200") return "the answer to a valid request";
  if (expected == "closeok") return "an answer, then the server closes";
  return expected;
}

}  // namespace

bool is_accepting_status(const CheckTarget& target, bool is_post, int status) {
  const int usual = is_post ? target.post.status : target.get.status;
  return (status >= 200 && status < 400) || status == 404 || status == 405 || status == usual;
}

std::string bytes_for(const Case& test_case, const CheckTarget& target) {
  std::string bytes = test_case.bytes;
  const auto put_path = [&bytes](std::string_view method, const std::string& path) {
    if (bytes.starts_with(std::string(method) + " / ")) bytes.replace(method.size() + 1, 1, path);
  };
  put_path("GET", target.path);
  put_path("POST", target.post_path);
  constexpr std::string_view host = "Host: a.test\r\n";
  const std::string ours = "Host: " + target.authority + "\r\n";
  std::size_t at = 0;
  while ((at = bytes.find(host, at)) < bytes.find("\r\n\r\n")) {
    bytes.replace(at, host.size(), ours);
    at += ours.size();
  }
  return bytes;
}

std::string describe_expected(const Case& test_case) {
  std::string text;
  for (const std::string& each : test_case.expect)
    text += (text.empty() ? "" : " or ") + describe_expectation(each);
  if (test_case.answers.value_or(0) != 0) {
    text += *test_case.answers == 1 ? ", 1 answer"
                                    : ", " + std::to_string(*test_case.answers) + " answers";
  }
  return text;
}

Verdict evaluate(const CheckTarget& target, const Case& test_case, const Outcome& outcome) {
  const std::string expected = describe_expected(test_case);
  const std::string actual = describe(outcome);
  const bool is_preface = test_case.bytes.starts_with(http::H2Session::client_preface);
  if (is_preface && outcome.protocol_error == ResponseParser::http2_frames)
    return not_applicable(expected, actual + ": the server speaks HTTP/2 here");
  if (!outcome.connect_error.empty() || !outcome.protocol_error.empty())
    return failed(expected, actual);
  if (has_interim_to_http_1_0(test_case, outcome))
    return failed("no interim answer to HTTP/1.0", actual);
  if (meets_any(target, test_case, test_case.also, outcome)) return passed(expected, actual);
  if (meets_any(target, test_case, test_case.expect, outcome)) {
    if (!test_case.answers || *test_case.answers == outcome.final_count)
      return passed(expected, actual);
    if (outcome.final_count < *test_case.answers && closed_as_announced(outcome)) {
      return not_applicable(expected, actual + ": the server closes earlier, as announced");
    }
  } else if (meets_any(target, test_case, test_case.lenient, outcome)) {
    if (target.lenient) return passed(expected, actual);
    return failed(expected, actual + " (" + test_case.note + "; --lenient accepts it)");
  }
  if (expects(test_case, "400") && outcome.first() == nullptr &&
      (outcome.closed_by_server || outcome.reset)) {
    return not_applicable(expected, actual + ": the server accepted nothing");
  }
  if (expects(test_case, "400") && concerns_body(test_case) && outcome.final_count == 1 &&
      outcome.closed_by_server) {
    return not_applicable(expected, actual + ": answered before it had read the body");
  }
  return failed(expected, actual);
}

Task<Verdict> check_wire(const CheckTarget& target, const Case& test_case) {
  const std::string bytes = bytes_for(test_case, target);
  const bool interim_only = expects(test_case, "100") && test_case.answers == 0;
  const bool waits = expects(test_case, "wait") && test_case.answers.value_or(0) == 0;
  StopCondition until;
  until.final_count = std::max<std::size_t>(test_case.answers.value_or(1), 1);
  until.interim = interim_only;
  until.wait_timeout = waits ? std::min(silence_timeout, target.timeout) : target.timeout;

  CheckConnection connection(target);
  const bool opened = co_await connection.open();
  if (opened) co_await connection.send_and_receive(bytes, until);
  if (!waits && !interim_only && !connection.is_closed()) {
    // A server that has announced the close, or must close, does so on its own.
    const Outcome so_far = connection.outcome();
    const bool announced = !so_far.responses.empty() && so_far.responses.back().closes;
    if (announced || must_close(target, test_case, so_far)) {
      const bool ended = co_await connection.wait_for_close(target.timeout);
      static_cast<void>(ended);
    }
    connection.finish_writing();
    const bool ended = co_await connection.wait_for_close(std::min(drain_timeout, target.timeout));
    static_cast<void>(ended);
  }
  Verdict verdict = evaluate(target, test_case, connection.outcome());
  verdict.sent = bytes;
  co_return verdict;
}

}  // namespace weir::check

// Requests for the target, and descriptions of outcomes.
#include "tools/weir/check/check_target.hpp"

#include <algorithm>
#include <utility>

namespace weir::check {

std::string get_request(const CheckTarget& target, std::string_view fields,
                        std::string_view request_target) {
  std::string request = "GET ";
  request.append(request_target.empty() ? target.path : request_target)
      .append(" HTTP/1.1\r\nHost: ");
  return request.append(target.authority).append("\r\n").append(fields).append("\r\n");
}

std::string post_head(const CheckTarget& target, std::string_view fields) {
  std::string head = "POST " + target.post_path + " HTTP/1.1\r\nHost: ";
  return head.append(target.authority).append("\r\n").append(fields).append("\r\n");
}

const Response* Outcome::first() const noexcept {
  const auto found = std::ranges::find_if(
      responses, [](const Response& each) { return each.complete && each.is_final(); });
  return found == responses.end() ? nullptr : &*found;
}

std::string describe(const Outcome& outcome) {
  if (!outcome.connect_error.empty()) return outcome.connect_error;
  std::string text;
  for (std::size_t index = 0; index < outcome.responses.size();) {
    const Response& each = outcome.responses[index];
    std::size_t same = index;
    while (same < outcome.responses.size() && outcome.responses[same].status == each.status) ++same;
    if (!text.empty()) text += ", ";
    text += std::to_string(each.status);
    if (same - index > 1) text += " × " + std::to_string(same - index);
    index = same;
  }
  if (!outcome.protocol_error.empty()) {
    text += (text.empty() ? "" : ", ") + outcome.protocol_error;
  } else if (outcome.reset) {
    text += text.empty() ? "reset without an answer" : ", reset";
  } else if (outcome.closed_by_server) {
    text += text.empty() ? "closed without an answer" : ", closed";
    if (outcome.truncated) text += " without close_notify";
  } else {
    text += text.empty() ? "no answer" : ", kept open";
  }
  return text;
}

namespace {

Verdict verdict(VerdictKind kind, std::string expected, std::string actual) {
  Verdict made;
  made.kind = kind;
  made.expected = std::move(expected);
  made.actual = std::move(actual);
  return made;
}

}  // namespace

Verdict passed(std::string expected, std::string actual) {
  return verdict(VerdictKind::passed, std::move(expected), std::move(actual));
}
Verdict failed(std::string expected, std::string actual) {
  return verdict(VerdictKind::failed, std::move(expected), std::move(actual));
}
Verdict not_applicable(std::string expected, std::string actual) {
  return verdict(VerdictKind::not_applicable, std::move(expected), std::move(actual));
}

Verdict with_sent(Verdict verdict, std::string_view bytes) {
  constexpr std::size_t sent_max = 1000;
  verdict.sent = bytes.substr(0, sent_max);
  return verdict;
}

Verdict lenient_verdict(const CheckTarget& target, std::string expected, std::string actual) {
  if (target.lenient) return passed(std::move(expected), std::move(actual));
  return failed(std::move(expected), std::move(actual) + " (--lenient accepts it)");
}

}  // namespace weir::check

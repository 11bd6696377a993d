#include "tools/weir/check/check_target.hpp"

#include <algorithm>
#include <utility>

namespace weir::check {

std::string get_request(const Site& site, std::string_view fields, std::string_view target) {
  std::string request = "GET ";
  request.append(target.empty() ? site.path : target).append(" HTTP/1.1\r\nHost: ");
  return request.append(site.authority).append("\r\n").append(fields).append("\r\n");
}

const Answer* Outcome::first() const noexcept {
  const auto found = std::ranges::find_if(
      answers, [](const Answer& each) { return each.whole && each.is_final(); });
  return found == answers.end() ? nullptr : &*found;
}

std::string describe(const Outcome& outcome) {
  if (!outcome.failure.empty()) return outcome.failure;
  std::string text;
  for (std::size_t index = 0; index < outcome.answers.size();) {
    const Answer& each = outcome.answers[index];
    std::size_t same = index;
    while (same < outcome.answers.size() && outcome.answers[same].status == each.status) ++same;
    if (!text.empty()) text += ", ";
    text += std::to_string(each.status);
    if (same - index > 1) text += " × " + std::to_string(same - index);
    index = same;
  }
  if (!outcome.fault.empty()) {
    text += (text.empty() ? "" : ", ") + outcome.fault;
  } else if (outcome.reset) {
    text += text.empty() ? "reset without an answer" : ", reset";
  } else if (outcome.ended) {
    text += text.empty() ? "closed without an answer" : ", closed";
  } else {
    text += text.empty() ? "nothing" : ", kept open";
  }
  return text;
}

namespace {

Verdict verdict(VerdictKind kind, std::string wanted, std::string came) {
  Verdict made;
  made.kind = kind;
  made.wanted = std::move(wanted);
  made.came = std::move(came);
  return made;
}

}  // namespace

Verdict passed(std::string wanted, std::string came) {
  return verdict(VerdictKind::passed, std::move(wanted), std::move(came));
}
Verdict failed(std::string wanted, std::string came) {
  return verdict(VerdictKind::failed, std::move(wanted), std::move(came));
}
Verdict not_applicable(std::string wanted, std::string came) {
  return verdict(VerdictKind::not_applicable, std::move(wanted), std::move(came));
}

}  // namespace weir::check

#include "tools/weir/check/wire_check.hpp"

#include <algorithm>
#include <string_view>

#include "tools/weir/check/conversation.hpp"

namespace weir::check {
namespace {

// A case that is about silence ends when it has lasted so long.
constexpr Duration silence = std::chrono::milliseconds(300);
// What else comes once this side has ended its sending.
constexpr Duration rest_max = std::chrono::seconds(1);

bool expects(const Case& of, std::string_view kind) {
  return std::ranges::find(of.expect, kind) != of.expect.end();
}
bool posts(const Case& of) {
  return of.bytes.starts_with("POST ");
}

/// That a server made nothing of the request. Targets and methods that do not exist are refused by
/// 404 and 405 as well; elsewhere these say that the request was understood, unless it closes.
bool is_refusal(const Site& site, const Case& of, const Outcome& outcome) {
  const Answer* const first = outcome.first();
  if (first == nullptr || first->status < 400) return false;
  const bool about_names = of.rule->name == "target" || of.rule->name == "method";
  if (about_names || outcome.ended || outcome.reset || first->closes) return true;
  return !is_accepting(site, posts(of), first->status);
}

bool meets(const Site& site, const Case& of, std::string_view expected, const Outcome& outcome) {
  const Answer* const first = outcome.first();
  const int status = first == nullptr ? 0 : first->status;
  if (expected == "wait") return outcome.answers.empty() && !outcome.ended && !outcome.reset;
  if (expected == "100") return outcome.interim;
  if (expected == "400") return is_refusal(site, of, outcome);
  if (expected == "200") return status != 0 && is_accepting(site, posts(of), status);
  if (expected == "closeok") return status != 0 && outcome.ended;
  return expected == std::to_string(status);
}

bool meets_any(const Site& site, const Case& of, const std::vector<std::string>& expected,
               const Outcome& outcome) {
  return std::ranges::any_of(
      expected, [&](const std::string& each) { return meets(site, of, each, outcome); });
}

/// HTTP/1.0 knows no interim answers (RFC 9110, section 15.2).
bool interim_to_1_0(const Case& of, const Outcome& outcome) {
  const std::string_view line = std::string_view(of.bytes).substr(0, of.bytes.find('\r'));
  return outcome.interim && line.ends_with(" HTTP/1.0");
}

/// Whether the server ended the connection behind an answer that had said so: then requests behind
/// that one are not answered, which RFC 9112, section 9.6, lets it do at any time.
bool closed_as_announced(const Outcome& outcome) {
  return outcome.ended && !outcome.answers.empty() && outcome.answers.back().closes;
}

bool is_about_body(const Case& of) {
  return of.rule->name == "chunks" || of.rule->name == "after-an-error" ||
         of.rule->name == "smuggling";
}

/// Whether only the end of the connection, by the server itself, could still make this right.
bool owes_the_end(const Site& site, const Case& of, const Outcome& outcome) {
  if (meets_any(site, of, of.expect, outcome) || meets_any(site, of, of.also, outcome)) {
    return false;
  }
  const bool may_close = std::ranges::find(of.lenient, "closeok") != of.lenient.end();
  return expects(of, "closeok") || may_close || (expects(of, "400") && is_about_body(of));
}

std::string in_words(const std::string& expected) {
  if (expected == "wait") return "no answer yet";
  if (expected == "100") return "100 first";
  if (expected == "400") return "a refusal (4xx or 5xx)";
  if (expected == "200") return "an answer as to a right request";
  if (expected == "closeok") return "an answer and the close";
  return expected;
}

}  // namespace

bool is_accepting(const Site& site, bool posts, int status) {
  const int usual = posts ? site.post.status : site.get.status;
  return (status >= 200 && status < 400) || status == 404 || status == 405 || status == usual;
}

std::string bytes_for(const Case& of, const Site& site) {
  std::string bytes = of.bytes;
  const auto put_path = [&bytes](std::string_view method, const std::string& path) {
    if (bytes.starts_with(std::string(method) + " / ")) bytes.replace(method.size() + 1, 1, path);
  };
  put_path("GET", site.path);
  put_path("POST", site.post_path);
  constexpr std::string_view host = "Host: a.test\r\n";
  const std::string ours = "Host: " + site.authority + "\r\n";
  std::size_t at = 0;
  while ((at = bytes.find(host, at)) < bytes.find("\r\n\r\n")) {
    bytes.replace(at, host.size(), ours);
    at += ours.size();
  }
  return bytes;
}

std::string describe_expected(const Case& of) {
  std::string text;
  for (const std::string& each : of.expect) text += (text.empty() ? "" : " or ") + in_words(each);
  if (of.answers.value_or(0) != 0) {
    text += *of.answers == 1 ? ", 1 answer" : ", " + std::to_string(*of.answers) + " answers";
  }
  return text;
}

Verdict judge(const Site& site, const Case& of, const Outcome& outcome) {
  const std::string wanted = describe_expected(of);
  const std::string came = describe(outcome);
  if (!outcome.failure.empty() || !outcome.fault.empty()) return failed(wanted, came);
  if (interim_to_1_0(of, outcome)) return failed("no interim answer to HTTP/1.0", came);
  if (meets_any(site, of, of.also, outcome)) return passed(wanted, came);
  if (meets_any(site, of, of.expect, outcome)) {
    if (!of.answers || *of.answers == outcome.finals) return passed(wanted, came);
    if (outcome.finals < *of.answers && closed_as_announced(outcome)) {
      return not_applicable(wanted, came + ": it closes before, as it says");
    }
  } else if (meets_any(site, of, of.lenient, outcome)) {
    if (site.lenient) return passed(wanted, came);
    return failed(wanted, came + " (" + of.note + "; --lenient takes it)");
  }
  if (expects(of, "400") && outcome.first() == nullptr && (outcome.ended || outcome.reset)) {
    return not_applicable(wanted, came + ": nothing was taken from it");
  }
  if (expects(of, "400") && is_about_body(of) && outcome.finals == 1 && outcome.ended) {
    return not_applicable(wanted, came + ": answered before it had read the body");
  }
  return failed(wanted, came);
}

Task<Verdict> check_wire(const Site& site, const Case& of) {
  const std::string bytes = bytes_for(of, site);
  const bool interim_only = expects(of, "100") && of.answers == 0;
  const bool waits = expects(of, "wait") && of.answers.value_or(0) == 0;
  Until until;
  until.finals = std::max<std::size_t>(of.answers.value_or(1), 1);
  until.interim = interim_only;
  until.longest = waits ? std::min(silence, site.timeout) : site.timeout;

  Conversation talk(site);
  const bool opened = co_await talk.open();
  if (opened) co_await talk.ask(bytes, until);
  if (!waits && !interim_only && !talk.over()) {
    // Who has announced the end, or must, does it by itself.
    const Outcome so_far = talk.outcome();
    const bool announced = !so_far.answers.empty() && so_far.answers.back().closes;
    if (announced || owes_the_end(site, of, so_far)) {
      const bool ended = co_await talk.hear_end(site.timeout);
      static_cast<void>(ended);
    }
    talk.finish();
    const bool ended = co_await talk.hear_end(std::min(rest_max, site.timeout));
    static_cast<void>(ended);
  }
  Verdict verdict = judge(site, of, talk.outcome());
  verdict.sent = bytes;
  co_return verdict;
}

}  // namespace weir::check

// Cases about answers: how many come, in which order, with which bodies, and when it is over.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/conversation.hpp"
#include "tools/weir/check/scripts.hpp"
#include "tools/weir/check/wire_check.hpp"

namespace weir::check {
namespace {

constexpr std::string_view missing_path = "/weir-check-there-is-no-such-thing";
constexpr Duration rest_max = std::chrono::seconds(1);

Until finals(const Site& site, std::size_t count) {
  Until until;
  until.finals = count;
  until.longest = site.timeout;
  return until;
}

std::string request(const Site& site, std::string_view method, std::string_view fields,
                    std::string_view body = {}) {
  const std::string& path = method == "POST" ? site.post_path : site.path;
  std::string text = std::string(method) + " " + path + " HTTP/1.1\r\nHost: " + site.authority;
  return text.append("\r\n").append(fields).append("\r\n").append(body);
}

/// `verdict` with what was sent.
Verdict about(Verdict verdict, std::string sent) {
  verdict.sent = std::move(sent);
  return verdict;
}

/// One exchange on a connection of its own, and what comes behind it.
struct Exchange {
  std::string sent;
  Outcome outcome;
};
Task<Exchange> exchange(const Site& site, std::string_view method, std::string sent,
                        std::size_t count) {
  Exchange made;
  made.sent = std::move(sent);
  Conversation talk(site);
  talk.asked(method);
  const bool opened = co_await talk.open();
  if (opened) co_await talk.ask(made.sent, finals(site, count));
  talk.finish();
  const bool ended = co_await talk.hear_end(std::min(rest_max, site.timeout));
  static_cast<void>(ended);
  made.outcome = talk.outcome();
  co_return made;
}

// ---- Pipelining ---------------------------------------------------------------------------------

constexpr std::size_t pipeline_length = 64;

/// Which of them ask for what is not there: a pattern without a period.
bool asks_for_nothing(std::size_t index) {
  constexpr std::uint64_t pattern = 0x9e3779b97f4a7c15;
  return (pattern >> index & 1U) != 0;
}

Task<Verdict> check_pipelining(const Site& site, const Case& of) {
  const std::string wanted = "64 answers in the order of the requests";
  const std::string to_missing = get_request(site, {}, missing_path);
  const Exchange alone = co_await exchange(site, "GET", to_missing, 1);
  const Answer* const missing = alone.outcome.first();
  if (missing == nullptr) co_return about(failed(of.why, describe(alone.outcome)), to_missing);

  std::string batch;
  for (std::size_t index = 0; index < pipeline_length; ++index) {
    batch += asks_for_nothing(index) ? to_missing : get_request(site);
  }
  const Exchange made = co_await exchange(site, "GET", batch, pipeline_length);
  const Outcome& outcome = made.outcome;
  const std::string came = describe(outcome);
  std::size_t index = 0;
  for (const Answer& each : outcome.answers) {
    if (!each.is_final()) continue;
    const int right = asks_for_nothing(index) ? missing->status : site.get.status;
    if (index == pipeline_length || each.status != right) {
      co_return about(
          failed(wanted, came + ": answer " + std::to_string(index + 1) + " is " +
                             std::to_string(each.status) + " instead of " + std::to_string(right)),
          made.sent);
    }
    ++index;
  }
  const bool said_so = !outcome.answers.empty() && outcome.answers.back().closes;
  if (outcome.finals == pipeline_length && outcome.fault.empty()) {
    if (missing->status != site.get.status) co_return about(passed(wanted, came), made.sent);
    co_return about(not_applicable(wanted, came + ": it answers everything alike"), made.sent);
  }
  if (said_so && outcome.ended) {
    co_return about(not_applicable(wanted, came + ": it closes before, as it says"), made.sent);
  }
  co_return about(failed(wanted, came), made.sent);
}

Task<Verdict> check_keep_alive(const Site& site, const Case&) {
  const std::string wanted = "the same connection answers again";
  Conversation talk(site);
  const bool opened = co_await talk.open();
  const std::string sent = get_request(site);
  if (opened) co_await talk.ask(sent, finals(site, 1));
  const Outcome first = talk.outcome();
  if (first.finals == 1 && first.answers.back().closes) {
    co_return not_applicable(wanted, describe(first) + ": it closes after each answer, as it says");
  }
  if (opened) co_await talk.ask(sent, finals(site, 2));
  const Outcome second = talk.outcome();
  co_return second.finals == 2 ? passed(wanted, describe(second))
                               : failed(wanted, describe(second));
}

// ---- The end ------------------------------------------------------------------------------------

Task<Verdict> check_end(const Site& site, std::string sent, std::string wanted) {
  Conversation talk(site);
  const bool opened = co_await talk.open();
  if (opened) co_await talk.ask(sent, finals(site, 1));
  const bool ended = co_await talk.hear_end(site.timeout);
  const Outcome outcome = talk.outcome();
  const bool right = outcome.finals == 1 && ended && !outcome.reset && outcome.fault.empty();
  Verdict verdict = right ? passed(wanted, describe(outcome)) : failed(wanted, describe(outcome));
  co_return about(std::move(verdict), std::move(sent));
}

Task<Verdict> check_close(const Site& site, const Case& of) {
  return check_end(site, get_request(site, "Connection: close\r\n"), of.why);
}

Task<Verdict> check_close_of_1_0(const Site& site, const Case& of) {
  return check_end(site, "GET " + site.path + " HTTP/1.0\r\nHost: " + site.authority + "\r\n\r\n",
                   of.why);
}

// ---- Bodies and fields --------------------------------------------------------------------------

Task<Verdict> check_head(const Site& site, const Case&) {
  const std::string wanted =
      "the status of GET without a body, then the answer to the next request";
  Conversation talk(site);
  talk.asked("HEAD");
  const std::string sent = request(site, "HEAD", {}) + get_request(site);
  const bool opened = co_await talk.open();
  if (opened) co_await talk.ask(sent, finals(site, 2));
  const Outcome outcome = talk.outcome();
  const std::string came = describe(outcome);
  const Answer* const head = outcome.first();
  if (head != nullptr && (head->status == 405 || head->status == 501)) {
    co_return about(failed(wanted, came + ": GET and HEAD have to be there"), sent);
  }
  const bool one_only = outcome.finals == 1 && head->closes && outcome.fault.empty();
  const bool right = head != nullptr && head->status == site.get.status && outcome.fault.empty() &&
                     (outcome.finals == 2 || one_only);
  co_return about(right ? passed(wanted, came) : failed(wanted, came), sent);
}

Task<Verdict> check_head_length(const Site& site, const Case&) {
  const std::string wanted = "in the answer to HEAD, no Content-Length or that of GET";
  std::string getting = get_request(site);
  std::string heading = request(site, "HEAD", {});
  const Exchange got = co_await exchange(site, "GET", std::move(getting), 1);
  const Exchange headed = co_await exchange(site, "HEAD", std::move(heading), 1);
  const Answer* const get = got.outcome.first();
  const Answer* const head = headed.outcome.first();
  if (get == nullptr || head == nullptr) {
    co_return about(failed(wanted, describe(headed.outcome)), headed.sent);
  }
  const auto length = head->field("Content-Length");
  const std::string came = length ? *length : "none";
  const std::string of_get = get->field("Content-Length").value_or("");
  if (!length || *length == of_get) co_return about(passed(wanted, came), headed.sent);
  if (get->body != site.get.body) {
    co_return about(not_applicable(wanted, came + ": bodies of GET vary"), headed.sent);
  }
  co_return about(failed(wanted, came + " instead of " + of_get), headed.sent);
}

Task<Verdict> check_not_modified(const Site& site, const Case&) {
  const std::string wanted = "304 without a body";
  const std::string sent = request(site, "GET", "If-None-Match: *\r\n") + get_request(site);
  const Exchange made = co_await exchange(site, "GET", sent, 2);
  const std::string came = describe(made.outcome);
  const Answer* const first = made.outcome.first();
  if (first != nullptr && first->status != 304) {
    co_return about(not_applicable(wanted, came + ": it knows no conditions here"), sent);
  }
  const bool right =
      first != nullptr && made.outcome.fault.empty() && (made.outcome.finals == 2 || first->closes);
  co_return about(right ? passed(wanted, came) : failed(wanted, came), sent);
}

Task<Verdict> check_no_content(const Site& site, const Case&) {
  const std::string wanted = "204 without a body or a length";
  const std::string sent = request(site, "OPTIONS", {}) + get_request(site);
  const Exchange made = co_await exchange(site, "OPTIONS", sent, 2);
  const std::string came = describe(made.outcome);
  const Answer* const first = made.outcome.first();
  if (first != nullptr && first->status != 204) {
    co_return about(not_applicable(wanted, came + ": it does not answer OPTIONS with 204"), sent);
  }
  const bool right = first != nullptr && made.outcome.fault.empty();
  co_return about(right ? passed(wanted, came) : failed(wanted, came), sent);
}

Task<Verdict> check_date(const Site& site, const Case&) {
  const std::string wanted = "a Date";
  std::string sent = get_request(site);
  const Exchange made = co_await exchange(site, "GET", std::move(sent), 1);
  const Answer* const first = made.outcome.first();
  const bool right = first != nullptr && first->field("Date").has_value();
  const std::string came = describe(made.outcome) + (right ? "" : ", without one");
  co_return about(right ? passed(wanted, came) : failed(wanted, came), made.sent);
}

Task<Verdict> check_trace(const Site& site, const Case&) {
  const std::string wanted = "TRACE is off: no 2xx, nothing echoed";
  const std::string sent = request(site, "TRACE", "X-Weir-Check: echo\r\n");
  const Exchange made = co_await exchange(site, "TRACE", sent, 1);
  const Answer* const first = made.outcome.first();
  const bool echoed = first != nullptr && (first->status < 300 ||
                                           first->body.find("X-Weir-Check") != std::string::npos);
  const bool right = !echoed && (first != nullptr || made.outcome.ended || made.outcome.reset);
  const std::string came = describe(made.outcome);
  co_return about(right ? passed(wanted, came) : failed(wanted, came), sent);
}

// ---- Splitting ----------------------------------------------------------------------------------

/// What a client names must not become a field of the answer, wherever it is echoed.
Task<Verdict> check_splitting(const Site& site, const Case&) {
  const std::string wanted = "no field of the answer comes from the request's target";
  constexpr std::string_view injected = "X-Weir-Check:%20split";
  for (const std::string_view line_end : {"%0d%0a", "%0a", "%0d", "%E5%98%8A%E5%98%8D"}) {
    const std::string tail = std::string(line_end) + std::string(injected);
    const std::string targets[] = {site.path + tail, site.path + "?next=" + tail,
                                   "//weir.invalid/" + tail, std::string(missing_path) + tail};
    for (const std::string& target : targets) {
      const std::string sent = get_request(site, {}, target);
      const Exchange made = co_await exchange(site, "GET", sent, 1);
      const Outcome& outcome = made.outcome;
      const bool split = std::ranges::any_of(outcome.answers, [](const Answer& each) {
        return each.field("X-Weir-Check").has_value();
      });
      if (split || !outcome.fault.empty() || outcome.finals > 1) {
        co_return about(failed(wanted, describe(outcome) + (split ? ", with that field" : "")),
                        sent);
      }
    }
  }
  co_return passed(wanted, "16 answers without");
}

// ---- Expect -------------------------------------------------------------------------------------

Task<Verdict> check_continue(const Site& site, const Case&) {
  const std::string wanted = "100 or a final answer before the body, one final answer in all";
  const std::string head = request(site, "POST", "Content-Length: 5\r\nExpect: 100-continue\r\n");
  Conversation talk(site);
  Until until = finals(site, 1);
  until.interim = true;
  const bool opened = co_await talk.open();
  if (opened) co_await talk.ask(head, until);
  const Outcome before = talk.outcome();
  if (!before.interim && before.finals == 0) {
    co_return about(failed(wanted, describe(before) + " before the body"), head);
  }
  if (before.interim) co_await talk.ask("hello", finals(site, 1));
  talk.finish();
  const bool ended = co_await talk.hear_end(std::min(rest_max, site.timeout));
  static_cast<void>(ended);
  const Outcome outcome = talk.outcome();
  const bool right = outcome.finals == 1 && outcome.fault.empty();
  co_return about(right ? passed(wanted, describe(outcome)) : failed(wanted, describe(outcome)),
                  head);
}

}  // namespace

void add_answer_scripts(CaseBook& book) {
  book.add("connection", "pipelining", "64 requests at once, of two kinds", check_pipelining);
  book.add("connection", "keep-alive", "a second request on the same connection", check_keep_alive);
  book.add("connection", "close", "an answer, and the server closes", check_close);
  book.add("connection", "close-of-1.0", "an answer to 1.0, and the server closes",
           check_close_of_1_0);
  book.add("answers", "head", "HEAD, and a GET behind it", check_head);
  book.add("answers", "head-length", "HEAD beside GET", check_head_length);
  book.add("answers", "not-modified", "a condition that is false, and a GET behind it",
           check_not_modified);
  book.add("answers", "no-content", "OPTIONS, and a GET behind it", check_no_content);
  book.add("answers", "date", "the fields of an answer", check_date);
  book.add("answers", "trace", "TRACE", check_trace);
  book.add("answers", "splitting", "line ends in targets that may be echoed", check_splitting);
  book.add("expect", "continue", "the body comes after the 100", check_continue);
}

}  // namespace weir::check

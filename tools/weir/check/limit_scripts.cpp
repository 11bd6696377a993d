// Cases that send more than a server should take.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/conversation.hpp"
#include "tools/weir/check/scripts.hpp"
#include "tools/weir/check/wire_check.hpp"

namespace weir::check {
namespace {

constexpr std::size_t flood_bytes = std::size_t{4} << 20;

/// Pieces of `piece` with about as many bytes as a flood has.
std::string flood_of(std::string_view piece) {
  std::string text;
  text.reserve(flood_bytes + piece.size());
  while (text.size() < flood_bytes) text += piece;
  return text;
}

std::string post_head(const Site& site, std::string_view fields) {
  std::string text = "POST " + site.post_path + " HTTP/1.1\r\nHost: " + site.authority + "\r\n";
  return text.append(fields).append("\r\n");
}

/// What is shown of a flood: how it begins.
std::string beginning(const std::string& sent) {
  return sent.substr(0, 200);
}

Task<Outcome> outcome_of(const Site& site, const std::string& sent) {
  Conversation talk(site);
  Until until;
  until.finals = 1;
  until.longest = site.timeout;
  const bool opened = co_await talk.open();
  if (opened) co_await talk.ask(sent, until);
  // Who goes on reading may still close.
  const Outcome so_far = talk.outcome();
  const Answer* const first = so_far.first();
  if (first != nullptr && first->status < 400) {
    const bool ended =
        co_await talk.hear_end(std::min<Duration>(site.timeout, std::chrono::seconds(1)));
    static_cast<void>(ended);
  }
  co_return talk.outcome();
}

/// A flood in the head: `right` is the status that the rule asks for, 0: any 4xx.
Verdict judge_head(const Site& site, const Outcome& outcome, int right, std::string wanted) {
  const std::string came = describe(outcome);
  const Answer* const first = outcome.first();
  if (!outcome.failure.empty() || !outcome.fault.empty()) return failed(wanted, came);
  if (first == nullptr) {
    if (!outcome.ended && !outcome.reset) return failed(wanted, came);
    return not_applicable(wanted, came + ": cut off, though without a word");
  }
  const bool refused = first->status >= 400 && first->status < 500;
  if (first->status == right) return passed(wanted, came);
  if (refused && right == 0 && first->status != 404 && first->status != 405) {
    return passed(wanted, came);
  }
  if (refused && right != 0 && first->status != 404 && first->status != 405) {
    if (site.lenient) return passed(wanted, came);
    return failed(wanted, came + " (a refusal, but not that one; --lenient takes it)");
  }
  return failed(wanted, came + ": it takes " + std::to_string(flood_bytes >> 20U) + " MiB");
}

Task<Verdict> check_target(const Site& site, const Case&) {
  const std::string target = "/" + std::string(flood_bytes, 'a');
  const std::string sent = get_request(site, {}, target);
  const Outcome outcome = co_await outcome_of(site, sent);
  Verdict verdict = judge_head(site, outcome, 414, "414");
  verdict.sent = beginning(sent);
  co_return verdict;
}

Task<Verdict> check_fields(const Site& site, std::string fields) {
  const std::string sent = get_request(site, fields);
  const Outcome outcome = co_await outcome_of(site, sent);
  Verdict verdict = judge_head(site, outcome, 0, "431 or another 4xx");
  verdict.sent = beginning(sent);
  co_return verdict;
}

Task<Verdict> check_field_bytes(const Site& site, const Case&) {
  return check_fields(site, "X: " + std::string(flood_bytes, 'a') + "\r\n");
}

Task<Verdict> check_field_count(const Site& site, const Case&) {
  return check_fields(site, flood_of("X: y\r\n"));
}

/// The size is only announced: who has a limit knows at once.
Task<Verdict> check_body(const Site& site, const Case&) {
  const std::string wanted = "413 or another 4xx";
  const std::string sent =
      post_head(site, "Content-Length: 1099511627776\r\n") + std::string(64 * 1024, 'a');
  const Outcome outcome = co_await outcome_of(site, sent);
  const std::string came = describe(outcome);
  const Answer* const first = outcome.first();
  const bool refused = first != nullptr && first->status >= 400 && first->status < 500;
  Verdict verdict;
  if (!outcome.failure.empty() || !outcome.fault.empty()) {
    verdict = failed(wanted, came);
  } else if (refused) {
    verdict = passed(wanted, came);
  } else if (first != nullptr) {
    verdict = not_applicable(wanted, came + ": answered without the body");
  } else if (outcome.ended || outcome.reset) {
    verdict = not_applicable(wanted, came + ": cut off, though without a word");
  } else {
    verdict = not_applicable(wanted, came + ": no limit below 1 TiB shows here");
  }
  verdict.sent = beginning(sent);
  co_return verdict;
}

/// What is read and dropped: nobody counts it unless the server does.
Task<Verdict> check_dropped(const Site& site, std::string sent) {
  const std::string wanted = "a refusal (4xx), or the end of the connection";
  const Outcome outcome = co_await outcome_of(site, sent);
  const std::string came = describe(outcome);
  const Answer* const first = outcome.first();
  const bool accepted = first != nullptr && first->status < 400;
  Verdict verdict;
  if (!outcome.failure.empty() || !outcome.fault.empty()) {
    verdict = failed(wanted, came);
  } else if (accepted && (outcome.ended || outcome.reset)) {
    verdict = not_applicable(wanted, came + ": answered before it had read them");
  } else if (accepted || (first == nullptr && !outcome.ended && !outcome.reset)) {
    verdict = failed(wanted, came + ": it takes 4 MiB of what nobody wants");
  } else {
    verdict = passed(wanted, came);
  }
  verdict.sent = beginning(sent);
  co_return verdict;
}

Task<Verdict> check_extensions(const Site& site, const Case&) {
  const std::string chunk = "1;a=" + std::string(900, 'b') + "\r\nx\r\n";
  return check_dropped(
      site, post_head(site, "Transfer-Encoding: chunked\r\n") + flood_of(chunk) + "0\r\n\r\n");
}

Task<Verdict> check_trailers(const Site& site, const Case&) {
  return check_dropped(site, post_head(site, "Transfer-Encoding: chunked\r\n") + "0\r\n" +
                                 flood_of("X: y\r\n") + "\r\n");
}

Task<Verdict> check_empty_lines(const Site& site, const Case&) {
  return check_dropped(site, flood_of("\r\n") + get_request(site));
}

}  // namespace

void add_limit_scripts(CaseBook& book) {
  book.add("limits", "target", "a target of 4 MiB", check_target);
  book.add("limits", "field-bytes", "a field of 4 MiB", check_field_bytes);
  book.add("limits", "field-count", "700,000 fields", check_field_count);
  book.add("limits", "body", "a body of 1 TiB is announced", check_body);
  book.add("limits", "chunk-extensions", "4 MiB of chunk extensions", check_extensions);
  book.add("limits", "trailers", "4 MiB of trailers", check_trailers);
  book.add("limits", "empty-lines", "4 MiB of empty lines before a request", check_empty_lines);
}

}  // namespace weir::check

// Cases about clients that take their time, and about those that go away.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <string>
#include <string_view>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/conversation.hpp"
#include "tools/weir/check/probe.hpp"
#include "tools/weir/check/scripts.hpp"
#include "weir/task/sleep.hpp"

namespace weir::check {
namespace {

using namespace std::chrono_literals;

constexpr Duration drip_interval = 500ms;
constexpr std::size_t vanishing = 20;
constexpr std::size_t crowd = 100;
constexpr std::size_t unread_requests_max = std::size_t{16} << 20;  // bytes

std::string seconds(Duration length) {
  std::string text(32, '\0');
  const double value = std::chrono::duration<double>(length).count();
  const int size = std::snprintf(text.data(), text.size(), "%.1f s", value);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

Until any_answer(Duration longest) {
  Until until;
  until.finals = 1;
  until.longest = longest;
  return until;
}

/// What a slow client sends: first this, then a piece every half a second.
struct Drip {
  std::string first;
  std::string piece;
};

/// The server must end the connection, with or without an answer, before the deadline.
Task<Verdict> check_drip(const Site& site, Drip drip) {
  const std::string wanted = "cut off within " + seconds(site.slow_deadline);
  const Context context = co_await this_context();
  const Instant start = context.loop->host().now();
  const Instant deadline = after(start, site.slow_deadline);
  Conversation talk(site);
  bool going = co_await talk.open();
  if (going) going = co_await talk.send(drip.first, site.timeout);
  while (!talk.over() && talk.reader().fault().empty() && context.loop->host().now() < deadline &&
         !context.cancelled()) {
    const bool ended = co_await talk.hear_end(drip_interval);
    if (ended) break;
    // After the answer of a server that has lost its patience, the end follows by itself.
    if (going && talk.finals() == 0) going = co_await talk.send(drip.piece, drip_interval);
  }
  const Outcome outcome = talk.outcome();
  const Duration taken = context.loop->host().now() - start;
  const std::string came = describe(outcome) + " after " + seconds(taken);
  const bool right = talk.over() && outcome.failure.empty() && outcome.fault.empty();
  Verdict verdict = right ? passed(wanted, came) : failed(wanted, came);
  verdict.sent = drip.first + drip.piece;
  co_return verdict;
}

std::string head(const Site& site, std::string_view method, const std::string& path) {
  return std::string(method) + " " + path + " HTTP/1.1\r\nHost: " + site.authority + "\r\n";
}

Task<Verdict> check_head_bytes(const Site& site, const Case&) {
  Drip drip;
  drip.first = head(site, "GET", site.path) + "X: ";
  drip.piece = "a";
  return check_drip(site, std::move(drip));
}

Task<Verdict> check_head_lines(const Site& site, const Case&) {
  Drip drip;
  drip.first = head(site, "GET", site.path);
  drip.piece = "X: y\r\n";
  return check_drip(site, std::move(drip));
}

Task<Verdict> check_body(const Site& site, const Case&) {
  Drip drip;
  drip.first = head(site, "POST", site.post_path) + "Content-Length: 10000\r\n\r\n";
  drip.piece = "a";
  return check_drip(site, std::move(drip));
}

Task<Verdict> check_chunks(const Site& site, const Case&) {
  Drip drip;
  drip.first = head(site, "POST", site.post_path) + "Transfer-Encoding: chunked\r\n\r\n";
  drip.piece = "1\r\na\r\n";
  return check_drip(site, std::move(drip));
}

Task<Verdict> check_silence(const Site& site, std::string first) {
  const std::string wanted = "closed within " + seconds(site.idle_deadline);
  const Context context = co_await this_context();
  const Instant start = context.loop->host().now();
  Conversation talk(site);
  const bool opened = co_await talk.open();
  if (opened && !first.empty()) co_await talk.ask(first, any_answer(site.timeout));
  const bool ended = co_await talk.hear_end(site.idle_deadline);
  const Outcome outcome = talk.outcome();
  const Duration taken = context.loop->host().now() - start;
  const std::string came = describe(outcome) + " after " + seconds(taken);
  if (!outcome.failure.empty() || !outcome.fault.empty()) co_return failed(wanted, came);
  if (ended) co_return passed(wanted, came);
  if (site.idle_must_end) co_return failed(wanted, came);
  co_return not_applicable(wanted, came + ": no rule says when; --idle-deadline does");
}

Task<Verdict> check_idle(const Site& site, const Case&) {
  return check_silence(site, std::string());
}

Task<Verdict> check_idle_after_an_answer(const Site& site, const Case&) {
  return check_silence(site, get_request(site));
}

// ---- One who does not read ----------------------------------------------------------------------

Task<Verdict> check_reader(const Site& site, const Case&) {
  const std::string wanted = "it stops reading requests, and serves others";
  std::string batch;
  while (batch.size() < 4096) batch += get_request(site);
  Conversation talk(site);
  const bool opened = co_await talk.open();
  std::size_t sent = 0;
  bool going = opened;
  while (going && sent < unread_requests_max) {
    going = co_await talk.send(batch, 1s);
    sent += batch.size();
  }
  std::string came = std::to_string(sent >> 10U) + " KiB of requests were taken";
  Verdict verdict = going ? failed(wanted, came + ", and more would be") : passed(wanted, came);
  for (int look = 0; opened && look < 3; ++look) {
    const std::string trouble = co_await probe(site);
    if (!trouble.empty()) verdict = failed(wanted, came + "; others get: " + trouble);
    const auto slept = co_await sleep(500ms);
    static_cast<void>(slept);
  }
  if (!opened) verdict = failed(wanted, describe(talk.outcome()));
  talk.close();
  verdict.sent = get_request(site);
  co_return verdict;
}

// ---- Those who go away --------------------------------------------------------------------------

Task<Verdict> check_half_close(const Site& site, const Case&) {
  const std::string wanted = "the answer, then the end";
  Conversation talk(site);
  const bool opened = co_await talk.open();
  const std::string request = get_request(site);
  bool sent = false;
  if (opened) sent = co_await talk.send(request, site.timeout);
  if (sent) talk.finish();
  const bool ended = co_await talk.hear_end(site.timeout);
  const Outcome outcome = talk.outcome();
  const bool right = ended && !outcome.reset && outcome.finals == 1 && outcome.fault.empty();
  const std::string came = describe(outcome) + (ended ? "" : ", not closed");
  Verdict verdict = right ? passed(wanted, came) : failed(wanted, came);
  verdict.sent = request;
  co_return verdict;
}

Task<Verdict> check_half_a_head(const Site& site, const Case&) {
  const std::string wanted = "the end of the connection";
  const std::string half = head(site, "GET", site.path);
  Conversation talk(site);
  const bool opened = co_await talk.open();
  bool sent = false;
  if (opened) sent = co_await talk.send(half, site.timeout);
  if (sent) talk.finish();
  const bool ended = co_await talk.hear_end(site.timeout);
  const std::string came = ended ? "closed" : describe(talk.outcome());
  Verdict verdict = opened && ended ? passed(wanted, came) : failed(wanted, came);
  verdict.sent = half;
  co_return verdict;
}

/// Closed while an answer is unread: the server sees a reset in the middle of the next request.
Task<Verdict> check_vanishing(const Site& site, const Case&) {
  const std::string wanted = "others are served";
  const std::string sent = get_request(site) + head(site, "POST", site.post_path);
  for (std::size_t each = 0; each < vanishing; ++each) {
    Conversation talk(site);
    const bool opened = co_await talk.open();
    if (!opened) co_return failed(wanted, describe(talk.outcome()));
    const bool went = co_await talk.send(sent, site.timeout);
    const auto slept = co_await sleep(20ms);
    static_cast<void>(went);
    static_cast<void>(slept);
    talk.close();
  }
  const std::string trouble = co_await probe(site);
  Verdict verdict = trouble.empty() ? passed(wanted, "served") : failed(wanted, trouble);
  verdict.sent = sent;
  co_return verdict;
}

Task<Verdict> check_crowd(const Site& site, const Case&) {
  const std::string wanted = "others are served meanwhile";
  const std::string half = head(site, "GET", site.path);
  std::deque<Conversation> all;
  for (std::size_t each = 0; each < crowd; ++each) {
    Conversation& talk = all.emplace_back(site);
    const bool opened = co_await talk.open();
    if (!opened) co_return failed(wanted, describe(talk.outcome()));
    const bool sent = co_await talk.send(half, site.timeout);
    static_cast<void>(sent);
  }
  const std::string trouble = co_await probe(site);
  Verdict verdict = trouble.empty() ? passed(wanted, "served") : failed(wanted, trouble);
  verdict.sent = half;
  co_return verdict;
}

}  // namespace

void add_slow_scripts(CaseBook& book) {
  book.add("slow", "head-bytes", "a field's value, byte by byte", check_head_bytes);
  book.add("slow", "head-lines", "one field after the other", check_head_lines);
  book.add("slow", "body", "a body, byte by byte", check_body);
  book.add("slow", "chunks", "chunks of one byte", check_chunks);
  book.add("slow", "reader", "requests, whose answers nobody reads", check_reader);
  book.add("slow", "idle", "a connection on which nothing is asked", check_idle);
  book.add("slow", "idle-after-an-answer", "nothing more is asked", check_idle_after_an_answer);
  book.add("slow", "half-close", "a request, and the end of sending", check_half_close);
  book.add("slow", "half-a-head", "half a head, and the end of sending", check_half_a_head);
  book.add("slow", "vanishing", "20 that go away in the middle of a request", check_vanishing);
  book.add("slow", "crowd", "100 who have sent half a head", check_crowd);
}

}  // namespace weir::check

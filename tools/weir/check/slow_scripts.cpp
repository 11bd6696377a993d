// Cases about clients that are slow, and about clients that disconnect.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <string>
#include <string_view>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_connection.hpp"
#include "tools/weir/check/probe.hpp"
#include "tools/weir/check/scripts.hpp"
#include "weir/task/sleep.hpp"

namespace weir::check {
namespace {

using namespace std::chrono_literals;

constexpr Duration drip_interval = 500ms;
constexpr std::size_t aborting_clients = 20;
constexpr std::size_t half_open_clients = 100;
constexpr std::size_t unread_requests_max = std::size_t{16} << 20;  // bytes

std::string seconds(Duration length) {
  std::string text(32, '\0');
  const double value = std::chrono::duration<double>(length).count();
  const int size = std::snprintf(text.data(), text.size(), "%.1f s", value);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

StopCondition any_answer(Duration wait_timeout) {
  StopCondition until;
  until.final_count = 1;
  until.wait_timeout = wait_timeout;
  return until;
}

/// The data of a slow client: first `first`, then one `piece` every half a second.
struct Drip {
  std::string first;
  std::string piece;
};

/// Checks that the server ends the connection before the deadline, with or without a response.
Task<Verdict> check_drip(const CheckTarget& target, Drip drip) {
  const std::string expected = "cut off within " + seconds(target.slow_timeout);
  const Context context = co_await this_context();
  const Instant start = context.loop->platform().now();
  const Instant deadline = after(start, target.slow_timeout);
  CheckConnection connection(target);
  bool going = co_await connection.open();
  if (going) going = co_await connection.send(drip.first, target.timeout);
  while (!connection.is_closed() && connection.reader().protocol_error().empty() &&
         context.loop->platform().now() < deadline && !context.cancelled()) {
    const bool ended = co_await connection.wait_for_close(drip_interval);
    if (ended) break;
    // A server that has timed out closes on its own after its response.
    if (going && connection.final_count() == 0)
      going = co_await connection.send(drip.piece, drip_interval);
  }
  const Outcome outcome = connection.outcome();
  const Duration taken = context.loop->platform().now() - start;
  const std::string actual = describe(outcome) + " after " + seconds(taken);
  const bool right =
      connection.is_closed() && outcome.connect_error.empty() && outcome.protocol_error.empty();
  Verdict verdict = right ? passed(expected, actual) : failed(expected, actual);
  verdict.sent = drip.first + drip.piece;
  co_return verdict;
}

std::string head(const CheckTarget& target, std::string_view method, const std::string& path) {
  return std::string(method) + " " + path + " HTTP/1.1\r\nHost: " + target.authority + "\r\n";
}

Task<Verdict> check_head_bytes(const CheckTarget& target, const Case&) {
  Drip drip;
  drip.first = head(target, "GET", target.path) + "X: ";
  drip.piece = "a";
  return check_drip(target, std::move(drip));
}

Task<Verdict> check_head_lines(const CheckTarget& target, const Case&) {
  Drip drip;
  drip.first = head(target, "GET", target.path);
  drip.piece = "X: y\r\n";
  return check_drip(target, std::move(drip));
}

Task<Verdict> check_body(const CheckTarget& target, const Case&) {
  Drip drip;
  drip.first = head(target, "POST", target.post_path) + "Content-Length: 10000\r\n\r\n";
  drip.piece = "a";
  return check_drip(target, std::move(drip));
}

Task<Verdict> check_chunks(const CheckTarget& target, const Case&) {
  Drip drip;
  drip.first = head(target, "POST", target.post_path) + "Transfer-Encoding: chunked\r\n\r\n";
  drip.piece = "1\r\na\r\n";
  return check_drip(target, std::move(drip));
}

Task<Verdict> check_silence(const CheckTarget& target, std::string first) {
  const std::string expected = "closed within " + seconds(target.idle_timeout);
  const Context context = co_await this_context();
  const Instant start = context.loop->platform().now();
  CheckConnection connection(target);
  const bool opened = co_await connection.open();
  if (opened && !first.empty())
    co_await connection.send_and_receive(first, any_answer(target.timeout));
  const bool ended = co_await connection.wait_for_close(target.idle_timeout);
  const Outcome outcome = connection.outcome();
  const Duration taken = context.loop->platform().now() - start;
  const std::string actual = describe(outcome) + " after " + seconds(taken);
  if (!outcome.connect_error.empty() || !outcome.protocol_error.empty())
    co_return failed(expected, actual);
  if (ended) co_return passed(expected, actual);
  if (target.idle_must_close) co_return failed(expected, actual);
  co_return not_applicable(expected, actual + ": no rule sets a limit (use --idle-timeout)");
}

Task<Verdict> check_idle(const CheckTarget& target, const Case&) {
  return check_silence(target, std::string());
}

Task<Verdict> check_idle_after_an_answer(const CheckTarget& target, const Case&) {
  return check_silence(target, get_request(target));
}

// ---- A client that does not read ----------------------------------------------------------------

Task<Verdict> check_reader(const CheckTarget& target, const Case&) {
  const std::string expected = "the server stops reading requests and serves other clients";
  std::string batch;
  while (batch.size() < 4096) batch += get_request(target);
  CheckConnection connection(target);
  const bool opened = co_await connection.open();
  std::size_t sent = 0;
  bool going = opened;
  while (going && sent < unread_requests_max) {
    going = co_await connection.send(batch, 1s);
    sent += batch.size();
  }
  std::string actual = "the server read " + std::to_string(sent >> 10U) + " KiB of requests";
  Verdict verdict =
      going ? failed(expected, actual + " and did not stop") : passed(expected, actual);
  for (int look = 0; opened && look < 3; ++look) {
    const std::string trouble = co_await probe(target);
    if (!trouble.empty()) verdict = failed(expected, actual + "; other clients get: " + trouble);
    const auto slept = co_await sleep(500ms);
    static_cast<void>(slept);
  }
  if (!opened) verdict = failed(expected, describe(connection.outcome()));
  connection.close();
  verdict.sent = get_request(target);
  co_return verdict;
}

// ---- Clients that disconnect --------------------------------------------------------------------

Task<Verdict> check_half_close(const CheckTarget& target, const Case&) {
  const std::string expected = "the answer, then the server closes";
  CheckConnection connection(target);
  const bool opened = co_await connection.open();
  const std::string request = get_request(target);
  bool sent = false;
  if (opened) sent = co_await connection.send(request, target.timeout);
  if (sent) connection.finish_writing();
  const bool ended = co_await connection.wait_for_close(target.timeout);
  const Outcome outcome = connection.outcome();
  const bool right =
      ended && !outcome.reset && outcome.final_count == 1 && outcome.protocol_error.empty();
  const std::string actual = describe(outcome) + (ended ? "" : ", not closed");
  Verdict verdict = right ? passed(expected, actual) : failed(expected, actual);
  verdict.sent = request;
  co_return verdict;
}

Task<Verdict> check_half_a_head(const CheckTarget& target, const Case&) {
  const std::string expected = "the server closes the connection";
  const std::string half = head(target, "GET", target.path);
  CheckConnection connection(target);
  const bool opened = co_await connection.open();
  bool sent = false;
  if (opened) sent = co_await connection.send(half, target.timeout);
  if (sent) connection.finish_writing();
  const bool ended = co_await connection.wait_for_close(target.timeout);
  const std::string actual = ended ? "closed" : describe(connection.outcome());
  Verdict verdict = opened && ended ? passed(expected, actual) : failed(expected, actual);
  verdict.sent = half;
  co_return verdict;
}

/// Closes with an unread response, so that the server gets a reset in the middle of the next
/// request.
Task<Verdict> check_aborting_clients(const CheckTarget& target, const Case&) {
  const std::string expected = "other clients are served";
  const std::string sent = get_request(target) + head(target, "POST", target.post_path);
  for (std::size_t each = 0; each < aborting_clients; ++each) {
    CheckConnection connection(target);
    const bool opened = co_await connection.open();
    if (!opened) co_return failed(expected, describe(connection.outcome()));
    const bool went = co_await connection.send(sent, target.timeout);
    const auto slept = co_await sleep(20ms);
    static_cast<void>(went);
    static_cast<void>(slept);
    connection.close();
  }
  const std::string trouble = co_await probe(target);
  Verdict verdict = trouble.empty() ? passed(expected, "served") : failed(expected, trouble);
  verdict.sent = sent;
  co_return verdict;
}

Task<Verdict> check_half_open_clients(const CheckTarget& target, const Case&) {
  const std::string expected = "other clients are served";
  const std::string half = head(target, "GET", target.path);
  std::deque<CheckConnection> all;
  for (std::size_t each = 0; each < half_open_clients; ++each) {
    CheckConnection& connection = all.emplace_back(target);
    const bool opened = co_await connection.open();
    if (!opened) co_return failed(expected, describe(connection.outcome()));
    const bool sent = co_await connection.send(half, target.timeout);
    static_cast<void>(sent);
  }
  const std::string trouble = co_await probe(target);
  Verdict verdict = trouble.empty() ? passed(expected, "served") : failed(expected, trouble);
  verdict.sent = half;
  co_return verdict;
}

}  // namespace

void add_slow_scripts(CaseRegistry& registry) {
  registry.add("slow", "head-bytes", "a header's value, byte by byte", check_head_bytes);
  registry.add("slow", "head-lines", "one header after the other", check_head_lines);
  registry.add("slow", "body", "a body, byte by byte", check_body);
  registry.add("slow", "chunks", "chunks of one byte", check_chunks);
  registry.add("slow", "reader", "requests whose responses are not read", check_reader);
  registry.add("slow", "idle", "a connection without a request", check_idle);
  registry.add("slow", "idle-after-an-answer", "no request after a response",
               check_idle_after_an_answer);
  registry.add("slow", "half-close", "a request, then the end of sending", check_half_close);
  registry.add("slow", "half-a-head", "half a head, then the end of sending", check_half_a_head);
  registry.add("slow", "vanishing", "20 clients that disconnect in the middle of a request",
               check_aborting_clients);
  registry.add("slow", "crowd", "100 clients that have sent half a head", check_half_open_clients);
}

}  // namespace weir::check

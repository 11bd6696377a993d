// Cases that send more than a server should accept.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_connection.hpp"
#include "tools/weir/check/exchange.hpp"
#include "tools/weir/check/scripts.hpp"
#include "tools/weir/check/wire_check.hpp"

namespace weir::check {
namespace {

constexpr std::size_t flood_bytes = std::size_t{4} << 20;

/// Returns repetitions of `piece`, with about as many bytes as a flood has.
std::string flood_of(std::string_view piece) {
  std::string text;
  text.reserve(flood_bytes + piece.size());
  while (text.size() < flood_bytes) text += piece;
  return text;
}

/// Returns the beginning of a flood, which the report shows.
std::string beginning(const std::string& sent) {
  return sent.substr(0, 200);
}

Task<Outcome> outcome_of(const CheckTarget& target, const std::string& sent) {
  CheckConnection connection(target);
  StopCondition until;
  until.final_count = 1;
  until.wait_timeout = target.timeout;
  const bool opened = co_await connection.open();
  if (opened) co_await connection.send_and_receive(sent, until);
  // A server that keeps reading may still close.
  const Outcome so_far = connection.outcome();
  const Response* const first = so_far.first();
  if (first != nullptr && first->status < 400) {
    const bool ended = co_await connection.wait_for_close(
        std::min<Duration>(target.timeout, std::chrono::seconds(1)));
    static_cast<void>(ended);
  }
  co_return connection.outcome();
}

/// Judges the response to a flood in the head. `right` is the status that the rule requires; 0:
/// any 4xx.
Verdict judge_head(const CheckTarget& target, const Outcome& outcome, int right,
                   std::string expected) {
  const std::string actual = describe(outcome);
  const Response* const first = outcome.first();
  if (!outcome.connect_error.empty() || !outcome.protocol_error.empty())
    return failed(expected, actual);
  if (first == nullptr) {
    if (!outcome.closed_by_server && !outcome.reset) return failed(expected, actual);
    return not_applicable(expected, actual + ": cut off without a response");
  }
  const bool refused = first->status >= 400 && first->status < 500;
  if (first->status == right) return passed(expected, actual);
  if (refused && right == 0 && first->status != 404 && first->status != 405) {
    return passed(expected, actual);
  }
  if (refused && right != 0 && first->status != 404 && first->status != 405) {
    if (target.lenient) return passed(expected, actual);
    return failed(expected, actual + " (rejected with another status; --lenient accepts it)");
  }
  return failed(expected,
                actual + ": the server accepts " + std::to_string(flood_bytes >> 20U) + " MiB");
}

Task<Verdict> check_target(const CheckTarget& target, const Case&) {
  const std::string request_target = "/" + std::string(flood_bytes, 'a');
  const std::string sent = get_request(target, {}, request_target);
  const Outcome outcome = co_await outcome_of(target, sent);
  Verdict verdict = judge_head(target, outcome, 414, "414");
  verdict.sent = beginning(sent);
  co_return verdict;
}

Task<Verdict> check_headers(const CheckTarget& target, std::string headers) {
  const std::string sent = get_request(target, headers);
  const Outcome outcome = co_await outcome_of(target, sent);
  Verdict verdict = judge_head(target, outcome, 0, "431 or another 4xx");
  verdict.sent = beginning(sent);
  co_return verdict;
}

Task<Verdict> check_header_bytes(const CheckTarget& target, const Case&) {
  return check_headers(target, "X: " + std::string(flood_bytes, 'a') + "\r\n");
}

Task<Verdict> check_header_count(const CheckTarget& target, const Case&) {
  return check_headers(target, flood_of("X: y\r\n"));
}

/// Sends more header lines than some servers count. An answer says so; silence does not.
Task<Verdict> check_field_lines(const CheckTarget& target, std::size_t count) {
  const std::string expected = "an answer: that of fewer lines, 431 or another 4xx";
  std::string fields;
  for (std::size_t index = 2; index <= count; ++index) {  // Host is the first line
    fields += "X-Check-" + std::to_string(index) + ": v\r\n";
  }
  const std::string sent = get_request(target, fields);
  const Exchange made = co_await exchange(target, "GET", sent, 1);
  const Outcome& outcome = made.outcome;
  const Response* const first = outcome.first();
  const bool right = first != nullptr && outcome.protocol_error.empty() &&
                     (first->status == target.get.status || first->status / 100 == 4);
  const std::string actual = describe(outcome);
  co_return with_sent(right ? passed(expected, actual) : failed(expected, actual), sent);
}

Task<Verdict> check_101_lines(const CheckTarget& target, const Case&) {
  return check_field_lines(target, 101);
}

Task<Verdict> check_1000_lines(const CheckTarget& target, const Case&) {
  return check_field_lines(target, 1000);
}

// ---- Bodies that a server refuses early ---------------------------------------------------------

constexpr std::size_t upload_bytes = std::size_t{16} << 20;
constexpr std::size_t upload_piece = std::size_t{64} << 10;

/// Sends a large body and reads nothing before its end, as many clients do. A server that refuses
/// the body early must read on, or else a reset destroys its answer (RFC 9112 9.6).
Task<Verdict> check_upload(const CheckTarget& target, const std::string& head,
                           const std::string& piece, const std::string& end) {
  const std::string expected = "an answer, after all of the body is sent";
  CheckConnection connection(target);
  const bool opened = co_await connection.open();
  bool going = opened;
  if (going) going = co_await connection.send(head, target.timeout);
  for (std::size_t sent = 0; going && sent < upload_bytes; sent += upload_piece) {
    going = co_await connection.send(piece, target.timeout);
  }
  if (going && !end.empty()) going = co_await connection.send(end, target.timeout);
  co_await connection.receive(until_final_responses(target, 1));
  const Outcome outcome = connection.outcome();
  const std::string actual = describe(outcome) + (going ? "" : ", and the body cannot be sent");
  if (outcome.first() == nullptr || !outcome.protocol_error.empty()) {
    co_return with_sent(failed(expected, actual), head);
  }
  if (!going) co_return with_sent(lenient_verdict(target, expected, actual), head);
  co_return with_sent(passed(expected, actual), head);
}

Task<Verdict> check_long_upload(const CheckTarget& target, const Case&) {
  const std::string head =
      post_head(target, "Content-Length: " + std::to_string(upload_bytes) + "\r\n");
  co_return co_await check_upload(target, head, std::string(upload_piece, 'a'), {});
}

Task<Verdict> check_chunked_upload(const CheckTarget& target, const Case&) {
  const std::string head = post_head(target, "Transfer-Encoding: chunked\r\n");
  const std::string chunk = "10000\r\n" + std::string(upload_piece, 'a') + "\r\n";
  co_return co_await check_upload(target, head, chunk, "0\r\n\r\n");
}

/// Announces the size only. A server with a limit can refuse immediately.
Task<Verdict> check_body(const CheckTarget& target, const Case&) {
  const std::string expected = "413 or another 4xx";
  const std::string sent =
      post_head(target, "Content-Length: 1099511627776\r\n") + std::string(64 * 1024, 'a');
  const Outcome outcome = co_await outcome_of(target, sent);
  const std::string actual = describe(outcome);
  const Response* const first = outcome.first();
  const bool refused = first != nullptr && first->status >= 400 && first->status < 500;
  Verdict verdict;
  if (!outcome.connect_error.empty() || !outcome.protocol_error.empty()) {
    verdict = failed(expected, actual);
  } else if (refused) {
    verdict = passed(expected, actual);
  } else if (first != nullptr) {
    verdict = not_applicable(expected, actual + ": answered without the body");
  } else if (outcome.closed_by_server || outcome.reset) {
    verdict = not_applicable(expected, actual + ": cut off without a response");
  } else {
    verdict = not_applicable(expected, actual + ": no limit below 1 TiB observed");
  }
  verdict.sent = beginning(sent);
  co_return verdict;
}

/// Judges the response to data that a server reads and drops. It is unlimited unless the server
/// counts it.
Task<Verdict> check_dropped(const CheckTarget& target, std::string sent) {
  const std::string expected = "a 4xx answer or a closed connection";
  const Outcome outcome = co_await outcome_of(target, sent);
  const std::string actual = describe(outcome);
  const Response* const first = outcome.first();
  const bool accepted = first != nullptr && first->status < 400;
  Verdict verdict;
  if (!outcome.connect_error.empty() || !outcome.protocol_error.empty()) {
    verdict = failed(expected, actual);
  } else if (accepted && (outcome.closed_by_server || outcome.reset)) {
    verdict =
        not_applicable(expected, actual + ": the server answered before it read the whole request");
  } else if (accepted || (first == nullptr && !outcome.closed_by_server && !outcome.reset)) {
    verdict = failed(expected, actual + ": the server accepts 4 MiB of useless input");
  } else {
    verdict = passed(expected, actual);
  }
  verdict.sent = beginning(sent);
  co_return verdict;
}

Task<Verdict> check_extensions(const CheckTarget& target, const Case&) {
  const std::string chunk = "1;a=" + std::string(900, 'b') + "\r\nx\r\n";
  return check_dropped(
      target, post_head(target, "Transfer-Encoding: chunked\r\n") + flood_of(chunk) + "0\r\n\r\n");
}

Task<Verdict> check_trailers(const CheckTarget& target, const Case&) {
  return check_dropped(target, post_head(target, "Transfer-Encoding: chunked\r\n") + "0\r\n" +
                                   flood_of("X: y\r\n") + "\r\n");
}

Task<Verdict> check_empty_lines(const CheckTarget& target, const Case&) {
  return check_dropped(target, flood_of("\r\n") + get_request(target));
}

}  // namespace

void add_limit_scripts(CaseRegistry& registry) {
  registry.add("limits", "target", "a target of 4 MiB", check_target);
  registry.add("limits", "header-bytes", "a header of 4 MiB", check_header_bytes);
  registry.add("limits", "header-count", "700,000 headers", check_header_count);
  registry.add("limits", "lines-101", "101 header lines", check_101_lines);
  registry.add("limits", "lines-1000", "1,000 header lines", check_1000_lines);
  registry.add("limits", "upload", "a body of 16 MiB, whose client reads nothing before its end",
               check_long_upload);
  registry.add("limits", "upload-chunked", "the same in chunks", check_chunked_upload);
  registry.add("limits", "body", "a body of 1 TiB is announced", check_body);
  registry.add("limits", "chunk-extensions", "4 MiB of chunk extensions", check_extensions);
  registry.add("limits", "trailers", "4 MiB of trailers", check_trailers);
  registry.add("limits", "empty-lines", "4 MiB of empty lines before a request", check_empty_lines);
}

}  // namespace weir::check

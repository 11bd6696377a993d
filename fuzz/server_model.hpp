// Checks the answers of server_service against the bytes of a client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/server_service.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http_testing/detail/http_answers.hpp"

namespace weir::fuzz {

/// A WholeRequest is a request that has arrived with its whole body.
struct WholeRequest {
  std::string method;
  std::string path;
  std::string body;
  bool keep_alive;
};

struct SentRequests {
  std::vector<WholeRequest> whole;
  bool more = false;          ///< True if incomplete or invalid bytes follow
  bool more_is_head = false;  ///< True if those bytes begin with "HEAD "
  /// A further request with a complete head and an incomplete body.
  std::optional<WholeRequest> half = {};
};

/// Takes the chunked body from the front of `text`. Returns true if the body is complete.
inline bool take_chunked(std::string_view& text, const http::ChunkLimits& limits,
                         std::string& body) {
  http::ChunkedDecoder decoder(limits);
  for (;;) {
    const auto step = decoder.next(text);
    using Kind = http::ChunkedDecoder::Step::Kind;
    if (step.kind == Kind::need_more || step.kind == Kind::error) return false;
    body += step.data;
    text.remove_prefix(step.consumed);
    if (step.kind == Kind::end) return true;
  }
}

inline std::string_view skip_empty_lines(std::string_view text) {
  constexpr std::string_view empty_line = "\r\n";
  while (text.starts_with(empty_line)) text.remove_prefix(empty_line.size());
  return text;
}

inline SentRequests requests_in(std::string_view text, const http::Limits& limits) {
  SentRequests sent;
  http::HeadParser parser(limits.head);
  http::RequestHead head;
  while (!text.empty()) {
    const http::ParseResult parsed = parser.parse(text, head);
    sent.more = true;
    sent.more_is_head = skip_empty_lines(text).starts_with("HEAD ");
    if (parsed.kind != http::ParseResult::Kind::complete) break;
    WholeRequest request{
        std::string(head.method_text()), std::string(head.path()), {}, head.keep_alive()};
    text.remove_prefix(parsed.consumed);
    sent.half = request;
    if (head.chunked()) {
      if (!take_chunked(text, limits.chunks, request.body)) break;
    } else if (head.content_length() > text.size()) {
      break;
    } else {
      request.body = text.substr(0, static_cast<std::size_t>(head.content_length()));
      text.remove_prefix(request.body.size());
    }
    sent.half.reset();
    sent.whole.push_back(std::move(request));
    sent.more = !text.empty() && sent.whole.back().keep_alive;
    if (!sent.more) break;
  }
  return sent;
}

/// Returns true if `text` is zero or more repetitions of `line`.
inline bool repeats(std::string_view text, std::string_view line) {
  while (text.starts_with(line)) text.remove_prefix(line.size());
  return text.empty();
}

/// Returns true if `answer` is a correct answer to `request` without any failure.
inline bool answers(const sim::HttpResponse& answer, const WholeRequest& request) {
  if (request.method == "HEAD") return answer.body.empty();
  if (request.method == "OPTIONS") return true;
  if (request.method == "GET") return repeats(answer.body, plain_line(request.path));
  if (answer.body == plain_line(request.path)) return true;
  return answer.body == echo_line(request.path, request.body.size(), byte_sum(request.body));
}

inline bool has_connection_close(const sim::HttpResponse& answer) {
  return answer.header("Connection") == "close";
}

/// Returns true if `answer` may answer a request with an incomplete body. The handler has not
/// read the body in this case, and the server closes the connection.
inline bool answers_early(const sim::HttpResponse& answer, const WholeRequest& half) {
  if (!has_connection_close(answer)) return false;
  if (half.method == "HEAD") return answer.body.empty();
  return half.method == "OPTIONS" || repeats(answer.body, plain_line(half.path));
}

struct ClientRecord {
  std::string_view sent;
  std::string_view received;
  bool fault_free;  ///< True if nothing has happened that may lose an answer
};

/// Returns the violation in what a client has received, or an empty string.
inline std::string violation_of(const ClientRecord& record, const http::Limits& limits) {
  const SentRequests sent = requests_in(record.sent, limits);
  const bool rejected = record.received.starts_with("HTTP/1.1 503");
  std::vector<std::string_view> methods;
  for (const WholeRequest& each : sent.whole) methods.push_back(each.method);
  if (sent.more && sent.more_is_head) methods.push_back("HEAD");
  if (rejected) methods.clear();
  auto all = sim::parse_http_responses(record.received, methods);
  std::erase_if(all,
                [](const sim::HttpResponse& each) { return each.complete && each.status == 100; });
  const std::size_t most = sent.whole.size() + (sent.more || rejected ? 1 : 0);
  if (all.size() > most) return "more answers than requests";
  for (std::size_t number = 0; number < all.size(); ++number) {
    const sim::HttpResponse& answer = all[number];
    const bool last = number + 1 == all.size();
    if (answer.status == 0 && !answer.body.empty()) return "the answer is not HTTP";
    if (!answer.complete && !(last && (!record.fault_free || answer.until_close)))
      return "a cut answer";
    if (!answer.complete && !answer.until_close) continue;
    if (answer.status < 200) return "an unexpected interim answer";
    if (has_connection_close(answer) && !last) return "an answer after the last one";
    if (answer.status >= 400 && (number == sent.whole.size() || last)) continue;
    if (number == sent.whole.size()) {
      if (sent.half && answers_early(answer, *sent.half)) continue;
      return "an answer to half a request";
    }
    const WholeRequest& request = sent.whole[number];
    const bool simple = request.method == "GET" && request.path == "/" && request.body.empty();
    if (answer.status >= 400 && !simple) continue;
    if (answer.status >= 400) return "a failure for no reason";
    if (answer.complete && !answers(answer, request)) return "the answer to another request";
  }
  if (!record.fault_free || all.size() >= sent.whole.size()) return {};
  const bool told = !all.empty() && (has_connection_close(all.back()) || all.back().until_close);
  return told ? "" : "a request without an answer";
}

}  // namespace weir::fuzz

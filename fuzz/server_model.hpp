// What server_service may answer to bytes that one client has sent.
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
#include "weir/testing/http_answers.hpp"

namespace weir::fuzz {

/// A request that has come with its whole body.
struct WholeRequest {
  std::string method;
  std::string path;
  std::string body;
  bool keep_alive;
};

struct SentRequests {
  std::vector<WholeRequest> whole;
  bool more = false;  ///< something stands behind them: the start of a request, or what is none
  bool more_is_head = false;  ///< and it asks for a head only
  /// One behind them of which the head is whole, and the body is not.
  std::optional<WholeRequest> half = {};
};

/// Takes the chunked body from the front of `text`. Returns whether it is whole.
inline bool take_chunked(std::string_view& text, const http::ChunkLimits& limits,
                         std::string& body) {
  http::ChunkedDecoder decoder(limits);
  for (;;) {
    const auto step = decoder.next(text);
    using Kind = http::ChunkedDecoder::Step::Kind;
    if (step.kind == Kind::need_more || step.kind == Kind::refused) return false;
    body += step.data;
    text.remove_prefix(step.consumed);
    if (step.kind == Kind::end) return true;
  }
}

inline std::string_view behind_empty_lines(std::string_view text) {
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
    sent.more_is_head = behind_empty_lines(text).starts_with("HEAD ");
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

/// Whether `text` is `line`, any number of times.
inline bool repeats(std::string_view text, std::string_view line) {
  while (text.starts_with(line)) text.remove_prefix(line.size());
  return text.empty();
}

/// Whether it is the right answer where all has gone well.
inline bool answers(const HttpAnswer& answer, const WholeRequest& request) {
  if (request.method == "HEAD") return answer.body.empty();
  if (request.method == "OPTIONS") return true;
  if (request.method == "GET") return repeats(answer.body, plain_line(request.path));
  if (answer.body == plain_line(request.path)) return true;
  return answer.body == echo_line(request.path, request.body.size(), sum_of(request.body));
}

inline bool says_close(const HttpAnswer& answer) {
  return answer.field("Connection") == "close";
}

/// Whether it may be the answer to a request of which the body has not come: of who did not read
/// that, and then nothing is read any more.
inline bool answers_early(const HttpAnswer& answer, const WholeRequest& half) {
  if (!says_close(answer)) return false;
  if (half.method == "HEAD") return answer.body.empty();
  return half.method == "OPTIONS" || repeats(answer.body, plain_line(half.path));
}

struct ClientStory {
  std::string_view sent;
  std::string_view received;
  bool undisturbed;  ///< neither it nor anything else has done what could cost it an answer
};

/// What is wrong with what a client has seen; empty if nothing is.
inline std::string fault_of(const ClientStory& story, const http::Limits& limits) {
  const SentRequests sent = requests_in(story.sent, limits);
  const bool turned_away = story.received.starts_with("HTTP/1.1 503");
  std::vector<std::string_view> methods;
  for (const WholeRequest& each : sent.whole) methods.push_back(each.method);
  if (sent.more && sent.more_is_head) methods.push_back("HEAD");
  if (turned_away) methods.clear();
  auto all = read_http_answers(story.received, methods);
  std::erase_if(all, [](const HttpAnswer& each) { return each.whole && each.status == 100; });
  const std::size_t most = sent.whole.size() + (sent.more || turned_away ? 1 : 0);
  if (all.size() > most) return "more answers than requests";
  for (std::size_t number = 0; number < all.size(); ++number) {
    const HttpAnswer& answer = all[number];
    const bool last = number + 1 == all.size();
    if (answer.status == 0 && !answer.body.empty()) return "no HTTP";
    if (!answer.whole && !(last && (!story.undisturbed || answer.until_end))) return "a cut answer";
    if (!answer.whole && !answer.until_end) continue;
    if (answer.status < 200) return "an interim answer that nobody expects";
    if (says_close(answer) && !last) return "an answer behind the last one";
    if (answer.status >= 400 && (number == sent.whole.size() || last)) continue;
    if (number == sent.whole.size()) {
      if (sent.half && answers_early(answer, *sent.half)) continue;
      return "an answer to half a request";
    }
    const WholeRequest& request = sent.whole[number];
    const bool simple = request.method == "GET" && request.path == "/" && request.body.empty();
    if (answer.status >= 400 && !simple) continue;
    if (answer.status >= 400) return "a failure for no reason";
    if (answer.whole && !answers(answer, request)) return "the answer to another request";
  }
  if (!story.undisturbed || all.size() >= sent.whole.size()) return {};
  const bool told = !all.empty() && (says_close(all.back()) || all.back().until_end);
  return told ? "" : "a request without an answer";
}

}  // namespace weir::fuzz

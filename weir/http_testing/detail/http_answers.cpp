// Collects the responses in a text.
#include "weir/http_testing/detail/http_answers.hpp"

#include <cstddef>

#include "weir/http/detail/h1/response_parser.hpp"

namespace weir::sim {
namespace {

using Event = http::ResponseEvent;

constexpr std::string_view version = "HTTP/1.1 ";

/// Returns limits that no response of a test reaches.
http::ResponseLimits wide_limits() noexcept {
  http::ResponseLimits limits;
  limits.head.request_line_max = limits.head.headers_bytes_max = 16 * 1024 * 1024;
  limits.chunks.trailers_bytes_max = 16 * 1024 * 1024;
  return limits;
}

/// Returns false for another version than HTTP/1.1, and for a status line without the space before
/// the reason. The parser accepts both, but no server of Weir sends them.
bool store_head(const http::ReceivedResponseHead& head, HttpResponse& answer) {
  constexpr std::size_t reason_at = version.size() + 4;
  const std::string_view line = head.bytes().substr(0, head.bytes().find("\r\n"));
  if (!line.starts_with(version) || line.size() < reason_at) return false;
  answer.status = http::code_of(head.status());
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const http::HeaderField field = head.header_at(index);
    answer.headers.emplace_back(field.name, field.value);
  }
  return true;
}

/// Takes the first response of `text`, and all of `text` if nothing can follow it.
HttpResponse take_response(std::string_view& text, http::Method method) {
  HttpResponse answer;
  const std::string_view whole = text;
  http::ResponseParser parser(wide_limits());
  parser.begin(method);
  while (true) {
    const Event event = parser.next(text);
    text.remove_prefix(event.consumed);
    const bool has_head = event.kind == Event::Kind::head || event.kind == Event::Kind::interim;
    const bool strange = has_head && !store_head(parser.head(), answer);
    answer.body += event.data;
    answer.complete = event.kind == Event::Kind::end || event.kind == Event::Kind::interim;
    if (strange || event.kind == Event::Kind::error) {
      text = {};
      if (answer.status == 0) answer.body = whole;
      answer.complete = false;
      return answer;
    }
    if (answer.complete) return answer;
    if (event.kind != Event::Kind::need_more) continue;
    text = {};
    answer.until_close = parser.finish_at_close();
    return answer;
  }
}

/// Returns true if the server may have sent this response before it knew the method. It sends 408
/// if the head is late, and 503 to a connection that it rejects.
bool may_precede_method(const HttpResponse& answer, bool first) noexcept {
  return answer.status == 408 || (answer.status == 503 && first);
}

}  // namespace

std::string HttpResponse::header(std::string_view name) const {
  for (const auto& [each, value] : headers) {
    if (each == name) return value;
  }
  return {};
}

std::vector<HttpResponse> parse_http_responses(std::string_view text,
                                               const std::vector<std::string_view>& methods) {
  std::vector<HttpResponse> answers;
  std::size_t final = 0;
  while (!text.empty()) {
    const std::string_view before = text;
    const bool to_head = final < methods.size() && methods[final] == "HEAD";
    HttpResponse answer = take_response(text, to_head ? http::Method::head : http::Method::get);
    const bool at_end = text.empty() || text.starts_with(version);
    if (to_head && !at_end && may_precede_method(answer, answers.empty())) {
      text = before;
      answer = take_response(text, http::Method::get);
    }
    if (answer.status >= 200) ++final;
    answers.push_back(std::move(answer));
  }
  return answers;
}

std::string statuses_of(const std::vector<HttpResponse>& answers) {
  std::string text;
  for (const HttpResponse& each : answers) {
    if (!text.empty()) text += ' ';
    text += std::to_string(each.status);
    if (!each.complete && !each.until_close) text += '-';
  }
  return text;
}

}  // namespace weir::sim

// A strict reader of framed HTTP/1.1 responses.
#include "weir/http_testing/detail/http_answers.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

namespace weir::sim {
namespace {

constexpr std::string_view version = "HTTP/1.1 ";

/// Takes the text before `mark`, and the mark; nullopt if there is no mark.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view mark) {
  const std::size_t end = text.find(mark);
  if (end == text.npos) return std::nullopt;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end + mark.size());
  return taken;
}

/// Returns the number; std::nullopt if `text` is not a number of this base.
std::optional<std::size_t> number(std::string_view text, int base) {
  std::size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// Returns true if the body is complete.
bool read_chunks(std::string_view& text, std::string& body) {
  for (;;) {
    const auto line = take_until(text, "\r\n");
    const auto size = line ? number(*line, 16) : std::nullopt;
    if (!size) {
      text = {};
      return false;
    }
    if (text.size() < 2 || text.size() - 2 < *size) {
      body += text;
      text = {};
      return false;
    }
    body += text.substr(0, *size);
    const bool framed = text.substr(*size, 2) == "\r\n";
    text.remove_prefix(*size + 2);
    if (*size == 0 || !framed) return framed;
  }
}

bool read_head(std::string_view head, HttpResponse& answer) {
  auto line = take_until(head, "\r\n");
  if (!line || !line->starts_with(version)) return false;
  line->remove_prefix(version.size());
  if (line->substr(std::min<std::size_t>(line->size(), 3), 1) != " ") return false;
  answer.status = static_cast<int>(number(line->substr(0, 3), 10).value_or(0));
  while (line = take_until(head, "\r\n"), line) {
    const std::size_t colon = line->find(": ");
    if (colon == line->npos) return false;
    answer.headers.emplace_back(line->substr(0, colon), line->substr(colon + 2));
  }
  return answer.status >= 100;
}

/// Returns true if the server may have sent this response before it knew the method. It sends 408
/// if the head is late, and 503 to a connection that it rejects.
bool may_precede_method(const HttpResponse& answer, bool first) noexcept {
  return answer.status == 408 || (answer.status == 503 && first);
}

void read_body(std::string_view& text, HttpResponse& answer, bool head_only) {
  const bool bodiless = answer.status < 200 || answer.status == 204 || answer.status == 304;
  const auto sizes = std::ranges::count_if(answer.headers, [](const auto& each) {
    return each.first == "Content-Length" || each.first == "Transfer-Encoding";
  });
  if (sizes > 1) {
    answer.body = std::exchange(text, {});
  } else if (head_only || bodiless) {
    answer.complete = true;
  } else if (answer.header("Transfer-Encoding") == "chunked") {
    answer.complete = read_chunks(text, answer.body);
  } else if (const std::string length = answer.header("Content-Length"); !length.empty()) {
    const std::size_t size = number(length, 10).value_or(text.npos);
    answer.body = text.substr(0, size);
    answer.complete = answer.body.size() == size;
    text.remove_prefix(answer.body.size());
  } else {
    answer.body = text;
    answer.until_close = true;
    text = {};
  }
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
    HttpResponse& answer = answers.emplace_back();
    const std::size_t end = text.find("\r\n\r\n");
    if (end == text.npos) break;
    if (!read_head(text.substr(0, end + 2), answer)) {
      answer.status = 0;
      answer.body = text;
      break;
    }
    text.remove_prefix(end + 4);
    const bool to_head = final < methods.size() && methods[final] == "HEAD";
    const bool at_end = text.empty() || text.starts_with(version);
    const bool has_body = !at_end && may_precede_method(answer, answers.size() == 1);
    read_body(text, answer, to_head && !has_body);
    if (answer.status >= 200) ++final;
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

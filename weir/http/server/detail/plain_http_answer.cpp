#include "weir/http/server/detail/plain_http_answer.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::http {
namespace {

constexpr std::string_view answer =
    "HTTP/1.1 400 Bad Request\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 62\r\n"
    "Connection: close\r\n"
    "\r\n"
    "This port speaks HTTPS only: use https:// in place of http://\n";
constexpr std::size_t head_size = answer.find("\r\n\r\n") + 4;
static_assert(answer.size() - head_size == 62);

/// Returns true for the characters of the methods in use. No record of TLS begins with one.
bool is_of_method(char each) noexcept {
  return (each >= 'A' && each <= 'Z') || each == '-';
}

}  // namespace

std::string_view plain_http_answer(Bytes first) noexcept {
  const std::string_view text = to_text(first);
  const auto* const end = std::ranges::find_if_not(text, is_of_method);
  const bool is_request = end != text.begin() && (end == text.end() || *end == ' ');
  if (!is_request) return {};
  return text.starts_with("HEAD ") ? answer.substr(0, head_size) : answer;
}

}  // namespace weir::http

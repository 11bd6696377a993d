// Reads any bytes as the Cookie headers of a request. All readers of cookies find the same values,
// and every cookie that can be set is read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/matching/detail/argument_reader.hpp"
#include "weir/http/message/detail/set_cookie.hpp"
#include "weir/web/cookies/request_cookies.hpp"
#include "weir/web/cookies/set_cookie.hpp"

namespace {

using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using namespace weir::http;

/// Calls `check` with the head of a request that has each line of `lines` as a Cookie header.
template <class Check>
void with_head(std::string_view lines, Check check) {
  std::string text = "GET / HTTP/1.1\r\nHost: a\r\n";
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(line.size() < lines.size() ? line.size() + 1 : lines.size());
    text.append("Cookie: ").append(line).append("\r\n");
  }
  text += "\r\n";
  const ExactCopy copy(text);
  HeadParser parser{HeadLimits()};
  RequestHead head;
  if (parser.parse(copy.view(), head).kind == ParseResult::Kind::complete) check(head);
}

void check_readers(const RequestHead& head) {
  const RequestCookies cookies(head);
  std::size_t count = 0;
  for (const auto& [name, value] : cookies) {
    require(!name.empty() && name.find_first_of("=;") == std::string_view::npos);
    require(value.find(';') == std::string_view::npos);
    require(++count <= head.bytes().size());
    const auto first = cookies.find(name);
    require(first.has_value() && detail::find_cookie(head, name) == first);
  }
}

void check_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos) return;
  SetCookie cookie{.name = std::string(text.substr(0, equals)),
                   .value = std::string(text.substr(equals + 1))};
  const auto header = to_header(cookie);
  if (!header) return;
  require(is_valid_header("Set-Cookie", *header));
  const auto parsed = parse_set_cookie(*header);
  require(parsed && parsed->name == cookie.name && parsed->value == cookie.value);
  require(parsed->path == "/" && parsed->domain.empty() && parsed->secure);
  with_head(cookie.name + "=" + cookie.value, [&cookie](const RequestHead& head) {
    require(RequestCookies(head).find(cookie.name) == cookie.value);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  with_head(text, check_readers);
  check_setting(text);
  return 0;
}

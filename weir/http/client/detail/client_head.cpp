#include "weir/http/client/detail/client_head.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "weir/http/syntax/client_error.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/uri.hpp"
#include "weir/http/syntax/url.hpp"

namespace weir::http {
namespace {

/// The headers of a request that would also come from its URL, its body or the client.
struct OwnHeaders {
  bool host = false;
  bool te = false;
  bool cookie = false;
  bool content_type = false;
};

/// Errors: bad_input if the request sets a header that only the client sets.
Result<OwnHeaders> own_headers(const Headers& headers) noexcept {
  OwnHeaders found;
  for (const HeaderField header : headers) {
    const auto is = [&](std::string_view name) { return equals_ignoring_case(header.name, name); };
    switch (header.name.size()) {
      case 2:
        found.te |= is("te");
        break;
      case 4:
        found.host |= is("host");
        break;
      case 6:
        found.cookie |= is("cookie");
        break;
      case 12:
        found.content_type |= is("content-type");
        break;
      case 7:
      case 10:
      case 14:
      case 17:
        if (is("upgrade") || is("connection") || is("content-length") || is("transfer-encoding")) {
          return fail(Errc::bad_input);
        }
        break;
      default:
        break;
    }
  }
  return found;
}

/// Returns true if the request has a length although its body is empty (RFC 9110 §8.6).
bool sends_length(const ClientRequest& request) noexcept {
  return !request.body().text().empty() || expects_content(request.method());
}

bool is_redirect(Status status) noexcept {
  return status == Status::moved_permanently || status == Status::found ||
         status == Status::see_other || status == Status::temporary_redirect ||
         status == Status::permanent_redirect;
}

/// Returns true for a header that describes the content of a request (RFC 9110 §15.4). A request
/// that has lost its content has none of them. Expect and Trailer need content too (§10.1.1).
bool describes_content(std::string_view name) noexcept {
  constexpr std::string_view prefix = "content-";
  constexpr std::string_view others[] = {"digest", "repr-digest", "last-modified", "expect",
                                         "trailer"};
  if (name.size() > prefix.size() && equals_ignoring_case(name.substr(0, prefix.size()), prefix)) {
    return true;
  }
  return std::ranges::any_of(
      others, [name](std::string_view each) { return equals_ignoring_case(name, each); });
}

void drop_content(ClientRequest& request) {
  std::vector<std::string> names;
  for (const HeaderField header : request.headers()) {
    if (describes_content(header.name)) names.emplace_back(header.name);
  }
  for (const std::string& name : names) request.remove_header(name);
  request.clear_body();
}

bool becomes_get(Method method, Status status) noexcept {
  if (status == Status::see_other) return method != Method::head;
  return method == Method::post && (status == Status::moved_permanently || status == Status::found);
}

}  // namespace

Result<std::string> request_head(const ClientRequest& request, const HeadContext& context) {
  WEIR_TRY(const OwnHeaders own, own_headers(request.headers()));
  const std::string_view method = request.method_text();
  constexpr std::size_t rest_max = 128;  // this client's own names, values and line ends
  std::string head;
  head.reserve(method.size() + context.target.size() + request.url().text().size() +
               context.more_lines.size() + context.cookies.size() +
               request.headers().lines().size() + request.content_type().size() + rest_max);
  head.append(method).append(" ").append(context.target).append(" HTTP/1.1\r\n");
  if (!own.host) {
    head.append("Host: ").append(request.url().authority()).append(line_end);
  }
  head.append(request.headers().lines()).append(context.more_lines);
  if (own.te) head.append("Connection: TE\r\n");  // RFC 9110 §10.1.4; HTTP/2 leaves it out
  if (!context.cookies.empty() && !own.cookie) {
    head.append("Cookie: ").append(context.cookies).append(line_end);
  }
  if (!request.content_type().empty() && !own.content_type) {
    head.append("Content-Type: ").append(request.content_type()).append(line_end);
  }
  const std::optional<std::uint64_t> length = request.body().length();
  if (!length) {
    head.append("Transfer-Encoding: chunked\r\n");
  } else if (request.body().is_stream() || sends_length(request)) {
    head.append("Content-Length: ").append(std::to_string(*length)).append(line_end);
  }
  return head.append(line_end);
}

bool is_repeatable(const ClientRequest& request) noexcept {
  const Headers& headers = request.headers();
  if (is_idempotent(request.method())) return true;
  return !request.ignores_idempotency_key() &&
         (headers.contains("idempotency-key") || headers.contains("x-idempotency-key"));
}

Duration idle_time_of(std::string_view keep_alive) noexcept {
  constexpr std::string_view name = "timeout=";
  while (!keep_alive.empty()) {
    std::string_view each = keep_alive.substr(0, keep_alive.find(','));
    keep_alive.remove_prefix(std::min(each.size() + 1, keep_alive.size()));
    each.remove_prefix(std::min(each.find_first_not_of(" \t"), each.size()));
    if (!equals_ignoring_case(each.substr(0, name.size()), name)) continue;
    std::uint32_t seconds = 0;
    const char* const digits = each.data() + name.size();
    const auto read = std::from_chars(digits, each.data() + each.size(), seconds);
    if (read.ec != std::errc()) continue;
    const Duration given = std::chrono::seconds(seconds);
    return given - std::max<Duration>(std::chrono::seconds(1), given / 10);
  }
  return Duration::max();
}

Result<Redirect> follow_redirect(ClientRequest& request, Status status, std::string_view location,
                                 std::span<const std::string> sensitive) {
  if (!is_redirect(status)) return Redirect::none;
  const bool to_get = becomes_get(request.method(), status);
  if (!to_get && request.body().is_stream()) return Redirect::none;
  Result<Url> target = request.url().resolve(encode_reference(location));
  if (!target) return fail(ClientError::bad_redirect);
  if (request.url().scheme() == "https" && target->scheme() == "http") {
    return fail(ClientError::bad_redirect);
  }
  if (to_get) {
    request.set_method(Method::get);
    drop_content(request);
  }
  if (target->origin() != request.url().origin()) {
    for (const std::string_view name : {"host", "authorization", "cookie", "proxy-authorization"}) {
      request.remove_header(name);
    }
    for (const std::string& name : sensitive) request.remove_header(name);
  }
  request.set_url(std::move(*target));
  return Redirect::follow;
}

}  // namespace weir::http

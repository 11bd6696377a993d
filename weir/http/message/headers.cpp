// The header list as lines in one block of memory.
#include "weir/http/message/headers.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

constexpr std::string_view separator = ": ";

/// Headers that are valid only before the body (RFC 9110 §6.5.1), in addition to those of
/// is_connection_header(). They define the framing, the routing or how the request is handled.
constexpr std::array<std::string_view, 5> forbidden_trailers{"content-length", "host", "expect",
                                                             "te", "trailer"};

/// Other headers that are valid only before the body (RFC 9110 §6.5.1). A name that ends in '-'
/// stands for all that begin with it.
constexpr std::string_view head_only[] = {
    // Credentials, challenges, and what tells an origin or a site from another one.
    "authorization",
    "client-cert",
    "client-cert-chain",
    "cookie",
    "dpop",
    "early-data",
    "origin",
    "proxy-authenticate",
    "proxy-authorization",
    "referer",
    "sec-",
    "set-cookie",
    "www-authenticate",
    "x-api-key",
    "x-csrf-token",
    "x-xsrf-token",
    // Routing, and modifiers of the request.
    "accept",
    "accept-",
    "access-control-",
    "alt-used",
    "baggage",
    "idempotency-key",
    "if-",
    "max-forwards",
    "prefer",
    "priority",
    "range",
    "traceparent",
    "tracestate",
    "x-http-method",
    "x-http-method-override",
    "x-idempotency-key",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
    // Control of the response, of caches and of clients.
    "age",
    "allow",
    "alt-svc",
    "cache-control",
    "cdn-cache-control",
    "clear-site-data",
    "content-security-policy",
    "content-security-policy-report-only",
    "cross-origin-",
    "date",
    "expires",
    "location",
    "nel",
    "permissions-policy",
    "pragma",
    "referrer-policy",
    "refresh",
    "report-to",
    "reporting-endpoints",
    "retry-after",
    "strict-transport-security",
    "surrogate-control",
    "timing-allow-origin",
    "vary",
    "x-accel-",
    "x-content-type-options",
    "x-frame-options",
    "x-robots-tag",
    "x-sendfile",
    // The format of the content.
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-location",
    "content-range",
    "content-type",
};

constexpr std::array<std::string_view, 6> coding_fields{
    "content-digest", "content-encoding", "content-length", "content-md5", "digest", "repr-digest"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) noexcept {
  return std::ranges::any_of(
      names, [name](std::string_view each) { return equals_ignoring_case(name, each); });
}

char* put(char* out, std::string_view text) noexcept {
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

/// Returns the length of the first line with its CRLF. `lines` is not empty and was written by
/// Headers.
std::size_t first_line_size(std::string_view lines) noexcept {
  return lines.find('\r') + line_end.size();
}

}  // namespace

bool is_valid_header(std::string_view name, std::string_view value) noexcept {
  return is_token(name) && all_in(value, CharClass::value);
}

bool is_connection_header(std::string_view name) noexcept {
  const auto is = [name](std::string_view other) { return equals_ignoring_case(name, other); };
  switch (name.size()) {
    case 7:
      return is("upgrade");
    case 10:
      return is("connection") || is("keep-alive");
    case 16:
      return is("proxy-connection");
    case 17:
      return is("transfer-encoding");
    default:
      return false;
  }
}

bool is_forbidden_trailer(std::string_view name) noexcept {
  return is_connection_header(name) || is_one_of(name, forbidden_trailers);
}

bool may_be_trailer(std::string_view name) noexcept {
  const bool is_head_only = std::ranges::any_of(head_only, [name](std::string_view each) {
    const bool is_prefix = each.ends_with('-');
    return equals_ignoring_case(is_prefix ? name.substr(0, each.size()) : name, each);
  });
  return !is_head_only && !is_forbidden_trailer(name);
}

bool is_coding_field(std::string_view name) noexcept {
  return is_one_of(name, coding_fields);
}

HeaderField Headers::Iterator::operator*() const noexcept {
  const std::size_t colon = rest_.find(':');
  const std::size_t start = colon + separator.size();
  const std::size_t stop = first_line_size(rest_) - line_end.size();
  return {rest_.substr(0, colon), rest_.substr(start, stop - start)};
}

Headers::Iterator& Headers::Iterator::operator++() noexcept {
  rest_.remove_prefix(first_line_size(rest_));
  return *this;
}

Headers::Headers(const Headers& other) {
  put(extend(other.size_), other.lines());
}

Headers::Headers(Headers&& other) noexcept {
  take(other);
}

Headers& Headers::operator=(const Headers& other) {
  if (this == &other) return *this;
  clear();
  put(extend(other.size_), other.lines());
  return *this;
}

Headers& Headers::operator=(Headers&& other) noexcept {
  if (this == &other) return *this;
  release();
  take(other);
  return *this;
}

Result<> Headers::add(std::string_view name, std::string_view value) {
  if (!is_valid_header(name, value)) return fail(Errc::bad_input);
  value = trim(value);
  const std::size_t bytes = name.size() + separator.size() + value.size() + line_end.size();
  if (bytes > std::numeric_limits<std::uint32_t>::max() / 2 - size_) {
    return fail(Errc::limit_reached);
  }
  char* out = extend(bytes);
  out = put(out, name);
  out = put(out, separator);
  out = put(out, value);
  put(out, line_end);
  return {};
}

Result<> Headers::set(std::string_view name, std::string_view value) {
  if (!is_valid_header(name, value)) return fail(Errc::bad_input);
  remove(name);
  return add(name, value);
}

std::size_t Headers::remove(std::string_view name) noexcept {
  std::size_t removed = 0;
  std::size_t kept = 0;
  std::size_t position = 0;
  while (position < size_) {
    const std::string_view rest = lines().substr(position);
    const std::size_t length = first_line_size(rest);
    if (equals_ignoring_case((*Iterator(rest)).name, name)) {
      ++removed;
    } else {
      if (kept != position) std::memmove(data() + kept, data() + position, length);
      kept += length;
    }
    position += length;
  }
  size_ = static_cast<std::uint32_t>(kept);
  return removed;
}

std::optional<std::string_view> Headers::get(std::string_view name) const noexcept {
  std::string_view rest = lines();
  while (!rest.empty()) {
    const bool may_be = name.size() < rest.size() && rest[name.size()] == ':';
    if (may_be && equals_ignoring_case(rest.substr(0, name.size()), name)) {
      const HeaderField header = *Iterator(rest);
      if (header.name.size() == name.size()) return header.value;
    }
    rest.remove_prefix(first_line_size(rest));
  }
  return std::nullopt;
}

std::size_t Headers::count() const noexcept {
  return static_cast<std::size_t>(std::count(data(), data() + size_, '\n'));
}

/// Makes room for `bytes` more bytes, counts them as used and returns their address.
char* Headers::extend(std::size_t bytes) {
  const std::size_t needed = size_ + bytes;
  if (needed > capacity_) {
    const std::size_t capacity = std::max<std::size_t>(needed, std::size_t{capacity_} * 2);
    char* grown = new char[capacity];
    put(grown, lines());
    delete[] heap_;
    heap_ = grown;
    capacity_ = static_cast<std::uint32_t>(capacity);
  }
  char* place = data() + size_;
  size_ = static_cast<std::uint32_t>(needed);
  return place;
}

void Headers::release() noexcept {
  delete[] heap_;
  heap_ = nullptr;
  capacity_ = inline_capacity;
  size_ = 0;
}

/// Takes the content of `other` and leaves it empty. This object must not own memory before.
void Headers::take(Headers& other) noexcept {
  if (other.heap_ == nullptr) {
    put(inline_.data(), other.lines());
  }
  heap_ = other.heap_;
  size_ = other.size_;
  capacity_ = other.capacity_;
  other.heap_ = nullptr;
  other.size_ = 0;
  other.capacity_ = inline_capacity;
}

}  // namespace weir::http

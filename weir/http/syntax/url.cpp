// The parser of URLs and the resolution of references.
#include "weir/http/syntax/url.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/http/syntax/uri.hpp"
#include "weir/os/address.hpp"
#include "weir/os/ip_range.hpp"

namespace weir::http {
namespace {

constexpr std::string_view authority_mark = "//";

/// Returns the length of the scheme at the start of `text`, without its ':' (RFC 3986 §3.1), or 0
/// if there is none. A ':' after a '/', '?' or '#' ends no scheme.
/// Errors: bad_target_form if the text before the ':' is no scheme.
Result<std::size_t> scheme_size_of(std::string_view text) noexcept {
  const std::size_t colon = text.find_first_of(":/?#");
  if (colon == std::string_view::npos || text[colon] != ':') return std::size_t{0};
  const auto letter = [](char each) { return to_lower(each) >= 'a' && to_lower(each) <= 'z'; };
  if (colon == 0 || !letter(text.front())) return fail(ParseError::bad_target_form);
  for (const char each : text.substr(0, colon)) {
    const bool valid =
        letter(each) || is_in(each, CharClass::digit) || each == '+' || each == '-' || each == '.';
    if (!valid) return fail(ParseError::bad_target_form);
  }
  return colon;
}

/// Returns the port of a scheme, or std::nullopt for any scheme but http and https.
std::optional<std::uint16_t> default_port_of(std::string_view scheme) noexcept {
  if (equals_ignoring_case(scheme, "http")) return std::uint16_t{80};
  if (equals_ignoring_case(scheme, "https")) return std::uint16_t{443};
  return std::nullopt;
}

/// Removes the fragment with its '#'.
ParseError drop_fragment(std::string_view& text) noexcept {
  const std::size_t hash = text.find('#');
  if (hash == std::string_view::npos) return ParseError::none;
  const std::string_view fragment = text.substr(hash + 1);
  text = text.substr(0, hash);
  return all_in(fragment, CharClass::target) ? check_escapes(fragment) : ParseError::bad_target;
}

/// Removes "." and ".." segments from an absolute path (RFC 3986 §5.2.4).
std::string remove_dot_segments(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(0, end);  // with its '/'
    path.remove_prefix(end);
    if (segment != "/." && segment != "/..") {
      result += segment;
      continue;
    }
    if (segment == "/..") result.resize(std::min(result.rfind('/'), result.size()));
    if (path.empty()) result += '/';
  }
  return result;
}

void append_in_lower_case(std::string& text, std::string_view part) {
  const std::size_t start = text.size();
  text.append(part);
  std::transform(part.begin(), part.end(), text.data() + start, to_lower);
}

/// Appends a host in its normal form. An IPv6 address has the form of RFC 5952. A name keeps the
/// dot at its end, which the Host header has too (RFC 9110 §7.2).
void append_host(std::string& text, std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const auto bytes = bracketed ? os::parse_ip(host.substr(1, host.size() - 2)) : std::nullopt;
  if (!bytes) return append_in_lower_case(text, host);
  const std::string address = os::Address::ipv6(*bytes, 0).to_string();
  text.append(address, 0, address.rfind(':'));  // without the port
}

}  // namespace

Result<Url> Url::parse(std::string_view text, std::size_t most) {
  if (text.size() > std::min(most, bytes_limit)) return fail(Errc::limit_reached);
  WEIR_TRY(const std::size_t scheme_size, scheme_size_of(text));
  if (scheme_size == 0) return fail(ParseError::bad_target_form);
  const std::string_view scheme = text.substr(0, scheme_size);
  const std::optional<std::uint16_t> default_port = default_port_of(scheme);
  if (!default_port) return fail(Errc::unsupported);
  if (const ParseError error = drop_fragment(text); error != ParseError::none) return fail(error);
  text.remove_prefix(scheme_size + 1);
  if (!text.starts_with(authority_mark)) return fail(ParseError::bad_target_form);
  text.remove_prefix(authority_mark.size());
  const std::size_t authority_size = std::min(text.find_first_of("/?"), text.size());
  const std::optional<Authority> authority = parse_authority(text.substr(0, authority_size));
  const bool resolvable = authority && authority->port.value_or(*default_port) != 0 &&
                          authority->host.find('%') == std::string_view::npos;
  if (!resolvable) return fail(ParseError::bad_target_authority);
  Target target;
  const ParseError error = parse_path_and_query(text.substr(authority_size), target);
  if (error != ParseError::none) return fail(error);

  Url url;
  // The path may get its '/', and text has no scheme any more.
  url.text_.reserve(scheme_size + 4 + text.size());
  url.port_ = authority->port.value_or(*default_port);
  append_in_lower_case(url.text_, scheme);
  url.scheme_size_ = static_cast<std::uint32_t>(url.text_.size());
  url.text_.append(":").append(authority_mark);
  append_host(url.text_, authority->host);
  url.host_end_ = static_cast<std::uint32_t>(url.text_.size());
  if (url.port_ != *default_port) url.text_.append(":").append(std::to_string(url.port_));
  url.origin_size_ = static_cast<std::uint32_t>(url.text_.size());
  url.text_.append(target.path.empty() ? "/" : target.path);
  url.path_end_ = static_cast<std::uint32_t>(url.text_.size());
  if (target.has_query) url.text_.append("?").append(target.query);
  return url;
}

std::string_view Url::host() const noexcept {
  const std::string_view host = between(authority_start(), host_end_);
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

Result<Url> Url::join(std::string_view path, std::optional<std::string_view> query) const {
  std::string_view own_path = this->path();
  if (own_path.ends_with('/')) own_path.remove_suffix(1);
  if (path.empty()) path = "/";
  Url url;
  const std::size_t size = origin_size_ + own_path.size() + path.size();
  const std::size_t query_size = query ? query->size() + 1 : 0;
  if (size + query_size > bytes_limit) return fail(Errc::limit_reached);
  url.text_.reserve(size + query_size);
  url.text_.append(origin()).append(own_path).append(path);
  if (query) url.text_.append(1, '?').append(*query);
  url.scheme_size_ = scheme_size_;
  url.host_end_ = host_end_;
  url.origin_size_ = origin_size_;
  url.path_end_ = static_cast<std::uint32_t>(size);
  url.port_ = port_;
  assert(parse(url.text(), bytes_limit));
  return url;
}

Result<Url> Url::resolve(std::string_view reference) const {
  if (reference.size() > bytes_max) return fail(Errc::limit_reached);
  WEIR_TRY(const std::size_t scheme_size, scheme_size_of(reference));
  if (const ParseError error = drop_fragment(reference); error != ParseError::none) {
    return fail(error);
  }
  // The scheme with its ':', the authority with its "//", the path, and the query with its '?'.
  const std::string_view own_scheme = text().substr(0, scheme_size_ + 1);
  std::string_view scheme = own_scheme;
  if (scheme_size > 0) {
    scheme = reference.substr(0, scheme_size + 1);
    reference.remove_prefix(scheme.size());
    // RFC 3986 §5.2.2 allows to read "http:path" as a relative path. This parser does not guess.
    if (!default_port_of(scheme.substr(0, scheme_size))) return fail(Errc::unsupported);
    if (!reference.starts_with(authority_mark)) return fail(ParseError::bad_target_form);
  }
  const bool absolute = reference.starts_with(authority_mark);
  std::string_view authority = between(scheme_size_ + 1, origin_size_);
  if (absolute) {
    authority = reference.substr(0, reference.find_first_of("/?", authority_mark.size()));
    reference.remove_prefix(authority.size());
  }
  const std::size_t path_size = std::min(reference.find('?'), reference.size());
  const std::string_view path = reference.substr(0, path_size);
  const std::string_view query = reference.substr(path_size);

  std::string result(scheme);
  result += authority;
  if (absolute || path.starts_with('/')) {
    result += remove_dot_segments(path);
  } else if (path.empty()) {
    result += query.empty() ? target() : this->path();
  } else {
    const std::string_view folder = this->path().substr(0, this->path().rfind('/') + 1);
    result += remove_dot_segments(std::string(folder).append(path));
  }
  result += query;
  return parse(result, std::max(bytes_max, text_.size()));
}

}  // namespace weir::http

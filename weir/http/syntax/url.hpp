// URLs with the schemes http and https, and the resolution of references to them (RFC 3986 §5, RFC
// 9110 §4.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"

namespace weir::http {

/// An absolute URL with the scheme http or https. Its text is normalized: scheme and host are in
/// lower case, the scheme's default port is left out, and the path is at least "/". An IPv6 address
/// has the form of RFC 5952. Equal texts therefore mean equal URLs. The views that it returns point
/// into the object.
/// Threads: one at a time.
class Url {
 public:
  /// The usual maximum length of a URL in bytes, and that of a reference.
  static constexpr std::size_t bytes_max = 8 * 1024;
  /// The largest maximum length of a URL in bytes.
  static constexpr std::size_t bytes_limit = 64 * 1024 * 1024;

  /// Parses `text`, of which every byte is checked. A fragment is checked and dropped, because no
  /// request sends it. The URL has at most `most` bytes, and at most bytes_limit.
  /// Errors: Errc::unsupported for another scheme; Errc::limit_reached for a longer text; else a
  /// ParseError. A text without a scheme is bad_target_form. User info, an escape in the host and
  /// the port 0 are bad_target_authority. A "." or ".." segment is dot_segment.
  static Result<Url> parse(std::string_view text, std::size_t most = bytes_max);

  /// Resolves a reference, such as the value of a Location header, relative to this URL (RFC 3986
  /// §5.2). Dot segments of the reference are resolved; escaped ones are dot_segment. The reference
  /// has at most bytes_max bytes. The result has them too, or the length of this URL if it is more.
  /// Errors: those of parse().
  Result<Url> resolve(std::string_view reference) const;

  /// Returns this URL with `path` behind its own path, of which the last '/' is dropped, and
  /// with another query. `path` begins with '/'; an empty one counts as "/". Both texts are parts
  /// of a URL or of a request, so they are not checked again (asserted), and their sender has
  /// limited their length.
  /// Errors: Errc::limit_reached above bytes_limit.
  Result<Url> join(std::string_view path, std::optional<std::string_view> query) const;

  /// Returns "http" or "https".
  std::string_view scheme() const noexcept { return text().substr(0, scheme_size_); }

  /// Returns the host. An IP literal has no brackets.
  std::string_view host() const noexcept;

  /// Returns the port, which is 80 or 443 if the URL has none.
  std::uint16_t port() const noexcept { return port_; }

  /// Returns host[:port] as a Host header has it. An IP literal has brackets.
  std::string_view authority() const noexcept { return between(authority_start(), origin_size_); }

  /// Returns "scheme://host[:port]". Two URLs have one origin if these texts are equal (RFC 9110
  /// §4.3.1).
  std::string_view origin() const noexcept { return text().substr(0, origin_size_); }

  /// Returns the raw path, which starts with '/'.
  std::string_view path() const noexcept { return between(origin_size_, path_end_); }

  /// Returns the raw query without '?'; empty if there is none.
  std::string_view query() const noexcept { return text().substr(path_end_ + has_query()); }

  /// Returns true if there is a '?', even if nothing follows it.
  bool has_query() const noexcept { return path_end_ < text_.size(); }

  /// Returns the path with the query: the target of a request (RFC 9112 §3.2.1).
  std::string_view target() const noexcept { return text().substr(origin_size_); }

  /// Returns the whole URL.
  std::string_view text() const noexcept { return text_; }

  friend bool operator==(const Url& a, const Url& b) noexcept { return a.text_ == b.text_; }

 private:
  Url() = default;

  std::size_t authority_start() const noexcept { return scheme_size_ + 3; }  // after "://"
  std::string_view between(std::size_t start, std::size_t end) const noexcept {
    return text().substr(start, end - start);
  }

  std::string text_;
  std::uint32_t scheme_size_ = 0;
  std::uint32_t host_end_ = 0;
  std::uint32_t origin_size_ = 0;
  std::uint32_t path_end_ = 0;
  std::uint16_t port_ = 0;
};

}  // namespace weir::http

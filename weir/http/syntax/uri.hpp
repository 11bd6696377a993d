// Percent escapes, paths and request targets (RFC 3986, RFC 9112 §3.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/parse_error.hpp"

namespace weir::http {

/// Decodes every "%HH" of `in` exactly once and writes the result to `out`. `out` has room for
/// in.size() bytes and may be equal to in.data(). '+' stays '+'; see UrlencodedPairs for forms.
/// Returns: the number of bytes written, or std::nullopt at the first '%' without two hexadecimal
/// digits.
std::optional<std::size_t> percent_decode(std::string_view in, char* out) noexcept;

/// Decodes every "%HH" of `in` exactly once into a new string.
/// Returns: std::nullopt if a '%' is not followed by two hexadecimal digits.
std::optional<std::string> percent_decode(std::string_view in);

/// Encodes `text` so that it is one segment of a path, or one name or value of a query: every byte
/// except letters, digits, '-', '.', '_' and '~' becomes "%HH". The texts "." and ".." stay dot
/// segments and NUL becomes "%00", because no encoding hides them; Url::parse() rejects them.
std::string encode_segment(std::string_view text);

/// Returns a reference that a peer has sent, such as the value of a Location header, in the form of
/// a URL (RFC 3986 §4.1). Bytes that no URL has are percent-encoded, as in browsers, curl and Go.
/// These are raw UTF-8, spaces, control characters, quotes and angle brackets. In a path, a
/// backslash and a '%' without two hexadecimal digits are encoded too. The scheme and the authority
/// do not change.
std::string encode_reference(std::string_view reference);

/// Checks the escapes in `text`.
/// Returns: ParseError::none, bad_escape or nul_escape.
ParseError check_escapes(std::string_view text) noexcept;

/// Checks the escapes and the segments of an absolute path.
/// Returns: ParseError::none, an error of check_escapes(), or dot_segment. A dot segment decodes
/// to "." or ".."; a server must not guess which resource it means.
ParseError check_path(std::string_view path) noexcept;

/// The segments of a path or of a `{rest...}`. The text is split on '/' before it is decoded, so
/// "%2F" never splits: "/a//b" has "a", "" and "b"; "/" has "". A leading '/' is not a separator.
class Segments {
 public:
  class Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;

    Iterator() noexcept = default;
    explicit Iterator(std::string_view rest) noexcept : rest_(rest), done_(false) {}
    std::string_view operator*() const noexcept { return rest_.substr(0, rest_.find('/')); }
    Iterator& operator++() noexcept;
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(std::default_sentinel_t) const noexcept { return done_; }

    /// Returns the segment with its escapes decoded. A request's path was checked when it was
    /// received. A segment of any other text is returned undecoded if it has a bad escape.
    std::string decoded() const;

   private:
    std::string_view rest_;
    bool done_ = true;
  };

  explicit Segments(std::string_view path) noexcept
      : path_(path.starts_with('/') ? path.substr(1) : path) {}
  Iterator begin() const noexcept { return Iterator(path_); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  std::string_view path_;
};

/// The four forms of a request target (RFC 9112 §3.2).
enum class TargetForm : std::uint8_t { origin, absolute, asterisk, authority };

/// A checked request target. The views point into the text that was parsed.
struct Target {
  TargetForm form = TargetForm::origin;
  bool has_query = false;         ///< true if there is a '?', even if nothing follows it
  bool path_has_escapes = false;  ///< true if decoding would change the path
  std::string_view authority;     ///< host[:port] of the absolute and the authority form
  std::string_view path;          ///< raw; empty if an absolute form has no path, which means "/"
  std::string_view query;         ///< raw, without the '?'
};

/// Parses `text` into `target`; every byte is checked. A query may have any escapes: the reader of
/// its pairs decides what "%" and "%00" mean. A path has no bad escape, no "%00", no dot segment
/// and no backslash. The target "*" needs OPTIONS. The form
/// host:port needs CONNECT, and CONNECT needs host:port. An absolute form has the scheme http or
/// https and an authority without user info. OPTIONS with an absolute form without path and query
/// means "*" (RFC 9112 §3.2.4).
/// Returns: ParseError::none, or the reason why the target is rejected.
ParseError parse_target(Method method, std::string_view text, Target& target) noexcept;

/// Splits `text`, which starts with '/' or '?' or is empty, into the path and the query of
/// `target`, which parse_target() describes; every byte is checked.
/// Returns: ParseError::none, or the reason why the text is rejected.
ParseError parse_path_and_query(std::string_view text, Target& target) noexcept;

}  // namespace weir::http

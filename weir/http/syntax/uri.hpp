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

/// Decodes every "%HH" of `in` once, to `out`, which has room for in.size() bytes and may be where
/// `in` is. Returns how many bytes it wrote, or nothing at the first '%' without two hexadecimal
/// digits. '+' stays '+': see Query for forms.
std::optional<std::size_t> percent_decode(std::string_view in, char* out) noexcept;

/// The same into a string of its own.
std::optional<std::string> percent_decode(std::string_view in);

/// Refusal::none, or what is wrong with the escapes in `text`: bad_escape or nul_escape.
Refusal check_escapes(std::string_view text) noexcept;

/// Refusal::none, or what is wrong with the escapes of an absolute path, or dot_segment for a
/// segment that is "." or ".." once decoded: a server must not guess which resource those mean.
Refusal check_path(std::string_view path) noexcept;

/// The segments of a path or of a `{rest...}`, split on '/' before decoding, so that "%2F" never
/// splits: "/a//b" has "a", "" and "b"; "/" has "". A leading '/' is not a separator.
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

    /// The segment with its escapes decoded. The path was checked when it was received; a text
    /// from elsewhere that has a bad escape is given as it is.
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

/// The four shapes of a request target (RFC 9112 §3.2).
enum class TargetForm : std::uint8_t { origin, absolute, asterisk, authority };

/// A checked request target; the views belong to the text it was parsed from.
struct Target {
  TargetForm form = TargetForm::origin;
  bool has_query = false;         ///< there is a '?', be it with nothing behind it
  bool path_has_escapes = false;  ///< decoding would change the path
  std::string_view authority;     ///< of the absolute and the authority form
  std::string_view path;          ///< raw; empty where an absolute form has none: it means "/"
  std::string_view query;         ///< raw, without the '?'
};

/// Takes `text` apart into `target`, or says why it may not be asked for: "*" needs OPTIONS,
/// host:port needs CONNECT and CONNECT needs host:port, an absolute form has the scheme http or
/// https and an authority without user info. OPTIONS with an absolute form without path and query
/// means "*" (RFC 9112 §3.2.4). Every byte is checked.
Refusal parse_target(Method method, std::string_view text, Target& target) noexcept;

}  // namespace weir::http

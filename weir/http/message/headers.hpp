// Headers: the check of names and values, and the list of headers that a message sends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/result.hpp"

namespace weir::http {

/// One header. The views point into the object that returned it.
struct HeaderField {
  std::string_view name;
  std::string_view value;  ///< the value without white space at its ends
};

/// Returns true if a message may contain this header (RFC 9110 §5.1, §5.5). The name must be a
/// token. The value must not contain NUL, CR, LF or another control character except HTAB.
bool is_valid_header(std::string_view name, std::string_view value) noexcept;

/// Returns true for the name of a header that describes a connection of HTTP/1.1 (RFC 9113 §8.2.2),
/// in any letter case. HTTP/2 has none of them.
bool is_connection_header(std::string_view name) noexcept;

/// Returns true for the name of a header that is never valid behind the body, in any letter case.
/// It would change the framing or the routing of the message. A received trailer of that name is an
/// error.
bool is_forbidden_trailer(std::string_view name) noexcept;

/// Returns true if a message may have a trailer field of this name, in any letter case. Fields for
/// routing, authentication, the control of requests, responses, caches and browsers, traces, and
/// the format of the content must be in the head (RFC 9110 §6.5.1). Digests, ETag, Server-Timing,
/// Proxy-Status, Authentication-Info and names that Weir does not know may be trailers.
bool may_be_trailer(std::string_view name) noexcept;

/// Returns true for the name of a field that describes the bytes of one content coding, in any
/// letter case: Content-Encoding, Content-Length and the digests. It is wrong for the same content
/// with another coding, or without one (RFC 9110 §8.4, RFC 9530).
bool is_coding_field(std::string_view name) noexcept;

/// The headers of a message in the order of adding, stored as the lines that are sent. Names
/// compare without case. A few short headers need no heap memory. A list that needs more room at
/// least doubles its memory. A look-up is linear, because messages have few headers.
/// Threads: one at a time.
class Headers {
 public:
  /// The number of bytes of lines that need no heap memory.
  static constexpr std::size_t inline_capacity = 112;

  /// Iterates over the headers from first to last. Any change to the list invalidates it.
  class Iterator {
   public:
    using value_type = HeaderField;
    using difference_type = std::ptrdiff_t;

    Iterator() noexcept = default;
    explicit Iterator(std::string_view lines) noexcept : rest_(lines) {}
    HeaderField operator*() const noexcept;
    Iterator& operator++() noexcept;
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const noexcept {
      return rest_.size() == other.rest_.size();
    }

   private:
    std::string_view rest_;
  };

  Headers() noexcept = default;
  Headers(const Headers& other);
  Headers(Headers&& other) noexcept;
  Headers& operator=(const Headers& other);
  Headers& operator=(Headers&& other) noexcept;
  ~Headers() { release(); }

  /// Appends a header, even if the list has one of that name. White space at the ends of the
  /// value is removed.
  /// Errors: bad_input if is_valid_header() is false, limit_reached if the list would exceed 2
  /// GiB. The list stays unchanged then.
  Result<> add(std::string_view name, std::string_view value);

  /// Replaces every header called `name` by one at the end of the list. Neither `name` nor
  /// `value` may be a view into this list.
  /// Errors: those of add(); after bad_input the list is unchanged.
  Result<> set(std::string_view name, std::string_view value);

  /// Removes every header called `name`.
  /// Returns: the number of headers that were removed.
  std::size_t remove(std::string_view name) noexcept;

  /// Returns the value of the first header called `name`.
  std::optional<std::string_view> get(std::string_view name) const noexcept;

  bool contains(std::string_view name) const noexcept { return get(name).has_value(); }
  bool empty() const noexcept { return size_ == 0; }
  std::size_t count() const noexcept;
  void clear() noexcept { size_ = 0; }

  /// Returns all headers as "name: value" CRLF, one after the other.
  std::string_view lines() const noexcept { return {data(), size_}; }

  Iterator begin() const noexcept { return Iterator(lines()); }
  Iterator end() const noexcept { return Iterator(); }

 private:
  const char* data() const noexcept { return heap_ != nullptr ? heap_ : inline_.data(); }
  char* data() noexcept { return heap_ != nullptr ? heap_ : inline_.data(); }
  char* extend(std::size_t bytes);
  void release() noexcept;
  void take(Headers& other) noexcept;

  char* heap_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = inline_capacity;
  std::array<char, inline_capacity> inline_;
};

}  // namespace weir::http

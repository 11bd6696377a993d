// RequestCookies: the cookies that a request has sent (RFC 6265 §5.4, RFC 6265bis).
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

#include "weir/http/message/request.hpp"

namespace weir::http {

/// One cookie of a request. The texts are views of the request.
struct RequestCookie {
  std::string_view name;
  std::string_view value;  ///< the value as it was sent, without quotes around it
};

/// The cookies of a request, in the order in which the client sent them: those with longer paths
/// come first. Names may repeat. The reader is as lenient as other servers: it accepts any bytes
/// that a header may have, and skips a part without '=' or without a name. Reading allocates
/// nothing, and its time is bounded by the size of the head. A client can send any cookie; see
/// SealedCookies.
///
///     for (const auto& [name, value] : http::RequestCookies(request)) { ... }
///
/// Lifetime: that of the request.
class RequestCookies {
 public:
  class Iterator {
   public:
    using value_type = RequestCookie;
    using difference_type = std::ptrdiff_t;

    Iterator() noexcept = default;
    explicit Iterator(const RequestHead& head) noexcept : head_(&head) { ++*this; }
    const RequestCookie& operator*() const noexcept { return current_; }
    const RequestCookie* operator->() const noexcept { return &current_; }
    Iterator& operator++() noexcept;
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(std::default_sentinel_t) const noexcept { return head_ == nullptr; }

   private:
    const RequestHead* head_ = nullptr;  // nullptr: no more cookies
    std::size_t next_header_ = 0;
    std::string_view rest_;  // of the current Cookie header
    RequestCookie current_;
  };

  explicit RequestCookies(const Request& request) noexcept : head_(request.head()) {}
  explicit RequestCookies(const RequestHead& head) noexcept : head_(head) {}

  Iterator begin() const noexcept { return Iterator(head_); }
  std::default_sentinel_t end() const noexcept { return {}; }
  /// Returns the value of the first cookie of this name, in this letter case.
  std::optional<std::string_view> find(std::string_view name) const noexcept;

 private:
  const RequestHead& head_;
};

}  // namespace weir::http

// A request that a client sends.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/url.hpp"

namespace weir::http {

/// A request of a client; move-only. The client sets Host, Content-Length, Transfer-Encoding and
/// Connection. A request that sets one of the last three fails with Errc::bad_input.
/// Threads: one at a time.
class ClientRequest {
 public:
  /// Makes a request without a body. `method` is not Method::other (asserted).
  ClientRequest(Method method, Url url) noexcept : url_(std::move(url)), method_(method) {}

  Method method() const noexcept { return method_; }
  const Url& url() const noexcept { return url_; }

  /// add_header() appends a header. set_header() replaces all headers of that name.
  /// Errors: those of Headers::add(), which leave the request unchanged.
  Result<> add_header(std::string_view name, std::string_view value) {
    return headers_.add(name, value);
  }
  Result<> set_header(std::string_view name, std::string_view value) {
    return headers_.set(name, value);
  }
  const Headers& headers() const noexcept { return headers_; }

  /// Sets the body and its media type. The bytes of a Body are sent with a Content-Length. A
  /// stream is sent in chunks unless `length` is given, which other bodies ignore. A stream that
  /// writes another number of bytes fails the request with Errc::bad_input. A stream is called at
  /// most once.
  void set_body(MediaType type, Body body, std::optional<std::uint64_t> length = std::nullopt) {
    content_type_ = type.text();
    body_ = std::move(body);
    length_ = length;
  }
  std::string_view content_type() const noexcept { return content_type_; }
  Body& body() noexcept { return body_; }
  const Body& body() const noexcept { return body_; }
  std::optional<std::uint64_t> length() const noexcept { return length_; }

  /// Sets ClientLimits::total_timeout of this request.
  void set_timeout(Duration timeout) noexcept { timeout_ = timeout; }
  std::optional<Duration> timeout() const noexcept { return timeout_; }

 private:
  Url url_;
  Headers headers_;
  Body body_;
  std::string_view content_type_;
  std::optional<std::uint64_t> length_;
  std::optional<Duration> timeout_;
  Method method_;
};

}  // namespace weir::http

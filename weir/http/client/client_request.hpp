// A request that a client sends.
#pragma once

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/interim_response.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/message/json.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/url.hpp"

namespace weir::http {

/// A request of a client; move-only. The client sets Host, Content-Length, Transfer-Encoding and
/// Connection. A request that sets one of the last three, or Upgrade, is invalid. So is a request
/// whose URL or header is invalid. An invalid request is not sent: the call that sends it fails
/// with error().
/// Threads: one at a time.
class ClientRequest {
 public:
  /// Makes a request without a body. `method` is not Method::other (asserted).
  ClientRequest(Method method, Url url) noexcept : url_(std::move(url)), method_(method) {}
  /// Makes a request for the URL `url`. The error of Url::parse() makes the request invalid.
  ClientRequest(Method method, std::string_view url) : url_(Url::parse(url)), method_(method) {
    if (!url_) error_ = url_.error();
  }
  /// Makes a request with the method of this name, such as "PROPFIND". A name that is no token, and
  /// CONNECT, make the request invalid with Errc::bad_input.
  ClientRequest(std::string_view method, Url url) : ClientRequest(Method::get, std::move(url)) {
    set_method(method);
  }
  ClientRequest(std::string_view method, std::string_view url) : ClientRequest(Method::get, url) {
    set_method(method);
  }

  /// Returns the first error; no error if the request is valid.
  std::error_code error() const noexcept { return error_; }
  Method method() const noexcept { return method_; }
  /// Returns the name of the method on the wire.
  std::string_view method_text() const noexcept {
    return other_method_ != nullptr ? std::string_view(*other_method_) : name_of(method_);
  }
  /// Sets the method, which is not Method::other (asserted).
  void set_method(Method method) noexcept {
    assert(method != Method::other);
    method_ = method;
    other_method_.reset();
  }
  /// Sets the method of this name; see the constructor.
  void set_method(std::string_view name) {
    method_ = method_of(name);
    other_method_.reset();
    if (method_ == Method::other) other_method_ = std::make_unique<const std::string>(name);
    const bool is_token = is_valid_header(name, {});
    if (!is_token || method_ == Method::connect) record(fail(Errc::bad_input));
  }
  /// Returns the URL of a request that was made with a valid one (asserted).
  const Url& url() const noexcept {
    assert(url_);
    return *url_;
  }
  void set_url(Url url) noexcept { url_ = std::move(url); }
  Url take_url() && noexcept {
    assert(url_);
    return std::move(*url_);
  }

  /// add_header() appends a header. set_header() replaces all headers of that name. A header that
  /// is_valid_header() rejects makes the request invalid with Errc::bad_input.
  void add_header(std::string_view name, std::string_view value) {
    record(headers_.add(name, value));
  }
  void set_header(std::string_view name, std::string_view value) {
    record(headers_.set(name, value));
  }
  void remove_header(std::string_view name) noexcept { headers_.remove(name); }
  const Headers& headers() const noexcept { return headers_; }

  /// Sets the body and its media type. A body whose length is known is sent with a Content-Length,
  /// and other streams are sent in chunks. A stream that writes another number of bytes fails the
  /// request with Errc::bad_input. A stream is called at most once.
  void set_body(MediaType type, Body body) {
    content_type_ = type.text();
    body_ = std::move(body);
  }
  /// Sets `value` as JSON.
  template <class T>
  void set_json(const T& value) {
    detail::JsonBodyWriter writer;
    json::Codec<T>::write(writer, value);
    set_body(json_type, writer.finish());
  }
  /// Removes the body and its media type.
  void clear_body() noexcept {
    content_type_ = {};
    body_ = Body();
  }
  std::string_view content_type() const noexcept { return content_type_; }
  Body& body() noexcept { return body_; }
  const Body& body() const noexcept { return body_; }

  /// Says that an Idempotency-Key does not make this request repeatable, because another program
  /// has set that header. The client then repeats only idempotent methods (RFC 9110 §9.2.2).
  void ignore_idempotency_key() noexcept { ignores_key_ = true; }
  bool ignores_idempotency_key() const noexcept { return ignores_key_; }

  /// Says that this request is that of a proxy, which leaves messages with "Cache-Control:
  /// no-transform" as they are (RFC 9110 §7.7). If this request or its response has it,
  /// ClientOptions::decompression has no effect.
  void obey_no_transform() noexcept { obeys_no_transform_ = true; }
  bool obeys_no_transform() const noexcept { return obeys_no_transform_; }

  /// Sets `given` to true before the client gives the request to a connection. If send() fails and
  /// `given` is still false, no server has received a part of the request.
  /// Lifetime: `given` lives until send() has returned.
  void note_given(bool& given) noexcept { given_ = &given; }

  /// Calls `function` for each 1xx response but 101, before send() returns. The client reads on
  /// when its task has ended. Without a function, these responses are dropped. Over HTTP/2, four of
  /// them wait for the function, with at most ClientLimits::http2.field_list_max bytes together;
  /// others are dropped.
  void on_interim(InterimFunction function) noexcept { interim_ = std::move(function); }
  /// Returns that function, or nullptr.
  InterimFunction* interim_function() noexcept { return interim_ ? &interim_ : nullptr; }

  /// Sets ClientLimits::total_timeout of this request.
  void set_timeout(Duration timeout) noexcept { timeout_ = timeout; }
  std::optional<Duration> timeout() const noexcept { return timeout_; }

 private:
  friend class Client;

  void set_given() noexcept {
    if (given_ != nullptr) *given_ = true;
  }
  void record(const Result<>& changed) noexcept {
    if (!changed && !error_) error_ = changed.error();
  }

  Result<Url> url_;
  Headers headers_;
  Body body_;
  std::string_view content_type_;
  std::optional<Duration> timeout_;
  std::error_code error_;
  std::unique_ptr<const std::string> other_method_;  // the name of Method::other
  bool* given_ = nullptr;                            // see note_given()
  InterimFunction interim_;
  Method method_;
  bool ignores_key_ = false;
  bool obeys_no_transform_ = false;
};

}  // namespace weir::http

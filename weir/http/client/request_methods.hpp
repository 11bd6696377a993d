// The functions that send requests, one for each usual method.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "weir/http/client/client_request.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/syntax/method.hpp"

namespace weir::http {

/// The base of a class that sends requests. Each function passes the result of
/// `request(method, url)` of Derived to its send(), and returns what send() returns.
/// Errors: those of send().
/// Cancel: that of send().
template <class Derived>
class RequestMethods {
 private:
  static Body body_of(Body body) noexcept { return body; }
  static Body body_of(std::string text) { return Body(std::move(text)); }
  Derived& derived() noexcept { return static_cast<Derived&>(*this); }
  auto send_empty(Method method, std::string_view url) {
    return derived().send(derived().request(method, url));
  }
  template <class T>
  auto send_json(Method method, std::string_view url, const T& value) {
    ClientRequest request = derived().request(method, url);
    request.set_json(value);
    return derived().send(std::move(request));
  }
  auto send_body(Method method, std::string_view url, MediaType type, Body body) {
    ClientRequest request = derived().request(method, url);
    request.set_body(type, std::move(body));
    return derived().send(std::move(request));
  }

 public:
  auto get(std::string_view url) { return send_empty(Method::get, url); }
  auto head(std::string_view url) { return send_empty(Method::head, url); }
  auto options(std::string_view url) { return send_empty(Method::options, url); }
  auto del(std::string_view url) { return send_empty(Method::delete_, url); }

  /// Send `value` as JSON.
  template <class T>
  auto post(std::string_view url, const T& value) {
    return send_json(Method::post, url, value);
  }
  template <class T>
  auto put(std::string_view url, const T& value) {
    return send_json(Method::put, url, value);
  }
  template <class T>
  auto patch(std::string_view url, const T& value) {
    return send_json(Method::patch, url, value);
  }
  template <class T>
  auto query(std::string_view url, const T& value) {
    return send_json(Method::query, url, value);
  }

  /// Send a Body, or a text, of any media type.
  template <class B>
  auto post(std::string_view url, MediaType type, B body) {
    return send_body(Method::post, url, type, body_of(std::move(body)));
  }
  template <class B>
  auto put(std::string_view url, MediaType type, B body) {
    return send_body(Method::put, url, type, body_of(std::move(body)));
  }
  template <class B>
  auto patch(std::string_view url, MediaType type, B body) {
    return send_body(Method::patch, url, type, body_of(std::move(body)));
  }
  template <class B>
  auto query(std::string_view url, MediaType type, B body) {
    return send_body(Method::query, url, type, body_of(std::move(body)));
  }
};

}  // namespace weir::http

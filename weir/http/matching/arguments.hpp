// Typed arguments of handlers: parts of a request that are read before the handler is called.
//
//     http::Response list(http::Query<Page> page, http::Header<"X-Trace"> trace);
//     Task<http::Response> add(int user, http::Json<Note> note);
//
// A part that does not fit never reaches the handler. The client gets a problem that names all such
// parts. The status is 400 for a query, a header or a cookie, 415 for another media type, and 400
// or 422 for a body. A std::optional around an argument is empty if the request has no such part; a
// part that does not fit is still an error.
#pragma once

#include <string_view>
#include <utility>

#include "weir/base/detail/constant_text.hpp"

namespace weir::http {

/// An Argument is a value of type T that a handler takes from a request: `*argument` is the value.
template <class T>
class Argument {
 public:
  using Value = T;

  Argument() : value_() {}
  explicit Argument(T value) : value_(std::move(value)) {}
  T& operator*() noexcept { return value_; }
  const T& operator*() const noexcept { return value_; }
  T* operator->() noexcept { return &value_; }
  const T* operator->() const noexcept { return &value_; }

 private:
  T value_;
};

/// The body of the request, in JSON; see weir/json.hpp. A handler takes at most one body.
template <class T>
class Json : public Argument<T> {
 public:
  using Argument<T>::Argument;
};

/// The body of the request as an HTML form sends it (application/x-www-form-urlencoded, in UTF-8),
/// as the fields of the struct T; see Query. A '%' without two hexadecimal digits is answered with
/// 400, and another type or charset with 415.
template <class T>
class Form : public Argument<T> {
 public:
  using Argument<T>::Argument;
};

/// The query of the request, as the fields of the struct T. A field is a number, a bool (`true` or
/// `false`), a std::string, an enum with names, a duration (`250ms`), a time (RFC 3339), a path or
/// a type with from_path_param(). The rule of weir/json.hpp says which of these may be missing. A
/// std::vector of these takes a name any number of times, see RouteOptions::values_max. Other names
/// in the query are ignored. json::renames gives fields other names.
template <class T>
class Query : public Argument<T> {
 public:
  using Argument<T>::Argument;
};

/// The value of the first header of this name: `http::Header<"X-Count", int>`. A std::string_view
/// is valid as long as the request.
template <ConstantText Name, class T = std::string_view>
class Header : public Argument<T> {
 public:
  using Argument<T>::Argument;
};

/// The value of the first cookie of this name (RFC 6265), as it was sent, without quotes around it.
/// A std::string_view is valid as long as the request.
template <ConstantText Name, class T = std::string_view>
class Cookie : public Argument<T> {
 public:
  using Argument<T>::Argument;
};

}  // namespace weir::http

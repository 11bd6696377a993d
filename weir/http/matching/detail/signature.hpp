// What a handler's signature says: what it takes of a request, and whether it may wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weir/base/detail/function_type.hpp"
#include "weir/base/result.hpp"
#include "weir/http/matching/path_params.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/json/detail/shape.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::http {
namespace detail {

/// As a handler of nothing, too.
struct MutableFunction {
  using Returned = Response;
  using Taken = Parameters<>;
  static constexpr bool callable_as_const = false;
};

/// Whatever else F is: a handler of nothing, so that one readable error is all that appears.
struct Unreadable {
  using Returned = Response;
  using Taken = Parameters<>;
  static constexpr bool callable_as_const = true;
};

template <class F>
constexpr auto function_of() {
  using Of = FunctionTypeOf<F>;
  if constexpr (std::is_void_v<Of>) {
    return Unreadable();
  } else if constexpr (Of::callable_as_const) {
    return Of();
  } else {
    return MutableFunction();
  }
}

/// Takes the leading Request& and Scope& off a parameter list.
template <class P>
struct Split {
  static constexpr bool request = false;
  static constexpr bool scope = false;
  using Left = P;
};
template <class... P>
struct Split<Parameters<Scope&, P...>> {
  static constexpr bool request = false;
  static constexpr bool scope = true;
  using Left = Parameters<P...>;
};
template <class... P>
struct Split<Parameters<Request&, P...>> : Split<Parameters<P...>> {
  static constexpr bool request = true;
};
template <class... P>
struct Split<Parameters<const Request&, P...>> : Split<Parameters<P...>> {
  static constexpr bool request = true;
};

template <class P>
inline constexpr bool takes_capture =
    CaptureType<std::remove_cvref_t<P>> &&
    (!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>);

template <class P>
inline constexpr bool takes_text = std::is_same_v<std::remove_cvref_t<P>, Rest> ||
                                   std::is_same_v<std::remove_cvref_t<P>, std::string_view> ||
                                   std::is_same_v<std::remove_cvref_t<P>, std::string>;

/// A parameter that is made of the body: what is an array or an object in JSON.
template <class P>
inline constexpr bool takes_body =
    json::is_composite<std::remove_cvref_t<P>> && !CaptureType<std::remove_cvref_t<P>> &&
    (!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>);

template <class... P>
constexpr bool last_takes_body() {
  if constexpr (sizeof...(P) == 0) {
    return false;
  } else {
    return takes_body<std::tuple_element_t<sizeof...(P) - 1, std::tuple<P...>>>;
  }
}

/// Takes the body off the end of a parameter list.
template <class P>
struct SplitBody;
template <class... P>
struct SplitBody<Parameters<P...>> {
  using Body = void;
  using Left = Parameters<P...>;
};
template <class... P>
  requires(last_takes_body<P...>())
struct SplitBody<Parameters<P...>> {
  using All = std::tuple<P...>;
  using Body = std::remove_cvref_t<std::tuple_element_t<sizeof...(P) - 1, All>>;
  template <std::size_t... I>
  static Parameters<std::tuple_element_t<I, All>...> left(std::index_sequence<I...>);
  using Left = decltype(left(std::make_index_sequence<sizeof...(P) - 1>()));
};

template <class P>
struct CapturesOf;
template <class... P>
struct CapturesOf<Parameters<P...>> {
  using Values = std::tuple<std::remove_cvref_t<P>...>;
  static constexpr bool all_readable = (true && ... && takes_capture<P>);
  static constexpr bool any_reference = (false || ... || std::is_reference_v<P>);

  static constexpr HandlerShape shape() {
    HandlerShape shape;
    shape.captures = sizeof...(P);
    std::size_t index = 0;
    [[maybe_unused]] const auto look = [&shape, &index](bool rest, bool text) {
      if (rest) shape.rest_index = std::min(shape.rest_index, index);
      shape.last_takes_rest = text;
      ++index;
    };
    (look(std::is_same_v<std::remove_cvref_t<P>, Rest>, takes_text<P>), ...);
    return shape;
  }
};

/// A Response, what becomes one, or what is written as JSON.
template <class R>
inline constexpr bool answers =
    std::is_convertible_v<R, Response> || json::is_composite<std::remove_cvref_t<R>>;
template <class T>
inline constexpr bool answers<Result<T>> = answers<T>;
template <>
inline constexpr bool answers<Result<void>> = false;

template <class R>
struct Answer {
  static constexpr bool waits = false;
  static constexpr bool good = answers<R>;
};
template <class T>
struct Answer<Task<T>> {
  static constexpr bool waits = true;
  static constexpr bool good = answers<T>;
};

}  // namespace detail

/// Reads the signature of a handler: `(Request&?, Scope&?, captures..., body?)`, returning a
/// Response, a Status, a value that is written as JSON, a Result of one, or a Task of any of these.
///
/// The body is a struct, container, tuple or variant, by value or const reference, and is read from
/// JSON before the handler is called; see json.hpp for what becomes what. Who sends another one
/// gets 415 if its Content-Type is not JSON, else 400 with a problem (RFC 9457) that names the
/// place in the body, and where it does not arrive what Request::body() says. A value that is
/// returned is sent with 200; for another status return http::json(value, status).
template <class F>
class Signature {
  using Of = decltype(detail::function_of<F>());
  using Leading = detail::Split<typename Of::Taken>;
  using Trailing = detail::SplitBody<typename Leading::Left>;
  using CapturesOf = detail::CapturesOf<typename Trailing::Left>;

 public:
  using Captured = typename CapturesOf::Values;
  /// void for a handler that takes none.
  using Body = typename Trailing::Body;
  static constexpr bool takes_body = !std::is_void_v<Body>;
  static constexpr bool takes_request = Leading::request;
  static constexpr bool takes_scope = Leading::scope;
  static constexpr bool waits = detail::Answer<typename Of::Returned>::waits;
  static constexpr HandlerShape shape = CapturesOf::shape();
  /// False for what does not say what it takes; check() says so.
  static constexpr bool readable =
      !std::is_same_v<Of, detail::Unreadable> && Of::callable_as_const && CapturesOf::all_readable;

  /// Does not compile for what cannot be a handler.
  static constexpr void check() {
    static_assert(!std::is_same_v<Of, detail::Unreadable>,
                  "a handler is a function or an object with one operator(): overloaded and "
                  "generic ones do not say what they take; wrap the call in a lambda");
    static_assert(Of::callable_as_const,
                  "all cores share a handler: its operator() must be const (no mutable lambda)");
    static_assert(
        CapturesOf::all_readable,
        "a handler takes (Request&?, Scope&?, captures..., body?) in this order; captures "
        "are std::string_view, std::string, integers (not bool or char), float, double, "
        "http::Rest or types with from_capture(); the body, read from JSON, is one struct "
        "of public fields, container, tuple or variant; all by value or const reference");
    static_assert(detail::Answer<typename Of::Returned>::good,
                  "a handler returns a Response, a Status, a value that is written as JSON (a "
                  "struct of public fields, container, tuple or variant), a Result of one, or a "
                  "Task of these");
    if constexpr (takes_body) {
      static_assert(std::is_default_constructible_v<Body>,
                    "the body of a request is first made without arguments, then read");
    }
    static_assert(!takes_scope || waits, "a handler that takes a Scope& returns a Task");
    static_assert(!waits || !CapturesOf::any_reference,
                  "a handler that returns a Task takes captures by value: it outlives the call");
  }
};

}  // namespace weir::http

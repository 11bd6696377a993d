// The signature of a handler: the parameters that it takes and whether it may wait.
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
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/path_params.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/json/detail/shape.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::http {
namespace detail {

/// Describes a handler whose call operator is not const as one without parameters.
struct MutableFunction {
  using ReturnType = Response;
  using ParameterTypes = Parameters<>;
  static constexpr bool callable_as_const = false;
};

/// Describes any other type as a handler without parameters, so that only one readable error
/// appears.
struct NotCallable {
  using ReturnType = Response;
  using ParameterTypes = Parameters<>;
  static constexpr bool callable_as_const = true;
};

template <class F>
constexpr auto function_of() {
  using Of = FunctionTypeOf<F>;
  if constexpr (std::is_void_v<Of>) {
    return NotCallable();
  } else if constexpr (Of::callable_as_const) {
    return Of();
  } else {
    return MutableFunction();
  }
}

/// Removes the leading Request& and Scope& from a parameter list.
template <class P>
struct Split {
  static constexpr bool request = false;
  static constexpr bool scope = false;
  using Remaining = P;
};
template <class... P>
struct Split<Parameters<Scope&, P...>> {
  static constexpr bool request = false;
  static constexpr bool scope = true;
  using Remaining = Parameters<P...>;
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
inline constexpr bool takes_path_param =
    PathParamType<std::remove_cvref_t<P>> &&
    (!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>);

template <class P>
inline constexpr bool takes_text = std::is_same_v<std::remove_cvref_t<P>, Wildcard> ||
                                   std::is_same_v<std::remove_cvref_t<P>, std::string_view> ||
                                   std::is_same_v<std::remove_cvref_t<P>, std::string>;

/// A parameter that is read from the body: its type is an array or an object in JSON.
template <class P>
inline constexpr bool takes_body =
    json::is_composite<std::remove_cvref_t<P>> && !PathParamType<std::remove_cvref_t<P>> &&
    (!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>);

template <class... P>
constexpr bool last_takes_body() {
  if constexpr (sizeof...(P) == 0) {
    return false;
  } else {
    return takes_body<std::tuple_element_t<sizeof...(P) - 1, std::tuple<P...>>>;
  }
}

/// Removes the body from the end of a parameter list.
template <class P>
struct SplitBody;
template <class... P>
struct SplitBody<Parameters<P...>> {
  using Body = void;
  using Remaining = Parameters<P...>;
};
template <class... P>
  requires(last_takes_body<P...>())
struct SplitBody<Parameters<P...>> {
  using All = std::tuple<P...>;
  using Body = std::remove_cvref_t<std::tuple_element_t<sizeof...(P) - 1, All>>;
  template <std::size_t... I>
  static Parameters<std::tuple_element_t<I, All>...> left(std::index_sequence<I...>);
  using Remaining = decltype(left(std::make_index_sequence<sizeof...(P) - 1>()));
};

template <class P>
struct PathParamsOf;
template <class... P>
struct PathParamsOf<Parameters<P...>> {
  using Values = std::tuple<std::remove_cvref_t<P>...>;
  static constexpr bool all_convertible = (true && ... && takes_path_param<P>);
  static constexpr bool any_reference = (false || ... || std::is_reference_v<P>);

  static constexpr HandlerShape shape() {
    HandlerShape shape;
    shape.params = sizeof...(P);
    std::size_t index = 0;
    [[maybe_unused]] const auto look = [&shape, &index](bool rest, bool text) {
      if (rest) shape.wildcard_index = std::min(shape.wildcard_index, index);
      shape.last_takes_wildcard = text;
      ++index;
    };
    (look(std::is_same_v<std::remove_cvref_t<P>, Wildcard>, takes_text<P>), ...);
    return shape;
  }
};

/// True for a Response, a type that converts to one, or a type that is written as JSON.
template <class R>
inline constexpr bool is_response_type =
    std::is_convertible_v<R, Response> || json::is_composite<std::remove_cvref_t<R>>;
template <class T>
inline constexpr bool is_response_type<Result<T>> = is_response_type<T>;
template <>
inline constexpr bool is_response_type<Result<void>> = false;

template <class R>
struct ReturnType {
  static constexpr bool is_async = false;
  static constexpr bool is_valid = is_response_type<R>;
};
template <class T>
struct ReturnType<Task<T>> {
  static constexpr bool is_async = true;
  static constexpr bool is_valid = is_response_type<T>;
};

}  // namespace detail

/// The signature of a handler: `(Request&?, Scope&?, path parameters..., body?)`. It returns a
/// Response, a Status, a value that is written as JSON, a Result of one, or a Task of any of
/// these.
///
/// The body is a struct, container, tuple or variant, by value or const reference. It is read
/// from JSON before the handler is called; see weir/json.hpp for the JSON form of each type. A
/// body whose Content-Type is not JSON is answered with 415 and is not read. Invalid JSON is
/// answered with 400 and a problem (RFC 9457) that names the position in the body. A body that does
/// not arrive is answered with the error of Request::body(). A returned value is sent with 200; for
/// another status return http::json(value, status).
///
/// An error in a Result is answered with its to_status(). An exception is answered with 500 and
/// logged; the client does not see its text.
template <class F>
class Signature {
  using Of = decltype(detail::function_of<F>());
  using Leading = detail::Split<typename Of::ParameterTypes>;
  using Trailing = detail::SplitBody<typename Leading::Remaining>;
  using PathParamsOf = detail::PathParamsOf<typename Trailing::Remaining>;

 public:
  using PathParamTypes = typename PathParamsOf::Values;
  /// The type of the body; void if the handler takes none.
  using Body = typename Trailing::Body;
  static constexpr bool takes_body = !std::is_void_v<Body>;
  static constexpr bool takes_request = Leading::request;
  static constexpr bool takes_scope = Leading::scope;
  static constexpr bool is_async = detail::ReturnType<typename Of::ReturnType>::is_async;
  static constexpr HandlerShape shape = PathParamsOf::shape();
  /// False if the parameters cannot be determined; check() then reports why.
  static constexpr bool is_readable = !std::is_same_v<Of, detail::NotCallable> &&
                                      Of::callable_as_const && PathParamsOf::all_convertible;

  /// Fails to compile if F cannot be a handler.
  static constexpr void check() {
    static_assert(!std::is_same_v<Of, detail::NotCallable>,
                  "a handler is a function or an object with one operator(): overloaded and "
                  "generic ones have no single signature; wrap the call in a lambda");
    static_assert(Of::callable_as_const,
                  "all cores share a handler: its operator() must be const (no mutable lambda)");
    static_assert(
        PathParamsOf::all_convertible,
        "a handler takes (Request&?, Scope&?, path parameters..., body?) in this order; path "
        "parameters are std::string_view, std::string, integers (not bool or char), float, double, "
        "http::Wildcard or types with from_path_param(); the body, read from JSON, is one struct "
        "of public fields, container, tuple or variant; all by value or const reference");
    static_assert(detail::ReturnType<typename Of::ReturnType>::is_valid,
                  "a handler returns a Response, a Status, a value that is written as JSON (a "
                  "struct of public fields, container, tuple or variant), a Result of one, or a "
                  "Task of these");
    if constexpr (takes_body) {
      static_assert(std::is_default_constructible_v<Body>,
                    "the body of a request must be default-constructible: JSON is read into it");
    }
    static_assert(!takes_scope || is_async, "a handler that takes a Scope& returns a Task");
    static_assert(
        !is_async || !PathParamsOf::any_reference,
        "a handler that returns a Task takes path parameters by value: its task outlives the call");
  }
};

}  // namespace weir::http

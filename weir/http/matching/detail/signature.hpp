// The signature of a handler: the parameters that it takes and whether it may wait.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weir/base/detail/function_type.hpp"
#include "weir/base/detail/type_name.hpp"
#include "weir/base/result.hpp"
#include "weir/http/matching/detail/argument_reader.hpp"
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

/// The kind of a parameter of a handler.
enum class ArgumentKind : std::uint8_t {
  none,  ///< nothing that a handler can take
  request,
  scope,
  path,       ///< a path parameter
  made,       ///< a value that the type's from_request() makes
  part,       ///< a Query, Header, Cookie or a std::optional of one
  reference,  ///< a service, or a value that middleware has set
  body,
};

template <class P>
consteval ArgumentKind kind_of_argument() {
  using T = std::remove_cvref_t<P>;
  if constexpr (std::is_same_v<T, Request>) {
    return std::is_lvalue_reference_v<P> ? ArgumentKind::request : ArgumentKind::none;
  } else if constexpr (std::is_same_v<P, Scope&>) {
    return ArgumentKind::scope;
  } else if constexpr (std::is_lvalue_reference_v<P> &&
                       !std::is_const_v<std::remove_reference_t<P>>) {
    constexpr bool is_value =
        HasFromRequest<T> || PathParamType<T> || PartReader<T>::is_part || names_body<T>;
    return is_reference_parameter<P> && !is_value ? ArgumentKind::reference : ArgumentKind::none;
  } else if constexpr (HasFromRequest<T>) {
    return ArgumentKind::made;
  } else if constexpr (PathParamType<T>) {
    return ArgumentKind::path;
  } else if constexpr (PartReader<T>::is_part) {
    return ArgumentKind::part;
  } else if constexpr (std::is_lvalue_reference_v<P> && !names_body<T>) {
    static_assert(!NamesFromRequest<T> || HasFromRequest<T>,
                  "weir::http: from_request() must be static, public and take a const Request&, "
                  "then services as references");
    return std::is_class_v<T> ? ArgumentKind::reference : ArgumentKind::none;
  } else {
    return BodyOf<T>::is_body ? ArgumentKind::body : ArgumentKind::none;
  }
}

template <class P>
inline constexpr bool takes_text = std::is_same_v<std::remove_cvref_t<P>, Wildcard> ||
                                   std::is_same_v<std::remove_cvref_t<P>, std::string_view> ||
                                   std::is_same_v<std::remove_cvref_t<P>, std::string>;

/// The references of one parameter: itself, or those that its from_request() takes.
template <class P>
constexpr auto references_of_parameter() {
  if constexpr (kind_of_argument<P>() == ArgumentKind::reference) {
    return Parameters<P>();
  } else if constexpr (kind_of_argument<P>() == ArgumentKind::made) {
    return references_of_from_request<std::remove_cvref_t<P>>();
  } else {
    return Parameters<>();
  }
}

/// Returns the type of a body that the handler takes as it is, without Json or Form; else nullptr.
template <class P>
constexpr const inject::Type* plain_body_of_parameter() {
  using T = std::remove_cvref_t<P>;
  if constexpr (kind_of_argument<P>() == ArgumentKind::body) {
    if constexpr (!names_body<T>) return &inject::type<typename BodyOf<T>::Value>;
  }
  return nullptr;
}

template <class... P>
constexpr std::size_t size_of(Parameters<P...>) {
  return sizeof...(P);
}
template <class... All>
struct JoinedParameters {
  using type = Parameters<>;
};
template <class... P>
struct JoinedParameters<Parameters<P...>> {
  using type = Parameters<P...>;
};
template <class... P, class... Q, class... More>
struct JoinedParameters<Parameters<P...>, Parameters<Q...>, More...>
    : JoinedParameters<Parameters<P..., Q...>, More...> {};

/// True if a handler can take a P. The compiler names the parameter, counted from 1, in its
/// message.
template <int Number, class P>
inline constexpr bool can_take_parameter = kind_of_argument<P>() != ArgumentKind::none;

template <int Number, class P>
constexpr void check_parameter() {
  static_assert(
      can_take_parameter<Number, P>,
      "a handler takes path parameters, http::Query, Header, Cookie, Form, Json, types with "
      "from_request(), services as T& or const T&, a Request& and a Scope&; path parameters are "
      "std::string_view, std::string, integers (not bool or char), float, double, http::Wildcard "
      "or types with from_path_param(); a body, read from JSON, is one struct of public fields, "
      "container, tuple or variant, by value");
}

/// The types of a list of parameters, by their kinds.
template <class P>
struct ArgumentList;
template <class... P>
struct ArgumentList<Parameters<P...>> {
  using Types = std::tuple<P...>;
  static constexpr std::array<ArgumentKind, sizeof...(P)> kinds{kind_of_argument<P>()...};
  /// The references of all parameters, in their order, as Parameters<...>.
  using References = typename JoinedParameters<decltype(references_of_parameter<P>())...>::type;
  static constexpr std::array<std::size_t, sizeof...(P)> reference_counts{
      size_of(references_of_parameter<P>())...};

  static constexpr std::size_t count(ArgumentKind kind) {
    return static_cast<std::size_t>(std::count(kinds.begin(), kinds.end(), kind));
  }
  /// Returns the index of the first parameter of this kind, or the number of parameters.
  static constexpr std::size_t find(ArgumentKind kind) {
    return static_cast<std::size_t>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
  }
  /// Returns the number of path parameters before the parameter at `index`.
  static constexpr std::size_t path_index(std::size_t index) {
    const auto end = kinds.begin() + static_cast<std::ptrdiff_t>(index);
    return static_cast<std::size_t>(std::count(kinds.begin(), end, ArgumentKind::path));
  }
  /// Returns the index of the first reference of the parameter at `index`.
  static constexpr std::size_t reference_index(std::size_t index) {
    std::size_t sum = 0;
    for (std::size_t each = 0; each < index; ++each) sum += reference_counts[each];
    return sum;
  }
  /// True if a parameter that is read from the head is a reference.
  static constexpr bool any_reference =
      (false || ... ||
       (std::is_reference_v<P> && kind_of_argument<P>() != ArgumentKind::request &&
        kind_of_argument<P>() != ArgumentKind::scope &&
        kind_of_argument<P>() != ArgumentKind::reference &&
        kind_of_argument<P>() != ArgumentKind::body));

  /// Returns the type of the body if no Json or Form names it; else nullptr.
  static constexpr const inject::Type* plain_body() {
    const inject::Type* found = nullptr;
    ((found = found != nullptr ? found : plain_body_of_parameter<P>()), ...);
    return found;
  }
  /// Fails to compile if a handler cannot take a parameter.
  static constexpr void check() {
    []<std::size_t... I>(std::index_sequence<I...>) {
      (check_parameter<static_cast<int>(I) + 1, P>(), ...);
    }(std::index_sequence_for<P...>());
  }

  static constexpr HandlerShape shape() {
    HandlerShape shape;
    [[maybe_unused]] const auto look = [&shape](ArgumentKind kind, bool rest, bool text) {
      if (kind != ArgumentKind::path) return;
      if (rest) shape.wildcard_index = std::min(shape.wildcard_index, shape.params);
      shape.last_takes_wildcard = text;
      ++shape.params;
    };
    (look(kind_of_argument<P>(), std::is_same_v<std::remove_cvref_t<P>, Wildcard>, takes_text<P>),
     ...);
    return shape;
  }
};

/// True for a Result and for a std::expected with any error.
template <class T>
inline constexpr bool is_expected = is_result<T>;
template <class T, class E>
inline constexpr bool is_expected<std::expected<T, E>> = true;

/// True for a Response, a type that converts to one, or a type that is written as JSON.
template <class R>
inline constexpr bool is_response_type =
    std::is_convertible_v<R, Response> || json::is_composite<std::remove_cvref_t<R>>;
template <>
inline constexpr bool is_response_type<std::error_code> = false;  // success would be an error
template <class T, class E>
inline constexpr bool is_response_type<std::expected<T, E>> =
    is_response_type<T> && std::is_convertible_v<E, Response>;
template <class E>
inline constexpr bool is_response_type<std::expected<void, E>> = false;
template <class T>
inline constexpr bool is_response_type<Result<T>> =
    is_response_type<std::expected<T, std::error_code>>;

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

/// The signature of a handler. Its parameters are, in any order: the path parameters in the order
/// of the pattern, the typed arguments of arguments.hpp, values of types with from_request(),
/// references, the Request& and a Scope&. At most one of them is the body. It returns a Response, a
/// Status, a value that is written as JSON, a Result or a std::expected<T, Response> of one, or a
/// Task of any of these.
///
/// The arguments are made in this order, and the first step that fails is the answer: the path
/// parameters (404), the values of from_request(), the parts of the head (400), the media type of
/// the body (415), and the body.
///
/// `static ... from_request(const Request&)` returns a T, a Result<T>, or a std::expected<T, E>
/// whose error is the Response or the Status that answers the request instead. It may take
/// references after the request: `from_request(const Request&, const Store&)`.
///
/// A reference to an object of a class is a service of the App that serves the router: a T& of this
/// core, or a const T& that may be shared; see serve_http(). A const T& in a `group<T>()` is the
/// value that the middleware of the group has set instead; see Router::group(). A client never
/// sends what a handler takes by reference, except for Json, Form and the parts of the head.
///
/// A parameter that is a struct, container, tuple or variant, by value, is the body as Json<T> is;
/// see weir/json.hpp for the JSON form of each type. A body that does not arrive is answered with
/// the error of Request::body(). A returned value is sent with 200; for another status return
/// http::json(value, status).
///
/// An error in a Result is answered with its to_status(). The Response in a std::expected is sent
/// as it is: `return std::unexpected(http::problem(Status::conflict, "the name is taken"))`. fail()
/// and WEIR_TRY work there too, since an error converts to its Response. An exception is answered
/// with 500 and logged; the client does not see its text.
template <class F>
class Signature {
  using Of = decltype(detail::function_of<F>());
  using Kind = detail::ArgumentKind;

 public:
  using Arguments = detail::ArgumentList<typename Of::ParameterTypes>;
  static constexpr bool takes_body = Arguments::count(Kind::body) > 0;
  static constexpr bool takes_scope = Arguments::count(Kind::scope) > 0;
  using References = typename Arguments::References;
  static constexpr std::size_t reference_count = detail::size_of(References());
  /// The largest number of references of one handler; App gives a service at most 16 arguments.
  static constexpr std::size_t reference_count_max = 15;
  static constexpr bool takes_parts = Arguments::count(Kind::part) > 0;
  /// True if arguments are made from the head, which may not fit.
  static constexpr bool takes_head = takes_parts || Arguments::count(Kind::made) > 0;
  static constexpr bool is_async = detail::ReturnType<typename Of::ReturnType>::is_async;
  static constexpr HandlerShape shape = Arguments::shape();
  /// False if the parameters cannot be determined; check() then reports why.
  static constexpr bool is_readable = !std::is_same_v<Of, detail::NotCallable> &&
                                      Of::callable_as_const && Arguments::count(Kind::none) == 0;
  /// False if check() reports an error.
  static constexpr bool is_valid =
      is_readable && detail::ReturnType<typename Of::ReturnType>::is_valid &&
      Arguments::count(Kind::body) <= 1 && (!takes_scope || is_async) &&
      (!is_async || !Arguments::any_reference);

  /// Fails to compile if F cannot be a handler.
  static constexpr void check() {
    static_assert(!std::is_same_v<Of, detail::NotCallable>,
                  "a handler is a function or an object with one operator(): overloaded and "
                  "generic ones have no single signature; wrap the call in a lambda");
    static_assert(Of::callable_as_const,
                  "all cores share a handler: its operator() must be const (no mutable lambda)");
    Arguments::check();
    static_assert(reference_count <= reference_count_max,
                  "a handler takes at most 15 references to services and values of middleware");
    static_assert(Arguments::count(Kind::body) <= 1, "a handler takes at most one body");
    static_assert(detail::ReturnType<typename Of::ReturnType>::is_valid,
                  "a handler returns a Response, a Status, a value that is written as JSON (a "
                  "struct of public fields, container, tuple or variant), a Result or a "
                  "std::expected<T, Response> of one, or a Task of these");
    static_assert(!takes_scope || is_async, "a handler that takes a Scope& returns a Task");
    static_assert(!is_async || !Arguments::any_reference,
                  "a handler that returns a Task takes path parameters and typed arguments by "
                  "value: its task outlives the call");
  }
};

}  // namespace weir::http

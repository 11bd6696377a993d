// Handlers: functions of any signature, converted to one type.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/detail/signature.hpp"
#include "weir/http/matching/path_params.hpp"
#include "weir/http/message/json.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/json/read.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Returns the response for an error that a handler returned; see to_status() and
/// Response::cause().
Response error_response(std::error_code error);

namespace detail {

Task<Response> ready_task(Response response);

template <class T>
Response to_response(T&& value) {
  if constexpr (is_result<std::remove_cvref_t<T>>) {
    if (!value) return error_response(value.error());
    return to_response(*std::forward<T>(value));
  } else if constexpr (std::is_convertible_v<T, Response>) {
    return Response(std::forward<T>(value));
  } else {
    return json(value);
  }
}

/// Returns the result of `call` as a response. A Response is constructed in place, without a
/// move.
template <class Call>
Response response_of(const Call& call) {
  if constexpr (std::is_same_v<decltype(call()), Response>) {
    return call();
  } else {
    return to_response(call());
  }
}

inline Task<Response> to_response_task(Task<Response> task) {
  return task;
}
template <class T>
Task<Response> to_response_task(Task<T> task) {
  T value = co_await std::move(task);
  co_return to_response(std::move(value));
}

/// A handler that takes a Scope&, in the form that with_scope() calls.
template <class F>
class ScopedHandler {
 public:
  ScopedHandler(const F& handler, Request& request) noexcept
      : handler_(&handler), request_(&request) {}
  template <class... Values>
  auto operator()(Scope& scope, Values... values) const {
    if constexpr (Signature<F>::takes_request) {
      return (*handler_)(*request_, scope, std::move(values)...);
    } else {
      return (*handler_)(scope, std::move(values)...);
    }
  }

 private:
  const F* handler_;
  Request* request_;
};

}  // namespace detail

/// The handler of a route with its type erased.
/// Threads: calling is const and may happen on any core.
/// Lifetime: it owns the function object. The views in path parameters live as long as the
/// request.
class Handler {
 public:
  template <class F>
  static Handler of(F function) {
    using S = Signature<F>;
    S::check();
    Target target(new F(std::move(function)),
                  [](const void* object) noexcept { delete static_cast<const F*>(object); });
    if constexpr (S::takes_body) {
      Handler handler(std::move(target), nullptr, &start_with_body<F>);
      if constexpr (!S::is_async) handler.call_with_body_ = &call_with_body<F>;
      return handler;
    } else if constexpr (S::is_async) {
      return Handler(std::move(target), nullptr, &start_as<F>);
    } else {
      return Handler(std::move(target), &call_as<F>, nullptr);
    }
  }

  /// Returns true if the handler returns a Task or takes a body, which may not have arrived. The
  /// caller then uses start().
  bool is_async() const noexcept { return call_ == nullptr; }
  /// Returns the response of a handler that does not wait; 404 if a path parameter does not fit
  /// its type.
  Response call(Request& request, const PathParams& params) const {
    return call_(target_.get(), request, params);
  }
  /// Returns true if the handler waits only for the body. If the body has arrived, the caller may
  /// use call_with_body().
  bool needs_only_body() const noexcept { return call_with_body_ != nullptr; }
  Response call_with_body(Request& request, const PathParams& params, std::string_view body) const {
    return call_with_body_(target_.get(), request, params, body);
  }
  /// Returns the response of any handler.
  /// Cancel: passed on to the handler.
  /// Lifetime: `request` and the texts of `params` must live until the task ends.
  Task<Response> start(Request& request, const PathParams& params) const {
    if (is_async()) return start_(target_.get(), request, params);
    return call_later(*this, request, params);
  }

 private:
  using Target = std::unique_ptr<const void, void (*)(const void*) noexcept>;
  using Call = Response (*)(const void* target, Request&, const PathParams&);
  using CallWithBody = Response (*)(const void* target, Request&, const PathParams&,
                                    std::string_view body);
  using Start = Task<Response> (*)(const void* target, Request&, const PathParams&);

  Handler(Target target, Call call, Start start) noexcept
      : target_(std::move(target)), call_(call), start_(start) {}

  static Task<Response> call_later(const Handler& handler, Request& request,
                                   const PathParams& params);

  /// Returns the path parameters in the handler's types, std::nullopt for each that does not fit.
  template <class Types>
  static auto values_of(const PathParams& params) {
    return [&params]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<std::optional<std::tuple_element_t<I, Types>>...>{
          path_param_as<std::tuple_element_t<I, Types>>(params[I])...};
    }(std::make_index_sequence<std::tuple_size_v<Types>>());
  }
  template <class... T>
  static bool all_fit(const std::tuple<std::optional<T>...>& values) {
    return std::apply([](const auto&... each) { return (true && ... && each.has_value()); },
                      values);
  }

  /// Calls the handler with the path parameters, and with the body if it takes one.
  template <class F, class Values, class... Body>
  static auto invoke(const F& handler, Request& request, Values& values, Body&... body) {
    using S = Signature<F>;
    return std::apply(
        [&](auto&... each) {
          if constexpr (S::takes_scope) {
            return with_scope(detail::ScopedHandler<F>(handler, request), std::move(*each)...,
                              std::move(body)...);
          } else if constexpr (S::takes_request) {
            return handler(request, std::move(*each)..., std::move(body)...);
          } else {
            return handler(std::move(*each)..., std::move(body)...);
          }
        },
        values);
  }

  template <class F>
  static Response call_as(const void* target, Request& request, const PathParams& params) {
    const F& handler = *static_cast<const F*>(target);
    auto values = values_of<typename Signature<F>::PathParamTypes>(params);
    if (!all_fit(values)) return Response(Status::not_found);
    return detail::response_of([&] { return invoke(handler, request, values); });
  }

  template <class F>
  static Task<Response> start_as(const void* target, Request& request, const PathParams& params) {
    const F& handler = *static_cast<const F*>(target);
    auto values = values_of<typename Signature<F>::PathParamTypes>(params);
    if (!all_fit(values)) return detail::ready_task(Response(Status::not_found));
    return detail::to_response_task(invoke(handler, request, values));
  }

  template <class F>
  static Response call_with_body(const void* target, Request& request, const PathParams& params,
                                 std::string_view text) {
    using S = Signature<F>;
    const F& handler = *static_cast<const F*>(target);
    auto values = values_of<typename S::PathParamTypes>(params);
    if (!all_fit(values)) return Response(Status::not_found);
    if (!detail::accepts_json(request)) return Response(Status::unsupported_media_type);
    auto body = json::read<typename S::Body>(text);
    if (!body) return detail::invalid_json_response(body.error());
    return detail::response_of([&] { return invoke(handler, request, values, *body); });
  }

  /// Reads the body, then calls the handler.
  template <class F>
  static Task<Response> start_with_body(const void* target, Request& request,
                                        const PathParams& params) {
    using S = Signature<F>;
    const F& handler = *static_cast<const F*>(target);
    auto values = values_of<typename S::PathParamTypes>(params);
    if (!all_fit(values)) co_return Response(Status::not_found);
    if (!detail::accepts_json(request)) co_return Response(Status::unsupported_media_type);
    const auto text = co_await request.body_view();
    if (!text) co_return error_response(text.error());
    if constexpr (!S::is_async) {
      co_return call_with_body<F>(target, request, params, *text);
    } else {
      auto body = json::read<typename S::Body>(*text);
      if (!body) co_return detail::invalid_json_response(body.error());
      auto answer = detail::to_response_task(invoke(handler, request, values, *body));
      co_return co_await std::move(answer);
    }
  }

  Target target_;
  Call call_;
  CallWithBody call_with_body_ = nullptr;
  Start start_;
};

/// A literal pattern for a handler of type F. The compiler checks that both match. Its error
/// names a function whose name states the problem.
template <class F>
class PatternFor {
 public:
  template <std::convertible_to<std::string_view> Text>
  consteval PatternFor(const Text& text) : text_(text) {
    if (Signature<F>::is_readable)
      detail::report_pattern_error(check_shapes(shape_of_pattern(text_), Signature<F>::shape));
  }
  constexpr std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

}  // namespace weir::http

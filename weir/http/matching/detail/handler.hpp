// Handlers: functions of any signature, converted to one type.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "weir/base/detail/type_name.hpp"
#include "weir/base/result.hpp"
#include "weir/http/matching/core_demands.hpp"
#include "weir/http/matching/detail/argument_reader.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/detail/service_refs.hpp"
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

namespace detail {

Task<Response> ready_task(Response response);

template <class T>
Response to_response(T&& value) {
  if constexpr (is_expected<std::remove_cvref_t<T>>) {
    if (!value) return Response(std::forward<T>(value).error());
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

/// A function with the objects that it takes by reference, in the order of Signature::References.
/// An object is nullptr if middleware sets the value.
/// Lifetime: the objects outlive it.
template <class F>
struct BoundFunction {
  std::shared_ptr<const F> function;
  std::array<void*, Signature<F>::reference_count> objects;
};

/// The function that a Handler for F calls, with its objects if it takes references.
template <class F>
class Callee {
 public:
  /// `target` is an F, or a BoundFunction<F> if F takes references.
  explicit Callee(const void* target) noexcept {
    if constexpr (Signature<F>::reference_count == 0) {
      function_ = static_cast<const F*>(target);
    } else {
      const auto& bound = *static_cast<const BoundFunction<F>*>(target);
      function_ = bound.function.get();
      objects_ = bound.objects.data();
    }
  }
  const F& function() const noexcept { return *function_; }
  void* object(std::size_t index) const noexcept { return objects_[index]; }

 private:
  const F* function_;
  void* const* objects_ = nullptr;
};

/// The arguments of one call of a handler of type F, made step by step before the call.
template <class F>
class CallArguments {
  using S = Signature<F>;
  using List = typename S::Arguments;
  using Types = typename List::Types;
  using Kind = ArgumentKind;

  template <class P>
  static consteval auto slot_for() {
    using T = std::remove_cvref_t<P>;
    constexpr Kind kind = kind_of_argument<P>();
    if constexpr (kind == Kind::path || kind == Kind::made) {
      return std::type_identity<std::optional<T>>();
    } else if constexpr (kind == Kind::part || kind == Kind::body) {
      static_assert(std::is_default_constructible_v<T>,
                    "an argument of a handler must be default-constructible: it is read into");
      return std::type_identity<T>();
    } else {
      return std::type_identity<std::monostate>();
    }
  }
  template <class... P>
  static std::tuple<typename decltype(slot_for<P>())::type...> slots_for(std::tuple<P...>*);
  using Slots = decltype(slots_for(static_cast<Types*>(nullptr)));
  static constexpr auto indices = std::make_index_sequence<std::tuple_size_v<Types>>();

 public:
  CallArguments() {}

  /// Returns false if a path parameter does not fit its type.
  bool read_path([[maybe_unused]] const PathParams& params) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (true && ... && read_path_param<I>(params));
    }(indices);
  }

  /// Makes the values of from_request(), then reads the parts of the head.
  /// Returns: the answer to a head that does not fit.
  Rejection read_head([[maybe_unused]] const Callee<F>& callee,
                      [[maybe_unused]] const Request& request) {
    if constexpr (List::count(Kind::made) > 0) {
      Rejection rejected;
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        static_cast<void>((true && ... && make_value<I>(callee, request, rejected)));
      }(indices);
      if (rejected != nullptr) return rejected;
    }
    if constexpr (S::takes_parts) {
      Violations violations;
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (read_part_at<I>(request, violations), ...);
      }(indices);
      if (!violations.empty()) [[unlikely]]
        return reject(std::move(violations).answer(Status::bad_request));
    }
    return nullptr;
  }

  /// Returns true if the media type of the request is that of the body.
  bool accepts_body(const Request& request) const {
    using Of = BodyOf<std::remove_cvref_t<decltype(body())>>;
    if (is_optional_body && !request.body_length().has_body()) return true;
    return Of::is_form ? accepts_form(request) : accepts_json(request);
  }
  /// Reads the body.
  /// Returns: the answer to a body that does not fit.
  Rejection read_body(std::string_view text, const Request& request) {
    return detail::read_body(text, request, body());
  }

  /// Calls the handler, once.
  auto call(const Callee<F>& callee, Request& request, [[maybe_unused]] Scope* scope = nullptr) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return callee.function()(argument<I>(callee, request, scope)...);
    }(indices);
  }

 private:
  template <std::size_t I>
  using Parameter = std::tuple_element_t<I, Types>;
  template <std::size_t I>
  using Value = std::remove_cvref_t<Parameter<I>>;
  static constexpr std::size_t body_index = List::find(Kind::body);

  auto& body() { return std::get<body_index>(slots_); }
  const auto& body() const { return std::get<body_index>(slots_); }
  static constexpr bool is_optional_body = [] {
    if constexpr (S::takes_body) return json::detail::is_optional<Value<body_index>>;
    return false;
  }();

  template <std::size_t I>
  bool read_path_param([[maybe_unused]] const PathParams& params) {
    if constexpr (List::kinds[I] == Kind::path) {
      auto& slot = std::get<I>(slots_);
      slot = path_param_as<Value<I>>(params[List::path_index(I)]);
      return slot.has_value();
    } else {
      return true;
    }
  }
  template <std::size_t I>
  bool make_value([[maybe_unused]] const Callee<F>& callee, [[maybe_unused]] const Request& request,
                  [[maybe_unused]] Rejection& rejected) {
    if constexpr (List::kinds[I] == Kind::made) {
      auto made = call_from_request<I>(callee, request, references_of_from_request<Value<I>>(),
                                       std::make_index_sequence<List::reference_counts[I]>());
      if constexpr (std::is_same_v<decltype(made), Value<I>>) {
        std::get<I>(slots_).emplace(std::move(made));
      } else {
        if (!made) {
          rejected = reject(Response(std::move(made.error())));
          return false;
        }
        std::get<I>(slots_).emplace(std::move(*made));
      }
    }
    return true;
  }
  template <std::size_t I, class... P, std::size_t... J>
  static auto call_from_request([[maybe_unused]] const Callee<F>& callee, const Request& request,
                                Parameters<P...>, std::index_sequence<J...>) {
    return Value<I>::from_request(
        request, reference_to<P>(callee.object(List::reference_index(I) + J), request)...);
  }
  template <std::size_t I>
  void read_part_at([[maybe_unused]] const Request& request,
                    [[maybe_unused]] Violations& violations) {
    if constexpr (List::kinds[I] == Kind::part) {
      PartReader<Value<I>>::read(request, std::get<I>(slots_), violations);
    }
  }
  template <std::size_t I>
  decltype(auto) argument([[maybe_unused]] const Callee<F>& callee,
                          [[maybe_unused]] Request& request, [[maybe_unused]] Scope* scope) {
    if constexpr (List::kinds[I] == Kind::request) {
      return (request);
    } else if constexpr (List::kinds[I] == Kind::scope) {
      return (*scope);
    } else if constexpr (List::kinds[I] == Kind::reference) {
      return reference_to<Parameter<I>>(callee.object(List::reference_index(I)), request);
    } else if constexpr (List::kinds[I] == Kind::path || List::kinds[I] == Kind::made) {
      return std::move(*std::get<I>(slots_));
    } else {
      return std::move(std::get<I>(slots_));
    }
  }

  Slots slots_;
};

/// A handler that takes a Scope&, in the form that with_scope() calls. It keeps the arguments until
/// the task of the handler has ended.
template <class F>
class ScopedCall {
 public:
  ScopedCall(const Callee<F>& callee, Request& request, CallArguments<F>&& arguments)
      : callee_(callee), request_(&request), arguments_(std::move(arguments)) {}
  auto operator()(Scope& scope) { return arguments_.call(callee_, *request_, &scope); }

 private:
  Callee<F> callee_;
  Request* request_;
  CallArguments<F> arguments_;
};

/// Starts a handler that returns a Task. `arguments` lives until the task ends if the handler takes
/// a body.
template <class F>
Task<Response> start_handler(const Callee<F>& callee, Request& request,
                             CallArguments<F>& arguments) {
  if constexpr (Signature<F>::takes_scope) {
    return to_response_task(with_scope(ScopedCall<F>(callee, request, std::move(arguments))));
  } else {
    return to_response_task(arguments.call(callee, request));
  }
}

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
    static_assert(S::reference_count == 0,
                  "only a handler of an http::Router or its groups takes services by reference, "
                  "and only one of a group takes values of middleware; the handlers of a service "
                  "use those of its constructor");
    if constexpr (S::reference_count == 0) {
      Handler handler = of_target<F>(new F(std::move(function)));
      handler.demands_ = detail::core_demands_of<F>();
      return handler;
    } else {
      return Handler(Target(nullptr, [](const void*) noexcept {}), nullptr, nullptr);
    }
  }
  /// Returns a handler that calls a function of type F with objects for its references.
  /// Lifetime: see BoundFunction.
  template <class F>
  static Handler bound(detail::BoundFunction<F> function) {
    return of_target<F>(new detail::BoundFunction<F>(std::move(function)));
  }

  /// Returns the type of the body if the handler takes it without Json or Form; else nullptr.
  const inject::Type* plain_body() const noexcept { return plain_body_; }

  /// Returns what the handler takes on the core of `loop`; nothing if it does not declare it.
  CoreDemands demands(Loop& loop) const {
    return demands_ != nullptr ? demands_(target_.get(), loop) : CoreDemands();
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

  /// `object` is what Callee<F> takes.
  template <class F, class Object>
  static Handler of_target(const Object* object) {
    using S = Signature<F>;
    Target target(object,
                  [](const void* owned) noexcept { delete static_cast<const Object*>(owned); });
    if constexpr (!S::is_valid) {
      return Handler(std::move(target), nullptr, nullptr);
    } else if constexpr (S::takes_body) {
      Handler handler(std::move(target), nullptr, &start_with_body<F>);
      handler.plain_body_ = S::Arguments::plain_body();
      if constexpr (!S::is_async) handler.call_with_body_ = &call_with_body<F>;
      return handler;
    } else if constexpr (S::is_async) {
      return Handler(std::move(target), nullptr, &start_as<F>);
    } else {
      return Handler(std::move(target), &call_as<F>, nullptr);
    }
  }

  static Task<Response> call_later(const Handler& handler, Request& request,
                                   const PathParams& params);

  template <class F>
  static Response call_as(const void* target, Request& request, const PathParams& params) {
    const detail::Callee<F> callee(target);
    detail::CallArguments<F> arguments;
    if (!arguments.read_path(params)) return Response(Status::not_found);
    if constexpr (Signature<F>::takes_head) {
      if (auto rejected = arguments.read_head(callee, request)) [[unlikely]]
        return std::move(*rejected);
    }
    return detail::response_of([&] { return arguments.call(callee, request); });
  }

  template <class F>
  static Task<Response> start_as(const void* target, Request& request, const PathParams& params) {
    const detail::Callee<F> callee(target);
    detail::CallArguments<F> arguments;
    if (!arguments.read_path(params)) return detail::ready_task(Response(Status::not_found));
    if constexpr (Signature<F>::takes_head) {
      if (auto rejected = arguments.read_head(callee, request)) {
        return detail::ready_task(std::move(*rejected));
      }
    }
    return detail::start_handler(callee, request, arguments);
  }

  /// Makes all arguments but the body.
  /// Returns: the answer to a request whose head does not fit.
  template <class F>
  static detail::Rejection read_before_body([[maybe_unused]] const detail::Callee<F>& callee,
                                            detail::CallArguments<F>& arguments, Request& request,
                                            const PathParams& params) {
    if (!arguments.read_path(params)) return detail::reject(Status::not_found);
    if constexpr (Signature<F>::takes_head) {
      if (auto rejected = arguments.read_head(callee, request)) return rejected;
    }
    if (!arguments.accepts_body(request)) return detail::reject(detail::status_of_type(request));
    return nullptr;
  }

  template <class F>
  static Response call_with_body(const void* target, Request& request, const PathParams& params,
                                 std::string_view text) {
    const detail::Callee<F> callee(target);
    detail::CallArguments<F> arguments;
    if (auto rejected = read_before_body(callee, arguments, request, params))
      return std::move(*rejected);
    if (auto rejected = arguments.read_body(text, request)) return std::move(*rejected);
    return detail::response_of([&] { return arguments.call(callee, request); });
  }

  /// Reads the body, then calls the handler.
  template <class F>
  static Task<Response> start_with_body(const void* target, Request& request,
                                        const PathParams& params) {
    const detail::Callee<F> callee(target);
    detail::CallArguments<F> arguments;
    if (auto rejected = read_before_body(callee, arguments, request, params))
      co_return std::move(*rejected);
    const auto text = co_await request.body_view();
    if (!text) co_return Response(text.error());
    if (auto rejected = arguments.read_body(*text, request)) co_return std::move(*rejected);
    if constexpr (Signature<F>::is_async) {
      auto answer = detail::start_handler(callee, request, arguments);
      co_return co_await std::move(answer);
    } else {
      co_return detail::response_of([&] { return arguments.call(callee, request); });
    }
  }

  Target target_;
  Call call_;
  CallWithBody call_with_body_ = nullptr;
  const inject::Type* plain_body_ = nullptr;
  Start start_;
  detail::CoreDemandsOf demands_ = nullptr;
};

/// A literal pattern for a handler of type F. The compiler checks that both match. Its error
/// names a function whose name states the problem.
template <class F>
class PatternFor {
 public:
  template <std::convertible_to<std::string_view> Text>
  consteval PatternFor(const Text& text) : text_(text) {
    if (!Signature<F>::is_readable) return;
    const PatternShape pattern = shape_of_pattern(text_);
    constexpr HandlerShape handler = Signature<F>::shape;
    detail::report_pattern_error<handler.params>(check_shapes(pattern, handler), pattern.params);
  }
  constexpr std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

}  // namespace weir::http

// Handlers of WebSockets: functions that take a WebSocket& and other arguments, as handlers of
// requests.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weir/base/detail/function_type.hpp"
#include "weir/http/matching/detail/signature.hpp"
#include "weir/http/matching/path_params.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/ws/detail/handshake.hpp"
#include "weir/http/ws/websocket.hpp"

namespace weir::http::detail {

/// Keeps an argument of a WebSocket's handler, because the request ends with the handshake.
template <class P>
class KeptArgument {
  using T = std::remove_cvref_t<P>;

 public:
  KeptArgument(const Request&, std::remove_reference_t<P>& argument)
      : value_(std::move(argument)) {}
  T take() { return std::move(value_); }

 private:
  T value_;
};
template <class P>
  requires std::same_as<std::remove_cvref_t<P>, std::string_view>
class KeptArgument<P> {
 public:
  KeptArgument(const Request&, std::string_view argument) : text_(argument) {}
  std::string_view take() { return text_; }

 private:
  std::string text_;
};
template <class P>
  requires std::same_as<std::remove_cvref_t<P>, Wildcard>
class KeptArgument<P> {
 public:
  KeptArgument(const Request&, Wildcard argument) : raw_(argument.raw()) {}
  Wildcard take() { return Wildcard(raw_); }

 private:
  std::string raw_;
};
/// A service outlives the WebSocket. A value that middleware has set is copied.
/// Errors: throws std::logic_error for such a value that cannot be copied.
template <class P>
  requires(std::is_lvalue_reference_v<P> && kind_of_argument<P>() == ArgumentKind::reference)
class KeptArgument<P> {
  using T = std::remove_cvref_t<P>;

 public:
  KeptArgument(const Request& request, P argument) : pointer_(&argument) {
    if (request.get<T>() != pointer_) return;
    if constexpr (std::copy_constructible<T>) {
      copy_ = std::make_unique<T>(argument);
      pointer_ = copy_.get();
    } else {
      throw std::logic_error(
          "a WebSocket outlives its request, and an argument of its handler is a "
          "value of the request that cannot be copied");
    }
  }
  P take() { return *pointer_; }

 private:
  std::unique_ptr<T> copy_;
  std::remove_reference_t<P>* pointer_;
};

template <class P>
inline constexpr bool is_view_of_request = false;
template <ConstantText Name>
inline constexpr bool is_view_of_request<Header<Name, std::string_view>> = true;
template <ConstantText Name>
inline constexpr bool is_view_of_request<Cookie<Name, std::string_view>> = true;
template <class P>
inline constexpr bool is_view_of_request<std::optional<P>> = is_view_of_request<P>;

/// The handler of the request that opens a WebSocket for F, a function with the parameters
/// WebSocket& and P. It checks the handshake, and keeps the arguments for F.
/// Threads: const members on any thread.
template <class F, class... P>
class WebSocketHandlerFor {
 public:
  WebSocketHandlerFor(F serve, std::shared_ptr<const WebSocketOptions> options)
      : serve_(std::make_shared<const F>(std::move(serve))), options_(std::move(options)) {
    static_assert((true && ... && !std::same_as<std::remove_cvref_t<P>, Request>),
                  "a WebSocket outlives its request: take the parts that the handler needs, or use "
                  "http::accept_websocket() in a handler of the request");
    static_assert((true && ... && !is_view_of_request<std::remove_cvref_t<P>>),
                  "a WebSocket outlives its request: take a Header or a Cookie as a std::string");
  }

  Response operator()(const Request& request, P... arguments) const {
    if constexpr (sizeof...(P) == 0) {  // a smaller function, which needs no memory of its own
      auto serve = [function = serve_](WebSocket& socket) {
        return WebSocketTask((*function)(socket));
      };
      return accept_websocket(request, std::move(serve), options_);
    }
    std::tuple<KeptArgument<P>...> kept{KeptArgument<P>(request, arguments)...};
    auto serve = [function = serve_, kept = std::move(kept)](WebSocket& socket) mutable {
      return std::apply(
          [&](auto&... each) { return WebSocketTask((*function)(socket, each.take()...)); }, kept);
    };
    return accept_websocket(request, std::move(serve), options_);
  }

 private:
  std::shared_ptr<const F> serve_;
  std::shared_ptr<const WebSocketOptions> options_;
};

template <class F, class Of>
struct WebSocketHandlerOf {
  static_assert(sizeof(F) == 0, "the handler of a WebSocket takes a WebSocket& first");
};
template <class F, class... P>
struct WebSocketHandlerOf<F, Parameters<WebSocket&, P...>> {
  using type = WebSocketHandlerFor<F, P...>;
};

template <class F>
using WebSocketHandler =
    typename WebSocketHandlerOf<F, typename decltype(function_of<F>())::ParameterTypes>::type;

}  // namespace weir::http::detail

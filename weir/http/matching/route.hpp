// A route: a method, a pattern, a handler and the limits of its requests.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/path_regex.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/middleware.hpp"

namespace weir::http {

class CoreHandlers;
class OwnerInFlightPerCore;
struct WebSocketOptions;

/// The limits that a route may set; the server's limits apply to the rest.
struct RouteOptions {
  /// Time limit of a handler that waits. The server then cancels the handler and answers 503.
  std::optional<Duration> timeout = std::nullopt;
  std::optional<std::uint64_t> body_max = std::nullopt;  ///< bytes; 413 for a longer body
  /// Values that the vectors of a Query and those of a Form may each have together; 400 for a
  /// query, 422 for a form.
  std::size_t values_max = 1024;
  /// The options of the WebSockets that the handler accepts, nullptr if it accepts none. They
  /// change nothing; the check of memory at the start of a server counts them.
  /// RouteMethods::websocket() sets them. A handler that calls accept_websocket() itself, and the
  /// route of a reverse_proxy() with WebSockets, need them here.
  std::shared_ptr<const WebSocketOptions> websocket = nullptr;
};

/// Identifies a route of one router. An id is never used again, even after its route is removed.
struct RouteId {
  static constexpr std::uint64_t none = ~std::uint64_t{0};  ///< no route

  std::uint64_t number = none;
  bool operator==(const RouteId&) const = default;
};

/// The pattern of routes, in memory that lives as long as the process. Observers keep it after a
/// route was removed. Routes with the same pattern share one object.
struct RouteName {
  static constexpr std::uint32_t names_max = 4096;  ///< further patterns share the name "_OTHER"

  std::string pattern;
  std::uint32_t number = 0;  ///< a small number, unique among the names

  /// Returns the name of the pattern.
  /// Errors: returns that of "_OTHER" if there is no memory.
  /// Threads: any.
  static const RouteName& of(std::string_view pattern) noexcept;
};

/// The RouteName of a route, after its first use.
/// Threads: any.
class RouteNameRef {
 public:
  RouteNameRef() noexcept = default;
  RouteNameRef(const RouteNameRef& other) noexcept : name_(other.load()) {}
  RouteNameRef& operator=(const RouteNameRef& other) noexcept {
    name_.store(other.load(), std::memory_order_relaxed);
    return *this;
  }
  /// Returns the name of `pattern`, which is always the same.
  const RouteName& get(std::string_view pattern) const noexcept {
    const RouteName* const known = load();
    return known != nullptr ? *known : find(pattern);
  }

 private:
  // acquire pairs with find(): the reader sees the finished object.
  const RouteName* load() const noexcept { return name_.load(std::memory_order_acquire); }
  const RouteName& find(std::string_view pattern) const noexcept;

  mutable std::atomic<const RouteName*> name_{nullptr};
};

/// A route as the router stores it.
/// Threads: const members on any thread.
/// Lifetime: until the router is destroyed or the route is removed.
struct Route {
  /// A segment of the pattern that is a path parameter.
  struct PathParam {
    SegmentText::Kind kind;
    std::size_t segment;  ///< the index of the segment in the path
    std::shared_ptr<const PathRegex> regex = nullptr;
  };

  std::string method;
  Pattern pattern;
  Handler handler;
  RouteOptions options;
  std::vector<PathParam> params = {};  ///< filled by RouteStore, in the order of the pattern
  RouteId id = {};
  std::size_t slot = 0;  ///< a small number, unique among existing routes
  /// The handler of each core, if each core answers this route with a handler of its own; else
  /// nullptr. `handler` then answers on a core that has none.
  std::shared_ptr<CoreHandlers> core_handlers = nullptr;
  /// The middleware of the groups of the route, outermost first. The router's own comes before it.
  GroupMiddleware middleware = {};
  /// The in-flight requests of the route's owner, if the route is installed as a core's handler;
  /// else nullptr. The owner owns this object.
  OwnerInFlightPerCore* owner_in_flight = nullptr;
  RouteNameRef name_ref = {};

  /// Returns the name of the pattern for observers.
  const RouteName& name() const noexcept { return name_ref.get(pattern.text()); }
};

}  // namespace weir::http

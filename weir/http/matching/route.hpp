// A route: a method and a pattern, who answers, and under which limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/matching/detail/path_regex.hpp"
#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/matching/detail/pattern.hpp"

namespace weir::http {

class RouteSeats;
class RouteTenancies;

/// What a route may set for itself; the server's limits hold for the rest.
struct RouteOptions {
  std::optional<std::uint64_t> body_max = std::nullopt;  ///< bytes; a longer body is 413
  std::optional<Duration> deadline = std::nullopt;  ///< for a handler that waits; then it is 503
};

/// Names a route of one router; never used for another, also when the route has gone.
struct RouteId {
  static constexpr std::uint64_t none = ~std::uint64_t{0};  ///< of a route that could not be added

  std::uint64_t number = none;
  bool operator==(const RouteId&) const = default;
};

/// Threads: const anywhere. Lifetime: its router's, or until it is removed.
struct Route {
  /// A segment of the pattern that is a capture.
  struct Capture {
    SegmentText::Kind kind;
    std::size_t segment;  ///< its index in the path
    std::shared_ptr<const Expression> expression = nullptr;
  };

  std::string method;
  Pattern pattern;
  Handler handler;
  RouteOptions options;
  std::vector<Capture> captures = {};  ///< found by the book, in the order of the pattern
  RouteId id = {};
  std::size_t slot = 0;  ///< a small number that no other living route has
  /// Of a route that each core answers by itself: by whom. Its handler is for where nobody is.
  std::shared_ptr<RouteSeats> seats = nullptr;
  /// Of one that answers in such a seat: where its requests are. Its owner's.
  RouteTenancies* tenancies = nullptr;
};

}  // namespace weir::http

// A route: a method and a pattern, who answers, and under which limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/expression.hpp"
#include "weir/http/handler.hpp"
#include "weir/http/pattern.hpp"

namespace weir::http {

/// What a route may set for itself; the server's limits hold for the rest.
struct RouteOptions {
  std::optional<std::uint64_t> body_max = std::nullopt;  ///< bytes; a longer body is 413
  std::optional<Duration> deadline = std::nullopt;  ///< for a handler that waits; then it is 503
};

/// Names a route of one router.
struct RouteId {
  static constexpr std::uint32_t none = 0xffffffff;  ///< of a route that could not be added

  std::uint32_t number = none;
  bool operator==(const RouteId&) const = default;
};

/// Threads: const anywhere. Lifetime: its router's.
struct Route {
  /// A segment of the pattern that is a capture.
  struct Capture {
    SegmentText::Kind kind;
    std::size_t segment;           ///< its index in the path
    const Expression* expression;  ///< or nullptr; the table's
  };

  std::string method;
  Pattern pattern;
  Handler handler;
  RouteOptions options;
  std::vector<Capture> captures;
};

}  // namespace weir::http

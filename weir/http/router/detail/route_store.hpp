// The routes of a router in the order of their registration, and the table that is made from
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/path_regex.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/detail/prefix_rules.hpp"
#include "weir/http/matching/detail/route_table.hpp"
#include "weir/http/matching/route.hpp"

namespace weir::http {

/// Hands out small numbers; a number has one holder at a time.
/// Threads: any.
class RouteSlots {
 public:
  std::size_t acquire();
  void release(std::size_t slot);

 private:
  std::mutex mutex_;
  std::vector<std::size_t> free_;
  std::size_t next_ = 0;
};

/// Owns the routes. A new route is added to the one table as long as the router is not served. Each
/// change of a served router makes a new table, in time proportional to the number of routes.
/// Threads: one at a time, except for slots().
class RouteStore {
 public:
  RouteStore();
  ~RouteStore();
  RouteStore(const RouteStore&) = delete;
  RouteStore& operator=(const RouteStore&) = delete;

  struct Added {
    RouteId id = {};
    /// The route that already has this method and shape. The new route is not added then.
    const Route* conflict = nullptr;
  };
  /// Adds a route, also to the present table. `route` is moved from if and only if it is added.
  /// Errors: PatternError::bad_regex or ambiguous_groups, Errc::limit_reached for too many
  /// methods, Errc::bad_input for CONNECT and for a method that is not a token.
  Result<Added> add(std::unique_ptr<Route>& route);

  /// Returns nullptr if the route is gone. find(), extract() and replace() leave the present
  /// table as it is.
  const Route* find(RouteId id) const noexcept;
  /// Removes the route and returns its ownership. The route must exist.
  std::unique_ptr<Route> extract(RouteId id) noexcept;
  /// Replaces the handler, and the options if `options` has a value. The route must exist.
  /// Returns: the old route; the new one has its id and its position.
  std::unique_ptr<Route> replace(RouteId id, Handler handler,
                                 const std::optional<RouteOptions>& options);

  /// Makes a new table from all routes.
  /// Returns: the old table.
  [[nodiscard]] std::unique_ptr<RouteTable> rebuild();

  RouteTable& table() const noexcept { return *table_; }
  std::size_t size() const noexcept { return routes_.size(); }
  PrefixRules& rules() noexcept { return rules_; }
  const PrefixRules& rules() const noexcept { return rules_; }
  /// Removes all routes and returns their ownership. The router must not be served.
  std::vector<std::unique_ptr<Route>> extract_all();
  RouteSlots& slots() noexcept { return slots_; }

 private:
  std::size_t position_of(RouteId id) const noexcept;
  Result<> find_params(Route& route);
  Result<std::shared_ptr<const PathRegex>> compile(const Pattern::Segment& segment);

  std::vector<std::unique_ptr<Route>> routes_;  // sorted by id
  std::uint64_t next_id_ = 0;
  RouteSlots slots_;
  PrefixRules rules_;
  /// The regexes of the routes, by their text; equal ones are compiled once.
  std::map<std::string, std::weak_ptr<const PathRegex>, std::less<>> regexes_;
  std::unique_ptr<RouteTable> table_;
};

}  // namespace weir::http

// The routes of a router, in the order of their registration, and the table that is made of them.
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
#include "weir/http/matching/route.hpp"
#include "weir/http/matching/detail/route_table.hpp"

namespace weir::http {

/// Small numbers, each given to one at a time. Threads: any.
class RouteSlots {
 public:
  std::size_t take();
  void give_back(std::size_t slot);

 private:
  std::mutex mutex_;
  std::vector<std::size_t> free_;
  std::size_t next_ = 0;
};

/// Owns the routes. Until it is served a route is added to its one table; while it is served each
/// change makes a new one, which costs time in proportion to the number of routes.
/// Threads: one at a time, but for slots().
class RouteBook {
 public:
  RouteBook();
  ~RouteBook();
  RouteBook(const RouteBook&) = delete;
  RouteBook& operator=(const RouteBook&) = delete;

  struct Added {
    RouteId id = {};
    const Route* conflict = nullptr;  ///< has the same method and shape; the new route is not in
  };
  /// Adds it to the present table too. `route` is moved from if and only if it is in. Errors:
  /// PatternFault::bad_expression or unclear_groups, limit_reached for too many methods, bad_input
  /// for a method that no path is asked for with.
  Result<Added> add(std::unique_ptr<Route>& route);

  /// nullptr when it has gone. Changes nothing in the present table, nor do the following.
  const Route* find(RouteId id) const noexcept;
  /// Its owner is the caller now. For a route that is there.
  std::unique_ptr<Route> take_out(RouteId id) noexcept;
  /// Puts another handler in its place, with the options if there are any; gives the old route,
  /// whose id and place the new one has. For a route that is there.
  std::unique_ptr<Route> replace(RouteId id, Handler handler,
                                 const std::optional<RouteOptions>& options);

  /// Makes a new table of all routes; gives the old one.
  [[nodiscard]] std::unique_ptr<RouteTable> rebuild();

  RouteTable& table() const noexcept { return *table_; }
  std::size_t size() const noexcept { return routes_.size(); }
  RouteSlots& slots() noexcept { return slots_; }

 private:
  std::size_t position_of(RouteId id) const noexcept;
  Result<> find_captures(Route& route);
  Result<std::shared_ptr<const Expression>> compile(const Pattern::Segment& segment);

  std::vector<std::unique_ptr<Route>> routes_;  // by id
  std::uint64_t next_id_ = 0;
  RouteSlots slots_;
  /// Those that routes have, by their text: equal ones are compiled once.
  std::map<std::string, std::weak_ptr<const Expression>, std::less<>> expressions_;
  std::unique_ptr<RouteTable> table_;
};

}  // namespace weir::http

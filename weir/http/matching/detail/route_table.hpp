// The routing table: a tree of path segments that finds the route for a request.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/detail/fast_equal.hpp"
#include "weir/base/detail/radix_tree.hpp"
#include "weir/base/result.hpp"
#include "weir/http/matching/detail/path_regex.hpp"
#include "weir/http/matching/detail/prefix_rules.hpp"
#include "weir/http/matching/detail/route_match.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/message/detail/method_names.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/ws/websocket_limits.hpp"

namespace weir::http {

// Paths without path parameters.

/// A map from literal paths to values. It first looks at the length of the path. If no path or
/// only one path has that length, at most one comparison gives the answer. The few paths of most
/// services make this the common case.
/// Threads: const members on any thread, after all calls of insert().
template <class Value>
class LiteralPaths {
 public:
  /// Adds a path. Does nothing if the map has the path.
  void insert(std::string_view path, Value value) {
    if (!tree_.insert(path, value).added || path.size() >= by_size_.size()) return;
    UniquePath& unique = by_size_[path.size()];
    if (++unique.count > 1) return;
    unique.path = path;
    unique.value = value;
  }

  /// Returns the value of the path, or a default value.
  Value find(std::string_view path) const noexcept {
    if (path.size() < by_size_.size()) {
      const UniquePath& unique = by_size_[path.size()];
      if (unique.count < 2)
        return unique.count == 1 && fast_equal(unique.path, path) ? unique.value : Value();
    }
    const Value* const found = tree_.find(path);
    return found != nullptr ? *found : Value();
  }

 private:
  /// The path of one length, valid if it is the only one.
  struct UniquePath {
    std::string path;
    Value value{};
    std::size_t count = 0;  // number of paths with that length
  };

  RadixTree<Value> tree_;
  std::array<UniquePath, 40> by_size_;
};

/// The routes that end at the same node, by method.
class RouteSet {
 public:
  /// Returns the route of a method, or nullptr.
  const Route* find(MethodIndex method) const noexcept {
    if (first_.method == method) return first_.route;
    for (const Entry& each : more_) {
      if (each.method == method) return each.route;
    }
    return nullptr;
  }
  /// Returns the route of a method. HEAD falls back to the route of GET (RFC 9110 §9.3.2).
  const Route* find_with_get_fallback(MethodIndex method) const noexcept {
    const Route* const route = find(method);
    const bool take_get = route == nullptr && method == index_of(Method::head);
    return take_get ? find(index_of(Method::get)) : route;
  }
  /// Adds the route of a method that has no route here.
  void add(MethodIndex method, const Route& route);
  MethodSet methods() const noexcept { return methods_; }

 private:
  struct Entry {
    MethodIndex method;
    const Route* route;
  };
  Entry first_{0, nullptr};  // most nodes have one route
  std::vector<Entry> more_;
  MethodSet methods_ = 0;
};

/// What routes ask of a core, for MemoryBoundOptions and the checks at the start.
struct RouteDemands {
  std::uint64_t body_max = 0;  ///< the largest of RouteOptions and CoreDemands
  bool websockets = false;     ///< true if a route has RouteOptions::websocket
  /// The largest windows of all routes with compression; nullopt if there is none.
  std::optional<WebSocketCompression> compression = {};
  // The sums of the CoreDemands of handlers and middleware, and the largest bytes of a request.
  std::uint64_t request_bytes = 0;
  std::uint64_t core_bytes = 0;
  std::size_t descriptors = 0;

  void add(const Route& route) noexcept;
};

/// The routes and the middleware of a router, immutable once it is in use.
/// Threads: const members on any thread, after all calls of other members.
/// Lifetime: shorter than that of the routes and the middleware.
class RouteTable {
 public:
  RouteTable();
  ~RouteTable();
  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;

  /// Adds a route.
  /// Returns: the route that answers for the method and shape of `route`. If it is an earlier
  /// route, the table is unchanged.
  /// Errors: limit_reached for too many methods; the table is unchanged then.
  Result<const Route*> add(const Route& route);

  /// Returns the middleware that wraps all responses; see Router::use().
  std::span<const Middleware> middleware() const noexcept { return middleware_; }
  void set_middleware(std::span<const Middleware> middleware) noexcept {
    middleware_ = middleware;
    middleware_waits_ = std::ranges::any_of(middleware, &Middleware::waits);
  }
  /// Sets the rules for requests that no route answers.
  void set_rules(const PrefixRules* rules) noexcept { rules_ = rules; }

  /// Returns what the routes, the fallbacks and the middleware ask of the core of `loop`.
  /// Errors: throws std::bad_alloc.
  RouteDemands demands(Loop& loop) const;

  /// Finds the route for the request with this head. `match` is reused without allocating.
  void match(const RequestHead& head, RouteMatch& match) const;

  /// The path and method to look up. Escapes in the path are well-formed, and it has no dot
  /// segments.
  struct LookupKey {
    Method method = Method::get;
    std::string_view method_text{};  ///< the method's text, used if `method` is Method::other
    std::string_view path{};         ///< the raw path
    bool has_escapes = true;
  };
  /// Stores in `match` the route for the key and its path parameters, or the fallback of a prefix,
  /// or the status of the router's own answer. That status is not_found, method_not_allowed,
  /// no_content for OPTIONS, or not_implemented. method_not_allowed and no_content come with the
  /// allowed methods of the path. not_implemented stands for not_found if no route of the router
  /// has the method, which is a Method::other.
  void find(const LookupKey& query, RouteMatch& match) const;

  /// Returns the route of the literal pattern that equals a raw path without escapes. Returns
  /// nullptr if there is none, and for Method::other; find() then gives the full answer.
  const Route* find_literal(Method method, std::string_view path) const noexcept {
    if (method == Method::other) return nullptr;
    const RouteSet* const set = literal_routes_.find(path);
    return set != nullptr ? set->find_with_get_fallback(index_of(method)) : nullptr;
  }

 private:
  struct Node;
  class Search;

  static Node& child(Node& node, const Pattern::Segment& segment, const PathRegex* regex);
  RouteSet& route_set_for(const Route& route);
  void set_miss_status(const LookupKey& query, MethodSet allowed, RouteMatch& match) const noexcept;

  std::unique_ptr<Node> root_;
  LiteralPaths<const RouteSet*> literal_routes_;  // by raw path, for paths without escapes
  std::size_t segments_max_ = 0;                  // maximum over all patterns
  MethodNames names_;
  MethodSet methods_ = 0;  // methods of all routes
  RouteDemands demands_;   // of the routes, without their CoreDemands
  std::vector<const Route*> routes_;
  std::span<const Middleware> middleware_;
  bool middleware_waits_ = false;
  const PrefixRules* rules_ = nullptr;
};

}  // namespace weir::http

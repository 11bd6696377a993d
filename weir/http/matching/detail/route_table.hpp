// Routes as a tree of segments: which one is for this path? What a router publishes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/path_regex.hpp"
#include "weir/http/literal_paths.hpp"
#include "weir/http/message/detail/method_names.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/matching/detail/route_match.hpp"

namespace weir::http {

/// Routes that end at the same place, by method.
class RouteSet {
 public:
  /// The route of a method, or nullptr.
  const Route* find(MethodIndex method) const noexcept {
    if (first_.method == method) return first_.route;
    for (const Entry& each : more_) {
      if (each.method == method) return each.route;
    }
    return nullptr;
  }
  /// As find(), but GET's for HEAD where that has none (RFC 9110 §9.3.2).
  const Route* answering(MethodIndex method) const noexcept {
    const Route* const route = find(method);
    const bool take_get = route == nullptr && method == index_of(Method::head);
    return take_get ? find(index_of(Method::get)) : route;
  }
  /// For a method that none has here.
  void add(MethodIndex method, const Route& route);
  MethodSet methods() const noexcept { return methods_; }

 private:
  struct Entry {
    MethodIndex method;
    const Route* route;
  };
  Entry first_{0, nullptr};  // most places have one
  std::vector<Entry> more_;
  MethodSet methods_ = 0;
};

/// Threads: const members anywhere; the others before that. Lifetime: shorter than that of the
/// routes and the middleware.
class RouteTable {
 public:
  RouteTable();
  ~RouteTable();
  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;

  /// Gives the route that now answers for the method and shape of `route`: this one, or one that
  /// was in before; then nothing has changed. Errors: limit_reached for too many methods.
  Result<const Route*> add(const Route& route);

  /// What is around all answers; see Router::use().
  std::span<const Middleware> middleware() const noexcept { return middleware_; }
  void set_middleware(std::span<const Middleware> middleware) noexcept { middleware_ = middleware; }

  /// Who answers the request with this head. `match` is used again and again, without allocating.
  void match(const RequestHead& head, RouteMatch& match) const;

  /// A path that is asked for. Its escapes are well-formed and it has no dot segments.
  struct Query {
    Method method = Method::get;
    std::string_view method_text{};  ///< of Method::other
    std::string_view path{};         ///< raw
    bool has_escapes = true;
  };
  /// The route for the query, with its captures; or else why there is none: not_found;
  /// method_not_allowed, or no_content for OPTIONS, with what is allowed; not_implemented for a
  /// method that no route has.
  void find(const Query& query, RouteMatch& match) const;

  /// The route for a raw path without escapes that is a literal pattern's own; nullptr where there
  /// is none, and for Method::other: then find() knows more.
  const Route* find_literal(Method method, std::string_view path) const noexcept {
    if (method == Method::other) return nullptr;
    const RouteSet* const set = whole_.find(path);
    return set != nullptr ? set->answering(index_of(method)) : nullptr;
  }

 private:
  struct Node;
  class Search;

  static Node& child(Node& node, const Pattern::Segment& segment, const Expression* expression);
  RouteSet& place(const Route& route);
  void explain_miss(const Query& query, MethodSet allowed, RouteMatch& match) const noexcept;

  std::unique_ptr<Node> root_;
  LiteralPaths<const RouteSet*> whole_;  // by raw path: what a path without escapes can name
  std::size_t segments_max_ = 0;         // of any pattern
  MethodNames names_;
  MethodSet methods_ = 0;  // that any route has
  std::span<const Middleware> middleware_;
};

}  // namespace weir::http

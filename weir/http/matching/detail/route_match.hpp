// The result of routing one request: the route and its path parameters, or the router's own
// answer.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "weir/base/detail/block_pool.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/matching/path_params.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/message/detail/method_names.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// The result of RouteTable::match(), reused for one request after the other. Its views point
/// into the bytes of the head (see rebase()) or into its own memory, which it keeps for the next
/// request.
/// Threads: only those of its connection.
/// Lifetime: shorter than the table's, or than the route's after detach_from_table().
class RouteMatch {
 public:
  RouteMatch() noexcept {}  // NOLINT: scratch_ stays uninitialized, on purpose
  RouteMatch(const RouteMatch&) = delete;
  RouteMatch& operator=(const RouteMatch&) = delete;

  /// Returns true if a route matched. Otherwise the router itself answers.
  bool found() const noexcept { return route_ != nullptr; }
  /// Returns true if the handler or middleware may wait. The caller then uses start().
  bool is_async() const noexcept {
    return middleware_waits() || (route_ != nullptr && route_->handler.is_async());
  }
  /// Returns true if the handler may wait only for the body. If the body has arrived, the caller
  /// may use respond_with_body().
  bool needs_only_body() const noexcept {
    return !middleware_waits() && route_ != nullptr && route_->handler.needs_only_body();
  }
  /// Returns the options of the route, or the defaults if no route matched.
  const RouteOptions& options() const noexcept;
  /// Returns the route that matched, or nullptr.
  const Route* route() const noexcept { return route_; }
  /// Returns true if each core answers this route with a handler of its own, and redirect_to() has
  /// not yet chosen that handler.
  bool is_per_core() const noexcept {
    return route_ != nullptr && route_->core_handlers != nullptr;
  }
  /// Makes `active` answer in place of the route that matched.
  void redirect_to(const Route& active) noexcept { route_ = &active; }
  const PathParams& path_params() const noexcept { return params_; }
  /// Forgets the route of the previous request, for a head that cannot be routed.
  void clear() noexcept { set_literal(nullptr); }

  /// Returns the response if nothing waits. Throws what the handler and filters throw.
  Response respond(Request& request) const;
  Response respond_with_body(std::string_view body, Request& request) const;
  /// Returns the response after all middleware has run.
  /// Cancel: passed on to middleware and handler.
  /// Lifetime: this object and `request` must live until the task ends.
  Task<Response> start(Request& request) const;
  /// Calls after() of all filters, for a response that the server sends in place of another.
  void apply_filters(Request& request, Response& response) const;

  /// Adjusts the views after the caller copied the head's bytes from `old_bytes` to `new_base`.
  void rebase(std::string_view old_bytes, const char* new_base) noexcept {
    params_.rebase(old_bytes, new_base);
  }
  /// Makes the match independent of the table, for a response that waits. The table may then be
  /// destroyed.
  void detach_from_table();

 private:
  friend class Next;
  friend class RouteTable;

  /// Sets a route whose pattern has no path parameters.
  void set_literal(const Route* route) noexcept {
    route_ = route;
    middleware_ = {};
    middleware_waits_ = false;
    allowed_ = 0;
    status_ = Status::not_found;
    params_.clear();
  }
  bool has_middleware() const noexcept {
    return !middleware_.empty() || (route_ != nullptr && !route_->middleware.empty());
  }
  bool middleware_waits() const noexcept {
    return middleware_waits_ || (route_ != nullptr && route_->middleware.waits());
  }
  std::size_t middleware_count() const noexcept {
    return middleware_.size() + (route_ != nullptr ? route_->middleware.size() : 0);
  }
  const Middleware& middleware_at(std::size_t index) const noexcept {
    const std::size_t outer = middleware_.size();
    return index < outer ? middleware_[index] : route_->middleware[index - outer];
  }
  /// Calls before() of the filters from `begin` on, up to a function.
  /// Returns: the index of that function, or that of the filter with an answer.
  std::size_t enter_filters(std::size_t begin, Request& request,
                            std::optional<Response>& answer) const;
  /// Calls after() of these filters, the last one first.
  void leave_filters(std::size_t begin, std::size_t end, Request& request,
                     Response& response) const;
  Task<Response> start_at(std::size_t index, Request& request) const;
  Task<Response> start_and_leave(std::size_t begin, std::size_t end, Request& request) const;
  template <class Make>
  Response respond_through(Request& request, const Make& make) const;
  char* scratch(std::size_t bytes);
  Response default_response() const;
  Task<Response> finish(Request& request) const;

  static constexpr std::size_t scratch_inline = 512;

  const Route* route_ = nullptr;
  const MethodNames* methods_ = nullptr;  // the table's; nullptr after detach_from_table()
  std::span<const Middleware> middleware_;
  MethodSet allowed_ = 0;
  bool middleware_waits_ = false;      // of middleware_
  Status status_ = Status::not_found;  // the router's own answer
  std::string_view allow_;             // the allowed methods, if detached
  PathParams params_;
  BlockPtr<char> scratch_more_;
  std::size_t scratch_more_size_ = 0;
  std::array<char, scratch_inline> scratch_;  // decoded segments
};
static_assert(sizeof(RouteMatch) <= 1024);

}  // namespace weir::http

// What a router found for one request: the route and its captures, or an answer of its own.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "weir/base/detail/block_pool.hpp"
#include "weir/http/matching/path_params.hpp"
#include "weir/http/message/detail/method_names.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Filled by RouteTable::match(), for one request after the other. What it shows points into the
/// head's bytes (see rebase()) or into memory of its own, which stays for the next request.
/// Threads: those of its connection. Lifetime: the table's, or after settle() the route's only.
class RouteMatch {
 public:
  RouteMatch() noexcept {}  // NOLINT: scratch_ is left as it is, on purpose
  RouteMatch(const RouteMatch&) = delete;
  RouteMatch& operator=(const RouteMatch&) = delete;

  /// True if a route matched; else the router answers by itself.
  bool found() const noexcept { return route_ != nullptr; }
  /// True if the answer may have to wait, because its handler or middleware may: then start().
  bool waits() const noexcept {
    return !middleware_.empty() || (route_ != nullptr && route_->handler.waits());
  }
  /// True if all that may have to be waited for is the body: where that is here, answer_with() it.
  bool waits_for_body_only() const noexcept {
    return middleware_.empty() && route_ != nullptr && route_->handler.waits_for_body_only();
  }
  /// The route's options; the defaults if none was found.
  const RouteOptions& options() const noexcept;
  /// The route that was found, or nullptr.
  const Route* route() const noexcept { return route_; }
  /// Whether that is one that each core answers by itself, and who does so is still to be found.
  bool by_core() const noexcept { return route_ != nullptr && route_->seats != nullptr; }
  /// It is `tenant` who answers in that route's place.
  void move_to(const Route& tenant) noexcept { route_ = &tenant; }
  const Captures& captures() const noexcept { return captures_; }

  /// The answer where nothing waits. Throws what the handler throws.
  Response answer(Request& request) const;
  Response answer_with(std::string_view body, Request& request) const;
  /// The answer, through the middleware. This and `request` live until the task's end.
  /// Cancel: passed on to middleware and handler.
  Task<Response> start(Request& request) const;

  /// The head's bytes have been copied from `old_bytes` to `new_base`: so have the captures.
  void rebase(std::string_view old_bytes, const char* new_base) noexcept {
    captures_.rebase(old_bytes, new_base);
  }
  /// For an answer that waits: the table may go from now on.
  void settle();

 private:
  friend class Next;
  friend class RouteTable;

  void clear() noexcept { set_literal(nullptr); }
  /// A route whose pattern catches nothing.
  void set_literal(const Route* route) noexcept {
    route_ = route;
    middleware_ = {};
    allowed_ = 0;
    status_ = Status::not_found;
    captures_.clear();
  }
  char* scratch(std::size_t bytes);
  Response own_answer() const;
  Task<Response> finish(Request& request) const;

  static constexpr std::size_t scratch_inline = 512;

  const Route* route_ = nullptr;
  const MethodNames* methods_ = nullptr;  // the table's; nullptr once it is settled
  std::span<const Middleware> middleware_;
  MethodSet allowed_ = 0;
  Status status_ = Status::not_found;  // of the router's own answer
  std::string_view allow_;             // then: the names of what is allowed
  Captures captures_;
  BlockPtr<char> scratch_more_;
  std::size_t scratch_more_size_ = 0;
  std::array<char, scratch_inline> scratch_;  // decoded segments
};
static_assert(sizeof(RouteMatch) <= 1024);

}  // namespace weir::http

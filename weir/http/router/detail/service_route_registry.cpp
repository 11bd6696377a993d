#include "weir/http/route_board.hpp"

#include <cassert>

#include "weir/runtime/on_core.hpp"
#include "weir/http/router/detail/route_update.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {
namespace {

/// What the router knows of a route that each core answers by itself: the answer where nobody is.
class NobodyThere {
 public:
  explicit NobodyThere(std::chrono::seconds retry_after)
      : retry_after_(std::to_string(retry_after.count())) {}
  Response operator()() const {
    Response response = status_text(Status::service_unavailable);
    response.add("Retry-After", retry_after_);
    return response;
  }

 private:
  std::string retry_after_;
};

}  // namespace

void RouteBoard::open(Loop& home, std::span<Loop* const> loops) {
  assert(posts_.empty());
  home_ = &home;
  loops_ = loops;
  servers_.clear();
  servers_.resize(loops.size());
}

void RouteBoard::close() {
  assert(posts_.empty() && kept_.empty());
  home_ = nullptr;
  loops_ = {};
}

// ---- Owners -------------------------------------------------------------------------------------

std::shared_ptr<RouteBoard::Post> RouteBoard::claim(const std::string& key, const Route& route) {
  std::shared_ptr<Post>& post = posts_[key];
  if (post == nullptr) {
    auto seats = std::make_shared<RouteSeats>(loops_, options_.wait_max);
    post = std::make_shared<Post>(key, route, std::move(seats));
  }
  ++post->claims;
  return post;
}

std::unique_ptr<Route> RouteBoard::make_route(const Post& post) const {
  auto route = std::make_unique<Route>(
      Route{post.method, post.pattern, Handler::of(NobodyThere(options_.retry_after)), {}});
  route->seats = post.seats;
  return route;
}

Task<Result<>> RouteBoard::put_up(const Posts* posts, std::string* problem) {
  // At the same time: then one new table of the router's has them all.
  const auto all = [this, posts, problem](Scope& scope) -> Task<> {
    for (const auto& each : *posts) scope.spawn(put_up_one(each, problem));
    co_return;
  };
  co_return co_await with_scope(all);
}

Task<Result<>> RouteBoard::put_up_one(std::shared_ptr<Post> post, std::string* problem) {
  const auto guard = co_await post->changing.lock();
  if (!guard) co_return fail(guard.error());
  if (post->id) co_return {};
  RouteChange change(router_.publisher(), make_route(*post));
  const Result<RouteId> added = co_await change;
  if (added) {
    post->id = *added;
    co_return {};
  }
  if (problem->empty() && added.error() != Errc::cancelled) {
    const bool taken = added.error() == Errc::conflict;
    *problem = post->method + " " + post->pattern.text() + ": " +
               (taken ? "there is such a route already" : added.error().message());
  }
  co_return fail(added.error());
}

/// What nobody has a claim to; somebody may have one when it comes to it.
Task<> RouteBoard::take_down(std::shared_ptr<Post> post) {
  const auto guard = co_await post->changing.lock();
  assert(guard && "nobody cancels this");
  if (post->claims != 0) co_return;
  if (post->id) {
    RouteChange change(router_.publisher(), *post->id);
    [[maybe_unused]] const auto removed = co_await change;
    assert(removed && "it is nobody else's to remove");
    post->id.reset();
  }
  const auto known = posts_.find(post->key);
  if (post->claims == 0 && known != posts_.end() && known->second == post) posts_.erase(known);
}

Task<> RouteBoard::release(const Posts* posts) {
  const auto all = [this, posts](Scope& scope) -> Task<> {
    for (const auto& each : *posts) {
      if (--each->claims == 0) scope.spawn(take_down(each));
    }
    co_return;
  };
  const Context here = co_await this_context();
  auto releasing = in_context(Context{here.loop, nullptr}, with_scope(all));
  static_cast<void>(co_await std::move(releasing));
}

void RouteBoard::keep(const Posts* posts) {
  kept_.insert(kept_.end(), posts->begin(), posts->end());
}

void RouteBoard::give_up(const Posts* posts, const Loop* loop) {
  for (const auto& each : *posts) each->seats->on(*loop)->give_up();
}

Task<> RouteBoard::release_kept() {
  const Posts kept = std::exchange(kept_, {});
  if (kept.empty()) co_return;
  for (Loop* const each : loops_) {
    if (each == home_) {
      give_up(&kept, each);
    } else {
      co_await on_core(each->core(), &RouteBoard::give_up, &kept, each);
    }
  }
  co_await release(&kept);
}

// ---- Servers ------------------------------------------------------------------------------------

Task<> RouteBoard::let_serve() {
  for (Loop* const each : loops_)
    co_await on_core(each->core(), &RouteBoard::may_serve, this, each);
}

void RouteBoard::server_began(const Loop& loop) {
  Servers& servers = servers_[loop.core()];
  ++servers.running;
  servers.none.reset();
}

void RouteBoard::server_ended(const Loop& loop) {
  Servers& servers = servers_[loop.core()];
  if (--servers.running == 0) servers.none.set();
}

Task<> RouteBoard::servers_ended(const Loop* loop) {
  const Context here = co_await this_context();
  auto ended = as_task(servers_[loop->core()].none.wait());
  auto waiting = in_context(Context{here.loop, nullptr}, std::move(ended));
  static_cast<void>(co_await std::move(waiting));
}

}  // namespace weir::http

// The board of routes that have owners: which are served, who has claims to each.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/route.hpp"
#include "weir/http/route_board_options.hpp"
#include "weir/http/route_seats.hpp"
#include "weir/http/router/router.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/mutex.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// One entry for each route that any owner has, however many instances on however many cores: the
/// router serves it as long as anybody has a claim to it. Who answers on each core is in its seats.
/// The board's state is one core's, the home core's; owners on others come there.
/// Threads: the home core's, but where it says otherwise. Lifetime: the router outlives it.
class RouteBoard {
 public:
  struct Post {
    Post(std::string its_key, const Route& like, std::shared_ptr<RouteSeats> its_seats)
        : key(std::move(its_key)),
          method(like.method),
          pattern(like.pattern),
          seats(std::move(its_seats)) {}

    const std::string key;
    const std::string method;
    const Pattern pattern;
    const std::shared_ptr<RouteSeats> seats;
    std::size_t claims = 0;
    std::optional<RouteId> id;  ///< while it is served
    CoreMutex changing;         ///< who puts it up or takes it down
  };
  using Posts = std::vector<std::shared_ptr<Post>>;

  explicit RouteBoard(Router& router, const RouteBoardOptions& options = {}) noexcept
      : router_(router), options_(options) {}
  RouteBoard(const RouteBoard&) = delete;
  RouteBoard& operator=(const RouteBoard&) = delete;

  /// Before the first owner opens: the loops of a group.
  void open(Loop& home, std::span<Loop* const> loops);
  /// After the last has left.
  void close();

  /// Any thread, while it is open.
  Loop& home() const noexcept { return *home_; }
  std::span<Loop* const> loops() const noexcept { return loops_; }

  // Owners.

  /// One more claim.
  std::shared_ptr<Post> claim(const std::string& key, const Route& route);
  /// Returns when all of them are served. Errors: those of LiveRoutes::add(); `problem` says which.
  /// Cancel: some may be served, and some not.
  Task<Result<>> put_up(const Posts* posts, std::string* problem);
  /// One claim to each less; returns when what nobody has a claim to is not served any more.
  /// Cancel: not affected.
  Task<> release(const Posts* posts);
  /// These claims stay, while somebody is expected to come back, until release_kept().
  void keep(const Posts* posts);
  /// Whoever was expected and has not come is not expected any more.
  /// Cancel: not affected.
  Task<> release_kept();

  // Servers. They answer when all owners are there, and what ends together with them lets them
  // answer first.

  /// `co_await board.let_serve()`, on the home core: serving() on all cores.
  /// Cancel: not affected.
  Task<> let_serve();
  /// On the server's core: set when it may begin.
  CoreManualResetEvent& serving(const Loop& loop) { return servers_[loop.core()].may_serve; }
  /// On the server's core.
  void server_began(const Loop& loop);
  void server_ended(const Loop& loop);
  /// `co_await board.servers_ended(&loop)`, on that core.
  /// Cancel: not affected.
  Task<> servers_ended(const Loop* loop);

 private:
  struct Servers {
    std::size_t running = 0;
    CoreManualResetEvent none{true};
    CoreManualResetEvent may_serve{};
  };

  std::unique_ptr<Route> make_route(const Post& post) const;
  Task<Result<>> put_up_one(std::shared_ptr<Post> post, std::string* problem);
  Task<> take_down(std::shared_ptr<Post> post);
  static void give_up(const Posts* posts, const Loop* loop);
  void may_serve(const Loop* loop) { serving(*loop).set(); }

  Router& router_;
  RouteBoardOptions options_;
  Loop* home_ = nullptr;
  std::span<Loop* const> loops_;
  std::map<std::string, std::shared_ptr<Post>, std::less<>> posts_;
  Posts kept_;
  std::deque<Servers> servers_;  // by core, and each that core's
};

}  // namespace weir::http

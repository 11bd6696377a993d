// Routes while their owner lives: opened when it has started, handed over, left when it stops.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/route_board.hpp"
#include "weir/http/route_tenancy.hpp"
#include "weir/http/router/service_routes.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// How an owner leaves its routes.
struct Leaving {
  /// Somebody will come for them soon: requests wait for that; see RouteBoard::release_kept().
  bool expecting = false;
  /// Everything ends: not before the servers have answered what they had.
  bool after_servers = false;
  /// How long requests under way may take; then they are asked to stop, and answered with 503.
  Duration patience = std::chrono::seconds(10);
};

/// Threads: its owner's core, but for hand_over(). Lifetime: shorter than its board's, and than the
/// run of the board's loops; open routes are left before they are destroyed (asserted).
class OwnedRoutes final : public Routes {
 public:
  enum class Reach : std::uint8_t { own_core, all_cores };
  /// Of an owner that lives on `loop`, one of the board's; its name is for people.
  OwnedRoutes(RouteBoard& board, std::string owner, Loop& loop, Reach reach);
  ~OwnedRoutes();

  /// `co_await routes.open(nullptr)`: from now on they are served, with this owner's handlers.
  /// Beside another owner, whose place this one takes, those that the other one has too are its own
  /// until hand_over(). Errors: Errc::bad_configuration for what was registered wrongly,
  /// Errc::conflict for what somebody else has, those of LiveRoutes::add(); see problem(). Then
  /// none is served.
  /// Cancel: none is served, unless all of them are.
  Task<Result<>> open(const OwnedRoutes* beside);
  /// What was wrong, in words.
  const std::string& problem() const noexcept { return problem_; }

  /// On each of the loops that they are served on: all requests there that begin from now on are
  /// this owner's; those of the other one go on. For open routes.
  void hand_over(Loop& loop);
  /// The loops of its reach.
  std::span<Loop* const> loops() const noexcept;

  /// `co_await routes.leave(how)`: no request begins any more; returns when the last one has ended.
  /// Cancel: asks the requests to end at once.
  Task<> leave(Leaving how);

 private:
  void claim();
  std::string sit(Loop* loop, const OwnedRoutes* beside);
  Task<Result<>> sit_everywhere(const OwnedRoutes* beside);
  void stand_up(Loop* loop, bool expecting);
  Task<> stand_up_everywhere(bool expecting);
  Task<> drain(Loop* loop, Instant until);

  RouteBoard& board_;
  Loop* loop_;
  Reach reach_;
  RouteTenancies tenancies_;
  RouteBoard::Posts posts_;  // as kept()
  std::string problem_;
};

}  // namespace weir::http

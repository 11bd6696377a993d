#include "weir/http/owned_routes.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "weir/runtime/on_core.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {

OwnedRoutes::OwnedRoutes(RouteBoard& board, std::string owner, Loop& loop, Reach reach)
    : board_(board),
      loop_(&loop),
      reach_(reach),
      tenancies_(std::move(owner), reach == Reach::all_cores ? board.loops().size() : 1) {}

OwnedRoutes::~OwnedRoutes() {
  assert(posts_.empty() && "open routes are left first");
}

std::span<Loop* const> OwnedRoutes::loops() const noexcept {
  return reach_ == Reach::all_cores ? board_.loops() : std::span<Loop* const>(&loop_, 1);
}

// ---- Coming -------------------------------------------------------------------------------------

/// On the home core.
void OwnedRoutes::claim() {
  for (const Kept& each : kept()) {
    each.route->tenancies = &tenancies_;
    posts_.push_back(board_.claim(each.key, *each.route));
  }
}

/// On that loop: takes the seats that are free, or gives what is wrong and takes none.
std::string OwnedRoutes::sit(Loop* loop, const OwnedRoutes* beside) {
  for (std::size_t i = 0; i < posts_.size(); ++i) {
    const Route* const tenant = posts_[i]->seats->on(*loop)->tenant();
    if (tenant == nullptr) continue;
    if (beside != nullptr && tenant->tenancies == &beside->tenancies_) continue;
    const Route& route = *kept()[i].route;
    return route.method + " " + route.pattern.text() + " is " + tenant->tenancies->owner() +
           "'s already";
  }
  for (std::size_t i = 0; i < posts_.size(); ++i) {
    RouteSeat& seat = *posts_[i]->seats->on(*loop);
    if (seat.tenant() == nullptr) seat.take(*kept()[i].route);
  }
  return {};
}

Task<Result<>> OwnedRoutes::sit_everywhere(const OwnedRoutes* beside) {
  for (Loop* const each : loops()) {
    if (each == loop_) {
      problem_ = sit(each, beside);
    } else {
      problem_ = co_await on_core(each->core(), &OwnedRoutes::sit, this, each, beside);
    }
    if (!problem_.empty()) co_return fail(Errc::conflict);
  }
  co_return {};
}

Task<Result<>> OwnedRoutes::open(const OwnedRoutes* beside) {
  assert(posts_.empty());
  close();
  problem_ = faults();
  if (!problem_.empty()) co_return fail(Errc::bad_configuration);
  if (kept().empty()) co_return {};
  const unsigned home = board_.home().core();
  co_await on_core(home, &OwnedRoutes::claim, this);
  // First the seats: nobody shall find the route and nobody there.
  Result<> opened = co_await sit_everywhere(beside);
  if (opened) {
    opened = co_await on_core(home, &RouteBoard::put_up, &board_, &posts_, &problem_);
  }
  const Leaving at_once;
  if (!opened) co_await leave(at_once);
  co_return opened;
}

void OwnedRoutes::hand_over(Loop& loop) {
  for (std::size_t i = 0; i < posts_.size(); ++i) {
    posts_[i]->seats->on(loop)->take(*kept()[i].route);
  }
}

// ---- Going --------------------------------------------------------------------------------------

/// On that loop: leaves the seats that are still its own.
void OwnedRoutes::stand_up(Loop* loop, bool expecting) {
  for (std::size_t i = 0; i < posts_.size(); ++i) {
    RouteSeat& seat = *posts_[i]->seats->on(*loop);
    if (seat.tenant() == kept()[i].route.get()) seat.leave(expecting);
  }
}

Task<> OwnedRoutes::stand_up_everywhere(bool expecting) {
  for (Loop* const each : loops()) {
    if (each == loop_) {
      stand_up(each, expecting);
    } else {
      co_await on_core(each->core(), &OwnedRoutes::stand_up, this, each, expecting);
    }
  }
}

namespace {

/// Whatever becomes of this task.
template <class T>
in_context<T> shielded(const Context& here, Task<T> task) {
  return in_context<T>(Context{here.loop, nullptr}, std::move(task));
}

}  // namespace

/// On that loop: waits for the requests there, with patience and without.
Task<> OwnedRoutes::drain(Loop* loop, Instant until) {
  co_await yield();  // what is being answered in this very moment is counted then, if it waits
  RouteTenancy& tenancy = tenancies_.on(*loop);
  if (tenancy.requests.empty()) co_return;
  tenancy.empty.reset();
  auto ending = as_task(tenancy.empty.wait());
  const Duration patience = std::max(Duration::zero(), until - loop->host().now());
  const Result<> ended = co_await timeout(patience, std::move(ending));
  if (ended) co_return;
  RouteUse::stop_all(tenancy.requests);
  const Context here = co_await this_context();
  auto waiting = shielded(here, as_task(tenancy.empty.wait()));
  static_cast<void>(co_await std::move(waiting));
}

Task<> OwnedRoutes::leave(Leaving how) {
  if (posts_.empty()) co_return;
  const Context here = co_await this_context();
  const unsigned home = board_.home().core();
  for (Loop* const each : loops()) {
    if (!how.after_servers) break;
    auto servers = shielded(here, on_core(each->core(), &RouteBoard::servers_ended, &board_, each));
    co_await std::move(servers);
  }
  if (!how.expecting) {
    // First the router: who comes late shall not find the route and nobody there.
    auto releasing = shielded(here, on_core(home, &RouteBoard::release, &board_, &posts_));
    co_await std::move(releasing);
  }
  auto standing_up = shielded(here, stand_up_everywhere(how.expecting));
  co_await std::move(standing_up);
  const Instant until = after(here.loop->host().now(), how.patience);
  for (Loop* const each : loops()) {
    co_await on_core(each->core(), &OwnedRoutes::drain, this, each, until);
  }
  if (how.expecting) {
    auto keeping = shielded(here, on_core(home, &RouteBoard::keep, &board_, &posts_));
    co_await std::move(keeping);
  }
  posts_.clear();
}

}  // namespace weir::http

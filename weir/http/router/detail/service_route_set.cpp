#include "weir/http/router/detail/service_route_set.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "weir/runtime/on_core.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http {

ServiceRouteSet::ServiceRouteSet(ServiceRouteRegistry& registry, std::string owner, Loop& loop,
                                 Reach reach)
    : registry_(registry),
      loop_(&loop),
      reach_(reach),
      in_flight_(std::move(owner), reach == Reach::all_cores ? registry.loops().size() : 1) {}

ServiceRouteSet::~ServiceRouteSet() {
  assert(entries_.empty() && "withdraw() must come before the destruction of open routes");
}

std::span<Loop* const> ServiceRouteSet::loops() const noexcept {
  return reach_ == Reach::all_cores ? registry_.loops() : std::span<Loop* const>(&loop_, 1);
}

// ---- Opening ------------------------------------------------------------------------------------

/// Runs on the owner core.
void ServiceRouteSet::acquire_entries() {
  for (const Registered& each : registered()) {
    each.route->owner_in_flight = &in_flight_;
    entries_.push_back(registry_.acquire(each.key, *each.route));
  }
}

/// Runs on `loop`. Takes the core handlers that are free, or takes none and returns what is
/// wrong.
std::string ServiceRouteSet::install_on(Loop* loop, const ServiceRouteSet* predecessor) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Route* const active = entries_[i]->core_handlers->on(*loop)->active();
    if (active == nullptr) continue;
    if (predecessor != nullptr && active->owner_in_flight == &predecessor->in_flight_) continue;
    const Route& route = *registered()[i].route;
    return route.method + " " + route.pattern.text() + ": already registered by " +
           active->owner_in_flight->owner();
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    CoreHandler& core_handler = *entries_[i]->core_handlers->on(*loop);
    if (core_handler.active() == nullptr) core_handler.install(*registered()[i].route);
  }
  return {};
}

Task<Result<>> ServiceRouteSet::install_all(const ServiceRouteSet* predecessor) {
  for (Loop* const each : loops()) {
    if (each == loop_) {
      error_text_ = install_on(each, predecessor);
    } else {
      error_text_ =
          co_await on_core(each->core(), &ServiceRouteSet::install_on, this, each, predecessor);
    }
    if (!error_text_.empty()) co_return fail(Errc::conflict);
  }
  co_return {};
}

Task<Result<>> ServiceRouteSet::open(const ServiceRouteSet* predecessor) {
  assert(entries_.empty());
  close();
  error_text_ = errors();
  if (!error_text_.empty()) co_return fail(Errc::bad_configuration);
  if (registered().empty()) co_return {};
  const unsigned owner_core = registry_.owner_loop().core();
  co_await on_core(owner_core, &ServiceRouteSet::acquire_entries, this);
  // Install the handlers first, so that no request finds the route without a handler.
  Result<> opened = co_await install_all(predecessor);
  if (opened) {
    opened = co_await on_core(owner_core, &ServiceRouteRegistry::publish, &registry_, &entries_,
                              &error_text_);
  }
  const WithdrawOptions immediately;
  if (!opened) co_await withdraw(immediately);
  co_return opened;
}

void ServiceRouteSet::hand_over(Loop& loop) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i]->core_handlers->on(loop)->install(*registered()[i].route);
  }
}

// ---- Leaving ------------------------------------------------------------------------------------

/// Runs on `loop`. Removes this owner's routes from the core handlers that still have them.
void ServiceRouteSet::remove_on(Loop* loop, bool replacement_expected) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    CoreHandler& core_handler = *entries_[i]->core_handlers->on(*loop);
    if (core_handler.active() == registered()[i].route.get())
      core_handler.remove(replacement_expected);
  }
}

Task<> ServiceRouteSet::remove_all(bool replacement_expected) {
  for (Loop* const each : loops()) {
    if (each == loop_) {
      remove_on(each, replacement_expected);
    } else {
      co_await on_core(each->core(), &ServiceRouteSet::remove_on, this, each, replacement_expected);
    }
  }
}

namespace {

/// Runs `task` without the cancellation of the calling task.
template <class T>
in_context<T> shielded(const Context& here, Task<T> task) {
  return in_context<T>(Context{here.loop, nullptr}, std::move(task));
}

}  // namespace

/// Runs on `loop`. Waits for the requests there until `until`; then stops them and waits for
/// their end. Requests that do not end by themselves are stopped at the beginning.
Task<> ServiceRouteSet::drain(Loop* loop, Instant until) {
  co_await yield();  // a request that is being answered in this turn is counted afterwards, if it
                     // waits
  OwnerInFlight& in_flight = in_flight_.on(*loop);
  if (in_flight.requests.empty()) co_return;
  InFlightRequest::stop_all(in_flight.requests, InFlightRequest::StopReason::removal_begins);
  in_flight.empty.reset();
  auto ending = as_task(in_flight.empty.wait());
  const Duration drain_timeout = std::max(Duration::zero(), until - loop->platform().now());
  const Result<> ended = co_await timeout(drain_timeout, std::move(ending));
  if (ended) co_return;
  InFlightRequest::stop_all(in_flight.requests, InFlightRequest::StopReason::removal_waits);
  const Context here = co_await this_context();
  auto waiting = shielded(here, as_task(in_flight.empty.wait()));
  std::ignore = co_await std::move(waiting);
}

Task<> ServiceRouteSet::withdraw(WithdrawOptions how) {
  if (entries_.empty()) co_return;
  const Context here = co_await this_context();
  const unsigned owner_core = registry_.owner_loop().core();
  for (Loop* const each : loops()) {
    if (!how.after_servers) break;
    auto servers = shielded(
        here,
        on_core(each->core(), &ServiceRouteRegistry::wait_until_servers_stopped, &registry_, each));
    co_await std::move(servers);
  }
  if (!how.replacement_expected) {
    // Remove the route first, so that a late request does not find it without a handler.
    auto releasing =
        shielded(here, on_core(owner_core, &ServiceRouteRegistry::release, &registry_, &entries_));
    co_await std::move(releasing);
  }
  auto removing = shielded(here, remove_all(how.replacement_expected));
  co_await std::move(removing);
  const Instant until = after(here.loop->platform().now(), how.drain_timeout);
  for (Loop* const each : loops()) {
    co_await on_core(each->core(), &ServiceRouteSet::drain, this, each, until);
  }
  if (how.replacement_expected) {
    auto keeping =
        shielded(here, on_core(owner_core, &ServiceRouteRegistry::retain, &registry_, &entries_));
    co_await std::move(keeping);
  }
  entries_.clear();
}

}  // namespace weir::http

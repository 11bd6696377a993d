// The routes of one owner while it runs. They are opened when it has started, handed over to a
// replacement, and withdrawn when it stops.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/router/detail/core_handlers.hpp"
#include "weir/http/router/detail/service_route_registry.hpp"
#include "weir/http/router/service_routes.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Options for ServiceRouteSet::withdraw().
struct WithdrawOptions {
  /// True if a replacement opens the routes soon. Requests wait for it; see
  /// ServiceRouteRegistry::release_retained().
  bool replacement_expected = false;
  /// True if the whole app stops. withdraw() then waits first until the servers have answered their
  /// requests.
  bool after_servers = false;
  /// Time for the requests in flight. They are then stopped and answered with 503.
  Duration drain_timeout = std::chrono::seconds(10);
};

/// The routes of one owner, and their entries in the registry.
/// Threads: the owner's core, except for hand_over().
/// Lifetime: shorter than that of the registry, and than the run of the registry's loops. Open
/// routes must be withdrawn before they are destroyed (asserted).
class ServiceRouteSet final : public ServiceRoutes {
 public:
  enum class Reach : std::uint8_t { own_core, all_cores };
  /// The owner lives on `loop`, one of the registry's loops. `owner` is its name, for messages.
  ServiceRouteSet(ServiceRouteRegistry& registry, std::string owner, Loop& loop, Reach reach);
  ~ServiceRouteSet();

  /// Serves the routes with this owner's handlers: `co_await routes.open(nullptr)`. `predecessor`
  /// is the owner that this owner replaces, or nullptr. Routes that both owners have stay with
  /// the predecessor until hand_over().
  /// Errors: Errc::bad_configuration for invalid registrations, Errc::conflict for a route that
  /// another owner has, those of LiveRoutes::add(); see error_text(). None of the routes is
  /// served then.
  /// Cancel: either none of the routes is served, or all of them are.
  Task<Result<>> open(const ServiceRouteSet* predecessor);
  /// Returns the reason why open() failed.
  const std::string& error_text() const noexcept { return error_text_; }

  /// Makes this owner answer all requests that begin on `loop` from now on. Requests of the
  /// predecessor continue. The caller runs on `loop` and makes one call for each of loops(); the
  /// routes are open.
  void hand_over(Loop& loop);
  /// Returns the loops that serve the routes.
  std::span<Loop* const> loops() const noexcept;

  /// Stops serving the routes: `co_await routes.withdraw(how)`. No request begins any more. The
  /// task completes when the last request has ended.
  /// Cancel: cancels the requests immediately, and waits for their end.
  Task<> withdraw(WithdrawOptions how);

 private:
  void acquire_entries();
  std::string install_on(Loop* loop, const ServiceRouteSet* predecessor);
  Task<Result<>> install_all(const ServiceRouteSet* predecessor);
  void remove_on(Loop* loop, bool replacement_expected);
  Task<> remove_all(bool replacement_expected);
  Task<> drain(Loop* loop, Instant until);

  ServiceRouteRegistry& registry_;
  Loop* loop_;
  Reach reach_;
  OwnerInFlightPerCore in_flight_;
  ServiceRouteRegistry::Entries entries_;  // in the order of registered()
  std::string error_text_;
};

}  // namespace weir::http

// CoreAgent: makes, starts, stops and destroys the services of one core, as the app's core
// commands.
#pragma once

#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "weir/app/describe/detail/node.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/app/handles/lazy.hpp"
#include "weir/http/router/detail/service_route_set.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/task.hpp"

namespace weir::inject {

// Commands from the app's core to a service's core.

/// Makes and starts the instance.
struct MakeInstance {
  Instance* instance;
};
/// Stops and destroys the instance.
struct StopInstance {
  Instance* instance;
  /// True if a replacement will take over the routes of the instance that stops.
  bool replacement_follows;
  bool app_stopping;  ///< true if the whole app stops
};
/// Cancels the start() or stop() that runs, or the opening of routes.
struct CancelTask {
  Instance* instance;
};
/// Clears `providers`, which may have entries of an earlier run.
struct ClearProviders {
  Instance* instance;
  Providers* providers;
};
/// Adds `object` to `providers`.
struct AddProvider {
  Instance* instance;
  Providers* providers;
  void* object;
  const Instance* counted;  ///< instance that provides `object` if its uses are counted, else null
};
/// Removes what AddProvider has added for `dependency`.
struct RemoveProvider {
  Instance* instance;
  Providers* providers;
  void* object;
  const Instance* counted;  ///< as in AddProvider
  Index dependency;
};
/// Resets the Lazy of `dependency` before the instance is made.
struct ResetLazy {
  Instance* instance;
  Index dependency;
  void* object;  ///< object that an earlier run has used, or nullptr
};
/// Completes the requests of the Lazy of `dependency` with `object`.
struct ResolveLazy {
  Instance* instance;
  Index dependency;
  void* object;
};
/// Completes the requests of the Lazy of `dependency` with `error`.
struct FailLazy {
  Instance* instance;
  Index dependency;
  std::error_code error;
};
/// Opens the instance's routes beside those of the instance that it replaces.
struct OpenRoutes {
  Instance* instance;
  const http::ServiceRouteSet* predecessor;
};
/// Takes over the routes of the replaced instance, on each core that serves them.
struct TakeRoutes {
  Instance* instance;
};

using Command =
    std::variant<MakeInstance, StopInstance, CancelTask, ClearProviders, AddProvider,
                 RemoveProvider, ResetLazy, ResolveLazy, FailLazy, OpenRoutes, TakeRoutes>;

// Events that a service's core reports to the app's core.

/// The reason why a service did not start, or why its routes were not opened.
struct StartError {
  std::error_code code;  ///< zero if there is no error
  std::string why;       ///< reason in words
  explicit operator bool() const noexcept { return static_cast<bool>(code); }
};

struct InstanceStarted {
  Instance* instance;
};
struct StartFailed {
  Instance* instance;
  StartError error;
};
struct InstanceStopped {
  Instance* instance;
};
/// The provider of `dependency` was removed from the Providers of its instance.
struct ProviderRemoved {
  Index dependency;
};
/// The instance of `dependency` requested the provider of that Lazy.
struct LazyRequested {
  Index dependency;
};
/// The routes were opened, unless `error` is set.
struct RoutesOpened {
  Instance* instance;
  StartError error;
};
/// The routes were taken over on this core.
struct RoutesTaken {};

using AgentEvent = std::variant<InstanceStarted, StartFailed, InstanceStopped, ProviderRemoved,
                                LazyRequested, RoutesOpened, RoutesTaken>;

/// Returns the dependency of the instance's Scope& or ServiceRoutes& parameter, or nullptr. An
/// instance has at most one parameter of each kind.
Dependency* find_dependency(const Instance& instance, DependencyKind kind) noexcept;
/// Returns the routes of an instance that exists, or nullptr if it has none.
http::ServiceRouteSet* routes_of(const Instance& instance) noexcept;

/// Executes commands on one core and reports their results as events.
/// Threads: those of its loop.
/// Lifetime: until none of its services runs any more.
class CoreAgent {
 public:
  using OnEvent = void (*)(void* listener, AgentEvent event);
  /// `on_event` is called for each event, possibly inside execute(). `app` is the argument of App&
  /// parameters. `route_registry` is the registry of routes, or nullptr.
  CoreAgent(Loop& loop, App& app, http::ServiceRouteRegistry* route_registry, OnEvent on_event,
            void* listener) noexcept
      : loop_(loop),
        app_(app),
        route_registry_(route_registry),
        on_event_(on_event),
        listener_(listener) {}
  CoreAgent(const CoreAgent&) = delete;
  CoreAgent& operator=(const CoreAgent&) = delete;

  void execute(const Command& command);
  bool is_on(const Loop& loop) const noexcept { return &loop == &loop_; }

 private:
  friend class ServiceTask;
  void run(const MakeInstance& command);
  void run(const StopInstance& command);
  void run(const CancelTask& command);
  void run(const ClearProviders& command);
  void run(const AddProvider& command);
  void run(const RemoveProvider& command);
  void run(const ResetLazy& command);
  void run(const ResolveLazy& command);
  void run(const FailLazy& command);
  void run(const OpenRoutes& command);
  void run(const TakeRoutes& command);

  void report(AgentEvent event) { on_event_(listener_, std::move(event)); }
  void spawn(Instance& instance, Task<AgentEvent> task);
  bool remove_provider(const RemoveProvider& command);
  void call_on_change(const Instance& instance, const Providers& providers);
  static void on_provider_unused(CountedProvider& provider,
                                 const CountedProvider::OnUnused& on_unused);
  static void request_lazy(LazyState& lazy_state);
  void find_arguments(Instance& instance, void** arguments, void* requester_data);
  void* make_routes(const Instance& instance);
  StartError make_object(Instance& instance);
  Task<AgentEvent> start_task(Instance* instance);
  Task<StartError> start_service(Instance* instance);
  Task<StartError> open_routes(Instance* instance, const http::ServiceRouteSet* predecessor);
  Task<AgentEvent> open_task(Instance* instance, const http::ServiceRouteSet* predecessor);
  Task<> stop_service(Instance* instance);
  Task<AgentEvent> stop_task(Instance* instance, http::WithdrawOptions how);
  Task<AgentEvent> abort_task(Instance* instance, StartError error);
  Task<> close_scope(Instance* instance);
  void destroy(Instance& instance) noexcept;
  void release_arguments(Instance& instance) noexcept;

  Loop& loop_;
  App& app_;
  http::ServiceRouteRegistry* route_registry_;
  OnEvent on_event_;
  void* listener_;
};

}  // namespace weir::inject

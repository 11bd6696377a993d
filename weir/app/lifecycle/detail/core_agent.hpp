// CoreAgent: makes, starts, stops and destroys the services of one core, as the app's core
// commands.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "weir/app/describe/detail/node.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/app/handles/lazy.hpp"
#include "weir/http/router/detail/service_route_set.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/task.hpp"

namespace weir::inject {

/// A command from the app's core to a service's core.
struct Command {
  enum class Kind : std::uint8_t {
    make,             ///< makes and starts the instance
    stop,             ///< stops and destroys the instance
    cancel,           ///< cancels the start() or stop() that runs
    clear_providers,  ///< clears `providers`, which may have entries of an earlier run
    add_provider,     ///< adds `object` to the providers of `dependency`
    remove_provider,  ///< removes `object` from the providers of `dependency`
    reset_lazy,       ///< resets the Lazy of `dependency` to `object`, which may be null
    resolve_lazy,     ///< gives `object` to the Lazy of `dependency`
    fail_lazy,        ///< completes the Lazy of `dependency` with the error in its state
    /// Opens the instance's routes beside those in `object`, which the replaced instance owns.
    open_routes,
    take_routes,  ///< takes over the routes of the replaced instance, on each core that serves them
  };
  Kind kind;
  Instance* instance;
  Index dependency = no_index;
  Providers* providers = nullptr;
  void* object = nullptr;
  /// Instance that provides `object`, if its uses are counted; else nullptr.
  const Instance* provider = nullptr;
  /// True if a replacement will take over the routes of the instance that stops.
  bool replacement_follows = false;
  bool app_stopping = false;  ///< true if the whole app stops
};

/// An event that a service's core reports to the app's core.
struct AgentEvent {
  enum class Kind : std::uint8_t {
    started,
    failed,
    stopped,
    provider_removed,  ///< the provider of `dependency` was removed
    lazy_requested,    ///< the instance requested the Lazy of `dependency`
    routes_opened,     ///< the routes were opened, or could not be (see `error`)
    routes_taken,      ///< the routes were taken over on this core
  };
  AgentEvent(Kind of, Instance* about) noexcept : kind(of), instance(about) {}

  Kind kind;
  Instance* instance;
  Index dependency = no_index;  ///< for provider_removed and lazy_requested
  std::error_code error;
  std::string why;  ///< reason in words, for an event with an error
};

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
  void make(Instance& instance);
  void stop(const Command& command);
  void update_providers(const Command& command);
  bool remove_provider(const Command& command);
  static void on_provider_unused(CountedProvider& provider,
                                 const CountedProvider::OnUnused& on_unused);
  void complete_lazy(const Command& command);
  static void request_lazy(LazyState& lazy_state);
  void find_arguments(Instance& instance, void** arguments, void* requester_data);
  void run(Instance& instance, Task<AgentEvent> task);
  void* make_routes(const Instance& instance);
  Task<AgentEvent> start_task(Instance* instance);
  Task<AgentEvent> open_task(Instance* instance, const http::ServiceRouteSet* predecessor);
  Task<> stop_service(Instance* instance);
  Task<AgentEvent> stop_task(Instance* instance, http::WithdrawOptions how);
  Task<AgentEvent> abort_task(Instance* instance, AgentEvent event);
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

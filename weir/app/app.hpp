// App: services that are injected by their signatures, started in order and stopped in reverse.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/app/describe/detail/descriptor.hpp"
#include "weir/app/describe/service_options.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/app/handles/lazy.hpp"
#include "weir/app/handles/remote.hpp"
#include "weir/app/handles/scoped.hpp"
#include "weir/app/lifecycle/app_status.hpp"
#include "weir/base/result.hpp"
#include "weir/http/router/detail/service_route_registry.hpp"
#include "weir/runtime/options.hpp"
#include "weir/task/task.hpp"

namespace weir {

class Runtime;
namespace http {
class ServiceRouteRegistry;
class Router;
}  // namespace http

/// An App owns services and manages their lifecycle. A service is an object of any class. Its
/// dependencies are the parameters of its constructor, or of the factory that makes it:
///
///     const T&, T&              a required service: this service is made after the T has started
///                               and stopped before the T stops
///     inject::Where<T, F>       a required T whose properties the filter F accepts
///     inject::Optional<T, F?>   a T that may be absent, and may appear or disappear at any time
///     inject::All<T, F?>        all T that are present; they may appear or disappear at any time
///     inject::Lazy<T, F?>       a required T that is made, or waited for, when it is first used
///     inject::Remote<T, F?>     a T on another core, whose methods run there; it may appear or
///                               disappear at any time
///     inject::Scoped<Root>      opens scopes with services of their own, such as requests
///     inject::Requester         the requiring service: each one gets its own instance
///     Scope&                    where the service may spawn tasks; the app cancels them after
///                               stop() and waits for them
///     Loop&, App&               the loop that the service runs on; the app, for introspection
///     http::ServiceRoutes&      where the service may register routes, which are removed together
///                               with the service; see mount()
///
///     App app;
///     app.shared([] { return Config{.port = 80}; });
///     app.per_core<Database>();                                  // Database(const Config&)
///     app.per_core([](Database& db, const Config& c) { return Web(db, c.port); });
///     return app.run({});
///
/// A service may have `Task<Result<>> start()` and `Task<> stop()`. Other services can use it after
/// start() has succeeded; the app destroys it after stop() has returned. Independent services start
/// and stop at the same time. The app destroys the service without stop() if start() fails. A
/// per-core or on-core instance is made, used and destroyed on its core. A shared service lives on
/// the core that the app is started on. All cores use it, so it is used as const and takes its
/// dependencies as const.
///
/// The app may move the object that a factory returns. A service that publishes its own address
/// does so in start(), or is registered by its constructor.
///
/// Services are registered before the app runs. Services that are registered while it runs take
/// part after apply() or replace(). A factory is called on the cores of its service, at the same
/// time if there are several.
/// Threads: all functions on the core that start() was called on; one thread at a time while the
/// app does not run.
/// Lifetime: outlives the run of its services; all its loops outlive the run.
class App {
 public:
  App();
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  /// Registers a service with one instance. Other services take it as `const T&`; it must be safe
  /// to use from every core. T is made by its constructor and is also provided as its bases
  /// `Interfaces`. Alternatively, `factory` makes the service: it returns a T, a
  /// std::unique_ptr<T>, or a Result of one of them. The Optional, All and Lazy parameters of a
  /// shared service work on its own core only (asserted). They may be used in its start() and
  /// stop() and in the tasks of its scope. Functions that other services call on their cores must
  /// not use them; these services take such parameters themselves. Remote::call() works on every
  /// core.
  template <class T, class... Interfaces>
    requires(!inject::Factory<T>)
  ServiceId shared(const ServiceOptions& options = {}) {
    static_assert(
        inject::has_only_const_dependencies(decltype(inject::constructor_parameters<T>())()),
        "a shared service is used by all cores and takes others as const");
    return add(inject::constructor_registration<T, Interfaces...>(), Placement::shared, 0, options);
  }
  template <class... Interfaces, inject::Factory F>
  ServiceId shared(F factory, const ServiceOptions& options = {}) {
    static_assert(
        inject::has_only_const_dependencies(typename inject::FactoryOf<F>::ParameterTypes()),
        "a shared service is used by all cores and takes others as const");
    return add(inject::factory_registration<F, Interfaces...>(std::move(factory)),
               Placement::shared, 0, options);
  }

  /// Registers `value` as a service: one object for all cores, which others take as `const T&`. It
  /// lives as long as its registration, so a start() after a stop() finds the same object. A value
  /// that is a function object counts as a factory; see the overload above.
  template <class... Interfaces, class T>
    requires(!inject::Factory<T> && !std::is_same_v<T, ServiceOptions>)
  ServiceId shared(T value, const ServiceOptions& options = {}) {
    const auto kept = std::make_shared<T>(std::move(value));
    return shared<Interfaces...>([kept] { return inject::Borrowed<T>(kept.get()); }, options);
  }

  /// Registers a service with one instance on each core. Other services on that core may take it
  /// as `T&`.
  template <class T, class... Interfaces>
    requires(!inject::Factory<T>)
  ServiceId per_core(const ServiceOptions& options = {}) {
    return add(inject::constructor_registration<T, Interfaces...>(), Placement::per_core, 0,
               options);
  }
  template <class... Interfaces, inject::Factory F>
  ServiceId per_core(F factory, const ServiceOptions& options = {}) {
    return add(inject::factory_registration<F, Interfaces...>(std::move(factory)),
               Placement::per_core, 0, options);
  }

  /// Registers a service with one instance, on `core`. Other services on that core may take it as
  /// `T&`.
  template <class T, class... Interfaces>
    requires(!inject::Factory<T>)
  ServiceId on_core(unsigned core, const ServiceOptions& options = {}) {
    return add(inject::constructor_registration<T, Interfaces...>(), Placement::on_core, core,
               options);
  }
  template <class... Interfaces, inject::Factory F>
  ServiceId on_core(unsigned core, F factory, const ServiceOptions& options = {}) {
    return add(inject::factory_registration<F, Interfaces...>(std::move(factory)),
               Placement::on_core, core, options);
  }

  /// Registers a service with one instance for each scope that is opened for a Root, such as a
  /// request; see Scoped. A constructor or a factory makes it. Either may take a Root& and
  /// everything that a per_core() service may take. It takes other scoped services of that Root as
  /// references or by inject::Where. Its Optional, All and Lazy parameters do not get them.
  template <class Root, class T, class... Interfaces>
    requires(!inject::Factory<T>)
  ServiceId scoped(const ServiceOptions& options = {}) {
    return add(inject::scoped_constructor_registration<Root, T, Interfaces...>(),
               Placement::per_core, 0, options);
  }
  template <class Root, class... Interfaces, inject::Factory F>
  ServiceId scoped(F factory, const ServiceOptions& options = {}) {
    return add(inject::scoped_factory_registration<Root, F, Interfaces...>(std::move(factory)),
               Placement::per_core, 0, options);
  }

  /// Replaces a service by a fake, for tests, before the start. The object that `factory` makes, a
  /// T or a class derived from T, replaces all services that are registered as a T. The fake has
  /// the placement and the options of the first of these services. Scoped services are not
  /// replaced. The test keeps the program's other registrations.
  /// Errors: throws std::invalid_argument if no service is registered as a T.
  template <class T, inject::Factory F>
  ServiceId fake(F factory) {
    if constexpr (std::is_same_v<typename inject::FactoryOf<F>::Service, T>) {
      return add_fake(inject::type<T>, inject::factory_registration<F>(std::move(factory)));
    } else {
      return add_fake(inject::type<T>, inject::factory_registration<F, T>(std::move(factory)));
    }
  }

  /// Lets services take http::ServiceRoutes&. `router` serves the routes that they register,
  /// wherever that router is served; serve_http() serves it on every core. Call it before the
  /// start.
  /// Lifetime: the router outlives the app.
  void mount(http::Router& router, const http::ServiceRouteOptions& options = {});

  /// Runs the app until it is asked to drain (SIGINT, SIGTERM), for main(). Starts all services on
  /// the cores of a new runtime, waits, and stops all services.
  /// Returns: 0, or 1 after log lines that give the reason.
  int run(const RuntimeOptions& options);
  /// Runs the app in the same way on a runtime of the caller.
  int run(Runtime& runtime);
  /// Runs the app in the same way on every core of `platform`; the main function of a host in a
  /// sim::World.
  int run(loop::Platform& platform);

  /// `co_await app.start()` starts all services on the cores of this loop's runtime. The app logs
  /// each error and reports it in errors().
  /// Errors: Errc::bad_configuration if the services do not fit together; no service was made
  /// then. Errc::conflict if the app already runs. Otherwise the error of the first service that
  /// failed, after all started services have stopped again.
  /// Cancel: stops the services that have started; returns Errc::cancelled when all have stopped.
  Task<Result<>> start();
  /// Stops all services, including those that are still starting. start() may be called again.
  /// Cancel: passed on to each start() and stop() that runs; returns when all services have
  /// stopped.
  Task<> stop();
  bool running() const noexcept;

  // The functions below change a running app. Each returns when the change has settled. A
  // cancelled caller gets Errc::cancelled, and the change continues. A service may therefore
  // request its own end from a task in its scope, or from one of its requests. A service must not
  // await one of these functions in its start() or stop().

  /// `co_await app.stop(id)` stops that service after its dependants. They stay registered.
  /// Errors: Errc::not_found if the service was removed.
  /// Cancel: the services stop nevertheless.
  Task<Result<>> stop(ServiceId id);
  /// `co_await app.start(id)` lets that service run again, and its dependants too, after stop(id)
  /// or a failure. The service may still wait for others when this returns; see explain().
  /// Errors: Errc::not_found if the service was removed; otherwise the error that its start failed
  /// with.
  /// Cancel: the services start nevertheless.
  Task<Result<>> start(ServiceId id);
  /// `co_await app.apply()` adds the services that were registered since the start. A service that
  /// lacks a provider waits for one.
  /// Errors: Errc::bad_configuration if a service does not fit (see errors()); none was added
  /// then, and all of them are removed. Otherwise the error of the first service that failed.
  /// Cancel: the change continues.
  Task<Result<>> apply();
  /// `co_await app.replace(old, fresh)` replaces `old` by `fresh`, which was registered since the
  /// start. Both run side by side by default. New instances of the service and of all its
  /// dependants start beside the old ones. All other services are then given the new instances,
  /// and the old ones stop, dependants first. The new instances take over the routes in between,
  /// on each core in one step. The old instance finishes each request that began before; no
  /// request is refused. If a new instance cannot start, all new instances stop and nothing has
  /// changed. Services that waited for the new one start last. Their failures do not undo the
  /// replacement; errors() reports them.
  ///
  /// The replacement is exclusive if ServiceOptions::replace_policy of either service is
  /// exclusive, or if their placements differ, or if one is made by request. It is also exclusive
  /// if the old service does not run or was not added yet, or if a dependant cannot take the new
  /// one. The old service and its dependants then stop first. Requests for their routes wait
  /// meanwhile, for at most ServiceRouteOptions::wait_timeout; then the server answers 503 with
  /// Retry-After. If the new service or a dependant cannot start, the old service starts again in
  /// its old placement. If the old service cannot start either, errors() gives both reasons. An
  /// old service that was not added yet stays registered for apply().
  ///
  /// A new service that only inject::Lazy parameters take, and that none of them has requested yet,
  /// takes the old one's place without a start.
  ///
  /// Errors: Errc::not_found if either service was removed; Errc::conflict if `fresh` is `old` or
  /// takes part already. Otherwise the error of the first service that failed.
  /// Errc::bad_configuration if a service does not fit or waits for another (see errors()).
  /// Errc::cancelled if the app does not run or was stopped meanwhile. `fresh` is removed after
  /// every error except not_found and conflict.
  /// Cancel: the change continues.
  Task<Result<>> replace(ServiceId old, ServiceId fresh);
  /// `co_await app.remove(id)` stops that service and removes its registration. Its dependants
  /// take another service that provides their type, or wait for one.
  /// Errors: Errc::not_found if the service was removed already. Errc::bad_configuration if a
  /// dependant cannot take the other service (see errors()); nothing has changed then.
  /// Cancel: the change continues.
  Task<Result<>> remove(ServiceId id);

  /// Returns the errors of the last start() or change, one line each.
  const std::vector<std::string>& errors() const noexcept;
  /// Returns the state of all services.
  /// Threads: the app's core, or any one thread while the app does not run.
  Explanation explain() const;
  /// `co_await app.explain_async()` returns the same explanation on any loop of the app's runtime.
  /// It is empty while the app does not run.
  /// Cancel: not affected.
  Task<Explanation> explain_async() const;
  /// Returns true if the service is registered and was not removed.
  /// Threads: the app's core, or any one thread while the app does not run.
  bool contains(ServiceId id) const noexcept;
  /// Returns the registry that mount() made, for servers; nullptr without mount().
  /// Threads: any core while the app runs.
  http::ServiceRouteRegistry* route_registry() const noexcept;

 private:
  struct Impl;

  ServiceId add(inject::RegistrationInput input, Placement placement, unsigned core,
                const ServiceOptions& options);
  ServiceId add_fake(const inject::Type& type, inject::RegistrationInput input);

  std::unique_ptr<Impl> impl_;
};

}  // namespace weir

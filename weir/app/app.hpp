// App: services that are wired by their signatures, started in order, stopped in reverse.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/app/chosen.hpp"
#include "weir/app/lifecycle/app_status.hpp"
#include "weir/app/handles/detail/lazy.hpp"
#include "weir/app/describe/detail/descriptor.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/app/handles/detail/remote.hpp"
#include "weir/app/requester.hpp"
#include "weir/app/scoped.hpp"
#include "weir/app/service_options.hpp"
#include "weir/base/result.hpp"
#include "weir/runtime/options.hpp"
#include "weir/http/route_board_options.hpp"
#include "weir/task/task.hpp"

namespace weir {

class Runtime;
namespace http {
class RouteBoard;
class Router;
}  // namespace http

/// Services and their lives. A service is an object of any class. What it depends on are the
/// parameters of its constructor, or of the factory that makes it:
///
///   const T&, T&      required: it is made when the T has started, and stopped before the T stops
///   Chosen<T, F>      the same, of those T whose properties the filter F accepts
///   Optional<T, F?>   there or not; All<T, F?>: all there are. They come and go
///   Lazy<T, F?>       required too, but only made, or waited for, when it is first used
///   Remote<T, F?>     one on another core, whose methods are called there; it comes and goes
///   Scoped<Seed>      opens scopes, such as requests, that have services of their own: scoped()
///   Requester         who asks: one instance for each service that requires it
///   Scope&            where it may spawn tasks; they are cancelled and waited for after its stop()
///   Loop&, App&       the loop it lives on; the app, for introspection
///   http::Routes&     where it may register routes, which come and go with it; see mount()
///
///   App app;
///   app.shared([] { return Config{.port = 80}; });
///   app.per_core<Database>();                                  // Database(const Config&)
///   app.per_core([](Database& db, const Config& c) { return Web(db, c.port); });
///   return app.run({});
///
/// A service may have `Task<Result<>> start()`, after whose success it is there for others, and
/// `Task<> stop()`, after which it is destroyed; independent ones start and stop at the same time.
/// When start() fails or its deadline passes, the service is destroyed without stop(). What lives
/// on one core is made, used and destroyed on that core; what is shared lives on the core that the
/// app is started on, is used by all, and so gives and takes everything as const.
///
/// What a factory returns may be moved into its place: a service that hands out its own address
/// does so in start(), or is registered by its constructor.
///
/// Services are registered before the app runs, or while it does, for apply() and replace().
/// Factories are called on the cores of their services: at the same time, if those are several.
/// Threads: all functions on the core that start() was called on; before and after, one at a time.
/// Lifetime: outlives the run of its services, and outlived by none of its loops while it runs.
class App {
 public:
  App();
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  /// One instance, which others take as `const T&`, safe from every core. By its constructor, also
  /// as its bases `Interfaces`; or what `factory` makes: a T, a std::unique_ptr<T>, a Result of
  /// one. What it takes as Optional, All or Lazy is there on its own core only (asserted): for its
  /// start(), its stop() and the tasks of its scope, not for what others call from their cores, who
  /// take these themselves. Remote::call() is for every core.
  template <class T, class... Interfaces>
    requires(!wiring::Factory<T>)
  ServiceId shared(const ServiceOptions& options = {}) {
    static_assert(wiring::only_reads(decltype(wiring::constructor_parameters<T>())()),
                  "a shared service is used by all cores and takes others as const");
    return add(wiring::blueprint_of_constructor<T, Interfaces...>(), Place::shared, 0, options);
  }
  template <class... Interfaces, wiring::Factory F>
  ServiceId shared(F factory, const ServiceOptions& options = {}) {
    static_assert(wiring::only_reads(typename wiring::FactoryOf<F>::Taken()),
                  "a shared service is used by all cores and takes others as const");
    return add(wiring::blueprint_of_factory<F, Interfaces...>(std::move(factory)), Place::shared, 0,
               options);
  }

  /// One instance on each core, which others on that core may take as `T&`.
  template <class T, class... Interfaces>
    requires(!wiring::Factory<T>)
  ServiceId per_core(const ServiceOptions& options = {}) {
    return add(wiring::blueprint_of_constructor<T, Interfaces...>(), Place::per_core, 0, options);
  }
  template <class... Interfaces, wiring::Factory F>
  ServiceId per_core(F factory, const ServiceOptions& options = {}) {
    return add(wiring::blueprint_of_factory<F, Interfaces...>(std::move(factory)), Place::per_core,
               0, options);
  }

  /// One instance, on that core, which others there may take as `T&`.
  template <class T, class... Interfaces>
    requires(!wiring::Factory<T>)
  ServiceId on_core(unsigned core, const ServiceOptions& options = {}) {
    return add(wiring::blueprint_of_constructor<T, Interfaces...>(), Place::on_core, core, options);
  }
  template <class... Interfaces, wiring::Factory F>
  ServiceId on_core(unsigned core, F factory, const ServiceOptions& options = {}) {
    return add(wiring::blueprint_of_factory<F, Interfaces...>(std::move(factory)), Place::on_core,
               core, options);
  }

  /// An instance for each scope that somebody opens for a Seed, such as a request; see Scoped. By
  /// its constructor, or by a factory; either may take a Seed&, and what a per_core() one may.
  template <class Seed, class T, class... Interfaces>
    requires(!wiring::Factory<T>)
  ServiceId scoped(const ServiceOptions& options = {}) {
    return add(wiring::scoped_blueprint_of_constructor<Seed, T, Interfaces...>(), Place::per_core,
               0, options);
  }
  template <class Seed, class... Interfaces, wiring::Factory F>
  ServiceId scoped(F factory, const ServiceOptions& options = {}) {
    return add(wiring::scoped_blueprint_of_factory<Seed, F, Interfaces...>(std::move(factory)),
               Place::per_core, 0, options);
  }

  /// For tests, before the start: what `factory` makes, a T or something derived from it, takes the
  /// place of everything that is registered as a T, on the same cores and with the same options as
  /// the first of these. So a test has the program's own wiring, but for what it fakes. Errors:
  /// throws std::invalid_argument where nothing is registered as a T.
  template <class T, wiring::Factory F>
  ServiceId fake(F factory) {
    if constexpr (std::is_same_v<typename wiring::FactoryOf<F>::Service, T>) {
      return add_fake(wiring::type<T>, wiring::blueprint_of_factory<F>(std::move(factory)));
    } else {
      return add_fake(wiring::type<T>, wiring::blueprint_of_factory<F, T>(std::move(factory)));
    }
  }

  /// From now on services may ask for http::Routes&: what they register is served by `router`,
  /// wherever that is served; serve_http() does it on every core. Before the start; the router
  /// outlives the app.
  void mount(http::Router& router, const http::RouteBoardOptions& options = {});

  /// For main(): starts everything on the cores of a runtime, waits until it is asked to drain
  /// (SIGINT, SIGTERM), and stops everything. 0, or 1 after log lines that say why.
  int run(const RuntimeOptions& options);
  /// The same on a runtime of the caller's.
  int run(Runtime& runtime);

  /// `co_await app.start()`: starts everything on the cores of this loop's runtime. Errors:
  /// Errc::bad_configuration when the services do not fit together, before anything is made; else
  /// that of the first service that failed, when what had started has stopped again. Either is
  /// logged, and told by problems().
  /// Cancel: stops what had started; Errc::cancelled when all of it has.
  Task<Result<>> start();
  /// Stops everything, also what is still starting; start() may be called again.
  /// Cancel: passed on to each start() and stop() that runs; returns when all has stopped.
  Task<> stop();
  bool running() const noexcept;

  // While it runs. Each returns when what it has set in motion has come to rest. Who is cancelled
  // while it waits for that gets Errc::cancelled, and it goes on: a service may ask for its own end
  // from a task in its scope, or from one of its requests. It must not wait for one of these in its
  // start() or stop().

  /// `co_await app.stop(id)`: stops that service, its dependants first; they stay registered.
  /// Errors: Errc::not_found for one that was removed.
  /// Cancel: it stops all the same.
  Task<Result<>> stop(ServiceId id);
  /// `co_await app.start(id)`: lets it run again, after a stop(id) or a failure, and those who
  /// depend on it too. It may still wait for others then: see explain(). Errors: Errc::not_found;
  /// that with which it failed.
  /// Cancel: it starts all the same.
  Task<Result<>> start(ServiceId id);
  /// `co_await app.apply()`: what was registered since the start becomes a part of the app. Who
  /// lacks a provider waits for one. Errors: Errc::bad_configuration when something does not fit
  /// (see problems()): then none of it was added; else that of the first that failed.
  /// Cancel: it goes on.
  Task<Result<>> apply();
  /// `co_await app.replace(old, fresh)`: `fresh`, which was registered since the start, takes the
  /// place of `old`. Side by side, as a rule: new instances of it and of all that depend on it
  /// start beside the old ones; then everybody is given the new ones, and the old ones stop,
  /// dependants first. Their routes change hands in between, on each core in one step: a request
  /// that began before is finished by the old instance, and none is refused. When one of the new
  /// ones cannot start, all of them stop and nothing has changed.
  ///
  /// Where that cannot be (ServiceOptions::replacing of either says exclusive, they live in
  /// different places, are by request, or the old one does not run), the old one and its dependants
  /// stop first. Requests for their routes wait meanwhile, for RouteBoardOptions::wait_max; then
  /// they are answered with 503 and Retry-After. When the new one or a dependant cannot start, the
  /// old one starts again, in its old place; if it cannot either, problems() says why too.
  ///
  /// Errors: Errc::not_found; Errc::conflict when `fresh` takes part already; else that of the
  /// first that failed, Errc::bad_configuration where something does not fit or waits for another
  /// (see problems()), Errc::cancelled when the app does not run or was stopped meanwhile. But for
  /// the first two, `fresh` is removed then. Cancel: it goes on.
  Task<Result<>> replace(ServiceId old, ServiceId fresh);
  /// `co_await app.remove(id)`: stops that service and forgets it. Its dependants wait for another.
  /// Errors: Errc::not_found.
  /// Cancel: it goes on.
  Task<Result<>> remove(ServiceId id);

  /// What was wrong at the last start() or change, a line for each.
  const std::vector<std::string>& problems() const noexcept;
  /// On the app's core, or while it does not run.
  Explanation explain() const;
  /// `co_await app.explained()`: the same from any of its loops. Empty while it does not run.
  /// Cancel: not affected.
  Task<Explanation> explained() const;
  /// Whether it is registered, and was not removed. As explain().
  bool knows(ServiceId id) const noexcept;
  /// For servers: what mount() made; nullptr without it. Any core, while it runs.
  http::RouteBoard* route_board() const noexcept;

 private:
  struct Parts;

  ServiceId add(wiring::Blueprint blueprint, Place place, unsigned core,
                const ServiceOptions& options);
  ServiceId add_fake(const wiring::Type& type, wiring::Blueprint blueprint);
  Task<> settle();
  Task<Result<>> change(Task<Result<>> body);
  Task<Result<>> change_alone(Task<Result<>> body);
  Task<Result<>> stop_one(ServiceId id);
  Task<Result<>> start_one(ServiceId id);
  Task<Result<>> apply_alone();
  Task<Result<>> remove_alone(ServiceId id);
  Task<Result<>> replace_alone(ServiceId old, ServiceId fresh);
  Task<Result<>> replace_side_by_side(ServiceId old, ServiceId fresh);
  Task<Result<>> replace_exclusively(ServiceId old, ServiceId fresh);
  Task<Result<>> start_in_place(ServiceId fresh);
  Task<> put_back(ServiceId old, ServiceId fresh, std::size_t known);
  std::vector<std::string> problems_now(bool missing_may_come) const;
  Task<> close();
  void look_at_nodes_of(ServiceId id);
  Result<> failure_since(std::size_t known, ServiceId of = {});
  void tell_failures(std::size_t known);

  std::unique_ptr<Parts> parts_;
};

}  // namespace weir

// The registry of routes that have owners: which of them are served, and how many references each
// has.
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
#include "weir/http/router/detail/core_handlers.hpp"
#include "weir/http/router/router.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

// The answers to requests whose owner is absent.

struct ServiceRouteOptions {
  /// Time for which a request waits for an owner that is being replaced and cannot exist twice.
  /// The request is then answered with 503.
  Duration wait_timeout = std::chrono::seconds(10);
  std::chrono::seconds retry_after{1};  ///< Retry-After of these 503 responses
};

/// The registry has one entry for each route of any owner, for any number of instances and cores.
/// The router serves the route as long as its entry has references. The CoreHandlers of the entry
/// hold the owner that answers on each core. The registry's state belongs to one core, its owner
/// core; owners on other cores use on_core() to reach it.
/// Threads: the owner core's, unless a function says otherwise.
/// Lifetime: the router outlives it.
class ServiceRouteRegistry {
 public:
  struct Entry {
    Entry(std::string route_key, const Route& route, std::shared_ptr<CoreHandlers> route_handlers)
        : key(std::move(route_key)),
          method(route.method),
          pattern(route.pattern),
          core_handlers(std::move(route_handlers)) {}

    const std::string key;
    const std::string method;
    const Pattern pattern;
    const std::shared_ptr<CoreHandlers> core_handlers;
    std::size_t references = 0;
    std::optional<RouteId> id;  ///< set while the route is served
    Mutex mutex;                ///< held to publish or unpublish the route
  };
  using Entries = std::vector<std::shared_ptr<Entry>>;

  explicit ServiceRouteRegistry(Router& router, const ServiceRouteOptions& options = {}) noexcept
      : router_(router), options_(options) {}
  ServiceRouteRegistry(const ServiceRouteRegistry&) = delete;
  ServiceRouteRegistry& operator=(const ServiceRouteRegistry&) = delete;

  /// Opens the registry for the loops of a group, before the first owner opens. `owner_loop` is the
  /// loop of the owner core.
  void open(Loop& owner_loop, std::span<Loop* const> loops);
  /// Closes the registry, after the last owner has left.
  void close();

  Router& router() const noexcept { return router_; }
  /// Returns the loop of the owner core. owner_loop() and loops() may be called while the registry
  /// is open.
  /// Threads: any.
  Loop& owner_loop() const noexcept { return *owner_loop_; }
  std::span<Loop* const> loops() const noexcept { return loops_; }

  // Owners.

  /// Adds a reference to the route's entry, and makes the entry if there is none.
  std::shared_ptr<Entry> acquire(const std::string& key, const Route& route);
  /// Publishes the entries; completes when all of them are served.
  /// Errors: those of LiveRoutes::add(); `error_text` names the route.
  /// Cancel: some of the entries may be served, and some not.
  Task<Result<>> publish(const Entries* entries, std::string* error_text);
  /// Drops one reference to each entry. The task completes when entries without references are no
  /// longer served.
  /// Cancel: not affected.
  Task<> release(const Entries* entries);
  /// Keeps these references until release_retained(), while a replacement is expected.
  void retain(const Entries* entries);
  /// Ends the wait for replacements that have not come, and releases the retained references.
  /// Cancel: not affected.
  Task<> release_retained();

  // Servers. They begin to answer when all owners are there. Owners that stop together with the
  // servers wait for them first.

  /// Sets serving_allowed() on all cores: `co_await registry.allow_serving()`.
  /// Cancel: not affected.
  /// Threads: the owner core's.
  Task<> allow_serving();
  /// Returns an event that is set when the server may begin.
  /// Threads: the server's core.
  ManualResetEvent& serving_allowed(const Loop& loop) {
    return servers_[loop.core()].serving_allowed;
  }
  /// Counts the servers that run on the loop's core.
  /// Threads: the server's core.
  void on_server_started(const Loop& loop);
  void on_server_stopped(const Loop& loop);
  /// Waits until no server runs on the loop: `co_await
  /// registry.wait_until_servers_stopped(&loop)`.
  /// Cancel: not affected.
  /// Threads: that loop's.
  Task<> wait_until_servers_stopped(const Loop* loop);

 private:
  struct Servers {
    std::size_t running = 0;
    ManualResetEvent none{true};
    ManualResetEvent serving_allowed{};
  };

  std::unique_ptr<Route> make_route(const Entry& entry) const;
  Task<Result<>> publish_one(std::shared_ptr<Entry> entry, std::string* error_text);
  Task<> unpublish(std::shared_ptr<Entry> entry);
  static void stop_waiting_for_replacement(const Entries* entries, const Loop* loop);
  void allow_serving_on(const Loop* loop) { serving_allowed(*loop).set(); }

  Router& router_;
  ServiceRouteOptions options_;
  Loop* owner_loop_ = nullptr;
  std::span<Loop* const> loops_;
  std::map<std::string, std::shared_ptr<Entry>, std::less<>> entries_;
  Entries retained_;
  std::deque<Servers> servers_;  // by core; each belongs to its core
};

}  // namespace weir::http

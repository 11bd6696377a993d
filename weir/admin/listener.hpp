// The admin listener: an endpoint of its own for live pages, health and other admin routes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/app/app.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/config/values.hpp"
#include "weir/event/bus.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"
#include "weir/web/middleware/health.hpp"

namespace weir {

class BlockingPool;
class LogService;
namespace http {
class ServerObserver;
}
namespace tls {
class Server;
}

/// AdminListenerOptions sets the endpoint of the admin pages, their protection and their contents.
struct AdminListenerOptions {
  /// The address to listen on. Port 0 lets the platform choose a port, which the log names; servers
  /// of one program with port 0 of the same address would share it. An address that other machines
  /// reach needs a `token`. A Unix socket needs none. The folder of its path protects it; an
  /// abstract socket is open to all users of the machine, as a loopback address is.
  Endpoint endpoint = Endpoint::loopback(0);
  std::string title = "Weir";  ///< title of the pages, such as the program's name
  /// If not empty, each request needs this token, as `Authorization: Bearer TOKEN` or as the
  /// password of Basic authentication, which browsers ask for. Only the three paths of health
  /// without a query need none. Over plain HTTP at an address that other machines reach, /profile
  /// needs the token as Bearer. A browser would add a stored password to the requests of any page.
  std::string token = {};
  /// More hosts that a request may name, such as "admin.example.org". The listener accepts these,
  /// "localhost" and IP addresses. Other hosts may be DNS rebinding and get 421. A listener on
  /// loopback accepts only IP addresses of loopback. No listener accepts 0.0.0.0, [::] or an
  /// IPv4-mapped address, because browsers do not tell there which page has sent the request.
  std::vector<std::string> hosts = {};
  /// Limit of open connections on all cores together, at least 1. A further connection gets 503;
  /// over TLS it is closed. These connections do not count with those of the program's servers. A
  /// server without a Limits::connections_max leaves their descriptors free, so that the pages can
  /// be reached when the server is full.
  std::size_t connections_max = 64;
  std::shared_ptr<tls::Server> tls = {};       ///< nullptr: plain HTTP
  Duration refresh = std::chrono::seconds(2);  ///< reload interval of the pages; zero: none
  App* app = nullptr;                          ///< app whose services are shown, or nullptr
  /// Services of the app, by the names of their types, that may fail while the app stays ready.
  std::vector<std::string> optional_services = {};
  const EventBus* events = nullptr;  ///< event bus whose rates are shown, or nullptr
  /// Upper bound of the memory of the program's server, which is shown beside the memory in use.
  std::optional<http::MemoryBound> memory_bound = {};
  /// Gets the requests that request_observer() counts, or nullptr; outlives the servers.
  http::ServerObserver* next_observer = nullptr;
  /// Log whose levels are shown and can be changed by POST, or nullptr.
  LogService* logs = nullptr;
  /// Returns the configuration to show, such as config::shown_values(), which hides secrets. Each
  /// page calls it, on any core. Empty: there is no such page.
  std::function<std::vector<config::ShownValue>()> configuration = {};
};

/// An AdminListener serves pages about the running program, each as HTML, as JSON and as text:
///
///     /weir/overview, /weir/cores, /weir/routes, /weir/connections, /weir/clients,
///     /weir/slow_turns, /weir/pools, /weir/memory, /weir/timers, /weir/tasks
///     /weir/services                          for an App
///     /weir/configuration, /weir/log_levels   if the options have them
///     /weir/cores.json, /weir/cores.txt       a page for programs and for terminals
///     /metrics                                see telemetry::mount_metrics()
///     /profile                                see profile::mount_profile()
///     /livez, /readyz, /startupz              see http::Health
///
/// A GET changes nothing. A POST to /weir/log_levels sets a level. A request that a page of another
/// origin has caused gets 403, whatever its method is; so does a link of another site. Pages have
/// no script, and their Content-Security-Policy allows none. A page reads counters and asks each
/// core for one short snapshot. It waits for a core for at most a quarter of a second, and then
/// shows that the core does not answer. Without requests, the listener does nothing.
///
/// A drain of the runtime does not close the listener. It answers until the work of all cores has
/// ended; "/readyz" then says "draining". The listener does not make the drain longer, and closes
/// its connections at the end. If another process has the socket too, the listener closes when the
/// drain begins. Such a process is a service manager, or the newer process of a hot restart. A
/// process that starts without a hot restart during the drain finds the address in use.
///
/// The listener closes the connection of a client that reads less than 16 KiB a second for 5 s. A
/// page has at most 512 KiB, and says how many rows it leaves out.
///
///     AdminListener admin({.endpoint = Endpoint::loopback(9090), .title = "shop"});
///     runtime.run_on_each_core([&](Scope& scope) -> Task<Result<>> {
///       scope.spawn(admin.serve(scope));
///       co_return co_await http::serve(scope, router, {});
///     });
///
/// With an App, serve_admin() takes the place of serve().
/// Threads: serve() on each core; the other functions before it.
/// Lifetime: outlives the run of the runtime. The app, the event bus, the log, the pools and what
/// the routes and checks of the program refer to outlive it too.
class AdminListener {
 public:
  explicit AdminListener(AdminListenerOptions options = {});
  AdminListener(const AdminListener&) = delete;
  AdminListener& operator=(const AdminListener&) = delete;
  ~AdminListener();

  /// Returns the router of this listener, for more admin routes such as metrics. The token and the
  /// other checks protect them too.
  http::Router& router() noexcept;
  /// Returns the health of the program. It includes the services of the app.
  http::Health& health() noexcept;
  /// Returns the observer that counts the requests of each route. A server that has it as its
  /// ServeOptions::observer is on the page "routes".
  http::ServerObserver& request_observer() noexcept;
  /// Shows a pool of the program. The shared pool is always shown.
  /// Lifetime: the pool outlives the run of the runtime.
  void add_pool(std::string name, const BlockingPool& pool);

  /// Checks the options: an endpoint that other machines reach needs a token.
  /// Errors: Errc::bad_configuration; `*why` then has the reason for people, unless it is nullptr.
  Result<> check(std::string* why = nullptr) const;

  /// Returns an upper bound of the memory that the pages and their connections hold on this number
  /// of cores. It does not include the page "services", routes of the program, or a CPU profile
  /// while it is recorded.
  http::MemoryBound memory_bound(unsigned cores) const;

  /// Serves the pages on this core. A program calls it on every core. The task ends when a drain
  /// begins, but the runtime continues to serve the pages until the drain has ended.
  /// Errors: Errc::bad_configuration if check() fails, which is logged; those of http::serve().
  /// Cancel: closes the listener immediately and cancels the connections.
  /// Threads: the loop's.
  Task<Result<>> serve(Scope& scope);

 private:
  friend class AdminServer;
  struct State;
  std::unique_ptr<State> state_;
};

/// Adds the listener to the app, on every core. It answers while other services still start. The
/// start of the app fails if check() fails or if the endpoint cannot be bound.
/// Lifetime: the listener outlives the app's run.
ServiceId serve_admin(App& app, AdminListener& listener);

}  // namespace weir

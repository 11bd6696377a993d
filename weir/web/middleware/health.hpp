// Health and readiness of a service, for load balancers and orchestrators.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// The state of one part of a service, such as a service of an App.
struct HealthPart {
  std::string name;
  bool ready = true;
  std::string reason = {};  ///< why it is not ready, in words
};

/// A Health answers if a service is alive, if it has started, and if it is ready for requests:
///
///     http::Health health;
///     health.add_check("store", [&store] { return store.ping(); });
///     health.add_routes(router);   // GET /livez, GET /readyz and GET /startupz
///
/// "/livez" is 200 as long as the loop of the core answers. "/readyz" is 200 if set_ready(false)
/// was not called, the server does not drain, no check fails, and all parts are ready. Otherwise
/// it is 503 with the reasons: `{"status":"unavailable","failed":["draining"]}`. "/startupz" is
/// 503 until the service has been ready once. All three forbid caching. With `?verbose`, the last
/// two also list every check and every part with its state and its reason.
///
/// A draining server closes its listeners, so only connections that are open see its 503. An
/// AdminListener answers until the drain has ended. The checks are not called in a drain. A service
/// behind a load balancer that needs a warning calls set_ready(false) some seconds before it stops.
/// Threads: set_ready(), is_ready() and the routes on any thread; the rest before the router is
/// served.
/// Lifetime: outlives the servers of the router.
class Health {
 public:
  /// Returns success if a part of the service works. It is called for each request to "/readyz", on
  /// the core of the request, and must not wait. A program that checks a distant service does so
  /// regularly in a task, and returns the last result here.
  using Check = std::function<Result<>()>;
  /// Returns the parts of the service. It is called for each request, on the core of the request.
  using Parts = std::function<Task<std::vector<HealthPart>>()>;

  /// `ready` is false for a service that has to load something first, and calls set_ready() then.
  explicit Health(bool ready = true) noexcept : ready_(ready), started_(ready) {}
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  void add_check(std::string name, Check check);
  /// Sets the function that returns the parts. Until all of them have been ready once, the service
  /// is still starting.
  void set_parts(Parts parts);
  void set_ready(bool ready) noexcept {
    ready_.store(ready, std::memory_order_relaxed);
    if (ready && parts_ == nullptr) started_.store(true, std::memory_order_relaxed);
  }
  bool is_ready() const noexcept { return ready_.load(std::memory_order_relaxed); }

  /// Adds the routes to a Router or a RouteGroup.
  template <class Routes>
  void add_routes(Routes& routes) const {
    routes.get("/livez", [this] { return live(); });
    routes.get("/readyz", [this](const Request& request) { return ready(request); });
    routes.get("/startupz", [this](const Request& request) { return started(request); });
  }

  /// Returns the response of "/livez".
  Response live() const;
  /// Returns the response of "/readyz".
  /// Cancel: passed on to the function of the parts.
  Task<Response> ready(const Request& request) const;
  /// Returns the response of "/startupz".
  /// Cancel: passed on to the function of the parts.
  Task<Response> started(const Request& request) const;

 private:
  Task<std::vector<HealthPart>> states(const Request& request) const;

  std::atomic<bool> ready_;
  mutable std::atomic<bool> started_;  // relaxed: it only becomes true
  std::vector<std::pair<std::string, Check>> checks_;
  Parts parts_;
};

}  // namespace weir::http

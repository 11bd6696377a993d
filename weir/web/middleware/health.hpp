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

namespace weir::http {

/// A Health answers if a service is alive and if it is ready for requests:
///
///     http::Health health;
///     health.add_check("store", [&store] { return store.ping(); });
///     health.add_routes(router);   // GET /livez and GET /readyz
///
/// "/livez" is 200 as long as the loop of the core answers. "/readyz" is 200 if set_ready(false)
/// was not called, the server does not drain, and no check fails; else 503 with the reasons:
/// `{"status":"unavailable","failed":["draining"]}`. Both forbid caching.
///
/// A draining server closes its listeners, so only connections that are open see its 503. A service
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

  /// `ready` is false for a service that has to load something first, and calls set_ready() then.
  explicit Health(bool ready = true) noexcept : ready_(ready) {}
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  void add_check(std::string name, Check check);
  void set_ready(bool ready) noexcept { ready_.store(ready, std::memory_order_relaxed); }
  bool is_ready() const noexcept { return ready_.load(std::memory_order_relaxed); }

  /// Adds the routes to a Router or a RouteGroup.
  template <class Routes>
  void add_routes(Routes& routes) const {
    routes.get("/livez", [this] { return live(); });
    routes.get("/readyz", [this](const Request& request) { return ready(request); });
  }

  /// Returns the response of "/livez", and that of "/readyz".
  Response live() const;
  Response ready(const Request& request) const;

 private:
  std::atomic<bool> ready_;
  std::vector<std::pair<std::string, Check>> checks_;
};

}  // namespace weir::http

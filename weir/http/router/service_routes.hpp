// The routes of one owner: registered by it, on every core, and gone with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/http/matching/detail/handler.hpp"
#include "weir/http/router/live_routes.hpp"
#include "weir/http/matching/detail/pattern.hpp"
#include "weir/http/matching/route.hpp"

namespace weir::http {

/// What a service asks for that answers requests:
///
///   class Greeter {
///    public:
///     Greeter(http::Routes& routes, const Store& store) : store_(store) {
///       routes.get("/hello/{name}", [this](std::string_view name) { return greet(name); });
///     }
///
/// The routes are there when the service has started, and until it stops: before its stop() no new
/// request comes to it, and those under way have ended. Of a service that is per core, each
/// instance registers the same routes, and answers on its core; a core whose instance is not there
/// answers 503 with Retry-After. A shared one answers on every core, so its handlers are called
/// from all of them. For middleware, and routes that belong to nobody, there is the Router.
///
/// See App::mount() for where they are served, and App::replace() for what becomes of them then.
///
/// Routes are registered in the constructor, the factory or start(), not later (asserted). A
/// handler is destroyed on its service's core, after the service. Threads: the service's core.
/// Lifetime: that of the service.
class Routes {
 public:
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  /// As Router::get(). Errors: gathered, the service cannot start then: a PatternFault, two of its
  /// routes for the same, or a route that somebody else has.
  template <class F>
  void get(std::type_identity_t<LivePattern<F>> pattern, F handler, RouteOptions options = {}) {
    add("GET", pattern, std::move(handler), options);
  }
  template <class F>
  void head(std::type_identity_t<LivePattern<F>> pattern, F handler, RouteOptions options = {}) {
    add("HEAD", pattern, std::move(handler), options);
  }
  template <class F>
  void post(std::type_identity_t<LivePattern<F>> pattern, F handler, RouteOptions options = {}) {
    add("POST", pattern, std::move(handler), options);
  }
  template <class F>
  void put(std::type_identity_t<LivePattern<F>> pattern, F handler, RouteOptions options = {}) {
    add("PUT", pattern, std::move(handler), options);
  }
  template <class F>
  void patch(std::type_identity_t<LivePattern<F>> pattern, F handler, RouteOptions options = {}) {
    add("PATCH", pattern, std::move(handler), options);
  }
  template <class F>
  void del(std::type_identity_t<LivePattern<F>> pattern, F handler, RouteOptions options = {}) {
    add("DELETE", pattern, std::move(handler), options);
  }
  template <class F>
  void options(std::type_identity_t<LivePattern<F>> pattern, F handler, RouteOptions options = {}) {
    add("OPTIONS", pattern, std::move(handler), options);
  }
  /// Any method, by its name on the wire.
  template <class F>
  void add(std::string_view method, std::type_identity_t<LivePattern<F>> pattern, F handler,
           RouteOptions options = {}) {
    keep(method, pattern.text(), pattern.get(), Handler::of(std::move(handler)), options);
  }

 protected:
  /// A route, and what is the same for all routes of its method and shape.
  struct Kept {
    std::unique_ptr<Route> route;
    std::string key;
  };
  Routes() = default;
  ~Routes() = default;

  const std::vector<Kept>& kept() const noexcept { return kept_; }
  /// What is wrong with what was registered; empty when all is well.
  const std::string& faults() const noexcept { return faults_; }
  /// From now on none is registered.
  void close() noexcept { closed_ = true; }

 private:
  void keep(std::string_view method, std::string_view text, Result<Pattern> pattern,
            Handler handler, const RouteOptions& options);

  std::vector<Kept> kept_;
  std::string faults_;
  bool closed_ = false;
};

}  // namespace weir::http

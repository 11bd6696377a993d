// The services whose routes, or whose versions of a service, change.
#include "tools/simulate/changing_pages.hpp"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "tools/simulate/page_traffic.hpp"
#include "weir/app/app.hpp"
#include "weir/app/http_server.hpp"
#include "weir/http/router/live_routes.hpp"
#include "weir/http/router/service_routes.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/loop/loop.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::simulate {
namespace {

constexpr int changes = 20;

Task<Result<>> pause(loop::PlatformClock& clock, unsigned milliseconds_max) {
  co_return co_await sleep(std::chrono::milliseconds(clock.random() % milliseconds_max));
}

/// The state of a handler, which its copies share.
class Page {
 public:
  Page(std::string& violation, unsigned page, unsigned version)
      : violation_(violation), text_(page_text(page, version)) {}
  ~Page() {
    if (asked_ != 0) violation_ = "a handler was destroyed before its last request ended";
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  /// Waits, and uses the page after the wait.
  Task<http::Response> show(loop::PlatformClock& clock) {
    ++asked_;
    const auto slept = co_await pause(clock, 40);
    --asked_;
    if (!slept) co_return http::Response(http::Status::service_unavailable);
    co_return http::text(text_);
  }

 private:
  std::string& violation_;
  std::string text_;
  int asked_ = 0;
};

/// Adds, replaces and removes the routes of the pages.
class Routes {
 public:
  Routes(loop::PlatformClock& clock, http::Router& router, ServedPages& served)
      : clock_(clock), routes_(router), served_(served), violation_(served.violation) {
    for (ServedPages::State& each : served_.states) ++each.changes;  // no page exists
  }

  Task<> change_all() {
    for (int change = 0; change < changes; ++change) {
      if (auto slept = co_await pause(clock_, 200); !slept) co_return;
      const auto page = static_cast<unsigned>(clock_.random() % page_count);
      if (clock_.random() % 4 == 0) {
        co_await change_hastily(page);
      } else {
        co_await change_one(page);
      }
    }
  }

 private:
  struct Up {
    http::RouteId id;
    std::weak_ptr<Page> page;
    unsigned version;
  };

  auto handler(std::shared_ptr<Page> page) {
    return [&clock = clock_, page = std::move(page)](http::Request&) { return page->show(clock); };
  }

  Task<> change_hastily(unsigned page) {
    std::ignore = co_await timeout(std::chrono::milliseconds(5), change_one(page));
  }

  Task<> change_one(unsigned page) {
    std::optional<Up>& up = up_[page];
    ServedPages::State& state = served_.states[page];
    ++state.changes;
    if (!up) {
      co_await add(page);
    } else if (clock_.random() % 2 == 0) {
      co_await replace(page);
    } else {
      const Up old = *up;
      const Result<> removed = co_await routes_.remove(old.id);
      if (removed) up.reset();
      look_at(removed, old.page, "removed");
    }
    state.exists = up.has_value();
    if (up) state.version = up->version;
    ++state.changes;
  }
  Task<> add(unsigned page) {
    const unsigned version = ++version_;
    auto made = std::make_shared<Page>(violation_, page, version);
    std::weak_ptr<Page> weak = made;
    auto pattern = http::Pattern::parse(page_path(page));
    auto added = co_await routes_.get(*pattern, handler(std::move(made)));
    if (added) {
      up_[page] = Up{*added, std::move(weak), version};
    } else if (added.error() != Errc::cancelled) {
      violation_ = page_path(page) + ": not added: " + added.error().message();
    }
  }
  Task<> replace(unsigned page) {
    const unsigned version = ++version_;
    auto made = std::make_shared<Page>(violation_, page, version);
    std::weak_ptr<Page> weak = made;
    const Up old = *up_[page];
    const Result<> replaced = co_await routes_.replace(old.id, handler(std::move(made)));
    if (replaced) up_[page] = Up{old.id, std::move(weak), version};
    look_at(replaced, old.page, "replaced");
  }
  void look_at(const Result<>& done, const std::weak_ptr<Page>& old, std::string_view what) {
    if (!done && done.error() != Errc::cancelled) {
      violation_ = "not " + std::string(what) + ": " + done.error().message();
    }
    if (done && !old.expired())
      violation_ = "a handler was " + std::string(what) + " but still exists";
  }

  loop::PlatformClock& clock_;
  http::LiveRoutes routes_;
  ServedPages& served_;
  std::string& violation_;
  std::array<std::optional<Up>, page_count> up_;
  unsigned version_ = 0;
};

/// The service that the pages of an app depend on.
struct Version {
  unsigned number;
};

/// The pages of one core.
class Pages {
 public:
  Pages(const Version& version, http::ServiceRoutes& routes, loop::PlatformClock& clock,
        std::string& violation)
      : version_(version), clock_(clock), violation_(violation) {
    for (unsigned page = 0; page < page_count; ++page) {
      routes.get(http::Pattern::parse(page_path(page)).value(),
                 [this, page](http::Request&) { return show(page); });
    }
  }
  ~Pages() {
    if (asked_ != 0) violation_ = "a service was destroyed before its last request ended";
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

 private:
  Task<http::Response> show(unsigned page) {
    ++asked_;
    const auto slept = co_await pause(clock_, 40);
    --asked_;
    if (!slept) co_return http::Response(http::Status::service_unavailable);
    co_return http::text(page_text(page, version_.number));
  }

  const Version& version_;
  loop::PlatformClock& clock_;
  std::string& violation_;
  int asked_ = 0;
};

/// Replaces the version that the pages depend on, again and again.
class Editor {
 public:
  Editor(App& app, Scope& scope, ServiceId version, ServedPages& served)
      : app_(app), version_(version), served_(served) {
    scope.spawn(edit(scope.loop().platform()));
  }

 private:
  Task<> edit(loop::PlatformClock& clock) {
    for (unsigned number = 2; number < 2 + changes; ++number) {
      if (auto slept = co_await pause(clock, 200); !slept) co_return;
      const ServiceId fresh = app_.shared([number] { return Version{number}; });
      begin_change(number > 2);
      const auto replaced = co_await app_.replace(version_, fresh);
      if (replaced) {
        version_ = fresh;
        end_change(number);
      }
      const bool ends = !replaced && (replaced.error() == Errc::cancelled ||
                                      replaced.error() == Errc::conflict);  // the app is stopping
      if (ends) co_return;
      if (!replaced) served_.violation = "not replaced: " + replaced.error().message();
    }
  }
  /// Marks all pages as changing if their state is known. The pages may still be starting before
  /// the first change.
  void begin_change(bool is_known) {
    if (!is_known) return;
    for (ServedPages::State& each : served_.states) ++each.changes;
  }
  void end_change(unsigned number) {
    for (ServedPages::State& each : served_.states) each = {true, number, each.changes + 1};
  }

  App& app_;
  ServiceId version_;
  ServedPages& served_;
};

/// Runs one core of the service with routes; core 0 also changes them.
Task<Result<>> serve_and_change(Scope& scope, http::Router& router, ServedPages& served) {
  std::optional<Routes> routes;
  if (scope.loop().core() == 0) {
    routes.emplace(scope.loop().platform(), router, served);
    const auto both = [&](Scope& inner) -> Task<Result<>> {
      inner.spawn(routes->change_all());
      const http::ServeOptions options{Endpoint::any(80)};
      co_return co_await http::serve(inner, router, options);
    };
    co_return co_await with_scope(OnFailure::isolate, both);
  }
  const http::ServeOptions options{Endpoint::any(80)};
  co_return co_await http::serve(scope, router, options);
}

}  // namespace

int serve_changing_routes(loop::Platform& host, const RuntimeOptions& options,
                          ServedPages& served) {
  http::Router router;
  return Runtime(host, options)
      .run_on_each_core(serve_and_change, std::ref(router), std::ref(served));
}

int serve_changing_services(loop::Platform& host, const RuntimeOptions& options,
                            ServedPages& served) {
  http::Router router;
  App app;
  const ServiceId version = app.shared([] { return Version{1}; });
  app.per_core([&host, &served](const Version& of, http::ServiceRoutes& routes) {
    return Pages(of, routes, host, served.violation);
  });
  app.on_core(
      0, [version, &served](App& of, Scope& scope) { return Editor(of, scope, version, served); });
  serve_http(app, router, {.endpoint = Endpoint::any(80)});
  Runtime runtime(host, options);
  return app.run(runtime);
}

}  // namespace weir::simulate

#include "weir/admin/listener.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "weir/admin/admin.hpp"
#include "weir/admin/detail/listener_parts.hpp"
#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/server/detail/connection_reserve.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/profile/profile.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/drain.hpp"
#include "weir/task/sync/detail/background_tasks.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/telemetry/metrics/mount_metrics.hpp"
#include "weir/web/protection/cross_origin_protection.hpp"

namespace weir {
namespace {

/// Limits of each admin listener. A peer that does not read its page loses the connection soon,
/// because the page stays in memory until then.
http::Limits limits_of(const AdminListenerOptions& options) {
  http::Limits limits;
  limits.connections_max = std::max<std::size_t>(options.connections_max, 1);
  limits.head.headers_bytes_max = 16 * 1024;
  limits.body_max = 16 * 1024;
  limits.head_timeout = std::chrono::seconds(5);
  limits.first_request_timeout = std::chrono::seconds(5);
  limits.idle_timeout = std::chrono::seconds(15);
  limits.write_rate = {std::chrono::seconds(5), 16 * 1024, std::chrono::seconds(5)};
  // Each stream may hold a page.
  limits.h2.streams_max = 4;
  limits.h2.stream_window = 16 * 1024;
  limits.h2.connection_window = 64 * 1024;
  limits.h2.bodies_max = 64 * 1024;
  return limits;
}

std::string url_of(const Endpoint& bound, bool secure) {
  if (!bound.is_inet()) return bound.to_string() + " (/weir/overview)";
  return (secure ? "https://" : "http://") + bound.to_string() + "/weir/overview";
}

}  // namespace

struct AdminListener::State {
  explicit State(AdminListenerOptions given)
      : options(std::move(given)),
        limits(limits_of(options)),
        reserve(limits.connections_max),
        pages({.title = options.title,
               .refresh = options.refresh,
               .has_services = options.app != nullptr,
               .memory_bound = options.memory_bound,
               .logs = options.logs,
               .configuration = options.configuration}) {}

  AdminListenerOptions options;
  http::Limits limits;
  http::ConnectionReserve reserve;
  admin::RouteObserver observer{options.next_observer};
  http::Router router;
  http::Health health;
  admin::LivePages pages;
};

AdminListener::AdminListener(AdminListenerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {
  const AdminListenerOptions& set = state_->options;
  http::Router& router = state_->router;
  router.use(admin::SecurityHeaders());
  // Any page of the web may name a loopback address, for example as the source of an image.
  router.use(http::cross_origin_protection({.safe_methods = true}));
  router.use(admin::AdminGuard(set));
  state_->health.add_routes(router);
  if (set.app != nullptr) {
    admin::add_services(state_->health, *set.app, set.optional_services);
    mount_admin(
        router, *set.app,
        {.title = set.title, .events = set.events, .refresh = set.refresh, .home = "overview"});
  }
  state_->pages.mount(router);
  const std::uint64_t bound = set.memory_bound ? set.memory_bound->total() : 0;
  std::ignore = telemetry::mount_metrics(router, "/metrics", {.memory_bound = bound});
  profile::mount_profile(router);
}

AdminListener::~AdminListener() = default;

http::Router& AdminListener::router() noexcept {
  return state_->router;
}

http::Health& AdminListener::health() noexcept {
  return state_->health;
}

http::ServerObserver& AdminListener::request_observer() noexcept {
  return state_->observer;
}

void AdminListener::add_pool(std::string name, const BlockingPool& pool) {
  state_->pages.add_pool(std::move(name), pool);
}

Result<> AdminListener::check(std::string* why) const {
  const Endpoint& endpoint = state_->options.endpoint;
  if (!state_->options.token.empty() || admin::is_local(endpoint)) return {};
  if (why != nullptr) {
    *why = "other machines reach the admin pages at " + endpoint.to_string() +
           ": set a token, or use a loopback address or a Unix socket";
  }
  return fail(Errc::bad_configuration);
}

http::MemoryBound AdminListener::memory_bound(unsigned cores) const {
  http::MemoryBoundOptions options;
  options.cores = cores;
  options.handler_bytes = admin::page_work_bytes(cores);
  options.tls = state_->options.tls == nullptr ? nullptr : &state_->options.tls->options();
  return http::memory_bound(state_->limits, options);
}

namespace {

/// The server of one core while it serves. Its task and its owner share it.
struct AdminServing {
  AdminServing(Loop& loop, const http::Router& router, const http::ServeOptions& options,
               http::ConnectionReserve& reserve)
      : server(loop, router, options, &reserve) {}

  http::ServerState server;
  CancelSource* accepting = nullptr;    // nullptr before and after the task
  CancelSource* connections = nullptr;  // also cancels the accepting
  Result<> result;
  ManualResetEvent ended;
};
using AdminServingPtr = std::shared_ptr<AdminServing>;

/// Reports the end of the task of an AdminServing, even if the task throws.
class AdminServingEnd {
 public:
  explicit AdminServingEnd(AdminServing& serving) noexcept : serving_(serving) {}
  ~AdminServingEnd() {
    serving_.accepting = serving_.connections = nullptr;
    serving_.ended.set();
  }
  AdminServingEnd(const AdminServingEnd&) = delete;
  AdminServingEnd& operator=(const AdminServingEnd&) = delete;

 private:
  AdminServing& serving_;
};

/// Serves until the listener is closed and all connections have ended.
Task<> serve_connections(AdminServingPtr serving, tcp::Listener given) {
  tcp::Listener listener = std::move(given);
  const Context own = co_await this_context();
  CancelSource all(own.cancel);
  CancelSource accepting(&all);
  const AdminServingEnd end(*serving);
  serving->connections = &all;
  serving->accepting = &accepting;
  const Context of_accepting{own.loop, &accepting};
  const auto accept = [&](Scope& connections) -> Task<> {
    auto accepted = in_context(
        of_accepting, http::accept_connections(connections, serving->server, std::move(listener)));
    serving->result = co_await std::move(accepted);
  };
  const Context of_all{own.loop, &all};
  auto served = in_context(of_all, with_scope(OnFailure::isolate, accept));
  std::ignore = co_await std::move(served);
}

Task<Result<>> wait_for_drain() {
  co_await inject::DrainAwaiter();
  co_return {};
}

Task<Result<>> wait_for_end(AdminServingPtr serving) {
  co_return co_await serving->ended.wait();
}

/// Closes all connections, and waits until the task has ended.
Task<> abort_connections(AdminServingPtr serving) {
  const Context own = co_await this_context();
  if (serving->connections != nullptr) serving->connections->cancel();
  const Context shield{own.loop, nullptr};
  auto waiting = in_context(shield, wait_for_end(serving));
  std::ignore = co_await std::move(waiting);
}

}  // namespace

/// The server of one core. It serves in a background task of the runtime, which lasts until the end
/// of a drain. A loop without a runtime has no such tasks; the server then ends with the drain.
class AdminServer {
 public:
  AdminServer(Scope& scope, AdminListener& owner)
      : scope_(scope),
        admin_(*owner.state_),
        owner_(owner),
        background_(BackgroundTasks::find(scope.loop())) {}

  /// Listens, and begins to serve. Errors: see AdminListener::serve().
  Task<Result<>> start() {
    std::string why;
    Loop& loop = scope_.loop();
    if (auto checked = owner_.check(&why); !checked) {
      loop.platform().log("weir: " + why);
      co_return checked;
    }
    const http::ServeOptions served{.limits = admin_.limits, .tls = admin_.options.tls};
    serving_ = std::make_shared<AdminServing>(loop, admin_.router, served, admin_.reserve);
    const bool through_drain = background_ != nullptr;
    WEIR_CO_TRY(auto listener, co_await http::open_listener(
                                   serving_->server, admin_.options.endpoint, through_drain));
    if (loop.core() == 0) {
      const bool secure = admin_.options.tls != nullptr;
      loop.platform().log("weir: admin pages at " + url_of(listener.local_address(), secure));
    }
    auto task = serve_connections(serving_, std::move(listener));
    through_drain ? background_->spawn(std::move(task)) : scope_.spawn(std::move(task));
    co_return {};
  }

  /// Waits until the server has ended, or until a drain begins, which the server outlives.
  /// Errors: those of accept_connections(); Errc::closed after a drain.
  Task<Result<>> run() {
    const Context own = co_await this_context();
    if (background_ != nullptr) {
      std::ignore = co_await race(wait_for_end(serving_), wait_for_drain());
      if (own.loop->draining()) co_return fail(Errc::closed);
    } else {
      std::ignore = co_await serving_->ended.wait();
    }
    if (own.cancelled()) co_await abort_connections(serving_);
    co_return serving_->result;
  }

  /// Stops accepting, and waits until all requests are answered. A drain leaves the server to the
  /// background.
  Task<> stop() {
    const bool draining = scope_.loop().draining();
    if (draining && background_ != nullptr) co_return;
    serving_->server.drain();
    if (!draining && serving_->accepting != nullptr) serving_->accepting->cancel();
    const auto ended = co_await serving_->ended.wait();
    if (!ended) co_await abort_connections(serving_);
  }

 private:
  Scope& scope_;
  AdminListener::State& admin_;
  const AdminListener& owner_;
  BackgroundTasks* background_;  // nullptr if the loop has no runtime
  AdminServingPtr serving_;
};

Task<Result<>> AdminListener::serve(Scope& scope) {
  AdminServer server(scope, *this);
  WEIR_CO_TRY(co_await server.start());
  co_return co_await server.run();
}

ServiceId serve_admin(App& app, AdminListener& listener) {
  return app.per_core([&listener](Scope& scope) { return AdminServer(scope, listener); });
}

}  // namespace weir

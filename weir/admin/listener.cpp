#include "weir/admin/listener.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "weir/admin/admin.hpp"
#include "weir/admin/detail/listener_parts.hpp"
#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/profile/profile.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/telemetry/metrics/mount_metrics.hpp"
#include "weir/web/protection/cross_origin_protection.hpp"

namespace weir {
namespace {

/// Descriptors that the admin listener leaves free. A server leaves more, so that a person may look
/// at a server that has as many connections as it may have.
constexpr std::size_t descriptors_reserved = 32;

http::Limits limits_of(Loop& loop) {
  const std::size_t all = loop.platform().descriptor_limit().descriptors_max;
  http::Limits limits;
  limits.connections_max = all > descriptors_reserved ? all - descriptors_reserved : 1;
  limits.body_max = 16 * 1024;
  limits.head_timeout = std::chrono::seconds(5);
  limits.first_request_timeout = std::chrono::seconds(5);
  limits.idle_timeout = std::chrono::seconds(15);
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
        pages({.title = options.title,
               .refresh = options.refresh,
               .has_services = options.app != nullptr,
               .memory_bound = options.memory_bound,
               .logs = options.logs,
               .configuration = options.configuration}) {}

  AdminListenerOptions options;
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
  router.use(admin::AdminGuard(set.token, set.hosts, !set.endpoint.is_inet()));
  router.use(http::cross_origin_protection());
  state_->health.add_routes(router);
  if (set.app != nullptr) {
    admin::add_services(state_->health, *set.app, set.optional_services);
    mount_admin(router, *set.app,
                {.title = set.title, .events = set.events, .refresh = set.refresh});
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

/// The server of one core.
class AdminServer {
 public:
  AdminServer(Scope& scope, AdminListener& owner)
      : scope_(scope), admin_(*owner.state_), owner_(owner) {}

  /// Listens. Errors: see AdminListener::serve().
  Task<Result<>> open() {
    std::string why;
    Loop& loop = scope_.loop();
    if (auto checked = owner_.check(&why); !checked) {
      loop.platform().log("weir: " + why);
      co_return checked;
    }
    server_.emplace(loop, admin_.router, limits_of(loop), admin_.options.tls);
    WEIR_CO_TRY(auto listener, co_await http::open_listener(*server_, admin_.options.endpoint));
    if (loop.core() == 0) {
      const bool secure = admin_.options.tls != nullptr;
      loop.platform().log("weir: admin pages at " + url_of(listener.local_address(), secure));
    }
    listener_.emplace(std::move(listener));
    co_return {};
  }

  /// Serves until the listener is closed and all connections have ended.
  Task<Result<>> run() {
    tcp::Listener listener = std::move(*listener_);
    listener_.reset();
    co_return co_await with_scope(OnFailure::isolate, http::accept_connections, std::ref(*server_),
                                  std::move(listener));
  }

  Task<Result<>> start() {
    WEIR_CO_TRY(co_await open());
    scope_.spawn(serve());
    co_return {};
  }

  /// Stops accepting, and waits until all requests are answered. A draining loop closes the
  /// listener itself.
  Task<> stop() {
    server_->drain();
    if (cancel_ && !scope_.loop().draining()) cancel_->cancel();
    std::ignore = co_await stopped_.wait();
  }

 private:
  Task<> serve() {
    cancel_.emplace(scope_.context().cancel);
    const Context accepting{&scope_.loop(), &*cancel_};
    const auto accept = [this, &accepting](Scope& connections) -> Task<> {
      tcp::Listener listener = std::move(*listener_);
      listener_.reset();
      auto accepted = in_context(
          accepting, http::accept_connections(connections, *server_, std::move(listener)));
      std::ignore = co_await std::move(accepted);
    };
    std::ignore = co_await with_scope(OnFailure::isolate, accept);
    cancel_.reset();
    stopped_.set();
  }

  Scope& scope_;
  AdminListener::State& admin_;
  const AdminListener& owner_;
  std::optional<http::ServerState> server_;
  std::optional<tcp::Listener> listener_;
  std::optional<CancelSource> cancel_;
  ManualResetEvent stopped_;
};

Task<Result<>> AdminListener::serve(Scope& scope) {
  AdminServer server(scope, *this);
  WEIR_CO_TRY(co_await server.open());
  co_return co_await server.run();
}

ServiceId serve_admin(App& app, AdminListener& listener) {
  return app.per_core([&listener](Scope& scope) { return AdminServer(scope, listener); });
}

}  // namespace weir

#include "weir/http/router/detail/service_route_registry.hpp"

#include <cassert>

#include "weir/http/router/detail/route_update.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {
namespace {

/// The handler that the router has for a route with core handlers: the answer on a core without
/// one.
class UnavailableHandler {
 public:
  explicit UnavailableHandler(std::chrono::seconds retry_after)
      : retry_after_(std::to_string(retry_after.count())) {}
  Response operator()() const {
    Response response(Status::service_unavailable);
    response.add_header("Retry-After", retry_after_);
    return response;
  }

 private:
  std::string retry_after_;
};

}  // namespace

void ServiceRouteRegistry::open(Loop& owner_loop, std::span<Loop* const> loops) {
  assert(entries_.empty());
  owner_loop_ = &owner_loop;
  loops_ = loops;
  servers_.clear();
  servers_.resize(loops.size());
}

void ServiceRouteRegistry::close() {
  assert(entries_.empty() && retained_.empty());
  owner_loop_ = nullptr;
  loops_ = {};
}

// ---- Owners -------------------------------------------------------------------------------------

std::shared_ptr<ServiceRouteRegistry::Entry> ServiceRouteRegistry::acquire(const std::string& key,
                                                                           const Route& route) {
  std::shared_ptr<Entry>& entry = entries_[key];
  if (entry == nullptr) {
    auto core_handlers = std::make_shared<CoreHandlers>(loops_, options_.wait_timeout);
    entry = std::make_shared<Entry>(key, route, std::move(core_handlers));
  }
  ++entry->references;
  return entry;
}

std::unique_ptr<Route> ServiceRouteRegistry::make_route(const Entry& entry) const {
  auto route = std::make_unique<Route>(Route{
      entry.method, entry.pattern, Handler::of(UnavailableHandler(options_.retry_after)), {}});
  route->core_handlers = entry.core_handlers;
  return route;
}

Task<Result<>> ServiceRouteRegistry::publish(const Entries* entries, std::string* error_text) {
  // Spawn them together, so that a single new table of the router has all of them.
  const auto all = [this, entries, error_text](Scope& scope) -> Task<> {
    for (const auto& each : *entries) scope.spawn(publish_one(each, error_text));
    co_return;
  };
  co_return co_await with_scope(all);
}

Task<Result<>> ServiceRouteRegistry::publish_one(std::shared_ptr<Entry> entry,
                                                 std::string* error_text) {
  WEIR_CO_TRY(const auto guard, co_await entry->mutex.lock());
  if (entry->id) co_return {};
  RouteUpdate change(router_.updater(), make_route(*entry));
  const Result<RouteId> added = co_await change;
  if (added) {
    entry->id = *added;
    co_return {};
  }
  if (error_text->empty() && added.error() != Errc::cancelled) {
    const bool taken = added.error() == Errc::conflict;
    *error_text = entry->method + " " + entry->pattern.text() + ": " +
                  (taken ? "route already exists" : added.error().message());
  }
  co_return fail(added.error());
}

/// Unpublishes an entry without references, unless it has one again when the mutex is locked.
Task<> ServiceRouteRegistry::unpublish(std::shared_ptr<Entry> entry) {
  const auto guard = co_await entry->mutex.lock();
  assert(guard && "unpublish() is never cancelled");
  if (entry->references != 0) co_return;
  if (entry->id) {
    RouteUpdate change(router_.updater(), *entry->id);
    [[maybe_unused]] const auto removed = co_await change;
    assert(removed && "only the registry removes its routes");
    entry->id.reset();
  }
  const auto known = entries_.find(entry->key);
  if (entry->references == 0 && known != entries_.end() && known->second == entry)
    entries_.erase(known);
}

Task<> ServiceRouteRegistry::release(const Entries* entries) {
  const auto all = [this, entries](Scope& scope) -> Task<> {
    for (const auto& each : *entries) {
      if (--each->references == 0) scope.spawn(unpublish(each));
    }
    co_return;
  };
  const Context here = co_await this_context();
  auto releasing = in_context(Context{here.loop, nullptr}, with_scope(all));
  std::ignore = co_await std::move(releasing);
}

void ServiceRouteRegistry::retain(const Entries* entries) {
  retained_.insert(retained_.end(), entries->begin(), entries->end());
}

void ServiceRouteRegistry::stop_waiting_for_replacement(const Entries* entries, const Loop* loop) {
  for (const auto& each : *entries) each->core_handlers->on(*loop)->stop_waiting_for_replacement();
}

Task<> ServiceRouteRegistry::release_retained() {
  const Entries retained = std::exchange(retained_, {});
  if (retained.empty()) co_return;
  for (Loop* const each : loops_) {
    if (each == owner_loop_) {
      stop_waiting_for_replacement(&retained, each);
    } else {
      co_await on_core(each->core(), &ServiceRouteRegistry::stop_waiting_for_replacement, &retained,
                       each);
    }
  }
  co_await release(&retained);
}

// ---- Servers ------------------------------------------------------------------------------------

Task<> ServiceRouteRegistry::allow_serving() {
  for (Loop* const each : loops_)
    co_await on_core(each->core(), &ServiceRouteRegistry::allow_serving_on, this, each);
}

void ServiceRouteRegistry::on_server_started(const Loop& loop) {
  Servers& servers = servers_[loop.core()];
  ++servers.running;
  servers.none.reset();
}

void ServiceRouteRegistry::on_server_stopped(const Loop& loop) {
  Servers& servers = servers_[loop.core()];
  if (--servers.running == 0) servers.none.set();
}

Task<> ServiceRouteRegistry::wait_until_servers_stopped(const Loop* loop) {
  const Context here = co_await this_context();
  auto ended = as_task(servers_[loop->core()].none.wait());
  auto waiting = in_context(Context{here.loop, nullptr}, std::move(ended));
  std::ignore = co_await std::move(waiting);
}

}  // namespace weir::http

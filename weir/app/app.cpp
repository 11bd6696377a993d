// App: registration, start, stop and introspection.
#include "weir/app/app.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "weir/app/detail/app_impl.hpp"
#include "weir/app/detail/graph/graph.hpp"
#include "weir/app/lifecycle/detail/explain.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/drain.hpp"

namespace weir {

App::App() : impl_(std::make_unique<Impl>()) {}
App::~App() {
  assert(!impl_->lifecycle.is_open() && "destroyed while it runs");
}

ServiceId App::add(inject::RegistrationInput input, Placement placement, unsigned core,
                   const ServiceOptions& options) {
  if (core > std::numeric_limits<std::uint16_t>::max()) {
    throw std::out_of_range("App::on_core(" + std::to_string(core) + "): no such core");
  }
  return impl_->graph.add(std::move(input), placement, static_cast<std::uint16_t>(core), options);
}

ServiceId App::add_fake(const inject::Type& type, inject::RegistrationInput input) {
  assert(!impl_->lifecycle.is_open() && "before the start");
  inject::Graph& graph = impl_->graph;
  std::optional<Placement> placement;
  std::uint16_t core = 0;
  ServiceOptions options;
  for (inject::Index index = 0; index < graph.registration_count(); ++index) {
    const inject::Registration& each = graph.registration(index);
    if (each.descriptor == nullptr || each.root != nullptr) continue;
    const auto provided = each.descriptor->provided;
    if (std::ranges::find(provided, &type, &inject::ProvidedType::type) == provided.end()) continue;
    if (!placement) {
      placement = each.placement;
      core = each.core;
      options = each.effective_options();
    }
    graph.remove(index);
  }
  if (!placement)
    throw std::invalid_argument("App::fake(): no service provides " + std::string(type.name));
  return graph.add(std::move(input), *placement, core, options);
}

void App::mount(http::Router& router, const http::ServiceRouteOptions& options) {
  assert(!impl_->lifecycle.is_open() && "before the start");
  impl_->route_registry.emplace(router, options);
}

http::ServiceRouteRegistry* App::route_registry() const noexcept {
  return impl_->route_registry ? &*impl_->route_registry : nullptr;
}

std::vector<std::string> App::Impl::validation_errors(inject::Missing missing) const {
  return inject::validate(graph, missing, route_registry.has_value());
}

Result<> App::Impl::reject(const std::vector<std::string>& found) const {
  for (const std::string& each : found) platform_log->log("weir: " + each);
  return fail(Errc::bad_configuration);
}

bool App::running() const noexcept {
  return impl_->lifecycle.running();
}

const std::vector<std::string>& App::errors() const noexcept {
  return impl_->errors;
}

Explanation App::explain() const {
  return inject::explain(impl_->graph, impl_->lifecycle);
}

Task<Explanation> App::explain_async() const {
  // acquire: pairs with the release in start() and close().
  const Loop* const app_loop = impl_->app_loop.load(std::memory_order_acquire);
  if (app_loop == nullptr) co_return Explanation();
  co_return co_await weir::on_core(app_loop->core(), &App::explain, this);
}

Task<Result<>> App::start() {
  return impl_->start(*this);
}

Task<> App::stop() {
  return impl_->stop();
}

/// Registers a service for each handler of the mounted router that takes services.
void App::Impl::register_handlers() {
  if (!route_registry) return;
  http::Router& router = route_registry->router();
  const auto& routes = router.unbound_routes();
  for (std::size_t i = handler_services.size(); i < routes.size(); ++i) {
    const auto& added = handler_services.emplace_back(routes[i]);
    graph.add(added.input(), Placement::per_core, 0, {});
  }
  router.set_bound_by_app();
}

Task<Result<>> App::Impl::start(App& app) {
  const Context context = co_await this_context();
  if (lifecycle.is_open()) co_return fail(Errc::conflict);  // also while it stops
  WEIR_CO_TRY(auto change_lock, co_await change_mutex.lock());
  platform_log = &context.loop->platform();
  const auto loops = context.loop->group().loops();
  register_handlers();
  graph.build(loops.size(), context.loop->core());
  errors = validation_errors(inject::Missing::none);
  if (!errors.empty()) co_return reject(errors);
  if (route_registry) route_registry->open(*context.loop, loops);
  changes.emplace(*context.loop);
  lifecycle.open(*context.loop, loops, app, route_registry ? &*route_registry : nullptr);
  app_loop.store(context.loop, std::memory_order_release);
  lifecycle.start_all(true);
  while (!lifecycle.settled()) co_await lifecycle.wait_settled(&inject::Lifecycle::stop_all);
  if (lifecycle.running() && !context.cancelled()) {
    lifecycle.startup_complete();
    if (route_registry) co_await route_registry->allow_serving();
    if (lifecycle.running()) co_return {};
    co_return fail(Errc::cancelled);  // the caller of stop() closes it
  }
  if (lifecycle.running()) lifecycle.stop_all();
  while (!lifecycle.settled()) co_await lifecycle.wait_settled(&inject::Lifecycle::cancel_running);
  const Result<> started = first_failure_since(0);
  errors = std::move(change_errors);
  change_lock.unlock();  // close() waits for the changes that wait for the lock
  co_await close();
  if (started) co_return fail(Errc::cancelled);
  co_return started;
}

Task<> App::Impl::stop() {
  if (!lifecycle.is_open()) co_return;
  lifecycle.stop_all();
  while (!lifecycle.settled()) co_await lifecycle.wait_settled(&inject::Lifecycle::cancel_running);
  co_await close();
}

namespace {
void no_op() {}
}  // namespace

/// Returns when no core runs code of this app any more. Changes that still run see the end first.
Task<> App::Impl::close() {
  const Context context = co_await this_context();
  const Context shield{context.loop, nullptr};
  auto locking = in_context(shield, as_task(close_mutex.lock()));
  const auto close_lock = co_await std::move(locking);
  if (!lifecycle.is_open() || running()) co_return;  // another call has closed it
  app_loop.store(nullptr, std::memory_order_release);
  do {
    auto quiet = in_context(shield, as_task(changes->idle.wait()));
    std::ignore = co_await std::move(quiet);
    for (Loop* const each : context.loop->group().loops()) {
      if (each != context.loop) co_await weir::on_core(each->core(), &no_op);
    }
  } while (changes->running != 0);
  lifecycle.close();
  changes.reset();
  if (route_registry) route_registry->close();
}

/// Reports the failures from index `failures_before` on. Each text includes the path from the
/// failed service to a service that no other requires.
void App::Impl::report_failures(std::size_t failures_before) {
  for (std::size_t i = failures_before; i < lifecycle.failures().size(); ++i) {
    change_errors.push_back(inject::failure_text(graph, lifecycle.failures()[i]));
    platform_log->log("weir: " + change_errors.back());
  }
}

namespace {

Task<Result<>> serve(Scope&, App* app) {
  const Context context = co_await this_context();
  if (context.loop->core() != 0) {
    co_await inject::DrainAwaiter();
    co_return {};
  }
  inject::CancelOnDrain cancel_on_drain(context);
  auto starting = in_context(cancel_on_drain.context(), app->start());
  const Result<> started = co_await std::move(starting);
  if (!started && context.loop->draining()) co_return {};
  if (!started) co_return started;
  co_await inject::DrainAwaiter();
  co_await app->stop();
  co_return {};
}

}  // namespace

int App::run(Runtime& runtime) {
  return runtime.run_on_each_core(serve, this);
}

int App::run(loop::Platform& platform) {
  Runtime runtime(platform, {.announce = false});
  return run(runtime);
}

int App::run(const RuntimeOptions& options) {
  Runtime runtime(options);
  return run(runtime);
}

}  // namespace weir

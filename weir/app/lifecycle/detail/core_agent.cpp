// CoreAgent: makes, starts, stops and destroys the services of one core.
#include "weir/app/lifecycle/detail/core_agent.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <exception>
#include <new>
#include <utility>

#include "weir/app/handles/handles.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/timeout.hpp"

namespace weir::inject {
namespace {

bool is_ordinary(const TypeDescriptor& descriptor) noexcept {
  return descriptor.alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;
}

void* allocate(const TypeDescriptor& descriptor) {
  if (is_ordinary(descriptor)) return BlockPool::allocate(descriptor.size);
  return ::operator new(descriptor.size, std::align_val_t(descriptor.alignment));
}

void release(const TypeDescriptor& descriptor, void* memory) noexcept {
  if (is_ordinary(descriptor)) {
    BlockPool::release(memory);
  } else {
    ::operator delete(memory, std::align_val_t(descriptor.alignment));
  }
}

/// Clears the providers of a service that does not exist.
void clear(Providers& providers) noexcept {
  assert(std::ranges::none_of(providers.counted, [](const auto& each) { return each->in_use(); }) &&
         "service destroyed before its calls ended");
  providers.objects.clear();
  providers.counted.clear();
}

StartError to_start_error(const Result<>& result) {
  if (result) return {};
  return {result.error(), result.error().message()};
}
/// Returns the error of an exception that is being handled.
StartError current_start_error() {
  return {std::make_error_code(std::errc::state_not_recoverable),
          describe({}, std::current_exception())};
}

LazyState& lazy_state_of(const Instance& instance, Index dependency) noexcept {
  const Index parameter = dependency - instance.first_dependency;
  return *static_cast<LazyState*>(instance.dependencies[parameter].argument);
}

/// Ends the request of a Lazy. `complete` is called for each waiter.
template <class Complete>
void complete_request(LazyState& lazy_state, Complete complete) {
  lazy_state.request_pending = false;
  while (LazyAwaiter* const first = lazy_state.waiting.front()) complete(*first);
}

Scope* scope_of(const Instance& instance) noexcept {
  const Dependency* const dependency = find_dependency(instance, DependencyKind::scope);
  return dependency == nullptr ? nullptr : static_cast<Scope*>(dependency->argument);
}

}  // namespace

Dependency* find_dependency(const Instance& instance, DependencyKind kind) noexcept {
  if (!instance.registration->descriptor->has_owned_arguments) return nullptr;
  const auto parameters = instance.registration->descriptor->parameters;
  const auto found = std::ranges::find(parameters, kind, &Parameter::kind);
  if (found == parameters.end()) return nullptr;
  return &instance.dependencies[found - parameters.begin()];
}

http::ServiceRouteSet* routes_of(const Instance& instance) noexcept {
  const Dependency* const dependency = find_dependency(instance, DependencyKind::routes);
  if (dependency == nullptr) return nullptr;
  return static_cast<http::ServiceRouteSet*>(
      static_cast<http::ServiceRoutes*>(dependency->argument));
}

/// The running task of a service: its start, its stop, or the opening of its routes.
class ServiceTask : Continuation {
 public:
  ServiceTask(CoreAgent& core, Instance& instance, Task<AgentEvent> task) noexcept
      : Continuation(service_kind), core_(core), instance_(instance), task_(std::move(task)) {}

  /// Starts the task, which may have ended and destroyed this object when start() returns.
  void start() {
    cancel_.list_in(core_.loop_.roots());
    task_.start(Context{&core_.loop_, &cancel_}, *this);
  }
  void cancel() { cancel_.cancel(); }

 private:
  static std::coroutine_handle<> completed(Continuation& self, std::coroutine_handle<>) {
    auto& service_task = static_cast<ServiceTask&>(self);
    CoreAgent& core = service_task.core_;
    AgentEvent event = service_task.task_.handle().promise().take();
    service_task.instance_.service_task = nullptr;
    BlockPtr<ServiceTask>(&service_task).reset();
    core.report(std::move(event));
    return std::noop_coroutine();
  }
  static constexpr Kind service_kind{&completed, nullptr, "service"};

  CoreAgent& core_;
  Instance& instance_;
  CancelSource cancel_;
  Task<AgentEvent> task_;
};

void CoreAgent::execute(const Command& command) {
  std::visit([this](const auto& each) { run(each); }, command);
}

void CoreAgent::spawn(Instance& instance, Task<AgentEvent> task) {
  auto service_task = make_block<ServiceTask>(*this, instance, std::move(task));
  instance.service_task = service_task.get();
  service_task.release()->start();
}

void CoreAgent::run(const CancelTask& command) {
  if (command.instance->service_task != nullptr) command.instance->service_task->cancel();
}

// --- making and starting -------------------------------------------------------------------------

void CoreAgent::find_arguments(Instance& instance, void** arguments, void* requester_data) {
  const auto parameters = instance.registration->descriptor->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Dependency& dependency = instance.dependencies[i];
    switch (parameters[i].kind) {
      case DependencyKind::required:
      case DependencyKind::optional:
      case DependencyKind::lazy:
      case DependencyKind::remote:
      case DependencyKind::scoped:
        break;
      case DependencyKind::requester:
        arguments[i] = requester_data;  // valid for this call only
        continue;
      case DependencyKind::scope:
        if (dependency.argument == nullptr) {
          dependency.argument =
              make_block<Scope>(Context{&loop_, nullptr}, OnFailure::isolate).release();
        }
        break;
      case DependencyKind::root:
        break;
      case DependencyKind::self:
        dependency.argument = &instance;
        break;
      case DependencyKind::loop:
        dependency.argument = &loop_;
        break;
      case DependencyKind::app:
        dependency.argument = &app_;
        break;
      case DependencyKind::routes:
        if (dependency.argument == nullptr) dependency.argument = make_routes(instance);
        break;
    }
    arguments[i] = dependency.argument;
  }
}

void* CoreAgent::make_routes(const Instance& instance) {
  using Reach = http::ServiceRouteSet::Reach;
  http::ServiceRoutes* const routes =
      make_block<http::ServiceRouteSet>(
          *route_registry_, std::string(instance.registration->descriptor->type->name), loop_,
          instance.used_by_all_cores ? Reach::all_cores : Reach::own_core)
          .release();
  return routes;
}

void CoreAgent::run(const MakeInstance& command) {
  Instance& instance = *command.instance;
  StartError error = make_object(instance);
  if (error && scope_of(instance) != nullptr)
    return spawn(instance, abort_task(&instance, std::move(error)));
  if (error) {
    release_arguments(instance);
    return report(StartFailed{&instance, std::move(error)});
  }
  const bool opens_routes = !instance.is_replacement && routes_of(instance) != nullptr;
  if (instance.registration->descriptor->start != nullptr || opens_routes)
    return spawn(instance, start_task(&instance));
  report(InstanceStarted{&instance});
}

StartError CoreAgent::make_object(Instance& instance) {
  const TypeDescriptor& descriptor = *instance.registration->descriptor;
  std::array<void*, parameters_max> arguments;
  Requester::Data requester_data{};
  if (instance.owner != nullptr) {
    const Registration& owner = *instance.owner->registration;
    requester_data = {owner.descriptor->type, &owner.effective_options().properties, instance.core};
  }
  StartError error;
  try {
    find_arguments(instance, arguments.data(), &requester_data);
    instance.memory = allocate(descriptor);
    error = to_start_error(
        descriptor.make(instance.memory, instance.registration->factory.get(), arguments.data()));
  } catch (...) {
    error = current_start_error();
  }
  if (error && instance.memory != nullptr)
    release(descriptor, std::exchange(instance.memory, nullptr));
  return error;
}

Task<AgentEvent> CoreAgent::start_task(Instance* instance) {
  StartError error;
  if (instance->registration->descriptor->start != nullptr)
    error = co_await start_service(instance);
  if (!error && !instance->is_replacement && routes_of(*instance) != nullptr) {
    error = co_await open_routes(instance, nullptr);
    if (error) co_await stop_service(instance);
  }
  if (!error) co_return InstanceStarted{instance};
  co_await close_scope(instance);
  destroy(*instance);
  co_return StartFailed{instance, std::move(error)};
}

/// Calls the service's start().
Task<StartError> CoreAgent::start_service(Instance* instance) {
  const Registration& registration = *instance->registration;
  try {
    const Result<> started = co_await timeout(registration.effective_options().start_timeout,
                                              registration.descriptor->start(instance->memory));
    co_return to_start_error(started);
  } catch (...) {
    co_return current_start_error();
  }
}

/// Lets the routes of a started instance be served.
Task<StartError> CoreAgent::open_routes(Instance* instance,
                                        const http::ServiceRouteSet* predecessor) {
  http::ServiceRouteSet& routes = *routes_of(*instance);
  const Result<> opened = co_await timeout(
      instance->registration->effective_options().start_timeout, routes.open(predecessor));
  StartError error = to_start_error(opened);
  if (error && !routes.error_text().empty()) error.why = routes.error_text();
  co_return error;
}

Task<AgentEvent> CoreAgent::open_task(Instance* instance,
                                      const http::ServiceRouteSet* predecessor) {
  StartError error = co_await open_routes(instance, predecessor);
  co_return RoutesOpened{instance, std::move(error)};
}

void CoreAgent::run(const OpenRoutes& command) {
  spawn(*command.instance, open_task(command.instance, command.predecessor));
}

void CoreAgent::run(const TakeRoutes& command) {
  routes_of(*command.instance)->hand_over(loop_);
  report(RoutesTaken{});
}

/// Cleans up after an instance that could not be made but may have spawned tasks.
Task<AgentEvent> CoreAgent::abort_task(Instance* instance, StartError error) {
  co_await close_scope(instance);
  release_arguments(*instance);
  co_return StartFailed{instance, std::move(error)};
}

// --- stopping and destroying ---------------------------------------------------------------------

void CoreAgent::run(const StopInstance& command) {
  Instance& instance = *command.instance;
  const bool has_routes = routes_of(instance) != nullptr;
  if (instance.registration->descriptor->stop != nullptr || scope_of(instance) != nullptr ||
      has_routes) {
    const Duration stop_timeout =
        has_routes ? instance.registration->effective_options().stop_timeout : Duration::zero();
    const http::WithdrawOptions how{command.replacement_follows, command.app_stopping,
                                    stop_timeout};
    return spawn(instance, stop_task(&instance, how));
  }
  destroy(instance);
  report(InstanceStopped{&instance});
}

/// Calls the service's stop(), if it has one.
Task<> CoreAgent::stop_service(Instance* instance) {
  const Registration& registration = *instance->registration;
  if (registration.descriptor->stop == nullptr) co_return;
  std::string error;
  try {
    const Result<> stopped = co_await timeout(registration.effective_options().stop_timeout,
                                              registration.descriptor->stop(instance->memory));
    if (!stopped) error = stopped.error().message();
  } catch (...) {
    error = describe({}, std::current_exception());
  }
  if (error.empty()) co_return;
  loop_.platform().log("weir: " + std::string(registration.descriptor->type->name) +
                       ": stop failed: " + error);
}

Task<AgentEvent> CoreAgent::stop_task(Instance* instance, http::WithdrawOptions how) {
  if (http::ServiceRouteSet* const routes = routes_of(*instance)) co_await routes->withdraw(how);
  if (instance->registration->descriptor->stop != nullptr) co_await stop_service(instance);
  co_await close_scope(instance);
  destroy(*instance);
  co_return InstanceStopped{instance};
}

/// Cancels the tasks that the service has spawned, and waits for them, because they use the
/// service.
Task<> CoreAgent::close_scope(Instance* instance) {
  Scope* const scope = scope_of(*instance);
  if (scope == nullptr) co_return;
  scope->cancel();
  co_await scope->children_finished();
}

void CoreAgent::destroy(Instance& instance) noexcept {
  const TypeDescriptor& descriptor = *instance.registration->descriptor;
  descriptor.destroy(instance.memory);
  release(descriptor, std::exchange(instance.memory, nullptr));
  release_arguments(instance);
}

/// Releases the objects that belong to the service's parameters.
void CoreAgent::release_arguments(Instance& instance) noexcept {
  if (Dependency* const dependency = find_dependency(instance, DependencyKind::scope);
      dependency != nullptr) {
    const BlockPtr<Scope> deleted(
        static_cast<Scope*>(std::exchange(dependency->argument, nullptr)));
  }
  if (http::ServiceRouteSet* const routes = routes_of(instance)) {
    const BlockPtr<http::ServiceRouteSet> deleted(routes);
    find_dependency(instance, DependencyKind::routes)->argument = nullptr;
  }
  const auto parameters = instance.registration->descriptor->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!is_dynamic_kind(parameters[i].kind)) continue;
    auto& providers = *static_cast<Providers*>(instance.dependencies[i].argument);
    providers.changed = nullptr;
    clear(providers);
  }
}

// --- Lazy parameters -----------------------------------------------------------------------------

void CoreAgent::run(const ResetLazy& command) {
  LazyState& lazy_state = lazy_state_of(*command.instance, command.dependency);
  lazy_state.request_pending = false;
  lazy_state.object = command.object;
  lazy_state.request = &request_lazy;
  lazy_state.agent = this;
  lazy_state.dependency = command.dependency;
}

void CoreAgent::run(const ResolveLazy& command) {
  LazyState& lazy_state = lazy_state_of(*command.instance, command.dependency);
  lazy_state.object = command.object;
  complete_request(lazy_state, [](LazyAwaiter& each) { each.grant(); });
}

void CoreAgent::run(const FailLazy& command) {
  LazyState& lazy_state = lazy_state_of(*command.instance, command.dependency);
  lazy_state.error = command.error;
  complete_request(lazy_state,
                   [&command](LazyAwaiter& each) { each.complete_with_error(command.error); });
}

void CoreAgent::request_lazy(LazyState& lazy_state) {
  lazy_state.agent->report(LazyRequested{lazy_state.dependency});
}

// --- providers that appear and disappear ---------------------------------------------------------

void CoreAgent::run(const ClearProviders& command) {
  command.providers->loop = &loop_;
  clear(*command.providers);
}

void CoreAgent::run(const AddProvider& command) {
  Providers& providers = *command.providers;
  if (command.counted == nullptr) {
    providers.objects.push_back(command.object);
  } else {
    providers.counted.push_back(
        std::make_unique<CountedProvider>(command.object, *command.counted));
    providers.objects.push_back(providers.counted.back().get());
  }
  call_on_change(*command.instance, providers);
}

void CoreAgent::run(const RemoveProvider& command) {
  const bool removed = remove_provider(command);
  call_on_change(*command.instance, *command.providers);
  if (removed) report(ProviderRemoved{command.dependency});
}

void CoreAgent::call_on_change(const Instance& instance, const Providers& providers) {
  try {
    const auto changed = providers.changed;  // the callback may replace itself
    if (changed) changed();
  } catch (...) {
    loop_.platform().log(
        "weir: " + std::string(instance.registration->descriptor->type->name) +
        ": on_change() callback failed: " + describe({}, std::current_exception()));
  }
}

/// Returns true if the provider was removed; otherwise on_provider_unused() will follow.
bool CoreAgent::remove_provider(const RemoveProvider& command) {
  Providers& providers = *command.providers;
  if (command.counted == nullptr) {
    std::erase(providers.objects, command.object);
    return true;
  }
  const auto at = std::ranges::find(providers.counted, command.counted,
                                    [](const auto& each) { return &each->instance(); });
  if (at == providers.counted.end()) return true;
  std::erase(providers.objects, at->get());
  if (!(*at)->in_use()) {
    providers.counted.erase(at);
    return true;
  }
  (*at)->release_when_unused(loop_, {.callback = &on_provider_unused,
                                     .agent = this,
                                     .dependency = command.dependency,
                                     .providers = &providers});
  return false;
}

void CoreAgent::on_provider_unused(CountedProvider& provider,
                                   const CountedProvider::OnUnused& on_unused) {
  std::erase_if(on_unused.providers->counted,
                [&](const auto& each) { return each.get() == &provider; });
  on_unused.agent->report(ProviderRemoved{on_unused.dependency});
}

}  // namespace weir::inject

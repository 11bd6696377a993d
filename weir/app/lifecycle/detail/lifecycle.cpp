// The lifecycle of service instances: state changes, commands and events.
#include "weir/app/lifecycle/detail/lifecycle.hpp"

#include <cassert>
#include <new>
#include <string_view>
#include <utility>

#include "weir/app/lifecycle/detail/explain.hpp"
#include "weir/loop/detail/named_counters.hpp"
#include "weir/loop/loop.hpp"

namespace weir::inject {
namespace {

/// A longer queue releases its memory when it is empty.
constexpr std::size_t queue_capacity_max = 1024;

constexpr MetricInfo info(std::string_view name, std::string_view unit, std::string_view help) {
  return {.name = name, .unit = unit, .help = help, .label = "service"};
}
constexpr weir::detail::NamedCounters::Row service_rows[]{
    {"instances that run",
     info("weir.service.running", "{instance}", "Instances of services that run."),
     Metric::Kind::gauge},
    {"starts of services", info("weir.service.starts", "{start}", "Starts of services.")},
    {"failures of services",
     info("weir.service.failures", "{failure}", "Failures of services to start.")},
};

/// Counts the states of the services by their types. It is a slot of the app's core.
struct ServiceCounters {
  explicit ServiceCounters(Loop& loop) noexcept : by_type(loop, service_rows) {}
  weir::detail::NamedCounters by_type;

  /// Counts a change of state. Without memory for another type, it is not counted.
  static void count(Loop& loop, std::string_view type, State from, State to) noexcept {
    const auto runs = [](State state) {
      return state == State::running || state == State::opening_routes;
    };
    try {
      auto& counters = loop.slots().get<ServiceCounters>(loop).by_type.of(type);
      if (!runs(from) && runs(to)) counters[0].add();
      if (runs(from) && !runs(to)) counters[0].subtract();
      if (to == State::starting) counters[1].add();
      if (to == State::failed) counters[2].add();
    } catch (const std::bad_alloc&) {
      // It is not counted.
    }
  }
};

}  // namespace

// --- cores ---------------------------------------------------------------------------------------

Lifecycle::RemoteAgent::RemoteAgent(Loop& loop, App& app,
                                    http::ServiceRouteRegistry* route_registry,
                                    Lifecycle& lifecycle)
    : agent(loop, app, route_registry, &RemoteAgent::on_event, this),
      command_queue(loop, &RemoteAgent::receive, this),
      agent_events(*lifecycle.event_queue_) {}

void Lifecycle::RemoteAgent::receive(void* self, std::vector<Command>& commands) {
  auto& remote_agent = *static_cast<RemoteAgent*>(self);
  remote_agent.receiving = true;
  for (const Command& each : commands) remote_agent.agent.execute(each);
  remote_agent.receiving = false;
  remote_agent.agent_events.send(remote_agent.events);
}

void Lifecycle::RemoteAgent::on_event(void* self, AgentEvent event) {
  auto& remote_agent = *static_cast<RemoteAgent*>(self);
  remote_agent.events.push_back(std::move(event));
  if (!remote_agent.receiving) remote_agent.agent_events.send(remote_agent.events);
}

void Lifecycle::open(Loop& app_loop, std::span<Loop* const> loops, App& app,
                     http::ServiceRouteRegistry* route_registry) {
  app_loop_ = &app_loop;
  remote_agents_.clear();
  local_agent_.emplace(app_loop, app, route_registry, &Lifecycle::on_event, this);
  event_queue_.emplace(app_loop, &Lifecycle::receive, this);
  for (Loop* const each : loops) {
    remote_agents_.push_back(
        each == &app_loop ? nullptr
                          : std::make_unique<RemoteAgent>(*each, app, route_registry, *this));
  }
  failures_.clear();
}

void Lifecycle::on_event(void* self, AgentEvent event) {
  auto& lifecycle = *static_cast<Lifecycle*>(self);
  lifecycle.events_.push_back(std::move(event));
  lifecycle.run();
}

void Lifecycle::receive(void* self, std::vector<AgentEvent>& events) {
  auto& lifecycle = *static_cast<Lifecycle*>(self);
  for (AgentEvent& each : events) lifecycle.events_.push_back(std::move(each));
  lifecycle.run();
}

void Lifecycle::send_to(std::size_t core, const Command& command) {
  const auto& remote_agent = remote_agents_[core];
  if (remote_agent == nullptr) {
    local_agent_->execute(command);
  } else {
    remote_agent->commands.push_back(command);
  }
}

// --- all instances -------------------------------------------------------------------------------

void Lifecycle::start_all(bool all_or_nothing) {
  running_ = true;
  all_or_nothing_ = all_or_nothing;
  for (Index index = 0; index < graph_.instance_count(); ++index) {
    if (graph_.instance(index).registration != nullptr) enqueue(graph_.instance(index));
  }
  run();
}

void Lifecycle::stop_all() {
  running_ = false;
  for (Index index = graph_.instance_count(); index-- > 0;) {
    if (graph_.instance(index).registration != nullptr) enqueue(graph_.instance(index));
  }
  run();
}

void Lifecycle::cancel_running() {
  for (Index index = 0; index < graph_.instance_count(); ++index) {
    Instance& instance = graph_.instance(index);
    const bool has_task = !rules_of(instance.state).settled && instance.state != State::draining;
    if (has_task) send(CancelTask{&instance});
  }
  run();
}

void Lifecycle::enqueue_touched() {
  for (const Index each : graph_.take_touched()) {
    if (graph_.instance(each).registration != nullptr)
      enqueue(graph_.instance(each));  // some were removed again
  }
}

void Lifecycle::run() {
  if (busy_) return;
  busy_ = true;
  for (;;) {
    if (!events_.empty()) {
      handled_events_.swap(events_);
      for (AgentEvent& event : handled_events_)
        std::visit([this](auto& each) { handle(each); }, event);
      handled_events_.clear();
    } else if (queue_head_ != queue_.size()) {
      Instance& instance = graph_.instance(queue_[queue_head_++]);
      instance.queued = false;
      update(instance);
    } else {
      break;
    }
  }
  if (queue_.capacity() > queue_capacity_max) queue_ = {};
  queue_.clear();
  queue_head_ = 0;
  for (const auto& remote_agent : remote_agents_) {
    if (remote_agent != nullptr) remote_agent->command_queue.send(remote_agent->commands);
  }
  busy_ = false;
  if (transitions_ != 0) return;
  assert(is_consistent());
  while (auto* const each = settled_awaiters_.pop_front()) each->of.on_settled();
}

bool Lifecycle::is_consistent() const noexcept {
  for (Index index = 0; index < graph_.instance_count(); ++index) {
    const Instance& instance = graph_.instance(index);
    if (instance.registration == nullptr) continue;
    if (!is_legal(instance) || !rules_of(instance.state).settled || instance.queued) return false;
    if (instance.is_available() && !can_keep_running(instance)) return false;
    // A change of the graph enqueues the touched instances later.
    const bool may_start = instance.state == State::waiting && should_run(instance);
    if (may_start && !graph_.has_touched()) return false;
  }
  return true;
}

bool Lifecycle::SettledAwaiter::begin() {
  if (!join()) (lifecycle_.*on_cancel_)();
  if (lifecycle_.settled()) {
    leave();
    return false;
  }
  lifecycle_.settled_awaiters_.push_back(entry_);
  return true;
}

void Lifecycle::SettledAwaiter::cancel(CancelNode& cancel_node) {
  auto& self = static_cast<SettledAwaiter&>(cancel_node);
  (self.lifecycle_.*self.on_cancel_)();
}

void Lifecycle::SettledAwaiter::on_settled() {
  resume_later();
}

// --- one instance --------------------------------------------------------------------------------

bool Lifecycle::should_run(const Instance& instance) const noexcept {
  return running_ && instance.wanted && !instance.is_dormant() &&
         !instance.registration->stopped_manually && instance.missing_providers == 0;
}

void Lifecycle::set_state(Instance& instance, State state) {
  const StateRules& from = rules_of(instance.state);
  const StateRules& to = rules_of(state);
  assert(may_follow(from.state, to.state));
  transitions_ += !to.settled;
  transitions_ -= !from.settled;
  ServiceCounters::count(*app_loop_, instance.registration->descriptor->type->name, instance.state,
                         state);
  instance.state = state;
  assert(is_legal(instance));
  const bool is_part_of_former = state == State::cancelling || (from.available && to.available);
  if (!is_part_of_former) instance.state_since = app_loop_->now();
}

void Lifecycle::clear_failure(Instance& instance) {
  std::erase_if(failures_, [&](const Failure& each) { return each.instance == instance.index; });
  set_state(instance, State::waiting);
}

void Lifecycle::drop_past_failures() {
  std::erase_if(failures_, [this](const Failure& each) {
    const Registration* const registration = graph_.find(each.service);
    const Instance& instance = graph_.instance(each.instance);
    return registration == nullptr || instance.registration != registration ||
           instance.state != State::failed;
  });
}

void Lifecycle::update(Instance& instance) {
  if (instance.has_lazy_requests) answer_own_lazy_requests(instance);
  switch (instance.state) {
    case State::waiting:
      return should_run(instance) ? request_children(instance) : answer_lazy_dependants(instance);
    case State::waiting_for_children:
      if (!should_run(instance)) {
        set_state(instance, State::waiting);
        set_children_wanted(instance, false);
      } else if (instance.missing_children == 0) {
        start(instance);
      } else {
        set_children_wanted(instance, true);  // there may be new children
      }
      return;
    case State::starting:
      if (can_keep_running(instance)) return;
      set_state(instance, State::cancelling);
      return send(CancelTask{&instance});
    case State::running:
      if (!can_keep_running(instance)) begin_stop(instance);
      return;
    case State::draining:
      if (instance.active_dependants == 0) stop(instance);
      return;
    case State::failed:
      if (!instance.wanted) set_state(instance, State::waiting);
      return;
    case State::cancelling:
    case State::opening_routes:
    case State::stopping:
      return;
  }
}

void Lifecycle::request_children(Instance& instance) {
  if (instance.missing_children == 0) return start(instance);
  set_state(instance, State::waiting_for_children);
  set_children_wanted(instance, true);
}

void Lifecycle::set_children_wanted(Instance& instance, bool wanted) {
  for (std::size_t i = 0; i < instance.registration->descriptor->parameters.size(); ++i) {
    if (!instance.dependencies[i].child) continue;
    if (wanted && graph_.is_unresolved(instance.dependencies[i])) continue;
    Instance& child = graph_.instance(instance.dependencies[i].provider);
    if (std::exchange(child.wanted, wanted) != wanted) enqueue(child);
  }
}

void Lifecycle::start(Instance& instance) {
  set_state(instance, State::starting);
  const auto parameters = instance.registration->descriptor->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Dependency& dependency = instance.dependencies[i];
    if (parameters[i].kind == DependencyKind::required) {
      ++graph_.instance(dependency.provider).active_dependants;
      dependency.argument = graph_.object_for(dependency);
    } else if (parameters[i].kind == DependencyKind::lazy) {
      reset_lazy(instance.first_dependency + static_cast<Index>(i));
    } else if (is_dynamic_kind(parameters[i].kind)) {
      DynamicProviders& dynamic = graph_.dynamic_providers_of(dependency);
      send(ClearProviders{&instance, &dynamic});
      for (const Index seen : dynamic.dependencies) {
        const Instance& provider = graph_.instance(graph_.dependency(seen).provider);
        if (provider.is_available()) deliver(graph_.dependency(seen), provider);
      }
    }
  }
  send(MakeInstance{&instance});
}

void Lifecycle::handle(InstanceStarted& event) {
  Instance& instance = *event.instance;
  if (!can_keep_running(instance)) return stop(instance);  // no other service was given it
  set_state(instance, State::running);
  for (Index index = instance.first_dependant; index != no_index;
       index = graph_.dependency(index).next) {
    Dependency& dependency = graph_.dependency(index);
    Instance& dependant = graph_.instance(dependency.instance);
    if (graph_.is_dynamic(dependency)) {
      add_provider(dependency);
    } else if (graph_.is_unresolved(dependency)) {
      answer_lazy(index);
    } else if (--(dependency.child ? dependant.missing_children : dependant.missing_providers) ==
               0) {
      enqueue(dependant);
    }
  }
}

void Lifecycle::begin_stop(Instance& instance) {
  set_state(instance, State::draining);
  if (instance.has_lazy_requests) answer_own_lazy_requests(instance);
  for (Index index = instance.first_dependant; index != no_index;
       index = graph_.dependency(index).next) {
    Dependency& dependency = graph_.dependency(index);
    Instance& dependant = graph_.instance(dependency.instance);
    if (graph_.is_dynamic(dependency)) {
      if (dependency.state == DependencyState::delivered) withdraw(index);
    } else if (!graph_.is_unresolved(dependency)) {
      ++(dependency.child ? dependant.missing_children : dependant.missing_providers);
      enqueue(dependant);
    }
  }
  if (instance.active_dependants == 0) stop(instance);
}

void Lifecycle::stop(Instance& instance) {
  set_state(instance, State::stopping);
  if (instance.has_lazy_requests) answer_own_lazy_requests(instance);
  send(StopInstance{
      .instance = &instance, .replacement_follows = keep_routes_, .app_stopping = !running_});
}

/// Releases the providers of an instance that no longer exists.
void Lifecycle::release_providers(Instance& instance) {
  const auto parameters = instance.registration->descriptor->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Dependency& dependency = instance.dependencies[i];
    if (dependency.state == DependencyState::requested) dependency.state = DependencyState::idle;
    if (parameters[i].kind == DependencyKind::required ||
        dependency.state == DependencyState::resolved) {
      release(graph_.instance(dependency.provider));
    } else if (is_dynamic_kind(parameters[i].kind)) {
      for (const Index each : graph_.dynamic_providers_of(dependency).dependencies) {
        Dependency& seen = graph_.dependency(each);
        if (seen.state == DependencyState::delivered) on_provider_removed(seen);
      }
    }
  }
  instance.has_lazy_requests = false;
}

void Lifecycle::release(Instance& provider) {
  assert(provider.active_dependants != 0);
  if (--provider.active_dependants == 0 && provider.state == State::draining) enqueue(provider);
}

void Lifecycle::handle(InstanceStopped& event) {
  Instance& instance = *event.instance;
  release_providers(instance);
  set_state(instance, State::waiting);
  set_children_wanted(instance, false);
  enqueue(instance);
}

// --- routes --------------------------------------------------------------------------------------

void Lifecycle::open_routes(Instance& instance, const Instance& old) {
  if (routes_of(instance) == nullptr) return;
  set_state(instance, State::opening_routes);
  send(OpenRoutes{&instance, routes_of(old)});
}

void Lifecycle::handle(RoutesOpened& event) {
  Instance& instance = *event.instance;
  set_state(instance, State::running);
  if (event.error) record_failure(instance, event.error, false);
  enqueue(instance);
}

void Lifecycle::take_routes(Instance& instance) {
  http::ServiceRouteSet* const routes = routes_of(instance);
  if (routes == nullptr) return;
  for (Loop* const each : routes->loops()) {
    ++transitions_;
    send_to(each->core(), TakeRoutes{&instance});
  }
}

void Lifecycle::handle(RoutesTaken&) {
  --transitions_;
}

// --- failures ------------------------------------------------------------------------------------

void Lifecycle::record_failure(const Instance& instance, StartError& error,
                               bool seen_by_requester) {
  failures_.push_back({.instance = instance.index,
                       .service = instance.registration->id(instance.registration_index),
                       .name = full_name_of(instance),
                       .error = error.code,
                       .why = std::move(error.why),
                       .seen_by_requester = seen_by_requester});
}

void Lifecycle::handle(StartFailed& event) {
  Instance& instance = *event.instance;
  release_providers(instance);
  set_children_wanted(instance, false);
  if (instance.state == State::cancelling) {
    set_state(instance, State::waiting);
    return enqueue(instance);
  }
  set_state(instance, State::failed);
  record_failure(instance, event.error, is_lazy_only(instance));
  if (instance.use == Use::requested)
    return answer_lazy_dependants(instance);  // the waiters decide what to do
  if (all_or_nothing_ && running_) stop_all();
}

// --- providers that appear and disappear ---------------------------------------------------------

void Lifecycle::add_provider(Dependency& dependency) {
  if (rules_of(graph_.instance(dependency.instance).state).takes)
    deliver(dependency, graph_.instance(dependency.provider));
}

void Lifecycle::deliver(Dependency& dependency, const Instance& provider) {
  if (dependency.state != DependencyState::idle) return;
  Instance& instance = graph_.instance(dependency.instance);
  const Dependency& dependency_of_parameter = instance.dependencies[dependency.parameter];
  dependency.state = DependencyState::delivered;
  ++graph_.instance(provider.index).active_dependants;
  dependency.argument = graph_.object_for(dependency);
  send(AddProvider{.instance = &instance,
                   .providers = &graph_.dynamic_providers_of(dependency_of_parameter),
                   .object = dependency.argument,
                   .counted = graph_.counted_provider_of(dependency)});
}

void Lifecycle::withdraw(Index index) {
  Dependency& dependency = graph_.dependency(index);
  Instance& instance = graph_.instance(dependency.instance);
  const Dependency& dependency_of_parameter = instance.dependencies[dependency.parameter];
  dependency.state = DependencyState::removing;
  send(RemoveProvider{.instance = &instance,
                      .providers = &graph_.dynamic_providers_of(dependency_of_parameter),
                      .object = dependency.argument,
                      .counted = graph_.counted_provider_of(dependency),
                      .dependency = index});
}

void Lifecycle::handle(ProviderRemoved& event) {
  on_provider_removed(graph_.dependency(event.dependency));
}

void Lifecycle::on_provider_removed(Dependency& dependency) {
  dependency.state = DependencyState::idle;
  release(graph_.instance(dependency.provider));
}

}  // namespace weir::inject

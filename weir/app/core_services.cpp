#include "weir/app/core_services.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <exception>
#include <new>
#include <utility>

#include "weir/app/requester.hpp"
#include "weir/base/detail/block_pool.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/timeout.hpp"

namespace weir::wiring {
namespace {

bool is_ordinary(const Plan& plan) noexcept {
  return plan.alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;
}

void* allocate(const Plan& plan) {
  if (is_ordinary(plan)) return BlockPool::allocate(plan.bytes);
  return ::operator new(plan.bytes, std::align_val_t(plan.alignment));
}

void release(const Plan& plan, void* memory) noexcept {
  if (is_ordinary(plan)) {
    BlockPool::release(memory);
  } else {
    ::operator delete(memory, std::align_val_t(plan.alignment));
  }
}

/// Of a service that is not there.
void forget(Providers& providers) noexcept {
  assert(std::ranges::none_of(providers.used, [](const auto& each) { return each->used(); }) &&
         "a service has gone before its calls");
  providers.objects.clear();
  providers.used.clear();
}

Scope* scope_of(const Node& node) noexcept {
  const Edge* const edge = find_edge(node, Need::scope);
  return edge == nullptr ? nullptr : static_cast<Scope*>(edge->argument);
}

}  // namespace

Edge* find_edge(const Node& node, Need need) noexcept {
  if (!node.recipe->plan->has_cells) return nullptr;
  const auto parameters = node.recipe->plan->parameters;
  const auto found = std::ranges::find(parameters, need, &Parameter::need);
  if (found == parameters.end()) return nullptr;
  return &node.edges[found - parameters.begin()];
}

http::OwnedRoutes* routes_of(const Node& node) noexcept {
  const Edge* const edge = find_edge(node, Need::routes);
  if (edge == nullptr) return nullptr;
  return static_cast<http::OwnedRoutes*>(static_cast<http::Routes*>(edge->argument));
}

/// A service's task while it runs.
class Operation : Completion {
 public:
  Operation(CoreServices& core, Node& node, Task<Report> task) noexcept
      : Completion(&completed), core_(core), node_(node), task_(std::move(task)) {}

  /// It may be gone when this returns.
  void start() { task_.start(Context{&core_.loop_, &cancel_}, *this); }
  void cancel() { cancel_.cancel(); }

 private:
  static std::coroutine_handle<> completed(Completion& self, std::coroutine_handle<>) {
    auto& operation = static_cast<Operation&>(self);
    CoreServices& core = operation.core_;
    Report report = operation.task_.handle().promise().take();
    operation.node_.operation = nullptr;
    BlockPtr<Operation>(&operation).reset();
    core.tell_(core.listener_, std::move(report));
    return std::noop_coroutine();
  }

  CoreServices& core_;
  Node& node_;
  CancelSource cancel_;
  Task<Report> task_;
};

void CoreServices::execute(const Order& order) {
  switch (order.kind) {
    case Order::Kind::make:
      return make(*order.node);
    case Order::Kind::stop:
      return stop(order);
    case Order::Kind::cancel:
      if (order.node->operation != nullptr) order.node->operation->cancel();
      return;
    case Order::Kind::clear:
      order.providers->home = &loop_;
      return forget(*order.providers);
    case Order::Kind::add:
    case Order::Kind::remove:
      return change(order);
    case Order::Kind::renew:
    case Order::Kind::give:
    case Order::Kind::refuse:
      return answer(order);
    case Order::Kind::open:
      return run(*order.node,
                 open_task(order.node, static_cast<const http::OwnedRoutes*>(order.object)));
    case Order::Kind::take:
      routes_of(*order.node)->hand_over(loop_);
      return tell_(listener_, Report(Report::Kind::taken, order.node));
  }
}

void CoreServices::run(Node& node, Task<Report> task) {
  auto operation = make_block<Operation>(*this, node, std::move(task));
  node.operation = operation.get();
  operation.release()->start();
}

// --- from nothing to started ---------------------------------------------------------------------

void CoreServices::find_arguments(Node& node, void** arguments, void* asking) {
  const auto parameters = node.recipe->plan->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Edge& edge = node.edges[i];
    switch (parameters[i].need) {
      case Need::required:
      case Need::some:
      case Need::lazy:
      case Need::remote:
      case Need::opened:
        break;
      case Need::requester:
        arguments[i] = asking;  // for this call only
        continue;
      case Need::scope:
        if (edge.argument == nullptr) {
          edge.argument =
              make_block<Scope>(Context{&loop_, nullptr}, OnFailure::supervise).release();
        }
        break;
      case Need::seed:
        break;
      case Need::self:
        edge.argument = &node;
        break;
      case Need::loop:
        edge.argument = &loop_;
        break;
      case Need::app:
        edge.argument = &app_;
        break;
      case Need::routes:
        if (edge.argument == nullptr) edge.argument = make_routes(node);
        break;
    }
    arguments[i] = edge.argument;
  }
}

void* CoreServices::make_routes(const Node& node) {
  using Reach = http::OwnedRoutes::Reach;
  http::Routes* const routes =
      make_block<http::OwnedRoutes>(*board_, std::string(node.recipe->plan->type->name), loop_,
                                    node.roams ? Reach::all_cores : Reach::own_core)
          .release();
  return routes;
}

void CoreServices::make(Node& node) {
  const Plan& plan = *node.recipe->plan;
  Report report(Report::Kind::started, &node);
  std::array<void*, parameters_max> arguments;
  Requester::Asking asking{};
  if (node.owner != nullptr) {
    const Recipe& owner = *node.owner->recipe;
    asking = {owner.plan->type, &owner.said().properties, node.core};
  }
  try {
    find_arguments(node, arguments.data(), &asking);
    node.memory = allocate(plan);
    if (auto made = plan.make(node.memory, node.recipe->factory.get(), arguments.data()); !made) {
      report.error = made.error();
      report.why = made.error().message();
    }
  } catch (...) {
    report.error = std::make_error_code(std::errc::state_not_recoverable);
    report.why = describe({}, std::current_exception());
  }
  if (report.error) {
    report.kind = Report::Kind::failed;
    if (node.memory != nullptr) release(plan, std::exchange(node.memory, nullptr));
    if (scope_of(node) != nullptr) return run(node, give_up_task(&node, std::move(report)));
    clean(node);
  } else if (plan.start != nullptr || (!node.replacing && routes_of(node) != nullptr)) {
    return run(node, start_task(&node));
  }
  tell_(listener_, std::move(report));
}

Task<Report> CoreServices::start_task(Node* node) {
  const Recipe& recipe = *node->recipe;
  Report report(Report::Kind::started, node);
  if (recipe.plan->start != nullptr) {
    try {
      const Result<> started =
          co_await timeout(recipe.said().start_deadline, recipe.plan->start(node->memory));
      if (!started) {
        report.error = started.error();
        report.why = started.error().message();
      }
    } catch (...) {
      report.error = std::make_error_code(std::errc::state_not_recoverable);
      report.why = describe({}, std::current_exception());
    }
  }
  if (!report.error && !node->replacing && routes_of(*node) != nullptr) {
    Report opened = co_await open_task(node, nullptr);
    report.error = opened.error;
    report.why = std::move(opened.why);
    if (report.error) co_await stop_service(node);
  }
  if (!report.error) co_return report;
  report.kind = Report::Kind::failed;
  co_await close_scope(node);
  destroy(*node);
  co_return report;
}

/// Lets its routes be served, once it has started.
Task<Report> CoreServices::open_task(Node* node, const http::OwnedRoutes* beside) {
  http::OwnedRoutes& routes = *routes_of(*node);
  Report report(Report::Kind::opened, node);
  const Result<> opened =
      co_await timeout(node->recipe->said().start_deadline, routes.open(beside));
  if (!opened) {
    report.error = opened.error();
    report.why = routes.problem().empty() ? opened.error().message() : routes.problem();
  }
  co_return report;
}

/// What could not be made, but may have spawned.
Task<Report> CoreServices::give_up_task(Node* node, Report report) {
  co_await close_scope(node);
  clean(*node);
  co_return report;
}

// --- and back ------------------------------------------------------------------------------------

void CoreServices::stop(const Order& order) {
  Node& node = *order.node;
  const bool has_routes = routes_of(node) != nullptr;
  if (node.recipe->plan->stop != nullptr || scope_of(node) != nullptr || has_routes) {
    const Duration patience = has_routes ? node.recipe->said().stop_deadline : Duration::zero();
    const http::Leaving how{order.expecting, order.ending, patience};
    return run(node, stop_task(&node, how));
  }
  destroy(node);
  tell_(listener_, Report(Report::Kind::stopped, &node));
}

/// Its own stop(), if it has one.
Task<> CoreServices::stop_service(Node* node) {
  const Recipe& recipe = *node->recipe;
  if (recipe.plan->stop == nullptr) co_return;
  std::string trouble;
  try {
    const Result<> stopped =
        co_await timeout(recipe.said().stop_deadline, recipe.plan->stop(node->memory));
    if (!stopped) trouble = stopped.error().message();
  } catch (...) {
    trouble = describe({}, std::current_exception());
  }
  if (trouble.empty()) co_return;
  loop_.host().log("weir: stopping " + std::string(recipe.plan->type->name) + ": " + trouble);
}

Task<Report> CoreServices::stop_task(Node* node, http::Leaving how) {
  if (http::OwnedRoutes* const routes = routes_of(*node)) co_await routes->leave(how);
  if (node->recipe->plan->stop != nullptr) co_await stop_service(node);
  co_await close_scope(node);
  destroy(*node);
  co_return Report(Report::Kind::stopped, node);
}

/// Ends what the service has spawned, and waits for it: it uses the service.
Task<> CoreServices::close_scope(Node* node) {
  Scope* const scope = scope_of(*node);
  if (scope == nullptr) co_return;
  scope->cancel();
  co_await scope->children_finished();
}

void CoreServices::destroy(Node& node) noexcept {
  const Plan& plan = *node.recipe->plan;
  plan.destroy(node.memory);
  release(plan, std::exchange(node.memory, nullptr));
  clean(node);
}

/// What the parameters hold for the service.
void CoreServices::clean(Node& node) noexcept {
  if (Edge* const edge = find_edge(node, Need::scope); edge != nullptr) {
    const BlockPtr<Scope> ends_here(static_cast<Scope*>(std::exchange(edge->argument, nullptr)));
  }
  if (http::OwnedRoutes* const routes = routes_of(node)) {
    const BlockPtr<http::OwnedRoutes> ends_here(routes);
    find_edge(node, Need::routes)->argument = nullptr;
  }
  const auto parameters = node.recipe->plan->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!is_for_any(parameters[i].need)) continue;
    auto& providers = *static_cast<Providers*>(node.edges[i].argument);
    providers.changed = nullptr;
    forget(providers);
  }
}

// --- what is asked for when it is used -----------------------------------------------------------

void CoreServices::answer(const Order& order) {
  const Index parameter = order.edge - order.node->first_edge;
  Deferred& deferred = *static_cast<Deferred*>(order.node->edges[parameter].argument);
  deferred.asking = false;
  if (order.kind == Order::Kind::renew) {
    deferred.ask = &ask;
    deferred.services = this;
    deferred.node = order.node;
    deferred.edge = order.edge;
  }
  if (order.kind != Order::Kind::refuse) deferred.object = order.object;
  while (DeferredWait* const first = deferred.waiting.front()) {
    if (order.kind == Order::Kind::refuse) {
      first->refuse(deferred.refusal);
    } else {
      first->grant();
    }
  }
}

void CoreServices::ask(Deferred& deferred) {
  Report report(Report::Kind::asked, deferred.node);
  report.edge = deferred.edge;
  CoreServices& services = *deferred.services;
  services.tell_(services.listener_, std::move(report));
}

// --- who comes and goes --------------------------------------------------------------------------

void CoreServices::change(const Order& order) {
  Providers& providers = *order.providers;
  bool out = true;
  if (order.kind == Order::Kind::remove) {
    out = take_out(order);
  } else if (order.provider == nullptr) {
    providers.objects.push_back(order.object);
  } else {
    providers.used.push_back(std::make_unique<UsedProvider>(order.object, *order.provider));
    providers.objects.push_back(providers.used.back().get());
  }
  try {
    const auto changed = providers.changed;  // it may replace itself
    if (changed) changed();
  } catch (...) {
    loop_.host().log("weir: " + std::string(order.node->recipe->plan->type->name) +
                     ": what it does on a change threw: " + describe({}, std::current_exception()));
  }
  if (order.kind == Order::Kind::add || !out) return;
  Report report(Report::Kind::removed, order.node);
  report.edge = order.edge;
  tell_(listener_, std::move(report));
}

/// Whether that is all; else gone() comes later.
bool CoreServices::take_out(const Order& order) {
  Providers& providers = *order.providers;
  if (order.provider == nullptr) {
    std::erase(providers.objects, order.object);
    return true;
  }
  const auto at = std::ranges::find(providers.used, order.provider,
                                    [](const auto& each) { return &each->node(); });
  if (at == providers.used.end()) return true;
  std::erase(providers.objects, at->get());
  if (!(*at)->used()) {
    providers.used.erase(at);
    return true;
  }
  (*at)->let_go(loop_, {.unused = &gone,
                        .services = this,
                        .user = order.node,
                        .edge = order.edge,
                        .among = &providers});
  return false;
}

void CoreServices::gone(UsedProvider& provider, const UsedProvider::Farewell& farewell) {
  std::erase_if(farewell.among->used, [&](const auto& each) { return each.get() == &provider; });
  Report report(Report::Kind::removed, farewell.user);
  report.edge = farewell.edge;
  farewell.services->tell_(farewell.services->listener_, std::move(report));
}

}  // namespace weir::wiring

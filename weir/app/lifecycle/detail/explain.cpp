// Builds explanations of a running graph, and texts of failures.
#include "weir/app/lifecycle/detail/explain.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace weir::inject {
namespace {

std::string name_of(const Instance& instance) {
  return std::string(instance.registration->descriptor->type->name);
}

ServiceState state_of(const Instance& instance) {
  switch (instance.state) {
    case State::waiting:
    case State::waiting_for_children:
      return ServiceState::waiting;
    case State::starting:
    case State::cancelling:
      return ServiceState::starting;
    case State::running:
    case State::opening_routes:
      return ServiceState::running;
    case State::draining:
    case State::stopping:
      return ServiceState::stopping;
    case State::failed:
      return ServiceState::failed;
  }
  std::unreachable();
}

/// Returns the reasons, in words, why an instance waits.
std::vector<std::string> wait_reasons(const Graph& graph, const Lifecycle& lifecycle,
                                      const Instance& instance) {
  std::vector<std::string> waits;
  if (!lifecycle.running()) waits.emplace_back("the app's start");
  if (instance.registration->stopped_manually) waits.emplace_back("App::start(id)");
  if (!instance.wanted && instance.owner != nullptr) {
    waits.emplace_back("a request by " + full_name_of(*instance.owner));
  } else if (!instance.wanted) {
    waits.emplace_back("the end of a replacement");  // of which it is not a part, or no longer
  }
  if (instance.wanted && instance.is_dormant())
    waits.emplace_back("a request through inject::Lazy");
  const auto parameters = instance.registration->descriptor->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!is_single_kind(parameters[i].kind) || graph.is_unresolved(instance.dependencies[i]))
      continue;
    const Index provider = instance.dependencies[i].provider;
    if (provider == no_index) {
      waits.push_back(std::string(graph.key_of(instance, i).type->name) +
                      ", which no service provides");
    } else if (!graph.instance(provider).is_available()) {
      waits.push_back(full_name_of(graph.instance(provider)));
    }
  }
  return waits;
}

class ExplanationBuilder {
 public:
  ExplanationBuilder(const Graph& graph, const Lifecycle& lifecycle)
      : graph_(graph), lifecycle_(lifecycle), positions_(graph.instance_count(), no_index) {
    for (Index index = 0; index < graph.instance_count(); ++index) {
      if (graph.instance(index).registration != nullptr) order_.push_back(index);
    }
    // Later services reuse the indices of removed services.
    std::ranges::sort(order_, {}, [&graph](Index each) {
      const Instance& instance = graph.instance(each);
      return std::tuple(instance.owner != nullptr, instance.registration->serial, instance.core,
                        each);
    });
    for (std::size_t i = 0; i < order_.size(); ++i) positions_[order_[i]] = static_cast<Index>(i);
  }

  Explanation all() const {
    Explanation explanation;
    for (const Index each : order_) explanation.services.push_back(report(graph_.instance(each)));
    for (const Lifecycle::Failure& each : lifecycle_.failures()) {
      if (each.instance >= positions_.size() || positions_[each.instance] == no_index) continue;
      ServiceReport& failed = explanation.services[positions_[each.instance]];
      if (failed.state == ServiceState::failed) failed.failure = each.why;
    }
    return explanation;
  }

 private:
  ServiceReport report(const Instance& instance) const {
    ServiceReport report;
    report.name = name_of(instance);
    report.id = instance.registration->id(instance.registration_index);
    report.placement = instance.registration->placement;
    report.core = instance.core;
    report.state = state_of(instance);
    if (lifecycle_.is_open() && instance.state_since != Instant{}) {
      report.state_duration = lifecycle_.app_loop().platform().now() - instance.state_since;
    }
    const auto parameters = instance.registration->descriptor->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Dependency& dependency = instance.dependencies[i];
      if (is_single_kind(parameters[i].kind) && dependency.provider != no_index) {
        (graph_.is_unresolved(dependency) ? report.may_use : report.uses)
            .push_back(positions_[dependency.provider]);
      }
      if (!is_dynamic_kind(parameters[i].kind)) continue;
      for (const Index seen : graph_.dynamic_providers_of(dependency).dependencies) {
        report.may_use.push_back(positions_[graph_.dependency(seen).provider]);
      }
    }
    if (report.state == ServiceState::waiting)
      report.waits_for = wait_reasons(graph_, lifecycle_, instance);
    if (instance.state == State::draining) report.waits_for = active_dependants_of(instance);
    return report;
  }

  std::vector<std::string> active_dependants_of(const Instance& instance) const {
    std::vector<std::string> users;
    for (Index each = instance.first_dependant; each != no_index;
         each = graph_.dependency(each).next) {
      const Instance& user = graph_.instance(graph_.dependency(each).instance);
      if (rules_of(user.state).exists) users.push_back(full_name_of(user));
    }
    return users;
  }

  const Graph& graph_;
  const Lifecycle& lifecycle_;
  std::vector<Index> order_;      // instances in the order of the explanation
  std::vector<Index> positions_;  // position of each instance in the explanation
};

}  // namespace

std::string full_name_of(const Instance& instance) {
  std::string name = name_of(instance);
  if (!instance.used_by_all_cores) name += " on core " + std::to_string(instance.core);
  return name;
}

Explanation explain(const Graph& graph, const Lifecycle& lifecycle) {
  return ExplanationBuilder(graph, lifecycle).all();
}

std::string waiting_text(const Graph& graph, const Lifecycle& lifecycle, const Instance& instance) {
  std::string text = full_name_of(instance);
  std::string_view before = " waits for ";
  for (const std::string& reason : wait_reasons(graph, lifecycle, instance)) {
    text.append(std::exchange(before, "; ")).append(reason);
  }
  return text;
}

std::string failure_text(const Graph& graph, const Lifecycle::Failure& failure) {
  std::string text = failure.name + " could not start: " + failure.why;
  const Instance* instance = &graph.instance(failure.instance);
  const Registration* const registration = instance->registration;
  if (registration == nullptr || registration->id(instance->registration_index) != failure.service)
    return text;
  constexpr int steps_max = 32;
  for (int steps = 0; steps < steps_max && instance->first_dependant != no_index; ++steps) {
    const Dependency& dependency = graph.dependency(instance->first_dependant);
    instance = &graph.instance(dependency.instance);
    const bool some = graph.is_dynamic(dependency);
    text += (some ? "; used by " : "; required by ") + full_name_of(*instance);
    if (some) break;
  }
  return text;
}

}  // namespace weir::inject

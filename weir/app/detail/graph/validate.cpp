// Validation of the service graph before anything starts.
#include "weir/app/detail/graph/graph.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace weir::inject {
namespace {

std::string name_of(const Registration& registration) {
  return std::string(registration.descriptor->type->name);
}

std::string placement_text(const Registration& registration) {
  switch (registration.placement) {
    case Placement::shared:
      return "shared";
    case Placement::per_core:
      return "per core";
    case Placement::on_core:
      return "on core " + std::to_string(registration.core);
  }
  std::unreachable();
}

class Validator {
 public:
  Validator(const Graph& graph, Missing missing, bool has_router)
      : graph_(graph), allowed_(missing), has_router_(has_router) {}

  std::vector<std::string> run() {
    for (Index index = 0; index < graph_.registration_count(); ++index)
      check(graph_.registration(index));
    for (Index index = 0; index < graph_.instance_count(); ++index) {
      const Instance& instance = graph_.instance(index);
      if (instance.registration != nullptr && remains(instance)) check(instance);
    }
    find_cycles();
    return std::move(errors_);
  }

 private:
  /// An instance on the current path, and its next parameter.
  struct Step {
    Index instance;
    std::size_t parameter;
  };

  void report(std::string error) {
    if (reported_.insert(error).second) errors_.push_back(std::move(error));
  }

  /// Returns false for the instances of a service that is being replaced, and for instances that
  /// are made for these.
  static bool remains(const Instance& instance) {
    for (const Instance* each = &instance; each != nullptr; each = each->owner) {
      if (!each->registration->active) return false;
    }
    return true;
  }

  void check(const Registration& registration) {
    if (registration.descriptor == nullptr || !registration.active) return;
    const auto parameters = registration.descriptor->parameters;
    if (std::ranges::find(parameters, DependencyKind::routes, &Parameter::kind) !=
        parameters.end()) {
      check_routes(registration);
    }
    if (registration.placement != Placement::on_core) return;
    if (registration.core < graph_.cores()) return;
    report(name_of(registration) + " is registered " + placement_text(registration) +
           ", but the number of cores is " + std::to_string(graph_.cores()));
  }

  void check_routes(const Registration& registration) {
    const std::string asks = name_of(registration) + " takes http::ServiceRoutes, but ";
    if (!has_router_) report(asks + "no router is mounted (call App::mount())");
    if (registration.per_requester) {
      report(asks +
             "each requiring service gets its own instance (let those services register routes)");
    } else if (registration.placement == Placement::on_core) {
      report(asks + "it exists only " + placement_text(registration) +
             ", and all cores serve routes (register it as shared)");
    }
  }

  void check(const Instance& instance) {
    const auto parameters = instance.registration->descriptor->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (is_single_kind(parameters[i].kind)) check_single(instance, i);
      if (parameters[i].kind == DependencyKind::optional && parameters[i].writable)
        check_optional(instance, i);
      if (parameters[i].kind == DependencyKind::remote) check_remote(instance, i);
    }
  }

  void check_single(const Instance& instance, std::size_t index) {
    const Parameter& parameter = instance.registration->descriptor->parameters[index];
    const Graph::DependencyKey& key = graph_.key_of(instance, index);
    const Graph::Selection selection = graph_.select(key, instance, parameter.kind);
    const std::string needs =
        name_of(*instance.registration) + " requires " + std::string(key.type->name);
    if (selection.alternative != no_index) {
      report(needs + ", but there are several: " + candidates_of(key, instance, parameter.kind) +
             " (select one with a filter)");
    } else if (selection.registration == no_index && may_wait(key)) {
      return;
    } else if (selection.registration == no_index && !key.registrations.empty()) {
      const Registration& other = graph_.registration(key.registrations.front());
      if (other.root != nullptr) {
        report(needs + ", which is created for each " + std::string(other.root->name) +
               " (open scopes with inject::Scoped<" + std::string(other.root->name) + ">)");
      } else {
        report(
            needs + ", which is " + placement_text(other) + ", but " +
            name_of(*instance.registration) + " is itself " +
            (instance.used_by_all_cores ? "shared" : "on core " + std::to_string(instance.core)));
      }
    } else if (selection.registration == no_index) {
      report(needs + (key.filter == nullptr
                          ? ", but no service provides it" + advice_for(instance, parameter)
                          : ", but its filter accepts no service that provides it"));
    } else if (graph_.registration(selection.registration).per_requester &&
               graph_.is_owned_by(instance, selection.registration)) {
      report("endless chain of instances per requester: " + name_of(*instance.registration) +
             " requires itself");
    } else if (parameter.writable &&
               !can_write(graph_.registration(selection.registration), instance)) {
      report(needs + " as writable, but that service is shared (take it as const)");
    }
  }

  /// Returns what the program may write to provide the type of the parameter.
  static std::string advice_for(const Instance& instance, const Parameter& parameter) {
    const std::string type(parameter.type->name);
    std::string advice = " (register one: app.per_core<" + type + ">()";
    if (!parameter.writable) advice += " or app.shared<" + type + ">()";
    return advice + std::string(instance.registration->descriptor->advice) + ")";
  }

  /// Returns true if it is no error that no service with the key is visible.
  bool may_wait(const Graph::DependencyKey& key) const noexcept {
    return allowed_ == Missing::all ||
           (allowed_ == Missing::unregistered && key.registrations.empty());
  }

  bool can_write(const Registration& provider, const Instance& instance) const {
    return provider.per_requester ? !instance.used_by_all_cores
                                  : provider.placement != Placement::shared;
  }

  void check_optional(const Instance& instance, std::size_t index) {
    const Graph::DependencyKey& key = graph_.key_of(instance, index);
    for (const Index each : key.registrations) {
      if (graph_.registration(each).placement != Placement::shared) continue;
      report(name_of(*instance.registration) + " takes " + std::string(key.type->name) +
             " as writable, but " + name_of(graph_.registration(each)) +
             " is shared (take it as const)");
    }
  }

  void check_remote(const Instance& instance, std::size_t index) {
    const Graph::DependencyKey& key = graph_.key_of(instance, index);
    const Graph::Selection selection = graph_.select(key, instance, DependencyKind::remote);
    const std::string calls =
        name_of(*instance.registration) + " takes " + std::string(key.type->name) + " as Remote";
    if (selection.alternative != no_index) {
      report(calls + ", but there are several: " +
             candidates_of(key, instance, DependencyKind::remote) + " (select one with a filter)");
    } else if (selection.registration == no_index && may_wait(key)) {
      return;
    } else if (selection.registration == no_index && !key.registrations.empty()) {
      const Registration& other = graph_.registration(key.registrations.front());
      report(calls + ", but that service is " +
             (other.per_requester ? "created per requester" : placement_text(other)));
    } else if (selection.registration == no_index) {
      report(calls + (key.filter == nullptr
                          ? ", but no service provides it"
                          : ", but its filter accepts no service that provides it"));
    }
  }

  std::string candidates_of(const Graph::DependencyKey& key, const Instance& instance,
                            DependencyKind kind) const {
    constexpr std::size_t shown_max = 8;
    std::string names;
    std::size_t shown = 0;
    for (const Index each : key.registrations) {
      if (!graph_.is_visible(graph_.registration(each), instance, kind)) continue;
      if (++shown > shown_max) return names + ", ...";
      names += (names.empty() ? "" : ", ") + name_of(graph_.registration(each));
    }
    return names;
  }

  /// Returns the provider of a single dependency. If it has none, or one that is being replaced or
  /// removed, this is the provider that it will get.
  Index provider_of(const Instance& instance, std::size_t index) const {
    const Index provider = instance.dependencies[index].provider;
    const DependencyKind kind = instance.registration->descriptor->parameters[index].kind;
    if (!is_single_kind(kind) || !remains(instance)) return provider;
    if (provider != no_index && remains(graph_.instance(provider))) return provider;
    const Graph::Selection selection =
        graph_.select(graph_.key_of(instance, index), instance, kind);
    if (selection.registration == no_index || selection.alternative != no_index) return no_index;
    const Registration& registration = graph_.registration(selection.registration);
    return registration.per_requester ? no_index : graph_.slot_of(registration, instance);
  }

  /// Searches along single dependencies, without recursion, because chains may be long.
  void find_cycles() {
    enum : std::uint8_t { unvisited, in_progress, done };
    std::vector<std::uint8_t> marks(graph_.instance_count(), unvisited);
    std::vector<Step> path;
    for (Index root = 0; root < graph_.instance_count(); ++root) {
      if (graph_.instance(root).registration == nullptr || marks[root] != unvisited) continue;
      marks[root] = in_progress;
      path.push_back({root, 0});
      while (!path.empty()) {
        Step& step = path.back();
        const Instance& instance = graph_.instance(step.instance);
        if (step.parameter == instance.registration->descriptor->parameters.size()) {
          marks[step.instance] = done;
          path.pop_back();
          continue;
        }
        const std::size_t parameter = step.parameter++;
        const Index next = provider_of(instance, parameter);
        if (next == no_index || marks[next] == done) continue;
        if (marks[next] == in_progress) {
          report_cycle(path, next);
        } else {
          marks[next] = in_progress;
          path.push_back({next, 0});
        }
      }
    }
  }

  void report_cycle(const std::vector<Step>& path, Index first) {
    std::string names;
    auto at = std::ranges::find(path, first, &Step::instance);
    for (; at != path.end(); ++at)
      names += name_of(*graph_.instance(at->instance).registration) + " -> ";
    report("dependency cycle: " + names + name_of(*graph_.instance(first).registration));
  }

  const Graph& graph_;
  Missing allowed_;
  bool has_router_;
  std::vector<std::string> errors_;
  std::unordered_set<std::string> reported_;
};

}  // namespace

std::vector<std::string> validate(const Graph& graph, Missing missing, bool has_router) {
  return Validator(graph, missing, has_router).run();
}

}  // namespace weir::inject

// Replaces a running service by new instances that start beside the old ones.
#include "weir/app/lifecycle/detail/replacement.hpp"

#include <algorithm>
#include <cassert>

namespace weir::inject {

bool Replacement::is_possible() {
  const Registration& old = graph_.registration(old_);
  const Registration& fresh = graph_.registration(fresh_);
  if (!old.active || old.stopped_manually) return false;
  if (old.per_requester || fresh.per_requester) return false;
  if (old.placement != fresh.placement || old.core != fresh.core || old.root != fresh.root)
    return false;
  for (const Index each : graph_.slots(old)) {
    const Instance& instance = graph_.instance(each);
    if (!instance.is_available()) return false;
    for (Index at = instance.first_dependant; at != no_index; at = graph_.dependency(at).next) {
      const Dependency& dependency = graph_.dependency(at);
      if (!graph_.is_dynamic(dependency) && !graph_.can_provide(dependency, fresh)) return false;
    }
  }
  return true;
}

void Replacement::create_instances() {
  const std::size_t instances_before = graph_.instance_count();
  find_dependants();
  replacements_.assign(instances_before, no_index);
  graph_.create_unoffered(fresh_);
  const auto old_slots = graph_.slots(graph_.registration(old_));
  const auto fresh_slots = graph_.slots(graph_.registration(fresh_));
  for (std::size_t i = 0; i < old_slots.size(); ++i) {
    pairs_.push_back({old_slots[i], fresh_slots[i]});
  }
  for (const Index each : dependants_) pairs_.push_back({each, graph_.clone_instance(each)});
  for (const Pair& each : pairs_) {
    replacements_[each.old] = each.replacement;
    graph_.instance(each.replacement).is_replacement = true;  // it is never dormant
  }
  graph_.bind_new();
  touched_ = graph_.take_touched();
  for (const Index each : touched_) redirect(each);
}

void Replacement::start() {
  for (const Index each : touched_) lifecycle_.enqueue(graph_.instance(each));
  lifecycle_.run();
}

/// Finds the running dependants. An instance that is made for one of them alone is left out: the
/// replacement gets its own.
void Replacement::find_dependants() {
  std::vector<bool> known(graph_.instance_count());
  std::vector<Index> way;
  for (const Index each : graph_.slots(graph_.registration(old_))) way.push_back(each);
  while (!way.empty()) {
    const Instance& instance = graph_.instance(way.back());
    way.pop_back();
    for (Index at = instance.first_dependant; at != no_index; at = graph_.dependency(at).next) {
      const Dependency& dependency = graph_.dependency(at);
      const Instance& dependant = graph_.instance(dependency.instance);
      if (graph_.is_dynamic(dependency) || graph_.is_unresolved(dependency)) continue;
      if (!dependant.is_available() || known[dependency.instance]) continue;
      known[dependency.instance] = true;
      way.push_back(dependency.instance);
      if (dependant.owner == nullptr) dependants_.push_back(dependency.instance);
    }
  }
}

/// Binds a new instance to replacement instances instead of the old ones.
void Replacement::redirect(Index index) {
  Instance& instance = graph_.instance(index);
  for (std::size_t i = 0; i < instance.registration->descriptor->parameters.size(); ++i) {
    const Index provider = instance.dependencies[i].provider;
    if (provider == no_index || !is_old(provider)) continue;
    graph_.rebind(instance.first_dependency + static_cast<Index>(i), replacement_of(provider));
    if (!graph_.is_unresolved(instance.dependencies[i])) ++instance.missing_providers;
  }
}

bool Replacement::all_running() const {
  return std::ranges::all_of(
      pairs_, [&](const Pair& each) { return graph_.instance(each.replacement).is_available(); });
}

std::vector<Index> Replacement::waiting() const {
  std::vector<Index> found;
  for (const Pair& each : pairs_) {
    const Instance& instance = graph_.instance(each.replacement);
    if (instance.is_available()) continue;
    if (instance.registration_index == fresh_ || waits_for_others(instance))
      found.push_back(each.replacement);
  }
  return found;
}

/// Returns true if the instance waits for a service that is not replaced.
bool Replacement::waits_for_others(const Instance& instance) const {
  const auto parameters = instance.registration->descriptor->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Dependency& dependency = instance.dependencies[i];
    if (!is_single_kind(parameters[i].kind) || graph_.is_unresolved(dependency)) continue;
    if (dependency.provider == no_index) return true;
    const Instance& provider = graph_.instance(dependency.provider);
    // An instance that is made for this one alone is not requested before the other providers run.
    const bool not_requested = dependency.child && !provider.wanted;
    if (!provider.is_available() && !provider.is_replacement && !not_requested) return true;
  }
  return false;
}

void Replacement::roll_back() {
  for (const Pair& each : pairs_) {
    graph_.instance(each.replacement).wanted = false;
    lifecycle_.enqueue(graph_.instance(each.replacement));
  }
  lifecycle_.run();
}

void Replacement::open_routes() {
  for (const Pair& each : pairs_) {
    lifecycle_.open_routes(graph_.instance(each.replacement), graph_.instance(each.old));
  }
  lifecycle_.run();
}

void Replacement::take_routes() {
  for (const Pair& each : pairs_) lifecycle_.take_routes(graph_.instance(each.replacement));
  lifecycle_.run();
}

void Replacement::commit() {
  committed_ = true;
  for (const Pair& each : pairs_) graph_.instance(each.replacement).is_replacement = false;
  graph_.replace(old_, fresh_);
  for (const Pair& each : pairs_) {
    if (graph_.instance(each.old).registration_index != old_)
      graph_.set_slot(each.old, each.replacement);
  }
  for (const Pair& each : pairs_) move_dependencies(each);
  offer_fresh();
  for (const Pair& each : pairs_) {
    graph_.instance(each.old).wanted = false;
    lifecycle_.enqueue(graph_.instance(each.old));
  }
  lifecycle_.enqueue_touched();
  lifecycle_.run();
}

/// Moves the dependencies of services that stay. Services that are not up take the replacement
/// instead of the old instance. Dynamic parameters get it in addition.
void Replacement::move_dependencies(const Pair& pair) {
  for (Index at = graph_.instance(pair.old).first_dependant; at != no_index;) {
    const Dependency& dependency = graph_.dependency(at);
    const Index next = dependency.next;
    Instance& dependant = graph_.instance(dependency.instance);
    if (is_old(dependency.instance)) {
      // This dependant is replaced as well.
    } else if (graph_.is_dynamic(dependency)) {
      if (graph_.can_provide(dependency, *graph_.instance(pair.replacement).registration)) {
        lifecycle_.add_provider(
            graph_.add_dynamic(dependant, dependency.parameter, pair.replacement));
      }
    } else if (dependant.state == State::waiting || dependant.state == State::failed ||
               graph_.is_unresolved(dependency)) {
      graph_.rebind(at, pair.replacement);
    }
    at = next;
  }
}

/// Offers the new service to dependencies that the old service could not satisfy.
void Replacement::offer_fresh() {
  graph_.offer(fresh_);
  for (const Index each : graph_.slots(graph_.registration(fresh_))) {
    for (Index at = graph_.instance(each).first_dependant; at != no_index;) {
      Dependency& dependency = graph_.dependency(at);
      at = dependency.next;
      if (graph_.is_dynamic(dependency) && !is_old(dependency.instance))
        lifecycle_.add_provider(dependency);
    }
  }
}

void Replacement::remove_stopped() {
  for (const Pair& each : pairs_) {
    const Index gone = committed_ ? each.old : each.replacement;
    const Index registration = graph_.instance(gone).registration_index;
    if (registration != old_ && registration != fresh_) graph_.remove_clone(gone);
  }
  graph_.remove(committed_ ? old_ : fresh_);
  lifecycle_.enqueue_touched();
  lifecycle_.run();
}

}  // namespace weir::inject

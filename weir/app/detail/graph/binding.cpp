// Binding of dependencies in the service graph: the provider of each instance's parameters.
#include <algorithm>
#include <cassert>
#include <utility>

#include "weir/app/detail/graph/graph.hpp"

namespace weir::inject {

bool Graph::is_visible(const Registration& provider, const Instance& to,
                       DependencyKind kind) const noexcept {
  if (provider.root != nullptr && kind != DependencyKind::scoped) {
    // It is visible to instances of the same scope only.
    if (kind != DependencyKind::required || provider.root != to.registration->root) return false;
  }
  if (kind == DependencyKind::remote) {
    return provider.placement == Placement::on_core && provider.core < cores_ &&
           !provider.per_requester;
  }
  switch (provider.placement) {
    case Placement::shared:
      return true;
    case Placement::per_core:
      return !to.used_by_all_cores && to.core < cores_;
    case Placement::on_core:
      return !to.used_by_all_cores && to.core == provider.core;
  }
  std::unreachable();
}

Graph::Selection Graph::select(const DependencyKey& key, const Instance& of,
                               DependencyKind kind) const {
  Selection selection;
  for (const Index each : key.registrations) {
    if (!is_visible(registrations_[each], of, kind)) continue;
    if (selection.registration != no_index) {
      selection.alternative = each;
      break;
    }
    selection.registration = each;
    if (key.filter != nullptr) break;
  }
  return selection;
}

void* Graph::object_for(const Dependency& dependency) const {
  const Instance& provider = instances_[dependency.provider];
  const Type* const type = key_of(instances_[dependency.instance], dependency.parameter).type;
  const auto provided = provider.registration->descriptor->provided;
  const auto as = std::ranges::find(provided, type, &ProvidedType::type);
  assert(as != provided.end());
  return as->cast(provider.memory);
}

void Graph::bind_new() {
  for (std::size_t i = 0; i < unbound_instances_.size(); ++i) {  // the list grows meanwhile
    Instance& instance = instances_[unbound_instances_[i]];
    const auto parameters = instance.registration->descriptor->parameters;
    for (std::size_t each = 0; each < parameters.size(); ++each) {
      const Index dependency = instance.first_dependency + static_cast<Index>(each);
      if (is_single_kind(parameters[each].kind)) bind_single(instance, dependency);
      if (is_dynamic_kind(parameters[each].kind)) bind_dynamic(instance, dependency);
    }
  }
  touched_.insert(touched_.end(), unbound_instances_.begin(), unbound_instances_.end());
  unbound_instances_.clear();
}

void Graph::bind_single(Instance& instance, Index index) {
  Dependency& dependency = dependencies_[index];
  if (kind_of(dependency) == DependencyKind::lazy) {
    dependency.argument = new LazyState();
  } else {
    ++instance.missing_providers;
  }
  find_provider(index);
}

/// Binds a dependency that is in no list and has no provider, if there is exactly one provider.
void Graph::find_provider(Index index) {
  const Dependency& dependency = dependencies_[index];
  const Instance& instance = instances_[dependency.instance];
  const Selection selection =
      select(key_of(instance, dependency.parameter), instance, kind_of(dependency));
  if (selection.registration != no_index && selection.alternative == no_index) {
    provide(index, selection.registration);
  } else {
    link(index);
  }
}

/// Binds a dependency that is in no list and has no provider to a visible registration.
void Graph::provide(Index index, Index registration_index) {
  Dependency& dependency = dependencies_[index];
  Instance& instance = instances_[dependency.instance];
  const Registration& registration = registrations_[registration_index];
  touched_.push_back(dependency.instance);
  if (!registration.per_requester) {
    dependency.provider = slot_of(registration, instance);
    if (instances_[dependency.provider].is_available() && !is_unresolved(dependency))
      --instance.missing_providers;
  } else if (!is_owned_by(instance, registration_index)) {
    dependency.child = true;
    dependency.provider = create_instance(registration_index, instance.core, &instance);
    if (!is_unresolved(dependency)) {
      --instance.missing_providers;
      ++instance.missing_children;
    }
  }
  link(index);
  if (dependency.provider == no_index) return;
  if (is_lazy(instances_[dependency.provider].use))
    touched_.push_back(dependency.provider);  // it may no longer be dormant
}

bool Graph::is_owned_by(const Instance& instance, Index registration) const noexcept {
  for (const Instance* each = &instance; each != nullptr; each = each->owner) {
    if (each->registration_index == registration) return true;
  }
  return false;
}

void Graph::bind_dynamic(Instance& instance, Index index) {
  Dependency& dependency = dependencies_[index];
  dependency.argument = static_cast<Providers*>(new DynamicProviders());
  link(index);
  for (const Index each : key_of(instance, dependency.parameter).registrations) {
    if (registrations_[each].per_requester ||
        !is_visible(registrations_[each], instance, kind_of(dependency)))
      continue;
    const Index provider = slot_of(registrations_[each], instance);
    if (provider != instance.index) add_dynamic(instance, dependency.parameter, provider);
  }
}

Dependency& Graph::add_dynamic(Instance& instance, std::size_t parameter, Index provider) {
  const Index index = dependencies_.allocate();
  Dependency& seen = dependencies_[index];
  seen.instance = instance.index;
  seen.parameter = static_cast<std::uint8_t>(parameter);
  seen.provider = provider;
  link(index);
  dynamic_providers_of(instance.dependencies[parameter]).dependencies.push_back(index);
  return seen;
}

void Graph::offer(Index index) {
  const Registration& registration = registrations_[index];
  for (const Index type : descriptor_infos_[registration.descriptor_info].types) {
    for (const Index each : types_[type].keys) {
      const DependencyKey& key = keys_[each];
      if (!accepts(key, registration)) continue;
      for (Index dependency = key.unbound; dependency != no_index;) {
        const Index next = dependencies_[dependency].next;
        if (is_visible(registration, instances_[dependencies_[dependency].instance],
                       kind_of(dependencies_[dependency]))) {
          unlink(dependency);
          provide(dependency, index);
        }
        dependency = next;
      }
      for (Index dependency = key.dynamic; dependency != no_index;
           dependency = dependencies_[dependency].next) {
        Instance& instance = instances_[dependencies_[dependency].instance];
        if (registration.per_requester ||
            !is_visible(registration, instance, kind_of(dependencies_[dependency])))
          continue;
        const Index provider = slot_of(registration, instance);
        const auto& known = dynamic_providers_of(dependencies_[dependency]).dependencies;
        const bool seen = std::ranges::any_of(
            known, [&](Index of) { return dependencies_[of].provider == provider; });
        if (!seen && provider != instance.index)
          add_dynamic(instance, dependencies_[dependency].parameter, provider);
      }
    }
  }
}

/// Finds other providers for the dependants of this instance.
void Graph::rebind_dependants(Instance& instance) {
  while (instance.first_dependant != no_index) {
    const Index index = instance.first_dependant;
    Dependency& dependency = dependencies_[index];
    Instance& dependant = instances_[dependency.instance];
    if (is_dynamic(dependency)) {
      std::erase(dynamic_providers_of(dependant.dependencies[dependency.parameter]).dependencies,
                 index);
      remove_dynamic(index);
      continue;
    }
    touched_.push_back(dependency.instance);
    unlink(index);
    dependency.provider = no_index;
    if (std::exchange(dependency.child, false) && !is_unresolved(dependency)) {
      --dependant.missing_children;
      ++dependant.missing_providers;
    }
    find_provider(index);
  }
}

void Graph::remove_dynamic(Index seen) {
  unlink(seen);
  dependencies_.release(seen);
}

/// Removes all dependencies of the instance.
void Graph::remove_dependencies(Instance& instance) {
  const auto parameters = instance.registration->descriptor->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Index index = instance.first_dependency + static_cast<Index>(i);
    Dependency& dependency = dependencies_[index];
    if (is_single_kind(parameters[i].kind)) {
      const Index child = dependency.child ? dependency.provider : no_index;
      unlink(index);
      if (parameters[i].kind == DependencyKind::lazy)
        delete static_cast<LazyState*>(dependency.argument);
      dependency = Dependency();
      if (child != no_index) remove_instance(child);
    } else if (is_dynamic_kind(parameters[i].kind) && dependency.argument != nullptr) {
      DynamicProviders& dynamic = dynamic_providers_of(dependency);
      for (const Index seen : dynamic.dependencies) remove_dynamic(seen);
      unlink(index);
      delete &dynamic;
      dependency.argument = nullptr;
    }
  }
}

Index& Graph::list_of(const Dependency& dependency) noexcept {
  if (dependency.provider != no_index) return instances_[dependency.provider].first_dependant;
  DependencyKey& key =
      keys_[descriptor_infos_[instances_[dependency.instance].registration->descriptor_info]
                .keys[dependency.parameter]];
  return is_dynamic(dependency) ? key.dynamic : key.unbound;
}

void Graph::link(Index index) noexcept {
  Dependency& dependency = dependencies_[index];
  Index& head = list_of(dependency);
  dependency.previous = no_index;
  dependency.next = head;
  if (head != no_index) dependencies_[head].previous = index;
  head = index;
  dependency.in_scope = dependency.provider != no_index &&
                        instances_[dependency.provider].registration->root != nullptr;
  if (dependency.provider != no_index) record_use(dependency);
}

/// Records the dependency in the provider, which may become dormant until it is requested. A
/// provider that exists already continues.
void Graph::record_use(const Dependency& dependency) noexcept {
  Instance& provider = instances_[dependency.provider];
  const DependencyKind kind = kind_of(dependency);
  if (kind == DependencyKind::required) {
    provider.use = is_lazy(provider.use) ? Use::required_and_lazy : Use::required;
  } else if (kind != DependencyKind::lazy) {
    return;
  } else if (provider.use == Use::required || provider.use == Use::required_and_lazy) {
    provider.use = Use::required_and_lazy;
  } else if (dependency.state != DependencyState::idle || provider.state != State::waiting ||
             provider.is_replacement || provider.use == Use::requested) {
    provider.use = Use::requested;
  } else {
    provider.use = Use::dormant;
  }
}

void Graph::unlink(Index index) noexcept {
  Dependency& dependency = dependencies_[index];
  (dependency.previous == no_index ? list_of(dependency)
                                   : dependencies_[dependency.previous].next) = dependency.next;
  if (dependency.next != no_index) dependencies_[dependency.next].previous = dependency.previous;
  dependency.next = dependency.previous = no_index;
  if (dependency.provider != no_index && kind_of(dependency) == DependencyKind::required)
    forget_requirement(instances_[dependency.provider]);
}

/// Determines the use of a provider again after a dependant has left that required it. A provider
/// that waits for no other service becomes dormant again.
void Graph::forget_requirement(Instance& provider) noexcept {
  if (provider.use != Use::required_and_lazy) return;
  provider.use = Use::none;
  for (Index each = provider.first_dependant; each != no_index; each = dependencies_[each].next) {
    record_use(dependencies_[each]);
    if (provider.use == Use::required_and_lazy) return;
  }
}

}  // namespace weir::inject

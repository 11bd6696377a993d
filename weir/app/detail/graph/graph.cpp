// The service graph: registrations, instances and their indices.
#include "weir/app/detail/graph/graph.hpp"

#include <algorithm>
#include <utility>

namespace weir::inject {
namespace {

bool is_default(const ServiceOptions& options) {
  const ServiceOptions defaults;
  return options.properties.empty() && options.start_timeout == defaults.start_timeout &&
         options.stop_timeout == defaults.stop_timeout &&
         options.replace_policy == defaults.replace_policy;
}

}  // namespace

const ServiceOptions& Registration::effective_options() const noexcept {
  static const ServiceOptions defaults;
  return options == nullptr ? defaults : *options;
}

Graph::~Graph() {
  delete_arguments();
}

/// Deletes the arguments of all dependencies, before the dependencies themselves.
void Graph::delete_arguments() noexcept {
  for (Index index = 0; index < instances_.size(); ++index) {
    const Instance& instance = instances_[index];
    if (instance.registration == nullptr) continue;
    const auto parameters = instance.registration->descriptor->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (is_dynamic_kind(parameters[i].kind))
        delete &dynamic_providers_of(instance.dependencies[i]);
      if (parameters[i].kind == DependencyKind::lazy)
        delete static_cast<LazyState*>(instance.dependencies[i].argument);
    }
  }
}

// --- registrations -------------------------------------------------------------------------------

ServiceId Graph::add(RegistrationInput input, Placement placement, std::uint16_t core,
                     const ServiceOptions& options) {
  const Index index = registrations_.allocate();
  Registration& registration = registrations_[index];
  registration.descriptor = input.descriptor;
  registration.root = input.root;
  registration.factory = std::move(input.factory);
  if (!is_default(options)) registration.options = std::make_unique<const ServiceOptions>(options);
  registration.descriptor_info = descriptor_info_index(*input.descriptor);
  registration.serial = ++serial_;
  registration.placement = placement;
  registration.core = core;
  registration.per_requester = std::ranges::any_of(
      input.descriptor->parameters,
      [](const Parameter& each) { return each.kind == DependencyKind::requester; });
  pending_.push_back(index);
  return registration.id(index);
}

Registration* Graph::find(ServiceId id) noexcept {
  if (id.index() >= registrations_.size()) return nullptr;
  Registration& registration = registrations_[id.index()];
  return registration.descriptor != nullptr && registration.serial == id.serial() ? &registration
                                                                                  : nullptr;
}

Index Graph::descriptor_info_index(const TypeDescriptor& descriptor) {
  const auto [at, inserted] = descriptor_info_indices_.try_emplace(
      &descriptor, static_cast<Index>(descriptor_infos_.size()));
  if (!inserted) return at->second;
  DescriptorInfo info{&descriptor, {}, {}};
  for (const ProvidedType& provided : descriptor.provided) {
    const Index type = type_entry(provided.type);
    if (std::ranges::find(info.types, type) == info.types.end()) info.types.push_back(type);
  }
  for (const Parameter& each : descriptor.parameters) {
    info.keys.push_back(is_service_kind(each.kind) ? key_index(each.type, each.filter) : no_index);
  }
  descriptor_infos_.push_back(std::move(info));
  return at->second;
}

Index Graph::type_entry(const Type* type) {
  const auto [at, inserted] = type_indices_.try_emplace(type, static_cast<Index>(types_.size()));
  if (inserted) types_.emplace_back();
  return at->second;
}

Index Graph::key_index(const Type* type, const Filter* filter) {
  TypeEntry& entry = types_[type_entry(type)];
  for (const Index each : entry.keys) {
    if (keys_[each].filter == filter) return each;
  }
  const auto index = static_cast<Index>(keys_.size());
  DependencyKey key{type, filter, {}};
  for (const Index each : entry.registrations) {
    if (accepts(key, registrations_[each])) key.registrations.push_back(each);
  }
  keys_.push_back(std::move(key));
  entry.keys.push_back(index);
  return index;
}

bool Graph::accepts(const DependencyKey& key, const Registration& registration) const {
  return key.filter == nullptr || key.filter->accepts(registration.effective_options().properties);
}

void Graph::activate(Index index) {
  Registration& registration = registrations_[index];
  registration.active = true;
  // A service that was withdrawn returns to its place in the order of registration.
  const auto insert = [this, &registration, index](std::vector<Index>& list) {
    const auto serial_of = [this](Index each) { return registrations_[each].serial; };
    list.insert(std::ranges::upper_bound(list, registration.serial, {}, serial_of), index);
  };
  for (const Index type : descriptor_infos_[registration.descriptor_info].types) {
    insert(types_[type].registrations);
    for (const Index each : types_[type].keys) {
      if (accepts(keys_[each], registration)) insert(keys_[each].registrations);
    }
  }
}

void Graph::deactivate(Index index) {
  for (const Index type : descriptor_infos_[registrations_[index].descriptor_info].types) {
    std::erase(types_[type].registrations, index);
    for (const Index each : types_[type].keys) std::erase(keys_[each].registrations, index);
  }
  registrations_[index].active = false;
}

const Graph::DependencyKey& Graph::key_of(const Instance& instance, std::size_t parameter) const {
  return keys_[descriptor_infos_[instance.registration->descriptor_info].keys[parameter]];
}

// --- instances -----------------------------------------------------------------------------------

void Graph::build(std::size_t cores, std::size_t shared_core) {
  delete_arguments();
  instances_.clear();
  dependencies_.clear();
  slots_.clear();
  for (DependencyKey& key : keys_) key.unbound = key.dynamic = no_index;
  cores_ = cores;
  shared_core_ = shared_core;
  for (const Index each : std::exchange(pending_, {})) activate(each);
  for (Index index = 0; index < registrations_.size(); ++index) {
    if (registrations_[index].descriptor != nullptr) create_instances(index);
  }
  bind_new();
  unbound_instances_ = {};  // releases the memory: later changes are small
  touched_ = {};
}

std::vector<Index> Graph::extend() {
  std::vector<Index> fresh = std::exchange(pending_, {});
  add_registrations(fresh);
  return fresh;
}

void Graph::extend_by(Index registration) {
  std::erase(pending_, registration);
  add_registrations({&registration, 1});
}

void Graph::add_registrations(std::span<const Index> fresh) {
  for (const Index each : fresh) {
    activate(each);
    create_instances(each);
  }
  bind_new();
  for (const Index each : fresh) offer(each);
  bind_new();
}

bool Graph::is_pending(Index registration) const noexcept {
  return std::ranges::find(pending_, registration) != pending_.end();
}

void Graph::create_instances(Index index) {
  Registration& registration = registrations_[index];
  if (registration.per_requester) return;
  if (registration.placement != Placement::per_core) {
    registration.slots = slots_.allocate();
    const std::size_t on =
        registration.placement == Placement::shared ? shared_core_ : registration.core;
    slots_[registration.slots] = create_instance(index, on, nullptr);
    return;
  }
  registration.slots = slots_.allocate(cores_);
  for (std::size_t core = 0; core < cores_; ++core) {
    slots_[registration.slots + static_cast<Index>(core)] = create_instance(index, core, nullptr);
  }
}

Index Graph::create_instance(Index registration_index, std::size_t core, Instance* owner) {
  const Registration& registration = registrations_[registration_index];
  const std::size_t parameters = registration.descriptor->parameters.size();
  const Index index = instances_.allocate();
  Instance& instance = instances_[index];
  instance.registration = &registration;
  instance.owner = owner;
  instance.index = index;
  instance.registration_index = registration_index;
  instance.core = static_cast<std::uint16_t>(core);
  instance.wanted = owner == nullptr;
  instance.used_by_all_cores =
      owner == nullptr ? registration.placement == Placement::shared : owner->used_by_all_cores;
  if (parameters != 0) {
    instance.first_dependency = dependencies_.allocate(parameters);
    instance.dependencies = &dependencies_[instance.first_dependency];
    for (std::size_t i = 0; i < parameters; ++i) {
      instance.dependencies[i].instance = index;
      instance.dependencies[i].parameter = static_cast<std::uint8_t>(i);
    }
  }
  unbound_instances_.push_back(index);
  return index;
}

std::span<Index> Graph::slots(const Registration& registration) noexcept {
  if (registration.slots == no_index) return {};
  return {&slots_[registration.slots], registration.placement == Placement::per_core ? cores_ : 1};
}

Index Graph::slot_of(const Registration& registration, const Instance& of) const noexcept {
  return slots_[registration.slots +
                (registration.placement == Placement::per_core ? of.core : 0U)];
}

void Graph::remove(Index index) {
  std::erase(pending_, index);
  withdraw(index);
  registrations_[index] = Registration();
  registrations_.release(index);
}

void Graph::withdraw(Index index) {
  deactivate(index);
  Registration& registration = registrations_[index];
  for (const Index each : slots(registration)) remove_instance(each);
  for (Index each = 0; registration.per_requester && each < instances_.size(); ++each) {
    if (instances_[each].registration == &registration) remove_instance(each);
  }
  bind_new();
  if (registration.slots != no_index) {
    slots_.release(registration.slots, registration.placement == Placement::per_core ? cores_ : 1);
    registration.slots = no_index;
  }
}

void Graph::remove_instance(Index index) {
  Instance& instance = instances_[index];
  rebind_dependants(instance);
  remove_dependencies(instance);
  if (instance.first_dependency != no_index) {
    dependencies_.release(instance.first_dependency,
                          instance.registration->descriptor->parameters.size());
  }
  instance = Instance();
  instances_.release(index);
}

// --- replacements --------------------------------------------------------------------------------

bool Graph::can_provide(const Dependency& dependency, const Registration& registration) const {
  const DependencyKey& key = key_of(instances_[dependency.instance], dependency.parameter);
  const auto provided = registration.descriptor->provided;
  return std::ranges::find(provided, key.type, &ProvidedType::type) != provided.end() &&
         accepts(key, registration);
}

void Graph::create_unoffered(Index registration) {
  std::erase(pending_, registration);
  create_instances(registration);
}

Index Graph::clone_instance(Index instance) {
  return create_instance(instances_[instance].registration_index, instances_[instance].core,
                         nullptr);
}

void Graph::replace(Index old, Index fresh) {
  if (old != no_index) deactivate(old);
  if (fresh != no_index) activate(fresh);
}

void Graph::set_slot(Index old, Index instance) {
  const auto slots = this->slots(registrations_[instances_[old].registration_index]);
  *std::ranges::find(slots, old) = instance;
}

void Graph::rebind(Index dependency, Index provider) {
  unlink(dependency);
  dependencies_[dependency].provider = provider;
  link(dependency);
}

}  // namespace weir::inject

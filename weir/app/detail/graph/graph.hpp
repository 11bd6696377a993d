// Graph: registered services, their instances, and the provider of each dependency.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/app/describe/detail/node.hpp"
#include "weir/app/handles/handles.hpp"
#include "weir/app/handles/lazy.hpp"

namespace weir::inject {

/// The argument of a dynamic parameter, and the dependencies on its providers.
struct DynamicProviders : Providers {
  std::vector<Index> dependencies;  ///< indices in the graph
};

/// The services and their dependencies, by index. Building it takes time in proportion to the
/// number of services and dependencies.
/// Threads: one; the app's core while services run.
class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// The key that equal parameters share: a type, and a filter or nullptr.
  struct DependencyKey {
    const Type* type;
    const Filter* filter;
    std::vector<Index> registrations;  ///< matching active registrations, in order of registration
    Index unbound = no_index;          ///< first dependency that lacks a provider
    Index dynamic = no_index;          ///< first dependency of a dynamic parameter
  };
  /// The provider for one dependency.
  struct Selection {
    Index registration = no_index;
    Index alternative = no_index;  ///< another match, if there is no filter
  };

  ServiceId add(RegistrationInput input, Placement placement, std::uint16_t core,
                const ServiceOptions& options);
  /// Creates the instances and dependencies of all registrations. `cores` is the number of cores;
  /// shared instances live on `shared_core`. All previous instances are removed.
  void build(std::size_t cores, std::size_t shared_core);
  /// Adds the registrations that were added since.
  /// Returns: these registrations.
  std::vector<Index> extend();
  /// Adds one pending or withdrawn registration.
  void extend_by(Index registration);
  bool is_pending(Index registration) const noexcept;
  /// Returns the instances that were created or bound again since the last call.
  std::vector<Index> take_touched() { return std::exchange(touched_, {}); }
  bool has_touched() const noexcept { return !touched_.empty(); }
  /// Removes a registration with its instances, all of which are down. Each dependant gets another
  /// provider if the choice is unambiguous; otherwise it lacks one.
  void remove(Index registration);
  /// Removes the instances as remove() does, but keeps the registration for extend_by() or
  /// remove().
  void withdraw(Index registration);

  /// Returns the registration of an id, or nullptr if it was removed.
  Registration* find(ServiceId id) noexcept;
  Registration& registration(Index index) noexcept { return registrations_[index]; }
  const Registration& registration(Index index) const noexcept { return registrations_[index]; }
  Index registration_count() const noexcept { return registrations_.size(); }
  Instance& instance(Index index) noexcept { return instances_[index]; }
  const Instance& instance(Index index) const noexcept { return instances_[index]; }
  Index instance_count() const noexcept { return instances_.size(); }
  Dependency& dependency(Index index) noexcept { return dependencies_[index]; }
  const Dependency& dependency(Index index) const noexcept { return dependencies_[index]; }
  const DependencyKey& key_of(const Instance& instance, std::size_t parameter) const;
  /// Returns the slots of a registration: one for each core, or one. Empty if instances are made
  /// by request.
  std::span<Index> slots(const Registration& registration) noexcept;
  Index slot_of(const Registration& registration, const Instance& of) const noexcept;
  std::size_t cores() const noexcept { return cores_; }

  Selection select(const DependencyKey& key, const Instance& of, DependencyKind kind) const;
  /// Returns true if a parameter of that kind can take the registration's service.
  bool is_visible(const Registration& provider, const Instance& to,
                  DependencyKind kind) const noexcept;
  /// Returns true if the instance, or an owner of that instance, comes from the registration. A
  /// further instance would then need another one without end.
  bool is_owned_by(const Instance& instance, Index registration) const noexcept;
  /// Returns the object that a dependency's instance gets from the provider.
  void* object_for(const Dependency& dependency) const;

  /// Returns the argument of a dynamic parameter.
  DynamicProviders& dynamic_providers_of(const Dependency& dependency) const noexcept {
    return *static_cast<DynamicProviders*>(static_cast<Providers*>(dependency.argument));
  }
  DependencyKind kind_of(const Dependency& dependency) const noexcept {
    return instances_[dependency.instance]
        .registration->descriptor->parameters[dependency.parameter]
        .kind;
  }
  /// Returns true if the instance does not depend on the provider, but uses it while it is
  /// present.
  bool is_dynamic(const Dependency& dependency) const noexcept {
    return is_dynamic_kind(kind_of(dependency));
  }
  /// Returns the provider if its uses by a dynamic parameter are counted, else nullptr.
  const Instance* counted_provider_of(const Dependency& dependency) const noexcept {
    return kind_of(dependency) == DependencyKind::optional ? nullptr
                                                           : &instances_[dependency.provider];
  }
  /// Returns true if the instance does not depend on the provider yet.
  bool is_unresolved(const Dependency& dependency) const noexcept {
    return dependency.state != DependencyState::resolved &&
           kind_of(dependency) == DependencyKind::lazy;
  }

  // Functions for replacements: they create and remove registrations that are no longer pending,
  // and instances that are not in the slots of their registration.

  /// Returns true if the registration's service matches the dependency's parameter.
  bool can_provide(const Dependency& dependency, const Registration& registration) const;
  /// Creates the instances of a pending registration without offering them to other services.
  void create_unoffered(Index registration);
  /// Creates another instance of the same registration on the same core.
  Index clone_instance(Index instance);
  void remove_clone(Index instance) { remove_instance(instance); }
  /// Binds the dependencies of all new instances.
  void bind_new();
  /// Makes `fresh` the provider for all later bindings instead of `old`. Either may be no_index.
  void replace(Index old, Index fresh);
  /// Puts the instance into the slot of `old`.
  void set_slot(Index old, Index instance);
  /// Links a dependency to another provider; changes no counters.
  void rebind(Index dependency, Index provider);
  /// Offers a registration to dependencies that lack a provider, and to dynamic parameters that do
  /// not have it yet.
  void offer(Index registration);
  /// Adds a dependency of a dynamic parameter on one more provider.
  Dependency& add_dynamic(Instance& instance, std::size_t parameter, Index provider);

 private:
  /// A descriptor, with indices for its types.
  struct DescriptorInfo {
    const TypeDescriptor* descriptor;
    std::vector<Index> types;  ///< indices of the provided types
    std::vector<Index> keys;   ///< index of each parameter's key
  };
  struct TypeEntry {
    std::vector<Index> registrations;
    std::vector<Index> keys;
  };

  Index descriptor_info_index(const TypeDescriptor& descriptor);
  Index type_entry(const Type* type);
  Index key_index(const Type* type, const Filter* filter);
  void add_registrations(std::span<const Index> fresh);
  void activate(Index registration);
  void deactivate(Index registration);
  bool accepts(const DependencyKey& key, const Registration& registration) const;

  void create_instances(Index registration);
  Index create_instance(Index registration, std::size_t core, Instance* owner);
  void remove_instance(Index instance);
  void remove_dependencies(Instance& instance);
  void delete_arguments() noexcept;
  void rebind_dependants(Instance& instance);
  void bind_single(Instance& instance, Index dependency);
  void find_provider(Index dependency);
  void bind_dynamic(Instance& instance, Index dependency);
  void remove_dynamic(Index seen);
  void provide(Index dependency, Index registration);

  Index& list_of(const Dependency& dependency) noexcept;
  void link(Index dependency) noexcept;
  void record_use(const Dependency& dependency) noexcept;
  void unlink(Index dependency) noexcept;
  void forget_requirement(Instance& provider) noexcept;

  std::unordered_map<const TypeDescriptor*, Index> descriptor_info_indices_;
  std::unordered_map<const Type*, Index> type_indices_;
  std::vector<DescriptorInfo> descriptor_infos_;
  std::vector<TypeEntry> types_;
  std::vector<DependencyKey> keys_;
  SlotArray<Registration> registrations_;
  SlotArray<Index, 4096> slots_;
  SlotArray<Instance> instances_;
  SlotArray<Dependency> dependencies_;
  std::vector<Index> pending_;            // registrations that are not part of the graph yet
  std::vector<Index> unbound_instances_;  // instances whose dependencies are not bound yet
  std::vector<Index> touched_;
  std::uint32_t serial_ = 0;
  std::size_t cores_ = 0;
  std::size_t shared_core_ = 0;
};

// Validation of a graph before a start or a change.

/// The missing providers that are no errors, because their dependants may wait.
enum class Missing : std::uint8_t {
  none,
  unregistered,  ///< those of which no service provides the type
  all,           ///< also those of which no service provides the type on the dependant's core
};

/// Returns all errors of a graph, one line each, without duplicates. Errors are missing providers,
/// ambiguous choices, cycles, and dependencies on services of another core. An empty result means
/// that all services can start. Services that are not part of the graph yet are not checked.
/// `has_router` is true if a router is mounted for routes.
std::vector<std::string> validate(const Graph& graph, Missing missing, bool has_router);

}  // namespace weir::inject

// The elements of the service graph: registrations, instances, and dependencies between instances.
#pragma once

#include <cstdint>
#include <memory>

#include "weir/app/describe/detail/descriptor.hpp"
#include "weir/app/describe/detail/slot_array.hpp"
#include "weir/app/describe/service_options.hpp"
#include "weir/base/time.hpp"

namespace weir::inject {

class ServiceTask;

/// A registered service. Its flags alone may change while it has instances.
struct Registration {
  const TypeDescriptor* descriptor = nullptr;  ///< nullptr if this slot is free
  /// Root of a scoped service, whose instances are ScopedFactories; else nullptr.
  const Type* root = nullptr;
  FactoryPtr factory{nullptr, [](const void*) {}};
  std::unique_ptr<const ServiceOptions> options;  ///< nullptr for the defaults
  Index descriptor_info = no_index;               ///< index of the graph's data on the descriptor
  /// First slot; one slot for each core if the service is per core, else one.
  Index slots = no_index;
  std::uint32_t serial = 0;
  std::uint16_t core = 0;  ///< core of a Placement::on_core
  Placement placement = Placement::shared;
  /// True if each requiring service gets its own instance, and there is no other instance.
  bool per_requester = false;
  bool active = false;            ///< true if other services may be given it
  bool stopped_manually = false;  ///< true after App::stop(id)

  const ServiceOptions& effective_options() const noexcept;
  ServiceId id(Index index) const noexcept { return {index, serial}; }
};

enum class State : std::uint8_t {
  waiting,               ///< lacks a provider, or is not requested yet
  waiting_for_children,  ///< waits only for the instances that are made for it alone
  starting,              ///< is being made, or its start() runs
  running,
  draining,  ///< waits until its dependants have stopped
  stopping,  ///< its stop() runs
  failed,    ///< could not be made or started
};

/// A dependency of one instance on another. Each parameter has one dependency, at the parameter's
/// index in the instance's array. A dynamic parameter has further dependencies elsewhere, one for
/// each provider.
struct Dependency {
  Index instance = no_index;
  Index provider = no_index;  ///< no_index if the dependency is not bound
  /// Next dependency on the same provider, or next unbound one of the same key.
  Index next = no_index;
  Index previous = no_index;
  /// Argument of the parameter; written before the command that makes the instance.
  void* argument = nullptr;
  std::uint8_t parameter = 0;
  bool child = false;      ///< true if the provider is made for this instance alone
  bool in_scope = false;   ///< true if the provider makes instances for scopes
  bool delivered = false;  ///< true if the instance's Providers contain the provider
  bool removing = false;   ///< true if the removal from these Providers was ordered
  bool requested = false;  ///< for a Lazy: true while the instance waits for the provider
  /// True after the instance got the provider of a Lazy, which it then depends on.
  bool resolved = false;
};

/// One instance of a service on one core. It exists or not.
/// Threads: the app's core; `memory` and `service_task` belong to the instance's own core.
struct Instance {
  const Registration* registration = nullptr;  ///< nullptr if this slot is free
  /// Array with one entry for each parameter of the descriptor.
  Dependency* dependencies = nullptr;
  Instance* owner = nullptr;  ///< instance that this one is made for, if it is made by request
  void* memory = nullptr;     ///< the stored object, from starting to stopping
  ServiceTask* service_task = nullptr;  ///< the running start() or stop(), or nullptr
  Instant state_since{};                ///< time of the last change of its state
  Index index = no_index;
  Index registration_index = no_index;
  Index first_dependency = no_index;
  Index first_dependant = no_index;     ///< first dependency on this instance
  std::uint32_t active_dependants = 0;  ///< number of dependants that are not down
  std::uint32_t demand = 0;             ///< 0 if the instance shall not run, else 1
  std::uint16_t core = 0;
  std::uint8_t missing_providers = 0;  ///< number of required providers that do not run
  /// Number of required providers made for it alone that do not run.
  std::uint8_t missing_children = 0;
  State state = State::waiting;
  bool used_by_all_cores = false;  ///< true if all cores use it
  bool queued = false;             ///< true if it waits in the lifecycle's queue
  bool cancelling = false;         ///< true if its start was cancelled
  bool is_replacement = false;     ///< true for a new instance beside the one in the slot
  /// True while its routes are being opened; it does not stop meanwhile.
  bool opening_routes = false;
  bool lazy = false;               ///< true if a Lazy parameter takes it
  bool required = false;           ///< true if a service requires it
  bool lazy_requested = false;     ///< true if a service has requested it through a Lazy
  bool has_lazy_requests = false;  ///< true while it waits for the service of a Lazy of its own

  /// Returns true if no service needs it yet.
  bool is_dormant() const noexcept { return lazy && !required && !lazy_requested; }
};

}  // namespace weir::inject

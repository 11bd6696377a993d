// The elements of the service graph: registrations, instances, and dependencies between instances.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
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

/// The state of an instance; `state_rules` says what each state permits.
enum class State : std::uint8_t {
  waiting,               ///< lacks a provider, or is not requested yet
  waiting_for_children,  ///< waits only for the instances that are made for it alone
  starting,              ///< is being made, or its start() runs
  cancelling,            ///< still starting, but the start was cancelled
  running,
  opening_routes,  ///< runs, and does not stop before its routes have been opened
  draining,        ///< waits until its dependants have stopped
  stopping,        ///< its stop() runs
  failed,          ///< could not be made or started
};

/// The rules of one state: what it permits, and the states that may follow.
struct StateRules {
  State state;
  bool settled;        ///< the instance stays in the state until something else changes
  bool exists;         ///< the service exists: it holds its providers and may request a Lazy
  bool takes;          ///< the service is given providers that appear, and answers to its requests
  bool available;      ///< others may begin to use the service
  bool used;           ///< others may use the service
  std::uint16_t next;  ///< set of the states that may follow
};

constexpr std::uint16_t set_of(std::initializer_list<State> states) noexcept {
  unsigned set = 0;
  for (const State each : states) set |= 1U << static_cast<unsigned>(each);
  return static_cast<std::uint16_t>(set);
}

/// The legal combinations of an instance's state and its other members. Lifecycle asserts them.
/// Three rules hold in addition: a dormant instance waits; only a replacement opens routes
/// separately from its start; a replacement is never dormant, and never made for one instance.
inline constexpr std::array<StateRules, 9> state_rules = [] {
  using enum State;
  constexpr bool y = true;
  constexpr bool n = false;
  return std::array<StateRules, 9>{{
      // state, settled, exists, takes, available, used, next
      {waiting, y, n, n, n, n, set_of({waiting_for_children, starting})},
      {waiting_for_children, y, n, n, n, n, set_of({waiting, starting})},
      {starting, n, y, y, n, n, set_of({cancelling, running, stopping, failed})},
      {cancelling, n, y, y, n, n, set_of({running, stopping, waiting})},
      {running, y, y, y, y, y, set_of({opening_routes, draining})},
      {opening_routes, n, y, y, y, y, set_of({running})},
      {draining, n, y, n, n, y, set_of({stopping})},
      {stopping, n, y, n, n, n, set_of({waiting})},
      {failed, y, n, n, n, n, set_of({waiting})},
  }};
}();

constexpr const StateRules& rules_of(State state) noexcept {
  return state_rules[static_cast<std::size_t>(state)];
}
constexpr bool may_follow(State from, State to) noexcept {
  return (rules_of(from).next & set_of({to})) != 0;
}

/// How others take an instance: as a requirement, through Lazy parameters, or both.
enum class Use : std::uint8_t {
  none,               ///< no parameter, or only dynamic ones
  dormant,            ///< only Lazy parameters, and none has requested it yet
  requested,          ///< only Lazy parameters, and one has requested it
  required,           ///< required parameters
  required_and_lazy,  ///< required and Lazy parameters
};
constexpr bool is_lazy(Use use) noexcept {
  return use == Use::dormant || use == Use::requested || use == Use::required_and_lazy;
}

/// The progress of a Lazy or a dynamic dependency.
enum class DependencyState : std::uint8_t {
  idle,
  requested,  ///< Lazy: the instance waits for the provider
  resolved,   ///< Lazy: the instance got the provider, on which it depends from then on
  delivered,  ///< dynamic: the instance's Providers contain the provider
  removing,   ///< dynamic: the removal from these Providers was ordered
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
  DependencyState state = DependencyState::idle;
  bool child = false;     ///< true if the provider is made for this instance alone
  bool in_scope = false;  ///< true if the provider makes instances for scopes
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
  std::uint16_t core = 0;
  std::uint8_t missing_providers = 0;  ///< number of required providers that do not run
  /// Number of required providers made for it alone that do not run.
  std::uint8_t missing_children = 0;
  State state = State::waiting;
  Use use = Use::none;
  bool wanted = false;             ///< false if the instance shall not run
  bool used_by_all_cores = false;  ///< true if all cores use it
  bool queued = false;             ///< true if it waits in the lifecycle's queue
  bool is_replacement = false;     ///< true for a new instance beside the one in the slot
  bool has_lazy_requests = false;  ///< true if it may wait for the service of a Lazy of its own

  /// Returns true if no service needs it yet.
  bool is_dormant() const noexcept { return use == Use::dormant; }
  bool is_available() const noexcept { return rules_of(state).available; }
};

/// Returns true if `state_rules` permits the members of the instance in its state.
constexpr bool is_legal(const Instance& instance) noexcept {
  const StateRules& rules = rules_of(instance.state);
  if (instance.active_dependants != 0 && !rules.used) return false;
  if (instance.has_lazy_requests && !rules.exists) return false;
  if (instance.is_dormant() && (instance.state != State::waiting || instance.is_replacement))
    return false;
  if (instance.state == State::opening_routes && !instance.is_replacement) return false;
  return !instance.is_replacement || instance.owner == nullptr;
}

}  // namespace weir::inject

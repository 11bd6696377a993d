// What the graph of services is made of: recipes, nodes, and the edges between nodes.
#pragma once

#include <cstdint>
#include <memory>

#include "weir/app/describe/detail/descriptor.hpp"
#include "weir/app/service_options.hpp"
#include "weir/app/describe/detail/slot_array.hpp"
#include "weir/base/time.hpp"

namespace weir::wiring {

class Operation;

/// A service as it was registered. Does not change while it has nodes, but for the flags.
struct Recipe {
  const Plan* plan = nullptr;  ///< nullptr: no recipe is here
  const Type* seed = nullptr;  ///< of a scoped service: the nodes are ScopedMakers
  FactoryPtr factory{nullptr, [](const void*) {}};
  std::unique_ptr<const ServiceOptions> options;  ///< nullptr: the defaults
  Index kind = none;                              ///< what Graph knows of its plan
  Index slots = none;  ///< its nodes: one for each core if it is per core, else one
  std::uint32_t serial = 0;
  std::uint16_t core = 0;  ///< of a Place::on_core
  Place place = Place::shared;
  bool by_request = false;  ///< a node for each service that requires it, and none by itself
  bool active = false;      ///< others may be given it
  bool held = false;        ///< stopped by hand

  const ServiceOptions& said() const noexcept;
  ServiceId id(Index index) const noexcept { return {index, serial}; }
};

enum class State : std::uint8_t {
  waiting,   ///< for providers, or to be wanted
  calling,   ///< everything else is there: waits for what is made for it alone
  starting,  ///< being made, or its start() runs
  up,
  leaving,   ///< its dependants stop first
  stopping,  ///< its stop() runs
  failed,    ///< it could not be made or started
};

/// What one node takes from another. A parameter that takes one thing has one edge, at its place
/// among the node's edges; one that takes all there are (Need::some) has further ones elsewhere.
struct Edge {
  Index node = none;
  Index provider = none;  ///< none: not bound
  Index next = none;      ///< among the edges of that provider, or of what waits for one
  Index previous = none;
  void* argument = nullptr;  ///< what the parameter is made of; written before the order to make it
  std::uint8_t parameter = 0;
  bool child = false;      ///< the provider is made for this node alone
  bool in_scope = false;   ///< the provider makes instances for scopes
  bool told = false;       ///< the node has the provider in its Providers
  bool untelling = false;  ///< and was ordered to take it out
  bool asked = false;      ///< of a Lazy: the node waits for the provider
  bool firm = false;       ///< of a Lazy: it has been given it, and depends on it from then on
};

/// One instance of a service: on one core, there or not.
/// Threads: the home core's, but `memory` and `operation`, which are its own core's.
struct Node {
  const Recipe* recipe = nullptr;  ///< nullptr: no node is here
  Edge* edges = nullptr;           ///< as many as the plan has parameters
  Node* owner = nullptr;           ///< whom it is made for, if by request
  void* memory = nullptr;          ///< where it is, from starting to stopping
  Operation* operation = nullptr;  ///< its start() or stop(), while that runs
  Instant since{};                 ///< of its state
  Index index = none;
  Index recipe_index = none;
  Index first_edge = none;
  Index dependants = none;   ///< the first of the edges that lead here
  std::uint32_t users = 0;   ///< dependants that are not down
  std::uint32_t demand = 0;  ///< who wants it to run
  std::uint16_t core = 0;
  std::uint8_t missing = 0;  ///< required providers that are not up
  std::uint8_t absent = 0;   ///< and those made for it alone
  State state = State::waiting;
  bool roams = false;       ///< used by all cores
  bool queued = false;      ///< to be looked at
  bool cancelling = false;  ///< its start was asked to end
  bool replacing = false;   ///< a new instance beside the one in the slot
  bool opening = false;     ///< its routes are on their way: it stays meanwhile
  bool lazy = false;        ///< somebody takes it as Lazy
  bool required = false;    ///< somebody requires it
  bool asked = false;       ///< somebody who takes it as Lazy has asked for it
  bool asks = false;        ///< it waits for what it takes as Lazy

  /// Whether nobody needs it yet.
  bool sleeps() const noexcept { return lazy && !required && !asked; }
};

}  // namespace weir::wiring

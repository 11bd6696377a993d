// The graph of services: who is registered, who asks for what, and who gets it from whom.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/app/handles/detail/lazy.hpp"
#include "weir/app/node.hpp"
#include "weir/app/handles/handles.hpp"

namespace weir::wiring {

/// The argument of a parameter that takes all there are, and its edges to them.
struct Watch : Providers {
  std::vector<Index> edges;  ///< the graph's
};

/// Everything by index; building it costs a few steps for each service and each edge.
/// Threads: one, the home core's while services run.
class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// What several parameters may ask for alike: a type, of which a filter may choose some.
  struct Want {
    const Type* type;
    const Filter* filter;
    std::vector<Index> recipes;  ///< active ones that match, in the order of registration
    Index unbound = none;        ///< the first edge that lacks a provider
    Index watching = none;       ///< the first edge that takes whoever comes
  };
  /// Who provides for one edge.
  struct Choice {
    Index recipe = none;
    Index rival = none;  ///< another that would do as well, where there is no filter
  };

  ServiceId add(Blueprint blueprint, Place place, std::uint16_t core,
                const ServiceOptions& options);
  /// Nodes and edges for all recipes, for so many cores, of which `home` has what is shared. All
  /// nodes that there were are forgotten.
  void build(std::size_t cores, std::size_t home);
  /// The same for recipes that were added since, which is returned.
  std::vector<Index> extend();
  /// The same for one of them alone, or for one that was withdrawn.
  void extend_by(Index recipe);
  bool is_pending(Index recipe) const noexcept;
  /// The nodes that came, or whose edges were bound anew, since it was asked last.
  std::vector<Index> take_touched() { return std::exchange(touched_, {}); }
  /// Forgets a recipe with its nodes, all of them down; those whom it provided for get another one
  /// where there is one, else they lack it.
  void remove(Index recipe);
  /// The same, but keeps the recipe, for extend_by() or remove().
  void withdraw(Index recipe);

  /// The recipe behind an id, or nullptr when it was removed.
  Recipe* find(ServiceId id) noexcept;
  Recipe& recipe(Index index) noexcept { return recipes_[index]; }
  const Recipe& recipe(Index index) const noexcept { return recipes_[index]; }
  Index recipe_count() const noexcept { return recipes_.size(); }
  Node& node(Index index) noexcept { return nodes_[index]; }
  const Node& node(Index index) const noexcept { return nodes_[index]; }
  Index node_count() const noexcept { return nodes_.size(); }
  Edge& edge(Index index) noexcept { return edges_[index]; }
  const Edge& edge(Index index) const noexcept { return edges_[index]; }
  const Want& want_of(const Node& node, std::size_t parameter) const;
  /// The nodes that a recipe has by itself, one for each core or one; none if it is by request.
  std::span<Index> slots(const Recipe& recipe) noexcept;
  Index slot_of(const Recipe& recipe, const Node& of) noexcept;
  std::size_t cores() const noexcept { return cores_; }

  Choice choose(const Want& want, const Node& of, Need need) const;
  /// Whether a parameter of that kind can be given what the recipe makes.
  bool visible(const Recipe& provider, const Node& to, Need need) const noexcept;
  /// What an edge's node gets from its provider.
  void* object_for(const Edge& edge) const;

  /// Of a parameter that takes all there are.
  Watch& watch_of(const Edge& edge) const noexcept {
    return *static_cast<Watch*>(static_cast<Providers*>(edge.argument));
  }
  /// Of a Lazy parameter.
  Deferred& deferred_of(const Edge& edge) const noexcept {
    return *static_cast<Deferred*>(edge.argument);
  }
  Need need(const Edge& edge) const noexcept {
    return nodes_[edge.node].recipe->plan->parameters[edge.parameter].need;
  }
  /// Whether its node does not depend on the provider, but takes it while it is there.
  bool is_weak(const Edge& edge) const noexcept { return is_for_any(need(edge)); }
  /// Whether its node does not depend on the provider yet.
  bool is_loose(const Edge& edge) const noexcept { return !edge.firm && need(edge) == Need::lazy; }

  // For a replacement: what a recipe that is not pending any more, and nodes that are not in the
  // slots of their recipe, are made and forgotten by.

  /// Whether that recipe's service is what the edge's parameter wants.
  bool could_provide(const Edge& edge, const Recipe& recipe) const;
  /// Makes the nodes of a pending recipe, which nobody is offered.
  void admit(Index recipe);
  /// Another node like this one.
  Index make_twin(Index node);
  void remove_twin(Index node) { remove_node(node); }
  /// Binds what was made.
  void bind_made();
  /// From now on the fresh recipe is chosen where the old one was.
  void replace(Index old, Index fresh);
  /// The node is its recipe's now, in the place of the other one.
  void set_slot(Index old, Index node);
  /// Links an edge to another provider; counts nothing.
  void rebind(Index edge, Index provider);
  /// A further edge of a parameter that takes all there are.
  Edge& see(Node& node, std::size_t parameter, Index provider);

 private:
  /// A plan and what its types mean here.
  struct Kind {
    const Plan* plan;
    std::vector<Index> types;  ///< of what it provides
    std::vector<Index> wants;  ///< of each parameter
  };
  struct TypeEntry {
    std::vector<Index> recipes;
    std::vector<Index> wants;
  };

  Index kind_of(const Plan& plan);
  Index type_entry(const Type* type);
  Index want(const Type* type, const Filter* filter);
  void join(std::span<const Index> fresh);
  void activate(Index recipe);
  void deactivate(Index recipe);
  bool accepts(const Want& want, const Recipe& recipe) const;

  void make_nodes(Index recipe);
  Index make_node(Index recipe, std::size_t core, Node* owner);
  void remove_node(Index node);
  void drop_edges(Node& node);
  void drop_arguments() noexcept;
  void leave_dependants(Node& node);
  void bind_one(Node& node, Index edge);
  void look_for_provider(Index edge);
  void watch(Node& node, Index edge);
  void forget_seen(Index seen);
  void offer(Index recipe);
  void provide(Index edge, Index recipe);
  bool is_made_for(const Node& node, Index recipe) const noexcept;

  Index& list_of(const Edge& edge) noexcept;
  void link(Index edge) noexcept;
  void note_use(const Edge& edge) noexcept;
  void unlink(Index edge) noexcept;

  std::unordered_map<const Plan*, Index> kind_indices_;
  std::unordered_map<const Type*, Index> type_indices_;
  std::vector<Kind> kinds_;
  std::vector<TypeEntry> types_;
  std::vector<Want> wants_;
  Shelf<Recipe> recipes_;
  Shelf<Index, 4096> slots_;
  Shelf<Node> nodes_;
  Shelf<Edge> edges_;
  std::vector<Index> pending_;  // recipes that are not part of it yet
  std::vector<Index> made_;     // nodes whose edges are not bound yet
  std::vector<Index> touched_;
  std::uint32_t serial_ = 0;
  std::size_t cores_ = 0;
  std::size_t home_ = 0;
};

}  // namespace weir::wiring

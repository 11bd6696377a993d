// Replacing a service while it runs: a second instance of it, and of what depends on it, beside the
// first.
#pragma once

#include <vector>

#include "weir/app/graph.hpp"
#include "weir/app/life.hpp"

namespace weir::wiring {

/// The twins of one recipe's nodes and of all that depend on them, directly or not. Each step is
/// taken while the life of services is at rest, which then has to come to rest again:
///
///   make()         twins are made, bound to each other and to what stays
///   all_up()       whether they run; if not, drop()
///   open_routes()  their routes are served where the old ones have none; else as after all_up()
///   take_routes()  on each core, in one step, theirs are served in the place of the old ones'
///   take_over()    they are what others get, and the old ones are let go
///   bury()         what has stopped is forgotten
///
/// Threads: the home core's.
class Replacement {
 public:
  /// `fresh` was added and is not part of the graph yet.
  Replacement(Graph& graph, Life& life, Index old, Index fresh) noexcept
      : graph_(graph), life_(life), old_(old), fresh_(fresh) {}

  /// Whether the new one can be put beside the old one: both in the same place, not by request, the
  /// old one up, and whoever requires the old one could as well have the new one.
  bool possible();
  void make();
  bool all_up() const;
  /// After a failure: the twins stop; then bury() forgets them, with the fresh recipe.
  void drop();
  void open_routes();
  void take_routes();
  void take_over();
  void bury();

 private:
  struct Pair {
    Index old;
    Index twin;
  };

  void find_dependants();
  void redirect(Index node);
  void move_edges(const Pair& pair);
  bool is_old(Index node) const noexcept { return twin_of(node) != none; }
  Index twin_of(Index node) const noexcept { return node < twins_.size() ? twins_[node] : none; }

  Graph& graph_;
  Life& life_;
  Index old_;
  Index fresh_;
  std::vector<Pair> pairs_;   // those of the recipe itself first
  std::vector<Index> twins_;  // by node; none
  std::vector<Index> seen_;   // by find_dependants()
  bool taken_over_ = false;
};

}  // namespace weir::wiring

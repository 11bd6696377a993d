// Replacement: replaces a running service by new instances that start beside the old ones.
#pragma once

#include <vector>

#include "weir/app/detail/graph/graph.hpp"
#include "weir/app/lifecycle/detail/lifecycle.hpp"

namespace weir::inject {

/// The replacement of one registration's instances and of all their direct and indirect dependants.
/// Each step is taken when the lifecycle has settled, which then has to settle again:
///
///     create_instances()  adds replacement instances, bound to each other and to the services
///                         that stay
///     start()             starts them
///     all_running()       returns true if they run; if not: roll_back()
///     open_routes()       serves those of their routes that the old instances do not have; then
///                         all_running() again
///     take_routes()       replaces the routes of the old instances, in one step on each core
///     commit()            gives the new instances to all others and releases the old ones;
///                         services that waited for the new service start
///     remove_stopped()    removes the stopped instances from the graph
///
/// Threads: the app's core.
class Replacement {
 public:
  /// `fresh` was added and is not part of the graph yet.
  Replacement(Graph& graph, Lifecycle& lifecycle, Index old, Index fresh) noexcept
      : graph_(graph), lifecycle_(lifecycle), old_(old), fresh_(fresh) {}

  /// Returns true if the new service can start beside the old one. Both must have the same
  /// placement, and neither may be made by request. The old one must run, and every requiring
  /// service must be able to take the new one. A service that was not added yet does not run.
  bool is_possible();
  void create_instances();
  void start();
  bool all_running() const;
  /// Returns the instances that keep the replacement from running. They are instances of the new
  /// service, and dependants that wait for a service which is not replaced.
  std::vector<Index> waiting() const;
  /// Stops the replacement instances after a failure. remove_stopped() then removes them together
  /// with the fresh registration.
  void roll_back();
  void open_routes();
  void take_routes();
  void commit();
  void remove_stopped();

 private:
  struct Pair {
    Index old;
    Index replacement;
  };

  void find_dependants();
  bool waits_for_others(const Instance& instance) const;
  void redirect(Index instance);
  void move_dependencies(const Pair& pair);
  void offer_fresh();
  bool is_old(Index instance) const noexcept { return replacement_of(instance) != no_index; }
  Index replacement_of(Index instance) const noexcept {
    return instance < replacements_.size() ? replacements_[instance] : no_index;
  }

  Graph& graph_;
  Lifecycle& lifecycle_;
  Index old_;
  Index fresh_;
  std::vector<Pair> pairs_;          // the registration's own instances first
  std::vector<Index> replacements_;  // by index of the old instance; no_index if there is none
  std::vector<Index> dependants_;    // result of find_dependants()
  std::vector<Index> touched_;       // instances that create_instances() created or bound again
  bool committed_ = false;
};

}  // namespace weir::inject

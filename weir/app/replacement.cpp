#include "weir/app/replacement.hpp"

#include <algorithm>
#include <cassert>

namespace weir::wiring {

bool Replacement::possible() {
  const Recipe& old = graph_.recipe(old_);
  const Recipe& fresh = graph_.recipe(fresh_);
  if (old.by_request || fresh.by_request || old.held) return false;
  if (old.place != fresh.place || old.core != fresh.core || old.seed != fresh.seed) return false;
  for (const Index each : graph_.slots(old)) {
    const Node& node = graph_.node(each);
    if (node.state != State::up) return false;
    for (Index at = node.dependants; at != none; at = graph_.edge(at).next) {
      const Edge& edge = graph_.edge(at);
      if (!graph_.is_weak(edge) && !graph_.could_provide(edge, fresh)) return false;
    }
  }
  return true;
}

void Replacement::make() {
  const std::size_t nodes_before = graph_.node_count();
  find_dependants();
  twins_.assign(nodes_before, none);
  graph_.admit(fresh_);
  const auto old_slots = graph_.slots(graph_.recipe(old_));
  const auto fresh_slots = graph_.slots(graph_.recipe(fresh_));
  for (std::size_t i = 0; i < old_slots.size(); ++i) {
    pairs_.push_back({old_slots[i], fresh_slots[i]});
  }
  for (const Index each : seen_) pairs_.push_back({each, graph_.make_twin(each)});
  for (const Pair& each : pairs_) {
    twins_[each.old] = each.twin;
    Node& twin = graph_.node(each.twin);
    twin.replacing = true;
    twin.asked = true;  // as the old one was, where it waits to be asked for
  }
  graph_.bind_made();
  for (const Index each : graph_.take_touched()) {
    redirect(each);
    life_.look(graph_.node(each));
  }
  life_.run();
}

/// Those that are up, without what is made for one of them alone: its twin gets one of its own.
void Replacement::find_dependants() {
  std::vector<bool> known(graph_.node_count());
  std::vector<Index> way;
  for (const Index each : graph_.slots(graph_.recipe(old_))) way.push_back(each);
  while (!way.empty()) {
    const Node& node = graph_.node(way.back());
    way.pop_back();
    for (Index at = node.dependants; at != none; at = graph_.edge(at).next) {
      const Edge& edge = graph_.edge(at);
      const Node& dependant = graph_.node(edge.node);
      if (graph_.is_weak(edge) || graph_.is_loose(edge)) continue;
      if (dependant.state != State::up || known[edge.node]) continue;
      known[edge.node] = true;
      way.push_back(edge.node);
      if (dependant.owner == nullptr) seen_.push_back(edge.node);
    }
  }
}

/// A node that is new takes twins where there are some.
void Replacement::redirect(Index index) {
  Node& node = graph_.node(index);
  for (std::size_t i = 0; i < node.recipe->plan->parameters.size(); ++i) {
    const Index provider = node.edges[i].provider;
    if (provider == none || !is_old(provider)) continue;
    graph_.rebind(node.first_edge + static_cast<Index>(i), twin_of(provider));
    if (!graph_.is_loose(node.edges[i])) ++node.missing;
  }
}

bool Replacement::all_up() const {
  return std::ranges::all_of(
      pairs_, [&](const Pair& each) { return graph_.node(each.twin).state == State::up; });
}

void Replacement::drop() {
  for (const Pair& each : pairs_) {
    graph_.node(each.twin).demand = 0;
    life_.look(graph_.node(each.twin));
  }
  life_.run();
}

void Replacement::open_routes() {
  for (const Pair& each : pairs_) {
    life_.open_routes(graph_.node(each.twin), graph_.node(each.old));
  }
  life_.run();
}

void Replacement::take_routes() {
  for (const Pair& each : pairs_) life_.take_routes(graph_.node(each.twin));
  life_.run();
}

void Replacement::take_over() {
  taken_over_ = true;
  for (const Pair& each : pairs_) graph_.node(each.twin).replacing = false;
  graph_.replace(old_, fresh_);
  for (const Pair& each : pairs_) {
    if (graph_.node(each.old).recipe_index != old_) graph_.set_slot(each.old, each.twin);
  }
  for (const Pair& each : pairs_) move_edges(each);
  for (const Pair& each : pairs_) {
    graph_.node(each.old).demand = 0;
    life_.look(graph_.node(each.old));
  }
  life_.look_at_touched();
  life_.run();
}

/// Those who stay take the twin: who is not up instead of the old one, who may have any beside it.
void Replacement::move_edges(const Pair& pair) {
  for (Index at = graph_.node(pair.old).dependants; at != none;) {
    const Edge& edge = graph_.edge(at);
    const Index next = edge.next;
    Node& dependant = graph_.node(edge.node);
    if (is_old(edge.node)) {
      // It goes as well.
    } else if (graph_.is_weak(edge)) {
      if (graph_.could_provide(edge, *graph_.node(pair.twin).recipe)) {
        life_.introduce(graph_.see(dependant, edge.parameter, pair.twin));
      }
    } else if (dependant.state == State::waiting || dependant.state == State::failed ||
               graph_.is_loose(edge)) {
      graph_.rebind(at, pair.twin);
    }
    at = next;
  }
}

void Replacement::bury() {
  for (const Pair& each : pairs_) {
    const Index gone = taken_over_ ? each.old : each.twin;
    const Index recipe = graph_.node(gone).recipe_index;
    if (recipe != old_ && recipe != fresh_) graph_.remove_twin(gone);
  }
  graph_.remove(taken_over_ ? old_ : fresh_);
  life_.look_at_touched();
  life_.run();
}

}  // namespace weir::wiring

// The edges of the graph of services: who gets what from whom.
#include <algorithm>
#include <cassert>
#include <utility>

#include "weir/app/graph.hpp"

namespace weir::wiring {

bool Graph::visible(const Recipe& provider, const Node& to, Need need) const noexcept {
  if (provider.seed != nullptr && need != Need::opened) {
    // For an instance of the same scope; nobody else has one.
    if (need != Need::required || provider.seed != to.recipe->seed) return false;
  }
  if (need == Need::remote) {
    return provider.place == Place::on_core && provider.core < cores_ && !provider.by_request;
  }
  switch (provider.place) {
    case Place::shared:
      return true;
    case Place::per_core:
      return !to.roams && to.core < cores_;
    case Place::on_core:
      return !to.roams && to.core == provider.core;
  }
  std::unreachable();
}

Graph::Choice Graph::choose(const Want& want, const Node& of, Need need) const {
  Choice choice;
  for (const Index each : want.recipes) {
    if (!visible(recipes_[each], of, need)) continue;
    if (choice.recipe != none) {
      choice.rival = each;
      break;
    }
    choice.recipe = each;
    if (want.filter != nullptr) break;
  }
  return choice;
}

void* Graph::object_for(const Edge& edge) const {
  const Node& provider = nodes_[edge.provider];
  const Type* const type = want_of(nodes_[edge.node], edge.parameter).type;
  const auto provided = provider.recipe->plan->provided;
  const auto as = std::ranges::find(provided, type, &Provided::type);
  assert(as != provided.end());
  return as->cast(provider.memory);
}

void Graph::bind_made() {
  for (std::size_t i = 0; i < made_.size(); ++i) {  // it grows meanwhile
    Node& node = nodes_[made_[i]];
    const auto parameters = node.recipe->plan->parameters;
    for (std::size_t each = 0; each < parameters.size(); ++each) {
      const Index edge = node.first_edge + static_cast<Index>(each);
      if (is_for_one(parameters[each].need)) bind_one(node, edge);
      if (is_for_any(parameters[each].need)) watch(node, edge);
    }
  }
  touched_.insert(touched_.end(), made_.begin(), made_.end());
  made_.clear();
}

void Graph::bind_one(Node& node, Index index) {
  Edge& edge = edges_[index];
  if (need(edge) == Need::lazy) {
    edge.argument = new Deferred();
  } else {
    ++node.missing;
  }
  look_for_provider(index);
}

/// For an edge that is in no list and lacks a provider: gets it one where there is just one.
void Graph::look_for_provider(Index index) {
  const Edge& edge = edges_[index];
  const Node& node = nodes_[edge.node];
  const Choice choice = choose(want_of(node, edge.parameter), node, need(edge));
  if (choice.recipe != none && choice.rival == none) {
    provide(index, choice.recipe);
  } else {
    link(index);
  }
}

/// For an edge that is in no list and lacks a provider: the recipe's, which it can see.
void Graph::provide(Index index, Index recipe_index) {
  Edge& edge = edges_[index];
  Node& node = nodes_[edge.node];
  const Recipe& recipe = recipes_[recipe_index];
  touched_.push_back(edge.node);
  if (!recipe.by_request) {
    edge.provider = slot_of(recipe, node);
    if (nodes_[edge.provider].state == State::up && !is_loose(edge)) --node.missing;
  } else if (!is_made_for(node, recipe_index)) {
    edge.child = true;
    edge.provider = make_node(recipe_index, node.core, &node);
    if (!is_loose(edge)) {
      --node.missing;
      ++node.absent;
    }
  }
  link(index);
  if (edge.provider == none) return;
  if (nodes_[edge.provider].lazy) touched_.push_back(edge.provider);  // it may sleep no longer
}

/// Whether the node, or one that it is made for, comes from that recipe: it would never end.
bool Graph::is_made_for(const Node& node, Index recipe) const noexcept {
  for (const Node* each = &node; each != nullptr; each = each->owner) {
    if (each->recipe_index == recipe) return true;
  }
  return false;
}

void Graph::watch(Node& node, Index index) {
  Edge& edge = edges_[index];
  edge.argument = static_cast<Providers*>(new Watch());
  link(index);
  for (const Index each : want_of(node, edge.parameter).recipes) {
    if (recipes_[each].by_request || !visible(recipes_[each], node, need(edge))) continue;
    const Index provider = slot_of(recipes_[each], node);
    if (provider != node.index) see(node, edge.parameter, provider);
  }
}

Edge& Graph::see(Node& node, std::size_t parameter, Index provider) {
  const Index index = edges_.take();
  Edge& seen = edges_[index];
  seen.node = node.index;
  seen.parameter = static_cast<std::uint8_t>(parameter);
  seen.provider = provider;
  link(index);
  watch_of(node.edges[parameter]).edges.push_back(index);
  return seen;
}

/// A new recipe for those who lack it or take all there are.
void Graph::offer(Index index) {
  const Recipe& recipe = recipes_[index];
  for (const Index type : kinds_[recipe.kind].types) {
    for (const Index each : types_[type].wants) {
      const Want& want = wants_[each];
      if (!accepts(want, recipe)) continue;
      for (Index edge = want.unbound; edge != none;) {
        const Index next = edges_[edge].next;
        if (visible(recipe, nodes_[edges_[edge].node], need(edges_[edge]))) {
          unlink(edge);
          provide(edge, index);
        }
        edge = next;
      }
      for (Index edge = want.watching; edge != none; edge = edges_[edge].next) {
        Node& node = nodes_[edges_[edge].node];
        if (recipe.by_request || !visible(recipe, node, need(edges_[edge]))) continue;
        const Index provider = slot_of(recipe, node);
        const auto& known = watch_of(edges_[edge]).edges;
        const bool seen =
            std::ranges::any_of(known, [&](Index of) { return edges_[of].provider == provider; });
        if (!seen && provider != node.index) see(node, edges_[edge].parameter, provider);
      }
    }
  }
}

/// Those who had this node as provider look for another.
void Graph::leave_dependants(Node& node) {
  while (node.dependants != none) {
    const Index index = node.dependants;
    Edge& edge = edges_[index];
    Node& dependant = nodes_[edge.node];
    if (is_weak(edge)) {
      std::erase(watch_of(dependant.edges[edge.parameter]).edges, index);
      forget_seen(index);
      continue;
    }
    touched_.push_back(edge.node);
    unlink(index);
    edge.provider = none;
    if (std::exchange(edge.child, false) && !is_loose(edge)) {
      --dependant.absent;
      ++dependant.missing;
    }
    look_for_provider(index);
  }
}

void Graph::forget_seen(Index seen) {
  unlink(seen);
  edges_.give_back(seen);
}

/// Lets go of everything that the node takes.
void Graph::drop_edges(Node& node) {
  const auto parameters = node.recipe->plan->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Index index = node.first_edge + static_cast<Index>(i);
    Edge& edge = edges_[index];
    if (is_for_one(parameters[i].need)) {
      const Index child = edge.child ? edge.provider : none;
      unlink(index);
      if (parameters[i].need == Need::lazy) delete static_cast<Deferred*>(edge.argument);
      edge = Edge();
      if (child != none) remove_node(child);
    } else if (is_for_any(parameters[i].need) && edge.argument != nullptr) {
      Watch& watch = watch_of(edge);
      for (const Index seen : watch.edges) forget_seen(seen);
      unlink(index);
      delete &watch;
      edge.argument = nullptr;
    }
  }
}

Index& Graph::list_of(const Edge& edge) noexcept {
  if (edge.provider != none) return nodes_[edge.provider].dependants;
  Want& want = wants_[kinds_[nodes_[edge.node].recipe->kind].wants[edge.parameter]];
  return is_weak(edge) ? want.watching : want.unbound;
}

void Graph::link(Index index) noexcept {
  Edge& edge = edges_[index];
  Index& head = list_of(edge);
  edge.previous = none;
  edge.next = head;
  if (head != none) edges_[head].previous = index;
  head = index;
  edge.in_scope = edge.provider != none && nodes_[edge.provider].recipe->seed != nullptr;
  if (edge.provider != none) note_use(edge);
}

/// Tells the provider that it has this edge now, by which it may have to sleep until it is asked
/// for. What is there already goes on.
void Graph::note_use(const Edge& edge) noexcept {
  Node& provider = nodes_[edge.provider];
  if (need(edge) == Need::required) provider.required = true;
  if (need(edge) != Need::lazy) return;
  provider.lazy = true;
  if (edge.firm || edge.asked || provider.state != State::waiting) provider.asked = true;
}

void Graph::unlink(Index index) noexcept {
  Edge& edge = edges_[index];
  (edge.previous == none ? list_of(edge) : edges_[edge.previous].next) = edge.next;
  if (edge.next != none) edges_[edge.next].previous = edge.previous;
  edge.next = edge.previous = none;
}

}  // namespace weir::wiring

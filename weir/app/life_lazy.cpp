// The life of services, as far as they are asked for only when they are used: Lazy parameters.
//
// The edge of such a parameter is loose at first: it binds the node to its provider, and neither
// waits for the other. With the first answer it becomes firm, and counts like a required one from
// then on, also in later lives of the node.
#include <algorithm>

#include "weir/app/handles/detail/lazy.hpp"
#include "weir/app/life.hpp"

namespace weir::wiring {

/// Before the node is made: what it has used in an earlier life is there from the beginning.
void Life::renew(Index index) {
  const Edge& edge = graph_.edge(index);
  void* object = nullptr;
  if (edge.firm) {
    ++graph_.node(edge.provider).users;
    object = graph_.object_for(edge);
  }
  order({.kind = Order::Kind::renew,
         .node = &graph_.node(edge.node),
         .edge = index,
         .object = object});
}

void Life::asked(Index index) {
  Edge& edge = graph_.edge(index);
  edge.asked = true;
  graph_.node(edge.node).asks = true;
  answer(index);
}

/// Answers a question if that can be done now, else sees to it that it can be done later.
void Life::answer(Index index) {
  const Edge& edge = graph_.edge(index);
  if (!edge.asked) return;
  const Node& node = graph_.node(edge.node);
  const bool may_wait = running_ && (node.state == State::starting || node.state == State::up);
  if (edge.provider == none) return refuse(index, may_wait ? Errc::not_found : Errc::closed);
  Node& provider = graph_.node(edge.provider);
  if (provider.state == State::up) return give(index);
  if (!may_wait) return refuse(index, Errc::closed);
  if (provider.state == State::failed) return refuse(index, failure_of(provider));
  if (provider.recipe->held) return refuse(index, Errc::not_found);
  const bool demanded = provider.asked && (provider.demand != 0 || !edge.child);
  if (demanded) return;
  provider.asked = true;
  if (edge.child) provider.demand = 1;
  look(provider);
}

/// The node's own questions.
void Life::answer_questions_of(Node& node) {
  node.asks = false;
  const auto parameters = node.recipe->plan->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].need != Need::lazy) continue;
    answer(node.first_edge + static_cast<Index>(i));
    node.asks = node.asks || node.edges[i].asked;
  }
}

/// Of those who wait for this one.
void Life::answer_askers(const Node& provider) {
  if (!provider.lazy) return;
  for (Index each = provider.dependants; each != none; each = graph_.edge(each).next) {
    if (graph_.is_loose(graph_.edge(each))) answer(each);
  }
}

void Life::give(Index index) {
  Edge& edge = graph_.edge(index);
  edge.asked = false;
  edge.firm = true;
  ++graph_.node(edge.provider).users;
  order({.kind = Order::Kind::give,
         .node = &graph_.node(edge.node),
         .edge = index,
         .object = graph_.object_for(edge)});
}

void Life::refuse(Index index, std::error_code error) {
  Edge& edge = graph_.edge(index);
  edge.asked = false;
  graph_.deferred_of(edge).refusal = error;
  order({.kind = Order::Kind::refuse, .node = &graph_.node(edge.node), .edge = index});
}

std::error_code Life::failure_of(const Node& node) const {
  const auto found =
      std::ranges::find(failures_.rbegin(), failures_.rend(), node.index, &Failure::node);
  return found == failures_.rend() ? make_error_code(Errc::not_found) : found->error;
}

/// Whether it was made for those alone who wait for it by a Lazy.
bool Life::is_for_askers(const Node& node) const {
  if (!node.lazy || node.required || node.replacing) return false;
  bool asked = false;
  for (Index each = node.dependants; each != none; each = graph_.edge(each).next) {
    const Edge& edge = graph_.edge(each);
    if (edge.firm) return false;
    asked = asked || edge.asked;
  }
  return asked;
}

}  // namespace weir::wiring

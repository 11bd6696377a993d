#include "weir/app/explain.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace weir::wiring {
namespace {

std::string name_of(const Node& node) {
  return std::string(node.recipe->plan->type->name);
}

ServiceState state_of(const Node& node) {
  switch (node.state) {
    case State::waiting:
    case State::calling:
      return ServiceState::waiting;
    case State::starting:
      return ServiceState::starting;
    case State::up:
      return ServiceState::running;
    case State::leaving:
    case State::stopping:
      return ServiceState::stopping;
    case State::failed:
      return ServiceState::failed;
  }
  std::unreachable();
}

class View {
 public:
  View(const Graph& graph, const Life& life) : graph_(graph), life_(life) {
    Index count = 0;
    for (Index index = 0; index < graph.node_count(); ++index) {
      places_.push_back(graph.node(index).recipe == nullptr ? none : count++);
    }
  }

  Explanation all() const {
    Explanation explanation;
    for (Index index = 0; index < graph_.node_count(); ++index) {
      if (places_[index] != none) explanation.services.push_back(report(graph_.node(index)));
    }
    for (const Life::Failure& each : life_.failures()) {
      if (each.node >= places_.size() || places_[each.node] == none) continue;
      ServiceReport& failed = explanation.services[places_[each.node]];
      if (failed.state == ServiceState::failed) failed.failure = each.why;
    }
    return explanation;
  }

 private:
  ServiceReport report(const Node& node) const {
    ServiceReport report;
    report.name = name_of(node);
    report.id = node.recipe->id(node.recipe_index);
    report.place = node.recipe->place;
    report.core = node.core;
    report.state = state_of(node);
    if (life_.opened() && node.since != Instant{}) {
      report.in_state = life_.home().host().now() - node.since;
    }
    const auto parameters = node.recipe->plan->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Edge& edge = node.edges[i];
      if (is_for_one(parameters[i].need) && edge.provider != none) {
        (graph_.is_loose(edge) ? report.may_use : report.uses).push_back(places_[edge.provider]);
      }
      if (!is_for_any(parameters[i].need)) continue;
      for (const Index seen : graph_.watch_of(edge).edges) {
        report.may_use.push_back(places_[graph_.edge(seen).provider]);
      }
    }
    if (report.state == ServiceState::waiting) report.waits_for = waits_of(node);
    if (node.state == State::leaving) report.waits_for = users_of(node);
    return report;
  }

  std::vector<std::string> waits_of(const Node& node) const {
    std::vector<std::string> waits;
    if (!life_.running()) waits.emplace_back("the app to be started");
    if (node.recipe->held) waits.emplace_back("being started again");
    if (node.demand == 0 && node.owner != nullptr) {
      waits.emplace_back(full_name_of(*node.owner) + " to ask for it");
    } else if (node.demand == 0) {
      waits.emplace_back("the end of a replacement");  // in which it had no part, or has none now
    }
    if (node.demand != 0 && node.sleeps()) waits.emplace_back("somebody to ask for it");
    const auto parameters = node.recipe->plan->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!is_for_one(parameters[i].need) || graph_.is_loose(node.edges[i])) continue;
      const Index provider = node.edges[i].provider;
      if (provider == none) {
        waits.push_back(std::string(graph_.want_of(node, i).type->name) +
                        ", which nobody provides");
      } else if (graph_.node(provider).state != State::up) {
        waits.push_back(full_name_of(graph_.node(provider)));
      }
    }
    return waits;
  }

  std::vector<std::string> users_of(const Node& node) const {
    std::vector<std::string> users;
    for (Index each = node.dependants; each != none; each = graph_.edge(each).next) {
      const Node& user = graph_.node(graph_.edge(each).node);
      const bool down = user.state == State::waiting || user.state == State::calling;
      if (!down && user.state != State::failed) users.push_back(full_name_of(user));
    }
    return users;
  }

  const Graph& graph_;
  const Life& life_;
  std::vector<Index> places_;  // of each node in the explanation
};

}  // namespace

std::string full_name_of(const Node& node) {
  std::string name = name_of(node);
  if (!node.roams) name += " on core " + std::to_string(node.core);
  return name;
}

Explanation explain(const Graph& graph, const Life& life) {
  return View(graph, life).all();
}

std::string tell_failure(const Graph& graph, const Life::Failure& failure) {
  std::string text = failure.name + " could not start: " + failure.why;
  const Node* node = &graph.node(failure.node);
  const Recipe* const recipe = node->recipe;
  if (recipe == nullptr || recipe->id(node->recipe_index) != failure.service) return text;
  constexpr int steps_max = 32;
  for (int steps = 0; steps < steps_max && node->dependants != none; ++steps) {
    const Edge& edge = graph.edge(node->dependants);
    node = &graph.node(edge.node);
    const bool some = graph.is_weak(edge);
    text += (some ? "; used by " : "; required by ") + full_name_of(*node);
    if (some) break;
  }
  return text;
}

}  // namespace weir::wiring

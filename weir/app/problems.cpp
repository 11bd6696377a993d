#include "weir/app/problems.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace weir::wiring {
namespace {

std::string name_of(const Recipe& recipe) {
  return std::string(recipe.plan->type->name);
}

std::string place_of(const Recipe& recipe) {
  switch (recipe.place) {
    case Place::shared:
      return "shared";
    case Place::per_core:
      return "per core";
    case Place::on_core:
      return "on core " + std::to_string(recipe.core);
  }
  std::unreachable();
}

class Inspection {
 public:
  Inspection(const Graph& graph, bool missing_may_come, bool serves_routes)
      : graph_(graph), missing_may_come_(missing_may_come), serves_routes_(serves_routes) {}

  std::vector<std::string> run() {
    for (Index index = 0; index < graph_.recipe_count(); ++index) look_at(graph_.recipe(index));
    for (Index index = 0; index < graph_.node_count(); ++index) {
      if (graph_.node(index).recipe != nullptr) look_at(graph_.node(index));
    }
    find_cycles();
    return std::move(problems_);
  }

 private:
  /// A service on the way that is looked along, and which of its parameters comes next.
  struct Step {
    Index node;
    std::size_t parameter;
  };

  void report(std::string problem) {
    if (known_.insert(problem).second) problems_.push_back(std::move(problem));
  }

  void look_at(const Recipe& recipe) {
    if (recipe.plan == nullptr) return;
    const auto parameters = recipe.plan->parameters;
    if (std::ranges::find(parameters, Need::routes, &Parameter::need) != parameters.end()) {
      look_at_routes(recipe);
    }
    if (recipe.place != Place::on_core) return;
    if (recipe.core < graph_.cores()) return;
    report(name_of(recipe) + " shall be " + place_of(recipe) + ", and there are only " +
           std::to_string(graph_.cores()));
  }

  void look_at_routes(const Recipe& recipe) {
    const std::string asks = name_of(recipe) + " asks for http::Routes, and ";
    if (!serves_routes_) report(asks + "no router is mounted: see App::mount()");
    if (recipe.by_request) {
      report(asks + "is made for each who requires it: let those register routes");
    } else if (recipe.place == Place::on_core) {
      report(asks + "lives " + place_of(recipe) + " alone, where all cores serve: make it shared");
    }
  }

  void look_at(const Node& node) {
    const auto parameters = node.recipe->plan->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (is_for_one(parameters[i].need)) look_at_one(node, i);
      if (parameters[i].need == Need::some && parameters[i].writable) look_at_some(node, i);
      if (parameters[i].need == Need::remote) look_at_remote(node, i);
    }
  }

  void look_at_one(const Node& node, std::size_t index) {
    const Parameter& parameter = node.recipe->plan->parameters[index];
    const Graph::Want& want = graph_.want_of(node, index);
    const Graph::Choice choice = graph_.choose(want, node, parameter.need);
    const std::string needs = name_of(*node.recipe) + " requires " + std::string(want.type->name);
    if (choice.rival != none) {
      report(needs + ", and there are several: " + all_of(want, node, parameter.need) +
             "; a filter may choose");
    } else if (choice.recipe == none && !want.recipes.empty()) {
      const Recipe& other = graph_.recipe(want.recipes.front());
      if (other.seed != nullptr) {
        report(needs + ", which is made for each " + std::string(other.seed->name) +
               ": others open scopes, by Scoped<" + std::string(other.seed->name) + ">");
      } else {
        report(needs + ", which is " + place_of(other) + ", and it is itself " +
               (node.roams ? "shared" : "on core " + std::to_string(node.core)));
      }
    } else if (choice.recipe == none && missing_may_come_) {
      return;
    } else if (choice.recipe == none) {
      report(needs + (want.filter == nullptr ? ", and nobody provides it"
                                             : ", and nobody provides one that its filter takes"));
    } else if (node.edges[index].provider == none) {
      report("these are made for each other without an end: " + name_of(*node.recipe) +
             " by request of itself");
    } else if (parameter.writable && !may_write(graph_.recipe(choice.recipe), node)) {
      report(needs + " to write, and that is shared: take it as const");
    }
  }

  bool may_write(const Recipe& provider, const Node& node) const {
    return provider.by_request ? !node.roams : provider.place != Place::shared;
  }

  void look_at_some(const Node& node, std::size_t index) {
    const Graph::Want& want = graph_.want_of(node, index);
    for (const Index each : want.recipes) {
      if (graph_.recipe(each).place != Place::shared) continue;
      report(name_of(*node.recipe) + " takes " + std::string(want.type->name) + " to write, and " +
             name_of(graph_.recipe(each)) + " is shared: take it as const");
    }
  }

  void look_at_remote(const Node& node, std::size_t index) {
    const Graph::Want& want = graph_.want_of(node, index);
    const Graph::Choice choice = graph_.choose(want, node, Need::remote);
    const std::string calls = name_of(*node.recipe) + " calls " + std::string(want.type->name) +
                              " as one on a core of its own";
    if (choice.rival != none) {
      report(calls + ", and there are several: " + all_of(want, node, Need::remote) +
             "; a filter may choose");
    } else if (choice.recipe == none && !want.recipes.empty()) {
      const Recipe& other = graph_.recipe(want.recipes.front());
      report(calls + ", and that is " + (other.by_request ? "by request" : place_of(other)));
    } else if (choice.recipe == none && !missing_may_come_) {
      report(calls + (want.filter == nullptr ? ", and nobody provides it"
                                             : ", and nobody provides one that its filter takes"));
    }
  }

  std::string all_of(const Graph::Want& want, const Node& node, Need need) const {
    constexpr std::size_t shown_max = 8;
    std::string names;
    std::size_t shown = 0;
    for (const Index each : want.recipes) {
      if (!graph_.visible(graph_.recipe(each), node, need)) continue;
      if (++shown > shown_max) return names + ", ...";
      names += (names.empty() ? "" : ", ") + name_of(graph_.recipe(each));
    }
    return names;
  }

  /// Along required edges, without recursion: chains may be long.
  void find_cycles() {
    enum : std::uint8_t { unseen, on_the_way, done };
    std::vector<std::uint8_t> colours(graph_.node_count(), unseen);
    std::vector<Step> way;
    for (Index root = 0; root < graph_.node_count(); ++root) {
      if (graph_.node(root).recipe == nullptr || colours[root] != unseen) continue;
      colours[root] = on_the_way;
      way.push_back({root, 0});
      while (!way.empty()) {
        Step& step = way.back();
        const Node& node = graph_.node(step.node);
        if (step.parameter == node.recipe->plan->parameters.size()) {
          colours[step.node] = done;
          way.pop_back();
          continue;
        }
        const std::size_t parameter = step.parameter++;
        const Index next = node.edges[parameter].provider;
        if (next == none || colours[next] == done) continue;
        if (colours[next] == on_the_way) {
          report_cycle(way, next);
        } else {
          colours[next] = on_the_way;
          way.push_back({next, 0});
        }
      }
    }
  }

  void report_cycle(const std::vector<Step>& way, Index first) {
    std::string names;
    auto at = std::ranges::find(way, first, &Step::node);
    for (; at != way.end(); ++at) names += name_of(*graph_.node(at->node).recipe) + " -> ";
    report("a cycle: " + names + name_of(*graph_.node(first).recipe));
  }

  const Graph& graph_;
  bool missing_may_come_;
  bool serves_routes_;
  std::vector<std::string> problems_;
  std::unordered_set<std::string> known_;
};

}  // namespace

std::vector<std::string> find_problems(const Graph& graph, bool missing_may_come,
                                       bool serves_routes) {
  return Inspection(graph, missing_may_come, serves_routes).run();
}

}  // namespace weir::wiring

#include "weir/app/graph.hpp"

#include <algorithm>
#include <utility>

namespace weir::wiring {
namespace {

bool is_default(const ServiceOptions& options) {
  const ServiceOptions defaults;
  return options.properties.empty() && options.start_deadline == defaults.start_deadline &&
         options.stop_deadline == defaults.stop_deadline && options.replacing == defaults.replacing;
}

}  // namespace

const ServiceOptions& Recipe::said() const noexcept {
  static const ServiceOptions defaults;
  return options == nullptr ? defaults : *options;
}

Graph::~Graph() {
  drop_arguments();
}

/// All of them, before the edges themselves go.
void Graph::drop_arguments() noexcept {
  for (Index index = 0; index < nodes_.size(); ++index) {
    const Node& node = nodes_[index];
    if (node.recipe == nullptr) continue;
    const auto parameters = node.recipe->plan->parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (is_for_any(parameters[i].need)) delete &watch_of(node.edges[i]);
      if (parameters[i].need == Need::lazy) delete static_cast<Deferred*>(node.edges[i].argument);
    }
  }
}

// --- what is registered --------------------------------------------------------------------------

ServiceId Graph::add(Blueprint blueprint, Place place, std::uint16_t core,
                     const ServiceOptions& options) {
  const Index index = recipes_.take();
  Recipe& recipe = recipes_[index];
  recipe.plan = blueprint.plan;
  recipe.seed = blueprint.seed;
  recipe.factory = std::move(blueprint.factory);
  if (!is_default(options)) recipe.options = std::make_unique<const ServiceOptions>(options);
  recipe.kind = kind_of(*blueprint.plan);
  recipe.serial = ++serial_;
  recipe.place = place;
  recipe.core = core;
  recipe.by_request = std::ranges::any_of(blueprint.plan->parameters, [](const Parameter& each) {
    return each.need == Need::requester;
  });
  pending_.push_back(index);
  return recipe.id(index);
}

Recipe* Graph::find(ServiceId id) noexcept {
  if (id.index() >= recipes_.size()) return nullptr;
  Recipe& recipe = recipes_[id.index()];
  return recipe.plan != nullptr && recipe.serial == id.serial() ? &recipe : nullptr;
}

Index Graph::kind_of(const Plan& plan) {
  const auto [place, fresh] = kind_indices_.try_emplace(&plan, static_cast<Index>(kinds_.size()));
  if (!fresh) return place->second;
  Kind kind{&plan, {}, {}};
  for (const Provided& provided : plan.provided) {
    const Index type = type_entry(provided.type);
    if (std::ranges::find(kind.types, type) == kind.types.end()) kind.types.push_back(type);
  }
  for (const Parameter& each : plan.parameters) {
    kind.wants.push_back(is_for_others(each.need) ? want(each.type, each.filter) : none);
  }
  kinds_.push_back(std::move(kind));
  return place->second;
}

Index Graph::type_entry(const Type* type) {
  const auto [place, fresh] = type_indices_.try_emplace(type, static_cast<Index>(types_.size()));
  if (fresh) types_.emplace_back();
  return place->second;
}

Index Graph::want(const Type* type, const Filter* filter) {
  TypeEntry& entry = types_[type_entry(type)];
  for (const Index each : entry.wants) {
    if (wants_[each].filter == filter) return each;
  }
  const auto index = static_cast<Index>(wants_.size());
  Want want{type, filter, {}};
  for (const Index each : entry.recipes) {
    if (accepts(want, recipes_[each])) want.recipes.push_back(each);
  }
  wants_.push_back(std::move(want));
  entry.wants.push_back(index);
  return index;
}

bool Graph::accepts(const Want& want, const Recipe& recipe) const {
  return want.filter == nullptr || want.filter->accepts(recipe.said().properties);
}

void Graph::activate(Index index) {
  Recipe& recipe = recipes_[index];
  recipe.active = true;
  for (const Index type : kinds_[recipe.kind].types) {
    types_[type].recipes.push_back(index);
    for (const Index each : types_[type].wants) {
      if (accepts(wants_[each], recipe)) wants_[each].recipes.push_back(index);
    }
  }
}

void Graph::deactivate(Index index) {
  for (const Index type : kinds_[recipes_[index].kind].types) {
    std::erase(types_[type].recipes, index);
    for (const Index each : types_[type].wants) std::erase(wants_[each].recipes, index);
  }
  recipes_[index].active = false;
}

const Graph::Want& Graph::want_of(const Node& node, std::size_t parameter) const {
  return wants_[kinds_[node.recipe->kind].wants[parameter]];
}

// --- nodes ---------------------------------------------------------------------------------------

void Graph::build(std::size_t cores, std::size_t home) {
  drop_arguments();
  nodes_.clear();
  edges_.clear();
  slots_.clear();
  for (Want& want : wants_) want.unbound = want.watching = none;
  cores_ = cores;
  home_ = home;
  for (const Index each : std::exchange(pending_, {})) activate(each);
  for (Index index = 0; index < recipes_.size(); ++index) {
    if (recipes_[index].plan != nullptr) make_nodes(index);
  }
  bind_made();
  made_ = {};  // with their memory: there will hardly be so many again
  touched_ = {};
}

std::vector<Index> Graph::extend() {
  std::vector<Index> fresh = std::exchange(pending_, {});
  join(fresh);
  return fresh;
}

void Graph::extend_by(Index recipe) {
  std::erase(pending_, recipe);
  join({&recipe, 1});
}

void Graph::join(std::span<const Index> fresh) {
  for (const Index each : fresh) {
    activate(each);
    make_nodes(each);
  }
  bind_made();
  for (const Index each : fresh) offer(each);
  bind_made();
}

bool Graph::is_pending(Index recipe) const noexcept {
  return std::ranges::find(pending_, recipe) != pending_.end();
}

void Graph::make_nodes(Index index) {
  Recipe& recipe = recipes_[index];
  if (recipe.by_request) return;
  if (recipe.place != Place::per_core) {
    recipe.slots = slots_.take();
    const std::size_t on = recipe.place == Place::shared ? home_ : recipe.core;
    slots_[recipe.slots] = make_node(index, on, nullptr);
    return;
  }
  recipe.slots = slots_.take(cores_);
  for (std::size_t core = 0; core < cores_; ++core) {
    slots_[recipe.slots + static_cast<Index>(core)] = make_node(index, core, nullptr);
  }
}

Index Graph::make_node(Index recipe_index, std::size_t core, Node* owner) {
  const Recipe& recipe = recipes_[recipe_index];
  const std::size_t parameters = recipe.plan->parameters.size();
  const Index index = nodes_.take();
  Node& node = nodes_[index];
  node.recipe = &recipe;
  node.owner = owner;
  node.index = index;
  node.recipe_index = recipe_index;
  node.core = static_cast<std::uint16_t>(core);
  node.demand = owner == nullptr ? 1 : 0;
  node.roams = owner == nullptr ? recipe.place == Place::shared : owner->roams;
  if (parameters != 0) {
    node.first_edge = edges_.take(parameters);
    node.edges = &edges_[node.first_edge];
    for (std::size_t i = 0; i < parameters; ++i) {
      node.edges[i].node = index;
      node.edges[i].parameter = static_cast<std::uint8_t>(i);
    }
  }
  made_.push_back(index);
  return index;
}

std::span<Index> Graph::slots(const Recipe& recipe) noexcept {
  if (recipe.slots == none) return {};
  return {&slots_[recipe.slots], recipe.place == Place::per_core ? cores_ : 1};
}

Index Graph::slot_of(const Recipe& recipe, const Node& of) noexcept {
  return slots_[recipe.slots + (recipe.place == Place::per_core ? of.core : 0U)];
}

void Graph::remove(Index index) {
  std::erase(pending_, index);
  withdraw(index);
  recipes_[index] = Recipe();
  recipes_.give_back(index);
}

void Graph::withdraw(Index index) {
  deactivate(index);
  Recipe& recipe = recipes_[index];
  for (const Index each : slots(recipe)) remove_node(each);
  for (Index each = 0; recipe.by_request && each < nodes_.size(); ++each) {
    if (nodes_[each].recipe == &recipe) remove_node(each);
  }
  bind_made();
  if (recipe.slots != none) {
    slots_.give_back(recipe.slots, recipe.place == Place::per_core ? cores_ : 1);
    recipe.slots = none;
  }
}

void Graph::remove_node(Index index) {
  Node& node = nodes_[index];
  leave_dependants(node);
  drop_edges(node);
  if (node.first_edge != none) {
    edges_.give_back(node.first_edge, node.recipe->plan->parameters.size());
  }
  node = Node();
  nodes_.give_back(index);
}

// --- replacing -----------------------------------------------------------------------------------

bool Graph::could_provide(const Edge& edge, const Recipe& recipe) const {
  const Want& want = want_of(nodes_[edge.node], edge.parameter);
  const auto provided = recipe.plan->provided;
  return std::ranges::find(provided, want.type, &Provided::type) != provided.end() &&
         accepts(want, recipe);
}

void Graph::admit(Index recipe) {
  std::erase(pending_, recipe);
  make_nodes(recipe);
}

Index Graph::make_twin(Index node) {
  return make_node(nodes_[node].recipe_index, nodes_[node].core, nullptr);
}

void Graph::replace(Index old, Index fresh) {
  deactivate(old);
  activate(fresh);
}

void Graph::set_slot(Index old, Index node) {
  const auto slots = this->slots(recipes_[nodes_[old].recipe_index]);
  *std::ranges::find(slots, old) = node;
}

void Graph::rebind(Index edge, Index provider) {
  unlink(edge);
  edges_[edge].provider = provider;
  link(edge);
}

}  // namespace weir::wiring

#include "weir/app/handles/detail/scoped_factory.hpp"

#include <algorithm>

#include "weir/app/node.hpp"

namespace weir::wiring {

ScopedMaker::ScopedMaker(const Plan& plan, const void* factory, void* const* given,
                         const Node& node, const Type* seed, void** arguments,
                         Source* sources) noexcept
    : plan_(plan), factory_(factory), node_(node), arguments_(arguments), sources_(sources) {
  const auto parameters = node.recipe->plan->parameters;
  for (std::size_t i = 0; i + 1 < parameters.size(); ++i) {
    arguments[i] = given[i];
    sources[i] = Source::core;
    if (node.edges[i].in_scope) sources[i] = Source::scope;
    if (parameters[i].need == Need::seed && parameters[i].type == seed) sources[i] = Source::seed;
  }
}

bool ScopedMaker::provides(const Type* type, const Filter* filter) const {
  if (std::ranges::find(plan_.provided, type, &Provided::type) == plan_.provided.end()) {
    return false;
  }
  return filter == nullptr || filter->accepts(node_.recipe->said().properties);
}

void* ScopedMaker::cast(void* memory, const Type* type) const noexcept {
  return std::ranges::find(plan_.provided, type, &Provided::type)->cast(memory);
}

}  // namespace weir::wiring

// Factories of scoped services.
#include "weir/app/handles/detail/scoped_factory.hpp"

#include <algorithm>

#include "weir/app/describe/detail/node.hpp"

namespace weir::inject {

ScopedFactory::ScopedFactory(const TypeDescriptor& descriptor, const void* factory,
                             void* const* given, const Instance& instance, const Type* root,
                             void** arguments, Source* sources) noexcept
    : descriptor_(descriptor),
      factory_(factory),
      instance_(instance),
      arguments_(arguments),
      sources_(sources) {
  const auto parameters = instance.registration->descriptor->parameters;
  for (std::size_t i = 0; i + 1 < parameters.size(); ++i) {
    arguments[i] = given[i];
    sources[i] = Source::core;
    if (instance.dependencies[i].in_scope) sources[i] = Source::scope;
    if (parameters[i].kind == DependencyKind::root && parameters[i].type == root)
      sources[i] = Source::root;
  }
}

bool ScopedFactory::provides(const Type* type, const Filter* filter) const {
  if (std::ranges::find(descriptor_.provided, type, &ProvidedType::type) ==
      descriptor_.provided.end()) {
    return false;
  }
  return filter == nullptr ||
         filter->accepts(instance_.registration->effective_options().properties);
}

void* ScopedFactory::cast(void* memory, const Type* type) const noexcept {
  return std::ranges::find(descriptor_.provided, type, &ProvidedType::type)->cast(memory);
}

}  // namespace weir::inject

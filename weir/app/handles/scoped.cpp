// Open scopes: making, finding and destroying their instances.
#include "weir/app/handles/scoped.hpp"

#include <array>
#include <new>
#include <optional>
#include <utility>

#include "weir/app/describe/detail/node.hpp"
#include "weir/base/detail/block_pool.hpp"

namespace weir::inject {

struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) ScopeBase::InstanceHeader {
  InstanceHeader(const ScopedFactory& of, InstanceHeader* last) noexcept
      : scoped_factory(of), before(last) {}
  void* memory() noexcept { return this + 1; }

  const ScopedFactory& scoped_factory;
  InstanceHeader* before;
  /// Keeps the scoped factory of an instance that was requested directly. The factory of an
  /// instance that another instance needs is kept by the factory of the latter.
  std::optional<ProviderRef> use;
};

ScopeBase::~ScopeBase() {
  destroy_back_to(nullptr);
}

/// Destroys all instances before it releases the factories. An argument of an instance may stop as
/// soon as no scoped factory is in use.
void ScopeBase::destroy_back_to(const InstanceHeader* kept) noexcept {
  for (InstanceHeader* each = last_; each != kept; each = each->before) {
    each->scoped_factory.descriptor().destroy(each->memory());
  }
  while (last_ != kept) {
    const BlockPtr<InstanceHeader> ends_here(std::exchange(last_, last_->before));
  }
}

Result<void*> ScopeBase::get(const Type* type, const Filter* filter) {
  CountedProvider* chosen = nullptr;
  for (void* const each : factories_.objects) {
    auto& provider = *static_cast<CountedProvider*>(each);
    if (!static_cast<ScopedFactory*>(provider.object())->provides(type, filter)) continue;
    if (chosen != nullptr) return fail(Errc::conflict);
    chosen = &provider;
    if (filter != nullptr) break;
  }
  // An existing instance is kept, also if its factory leaves or is replaced.
  InstanceHeader* instance = last_;
  while (instance != nullptr && !instance->scoped_factory.provides(type, filter)) {
    instance = instance->before;
  }
  if (instance == nullptr && chosen == nullptr) return fail(Errc::not_found);
  if (instance == nullptr) {
    WEIR_TRY(InstanceHeader * made, make_all(*chosen));
    instance = made;
  }
  return instance->scoped_factory.cast(instance->memory(), type);
}

/// Makes an instance and the instances of this scope that it needs. All of them are destroyed if
/// one fails, because no factory reference would keep them.
Result<ScopeBase::InstanceHeader*> ScopeBase::make_all(CountedProvider& provider) {
  const InstanceHeader* const before = last_;
  try {
    const Result<InstanceHeader*> made =
        make(*static_cast<const ScopedFactory*>(provider.object()), &provider);
    if (!made) destroy_back_to(before);
    return made;
  } catch (...) {
    destroy_back_to(before);
    throw;
  }
}

ScopeBase::InstanceHeader* ScopeBase::find(const ScopedFactory& scoped_factory) const noexcept {
  InstanceHeader* each = last_;
  while (each != nullptr && &each->scoped_factory != &scoped_factory) each = each->before;
  return each;
}

/// Makes an instance, after the instances of this scope that it needs.
Result<ScopeBase::InstanceHeader*> ScopeBase::make(const ScopedFactory& scoped_factory,
                                                   CountedProvider* used) {
  const TypeDescriptor& descriptor = scoped_factory.descriptor();
  std::array<void*, parameters_max> arguments;
  for (std::size_t i = 0; i < descriptor.parameters.size(); ++i) {
    arguments[i] = scoped_factory.argument(i);
    if (scoped_factory.source(i) == ScopedFactory::Source::root) arguments[i] = root_;
    if (scoped_factory.source(i) != ScopedFactory::Source::scope) continue;
    const auto& other = *static_cast<const ScopedFactory*>(arguments[i]);
    InstanceHeader* needed = find(other);
    if (needed == nullptr) {
      const Result<InstanceHeader*> made = make(other, nullptr);
      if (!made) return made;
      needed = *made;
    }
    arguments[i] = other.cast(needed->memory(), descriptor.parameters[i].type);
  }
  void* const block = BlockPool::allocate(sizeof(InstanceHeader) + descriptor.size);
  BlockPtr<InstanceHeader> instance(::new (block) InstanceHeader(scoped_factory, last_));
  if (used != nullptr) instance->use.emplace(*used, nullptr);
  if (const auto made =
          descriptor.make(instance->memory(), scoped_factory.factory(), arguments.data());
      !made) {
    return fail(made.error());
  }
  last_ = instance.release();
  return last_;
}

}  // namespace weir::inject

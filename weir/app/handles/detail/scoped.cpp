#include "weir/app/scoped.hpp"

#include <array>
#include <new>
#include <optional>
#include <utility>

#include "weir/app/node.hpp"
#include "weir/base/detail/block_pool.hpp"

namespace weir::wiring {

struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) OpenScope::Instance {
  Instance(const ScopedMaker& of, Instance* last) noexcept : maker(of), before(last) {}
  void* memory() noexcept { return this + 1; }

  const ScopedMaker& maker;
  Instance* before;
  /// Keeps the maker. One that another maker needs is kept by that one.
  std::optional<ProviderUse> use;
};

OpenScope::~OpenScope() {
  destroy_back_to(nullptr);
}

/// First all of them, since what they have been given may stop as soon as nobody uses a maker.
void OpenScope::destroy_back_to(const Instance* kept) noexcept {
  for (Instance* each = last_; each != kept; each = each->before) {
    each->maker.plan().destroy(each->memory());
  }
  while (last_ != kept) {
    const BlockPtr<Instance> ends_here(std::exchange(last_, last_->before));
  }
}

Result<void*> OpenScope::get(const Type* type, const Filter* filter) {
  UsedProvider* chosen = nullptr;
  for (void* const each : makers_.objects) {
    auto& provider = *static_cast<UsedProvider*>(each);
    if (!static_cast<ScopedMaker*>(provider.object())->provides(type, filter)) continue;
    if (chosen != nullptr) return fail(Errc::conflict);
    chosen = &provider;
    if (filter != nullptr) break;
  }
  // Who has one keeps it, also while its maker goes, or is replaced.
  Instance* instance = last_;
  while (instance != nullptr && !instance->maker.provides(type, filter)) {
    instance = instance->before;
  }
  if (instance == nullptr && chosen == nullptr) return fail(Errc::not_found);
  if (instance == nullptr) {
    const Result<Instance*> made = make_all(*chosen);
    if (!made) return fail(made.error());
    instance = *made;
  }
  return instance->maker.cast(instance->memory(), type);
}

/// With what it needs of this scope. Without it nothing stays of that, which nobody would keep.
Result<OpenScope::Instance*> OpenScope::make_all(UsedProvider& provider) {
  const Instance* const before = last_;
  try {
    const Result<Instance*> made =
        make(*static_cast<const ScopedMaker*>(provider.object()), &provider);
    if (!made) destroy_back_to(before);
    return made;
  } catch (...) {
    destroy_back_to(before);
    throw;
  }
}

OpenScope::Instance* OpenScope::find(const ScopedMaker& maker) const noexcept {
  Instance* each = last_;
  while (each != nullptr && &each->maker != &maker) each = each->before;
  return each;
}

/// What it needs of this scope comes first.
Result<OpenScope::Instance*> OpenScope::make(const ScopedMaker& maker, UsedProvider* used) {
  const Plan& plan = maker.plan();
  std::array<void*, parameters_max> arguments;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    arguments[i] = maker.argument(i);
    if (maker.source(i) == ScopedMaker::Source::seed) arguments[i] = seed_;
    if (maker.source(i) != ScopedMaker::Source::scope) continue;
    const auto& other = *static_cast<const ScopedMaker*>(arguments[i]);
    Instance* needed = find(other);
    if (needed == nullptr) {
      const Result<Instance*> made = make(other, nullptr);
      if (!made) return made;
      needed = *made;
    }
    arguments[i] = other.cast(needed->memory(), plan.parameters[i].type);
  }
  void* const block = BlockPool::allocate(sizeof(Instance) + plan.bytes);
  BlockPtr<Instance> instance(::new (block) Instance(maker, last_));
  if (used != nullptr) instance->use.emplace(*used, nullptr);
  if (const auto made = plan.make(instance->memory(), maker.factory(), arguments.data()); !made) {
    return fail(made.error());
  }
  last_ = instance.release();
  return last_;
}

}  // namespace weir::wiring

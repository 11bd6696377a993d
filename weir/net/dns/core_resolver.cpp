// The resolvers that the cores of a program have without asking: one for each.
#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>
#include <vector>

#include "weir/loop/loop_group.hpp"
#include "weir/net/resolver.hpp"

namespace weir::names {
namespace {

/// Each is touched by its loop alone.
class CoreResolvers final : public LoopGroup::Shared {
 public:
  explicit CoreResolvers(std::size_t cores) : resolvers_(cores) {}

  Resolver& of(std::size_t core) {
    assert(core < resolvers_.size());
    auto& resolver = resolvers_[core];
    if (resolver == nullptr) resolver = std::make_unique<Resolver>();
    return *resolver;
  }

 private:
  std::vector<std::unique_ptr<Resolver>> resolvers_;
};

}  // namespace

Resolver& core_resolver(Loop& loop) {
  const auto make = [](Host&, LoopGroup& group) -> std::unique_ptr<LoopGroup::Shared> {
    // A loop without a runtime is alone, and not in the list.
    return std::make_unique<CoreResolvers>(std::max<std::size_t>(group.loops().size(), 1));
  };
  auto& shared = loop.group().shared(LoopGroup::Keeper::resolvers, loop.host(), make);
  return static_cast<CoreResolvers&>(shared).of(loop.core());
}

Task<Result<std::vector<Endpoint>>> resolve(std::string name, std::uint16_t port) {
  const Context context = co_await this_context();
  co_return co_await core_resolver(*context.loop).resolve(std::move(name), port);
}

}  // namespace weir::names

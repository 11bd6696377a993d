// The default resolvers of the cores, one for each core.
#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>
#include <vector>

#include "weir/loop/detail/loop_group.hpp"
#include "weir/net/dns/resolver.hpp"

namespace weir::dns {
namespace {

/// The resolvers by core. Each resolver is used only by the loop of its core.
class CoreResolvers final : public LoopGroup::SharedState {
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
  const auto make = [](Platform&, LoopGroup& group) -> std::unique_ptr<LoopGroup::SharedState> {
    // A loop without a runtime is the only one, and is not in the list.
    return std::make_unique<CoreResolvers>(std::max<std::size_t>(group.loops().size(), 1));
  };
  auto& shared = loop.group().shared(LoopGroup::SharedSlot::resolvers, loop.platform(), make);
  return static_cast<CoreResolvers&>(shared).of(loop.core());
}

Task<Result<std::vector<Endpoint>>> resolve(std::string name, std::uint16_t port) {
  const Context context = co_await this_context();
  co_return co_await core_resolver(*context.loop).resolve(std::move(name), port);
}

}  // namespace weir::dns

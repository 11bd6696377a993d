// The default resolvers of the cores, one for each core.
#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>
#include <vector>

#include "weir/net/dns/resolver.hpp"

namespace weir::dns {
namespace {

/// The resolvers by core. Each resolver is used only by the loop of its core.
class CoreResolvers {
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
  // A loop without a runtime is the only one, and is not in the list.
  const std::size_t cores = std::max<std::size_t>(loop.group().loops().size(), 1);
  return loop.group().slots().get<CoreResolvers>(cores).of(loop.core());
}

Task<Result<std::vector<Endpoint>>> resolve(std::string name, std::uint16_t port) {
  const Context context = co_await this_context();
  co_return co_await core_resolver(*context.loop).resolve(std::move(name), port);
}

}  // namespace weir::dns

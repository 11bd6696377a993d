#include "weir/runtime/pool/detail/shared_pool.hpp"

#include <memory>

namespace weir {

BlockingPoolOptions SharedPool::options() {
  BlockingPoolOptions options;
  options.name = "weir-pool";
  return options;
}

PoolLaneOptions SharedPool::files() {
  PoolLaneOptions options;
  options.name = "files";
  options.priority = 1;
  options.share = 0.9;  // one thread at least is left to others
  options.beside = 1;   // and one to files
  return options;
}

SharedPool& shared_pool(Loop& loop) {
  const auto make = [](Host& host, LoopGroup&) -> std::unique_ptr<LoopGroup::Shared> {
    return std::make_unique<SharedPool>(host);
  };
  return static_cast<SharedPool&>(loop.group().shared(LoopGroup::Keeper::pool, loop.host(), make));
}

const SharedPool* shared_pool_if_made(Loop& loop) noexcept {
  return static_cast<const SharedPool*>(loop.group().shared_if_made(LoopGroup::Keeper::pool));
}

}  // namespace weir

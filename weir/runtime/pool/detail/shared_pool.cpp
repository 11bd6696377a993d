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
  options.share_max = 0.9;       // leaves at least one thread to other work
  options.reserved_threads = 1;  // reserves one for files
  return options;
}

SharedPool& shared_pool(Loop& loop) {
  const auto make = [](Platform& platform, LoopGroup&) -> std::unique_ptr<LoopGroup::SharedState> {
    return std::make_unique<SharedPool>(platform);
  };
  return static_cast<SharedPool&>(
      loop.group().shared(LoopGroup::SharedSlot::pool, loop.platform(), make));
}

const SharedPool* find_shared_pool(Loop& loop) noexcept {
  return static_cast<const SharedPool*>(loop.group().find_shared(LoopGroup::SharedSlot::pool));
}

}  // namespace weir

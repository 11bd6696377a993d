#include "weir/runtime/pool/detail/shared_pool.hpp"

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
  return loop.group().slots().get<SharedPool>(loop.platform());
}

}  // namespace weir

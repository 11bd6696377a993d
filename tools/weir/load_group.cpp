// The common start of the threads of a load.
#include "tools/weir/load_group.hpp"

#include <functional>

#include "weir/loop/loop.hpp"
#include "weir/runtime/on_core.hpp"

namespace weir::bench {

Task<Instant> LoadGroup::wait_until_all_connected() {
  return on_core(0, arrive, std::ref(*this));
}

Task<Instant> LoadGroup::arrive(LoadGroup& group) {
  const Context context = co_await this_context();
  group.connected_.count_down();
  std::ignore = co_await group.connected_.wait();
  if (group.start_ == Instant{}) group.start_ = context.loop->platform().now();
  co_return group.start_;
}

}  // namespace weir::bench

#include "weir/web/proxy/detail/upstream_plan.hpp"

#include <algorithm>
#include <cstdint>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/runtime/checks/machine_checks.hpp"

namespace weir::http {
namespace {

/// Returns the descriptors that a core may use for upstreams.
std::size_t descriptors_of_core(Loop& loop, std::size_t cores) {
  const std::size_t all = loop.platform().descriptor_limit().descriptors_max;
  const std::size_t taken = checks::descriptors_reserved + ConnectionReserve::sum_of(loop).load();
  return (all - std::min(all, taken)) / 2 / cores;
}

}  // namespace

UpstreamPlan::Share UpstreamPlan::share_of(Loop& loop, std::size_t upstreams,
                                           const ReverseProxyOptions& options) {
  const std::lock_guard lock(mutex_);
  if (reserve_) return share_;
  const std::size_t cores = std::max<std::size_t>(loop.group().loops().size(), 1);
  const std::size_t all = descriptors_of_core(loop, cores);
  const ClientLimits& limits = options.client.limits;
  // One socket of each kind works also on a machine without descriptors to spare.
  share_.websockets = std::min(options.websockets_max, std::max<std::size_t>(all / 2, 1));
  const std::size_t left = std::max<std::size_t>(all - std::min(all, share_.websockets), 1);
  const std::uint64_t of_origins =
      weir::detail::product(limits.connections_per_origin_max, upstreams);
  share_.connections =
      static_cast<std::size_t>(std::min<std::uint64_t>({limits.connections_max, of_origins, left}));
  reserve_.emplace(cores * (share_.connections + share_.websockets));
  return share_;
}

}  // namespace weir::http

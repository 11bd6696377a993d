// UpstreamPlan: the sockets that a reverse proxy may open to its upstreams.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "weir/http/server/detail/connection_reserve.hpp"
#include "weir/loop/loop.hpp"
#include "weir/web/proxy/reverse_proxy.hpp"

namespace weir::http {

/// The plan of one proxy on all cores. Its sockets are at most half of the descriptors that no
/// other part of the runtime has reserved. Servers without a limit of connections leave them free,
/// so that each of their clients can have an upstream. Threads: any. Lifetime: it outlives the
/// reserves in use.
class UpstreamPlan {
 public:
  /// The sockets of one core.
  struct Share {
    std::size_t connections;  ///< of requests
    std::size_t websockets;
  };

  /// Returns the share of each core. The first call makes the plan.
  Share share_of(Loop& loop, std::size_t upstreams, const ReverseProxyOptions& options);
  /// Returns the descriptors of the plan, after share_of().
  ConnectionReserve& reserve() noexcept { return *reserve_; }

 private:
  std::mutex mutex_;  // guards the members below until the plan is made
  Share share_{};
  std::optional<ConnectionReserve> reserve_;
};

}  // namespace weir::http

// The servers of one core.
#pragma once

#include "weir/base/detail/list.hpp"
#include "weir/http/server/detail/server_state.hpp"

namespace weir::http {

/// The servers of one core, for reports. It is a slot of the loop.
struct CoreServers {
  weir::detail::List<ServerState> servers;
};

}  // namespace weir::http

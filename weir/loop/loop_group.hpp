// What the loops of one runtime share about listening.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/loop/host.hpp"

namespace weir {

/// Lets the loops of one runtime listen on one address, also where the host chooses the port: the
/// first loop that asks for port 0 gets a free one, the others get the same. Threads: any.
class LoopGroup {
 public:
  /// Called once for each address that was asked for, with the one that is listened on; on the
  /// thread of the first loop that did. Set before the loops run.
  std::function<void(const os::Address& bound)> on_listening;

  /// Host::listen() for one loop of the group.
  Result<Descriptor> listen(Host& host, const os::Address& address, const ListenOptions& options);

 private:
  struct Listening {
    os::Address asked;
    os::Address bound;
  };
  std::mutex mutex_;
  std::vector<Listening> listening_;
};

}  // namespace weir

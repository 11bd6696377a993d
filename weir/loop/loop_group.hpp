// What the loops of one runtime share: where they listen, and each other.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/loop/host.hpp"

namespace weir {

/// Lets the loops of one runtime find each other, and listen on one address, also where the host
/// chooses the port: the first loop that asks for port 0 gets a free one, the others get the same.
/// Threads: any, but for the functions that say otherwise.
class LoopGroup {
 public:
  /// Called once for each address that was asked for, with the one that is listened on; on the
  /// thread of the first loop that did. Set before the loops run.
  std::function<void(const os::Address& bound)> on_listening;

  /// Host::listen() for one loop of the group.
  Result<Descriptor> listen(Host& host, const os::Address& address, const ListenOptions& options);

  /// Why listening failed last, for people ("cannot listen on [::]:80: Permission denied"); empty
  /// when it never did.
  std::string failure() const;

  /// All loops, by their core; set before they run. A loop without a runtime is alone in its group.
  std::span<Loop* const> loops() const noexcept { return loops_; }
  void set_loops(std::vector<Loop*> loops) { loops_ = std::move(loops); }

 private:
  Result<Descriptor> open(Host& host, const os::Address& address, const ListenOptions& options);

  struct Listening {
    os::Address asked;
    os::Address bound;
  };
  std::vector<Loop*> loops_;
  mutable std::mutex mutex_;
  std::vector<Listening> listening_;
  std::string failure_;
};

}  // namespace weir

// What the loops of one runtime share: where they listen, and each other.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/loop/balance.hpp"
#include "weir/loop/host.hpp"
#include "weir/loop/shared_listener.hpp"

namespace weir {

/// Lets the loops of one runtime find each other, and listen on one address, also where the host
/// chooses the port: the first loop that asks for port 0 gets a free one, the others get the same.
/// Of a TCP port each loop has a listener of its own; a Unix socket they share.
/// Threads: any, but for the functions that say otherwise.
class LoopGroup {
 public:
  /// Called once for each address that was asked for, with the one that is listened on, or where
  /// datagrams are heard on a shared port; on the thread of the first loop that did. Set before the
  /// loops run.
  std::function<void(const os::Address& bound)> on_listening;

  /// A listener of one loop.
  struct Listener {
    Descriptor descriptor;
    /// Where the loops share one socket: to be kept until `descriptor` is closed.
    std::shared_ptr<SharedListener> shared = {};
    /// How its loops keep even on this address; nullptr where there is but one. Lives as long as
    /// the group.
    Balance* balance = nullptr;
  };

  /// Host::listen() for one loop of the group.
  Result<Listener> listen(Host& host, const os::Address& address, const ListenOptions& options);

  /// Host::open_datagrams() for one loop of the group. With `reuse_port` its loops share the port
  /// of one address, but with nobody else.
  Result<Descriptor> open_datagrams(Host& host, const DatagramOptions& options);

  /// Why listening failed last, for people ("cannot listen on [::]:80: Permission denied"); empty
  /// when it never did.
  std::string failure() const;

  /// What the servers on these loops have open together, so that a limit of the process is one
  /// limit, however unevenly connections fall on cores. Relaxed: only the count matters.
  std::atomic<std::size_t> connections{0};

  /// What a higher floor keeps for all loops of a group; it goes with the group.
  class Shared {
   public:
    virtual ~Shared() = default;
  };
  /// Who keeps one: weir/cores/shared_pool, weir/net/core_resolver.
  enum class Keeper : std::uint8_t { pool, resolvers };
  /// That of this group, made by the first call.
  Shared& shared(Keeper keeper, Host& host, std::unique_ptr<Shared> (*make)(Host&, LoopGroup&)) {
    Kept& kept = kept_[static_cast<std::size_t>(keeper)];
    std::call_once(kept.made, [&] { kept.shared = make(host, *this); });
    return *kept.shared;
  }

  /// All loops, by their core; set before they run. A loop without a runtime is alone in its group.
  std::span<Loop* const> loops() const noexcept { return loops_; }
  void set_loops(std::vector<Loop*> loops) { loops_ = std::move(loops); }

 private:
  Result<Listener> open(Host& host, const os::Address& address, const ListenOptions& options);
  Balance* balance_on(const os::Address& bound);

  struct Listening {
    os::Address asked;
    os::Address bound;
    std::weak_ptr<SharedListener> shared;  // for a Unix socket
  };
  Result<Listener> open_another(Host& host, const Listening& first, const ListenOptions& options);

  struct Bound {
    os::Address asked;
    os::Address bound;
  };

  std::vector<Loop*> loops_;
  mutable std::mutex mutex_;
  std::vector<Listening> listening_;
  struct Balanced {
    os::Address bound;
    std::unique_ptr<Balance> balance;
  };
  std::vector<Balanced> balanced_;  // they stay: other loops may know them
  std::vector<Bound> datagrams_;
  std::string failure_;

  struct Kept {
    std::once_flag made;
    std::unique_ptr<Shared> shared;
  };
  std::array<Kept, 2> kept_;  // by Keeper
};

}  // namespace weir

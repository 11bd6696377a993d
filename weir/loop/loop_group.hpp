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
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/loop/balance.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/shared_listener.hpp"
#include "weir/loop/slow_turns.hpp"

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
    /// Where other loops or processes have the socket too: to be kept until `descriptor` is closed.
    std::shared_ptr<SharedListener> shared = {};
    /// Further sockets of the address that this loop is to accept from: where more were inherited
    /// than there are loops.
    std::vector<std::shared_ptr<SharedListener>> further = {};
    /// How its loops keep even on this address; nullptr where there is but one. Lives as long as
    /// the group.
    Balance* balance = nullptr;
  };

  /// Host::listen() for one loop of the group.
  Result<Listener> listen(Host& host, const os::Address& address, const ListenOptions& options);

  /// Listening sockets that were opened before this runtime began, for their addresses: instead of
  /// opening one, a loop gets its even share of them, the same address with port 0 too. Before the
  /// loops run.
  void inherit(std::vector<std::shared_ptr<SharedListener>> sockets);
  /// Every listener is a SharedListener from now on, so that listeners() has all. Before the loops
  /// run.
  void keep_listeners() noexcept { keeps_listeners_ = true; }
  /// Those that are open now.
  std::vector<std::shared_ptr<SharedListener>> listeners() const;
  /// Called when no loop accepts any more from a socket; on that loop's thread.
  std::function<void()> on_stopped;
  /// Called when a listener is asked to accept for the first time and no inherited socket is left
  /// that somebody awaits; on its loop's thread.
  std::function<void()> on_accepting;
  /// For listeners, then: of their sockets `awaited` are.
  void asked_to_accept(std::size_t awaited);
  /// Where nobody listens yet of what is awaited, for people: "[::]:80, [::]:443".
  std::string awaited() const;

  /// Host::open_datagrams() for one loop of the group. With `reuse_port` its loops share the port
  /// of one address, but with nobody else; in a process that took sockets over, with the older one
  /// too, and after share_ports() with every process of this user that shares it.
  Result<Descriptor> open_datagrams(Host& host, const DatagramOptions& options);
  /// This process is one of several of a service, which share ports for datagrams that were named.
  /// Before the loops run.
  void share_ports() noexcept { shares_ports_ = true; }

  /// For who gives up: that `what` ("listen on", "bind to") has failed there.
  void note_failure(std::string_view what, const os::Address& address, std::error_code error);
  /// What was noted last, for people ("cannot listen on [::]:80: Permission denied"); empty when
  /// nothing was.
  std::string failure() const;

  /// What the servers on these loops have open together, so that a limit of the process is one
  /// limit, however unevenly connections fall on cores. Relaxed: only the count matters.
  std::atomic<std::size_t> connections{0};

  /// What has made turns of these loops slow.
  SlowTurns& slow_turns() noexcept { return slow_turns_; }

  /// What a higher floor keeps for all loops of a group; it goes with the group.
  class Shared {
   public:
    virtual ~Shared() = default;
  };
  /// Who keeps one: weir/cores/shared_pool, weir/net/core_resolver.
  enum class Keeper : std::uint8_t { pool, resolvers };
  /// That of this group, made by the first call.
  Shared& shared(Keeper keeper, Host& host, std::unique_ptr<Shared> (*make)(Host&, LoopGroup&)) {
    Owned& kept = owned_[static_cast<std::size_t>(keeper)];
    std::call_once(kept.once, [&] {
      kept.shared = make(host, *this);
      // release, with the acquire below: who finds it finds it made.
      kept.made.store(kept.shared.get(), std::memory_order_release);
    });
    return *kept.shared;
  }
  /// The same, or nullptr where nobody has asked for it yet.
  Shared* shared_if_made(Keeper keeper) const noexcept {
    return owned_[static_cast<std::size_t>(keeper)].made.load(std::memory_order_acquire);
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
    std::weak_ptr<SharedListener> shared = {};                    // one that loops can share
    std::vector<std::shared_ptr<SharedListener>> inherited = {};  // that no loop has yet
    std::size_t loops = 0;                                        // that have had some
    std::vector<std::weak_ptr<SharedListener>> given = {};        // which they have
  };
  Listening* find(const os::Address& asked);
  Listening* find_inherited(const os::Address& asked);
  Result<Listener> open_first(Host& host, const os::Address& asked, const ListenOptions& options);
  Result<Listener> open_another(Host& host, Listening& first, const ListenOptions& options);
  Result<Listener> give_inherited(Listening& listening);
  static std::shared_ptr<SharedListener> next_to_share(Listening& listening);
  Result<std::shared_ptr<SharedListener>> keep(Host& host, const Descriptor& listener,
                                               const os::Address& bound);

  struct Bound {
    os::Address asked;
    os::Address bound;
  };

  std::vector<Loop*> loops_;
  mutable std::mutex mutex_;
  std::vector<Listening> listening_;
  std::vector<std::shared_ptr<SharedListener>> inherited_;  // that nobody has asked for yet
  mutable std::vector<std::weak_ptr<SharedListener>> kept_;
  bool keeps_listeners_ = false;
  std::size_t awaited_ = 0;  // sockets that have not been asked to accept
  bool takes_over_ = false;  // from an older process
  bool shares_ports_ = false;
  struct Balanced {
    os::Address bound;
    std::unique_ptr<Balance> balance;
  };
  std::vector<Balanced> balanced_;  // they stay: other loops may know them
  std::vector<Bound> datagrams_;
  std::string failure_;
  SlowTurns slow_turns_;

  struct Owned {
    std::once_flag once;
    std::unique_ptr<Shared> shared;
    std::atomic<Shared*> made{nullptr};
  };
  std::array<Owned, 2> owned_;  // by Keeper
};

}  // namespace weir

// The addresses that the loops of one runtime listen on, and the sockets that it inherited.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/network.hpp"
#include "weir/loop/detail/listen/held_addresses.hpp"
#include "weir/loop/detail/listen/shared_listener.hpp"

namespace weir::loop {

/// A ListenerRegistry holds the addresses that the loops of one runtime listen on, and opens the
/// socket of each loop. The platform may choose the port: the first loop that listens on port 0
/// gets a free port, and the others get the same one. A loop that listens on port 0 again, while it
/// has its first listener, gets a second port. The second call of each other loop gets the second
/// port too. Each loop has a listener of its own for a TCP port; the loops share a Unix socket.
/// Inherited sockets are shared out evenly.
/// Threads: any, except where a function documents other threads.
class ListenerRegistry {
 public:
  /// Called once for each requested address of a listener, with the bound address. It is called on
  /// the thread of the first loop that listens there. Set it before the loops run.
  std::function<void(const os::Address& bound)> on_listening;
  /// Called in the same way for a port of datagrams that loops share.
  std::function<void(const os::Address& bound)> on_receiving;

  /// The listener of one loop.
  struct Listener {
    Descriptor descriptor;
    /// The socket, if other loops or processes have it too. The owner keeps it until `descriptor`
    /// is closed.
    std::shared_ptr<SharedListener> shared = {};
    /// More sockets of the address that this loop must accept from, if more were inherited than
    /// there are loops.
    std::vector<std::shared_ptr<SharedListener>> additional = {};
    os::Address bound = {};  ///< the address of the socket
  };

  /// Does what PlatformNetwork::listen() does, for the loop `owner`, whose listeners
  /// held_by_listeners() knows. nullptr stands for a loop that has no listener.
  Result<Listener> listen(PlatformNetwork& network, const os::Address& address,
                          const ListenOptions& options, const void* owner = nullptr);

  /// Adds sockets that were opened before this runtime, for their addresses. A loop that listens
  /// there, or on port 0 of the same address, gets its even share of them and opens none. Call it
  /// before the loops run.
  void inherit(std::vector<std::shared_ptr<SharedListener>> sockets);
  /// Sets the number of loops that share the inherited sockets out. Call it before the loops run.
  void set_loop_count(std::size_t count) noexcept { loop_count_ = count; }
  /// Makes every new listener a SharedListener, so that listeners() returns all. Call it before
  /// the loops run.
  void track_listeners() noexcept { tracks_listeners_ = true; }
  /// Returns the shared listeners that are open now.
  std::vector<std::shared_ptr<SharedListener>> listeners() const;
  /// Called when no loop accepts from a socket any more, on the thread of the last loop. Set it
  /// before the loops run.
  std::function<void()> on_stopped;
  /// Called at the first accept of each listener, if no older process waits for an inherited
  /// socket any more. It is called on the thread of that loop. Set it before the loops run.
  std::function<void()> on_accepting;
  /// Reports the first accept on a listener. An older process waits for `awaited` of its sockets.
  void on_accept_requested(std::size_t awaited);
  /// Returns the addresses of awaited sockets that no loop listens on yet, as text: "[::]:80,
  /// [::]:443".
  std::string unaccepted_addresses() const;

  /// Does what PlatformNetwork::open_datagrams() does, for one loop. If `reuse_port` is set, the
  /// loops of this registry share the port of one address, and no other socket may have it. A
  /// process that took sockets over also shares the port with the older process. Every process of
  /// this user that shares the port may have it after share_ports().
  /// `owner` gets another port for port 0 if it has the first one, as in listen().
  Result<Descriptor> open_datagrams(PlatformNetwork& network, const DatagramOptions& options,
                                    const void* owner = nullptr);
  /// Lets this process share named datagram ports with the other processes of its service. Call it
  /// before the loops run.
  void share_ports() noexcept { shares_ports_ = true; }

  /// Returns the addresses of the listeners of this registry that are open.
  HeldAddresses& held_by_listeners() noexcept { return held_by_listeners_; }
  /// Returns the addresses of the datagram sockets of this registry that are open.
  HeldAddresses& held_by_datagrams() noexcept { return held_by_datagrams_; }

  /// Records that `what` ("listen on", "bind to") has failed for `address`. A caller that does not
  /// retry calls it. `holder` is the address of a socket of this registry that is the reason.
  void record_failure(std::string_view what, const os::Address& address, std::error_code error,
                      const std::optional<os::Address>& holder = {});
  /// Returns the last recorded failure as text ("cannot listen on [::]:80: Permission denied");
  /// empty if there was none.
  std::string failure() const;

 private:
  Result<Listener> open(PlatformNetwork& network, const os::Address& address,
                        const ListenOptions& options, const void* owner);

  struct ListenEntry {
    os::Address asked;
    os::Address bound;
    std::weak_ptr<SharedListener> shared = {};  // a socket that loops can share
    // Inherited sockets that no loop has yet.
    std::vector<std::shared_ptr<SharedListener>> inherited = {};
    std::size_t loops = 0;  // number of loops that got inherited sockets
    std::vector<std::weak_ptr<SharedListener>> assigned = {};  // inherited sockets that loops have
  };
  ListenEntry* find(const os::Address& asked, const void* owner);
  ListenEntry* find_inherited(const os::Address& asked);
  Result<Listener> open_first(PlatformNetwork& network, const os::Address& asked,
                              const ListenOptions& options);
  Result<Listener> open_another(PlatformNetwork& network, ListenEntry& first,
                                const ListenOptions& options);
  Result<Listener> assign_inherited(ListenEntry& entry);
  static std::shared_ptr<SharedListener> next_to_share(ListenEntry& entry);
  Result<std::shared_ptr<SharedListener>> track(PlatformNetwork& network,
                                                const Descriptor& listener,
                                                const os::Address& bound);

  struct DatagramBinding {
    os::Address asked;
    os::Address bound;
  };

  std::size_t loop_count_ = 1;
  mutable std::mutex mutex_;
  std::vector<ListenEntry> listen_entries_;
  // inherited sockets of addresses that no loop has requested
  std::vector<std::shared_ptr<SharedListener>> inherited_;
  mutable std::vector<std::weak_ptr<SharedListener>> tracked_;
  bool tracks_listeners_ = false;
  std::size_t sockets_not_accepting_ = 0;  // inherited sockets that an older process waits for
  bool hot_restarting_ = false;            // true if sockets came from an older process
  bool shares_ports_ = false;
  std::vector<DatagramBinding> datagrams_;
  HeldAddresses held_by_listeners_;
  HeldAddresses held_by_datagrams_;
  std::string failure_;
};

}  // namespace weir::loop

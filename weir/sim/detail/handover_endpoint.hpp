// The rendezvous of the processes of one simulated machine, and the waits of the handover thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/contract/detail/handover.hpp"
#include "weir/loop/detail/process/handover_connection.hpp"
#include "weir/loop/detail/process/handover_protocol.hpp"
#include "weir/sim/detail/handover_connection.hpp"
#include "weir/sim/detail/host_main.hpp"
#include "weir/testing/network/detail/memory_clock.hpp"
#include "weir/testing/network/detail/memory_endpoint.hpp"

namespace weir::sim {

class Host;
struct WorldState;

/// The socket at which newer processes connect. It is open while any process has it or a message
/// carries it. Its destructor closes the connections that still wait there.
class SimRendezvous final : public MemoryEndpoint {
 public:
  SimRendezvous() noexcept : MemoryEndpoint(Kind::rendezvous) {}
  ~SimRendezvous() override;

  void add_connection(std::shared_ptr<SimPipe> newer);
  /// Takes the oldest waiting connection; nullptr if there is none.
  std::shared_ptr<SimPipe> take();

 private:
  std::deque<std::shared_ptr<SimPipe>> waiting_;
};

/// The sockets of one machine by path. A name outlives the processes that have died.
using SimRendezvousMap = std::map<std::string, std::weak_ptr<SimRendezvous>>;

/// A SimHandoverEndpoint implements HandoverEndpoint. A wait returns control to the World, which
/// resumes the thread some time after there is a reason, as a scheduler does. Main itself waits
/// before the thread exists. Each call, here or of a SimHandoverConnection, is a step before
/// which the process may be killed; see Host::kill_at_handover_step().
/// Threads: one at a time.
/// Lifetime: its thread outlives it.
class SimHandoverEndpoint final : public loop::HandoverEndpoint, MemoryObserver {
 public:
  SimHandoverEndpoint(Host& host, WorldState& state, SimRendezvousMap& rendezvous,
                      std::string path);
  ~SimHandoverEndpoint() override;

  std::string name() const override { return path_; }
  Result<std::unique_ptr<loop::HandoverConnection>> connect_or_listen() override;
  const loop::Descriptor& socket() const noexcept override { return socket_; }
  void set_socket(loop::Descriptor socket) override;
  void take_ownership() noexcept override;
  void drop_ownership() noexcept override;
  void close() noexcept override;
  std::unique_ptr<loop::HandoverConnection> accept_newer() override;
  bool wait(Instant until) override;
  void notify() noexcept override;

  /// Makes `thread` wait here instead of main. The thread begins when the World first resumes it.
  void begin(HostMain& thread);
  /// Closes its connections and its socket after the death of the process. It sends nothing any
  /// more.
  void abandon();

  // Functions for its connections.

  Host& host() noexcept { return host_; }
  void add(SimHandoverConnection& connection) { connections_.push_back(&connection); }
  void remove(SimHandoverConnection& connection) noexcept { std::erase(connections_, &connection); }
  void start_step();
  bool dead() const noexcept { return dead_; }
  bool take_notification() noexcept { return std::exchange(notified_, false); }
  /// Resumes a waiting thread after a random delay. A message, a connection or a notification may
  /// be there.
  void wake();
  void wait_for_wake(Instant until);

 private:
  void on_change() override { wake(); }
  SimRendezvous& rendezvous_socket() noexcept;
  void resume();

  Host& host_;
  WorldState& state_;
  SimRendezvousMap& rendezvous_;
  std::string path_;
  loop::Descriptor socket_;
  bool owns_ = false;  // true if this process must remove the name
  std::vector<SimHandoverConnection*> connections_;
  bool dead_ = false;
  bool notified_ = false;
  bool waiting_ = false;  // true from a wait until resume()
  std::optional<MemoryClock::EventId> wake_event_;
  HostMain* thread_ = nullptr;
};

// Hot restart between the processes of one simulated machine.

/// The part of one process in a hot restart; see Handover. Its thread is a stack of its own that
/// the World resumes.
/// Threads: one at a time.
/// Lifetime: its host outlives it.
class SimHandover final : public loop::Handover {
 public:
  /// Begins the handover. Main calls it and waits in it for an older process.
  static loop::HandoverStart meet(Host& host, WorldState& state, SimRendezvousMap& rendezvous,
                                  const HandoverOptions& options);
  ~SimHandover() override;

  loop::HandoverDelegate::Sockets take_sockets() override { return protocol_.take_sockets(); }
  std::string take_state() override { return protocol_.take_state(); }
  Result<> start(loop::HandoverDelegate& delegate) override;
  void on_accepting() noexcept override { protocol_.on_accepting(); }
  void on_socket_stopped() noexcept override { protocol_.on_socket_stopped(); }
  void stop() noexcept override { protocol_.stop(); }

 private:
  SimHandover(Host& host, WorldState& state, SimRendezvousMap& rendezvous,
              const HandoverOptions& options);

  Host& host_;
  std::unique_ptr<HostMain> thread_;
  SimHandoverEndpoint endpoint_;
  loop::HandoverProtocol protocol_;
};

}  // namespace weir::sim

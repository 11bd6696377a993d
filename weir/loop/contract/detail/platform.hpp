// The contract of a host: everything else that a program asks the world for.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/loop/handover.hpp"
#include "weir/loop/contract/detail/platform_thread.hpp"
#include "weir/loop/supervision.hpp"
#include "weir/os/address.hpp"
#include "weir/os/datagram_socket.hpp"
#include "weir/os/detail/machine/topology.hpp"

namespace weir {

class FileSystem;
class Loop;
class RunQueue;

/// Which backend to make. `automatic` takes the best that works here.
enum class BackendChoice : std::uint8_t { automatic, uring, uring_6_1, epoll, poll };

struct ListenOptions {
  int backlog = 4096;      ///< capped by the system's own maximum
  bool reuse_port = true;  ///< several listeners of one address share its connections
  bool first = false;      ///< EADDRINUSE if anybody has the port, reuse_port or not
};

struct StreamOptions {
  bool no_delay = true;  ///< TCP_NODELAY: small writes leave at once
};

/// How a datagram socket is opened; see os::DatagramSettings, which says more.
struct DatagramOptions {
  os::Address local =
      {};                 ///< where it is bound, port 0: the host chooses; none: as `peer` needs it
  os::Address peer = {};  ///< to whom it is connected; none: it talks with everybody
  bool reuse_port = false;  ///< several sockets of one address share what comes to it
  bool first = false;       ///< EADDRINUSE if anybody has the port, reuse_port or not
  /// The index of the interface by which it sends to groups; 0: as the routes say.
  unsigned multicast_interface = 0;
  /// What comes from one peer in datagrams of one size may be received as one: Datagram::size_each.
  bool joined = false;
};

/// A backend and the reason why it is this one, for people ("io_uring refused: EPERM (seccomp)").
struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  std::string reason;
};

/// How the thread of a loop gets its CPU. A simulated host has no such threads.
struct LoopSchedule {
  /// Of SCHED_FIFO, 1 to 99: before all ordinary threads; 0: as one of them. Where the kernel
  /// refuses it, one log line says which setting would allow it, and the loop runs as an ordinary
  /// thread, or
  int fifo_priority = 0;
  bool fifo_required = false;  ///< run() fails with the refusal, and no loop has run
  bool busy_poll = false;      ///< the loop asks the kernel again and again and never sleeps
  Duration busy_wait = {};     ///< for so long it does so before it sleeps, if that pays
};

/// A loop and where to run it; see Host::run().
struct LoopPlace {
  Loop* loop;
  int cpu;  ///< to pin its thread to; -1: anywhere
  LoopSchedule schedule = {};
};

enum class Signal : std::uint8_t { interrupt, terminate };

/// What run() reports back and asks, on a thread that is none of the loops'.
class RunControl {
 public:
  virtual ~RunControl() = default;
  virtual void signalled(Signal signal) = 0;
  /// From when on loops are expected to return soon: one that stays in a handler for a second then,
  /// or none of which runs anything, is given up on. The operating system's host ends the process,
  /// with a log line and status 1; a simulated one, which has but one thread, cannot. Any thread.
  virtual Instant abandon_at() noexcept { return never; }
  /// For hosts: until it is called with nullptr, `changed` is to be called, on any thread, when
  /// abandon_at() has changed.
  virtual void on_abandon_change(std::function<void()> changed) { static_cast<void>(changed); }
};

/// Clock, randomness, sockets, files, threads and signals. Two kinds: the operating system's
/// (OsHost) and simulated ones (weir/testing). Nothing above may ask the world by another way.
/// Threads: all functions from any thread. Lifetime: outlives every loop and descriptor made by it.
class Host {
 public:
  virtual ~Host() = default;

  virtual Instant now() noexcept = 0;
  /// Whether now() costs nothing, as in virtual time: then loops ask more often than they need to.
  virtual bool clock_is_free() const noexcept { return false; }
  virtual WallTime wall_time() noexcept = 0;
  /// 64 unpredictable bits (from a seed in a simulation).
  virtual std::uint64_t random() = 0;

  /// A listening socket. Port 0: the host chooses one, local_address() tells it.
  virtual Result<Descriptor> listen(const os::Address& address, const ListenOptions& options) = 0;
  /// An unconnected stream socket of the family of `peer`, for Backend::connect().
  virtual Result<Descriptor> open_stream(const os::Address& peer) = 0;
  /// A datagram socket for SocketRole::datagrams. Errors: Errc::unsupported where a host has none.
  virtual Result<Descriptor> open_datagrams([[maybe_unused]] const DatagramOptions& options) {
    return fail(Errc::unsupported);
  }
  /// From now on the socket hears what is sent to the group and to its own port, or does so no
  /// more. Errors: EINVAL for what is no group, EADDRINUSE when it is in it already, EADDRNOTAVAIL
  /// when it is not.
  virtual Result<> join(int datagrams, const os::MulticastGroup& group) {
    static_cast<void>(datagrams), static_cast<void>(group);
    return fail(Errc::unsupported);
  }
  virtual Result<> leave(int datagrams, const os::MulticastGroup& group) {
    static_cast<void>(datagrams), static_cast<void>(group);
    return fail(Errc::unsupported);
  }
  virtual Result<> configure(int descriptor, const StreamOptions& options) = 0;
  virtual Result<os::Address> local_address(int descriptor) = 0;
  virtual Result<os::Address> peer_address(int descriptor) = 0;
  /// Bytes that were sent on a stream and have not yet arrived at the other side's host.
  virtual Result<std::size_t> unacknowledged(int descriptor) = 0;
  /// Lets a listener take no new connections while those already begun can still be accepted, so
  /// that it can be closed without resetting anybody. True (no error) where the host can do it.
  /// Those accepted afterwards need configure() before they are read from.
  virtual Result<> refuse_new_connections(int listener) = 0;
  /// Another descriptor of the same listening socket, for another loop: each connection comes to
  /// one of them, and the socket listens until all are closed.
  virtual Result<Descriptor> share(int listener) = 0;
  /// A listening socket that this process has been given: the host's from now on, non-blocking. It
  /// is closed where it cannot be had. Errors: Errc::unsupported where a host has none; EINVAL,
  /// ENOTSOCK, EPROTOTYPE for what is no stream socket that listens; EBADF.
  virtual Result<Descriptor> inherit_listener(int descriptor) {
    static_cast<void>(descriptor);
    return fail(Errc::unsupported);
  }
  /// Meets other processes of the same service; see Handover. Waits for the older one, if there is
  /// one, to pass its sockets on.
  virtual HandoverStart begin_handover(const HandoverOptions& options) {
    static_cast<void>(options);
    return {nullptr, "sockets cannot be taken over on this host"};
  }
  /// Makes worker processes of this one, by fork, before it has threads. Returns in each worker
  /// with its seat, and here when all of them have ended for good. Signals: SIGINT and SIGTERM
  /// order all workers to drain, the second one to stop; workers end with their supervisor.
  virtual Supervised supervise(const SupervisionOptions& options) {
    static_cast<void>(options);
    return {.failure = "this host has but one process"};
  }
  /// Removes the file that listen() has made for a Unix address, unless it is another's by now.
  /// Called while the listener is still open. Does nothing for other addresses.
  virtual void remove_local_path(const os::Address& bound) noexcept = 0;
  virtual void close(int descriptor) noexcept = 0;

  /// Its files; they live as long as the host.
  virtual FileSystem& files() noexcept = 0;

  virtual os::Topology topology() = 0;
  /// How many descriptors this process may open; raises the limit once if it can and says so.
  struct DescriptorLimit {
    std::size_t descriptors_max;
    std::string explanation;  ///< "raised from 1024 to 20000", or why it could not be
  };
  virtual DescriptorLimit descriptor_limit() = 0;
  /// Keeps all memory of this process, also what it gets later, in RAM until it ends; all of it is
  /// there at once.
  struct LockedMemory {
    bool locked;
    std::string explanation;  ///< why not, and which setting would allow it
  };
  virtual LockedMemory lock_memory() = 0;

  /// A backend that pushes what finished to `ready`. The caller keeps `ready` alive longer.
  /// Errors: Errc::unsupported or the kernel's when an explicit choice cannot be had.
  virtual Result<ChosenBackend> make_backend(BackendChoice choice, RunQueue& ready) = 0;

  /// Calls Loop::run() of every loop, each on a thread of its own (all on this one in a
  /// simulation), and returns when all have returned. While it runs, SIGINT and SIGTERM go to
  /// `control` instead of ending the process, unless it is nullptr. Errors: a thread could not be
  /// started, or not be scheduled as is required (then no loop has run).
  virtual Result<> run(std::span<const LoopPlace> places, RunControl* control) = 0;

  /// How many threads a pool may have here unless somebody says otherwise; at least 1.
  virtual std::size_t threads_max() = 0;
  /// A thread for `work`, not started yet. `work` outlives it.
  virtual std::unique_ptr<HostThread> make_thread(const HostThreadOptions& options,
                                                  ThreadWork& work) = 0;

  /// One line for the operator; a newline is added.
  virtual void log(std::string_view line) noexcept = 0;
};

}  // namespace weir

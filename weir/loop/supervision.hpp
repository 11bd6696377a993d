// Several processes of one program: one that supervises, and workers that serve.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/descriptor.hpp"
#include "weir/loop/restart_policy.hpp"
#include "weir/os/address.hpp"

namespace weir {

struct SupervisionOptions {
  std::vector<std::size_t> loops;  ///< of each worker: so many sockets it gets of each endpoint
  /// Opened once, by the supervisor. Of a Unix path all get the one socket.
  std::vector<os::Address> endpoints;
  /// From the first signal on, the second one ends it: then workers that still run are killed.
  Duration deadline = std::chrono::seconds(10);
  /// Beyond the deadline: a worker tells by itself which of its loops does not end.
  Duration patience = std::chrono::seconds(3);
  RestartPolicy restart = {};
  bool announce = true;  ///< log where it listens
};

/// What the supervisor asks of its workers. A signal (SIGTERM) only says: look.
enum class WorkerOrder : int {
  serve,  ///< whoever sends a signal, it means nothing
  drain,
  stop,  ///< at once
};

/// A worker's place, which it has again after a crash, with the same sockets: the supervisor keeps
/// them open, so who waits in their queues meanwhile waits for the worker to begin again. While it
/// lives SIGINT and SIGTERM are blocked on the thread that it was made on, and on those from there.
class WorkerSeat {
 public:
  struct Socket {
    Descriptor descriptor;
    os::Address bound;
  };
  virtual ~WorkerSeat() = default;

  virtual std::size_t index() const noexcept = 0;
  /// Whether this is its first life.
  virtual bool first_life() const noexcept = 0;
  virtual WorkerOrder order() const noexcept = 0;
  /// Once.
  virtual std::vector<Socket> take_sockets() = 0;
};

/// What Host::supervise() returns, in each of the processes.
struct Supervised {
  /// In a worker: it goes on and serves.
  std::unique_ptr<WorkerSeat> seat = nullptr;
  /// In the supervisor, when all workers have ended for good: the status for main().
  int status = 0;
  /// In the supervisor: why nothing has begun, for people.
  std::string failure = {};
};

}  // namespace weir

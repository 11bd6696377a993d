// The operating system's way to supervise worker processes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/supervision.hpp"
#include "weir/os/detail/process/child_process.hpp"
#include "weir/os/detail/process/signals.hpp"

namespace weir {

/// The supervisor: it has no threads and no loop, and waits for signals and for workers that end.
/// Threads: the one that it began on.
class OsSupervisor {
 public:
  /// See Host::supervise().
  static Supervised run(Host& host, const SupervisionOptions& options);

 private:
  struct Worker {
    explicit Worker(const RestartPolicy& policy) : restarts(policy) {}
    std::vector<WorkerSeat::Socket> sockets;
    std::optional<os::ChildProcess> process;
    Restarts restarts;
    Instant begins = never;  // again
    bool lived = false;
  };
  class Seat;

  OsSupervisor(Host& host, const SupervisionOptions& options, os::SharedNumber order,
               os::SignalFd signals);

  std::string open_sockets();
  std::string open_sockets_of(std::size_t worker, os::Address& address, int& first);
  Result<Descriptor> open_socket(const os::Address& address, int first);
  bool told_to_end_within(Duration pause);
  std::unique_ptr<WorkerSeat> serve();
  std::unique_ptr<WorkerSeat> begin_due();
  std::unique_ptr<WorkerSeat> begin(std::size_t index);
  std::unique_ptr<WorkerSeat> sit_down(std::size_t index);
  void wait();
  void read_signals();
  void look_after(std::size_t index);
  void begin_again(std::size_t index, const std::string& what);
  void order_all(WorkerOrder order);
  void hand_order(Worker& worker);
  void kill_late();
  bool any_left() const;
  void log(const std::string& what) { host_.log("weir: " + what); }

  Host& host_;
  SupervisionOptions options_;
  os::SharedNumber order_;
  std::optional<os::SignalFd> signals_;
  std::vector<Worker> workers_;
  Instant kill_at_ = never;
  bool ending_ = false;
  bool failed_ = false;
};

}  // namespace weir

// Supervision of worker processes by the operating system.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/supervision.hpp"
#include "weir/os/detail/process/child_process.hpp"
#include "weir/os/detail/process/signals.hpp"

namespace weir::loop {

/// An OsSupervisor starts worker processes and restarts those that crash. It has no threads and no
/// loop. It waits for signals and for workers that end.
/// Threads: the thread that called run().
class OsSupervisor {
 public:
  /// See Platform::supervise().
  static Supervised run(Platform& platform, const SupervisionOptions& options);

 private:
  struct Worker {
    explicit Worker(const RestartPolicy& policy) : backoff(policy) {}
    std::vector<WorkerHandle::Socket> sockets;
    std::optional<os::ChildProcess> process;
    RestartBackoff backoff;
    Instant start_at = never;  // time of the next start
    bool has_run = false;
  };
  class Handle;

  OsSupervisor(Platform& platform, const SupervisionOptions& options, os::SharedInt command,
               os::SignalFd signals);

  std::string open_sockets();
  std::string open_sockets_of(std::size_t worker, os::Address& address, int& first);
  Result<Descriptor> open_socket(const os::Address& address, int first);
  bool stop_signalled_within(Duration pause);
  std::unique_ptr<WorkerHandle> serve();
  std::unique_ptr<WorkerHandle> start_due();
  std::unique_ptr<WorkerHandle> start_worker(std::size_t index);
  std::unique_ptr<WorkerHandle> enter_worker(std::size_t index);
  void wait();
  void read_signals();
  void reap(std::size_t index);
  void schedule_restart(std::size_t index, const std::string& what);
  void command_all(WorkerCommand command);
  void signal_worker(Worker& worker);
  void kill_overdue();
  bool has_workers_left() const;
  void log(const std::string& what) { platform_.log("weir: " + what); }

  Platform& platform_;
  SupervisionOptions options_;
  os::SharedInt command_;
  std::optional<os::SignalFd> signals_;
  std::vector<Worker> workers_;
  Instant kill_at_ = never;
  bool stopping_ = false;
  bool failed_ = false;
};

}  // namespace weir::loop

// The supervisor process: starts workers, restarts those that crash, and passes signals on.
#include "weir/loop/detail/process/os_supervisor.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <utility>

#include "weir/loop/detail/listen/bind_retry.hpp"
#include "weir/os/detail/io/clock.hpp"

namespace weir::loop {
namespace {

/// Returns true if this process has other threads. A joined thread may remain visible for a
/// moment, so this waits up to 100 ms.
bool has_threads() {
  for (int round = 0; round < 100; ++round) {
    if (os::count_threads() <= 1) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace

/// The handle of a worker process. SIGINT, SIGTERM and SIGQUIT stay blocked: a signal stays pending
/// until the runtime reads it.
class OsSupervisor::Handle final : public WorkerHandle {
 public:
  Handle(std::size_t index, bool first, os::SharedInt command, os::SignalFd signals,
         std::vector<Socket> sockets)
      : index_(index),
        first_(first),
        command_(std::move(command)),
        signals_(std::move(signals)),
        sockets_(std::move(sockets)) {}

  std::size_t index() const noexcept override { return index_; }
  bool is_first_run() const noexcept override { return first_; }
  WorkerCommand command() const noexcept override {
    return static_cast<WorkerCommand>(command_.load());
  }
  std::vector<Socket> take_sockets() override { return std::move(sockets_); }

 private:
  std::size_t index_;
  bool first_;
  os::SharedInt command_;
  os::SignalFd signals_;
  std::vector<Socket> sockets_;
};

OsSupervisor::OsSupervisor(Platform& platform, const SupervisionOptions& options,
                           os::SharedInt command, os::SignalFd signals)
    : platform_(platform),
      options_(options),
      command_(std::move(command)),
      signals_(std::move(signals)) {
  workers_.reserve(options.loops.size());
  for (std::size_t index = 0; index < options.loops.size(); ++index) {
    workers_.emplace_back(options.restart);
    workers_.back().start_at = platform.now();
  }
}

Supervised OsSupervisor::run(Platform& platform, const SupervisionOptions& options) {
  const std::string cannot = "cannot start worker processes: ";
  if (has_threads()) {
    return {.failure = cannot + "this process already has threads, and fork() does not copy them"};
  }
  auto command = os::SharedInt::make();
  if (!command) return {.failure = cannot + command.error().message()};
  auto signals = os::SignalFd::open();
  if (!signals) return {.failure = cannot + signals.error().message()};
  OsSupervisor supervisor(platform, options, std::move(*command), std::move(*signals));
  if (std::string failure = supervisor.open_sockets(); !failure.empty()) {
    return {.failure = std::move(failure)};
  }
  auto handle = supervisor.serve();
  return {.worker = std::move(handle), .status = supervisor.failed_ ? 1 : 0};
}

std::string OsSupervisor::open_sockets() {
  for (const os::Address& asked : options_.endpoints) {
    os::Address address = asked;
    int first = -1;
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      std::string failure = open_sockets_of(worker, address, first);
      if (!failure.empty()) return failure;
    }
    if (options_.announce) log("listening on " + address.to_string());
  }
  return {};
}

/// Opens one socket for each loop of the worker. `address` becomes the address that they are bound
/// to. `first` becomes the first socket with that address if it is -1.
std::string OsSupervisor::open_sockets_of(std::size_t worker, os::Address& address, int& first) {
  for (std::size_t loop = 0; loop < options_.loops[worker]; ++loop) {
    auto socket = open_socket(address, first);
    const auto bound = socket ? platform_.local_address(socket->value()) : fail(socket.error());
    if (!bound) {
      return "cannot listen on " + address.to_string() + ": " + bound.error().message();
    }
    address = *bound;
    if (first < 0) first = socket->value();
    workers_[worker].sockets.push_back({std::move(*socket), address});
    // A path is bound once, so the loops of a worker share one socket.
    if (address.family() == os::AddressFamily::local) break;
  }
  return {};
}

Result<Descriptor> OsSupervisor::open_socket(const os::Address& address, int first) {
  if (first >= 0 && address.family() == os::AddressFamily::local) return platform_.share(first);
  BindRetry retry(address.family());
  auto socket = platform_.listen(address, {.require_unused = first < 0});
  while (!socket) {
    const auto pause = retry.next_pause(socket.error());
    if (!pause || stop_signalled_within(*pause)) break;
    socket = platform_.listen(address, {.require_unused = first < 0});
  }
  return socket;
}

bool OsSupervisor::stop_signalled_within(Duration pause) {
  const Instant now = platform_.now();
  pollfd signal{signals_->get(), POLLIN, 0};
  return ::poll(&signal, 1, os::to_poll_timeout(after(now, pause), now)) > 0;
}

/// Returns nullptr when all workers have ended for good. Returns the worker's handle in a worker.
std::unique_ptr<WorkerHandle> OsSupervisor::serve() {
  for (;;) {
    if (auto handle = start_due()) return handle;
    // A worker that could not start may have been the last one.
    if (!has_workers_left()) return nullptr;
    wait();
    // Reap before reading signals: a crashed worker is restarted in a drain only if its end is
    // known.
    for (std::size_t index = 0; index < workers_.size(); ++index) reap(index);
    read_signals();
    kill_overdue();
  }
}

bool OsSupervisor::has_workers_left() const {
  return std::ranges::any_of(
      workers_, [](const Worker& each) { return each.process || each.start_at != never; });
}

std::unique_ptr<WorkerHandle> OsSupervisor::start_due() {
  for (std::size_t index = 0; index < workers_.size(); ++index) {
    if (workers_[index].start_at > platform_.now()) continue;
    if (auto handle = start_worker(index)) return handle;
  }
  return nullptr;
}

std::unique_ptr<WorkerHandle> OsSupervisor::start_worker(std::size_t index) {
  Worker& worker = workers_[index];
  worker.backoff.on_start(platform_.now());
  worker.start_at = never;
  auto forked = os::fork_child();
  if (forked && !*forked) return enter_worker(index);
  if (!forked) {
    schedule_restart(
        index, "worker " + std::to_string(index) + " cannot start: " + forked.error().message());
    return nullptr;
  }
  worker.process = std::move(*forked);
  worker.has_run = true;
  if (stopping_) signal_worker(worker);
  return nullptr;
}

/// Runs in the child: releases the supervisor's resources, except for this worker's sockets.
std::unique_ptr<WorkerHandle> OsSupervisor::enter_worker(std::size_t index) {
  const bool first = !workers_[index].has_run;
  auto handle = std::make_unique<Handle>(index, first, std::move(command_), std::move(*signals_),
                                         std::move(workers_[index].sockets));
  signals_.reset();
  workers_.clear();
  return handle;
}

void OsSupervisor::wait() {
  Instant until = kill_at_;
  std::vector<pollfd> watched{{signals_->get(), POLLIN, 0}};
  for (const Worker& each : workers_) {
    if (each.process) watched.push_back({each.process->get(), POLLIN, 0});
    until = std::min(until, each.start_at);
  }
  // The result does not matter: the caller checks everything.
  ::poll(watched.data(), watched.size(), os::to_poll_timeout(until, platform_.now()));
}

void OsSupervisor::read_signals() {
  while (const auto signal = signals_->read()) {
    if (*signal == os::StopSignal::quit) {
      log("SIGQUIT: passed on to all workers");
      for (const Worker& each : workers_) {
        if (each.process) each.process->signal(SIGQUIT);
      }
      continue;
    }
    const std::string name = *signal == os::StopSignal::interrupt ? "SIGINT" : "SIGTERM";
    if (!stopping_) {
      log(name + ": draining all workers");
      command_all(WorkerCommand::drain);
    } else {
      log(name + " again: stopping all workers immediately");
      command_all(WorkerCommand::stop);
    }
  }
}

/// Collects the worker's exit status if it has ended, and schedules a restart if it crashed.
void OsSupervisor::reap(std::size_t index) {
  Worker& worker = workers_[index];
  if (!worker.process) return;
  pollfd ended{worker.process->get(), POLLIN, 0};
  if (::poll(&ended, 1, 0) != 1) return;
  const int pid = worker.process->pid();
  const os::ExitStatus end = worker.process->wait();
  worker.process.reset();
  // This is no crash: the worker was stopped, or its work is done, or the signal came before the
  // worker could handle it.
  const bool early = stopping_ && (end.killed_by(SIGTERM) || end.killed_by(SIGINT));
  const std::string who =
      "worker " + std::to_string(index) + " (process " + std::to_string(pid) + ")";
  if (early || end.succeeded()) {
    if (!stopping_) log(who + " exited with status 0: not restarted");
    // Later connections go to the other workers.
    worker.sockets.clear();
    return;
  }
  schedule_restart(index, who + " has ended: " + end.to_string());
}

/// Sets the time of the next start, unless all workers stop or the restarts are used up.
void OsSupervisor::schedule_restart(std::size_t index, const std::string& what) {
  Worker& worker = workers_[index];
  if (stopping_) {
    failed_ = true;
    worker.sockets.clear();
    return log(what);
  }
  const Instant now = platform_.now();
  const auto again = worker.backoff.on_end(now);
  if (!again) {
    log(what + ", after " + std::to_string(worker.backoff.in_a_row()) +
        " restarts in a row: no further restart, draining all workers");
    failed_ = true;
    worker.sockets.clear();
    return command_all(WorkerCommand::drain);
  }
  worker.start_at = *again;
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(*again - now);
  log(what + ", restarting in " + std::to_string(pause.count()) + " ms");
}

void OsSupervisor::command_all(WorkerCommand command) {
  command_.store(static_cast<int>(command));
  const Instant now = platform_.now();
  stopping_ = true;
  const Instant deadline =
      command == WorkerCommand::stop ? now : after(now, options_.drain_timeout);
  kill_at_ = std::min(kill_at_, after(deadline, options_.kill_timeout));
  for (Worker& each : workers_) {
    if (each.process) {
      signal_worker(each);
    } else if (command == WorkerCommand::stop) {
      each.start_at = never;
    } else if (each.start_at != never) {
      // Clients may wait in the queue of a crashed worker: it runs once more to empty that queue.
      each.start_at = now;
    }
  }
}

/// Leaves the sockets to the worker alone, which empties their queues and closes them.
void OsSupervisor::signal_worker(Worker& worker) {
  worker.sockets.clear();
  worker.process->signal(SIGTERM);
}

void OsSupervisor::kill_overdue() {
  if (!stopping_ || platform_.now() < kill_at_) return;
  log("drain timeout: killing the remaining workers");
  for (const Worker& each : workers_) {
    if (each.process) each.process->signal(SIGKILL);
  }
  kill_at_ = never;
}

}  // namespace weir::loop

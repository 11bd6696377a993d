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

namespace weir {
namespace {

/// Whether this process has others than this one. A joined thread may stay in sight for another
/// moment, so this gives it some.
bool has_threads() {
  for (int round = 0; round < 100; ++round) {
    if (os::count_threads() <= 1) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace

/// In a worker. SIGINT and SIGTERM stay blocked: one that comes before the runtime reads them
/// waits.
class OsSupervisor::Seat final : public WorkerSeat {
 public:
  Seat(std::size_t index, bool first, os::SharedNumber order, os::SignalFd signals,
       std::vector<Socket> sockets)
      : index_(index),
        first_(first),
        order_(std::move(order)),
        signals_(std::move(signals)),
        sockets_(std::move(sockets)) {}

  std::size_t index() const noexcept override { return index_; }
  bool first_life() const noexcept override { return first_; }
  WorkerOrder order() const noexcept override { return static_cast<WorkerOrder>(order_.load()); }
  std::vector<Socket> take_sockets() override { return std::move(sockets_); }

 private:
  std::size_t index_;
  bool first_;
  os::SharedNumber order_;
  os::SignalFd signals_;
  std::vector<Socket> sockets_;
};

OsSupervisor::OsSupervisor(Host& host, const SupervisionOptions& options, os::SharedNumber order,
                           os::SignalFd signals)
    : host_(host), options_(options), order_(std::move(order)), signals_(std::move(signals)) {
  workers_.reserve(options.loops.size());
  for (std::size_t index = 0; index < options.loops.size(); ++index) {
    workers_.emplace_back(options.restart);
    workers_.back().begins = host.now();
  }
}

Supervised OsSupervisor::run(Host& host, const SupervisionOptions& options) {
  const std::string cannot = "cannot begin worker processes: ";
  if (has_threads()) {
    return {.failure = cannot + "this process has threads already, which a fork would lose"};
  }
  auto order = os::SharedNumber::make();
  if (!order) return {.failure = cannot + order.error().message()};
  auto signals = os::SignalFd::open();
  if (!signals) return {.failure = cannot + signals.error().message()};
  OsSupervisor supervisor(host, options, std::move(*order), std::move(*signals));
  if (std::string failure = supervisor.open_sockets(); !failure.empty()) {
    return {.failure = std::move(failure)};
  }
  auto seat = supervisor.serve();
  return {.seat = std::move(seat), .status = supervisor.failed_ ? 1 : 0};
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

/// One for each of its loops; `address` becomes the one that they are bound to, `first` the first
/// socket of all that has it, if it is -1.
std::string OsSupervisor::open_sockets_of(std::size_t worker, os::Address& address, int& first) {
  for (std::size_t loop = 0; loop < options_.loops[worker]; ++loop) {
    auto socket = open_socket(address, first);
    const auto bound = socket ? host_.local_address(socket->value()) : fail(socket.error());
    if (!bound) {
      return "cannot listen on " + address.to_string() + ": " + bound.error().message();
    }
    address = *bound;
    if (first < 0) first = socket->value();
    workers_[worker].sockets.push_back({std::move(*socket), address});
    // A path is bound once, and the loops of a worker share what they get of it.
    if (address.family() == os::AddressFamily::local) break;
  }
  return {};
}

Result<Descriptor> OsSupervisor::open_socket(const os::Address& address, int first) {
  if (first >= 0 && address.family() == os::AddressFamily::local) return host_.share(first);
  AddressPatience patience(address.family());
  auto socket = host_.listen(address, {.first = first < 0});
  while (!socket) {
    const auto pause = patience.after(socket.error());
    if (!pause || told_to_end_within(*pause)) break;
    socket = host_.listen(address, {.first = first < 0});
  }
  return socket;
}

bool OsSupervisor::told_to_end_within(Duration pause) {
  const Instant now = host_.now();
  pollfd signal{signals_->get(), POLLIN, 0};
  return ::poll(&signal, 1, os::to_poll_timeout(after(now, pause), now)) > 0;
}

/// Until all workers have ended for good; in a worker, its seat.
std::unique_ptr<WorkerSeat> OsSupervisor::serve() {
  do {
    if (auto seat = begin_due()) return seat;
    wait();
    // Ends before orders: who has crashed lives once more only if that is known.
    for (std::size_t index = 0; index < workers_.size(); ++index) look_after(index);
    read_signals();
    kill_late();
  } while (any_left());
  return nullptr;
}

bool OsSupervisor::any_left() const {
  return std::ranges::any_of(
      workers_, [](const Worker& each) { return each.process || each.begins != never; });
}

std::unique_ptr<WorkerSeat> OsSupervisor::begin_due() {
  for (std::size_t index = 0; index < workers_.size(); ++index) {
    if (workers_[index].begins > host_.now()) continue;
    if (auto seat = begin(index)) return seat;
  }
  return nullptr;
}

std::unique_ptr<WorkerSeat> OsSupervisor::begin(std::size_t index) {
  Worker& worker = workers_[index];
  worker.restarts.began(host_.now());
  worker.begins = never;
  auto forked = os::fork_child();
  if (forked && !*forked) return sit_down(index);
  if (!forked) {
    begin_again(index,
                "worker " + std::to_string(index) + " cannot begin: " + forked.error().message());
    return nullptr;
  }
  worker.process = std::move(*forked);
  worker.lived = true;
  if (ending_) hand_order(worker);
  return nullptr;
}

/// In the child: what is the supervisor's goes, but for this worker's sockets.
std::unique_ptr<WorkerSeat> OsSupervisor::sit_down(std::size_t index) {
  const bool first = !workers_[index].lived;
  auto seat = std::make_unique<Seat>(index, first, std::move(order_), std::move(*signals_),
                                     std::move(workers_[index].sockets));
  signals_.reset();
  workers_.clear();
  return seat;
}

void OsSupervisor::wait() {
  Instant until = kill_at_;
  std::vector<pollfd> watched{{signals_->get(), POLLIN, 0}};
  for (const Worker& each : workers_) {
    if (each.process) watched.push_back({each.process->get(), POLLIN, 0});
    until = std::min(until, each.begins);
  }
  // Whatever it says, everything is looked at.
  ::poll(watched.data(), watched.size(), os::to_poll_timeout(until, host_.now()));
}

void OsSupervisor::read_signals() {
  while (const auto signal = signals_->read()) {
    const std::string name = *signal == os::StopSignal::interrupt ? "SIGINT" : "SIGTERM";
    if (!ending_) {
      log(name + ": draining all workers");
      order_all(WorkerOrder::drain);
    } else {
      log(name + " again: stopping all workers at once");
      order_all(WorkerOrder::stop);
    }
  }
}

/// If it has ended.
void OsSupervisor::look_after(std::size_t index) {
  Worker& worker = workers_[index];
  if (!worker.process) return;
  pollfd ended{worker.process->get(), POLLIN, 0};
  if (::poll(&ended, 1, 0) != 1) return;
  const int pid = worker.process->pid();
  const os::ProcessEnd end = worker.process->wait();
  worker.process.reset();
  // It was told to, or its work is done; or the signal came before it could take it.
  const bool early = ending_ && (end.killed_by(SIGTERM) || end.killed_by(SIGINT));
  const std::string who =
      "worker " + std::to_string(index) + " (process " + std::to_string(pid) + ")";
  if (early || end.well()) {
    if (!ending_) log(who + " has left: its work is done");
    // Whoever comes from here on is the others'.
    worker.sockets.clear();
    return;
  }
  begin_again(index, who + " has ended: " + end.to_string());
}

/// When it is time, and unless it is over.
void OsSupervisor::begin_again(std::size_t index, const std::string& what) {
  Worker& worker = workers_[index];
  if (ending_) {
    failed_ = true;
    worker.sockets.clear();
    return log(what);
  }
  const Instant now = host_.now();
  const auto again = worker.restarts.ended(now);
  if (!again) {
    log(what + ", after " + std::to_string(worker.restarts.in_a_row()) +
        " restarts in a row: giving up, draining all workers");
    failed_ = true;
    worker.sockets.clear();
    return order_all(WorkerOrder::drain);
  }
  worker.begins = *again;
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(*again - now);
  log(what + ", begins again in " + std::to_string(pause.count()) + " ms");
}

void OsSupervisor::order_all(WorkerOrder order) {
  order_.store(static_cast<int>(order));
  const Instant now = host_.now();
  ending_ = true;
  const Instant deadline = order == WorkerOrder::stop ? now : after(now, options_.deadline);
  kill_at_ = std::min(kill_at_, after(deadline, options_.patience));
  for (Worker& each : workers_) {
    if (each.process) {
      hand_order(each);
    } else if (order == WorkerOrder::stop) {
      each.begins = never;
    } else if (each.begins != never) {
      // It has crashed, and somebody may wait in its queue: it lives once more, to empty that.
      each.begins = now;
    }
  }
}

/// From here on only the worker has its sockets: it empties their queues and closes them.
void OsSupervisor::hand_order(Worker& worker) {
  worker.sockets.clear();
  worker.process->signal(SIGTERM);
}

void OsSupervisor::kill_late() {
  if (!ending_ || host_.now() < kill_at_) return;
  log("the deadline has passed: killing the workers that are left");
  for (const Worker& each : workers_) {
    if (each.process) each.process->signal(SIGKILL);
  }
  kill_at_ = never;
}

}  // namespace weir

// The operating system's answers to what a host is asked. Threads and signals: loop_threads.
#include "weir/loop/os/os_platform.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "weir/loop/epoll.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/loop_threads.hpp"
#include "weir/loop/os_handover.hpp"
#include "weir/loop/detail/process/os_supervisor.hpp"
#include "weir/loop/os/detail/os_thread.hpp"
#include "weir/loop/poll.hpp"
#include "weir/loop/detail/uring/uring.hpp"
#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/machine/limits.hpp"
#include "weir/os/line_output.hpp"
#include "weir/os/detail/io/random.hpp"
#include "weir/os/real_time.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir {
namespace {

// How long a line waits for a log that is full: a loop has others to serve.
constexpr Duration log_patience_of_loops = std::chrono::milliseconds(100);
constexpr Duration log_patience = std::chrono::seconds(2);

/// What the kernel's refusal of a backend means, for people.
std::string explain(std::string_view backend, std::error_code error) {
  std::string text(backend);
  text += ": " + error.message();
  if (error == system_error(EPERM)) {
    text += " (a container's seccomp profile, or kernel.io_uring_disabled?)";
  } else if (error == system_error(ENOMEM)) {
    text += " (the limit of locked memory?)";
  }
  return text;
}

Result<ChosenBackend> choose(Result<std::unique_ptr<Backend>> made, std::string reason) {
  if (!made) return fail(made.error());
  return ChosenBackend{std::move(*made), std::move(reason)};
}

Result<ChosenBackend> choose_best(Host& host, RunQueue& ready) {
  auto uring = make_uring_backend(host, ready, UringOptions{});
  if (uring) return choose(std::move(uring), "io_uring works here");
  std::string reasons = explain("io_uring", uring.error());
  auto epoll = make_epoll_backend(host, ready);
  if (epoll) return choose(std::move(epoll), std::move(reasons));
  reasons += "; " + explain("epoll", epoll.error());
  return choose(make_poll_backend(host, ready), std::move(reasons));
}

}  // namespace

OsHost::OsHost() {
  os::open_standard_descriptors();
}

Instant OsHost::now() noexcept {
  return os::monotonic_now();
}

WallTime OsHost::wall_time() noexcept {
  return os::wall_now();
}

std::uint64_t OsHost::random() {
  return os::random_bits();
}

Result<Descriptor> OsHost::listen(const os::Address& address, const ListenOptions& options) {
  auto listener = os::open_listener(
      address,
      {.backlog = options.backlog, .reuse_port = options.reuse_port, .first = options.first});
  if (!listener) return fail(listener.error());
  keep_local_path(address);
  return Descriptor(*this, listener->release());
}

void OsHost::keep_local_path(const os::Address& address) {
  const auto file = os::file_of(address);
  if (!file) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(local_paths_, [&](const LocalPath& each) { return each.address == address; });
  local_paths_.push_back({address, *file});
}

Result<Descriptor> OsHost::open_stream(const os::Address& peer) {
  auto stream = os::open_stream(peer.family());
  if (!stream) return fail(stream.error());
  return Descriptor(*this, stream->release());
}

Result<Descriptor> OsHost::open_datagrams(const DatagramOptions& options) {
  auto socket = os::open_datagram_socket({.local = options.local,
                                          .peer = options.peer,
                                          .reuse_port = options.reuse_port,
                                          .first = options.first,
                                          .multicast_interface = options.multicast_interface,
                                          .joined = options.joined});
  if (!socket) return fail(socket.error());
  return Descriptor(*this, socket->release());
}

Result<> OsHost::join(int datagrams, const os::MulticastGroup& group) {
  return os::join_group(datagrams, group);
}

Result<> OsHost::leave(int datagrams, const os::MulticastGroup& group) {
  return os::leave_group(datagrams, group);
}

Result<> OsHost::configure(int descriptor, const StreamOptions& options) {
  if (turning_away_.load(std::memory_order_relaxed)) {
    if (auto welcomed = os::welcome_late(descriptor); !welcomed) return welcomed;
  }
  auto done = os::set_no_delay(descriptor, options.no_delay);
  if (!done && done.error() == system_error(EOPNOTSUPP)) return {};
  return done;
}

Result<os::Address> OsHost::local_address(int descriptor) {
  return os::local_address(descriptor);
}

Result<os::Address> OsHost::peer_address(int descriptor) {
  return os::peer_address(descriptor);
}

Result<std::size_t> OsHost::unacknowledged(int descriptor) {
  return os::unacknowledged(descriptor);
}

Result<> OsHost::refuse_new_connections(int listener) {
  turning_away_.store(true, std::memory_order_relaxed);
  return os::refuse_new_handshakes(listener);
}

Result<Descriptor> OsHost::share(int listener) {
  auto duplicate = os::duplicate(listener);
  if (!duplicate) return fail(duplicate.error());
  return Descriptor(*this, duplicate->release());
}

Result<Descriptor> OsHost::inherit_listener(int descriptor) {
  Descriptor inherited(*this, descriptor);
  if (auto listens = os::check_listens(descriptor); !listens) return fail(listens.error());
  if (auto done = os::set_nonblocking(descriptor); !done) return fail(done.error());
  if (auto done = os::set_on_exec(descriptor, os::OnExec::close); !done) return fail(done.error());
  const auto address = os::local_address(descriptor);
  if (!address) return fail(address.error());
  keep_local_path(*address);
  return inherited;
}

HandoverStart OsHost::begin_handover(const HandoverOptions& options) {
  return OsHandover::meet(*this, options);
}

Supervised OsHost::supervise(const SupervisionOptions& options) {
  return OsSupervisor::run(*this, options);
}

void OsHost::remove_local_path(const os::Address& bound) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(local_paths_, [&](const LocalPath& each) {
    if (each.address != bound) return false;
    os::remove_local_path(bound, each.file);
    return true;
  });
}

void OsHost::close(int descriptor) noexcept {
  os::Fd(descriptor).close();
}

os::Topology OsHost::topology() {
  if (cpus_.empty()) return os::read_topology();
  return os::read_topology({.root = {}, .affinity = cpus_});
}

std::size_t OsHost::threads_max() {
  constexpr std::uint64_t enough = 1024;
  // relaxed: it guards nothing.
  const bool locked = memory_locked_.load(std::memory_order_relaxed);
  const std::uint64_t stack_bytes =
      locked ? HostThreadOptions::stack_bytes_usual : os::thread_stack_touched;
  return static_cast<std::size_t>(
      std::min(os::read_thread_limit({}, stack_bytes).threads_max, enough));
}

std::unique_ptr<HostThread> OsHost::make_thread(const HostThreadOptions& options,
                                                ThreadWork& work) {
  return std::make_unique<OsThread>(options, work, cpus_, spin_place_);
}

Host::DescriptorLimit OsHost::descriptor_limit() {
  std::call_once(limit_raised_, [this] {
    os::Limit raised = os::raise_descriptor_limit();
    limit_ = {static_cast<std::size_t>(raised.now), std::move(raised.explanation)};
  });
  return limit_;
}

Host::LockedMemory OsHost::lock_memory() {
  const auto locked = os::lock_memory();
  if (locked) {
    memory_locked_.store(true, std::memory_order_relaxed);
    return {true, {}};
  }
  return {false, os::explain_lock_refusal(locked.error())};
}

Result<ChosenBackend> OsHost::make_backend(BackendChoice choice, RunQueue& ready) {
  const char* const reason = "asked for";
  switch (choice) {
    case BackendChoice::automatic:
      return choose_best(*this, ready);
    case BackendChoice::uring:
      return choose(make_uring_backend(*this, ready, UringOptions{}), reason);
    case BackendChoice::uring_6_1:
      return choose(make_uring_backend(*this, ready, UringOptions{.linux_6_1 = true}), reason);
    case BackendChoice::epoll:
      return choose(make_epoll_backend(*this, ready), reason);
    case BackendChoice::poll:
      return choose(make_poll_backend(*this, ready), reason);
  }
  return fail(Errc::unsupported);
}

Result<> OsHost::run(std::span<const LoopPlace> places, RunControl* control) {
  return run_on_threads(*this, places, control);
}

void OsHost::log(std::string_view line) noexcept {
  // All hosts of a process share it.
  static constinit os::LineOutput standard_error(STDERR_FILENO);
  const bool serves = Loop::current() != nullptr;
  standard_error.write(line, serves ? log_patience_of_loops : log_patience);
}

}  // namespace weir

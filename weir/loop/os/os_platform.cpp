// OsPlatform: the operating system behind the Platform contract, except for threads that run
// loops.
#include "weir/loop/os/os_platform.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "weir/loop/detail/process/os_handover.hpp"
#include "weir/loop/detail/process/os_supervisor.hpp"
#include "weir/loop/detail/readiness/backends.hpp"
#include "weir/loop/detail/uring/uring.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/detail/os_profiler.hpp"
#include "weir/loop/os/detail/os_thread.hpp"
#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/line_output.hpp"
#include "weir/os/detail/io/random.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/machine/io_uring.hpp"
#include "weir/os/detail/machine/limits.hpp"
#include "weir/os/detail/process/scheduling.hpp"

namespace weir {
namespace {

// Time that a line waits for a full log. It is shorter on a loop's thread, which serves
// connections.
constexpr Duration log_timeout_of_loops = std::chrono::milliseconds(100);
constexpr Duration log_timeout = std::chrono::seconds(2);

Result<loop::ChosenBackend> choose(Result<std::unique_ptr<loop::Backend>> made,
                                   std::string reason) {
  if (!made) return fail(made.error());
  return loop::ChosenBackend{std::move(*made), std::move(reason)};
}

Result<loop::ChosenBackend> choose_best(loop::Platform& platform, loop::RunQueue& ready) {
  auto uring = loop::make_uring_backend(platform, ready, loop::UringOptions{});
  if (uring) return choose(std::move(uring), "io_uring is available");
  std::string reasons = "io_uring: " + os::explain_io_uring_error(uring.error()).reason;
  auto epoll = loop::make_epoll_backend(platform, ready);
  if (epoll) return choose(std::move(epoll), std::move(reasons));
  reasons += "; epoll: " + epoll.error().message();
  return choose(loop::make_poll_backend(platform, ready), std::move(reasons));
}

}  // namespace

OsPlatform::OsPlatform() {
  os::open_standard_descriptors();
}

Instant OsPlatform::now() noexcept {
  return os::monotonic_now();
}

WallTime OsPlatform::wall_time() noexcept {
  return os::wall_now();
}

std::uint64_t OsPlatform::random() {
  return os::random_bits();
}

Result<loop::Descriptor> OsPlatform::listen(const os::Address& address,
                                            const ListenOptions& options) {
  WEIR_TRY(auto listener, os::open_listener(address, {.backlog = options.backlog,
                                                      .reuse_port = options.reuse_port,
                                                      .require_unused = options.require_unused}));
  remember_local_path(address);
  return loop::Descriptor(*this, listener.release());
}

void OsPlatform::remember_local_path(const os::Address& address) {
  const auto file = os::socket_file(address);
  if (!file) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(local_paths_, [&](const LocalPath& each) { return each.address == address; });
  local_paths_.push_back({address, *file});
}

Result<loop::Descriptor> OsPlatform::open_stream(const os::Address& peer) {
  WEIR_TRY(auto stream, os::open_stream(peer.family()));
  return loop::Descriptor(*this, stream.release());
}

Result<loop::Descriptor> OsPlatform::open_datagrams(const loop::DatagramOptions& options) {
  WEIR_TRY(auto socket,
           os::open_datagram_socket({.local = options.local,
                                     .peer = options.peer,
                                     .reuse_port = options.reuse_port,
                                     .require_unused = options.require_unused,
                                     .multicast_interface = options.multicast_interface,
                                     .gro = options.gro}));
  return loop::Descriptor(*this, socket.release());
}

Result<> OsPlatform::join_group(int datagrams, const os::MulticastGroup& group) {
  return os::join_group(datagrams, group);
}

Result<> OsPlatform::leave_group(int datagrams, const os::MulticastGroup& group) {
  return os::leave_group(datagrams, group);
}

Result<> OsPlatform::configure(int descriptor, const loop::StreamOptions& options) {
  if (refusing_new_connections_.load(std::memory_order_relaxed)) {
    if (auto welcomed = os::clear_inherited_refusal(descriptor); !welcomed) return welcomed;
  }
  auto done = os::set_no_delay(descriptor, options.no_delay);
  if (!done && done.error() == system_error(EOPNOTSUPP)) return {};
  return done;
}

Result<> OsPlatform::set_close_mode(int descriptor, CloseMode mode) {
  std::optional<std::chrono::seconds> linger;
  if (mode == CloseMode::reset) linger = std::chrono::seconds(0);
  return os::set_linger(descriptor, linger);
}

Result<os::Address> OsPlatform::local_address(int descriptor) {
  return os::local_address(descriptor);
}

Result<os::Address> OsPlatform::peer_address(int descriptor) {
  return os::peer_address(descriptor);
}

Result<std::size_t> OsPlatform::unacked_bytes(int descriptor) {
  return os::unacked_bytes(descriptor);
}

Result<> OsPlatform::refuse_new_connections(int listener) {
  refusing_new_connections_.store(true, std::memory_order_relaxed);
  return os::refuse_new_handshakes(listener);
}

Result<loop::Descriptor> OsPlatform::share(int listener) {
  WEIR_TRY(auto duplicate, os::duplicate(listener));
  return loop::Descriptor(*this, duplicate.release());
}

Result<loop::Descriptor> OsPlatform::inherit_listener(int descriptor) {
  loop::Descriptor inherited(*this, descriptor);
  WEIR_TRY(os::check_listening(descriptor));
  WEIR_TRY(os::set_nonblocking(descriptor));
  WEIR_TRY(os::set_on_exec(descriptor, os::OnExec::close));
  WEIR_TRY(const auto address, os::local_address(descriptor));
  remember_local_path(address);
  return inherited;
}

loop::HandoverStart OsPlatform::begin_handover(const HandoverOptions& options) {
  return loop::OsHandover::meet(*this, options);
}

loop::Supervised OsPlatform::supervise(const loop::SupervisionOptions& options) {
  return loop::OsSupervisor::run(*this, options);
}

void OsPlatform::remove_local_path(const os::Address& bound) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(local_paths_, [&](const LocalPath& each) {
    if (each.address != bound) return false;
    os::remove_local_path(bound, each.file);
    return true;
  });
}

void OsPlatform::close(int descriptor) noexcept {
  os::Fd(descriptor).close();
}

os::Topology OsPlatform::topology() {
  if (cpus_.empty()) return os::read_topology();
  return os::read_topology({.root = {}, .affinity = cpus_});
}

std::size_t OsPlatform::threads_max() {
  constexpr std::uint64_t enough = 1024;
  // relaxed: the flag guards no memory.
  const bool locked = memory_locked_.load(std::memory_order_relaxed);
  const std::uint64_t stack_bytes =
      locked ? loop::PlatformThreadOptions::stack_bytes_usual : os::thread_stack_resident_bytes;
  return static_cast<std::size_t>(
      std::min(os::read_thread_limit({}, stack_bytes).threads_max, enough));
}

std::unique_ptr<loop::PlatformThread> OsPlatform::make_thread(
    const loop::PlatformThreadOptions& options, loop::ThreadWork& work) {
  return std::make_unique<loop::OsThread>(options, work, cpus_, spin_permit_);
}

loop::Platform::DescriptorLimit OsPlatform::descriptor_limit() {
  std::call_once(limit_raised_, [this] {
    os::Limit raised = os::raise_descriptor_limit();
    limit_ = {static_cast<std::size_t>(raised.now), std::move(raised.explanation)};
  });
  return limit_;
}

loop::Platform::LockedMemory OsPlatform::lock_memory() {
  const auto locked = os::lock_memory();
  if (locked) {
    memory_locked_.store(true, std::memory_order_relaxed);
    return {true, {}};
  }
  return {false, os::explain_lock_error(locked.error())};
}

Result<loop::ChosenBackend> OsPlatform::make_backend(BackendChoice choice, loop::RunQueue& ready) {
  const char* const reason = "set by the program";
  switch (choice) {
    case BackendChoice::automatic:
      return choose_best(*this, ready);
    case BackendChoice::uring:
      return choose(loop::make_uring_backend(*this, ready, loop::UringOptions{}), reason);
    case BackendChoice::uring_6_1:
      return choose(loop::make_uring_backend(*this, ready, loop::UringOptions{.linux_6_1 = true}),
                    reason);
    case BackendChoice::epoll:
      return choose(loop::make_epoll_backend(*this, ready), reason);
    case BackendChoice::poll:
      return choose(loop::make_poll_backend(*this, ready), reason);
  }
  return fail(Errc::unsupported);
}

Result<> OsPlatform::run(std::span<const loop::LoopPlacement> placements,
                         loop::RunControl* control) {
  return run_on_threads(*this, placements, control);
}

std::expected<std::unique_ptr<loop::CpuProfile>, loop::ProfileError> OsPlatform::start_cpu_profile(
    std::span<Loop* const> loops, const loop::CpuProfileOptions& options) {
  return loop::start_os_cpu_profile(loops, options);
}

void OsPlatform::write_line(std::string_view line) noexcept {
  // All platforms of a process share standard error.
  static constinit os::LineWriter standard_error(STDERR_FILENO);
  const bool serves = Loop::current() != nullptr;
  standard_error.write(line, serves ? log_timeout_of_loops : log_timeout);
}

}  // namespace weir

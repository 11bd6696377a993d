// The operating system as a host: real clocks, sockets, threads and signals.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/os_file_system.hpp"
#include "weir/loop/os/detail/adaptive_spinner.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace weir {

/// The host that programs run on. It keeps next to nothing: several may exist in one process, and
/// each may run any number of times, also at once.
///
/// make_backend(automatic) takes io_uring where the kernel lets it, else epoll, else poll.
///
/// run() pins a thread whose place names a CPU, or logs why it could not; thread N is called
/// "weir-N" after its loop's core. With a control, SIGINT and SIGTERM are blocked on the calling
/// thread and the loops' (which inherit that), and read on the calling thread; the old mask is back
/// when run() returns. Threads that exist already and do not block them still die of them, so call
/// run() on the main thread or block them there first. Of several runs at once, one gets each
/// signal. Without a control, signals are left alone.
class OsHost : public Host {
 public:
  /// Opens what is closed of standard input, output and error; see os::open_standard_descriptors().
  OsHost();

  Instant now() noexcept override;
  WallTime wall_time() noexcept override;
  std::uint64_t random() override;

  Result<Descriptor> listen(const os::Address& address, const ListenOptions& options) override;
  Result<Descriptor> open_stream(const os::Address& peer) override;
  Result<Descriptor> open_datagrams(const DatagramOptions& options) override;
  Result<> join(int datagrams, const os::MulticastGroup& group) override;
  Result<> leave(int datagrams, const os::MulticastGroup& group) override;
  /// TCP's options are left out silently for a Unix socket.
  Result<> configure(int descriptor, const StreamOptions& options) override;
  Result<os::Address> local_address(int descriptor) override;
  Result<os::Address> peer_address(int descriptor) override;
  Result<std::size_t> unacknowledged(int descriptor) override;
  Result<> refuse_new_connections(int listener) override;
  Result<Descriptor> share(int listener) override;
  Result<Descriptor> inherit_listener(int descriptor) override;
  HandoverStart begin_handover(const HandoverOptions& options) override;
  Supervised supervise(const SupervisionOptions& options) override;
  void remove_local_path(const os::Address& bound) noexcept override;
  void close(int descriptor) noexcept override;
  FileSystem& files() noexcept override { return files_; }

  /// As seen by the thread that made this host, which is not pinned to one core.
  os::Topology topology() override;
  DescriptorLimit descriptor_limit() override;
  LockedMemory lock_memory() override;
  Result<ChosenBackend> make_backend(BackendChoice choice, RunQueue& ready) override;
  Result<> run(std::span<const LoopPlace> places, RunControl* control) override;
  /// 1024, or what os::read_thread_limit() leaves of that: less once memory is locked, for stacks
  /// are all there then.
  std::size_t threads_max() override;
  /// May run on every CPU that the thread could which made this host.
  std::unique_ptr<HostThread> make_thread(const HostThreadOptions& options,
                                          ThreadWork& work) override;
  /// To standard error. Where that is a pipe that nobody reads, a line waits for room for a moment
  /// and is lost then, which is told when there is room again.
  void log(std::string_view line) noexcept override;

 private:
  void keep_local_path(const os::Address& address);

  OsFileSystem files_{*this};
  const std::vector<int> cpus_ = os::allowed_cpus();
  SpinPlace spin_place_{cpus_.size()};
  std::atomic<bool> turning_away_ = false;  // connections accepted from now on need a welcome
  std::atomic<bool> memory_locked_ = false;
  std::once_flag limit_raised_;
  DescriptorLimit limit_;

  struct LocalPath {
    os::Address address;
    os::FileIdentity file;
  };
  std::mutex mutex_;  // guards what follows
  std::vector<LocalPath> local_paths_;
};

}  // namespace weir

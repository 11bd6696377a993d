// The operating system as a platform: real clocks, sockets, threads and signals.
#pragma once

#include <atomic>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "weir/loop/contract/detail/file_system.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/contract/detail/profiler.hpp"
#include "weir/loop/os/detail/adaptive_spinner.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/machine/affinity.hpp"

namespace weir {

/// The files of the operating system. Passes each call on to weir/os/detail/io/file.hpp.
/// Threads: any.
/// Lifetime: `platform` outlives it.
class OsFileSystem : public loop::FileSystem {
 public:
  explicit OsFileSystem(loop::PlatformNetwork& network) noexcept : network_(network) {}

  Result<loop::Descriptor> open(const std::string& path, const os::FileOpenOptions& how) override {
    WEIR_TRY(auto file, os::open_file(path, how));
    return loop::Descriptor(network_, file.release());
  }
  Result<std::size_t> read_at(int file, MutableBytes target, std::uint64_t offset) override {
    return os::read_at(file, target, offset);
  }
  Result<std::size_t> write_at(int file, Bytes source, std::uint64_t offset) override {
    return os::write_at(file, source, offset);
  }
  Result<> sync(int file) override { return os::sync_file(file); }
  Result<> resize(int file, std::uint64_t size) override { return os::resize_file(file, size); }
  Result<os::FileStatus> file_status(int file) override { return os::file_status(file); }

  Result<os::FileStatus> path_status(const std::string& path) override {
    return os::path_status(path);
  }
  Result<std::vector<os::DirectoryEntry>> list(const std::string& path,
                                               std::size_t entries_max) override {
    return os::list_directory(path, entries_max);
  }
  Result<> rename(const std::string& from, const std::string& to) override {
    return os::rename_path(from, to);
  }
  Result<> remove(const std::string& path) override { return os::remove_path(path); }
  Result<> make_directory(const std::string& path, unsigned permissions) override {
    return os::make_directory(path, permissions);
  }
  Result<> sync_directory(const std::string& path) override { return os::sync_directory(path); }

  Result<FileBeneath> open_beneath(const std::string& root, const std::string& path,
                                   os::BeneathLinks links) override {
    WEIR_TRY(auto found, os::open_beneath(root, path, links));
    loop::Descriptor file;
    if (found.file) file = loop::Descriptor(network_, found.file.release());
    return FileBeneath{std::move(file), found.status};
  }
  Result<std::vector<os::DirectoryEntry>> list_beneath(const std::string& root,
                                                       const std::string& path,
                                                       os::BeneathLinks links,
                                                       std::size_t entries_max) override {
    return os::list_beneath(root, path, links, entries_max);
  }
  Result<std::size_t> read_cached(int file, MutableBytes target, std::uint64_t offset) override {
    return os::read_cached(file, target, offset);
  }
  Result<std::size_t> send_file(int socket, Bytes before, const os::FilePart& part) override {
    return os::send_file(socket, before, part);
  }

 private:
  loop::PlatformNetwork& network_;
};

/// The platform that programs run on. It has almost no state: several may exist in one process.
/// Each may run any number of times, also at the same time.
///
/// make_backend(automatic) chooses io_uring if the kernel allows it, else epoll, else poll.
///
/// run() pins a thread if its placement names a CPU, and logs the reason if it cannot. The thread
/// of a loop with core N is called "weir-N". run() leaves signals alone if it gets no control. If
/// it gets one, it blocks SIGINT and SIGTERM on the calling thread and on the loops' threads. It
/// reads them on the calling thread and restores the old mask when it returns. A thread that
/// existed before and does not block these signals still ends the process when it receives one.
/// The caller therefore calls run() on the main thread, or blocks the signals there first. If
/// there are several runs at the same time, one of them gets each signal.
class OsPlatform : public loop::Platform, public loop::PlatformProfiler {
 public:
  /// Opens those of standard input, output and error that are closed; see
  /// os::open_standard_descriptors().
  OsPlatform();

  Instant now() noexcept override;
  WallTime wall_time() noexcept override;
  std::uint64_t random() override;

  Result<loop::Descriptor> listen(const os::Address& address,
                                  const ListenOptions& options) override;
  Result<loop::Descriptor> open_stream(const os::Address& peer) override;
  Result<loop::Descriptor> open_datagrams(const loop::DatagramOptions& options) override;
  Result<> join_group(int datagrams, const os::MulticastGroup& group) override;
  Result<> leave_group(int datagrams, const os::MulticastGroup& group) override;
  /// Ignores TCP options on a Unix socket.
  Result<> configure(int descriptor, const loop::StreamOptions& options) override;
  Result<> set_close_mode(int descriptor, CloseMode mode) override;
  Result<os::Address> local_address(int descriptor) override;
  Result<os::Address> peer_address(int descriptor) override;
  Result<std::size_t> unacked_bytes(int descriptor) override;
  Result<> refuse_new_connections(int listener) override;
  Result<loop::Descriptor> share(int listener) override;
  Result<loop::Descriptor> inherit_listener(int descriptor) override;
  loop::HandoverStart begin_handover(const HandoverOptions& options) override;
  loop::Supervised supervise(const loop::SupervisionOptions& options) override;
  void remove_local_path(const os::Address& bound) noexcept override;
  void close(int descriptor) noexcept override;
  loop::FileSystem& files() noexcept override { return files_; }

  /// Returns the topology as the thread that made this platform sees it. That thread is not pinned
  /// to one core.
  os::Topology topology() override;
  DescriptorLimit descriptor_limit() override;
  LockedMemory lock_memory() override;
  Result<loop::ChosenBackend> make_backend(BackendChoice choice, loop::RunQueue& ready) override;
  Result<> run(std::span<const loop::LoopPlacement> placements, loop::RunControl* control) override;
  /// Returns 1024, or the limit of os::read_thread_limit() if that is lower. Locked memory lowers
  /// the limit, because whole stacks are then resident.
  std::size_t threads_max() override;
  /// Makes a thread that may run on every CPU that the thread that made this platform could use.
  std::unique_ptr<loop::PlatformThread> make_thread(const loop::PlatformThreadOptions& options,
                                                    loop::ThreadWork& work) override;
  /// Writes a line to standard error. If that is a full pipe, the line waits for room: at most 100
  /// ms on a loop's thread, else at most 2 s. The line is lost then, and a later line reports the
  /// loss when there is room again.
  void write_line(std::string_view line) noexcept override;
  /// Profiles the threads of run(); see os::CpuSampler.
  std::expected<std::unique_ptr<loop::CpuProfile>, loop::ProfileError> start_cpu_profile(
      std::span<Loop* const> loops, const loop::CpuProfileOptions& options) override;

 private:
  void remember_local_path(const os::Address& address);

  OsFileSystem files_{*this};
  const std::vector<int> cpus_ = os::allowed_cpus();
  loop::SpinPermit spin_permit_{cpus_.size()};
  // True after refuse_new_connections(): accepted connections inherit the refusal; see configure().
  std::atomic<bool> refusing_new_connections_ = false;
  std::atomic<bool> memory_locked_ = false;
  std::once_flag limit_raised_;
  DescriptorLimit limit_;

  struct LocalPath {
    os::Address address;
    os::FileIdentity file;
  };
  std::mutex mutex_;  // guards the members below
  std::vector<LocalPath> local_paths_;
};

}  // namespace weir

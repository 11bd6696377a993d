// A platform in memory. Unit tests run on it in virtual time, on any number of cores, in one
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/testing/memory/detail/memory_file.hpp"
#include "weir/testing/memory/detail/memory_file_system.hpp"
#include "weir/testing/memory/detail/memory_thread.hpp"
#include "weir/testing/network/detail/memory_clock.hpp"
#include "weir/testing/network/detail/memory_datagram_network.hpp"
#include "weir/testing/network/detail/memory_network.hpp"
#include "weir/testing/network/detail/memory_stream.hpp"
#include "weir/testing/network/detail/nondeterminism.hpp"

namespace weir {

// The descriptors of one simulated platform: small numbers, the lowest free one first.

/// MemoryDescriptors is the descriptor table of one process.
/// Threads: one.
class MemoryDescriptors {
 public:
  explicit MemoryDescriptors(std::size_t open_max) noexcept : open_max_(open_max) {}

  bool full() const noexcept { return open_ >= open_max_; }
  std::size_t open() const noexcept { return open_; }
  std::size_t open_max() const noexcept { return open_max_; }
  /// Sets the limit; more descriptors may be open already.
  void set_open_max(std::size_t count) noexcept { open_max_ = count; }

  /// Opens the lowest free descriptor for `endpoint`.
  /// Errors: EMFILE; `endpoint` is closed then.
  Result<int> add(std::shared_ptr<MemoryEndpoint> endpoint);
  /// Returns the endpoint of `descriptor`, which is open, for another process of the machine.
  std::shared_ptr<MemoryEndpoint> share(int descriptor) const;
  /// Opens a second descriptor for the endpoint of `descriptor`.
  /// Errors: EBADF, EMFILE.
  Result<int> duplicate(int descriptor);
  /// Returns the endpoint; nullptr if `descriptor` is not open.
  MemoryEndpoint* find(int descriptor) const noexcept;
  /// Return the endpoint of that kind; nullptr if `descriptor` is of another kind or not open.
  MemoryStream* stream(int descriptor) const noexcept;
  MemoryListener* listener(int descriptor) const noexcept;
  MemoryOpenFile* file(int descriptor) const noexcept;
  MemoryDatagramSocket* datagrams(int descriptor) const noexcept;
  /// Calls `look(MemoryStream&)` for each open stream, in the order of the descriptors.
  template <class Look>
  void each_stream(Look look) const {
    for (const auto& each : endpoints_) {
      const bool right = each != nullptr && each->kind() == MemoryEndpoint::Kind::stream;
      if (right) look(static_cast<MemoryStream&>(*each));
    }
  }
  bool listens() const;
  /// Applies the death of the process to the endpoints. The descriptors must still be closed.
  void close_on_kill();
  /// Closes `descriptor`, which is open (asserted).
  void close(int descriptor) noexcept;

 private:
  std::size_t open_max_;
  std::size_t open_ = 0;
  std::vector<std::shared_ptr<MemoryEndpoint>> endpoints_;  // indexed by descriptor - 3
  std::priority_queue<int, std::vector<int>, std::greater<>> free_;
};

class MemoryBackend;

/// The part of the platform that reads and writes files.
enum class MemoryFiles : std::uint8_t {
  by_backend,  ///< the backend, as with io_uring
  by_threads,  ///< threads, as with epoll and poll
};

/// MemoryPlatformOptions sets the seed, the cores and the resource limits of a MemoryPlatform.
struct MemoryPlatformOptions {
  std::uint64_t seed = 1;                 ///< seed of all random numbers
  std::size_t cores = 1;                  ///< number of cores in topology()
  bool limited_by_quota = false;          ///< limited_by_quota in topology()
  std::size_t buffer_bytes = 64 * 1024;   ///< buffer for each direction of a connection
  std::size_t descriptors_max = 1 << 20;  ///< more fail with EMFILE
  MemoryFiles files = MemoryFiles::by_backend;
  Duration file_time{};  ///< duration of each read, write and sync by the backend
};

/// A MemoryPlatform is a Platform in memory with its own network and files. Its clock moves only
/// when no loop has work left. The same seed and the same calls give the same run. A single loop
/// can be turned by hand, and its wait() moves the clock. Several loops are driven by run(),
/// run_until_idle(), run_until() or advance().
/// Threads: one for everything, including the loops; other threads may call only Loop::post() and
/// Backend::wake().
/// Lifetime: outlives its loops and descriptors. Tests may derive classes from it.
class MemoryPlatform : public loop::Platform {
 public:
  explicit MemoryPlatform(const MemoryPlatformOptions& options = {});
  ~MemoryPlatform() override;
  MemoryPlatform(const MemoryPlatform&) = delete;
  MemoryPlatform& operator=(const MemoryPlatform&) = delete;

  Instant now() noexcept override { return clock_.now(); }
  bool clock_is_free() const noexcept override { return true; }
  WallTime wall_time() noexcept override;
  std::uint64_t random() override;
  Result<loop::Descriptor> listen(const os::Address& address,
                                  const ListenOptions& options) override;
  Result<loop::Descriptor> open_stream(const os::Address& peer) override;
  Result<loop::Descriptor> open_datagrams(const loop::DatagramOptions& options) override;
  Result<> join_group(int datagrams, const os::MulticastGroup& group) override;
  Result<> leave_group(int datagrams, const os::MulticastGroup& group) override;
  Result<> configure(int descriptor, const loop::StreamOptions& options) override;
  Result<> set_close_mode(int descriptor, CloseMode mode) override;
  Result<os::Address> local_address(int descriptor) override;
  Result<os::Address> peer_address(int descriptor) override;
  /// Returns 0, except for connections between the hosts of a World.
  Result<std::size_t> unacked_bytes(int descriptor) override;
  Result<> refuse_new_connections(int listener) override;
  Result<loop::Descriptor> share(int listener) override;
  /// Does nothing: Unix addresses are names without files here.
  void remove_local_path(const os::Address&) noexcept override {}
  void close(int descriptor) noexcept override { descriptors_.close(descriptor); }
  MemoryFileSystem& files() noexcept override { return files_; }
  os::Topology topology() override;
  DescriptorLimit descriptor_limit() override;
  /// Makes a MemoryBackend.
  /// Errors: Errc::unsupported for any choice other than BackendChoice::automatic.
  Result<loop::ChosenBackend> make_backend(BackendChoice choice, loop::RunQueue& ready) override;
  /// Turns the loops of this platform one after another until all are stopping. The clock moves
  /// to the next timer or event when none has work.
  /// Errors: EDEADLK if all wait and nothing can happen any more; a line in logged() lists the
  /// operations that they wait for. EINTR after raise() if `control` is null.
  Result<> run(std::span<const loop::LoopPlacement> placements, loop::RunControl* control) override;
  std::size_t threads_max() override { return 1024; }
  /// Reports that its memory is locked, unless fail_memory_lock() was called with a reason.
  LockedMemory lock_memory() override { return {memory_lock_error_.empty(), memory_lock_error_}; }
  void fail_memory_lock(std::string why) { memory_lock_error_ = std::move(why); }
  /// Makes a simulated thread. Its steps run between turns, without a real thread, and take no
  /// time.
  std::unique_ptr<loop::PlatformThread> make_thread(const loop::PlatformThreadOptions& options,
                                                    loop::ThreadWork& work) override;
  void write_line(std::string_view line) noexcept override { logged_.emplace_back(line); }

  // Functions for tests.

  const std::vector<std::string>& logged() const noexcept { return logged_; }
  std::size_t open_descriptors() const noexcept { return descriptors_.open(); }
  /// Makes opening and accepting fail with EMFILE while `count` descriptors are open.
  void set_descriptors_max(std::size_t count) noexcept { descriptors_.set_open_max(count); }
  /// Makes the start of a thread fail with EAGAIN while `count` threads run.
  void set_threads_max(std::size_t count) noexcept { threads_.max = count; }
  /// Calls `event` between turns when the clock arrives at `moment`.
  MemoryClock::EventId at(Instant moment, MemoryClock::Event event);
  /// Queues a signal for the control of the current run(), or else of the next one.
  void raise(loop::Signal signal) { signals_.push_back(signal); }
  /// Sets the wall clock. Timers are not affected.
  void set_wall_time(WallTime time) noexcept;
  /// Resets the connection of `descriptor`, as if the network had reset it.
  void reset_connection(int descriptor);

  /// Turns the loops until none has work left. No time passes.
  void run_until_idle(std::span<Loop* const> loops);
  void run_until_idle(Loop& loop) { run_until_idle(std::array{&loop}); }
  /// Lets `length` pass. The clock stops at every timer and event, and the loops run until they
  /// are idle.
  void advance(std::span<Loop* const> loops, Duration length);
  void advance(Loop& loop, Duration length) { advance(std::array{&loop}, length); }
  /// Turns the loops until `done` returns true. Time passes when they are idle.
  /// Returns: false if nothing can happen any more before `done` returns true.
  [[nodiscard]] bool run_until(std::span<Loop* const> loops, const std::function<bool()>& done);
  [[nodiscard]] bool run_until(Loop& loop, const std::function<bool()>& done) {
    return run_until(std::array{&loop}, done);
  }

  // Functions for its backends.

  const MemoryPlatformOptions& options() const noexcept { return options_; }
  MemoryClock& clock() noexcept { return clock_; }
  Nondeterminism& nondeterminism() noexcept { return nondeterminism_; }
  MemoryNetwork& network() noexcept { return network_; }
  MemoryDatagramNetwork& datagram_network() noexcept { return datagram_network_; }
  MemoryDescriptors& descriptors() noexcept { return descriptors_; }
  const MemoryDescriptors& descriptors() const noexcept { return descriptors_; }
  /// Lets time pass in a backend's wait(), instead of sleeping. Returns false if no time can
  /// pass.
  virtual bool pass_time(Instant until);
  void add_backend() noexcept { ++backends_; }
  void remove_backend() noexcept { --backends_; }

 protected:
  /// The objects that a platform of a World shares with other platforms. They outlive it.
  struct Shared {
    MemoryClock& clock;
    Nondeterminism& nondeterminism;
    /// The platform of the machine, if this platform is one more process on that machine.
    MemoryPlatform* machine = nullptr;
  };
  MemoryPlatform(const MemoryPlatformOptions& options, const Shared& shared);

  std::size_t backends() const noexcept { return backends_; }
  std::size_t threads_running() const noexcept { return threads_.running; }
  /// Takes the next signal; nullopt if there is none.
  std::optional<loop::Signal> take_signal();

 private:
  bool turn_each(std::span<Loop* const> loops);
  Instant next_moment(std::span<Loop* const> loops) const;
  void log_deadlock(std::span<Loop* const> loops);

  MemoryPlatformOptions options_;
  std::uint64_t random_state_;
  // These two are set unless they are shared.
  std::unique_ptr<MemoryClock> own_clock_;
  std::unique_ptr<Nondeterminism> own_nondeterminism_;
  MemoryClock& clock_;
  Nondeterminism& nondeterminism_;
  // These two are set unless another platform is the machine.
  std::unique_ptr<MemoryNetwork> own_network_;
  std::unique_ptr<MemoryDatagramNetwork> own_datagram_network_;
  MemoryNetwork& network_;
  MemoryDatagramNetwork& datagram_network_;
  WallTime wall_start_;  // wall time at the clock's Instant{}
  MemoryFileSystem files_;
  MemoryDescriptors descriptors_;
  MemoryThread::Count threads_;
  std::deque<loop::Signal> signals_;
  std::vector<std::string> logged_;
  std::string memory_lock_error_;
  std::size_t backends_ = 0;
};

}  // namespace weir

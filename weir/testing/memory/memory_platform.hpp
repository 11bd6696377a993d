// A host in memory: unit tests run on it in virtual time, on any number of cores, in one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/testing/memory_chance.hpp"
#include "weir/testing/network/detail/memory_clock.hpp"
#include "weir/testing/network/detail/memory_datagram_network.hpp"
#include "weir/testing/memory_descriptors.hpp"
#include "weir/testing/memory/detail/memory_file_system.hpp"
#include "weir/testing/network/detail/memory_network.hpp"
#include "weir/testing/memory/detail/memory_thread.hpp"

namespace weir {

class MemoryBackend;

/// Who reads and writes files.
enum class MemoryFiles : std::uint8_t {
  by_backend,  ///< as io_uring does
  by_threads,  ///< as with epoll and poll
};

struct MemoryHostOptions {
  std::uint64_t seed = 1;                 ///< of everything that is drawn
  std::size_t cores = 1;                  ///< what topology() tells
  bool cut_by_quota = false;              ///< likewise
  std::size_t buffer_bytes = 64 * 1024;   ///< of each direction of a connection
  std::size_t descriptors_max = 1 << 20;  ///< beyond: EMFILE
  MemoryFiles files = MemoryFiles::by_backend;
  Duration file_time{};  ///< how long the backend takes for each read, write and sync
};

/// A Host whose clock moves only when nobody has anything left to do, with a network and files of
/// its own. Same seed and same calls: same run. One loop can be turned by hand (its wait() moves
/// the clock); several are driven by run(), run_until_idle(), run_until() or advance().
///
/// Threads: one for everything, loops included; only Loop::post() and Backend::wake() from others.
/// Lifetime: outlives its loops and descriptors. A test may derive from it what it wants otherwise.
class MemoryHost : public Host {
 public:
  explicit MemoryHost(const MemoryHostOptions& options = {});
  ~MemoryHost() override;
  MemoryHost(const MemoryHost&) = delete;
  MemoryHost& operator=(const MemoryHost&) = delete;

  Instant now() noexcept override { return clock_.now(); }
  bool clock_is_free() const noexcept override { return true; }
  WallTime wall_time() noexcept override;
  std::uint64_t random() override;
  Result<Descriptor> listen(const os::Address& address, const ListenOptions& options) override;
  Result<Descriptor> open_stream(const os::Address& peer) override;
  Result<Descriptor> open_datagrams(const DatagramOptions& options) override;
  Result<> join(int datagrams, const os::MulticastGroup& group) override;
  Result<> leave(int datagrams, const os::MulticastGroup& group) override;
  Result<> configure(int descriptor, const StreamOptions& options) override;
  Result<os::Address> local_address(int descriptor) override;
  Result<os::Address> peer_address(int descriptor) override;
  /// Nothing is ever on its way, but between the hosts of a World.
  Result<std::size_t> unacknowledged(int descriptor) override;
  Result<> refuse_new_connections(int listener) override;
  Result<Descriptor> share(int listener) override;
  /// Unix addresses here are names without files.
  void remove_local_path(const os::Address&) noexcept override {}
  void close(int descriptor) noexcept override { descriptors_.close(descriptor); }
  MemoryFileSystem& files() noexcept override { return files_; }
  os::Topology topology() override;
  DescriptorLimit descriptor_limit() override;
  /// Only BackendChoice::automatic can be had.
  Result<ChosenBackend> make_backend(BackendChoice choice, RunQueue& ready) override;
  /// Turns the loops one after the other until all are stopping; when none has work, the clock
  /// moves to the next timer or event. The loops are this host's.
  /// Errors: EDEADLK when all wait and nothing will ever happen, with a line in logged() that says
  /// what they wait for; EINTR after raise() without a control.
  Result<> run(std::span<const LoopPlace> places, RunControl* control) override;
  std::size_t threads_max() override { return 1024; }
  /// Its memory is as good as locked, unless a test says why not.
  LockedMemory lock_memory() override { return {lock_refusal_.empty(), lock_refusal_}; }
  void refuse_to_lock_memory(std::string why) { lock_refusal_ = std::move(why); }
  /// Its steps are taken between turns, without a thread, and take no time.
  std::unique_ptr<HostThread> make_thread(const HostThreadOptions& options,
                                          ThreadWork& work) override;
  void log(std::string_view line) noexcept override { logged_.emplace_back(line); }

  // For tests.

  const std::vector<std::string>& logged() const noexcept { return logged_; }
  std::size_t open_descriptors() const noexcept { return descriptors_.open(); }
  /// Lets opening and accepting fail with EMFILE while so many are open.
  void set_descriptors_max(std::size_t count) noexcept { descriptors_.set_open_max(count); }
  /// Lets starting a thread fail with EAGAIN while so many run.
  void set_threads_max(std::size_t count) noexcept { threads_.max = count; }
  /// Calls `event` between turns when the clock arrives at `moment`.
  MemoryClock::EventId at(Instant moment, MemoryClock::Event event);
  /// A signal for the control of the present or else the next run().
  void raise(Signal signal) { signals_.push_back(signal); }
  /// Lets the wall clock jump; deadlines do not notice.
  void set_wall_time(WallTime time) noexcept;
  /// Tears the connection of `descriptor` down, as if the path to the peer had reset it.
  void reset_connection(int descriptor);

  /// Turns the loops until none has anything left to do now. No time passes.
  void run_until_idle(std::span<Loop* const> loops);
  void run_until_idle(Loop& loop) { run_until_idle(std::array{&loop}); }
  /// Lets `length` pass, stopping at every timer and event on the way until nothing is left to do.
  void advance(std::span<Loop* const> loops, Duration length);
  void advance(Loop& loop, Duration length) { advance(std::array{&loop}, length); }
  /// Turns the loops, and lets time pass when they are idle, until `done`. Returns whether it came
  /// to that; false: nothing will ever happen any more.
  [[nodiscard]] bool run_until(std::span<Loop* const> loops, const std::function<bool()>& done);
  [[nodiscard]] bool run_until(Loop& loop, const std::function<bool()>& done) {
    return run_until(std::array{&loop}, done);
  }

  // For its backends.

  const MemoryHostOptions& options() const noexcept { return options_; }
  MemoryClock& clock() noexcept { return clock_; }
  MemoryChance& chance() noexcept { return chance_; }
  MemoryNetwork& network() noexcept { return network_; }
  MemoryDatagramNetwork& datagram_network() noexcept { return datagram_network_; }
  MemoryDescriptors& descriptors() noexcept { return descriptors_; }
  const MemoryDescriptors& descriptors() const noexcept { return descriptors_; }
  /// What a waiting backend does instead of sleeping. False: no time can pass.
  virtual bool pass_time(Instant until);
  void backend_made() noexcept { ++backends_; }
  void backend_gone() noexcept { --backends_; }

 protected:
  /// For a host of a World: what it shares with others, which outlives it.
  struct Shared {
    MemoryClock& clock;
    MemoryChance& chance;
    /// Another host that is the same machine: this one is one more process of it.
    MemoryHost* machine = nullptr;
  };
  MemoryHost(const MemoryHostOptions& options, const Shared& shared);

  std::size_t backends() const noexcept { return backends_; }
  std::size_t threads_running() const noexcept { return threads_.running; }
  /// Takes the signal that is next, if any.
  std::optional<Signal> take_signal();

 private:
  bool turn_each(std::span<Loop* const> loops);
  Instant next_moment(std::span<Loop* const> loops) const;
  void log_deadlock(std::span<Loop* const> loops);

  MemoryHostOptions options_;
  std::uint64_t random_state_;
  std::unique_ptr<MemoryClock> own_clock_;  // these two unless they are shared
  std::unique_ptr<MemoryChance> own_chance_;
  MemoryClock& clock_;
  MemoryChance& chance_;
  std::unique_ptr<MemoryNetwork> own_network_;  // these two unless it is another's machine
  std::unique_ptr<MemoryDatagramNetwork> own_datagram_network_;
  MemoryNetwork& network_;
  MemoryDatagramNetwork& datagram_network_;
  WallTime wall_start_;  // the wall time when the clock stood at Instant{}
  MemoryFileSystem files_;
  MemoryDescriptors descriptors_;
  MemoryThread::Count threads_;
  std::deque<Signal> signals_;
  std::vector<std::string> logged_;
  std::string lock_refusal_;
  std::size_t backends_ = 0;
};

}  // namespace weir

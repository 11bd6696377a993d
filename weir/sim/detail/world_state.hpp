// The state that the parts of a World share.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/base/detail/random_source.hpp"
#include "weir/base/time.hpp"
#include "weir/os/detail/process/thread_probe.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/sim/faults.hpp"
#include "weir/sim/world_options.hpp"
#include "weir/testing/network/detail/link_model.hpp"
#include "weir/testing/network/detail/memory_clock.hpp"
#include "weir/testing/network/detail/memory_datagram_network.hpp"
#include "weir/testing/network/detail/memory_network.hpp"
#include "weir/testing/network/detail/nondeterminism.hpp"

namespace weir::sim {

// Detects functions that a World cannot run because they wait for another one.

/// A BlockingCallDetector aborts the program if a function in a blocking pool waits for ever. A
/// World calls these functions on its one thread, so a function that waits for another one never
/// returns. The detector aborts when a function sleeps for `blocked_max` of real time without
/// using any CPU time. The message says why and contains `replay`.
/// Threads: one at a time, in addition to its own.
class BlockingCallDetector {
 public:
  BlockingCallDetector(Duration blocked_max, std::string replay)
      : blocked_max_(blocked_max), replay_(std::move(replay)) {}
  BlockingCallDetector(const BlockingCallDetector&) = delete;
  BlockingCallDetector& operator=(const BlockingCallDetector&) = delete;
  ~BlockingCallDetector();

  void on_call_begin();
  void on_call_end();

 private:
  void poll_caller();
  [[noreturn]] void report() const;

  Duration blocked_max_;
  std::string replay_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable stopping_cv_;
  bool stopping_ = false;
  std::uint64_t calls_ = 0;
  std::optional<os::ThreadProbe> caller_;
  std::thread thread_;  // running from the first call on
};

// The record of what happened in a World, line by line.

/// A Trace is the record of a run. Two runs are the same if their traces are equal. No line
/// contains a memory address or anything else that the seed does not determine.
/// Threads: one.
class Trace {
 public:
  Trace(const MemoryClock& clock, bool on) : clock_(clock), start_(clock.now()), on_(on) {}

  bool on() const noexcept { return on_; }
  /// Sets the location of the following lines, such as "server/1"; "-" stands for no core's turn.
  void set_location(std::string location) { location_ = std::move(location); }
  /// Adds "12.345678901 server/1 <what>".
  void note(std::string_view what);
  const std::string& text() const noexcept { return text_; }

 private:
  const MemoryClock& clock_;
  Instant start_;
  bool on_;
  std::string location_ = "-";
  std::string text_;
};

/// Calls `function`. Returns the text of the exception that it throws; nullopt if it throws none.
std::optional<std::string> thrown_by(const std::function<void()>& function);

/// The random numbers of a World for libraries such as OpenSSL. They are apart from those of the
/// World, so that the use of a library does not change its other decisions.
class LibraryRandom final : public weir::detail::RandomSource {
 public:
  explicit LibraryRandom(std::uint64_t seed) noexcept : random_(~seed) {}
  std::uint64_t random() noexcept override { return random_.next(); }

 private:
  Random random_;
};

/// The state that all parts of a World share.
/// Threads: one at a time.
struct WorldState {
  explicit WorldState(const WorldOptions& options)
      : random(options.seed),
        library_random(options.seed),
        jitter(options.jitter),
        trace(clock, options.trace),
        blocking_calls(options.blocked_max, options.replay + std::to_string(options.seed)) {}

  MemoryClock clock;
  Random random;
  LibraryRandom library_random;
  JitterOptions jitter;
  FaultInjector faults;
  Trace trace;
  BlockingCallDetector blocking_calls;
};

// The network of a World: a link from each host to each host, which can be cut and slowed down.

/// One direction between two hosts, or within one host.
class Link final : public LinkModel {
 public:
  Link(WorldState& state, bool inside) noexcept : state_(state), inside_(inside) {}

  MemoryClock& clock() noexcept override { return state_.clock; }
  Duration delay() override;
  std::size_t segment(std::size_t most) override;
  bool open() const noexcept override { return open_; }
  void set_open(bool open) noexcept { open_ = open; }
  void set_extra_delay(Duration delay) noexcept { extra_delay_ = delay; }

 private:
  WorldState& state_;
  bool inside_;  // both ends are on one host
  bool open_ = true;
  Duration extra_delay_{};
};

/// The networks of all hosts and the links between them.
/// Threads: one at a time.
class Links final : public NetworkTopology {
 public:
  explicit Links(WorldState& state) noexcept : state_(state) {}

  /// Adds a host; `own` is its address with port 0.
  void add(const os::Address& own, MemoryNetwork& streams, MemoryDatagramNetwork& datagrams) {
    nodes_.push_back({own, &streams, &datagrams});
  }
  MemoryNetwork* network_at(const os::Address& address) override;
  MemoryDatagramNetwork* datagrams_at(const os::Address& address) override;
  Link& link(const os::Address& from, const os::Address& to) override;

 private:
  struct Node {
    os::Address own;
    MemoryNetwork* streams;
    MemoryDatagramNetwork* datagrams;
  };
  /// Returns the index of the host that has this address, or the number of hosts if there is
  /// none.
  std::size_t number_of(const os::Address& address) const;

  WorldState& state_;
  std::vector<Node> nodes_;
  std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<Link>> links_;
};

// The random decisions of one host of a World, and the injection of faults.

/// A SeededNondeterminism makes the decisions of one host with the random numbers of the World.
/// Threads: one at a time.
/// Lifetime: the state outlives it.
class SeededNondeterminism final : public Nondeterminism {
 public:
  SeededNondeterminism(WorldState& state, std::string host)
      : state_(state), host_(std::move(host)) {}

  /// The number of operations on connections that have begun, and of attempts to accept a waiting
  /// connection.
  std::uint64_t operations() const noexcept { return operations_; }
  std::uint64_t accepts() const noexcept { return accepts_; }
  /// The number of datagrams that were sent.
  std::uint64_t datagrams() const noexcept { return datagrams_; }
  /// The number of reads, writes and syncs of files.
  std::uint64_t file_operations() const noexcept { return file_operations_; }

  /// Isolates a killed process: it accepts no connection, connects to no host and sends nothing.
  void set_isolated(bool isolated) noexcept { isolated_ = isolated; }
  /// Lets the World itself write files, without faults and uncounted.
  void set_files_exempt(bool exempt) noexcept { files_exempt_ = exempt; }
  /// Pauses the process until `end`.
  void set_paused_until(Instant end) noexcept { paused_until_ = end; }

  void on_begin(const loop::Operation& operation, MemoryStream* stream) override;
  void on_finish(const loop::Operation& operation, std::size_t bytes) override;
  bool completes_immediately() override { return !state_.random.bernoulli(state_.jitter.deferred); }
  bool completes_when_cancelled() override {
    return !state_.random.bernoulli(state_.jitter.cancelled);
  }
  std::size_t transfer_size(std::size_t most) override;
  bool picks_first_listener() override {
    return state_.random.bernoulli(state_.jitter.skewed_accept);
  }
  std::size_t pick(std::size_t count) override { return state_.random.below(count); }
  std::error_code accept_error() override;
  std::error_code file_error() override;
  std::size_t datagram_copies() override;
  bool is_isolated() override { return isolated_; }
  Duration connect_delay() override;
  Duration step_delay() override { return state_.random.between({}, state_.jitter.step_max); }
  Instant paused_until() const noexcept override { return paused_until_; }
  void on_step_begin() override { state_.blocking_calls.on_call_begin(); }
  void on_step_end() override { state_.blocking_calls.on_call_end(); }
  std::size_t buffer_bytes(std::size_t usual) override;

 private:
  void inject(Fault fault, MemoryStream& stream);
  Instant random_stall_end();

  WorldState& state_;
  std::string host_;
  bool isolated_ = false;
  bool files_exempt_ = false;
  std::uint64_t operations_ = 0;
  std::uint64_t accepts_ = 0;
  std::uint64_t datagrams_ = 0;
  std::uint64_t file_operations_ = 0;
  Instant paused_until_ = Instant::min();
};

}  // namespace weir::sim

// Snapshots of each core, which the core makes itself in one short runnable.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/loop/contract/detail/runnable.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/detail/connect_targets.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir::admin {

/// One open connection of a server.
struct ConnectionReport {
  os::Address peer;
  std::string_view protocol;      ///< "HTTP/1.1" or "HTTP/2"
  bool secure = false;            ///< true over TLS
  std::string_view state;         ///< such as "idle", "reads head" or "runs handler"
  Duration age{};                 ///< since it was accepted, or since the end of its handshake
  std::optional<Duration> waits;  ///< time without a byte of an idle connection; nullopt: unknown
  std::uint64_t received = 0;     ///< bytes of HTTP
  std::uint64_t sent = 0;
  std::size_t unsent_bytes = 0;  ///< bytes that wait until the peer reads
  std::uint32_t streams = 0;     ///< open streams of HTTP/2
  /// Pattern of the present request; for HTTP/2 those of some streams: "GET /a, GET /b, 3 more".
  std::string route;
  /// Time since the oldest of these requests that has no answer, although it is complete; nullopt:
  /// unknown, or there is none.
  std::optional<Duration> unanswered;
  std::string unanswered_route;  ///< pattern of that request
};

/// The connections of one server on one core.
struct ServerReport {
  std::size_t open = 0;             ///< all, without WebSockets
  std::size_t websockets = 0;       ///< open WebSockets of connections of HTTP/1.1
  std::uint64_t requests = 0;       ///< requests so far
  std::size_t connections_max = 0;  ///< Limits::connections_max
  bool draining = false;
  std::vector<ConnectionReport> connections;  ///< the oldest ones
};

/// The present use of a target by the clients of a core; see ConnectTarget for its history.
struct TargetUse {
  std::string origin;
  std::size_t open = 0;     ///< connections
  std::size_t idle = 0;     ///< those of them that are idle, of HTTP/1.1
  std::size_t waiting = 0;  ///< requests that wait for a connection
  bool is_full = false;     ///< true if requests wait for a client whose connections are all in use
};

/// The limits of one snapshot. The snapshot ends early when it reaches either limit.
struct SnapshotLimits {
  std::size_t items_max = 600;
  Duration time_max = std::chrono::microseconds(80);
};

/// Counts the items of a snapshot, and reads the clock at every eighth item. An item takes at most
/// about two microseconds.
class SnapshotBudget {
 public:
  SnapshotBudget(loop::Platform& platform, const SnapshotLimits& limits) noexcept
      : platform_(platform),
        end_(after(platform.now(), limits.time_max)),
        left_(limits.items_max),
        part_end_(end_),
        part_left_(left_) {}

  /// Limits the next items to one of `parts` equal parts of what is left.
  void begin_part(std::size_t parts) noexcept;
  /// Counts an item. Returns false if the snapshot, or its present part, must end instead.
  bool take() noexcept;

 private:
  loop::Platform& platform_;
  Instant end_;
  std::size_t left_;
  Instant part_end_;
  std::size_t part_left_;
  unsigned taken_ = 0;
};

/// Returns a report on each server of the core of `loop`. A connection costs about a microsecond,
/// because the kernel is asked for its peer.
/// Errors: throws std::bad_alloc.
/// Threads: the loop's.
std::vector<ServerReport> report_servers(Loop& loop, SnapshotBudget& budget);

/// A snapshot of a core. It does not change.
struct CoreSnapshot {
  std::size_t timers = 0;              ///< armed timers
  std::optional<Duration> next_timer;  ///< time until the first of them is due
  bool draining = false;
  std::vector<ServerReport> servers;
  std::vector<ConnectTarget> targets;
  std::vector<TargetUse> uses;
  Instant at{};     ///< when the snapshot was made
  Duration took{};  ///< time that the snapshot took on its core
};

/// Makes a snapshot of the core of `loop`, within the limits.
/// Errors: throws std::bad_alloc.
/// Threads: the loop's.
CoreSnapshot make_snapshot(Loop& loop, const SnapshotLimits& limits = {});

/// The answer of a core.
struct CoreAnswer {
  unsigned core = 0;
  /// True if `snapshot` is new. Otherwise the core has run something else since it was asked.
  bool answered = false;
  Duration waited{};                             ///< time until the answer, or until now
  std::shared_ptr<const CoreSnapshot> snapshot;  ///< the last one; never nullptr
};

/// Asks the cores of one runtime for snapshots. Each core has one runnable. A core that does not
/// answer is asked only once, however many pages wait for it, and a page does not wait long for it.
/// A core never waits for a page: it hands its snapshot over by one exchange of a pointer.
/// Threads: any loop of the runtime.
/// Lifetime: that of the loops; a slot of their group owns it.
class CoreSnapshots {
 public:
  /// A core that runs its tasks in time answers much earlier.
  static constexpr Duration wait_max = std::chrono::milliseconds(250);

  explicit CoreSnapshots(Loop& any);

  /// Returns the object of the loops that run together with `loop`.
  /// Errors: throws std::bad_alloc.
  static CoreSnapshots& of(Loop& loop);

  /// Returns the answer of each core, in the order of the cores.
  /// Cancel: returns the answers that have arrived.
  Task<std::vector<CoreAnswer>> collect();

 private:
  class Core : public loop::Runnable {
   public:
    explicit Core(Loop& loop);
    ~Core();
    /// Posts this runnable, unless it still waits. Returns the number of the snapshot to wait for.
    std::uint64_t ask(Instant now);
    bool has_answered(std::uint64_t number) const noexcept;
    CoreAnswer answer(std::uint64_t number, Instant now);

   private:
    static void run(loop::Runnable& self);

    Loop& loop_;
    std::atomic<bool> asked_{false};              // true while the runnable is posted
    std::atomic<CoreSnapshot*> handed_{nullptr};  // a snapshot that no page has taken yet
    std::atomic<std::uint64_t> answers_{0};       // snapshots made so far
    std::atomic<std::int64_t> waited_{0};         // of the last one, in nanoseconds
    std::mutex mutex_;                            // of the pages; guards the members below
    Instant asked_at_{};                          // the core reads it while `asked_` is true
    std::shared_ptr<const CoreSnapshot> last_;
  };

  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace weir::admin

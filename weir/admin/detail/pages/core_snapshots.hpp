// Snapshots of each core, which the core makes itself in one short runnable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/admin/detail/pages/route_statistics.hpp"
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
  std::optional<Duration> waits;  ///< time without a byte of an idle connection; nullopt: unknown
  std::string route;              ///< pattern of the present request; "3 streams" for HTTP/2
  std::size_t unsent_bytes = 0;   ///< bytes that wait until the peer reads
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

/// Limits of one report. A report ends early when either is reached.
struct ReportLimits {
  std::size_t connections_max = 500;
  Duration time_max = std::chrono::microseconds(80);
};

/// Returns a report on each server of the core of `loop`. A connection costs about a microsecond,
/// because the kernel is asked for its peer.
/// Errors: throws std::bad_alloc.
/// Threads: the loop's.
std::vector<ServerReport> report_servers(Loop& loop, const ReportLimits& limits = {});

/// A snapshot of a core, which only its own thread may read.
struct CoreSnapshot {
  std::size_t timers = 0;              ///< armed timers
  std::optional<Duration> next_timer;  ///< time until the first of them is due
  bool draining = false;
  std::vector<ServerReport> servers;
  std::vector<ConnectTarget> targets;
  std::vector<RouteCounts> routes;
  Instant at{};     ///< when the snapshot was made
  Duration took{};  ///< time that the snapshot took on its core
};

/// The answer of a core.
struct CoreAnswer {
  unsigned core = 0;
  /// True if `snapshot` is new. Otherwise the core has run something else since it was asked.
  bool answered = false;
  Duration waited{};  ///< time until the answer, or until now
  CoreSnapshot snapshot;
};

/// Asks the cores of one runtime for snapshots. Each core has one runnable. A core that does not
/// answer is asked only once, however many pages wait for it, and a page does not wait long for it.
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
    explicit Core(Loop& loop) noexcept : loop::Runnable(&run), loop_(loop) {}
    /// Posts this runnable, unless it still waits. Returns the number of the snapshot to wait for.
    std::uint64_t ask(Instant now);
    bool has_answered(std::uint64_t number) const;
    CoreAnswer answer(std::uint64_t number, Instant now) const;

   private:
    static void run(loop::Runnable& self);

    Loop& loop_;
    mutable std::mutex mutex_;     // guards the members below
    std::uint64_t snapshots_ = 0;  // made so far
    bool asked_ = false;           // true while the runnable is posted
    Instant asked_at_{};
    Duration waited_{};  // of the last snapshot
    CoreSnapshot last_;
  };

  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace weir::admin

// A LogService has the named loggers of a program, their levels, and the thread that writes
// records.
//
//     OsPlatform platform;
//     LogService logs(platform, settings.log);  // made before the runtime, destroyed after it
//     Runtime runtime(platform, settings.runtime);
//     const Logger log = logs.logger("http.server");
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/detail/counter.hpp"
#include "weir/json/text/units.hpp"
#include "weir/log/detail/record.hpp"
#include "weir/log/logger.hpp"
#include "weir/log/sink.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/metrics.hpp"

namespace weir {

// A bounded queue of log records from one core to the thread that writes them.

/// A LogRing is a ring buffer of bytes with one producer and one consumer that never wait for each
/// other. A record that does not fit is dropped and counted.
/// Threads: one producer at a time calls push() and next_sequence(), and one consumer at a time
/// calls mark() and pop().
class LogRing final : public MetricSource {
 public:
  /// Makes a ring of `bytes`, rounded up to a power of two from 8 KiB to 1 GiB. `number`
  /// identifies the ring within its LogService.
  LogRing(std::size_t bytes, unsigned number);
  ~LogRing() { detach(); }
  LogRing(const LogRing&) = delete;
  LogRing& operator=(const LogRing&) = delete;

  unsigned number() const noexcept { return number_; }
  const detail::Counter& dropped() const noexcept { return dropped_; }

  /// Adds a record. Returns false if there is no room; the record is then dropped and counted.
  bool push(Bytes record) noexcept;
  /// Returns 1, 2, 3 and so on.
  std::uint64_t next_sequence() noexcept { return ++sequence_; }

  /// Returns true if there is no record to take.
  bool empty() const noexcept;
  /// Sets the limit of pop() to the records that have been pushed until now.
  void mark() noexcept;
  /// Moves the next record to `record`. Returns false if there is none before the limit of mark().
  bool pop(std::vector<std::byte>& record);

  /// Adds "log records dropped" to the metrics of the ring's loop, after the first dropped record.
  void collect(MetricSnapshot& sum) const override;

  /// The next ring in the list of all rings, set before this ring is published.
  LogRing* next = nullptr;
  // The consumer's members.
  /// The record that was taken but not yet written; empty if there is none.
  std::vector<std::byte> head;
  std::uint64_t drops_reported = 0;

 private:
  void copy_in(std::uint64_t at, Bytes bytes) noexcept;
  void copy_out(std::uint64_t at, MutableBytes bytes) const noexcept;

  const std::size_t size_;  // a power of two
  const unsigned number_;
  const std::unique_ptr<std::byte[]> bytes_;
  detail::Counter dropped_;
  std::uint64_t sequence_ = 0;
  std::uint64_t read_position_seen_ = 0;  // the producer's older copy of read_position_
  std::uint64_t read_limit_ = 0;          // the consumer's
  // Positions only grow; a position modulo size_ is an index in bytes_.
  alignas(64) std::atomic<std::uint64_t> write_position_{0};
  alignas(64) std::atomic<std::uint64_t> read_position_{0};
};

class Loop;

/// Options of a LogService; may be a section of a configuration.
struct LogOptions {
  LogLevel level = LogLevel::info;  ///< The level of every name that `levels` does not set.
  /// Levels by name. An entry `http` also sets `http.server`, unless that name has its own entry.
  std::map<std::string, LogLevel> levels = {};
  /// The format in the platform's log, which is used if no other sinks are given.
  LogFormat format = LogFormat::text;
  /// The size of each core's buffer for records that are not yet written; at least 8 KiB.
  ByteSize core_buffer = 256_KiB;
};

/// Counters of a LogService.
struct LogReport {
  std::uint64_t written = 0;
  std::uint64_t dropped = 0;  ///< Records that were dropped because a core's buffer was full.
  std::uint64_t failed = 0;   ///< Calls of a sink that threw.
};

/// A LogService writes the records of all cores to its sinks, on a thread of the platform.
///
/// Each loop has its own buffer, which its first record creates. All threads without a loop share
/// one buffer and a mutex. So do the loops beyond the first 1024 that log. The writer thread merges
/// the buffers in the order of the records' times, and never reorders the records of one core. A
/// core never waits for the writer thread. Cores wake the writer thread at most once before each of
/// its runs. When a buffer is full, records are dropped, and the logger `weir.logs` writes a
/// warning with their number. The destructor writes all records that were logged before.
///
/// Threads: any; flush() may not be called on a thread that runs a loop.
/// Lifetime: the platform outlives the LogService, which outlives its loggers and the loops that
/// log.
class LogService final : loop::ThreadWork {
 public:
  /// The maximum number of logger names; all further loggers share the name "(others)".
  static constexpr std::size_t names_max = std::size_t{1} << 20;

  /// Makes a LogService that writes to the platform's log.
  explicit LogService(loop::Platform& platform, const LogOptions& options = {});
  LogService(loop::Platform& platform, const LogOptions& options,
             std::vector<std::unique_ptr<LogSink>> sinks);
  ~LogService();
  LogService(const LogService&) = delete;
  LogService& operator=(const LogService&) = delete;

  /// Returns the logger of this name, whose parts are separated by dots. A LogService keeps every
  /// name for its lifetime: a second call is cheap, and a level that was set stays set.
  Logger logger(std::string_view name);

  /// Replaces the level and the levels by those of `options`; the other options have no effect.
  /// Other cores may see the new levels a moment later.
  void set_levels(const LogOptions& options);
  /// Sets the level of this name and the names below it that have no level of their own. An empty
  /// name sets the level of all names that have no level of their own.
  void set_level(std::string_view name, LogLevel level);
  LogLevel level(std::string_view name) const;
  /// Returns the names of all loggers with their levels, in alphabetical order. The first entry,
  /// with an empty name, is the level of names that have none of their own.
  std::vector<std::pair<std::string, LogLevel>> levels() const;

  /// Writes all records that were logged before the call, and flushes the sinks. The call blocks
  /// until the sinks have finished.
  void flush();
  LogReport report() const;

 private:
  friend class Logger;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  /// A loop and its buffer, found by the loop's address.
  struct RingSlot {
    std::atomic<const Loop*> loop{nullptr};
    std::atomic<LogRing*> ring{nullptr};
  };
  static constexpr std::size_t ring_slots_max = 1024;

  std::optional<Instant> step() noexcept override;
  void write(const detail::LoggerState& state, LogLevel level, std::string_view message,
             std::string_view bound_fields, std::span<const LogField> fields) noexcept;
  std::string next_id();
  LogRing* ring_of(const Loop& loop) noexcept;
  LogRing& add_ring();
  void wake_writer() noexcept;

  bool has_records() const noexcept;
  void drain();
  LogRing* oldest_ring(LogRing* rings);
  void report_drops(LogRing* rings);
  void write_to_sinks(const LogRecord& record);
  void on_sink_failure();

  LogLevel level_of(std::string_view name) const;
  void update_levels() noexcept;

  loop::Platform& platform_;
  const std::size_t ring_bytes_;

  mutable std::mutex names_mutex_;  // guards the next three
  LogLevel level_;
  std::map<std::string, LogLevel, std::less<>> levels_;
  std::unordered_map<std::string, detail::LoggerState, Hash, std::equal_to<>> loggers_;

  std::mutex shared_ring_mutex_;  // held by threads that push to shared_ring_
  std::mutex rings_mutex_;        // guards owned_rings_
  std::vector<std::unique_ptr<LogRing>> owned_rings_;
  std::atomic<LogRing*> rings_{nullptr};
  LogRing* const shared_ring_;
  const std::unique_ptr<std::array<RingSlot, ring_slots_max>> ring_slots_;

  std::mutex drain_mutex_;  // guards the members below and the consumer side of all rings
  std::vector<std::unique_ptr<LogSink>> sinks_;
  LogRecord record_;
  bool failure_reported_ = false;
  detail::Counter written_;
  detail::Counter failed_;
  std::atomic<bool> idle_{false};  // the thread sleeps, or is about to
  std::unique_ptr<loop::PlatformThread> thread_;
};

}  // namespace weir

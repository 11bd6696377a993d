// The logs of a program: loggers by name with their levels, and one thread that writes out what the
// cores have logged.
//
//   OsHost host;
//   Logs logs(host, settings.log);                 // made before the runtime, gone after it
//   Runtime runtime(host, settings.runtime);
//   const Logger log = logs.logger("http.server");
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
#include <vector>

#include "weir/config/type/units.hpp"
#include "weir/app/log_level.hpp"
#include "weir/app/log_ring.hpp"
#include "weir/app/log_sink.hpp"
#include "weir/log/logger.hpp"
#include "weir/loop/contract/detail/platform.hpp"

namespace weir {

class Loop;

/// May be a section of a configuration.
struct LogOptions {
  LogLevel level = LogLevel::info;  ///< of every name that `levels` says nothing about
  /// By name; `http` is about `http.server` too, unless that is there itself.
  std::map<std::string, LogLevel> levels = {};
  LogFormat format = LogFormat::text;  ///< of the host's log, where no other sinks are given
  /// How much each core may have logged that has not been written out yet; at least 8 KiB.
  ByteSize core_buffer = 256_KiB;
};

struct LogReport {
  std::uint64_t written = 0;
  std::uint64_t dropped = 0;  ///< because a core's buffer was full
  std::uint64_t failed = 0;   ///< a sink threw
};

/// Each loop has a buffer of its own, made with its first record; threads that are no loop's share
/// one, behind a mutex. A thread of the host's takes what is there, in the order of the records'
/// times and always in the order of each core, and gives it to the sinks. Nobody waits for it: when
/// a buffer is full, records are dropped, and a warning of the logger `weir.logs` says how many.
///
/// Threads: any, but flush() on none that runs a loop. Lifetime: outlives its loggers, and the
/// loops that log; the host outlives it. Its end writes out everything that was logged before.
class Logs final : ThreadWork {
 public:
  /// How many names loggers may have; those beyond share the name "(others)".
  static constexpr std::size_t names_max = std::size_t{1} << 20;

  /// Into the host's log.
  explicit Logs(Host& host, const LogOptions& options = {});
  Logs(Host& host, const LogOptions& options, std::vector<std::unique_ptr<LogSink>> sinks);
  ~Logs();
  Logs(const Logs&) = delete;
  Logs& operator=(const Logs&) = delete;

  /// The logger of this name. Names, with dots between their parts, are kept as long as the Logs
  /// is: asking again is cheap, and a level that was set holds.
  Logger logger(std::string_view name);

  /// From now on the level and the levels are these; what else is in the options stays as it was.
  /// Other cores may see it a moment later.
  void set_levels(const LogOptions& options);
  /// Of this name and those below it; an empty one: of all that no other is set for.
  void set_level(std::string_view name, LogLevel level);
  LogLevel level(std::string_view name) const;

  /// Returns when everything that was logged before has been given to the sinks, and they have been
  /// flushed. Blocks for as long as they do.
  void flush();
  LogReport report() const;

 private:
  friend class Logger;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  /// A loop and its buffer; found by the loop's address.
  struct Place {
    std::atomic<const Loop*> loop{nullptr};
    std::atomic<LogRing*> ring{nullptr};
  };
  static constexpr std::size_t places_max = 1024;

  std::optional<Instant> step() noexcept override;
  void write(const detail::LogChannel& channel, LogLevel level, std::string_view message,
             std::string_view bound, std::span<const LogField> fields) noexcept;
  std::string next_id();
  LogRing* ring_of(const Loop& loop) noexcept;
  LogRing& add_ring();
  void wake_writer() noexcept;

  bool anything() const noexcept;
  void drain();
  LogRing* first_of(LogRing* rings);
  void tell_drops(LogRing* rings);
  void pass_on(const LogRecord& record);

  LogLevel level_of(std::string_view name) const;
  void update_channels() noexcept;

  Host& host_;
  const std::size_t ring_bytes_;

  mutable std::mutex names_mutex_;  // guards the next three
  LogLevel level_;
  std::map<std::string, LogLevel, std::less<>> levels_;
  std::unordered_map<std::string, detail::LogChannel, Hash, std::equal_to<>> channels_;

  std::mutex outside_mutex_;  // of those that push to outside_
  std::mutex rings_mutex_;    // guards owned_
  std::vector<std::unique_ptr<LogRing>> owned_;
  std::atomic<LogRing*> rings_{nullptr};
  LogRing* const outside_;
  const std::unique_ptr<std::array<Place, places_max>> places_;

  std::mutex drain_mutex_;  // guards what follows, and the side of the rings that takes
  std::vector<std::unique_ptr<LogSink>> sinks_;
  LogRecord record_;
  bool failure_told_ = false;
  Counter written_;
  Counter failed_;
  std::atomic<bool> idle_{false};  // the thread sleeps, or is about to
  std::unique_ptr<HostThread> thread_;
};

}  // namespace weir

// What load to put on a server, and what came of it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tools/weir/histogram.hpp"
#include "tools/weir/load_group.hpp"
#include "tools/weir/response_reader.hpp"
#include "weir/base/time.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"

namespace weir::bench {

struct LoadPlan {
  /// A batch of several requests is written as a whole before its responses are read, so it must
  /// fit the sockets' buffers: depth × the request's size has this limit.
  static constexpr std::size_t batch_bytes_max = 64 * 1024;

  Endpoint endpoint;
  std::string request;  ///< with a run of '#' where `rules.numbering` says
  ResponseRules rules;
  unsigned connections = 64;
  unsigned connections_before = 0;  ///< of other threads: numbers differ between connections
  unsigned depth = 1;  ///< requests written at once on a connection, before any is answered
  Duration warm_up{};  ///< under load before the measured time; nothing of it is counted but faults
  Duration length = std::chrono::seconds(4);
  /// How many in all (none, too), however long that takes and without warming up; nullopt: for
  /// `length`.
  std::optional<std::uint64_t> requests;
  bool abandon = false;  ///< when the measured time is over, do not wait for what is under way
  /// Requests per second in all, sent when they are due whatever the server does; 0: as fast as
  /// responses come.
  double rate = 0;
  bool new_connections = false;                ///< one request each; the server closes
  Duration timeout = std::chrono::seconds(5);  ///< for connecting, and for the oldest response
  LoadGroup* group = nullptr;  ///< of the threads that share this load; nullptr: there is one
  /// The processor time of the server so far; read when the measured time begins and ends.
  std::function<std::optional<Duration>()> server_time;
};

/// What can go wrong beside a response that is not the right one.
enum class LoadFault : std::uint8_t {
  refused,        ///< nobody listens
  not_connected,  ///< connecting failed in another way
  timed_out,
  reset,       ///< reading or writing failed
  ended,       ///< the server closed before it had answered, without having said so
  not_closed,  ///< the server did not close where it was asked to
};
std::string_view name_of(LoadFault fault) noexcept;

/// Everything that went wrong, by kind, with the first of each in words.
class Faults {
 public:
  void count(LoadFault fault, std::string_view detail);
  void count(ResponseFault fault, std::string_view detail);
  void add(const Faults& other);

  std::uint64_t total() const noexcept;
  std::uint64_t of(LoadFault fault) const noexcept;
  std::uint64_t of(ResponseFault fault) const noexcept;
  /// Calls visit(name, count, detail of the first) for each kind that happened.
  void visit(
      const std::function<void(std::string_view, std::uint64_t, std::string_view)>& visit) const;

 private:
  static constexpr std::size_t load_faults = 6;
  static constexpr std::size_t response_faults = 8;
  struct Kind {
    std::uint64_t count = 0;
    std::string first;
  };
  static std::string_view name_of_kind(std::size_t index) noexcept;
  void count(std::size_t index, std::string_view detail);
  std::array<Kind, load_faults + response_faults> kinds_;
};

/// What one thread saw, or all together.
struct LoadResult {
  std::uint64_t responses = 0;  ///< verified, within the measured time
  std::uint64_t late = 0;       ///< verified, but after it had ended
  /// Sent on connections that then ended, for whatever reason but LoadPlan::abandon.
  std::uint64_t unanswered = 0;
  std::uint64_t abandoned = 0;    ///< under way at the end, and as asked not waited for
  std::uint64_t starved = 0;      ///< connections that wait for an answer all the measured time
  std::uint64_t unsent = 0;       ///< due (at a fixed rate) but not sent when the time was over
  std::uint64_t connections = 0;  ///< opened
  std::uint64_t closed_by_server = 0;  ///< ends of connections that the server had announced
  std::uint64_t bytes_received = 0;
  std::uint64_t body_bytes = 0;  ///< of each response
  /// That of the first response, as far as bodies are compared; nullopt: none came, or they vary.
  std::optional<std::string> body;
  Duration length{};                    ///< the measured time: from when all were connected
  double per_second = 0;                ///< responses
  std::optional<Duration> server_time;  ///< that the server used in the measured time
  /// Of every verified response. At a fixed rate from when it was due, and then also of requests
  /// that were never answered or never sent: as long as they had waited when that was clear.
  Histogram latency;
  Faults faults;
  std::string backend;

  /// What another thread saw in the same time. Bodies that differ between threads are a fault.
  void add(const LoadResult& other);
};

/// The share of a plan that one of several threads has.
LoadPlan share_of(const LoadPlan& plan, unsigned thread, unsigned threads);

/// Puts the load of `plan` on its server from this loop alone and gives what came of it. Draining
/// the loop ends the measured time early.
/// Cancel: ends it at once; what waits for an answer is counted as unanswered.
Task<LoadResult> put_load(LoadPlan plan);

}  // namespace weir::bench

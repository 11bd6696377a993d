// Describes the load to put on a server, and its result.
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
#include "weir/tls/client.hpp"

namespace weir::bench {

struct LoadPlan {
  /// Largest size of a batch, which is depth × the size of the request. A batch of several
  /// requests is written completely before its responses are read, so it must fit into the
  /// sockets' buffers.
  static constexpr std::size_t batch_bytes_max = 64 * 1024;

  Endpoint endpoint;
  tls::Client* tls = nullptr;  ///< shared by the threads of this load; nullptr: no TLS
  std::string tls_host;        ///< name or address of the server, for SNI
  std::string request;         ///< whole request, with a run of '#' at `rules.number_placeholder`
  ResponseRules rules;
  unsigned connections = 64;
  /// Index of this thread's first connection. It makes request numbers differ between the
  /// connections of all threads.
  unsigned first_connection_index = 0;
  unsigned depth = 1;  ///< requests written together on a connection, before any is answered
  Duration warm_up{};  ///< load before the measured time; only its errors are counted
  Duration length = std::chrono::seconds(4);
  /// Number of requests to send in all, which may be 0. The load then takes as long as it needs
  /// and does not warm up. nullopt: the load takes `length`.
  std::optional<std::uint64_t> requests;
  bool abandon = false;  ///< true: requests in progress at the end are not awaited
  /// Requests per second in all. Each is sent when it is due, however fast the server is. 0: each
  /// request is sent when the previous response arrives.
  double rate = 0;
  bool new_connections = false;  ///< true: one connection per request, closed by the server
  bool resume = false;  ///< true: a connection resumes the TLS session of the one that it replaces
  /// Limit for connecting, and for the oldest response.
  Duration timeout = std::chrono::seconds(5);
  LoadGroup* group = nullptr;  ///< shared by the threads of this load; nullptr: one thread
  /// Returns the CPU time that the server has used so far. Read when the measured time begins and
  /// when it ends.
  std::function<std::optional<Duration>()> server_cpu_time;
};

/// Errors of a load, other than a wrong response.
enum class LoadError : std::uint8_t {
  refused,        ///< no socket listens at the endpoint
  not_connected,  ///< another failure to connect
  timed_out,
  reset,       ///< failure to read or write
  ended,       ///< close before the response, without an announcement
  not_closed,  ///< no close after `Connection: close`
  handshake,   ///< failure of a TLS handshake
};
std::string_view name_of(LoadError fault) noexcept;

/// Counts errors by kind and stores a description of the first error of each kind.
class ErrorCounts {
 public:
  void count(LoadError fault, std::string_view detail);
  void count(ResponseError fault, std::string_view detail);
  void add(const ErrorCounts& other);

  std::uint64_t total() const noexcept;
  std::uint64_t of(LoadError fault) const noexcept;
  std::uint64_t of(ResponseError fault) const noexcept;
  /// Calls visit(name, count, description of the first error) for each kind that happened.
  void visit(
      const std::function<void(std::string_view, std::uint64_t, std::string_view)>& visit) const;

 private:
  static constexpr std::size_t load_error_count = 7;
  static constexpr std::size_t response_error_count = 8;
  struct Kind {
    std::uint64_t count = 0;
    std::string first;
  };
  static std::string_view name_of_kind(std::size_t index) noexcept;
  void count(std::size_t index, std::string_view detail);
  std::array<Kind, load_error_count + response_error_count> kinds_;
};

/// The result of one thread, or of all threads together.
struct LoadResult {
  std::uint64_t responses = 0;  ///< responses verified within the measured time
  std::uint64_t late = 0;       ///< responses verified after the measured time
  /// Requests whose connection ended before their response, for any reason except
  /// LoadPlan::abandon.
  std::uint64_t unanswered = 0;
  std::uint64_t abandoned = 0;    ///< requests in progress at the end that were not awaited
  std::uint64_t starved = 0;      ///< connections that got no response in the whole measured time
  std::uint64_t unsent = 0;       ///< requests due at a fixed rate, but not sent before the end
  std::uint64_t connections = 0;  ///< connections opened
  std::uint64_t handshakes = 0;   ///< complete TLS handshakes, also of the warm-up
  std::uint64_t resumed = 0;      ///< those of them that resumed a session
  std::uint64_t closed_by_server = 0;  ///< announced closes by the server
  std::uint64_t bytes_received = 0;
  std::uint64_t body_bytes = 0;  ///< size of the body of each response
  /// Body of the first response, as far as bodies are compared. nullopt: no response came, bodies
  /// vary, or requests have numbers.
  std::optional<std::string> body;
  Duration length{};      ///< measured time; it begins when all connections are open
  double per_second = 0;  ///< responses per second
  std::optional<Duration> server_cpu_time;  ///< CPU time of the server in the measured time
  /// Latency of every verified response. A fixed rate measures it from the time when the request
  /// was due. It then includes requests that were never answered or never sent, with the time
  /// that they had waited at the end.
  Histogram latency;
  ErrorCounts errors;
  std::string backend;

  /// Adds the result of another thread for the same time. Bodies that differ between threads
  /// count as an error.
  void add(const LoadResult& other);
};

/// Returns the share of `plan` for thread `thread` of `threads`.
LoadPlan share_of(const LoadPlan& plan, unsigned thread, unsigned threads);

/// Puts the load of `plan` on its server from this loop alone. Draining the loop ends the
/// measured time early.
/// Returns: the result of the load.
/// Cancel: ends the load immediately; requests without a response count as unanswered.
Task<LoadResult> generate_load(LoadPlan plan);

}  // namespace weir::bench

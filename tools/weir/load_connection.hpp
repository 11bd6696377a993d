// One connection of a load, which sends requests and verifies their responses until the load
// ends.
#pragma once

#include <cstdint>
#include <optional>

#include "tools/weir/load.hpp"
#include "tools/weir/response_reader.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/net/tcp.hpp"

namespace weir::bench {

class LoadWorker;

/// A LoadConnection belongs to one LoadWorker.
/// Threads: the loop of the worker.
/// Lifetime: the worker outlives it; run() has ended before it is destroyed.
class LoadConnection {
 public:
  LoadConnection(LoadWorker& worker, unsigned index) noexcept;

  /// Tries to connect once, with the TLS handshake if the plan has TLS. The worker's result counts
  /// a failure, and run() tries again.
  Task<> open();
  /// Puts load on the server until the worker is done. Opens the connection when it is not open.
  Task<> run();
  /// Cancels a wait that began at `since` or earlier, and counts it as timed out.
  void cancel_if_waiting_since(Instant since);
  /// Stops waiting for the requests in progress, and counts them as abandoned.
  void abandon();

 private:
  enum class Exchange : std::uint8_t { done, over };

  Task<> run_closed_loop();
  Task<> run_open_loop();
  Task<> run_connection_per_request();
  /// Sends `count` requests and reads their responses.
  /// Returns: `over` if the connection can take no more requests.
  Task<Exchange> exchange(unsigned count);
  /// Performs the TLS handshake over a connected stream, and keeps the stream if that succeeds.
  Task<> secure(tcp::Stream stream, tls::Connector& connector);
  /// Waits for the server to close, after the only response of a connection.
  Task<> read_end();

  std::string_view requests(unsigned count);
  void on_responses(unsigned count);
  /// Adds the outstanding requests, which will not be answered, to `count`.
  void count_lost(std::uint64_t& count);
  /// Counts the unsent requests of a fixed rate when the time is over. `next` is when the first
  /// of them was due.
  void count_unsent(Instant next);
  Exchange on_io_error(std::error_code error);
  void on_open_error(LoadError fault, const std::string& reason);
  Exchange on_response_error();
  void close();
  Task<> pause();

  LoadWorker& worker_;
  unsigned index_;
  std::optional<AnyStream> stream_;
  ResponseReader reader_;
  std::string numbered_;      // requests with their numbers
  std::uint64_t number_ = 0;  // number of the next request
  unsigned outstanding_ = 0;
  Instant due_{};        // when the oldest request without a response was sent, or was due
  Duration interval_{};  // time between requests; zero: no fixed rate
  Instant waiting_since_ = never;
  bool timed_out_ = false;
  bool abandoned_ = false;
  bool failed_ = false;  // true: an error has happened since the last pause
};

}  // namespace weir::bench

// The counters of the server.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "weir/base/detail/counter.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

/// Counts the events on the connections of a server, and reports the counts as metrics of the core.
/// Threads: the loop's, except for reading.
class ServerCounters final : MetricSource {
 public:
  explicit ServerCounters(Loop& loop) { loop.metrics().add(*this); }
  ~ServerCounters() { detach(); }

  void count_parse_error(ParseError error) noexcept {
    parse_errors[static_cast<std::size_t>(error)].add();
  }
  /// Returns the counters in words, parse errors by reason: "3 connections, 12 requests, 1
  /// bad_host".
  std::string summary() const;

  weir::detail::Counter connections_accepted;
  weir::detail::Counter connections_rejected;  ///< connections beyond connections_max
  weir::detail::Counter connections_evicted;   ///< idle connections closed for others
  weir::detail::Counter connections_open;
  weir::detail::Counter websockets;  ///< connections that became WebSockets
  weir::detail::Counter websockets_open;
  weir::detail::Counter http2_connections;  ///< connections that speak HTTP/2
  weir::detail::Counter http2_streams;      ///< streams that clients have opened
  weir::detail::Counter http2_streams_open;
  weir::detail::Counter http2_streams_reset;    ///< open streams that either side has reset
  weir::detail::Counter http2_streams_refused;  ///< streams beyond the limits
  weir::detail::Counter silent_connections;     ///< connections closed because no byte ever came
  weir::detail::Counter bad_proxy_headers;  ///< connections closed because of their PROXY header
  weir::detail::Counter slow_readers;       ///< connections closed because of Limits::write_rate
  weir::detail::Counter requests;           ///< parsed heads
  weir::detail::Counter responses;          ///< responses handed over for sending
  weir::detail::Counter handler_failures;
  std::array<weir::detail::Counter, parse_error_count>
      parse_errors;  ///< rejected requests, by reason

 private:
  void collect(MetricSnapshot& sum) const override;
};

}  // namespace weir::http

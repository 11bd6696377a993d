// The metrics of a client's pool of connections.
#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/detail/counter.hpp"
#include "weir/loop/detail/metric_row.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

/// Counts what a ClientPool has now, as metrics of its core.
/// Threads: the loop's, except for reading.
class ClientCounters final : MetricSource {
 public:
  ClientCounters() noexcept = default;
  ~ClientCounters() { detach(); }
  /// Reports the numbers as metrics of `loop` from now on.
  void report_to(Loop& loop) noexcept { loop.metrics().add(*this); }

  weir::detail::Counter open;        ///< connections, in use and idle
  weir::detail::Counter idle;        ///< idle connections of HTTP/1.1
  weir::detail::Counter http2_idle;  ///< idle connections of HTTP/2
  weir::detail::Counter waiting;     ///< requests that wait for a connection

 private:
  static std::uint64_t idle_of(const ClientCounters& counters) {
    return counters.idle.value() + counters.http2_idle.value();
  }
  /// The core may change a number between two reads.
  static std::uint64_t active_of(const ClientCounters& counters) {
    const std::uint64_t open = counters.open.value();
    const std::uint64_t idle = idle_of(counters);
    return open > idle ? open - idle : 0;
  }
  static constexpr MetricInfo info(std::string_view state) {
    return {.name = "http.client.open_connections",
            .unit = "{connection}",
            .help = "Number of outbound HTTP connections that are active or idle.",
            .label = "http.connection.state",
            .label_value = state};
  }
  void collect(MetricSnapshot& sum) const override {
    constexpr auto now = Metric::Kind::gauge;
    using Row = weir::detail::MetricRow<ClientCounters>;
    static constexpr Row rows[]{
        {"http client connections active", active_of, info("active"), now},
        {"http client connections idle", idle_of, info("idle"), now},
        {"http client requests waiting",
         weir::detail::count_of<&ClientCounters::waiting>,
         {"weir.http.client.requests.waiting", "{request}",
          "Requests that wait for a connection of an HTTP client."},
         now},
    };
    weir::detail::collect_rows<ClientCounters>(sum, rows, *this);
  }
};

}  // namespace weir::http

#include "weir/http/server/detail/server_counters.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/loop/detail/metric_row.hpp"

namespace weir::http {
namespace {

// The descriptions of ServerCounters for exporters.

constexpr MetricInfo closed_info(std::string_view reason) {
  return {.name = "weir.http.connections.closed",
          .unit = "{connection}",
          .help = "Connections that servers have closed, by reason.",
          .label = "reason",
          .label_value = reason};
}

using CounterRow = weir::detail::MetricRow<ServerCounters>;
using weir::detail::count_of;

constexpr CounterRow counter_rows[]{
    {"http connections",
     count_of<&ServerCounters::connections_accepted>,
     {"weir.http.connections", "{connection}", "Connections that HTTP servers have accepted."}},
    {"http connections open",
     count_of<&ServerCounters::connections_open>,
     {"weir.http.connections.open", "{connection}", "Open connections of HTTP servers."},
     Metric::Kind::gauge},
    {"http connections rejected", count_of<&ServerCounters::connections_rejected>,
     closed_info("too_many")},
    {.name = "http idle connections closed for others",
     .value = count_of<&ServerCounters::connections_evicted>,
     .info = closed_info("evicted"),
     .when_used = true},
    {"http websockets",
     count_of<&ServerCounters::websockets>,
     {"weir.http.websockets", "{connection}", "Connections that became WebSockets."}},
    {"http websockets open",
     count_of<&ServerCounters::websockets_open>,
     {"weir.http.websockets.open", "{connection}", "Open WebSockets."},
     Metric::Kind::gauge},
    {"http2 connections",
     count_of<&ServerCounters::http2_connections>,
     {"weir.http2.connections", "{connection}", "Connections of servers that speak HTTP/2."}},
    {"http2 streams",
     count_of<&ServerCounters::http2_streams>,
     {"weir.http2.streams", "{stream}", "Streams that clients have opened."}},
    {"http2 streams open",
     count_of<&ServerCounters::http2_streams_open>,
     {"weir.http2.streams.open", "{stream}", "Open streams of servers."},
     Metric::Kind::gauge},
    {"http2 streams reset",
     count_of<&ServerCounters::http2_streams_reset>,
     {"weir.http2.streams.reset", "{stream}", "Open streams that either side has reset."}},
    {"http2 streams refused",
     count_of<&ServerCounters::http2_streams_refused>,
     {"weir.http2.streams.refused", "{stream}", "Streams refused because of the limits."}},
    {"http connections without a request", count_of<&ServerCounters::silent_connections>,
     closed_info("silent")},
    {.name = "http bad PROXY headers",
     .value = count_of<&ServerCounters::bad_proxy_headers>,
     .info = closed_info("bad_proxy_header"),
     .when_used = true},
    {"http slow readers", count_of<&ServerCounters::slow_readers>, closed_info("slow_reader")},
    {"http requests",
     count_of<&ServerCounters::requests>,
     {"weir.http.requests", "{request}", "Heads of requests parsed."}},
    {"http responses",
     count_of<&ServerCounters::responses>,
     {"weir.http.responses", "{response}", "Responses handed over for sending."}},
    {"http handler failures",
     count_of<&ServerCounters::handler_failures>,
     {"weir.http.handler.failures", "{failure}", "Exceptions and errors of handlers."}},
};

std::array<MetricInfo, parse_error_count> make_rejected_infos() {
  std::array<MetricInfo, parse_error_count> infos{};
  for (std::size_t index = 0; index < parse_error_count; ++index) {
    infos[index] = {.name = "weir.http.requests.rejected",
                    .unit = "{request}",
                    .help = "Requests rejected by the server, by reason.",
                    .label = "reason",
                    .label_value = name_of(static_cast<ParseError>(index))};
  }
  return infos;
}

}  // namespace

/// Runs on any thread, see MetricSource. Parse errors with a count of 0 are left out.
void ServerCounters::collect(MetricSnapshot& sum) const {
  weir::detail::collect_rows<ServerCounters>(sum, counter_rows, *this);
  static const auto rejected_infos = make_rejected_infos();
  for (std::size_t index = 1; index < parse_error_count; ++index) {
    const std::uint64_t count = parse_errors[index].value();
    if (count == 0) continue;
    const MetricInfo& info = rejected_infos[index];
    sum.add({"http requests rejected: " + std::string(info.label_value), count,
             Metric::Kind::counter, &info});
  }
}

std::string ServerCounters::summary() const {
  std::string text = std::to_string(connections_accepted.value()) + " connections, " +
                     std::to_string(requests.value()) + " requests";
  const auto mention = [&text](std::uint64_t count, std::string_view what) {
    if (count == 0) return;
    text.append(", ").append(std::to_string(count)).append(" ").append(what);
  };
  mention(connections_rejected.value(), "connections rejected");
  mention(connections_evicted.value(), "closed for others");
  mention(silent_connections.value(), "without a request");
  mention(slow_readers.value(), "slow readers");
  mention(handler_failures.value(), "handler failures");
  for (std::size_t index = 0; index < parse_error_count; ++index) {
    mention(parse_errors[index].value(), name_of(static_cast<ParseError>(index)));
  }
  return text;
}

}  // namespace weir::http

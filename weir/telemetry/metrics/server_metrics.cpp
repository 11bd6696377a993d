#include "weir/telemetry/metrics/server_metrics.hpp"

#include <array>
#include <charconv>
#include <string_view>

namespace weir::telemetry {
namespace {

std::string_view protocol_version(http::Version version) noexcept {
  switch (version) {
    case http::Version::http_1_0:
      return "1.0";
    case http::Version::http_1_1:
      return "1.1";
    case http::Version::http_2:
      return "2";
  }
  return {};
}

/// Packs the labels of a request into a number other than 0.
std::uint64_t key_of(const http::EndedRequest& request) noexcept {
  const std::uint64_t route =
      request.route == nullptr ? http::RouteName::names_max : request.route->number;
  return route << 32 | std::uint64_t{static_cast<std::uint16_t>(request.status)} << 16 |
         std::uint64_t{static_cast<std::uint8_t>(request.method)} << 8 |
         std::uint64_t{static_cast<std::uint8_t>(request.version)} << 2 |
         std::uint64_t{request.complete} << 1 | 1;
}

}  // namespace

ServerMetrics::ServerMetrics(const ServerMetricsOptions& options)
    : durations_("http.server.request.duration",
                 {.help = "Duration of HTTP server requests.",
                  .labels = {"http.request.method", "http.route", "http.response.status_code",
                             "network.protocol.version", "error.type"},
                  .label_sets_max = options.label_sets_max,
                  .native = options.native}),
      layout_(durations_.family_->options().buckets) {}

void ServerMetrics::on_requests_ended(Loop&, Instant end,
                                      std::span<const http::EndedRequest> requests) noexcept {
  detail::ThreadCells* const cells = detail::ThreadCells::current();
  if (cells == nullptr) return;
  for (const http::EndedRequest& each : requests) {
    const std::uint64_t key = key_of(each);
    auto& known = cells->known(key);
    if (known.key != key) [[unlikely]]
      find(known, key, each);
    if (known.cells == nullptr) continue;
    detail::record(layout_, known.cells, static_cast<double>((end - each.begin).count()) * 1e-9);
  }
}

/// Finds the cells of a request whose labels this thread has not in its cache. `known` has no cells
/// afterwards if the measurement is dropped.
void ServerMetrics::find(detail::ThreadCells::Known& known, std::uint64_t key,
                         const http::EndedRequest& request) noexcept {
  known = {};
  std::array<char, 8> room;
  const int code = http::code_of(request.status);
  const char* const end = std::to_chars(room.data(), room.data() + room.size(), code).ptr;
  const std::string_view method =
      request.method == http::Method::other ? "_OTHER" : http::name_of(request.method);
  const HistogramSeries series = durations_.with(
      method, request.route == nullptr ? std::string_view() : request.route->pattern,
      code == 0 ? std::string_view() : std::string_view(room.data(), end),
      protocol_version(request.version), request.complete ? "" : "client_left");
  if (series.series_->dropped) return series.record(1.0);
  known = {.key = key, .cells = detail::ThreadCells::of(series.series_->first)};
  if (known.cells == nullptr) known = {};
}

}  // namespace weir::telemetry

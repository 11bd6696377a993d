#include "weir/telemetry/metrics/server_metrics.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
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

/// Returns the labels of a request, except its route, as one number.
std::uint64_t labels_of(const http::EndedRequest& request) noexcept {
  static_assert(offsetof(http::EndedRequest, method) == offsetof(http::EndedRequest, status) + 2);
  static_assert(offsetof(http::EndedRequest, version) == offsetof(http::EndedRequest, status) + 3);
  static_assert(offsetof(http::EndedRequest, complete) == offsetof(http::EndedRequest, status) + 4);
  std::uint32_t first = 0;  // one load instead of three
  std::memcpy(&first,
              reinterpret_cast<const char*>(&request) + offsetof(http::EndedRequest, status),
              sizeof first);
  return std::uint64_t{first} << 1 | std::uint64_t{request.complete};
}

/// Returns a number other than 0 for the route and the other labels of a request.
std::uint64_t key_of(const http::RouteName* route, std::uint64_t labels) noexcept {
  const std::uint64_t number = route == nullptr ? http::RouteName::names_max : route->number;
  return (number + 1) << 40 | labels;
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

/// Counts consecutive requests together that have the same labels and begin in the same turn: a
/// busy server ends many of them in a turn.
void ServerMetrics::on_requests_ended(Loop&, Instant end,
                                      std::span<const http::EndedRequest> requests) noexcept {
  detail::ThreadCells* const cells = detail::ThreadCells::current();
  if (cells == nullptr) return;
  detail::KnownCells& known = cells->known_requests();
  Instant begin = never;
  detail::HistogramLayout::Place place;
  const http::EndedRequest* each = requests.data();
  const http::EndedRequest* const last = each + requests.size();
  while (each != last) {
    const http::EndedRequest& request = *each;
    const std::uint64_t labels = labels_of(request);
    do {
      ++each;
    } while (each != last && each->begin == request.begin && each->route == request.route &&
             labels_of(*each) == labels);
    const auto times = static_cast<std::uint64_t>(each - &request);
    if (request.begin != begin) {
      begin = request.begin;
      place = layout_.place_of(static_cast<double>((end - begin).count()) * 1e-9);
    }
    const std::uint64_t key = key_of(request.route, labels);
    const detail::KnownCells::Entry* const found = known.find(key);
    detail::Cell* const first = found != nullptr ? found->cells : find(known, key, request).cells;
    if (first != nullptr) {
      detail::record(layout_, first, place, times);
    } else if (detail::Cell* const dropped =
                   detail::ThreadCells::of(durations_.family_->dropped().first)) {
      dropped->add(times);
    }
  }
}

/// Finds the cells of a request whose labels this thread has not counted before.
detail::KnownCells::Entry ServerMetrics::find(detail::KnownCells& known, std::uint64_t key,
                                              const http::EndedRequest& request) noexcept {
  std::array<char, 8> room;
  const int code = http::code_of(request.status);
  const char* const end = std::to_chars(room.data(), room.data() + room.size(), code).ptr;
  const std::string_view method =
      request.method == http::Method::other ? "_OTHER" : http::name_of(request.method);
  const HistogramSeries series = durations_.with(
      method, request.route == nullptr ? std::string_view() : request.route->pattern,
      code == 0 ? std::string_view() : std::string_view(room.data(), end),
      protocol_version(request.version), request.complete ? "" : "client_left");
  const bool dropped = series.series_->dropped;
  detail::Cell* const cells = dropped ? nullptr : detail::ThreadCells::of(series.series_->first);
  const detail::KnownCells::Entry entry{.key = key, .cells = cells};
  // Without memory, the next request tries again.
  if (cells != nullptr || (dropped && durations_.family_->is_full())) known.add(entry);
  return entry;
}

}  // namespace weir::telemetry

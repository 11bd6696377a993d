#include "weir/tls/detail/tls_counters.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace weir::tls::detail {
namespace {

constexpr MetricInfo finished_info_for(std::string_view version) {
  return {.name = "weir.tls.handshakes.finished",
          .unit = "{handshake}",
          .help = "TLS handshakes finished, by version.",
          .label = "tls.protocol.version",
          .label_value = version};
}
constexpr MetricInfo failed_info_for(std::string_view reason) {
  return {.name = "weir.tls.handshakes.failed",
          .unit = "{handshake}",
          .help = "TLS handshakes failed, by reason.",
          .label = "reason",
          .label_value = reason};
}
constexpr MetricInfo cancelled_info = failed_info_for("cancelled");

auto make_failed_infos() {
  std::array<MetricInfo, error_count> infos{};
  for (std::size_t index = 0; index < error_count; ++index) {
    infos[index] = failed_info_for(index == 0 ? "other" : name_of(static_cast<Error>(index)));
  }
  return infos;
}

}  // namespace

void TlsCounters::count_success(const TlsInfo& info) noexcept {
  finished[static_cast<std::size_t>(info.version)].add();
  if (info.resumed) resumed.add();
}

void TlsCounters::count_failure(const std::error_code& code) noexcept {
  if (code == make_error_code(Errc::cancelled)) return cancelled.add();
  const bool own = code.category() == tls_error_category();
  failed[own ? static_cast<std::size_t>(code.value()) : 0].add();
}

/// Runs on any thread, see MetricSource. Reasons with a count of 0 are left out.
void TlsCounters::collect(MetricSnapshot& sum) const {
  static constexpr MetricInfo begun_info{
      .name = "weir.tls.handshakes", .unit = "{handshake}", .help = "TLS handshakes begun."};
  static constexpr MetricInfo resumed_info{
      .name = "weir.tls.sessions.resumed", .unit = "{session}", .help = "TLS sessions resumed."};
  static constexpr std::array finished_info{finished_info_for("1.2"), finished_info_for("1.3")};
  static const auto failed_info = make_failed_infos();
  const auto add = [&sum](std::string name, const weir::detail::Counter& counter,
                          const MetricInfo& info) {
    sum.add({std::move(name), counter.value(), Metric::Kind::counter, &info});
  };
  add("tls handshakes", begun, begun_info);
  add("tls handshakes finished: TLSv1.2", finished[0], finished_info[0]);
  add("tls handshakes finished: TLSv1.3", finished[1], finished_info[1]);
  add("tls sessions resumed", resumed, resumed_info);
  if (cancelled.value() != 0) add("tls handshakes cancelled", cancelled, cancelled_info);
  for (std::size_t index = 0; index < error_count; ++index) {
    if (failed[index].value() == 0) continue;
    const MetricInfo& info = failed_info[index];
    add("tls handshakes failed: " + std::string(info.label_value), failed[index], info);
  }
}

}  // namespace weir::tls::detail

#include "weir/tls/detail/tls_counters.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace weir::tls::detail {

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
  const auto total = [&sum](std::string name, const weir::detail::Counter& counter) {
    sum.add({std::move(name), counter.value()});
  };
  total("tls handshakes", begun);
  total("tls handshakes finished: TLSv1.2", finished[0]);
  total("tls handshakes finished: TLSv1.3", finished[1]);
  total("tls sessions resumed", resumed);
  if (cancelled.value() != 0) total("tls handshakes cancelled", cancelled);
  for (std::size_t index = 0; index < error_count; ++index) {
    if (failed[index].value() == 0) continue;
    const std::string_view reason = index == 0 ? "other" : name_of(static_cast<Error>(index));
    total("tls handshakes failed: " + std::string(reason), failed[index]);
  }
}

}  // namespace weir::tls::detail

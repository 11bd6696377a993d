// The upstreams of a reverse proxy as one core sees them: which gets the next request, and which
// has failed too often.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/web/proxy/reverse_proxy.hpp"

namespace weir::http {

/// Chooses an upstream for each request.
/// Threads: one core's.
class Upstreams {
 public:
  /// `first` is the upstream of the first request, so that cores begin with different ones.
  Upstreams(std::size_t count, const ReverseProxyOptions& options, std::size_t first)
      : all_(count),
        choice_(options.choice),
        failures_max_(options.failures_max),
        eject_time_(options.eject_time),
        next_(first % count) {}

  /// Returns the index of the upstream for a request that has tried those in `tried`; nullopt if
  /// it has tried all. Ejected upstreams come last.
  std::optional<std::size_t> choose(Instant now, std::span<const std::size_t> tried) noexcept;

  void begin(std::size_t index) noexcept { ++all_[index].requests; }
  void end(std::size_t index) noexcept { --all_[index].requests; }
  void record_success(std::size_t index) noexcept {
    all_[index].failures = 0;
    all_[index].ejected_until = Instant::min();
  }
  /// Returns true if the upstream is ejected by this failure.
  bool record_failure(std::size_t index, Instant now) noexcept;

 private:
  struct Upstream {
    std::size_t requests = 0;  // in progress
    unsigned failures = 0;     // in a row
    Instant ejected_until = Instant::min();
  };

  bool is_better(const Upstream& a, const Upstream& b, Instant now) const noexcept;

  std::vector<Upstream> all_;
  UpstreamChoice choice_;
  unsigned failures_max_;
  Duration eject_time_;
  std::size_t next_;
};

}  // namespace weir::http

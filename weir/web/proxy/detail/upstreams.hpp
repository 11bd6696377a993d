// The upstreams of a reverse proxy as one core sees them: which gets the next request, how many
// they carry, and which has failed too often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/web/proxy/reverse_proxy.hpp"

namespace weir::http {

/// What an upstream is used for. A WebSocket has a connection of its own.
enum class UpstreamUse : std::uint8_t { request, websocket };

/// Chooses an upstream for each request.
/// Threads: one core's.
class Upstreams {
 public:
  /// `first` is the upstream of the first request, so that cores begin with different ones. The
  /// core has `connections` for all upstreams together.
  Upstreams(std::size_t count, const ReverseProxyOptions& options, std::size_t connections,
            std::size_t first);

  /// Notes how many requests a connection to an upstream carries at a time; at first 1.
  void set_requests_per_connection(std::size_t index, std::size_t requests) noexcept;
  /// Returns the number of requests that the upstreams carry together at a time: that of the
  /// upstreams that are not ejected, or of all if all are. The requests in progress at an ejected
  /// one come on top, because they take nothing from the others.
  std::size_t capacity(Instant now) noexcept;
  /// Returns when capacity() changes without another call.
  Instant next_change() const noexcept { return divide_at_; }

  /// Returns the index of the upstream for a request that has tried those in `tried`; nullopt if
  /// it has tried all. Those whose capacity is used up come after others, and ejected ones last.
  std::optional<std::size_t> choose(Instant now, std::span<const std::size_t> tried) noexcept;

  void begin(std::size_t index, UpstreamUse use = UpstreamUse::request) noexcept {
    ++count_of(index, use);
  }
  void end(std::size_t index, UpstreamUse use = UpstreamUse::request) noexcept {
    --count_of(index, use);
    if (all_[index].ejected_until != Instant::min()) divide_at_ = Instant::min();
  }
  void record_success(std::size_t index) noexcept {
    all_[index].failures = 0;
    if (all_[index].ejected_until != Instant::min()) divide_at_ = Instant::min();
    all_[index].ejected_until = Instant::min();
  }
  /// Returns true if the upstream is ejected by this failure.
  bool record_failure(std::size_t index, Instant now) noexcept;

 private:
  struct Upstream {
    std::size_t requests = 0;        // in progress
    std::size_t websockets = 0;      // open
    std::size_t per_connection = 1;  // requests that a connection carries
    std::size_t capacity = 0;        // requests that its connections carry
    unsigned failures = 0;           // in a row
    Instant ejected_until = Instant::min();

    bool is_full() const noexcept { return requests >= capacity; }
    std::size_t load() const noexcept { return requests + websockets; }
  };

  std::size_t& count_of(std::size_t index, UpstreamUse use) noexcept {
    Upstream& used = all_[index];
    return use == UpstreamUse::request ? used.requests : used.websockets;
  }
  void divide_connections(Instant now) noexcept;
  bool is_better(const Upstream& a, const Upstream& b, Instant now) const noexcept;

  std::vector<Upstream> all_;
  std::size_t connections_;             // of all upstreams
  std::size_t connections_of_one_max_;  // of one upstream
  std::size_t capacity_ = 0;
  Instant divide_at_ = Instant::min();  // when the capacities change next
  UpstreamChoice choice_;
  unsigned failures_max_;
  Duration eject_time_;
  std::size_t next_;
};

}  // namespace weir::http

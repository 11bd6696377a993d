// The sampler decides which traces are recorded and exported.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/loop/contract/detail/trace_context.hpp"

namespace weir::telemetry {

/// A Sampler decides by the trace id, so that all programs with the same ratio choose the same
/// traces (OpenTelemetry's TraceIdRatioBased). With a parent, a parent-based sampler decides as the
/// parent did. A client names the id of its trace and the decision in its traceparent. So each
/// client of a service with a ratio() or a parent-based sampler can force recorded spans, up to all
/// of its requests. Use public_edge() if the clients are not trusted.
/// Threads: any.
class Sampler {
 public:
  /// Samples the traces that the caller of this program samples, and all that begin here. It is
  /// meant for a service behind others that are traced.
  constexpr Sampler() noexcept = default;

  /// Samples this part of all traces, from 0 to 1.
  static constexpr Sampler ratio(double part) noexcept {
    Sampler sampler;
    sampler.parent_based_ = false;
    // A double has 53 bits, so the product is exact enough for 63.
    sampler.bound_ = part >= 1  ? all
                     : part > 0 ? static_cast<std::uint64_t>(part * static_cast<double>(all))
                                : 0;
    return sampler;
  }
  static constexpr Sampler always_on() noexcept { return ratio(1); }
  static constexpr Sampler always_off() noexcept { return ratio(0); }
  /// Decides as the parent of a span did, and by `root` for a span without a parent.
  static constexpr Sampler parent_based(Sampler root) noexcept {
    root.parent_based_ = true;
    return root;
  }

  /// Begins a trace of its own for each request, with an id of this program, and decides by `root`.
  /// The traceparent and the tracestate of a client have no effect (W3C Trace Context §4.2, restart
  /// of a trace). It is meant for a service that anybody can reach. The header baggage is not part
  /// of a trace: Weir does not read it, and a reverse_proxy() passes it on like other headers. An
  /// upstream must not believe the baggage of a client.
  static constexpr Sampler public_edge(Sampler root) noexcept {
    root.parent_based_ = false;
    root.trusts_callers_ = false;
    return root;
  }

  /// Returns true if a request continues the trace of its traceparent.
  constexpr bool trusts_callers() const noexcept { return trusts_callers_; }
  /// Returns true if a trace with this id that begins here is sampled.
  constexpr bool samples(const TraceId& id) const noexcept { return number_of(id) < bound_; }
  /// Returns true if a span with a parent is sampled.
  constexpr bool samples(const TraceId& id, bool parent_sampled) const noexcept {
    return parent_based_ ? parent_sampled : samples(id);
  }

 private:
  static constexpr std::uint64_t all = std::uint64_t{1} << 63;

  /// Returns the highest 63 of the last 64 bits, which all ids have as random bits.
  static constexpr std::uint64_t number_of(const TraceId& id) noexcept {
    std::uint64_t number = 0;
    for (std::size_t byte = 8; byte < id.size(); ++byte) number = number << 8 | id[byte];
    return number >> 1;
  }

  std::uint64_t bound_ = all;
  bool parent_based_ = true;
  bool trusts_callers_ = true;
};

}  // namespace weir::telemetry

// TraceContext: the piece of work that tasks do, such as one request of a server. Logs name it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir {

/// The id of a distributed trace (W3C Trace Context §3.2.2.3). All zeros are no id.
using TraceId = std::array<std::uint8_t, 16>;
/// The id of a span of a trace (W3C Trace Context §3.2.2.4). All zeros are no id.
using SpanId = std::array<std::uint8_t, 8>;

/// The span of a distributed trace that a piece of work belongs to.
struct ActiveSpan {
  TraceId trace_id = {};
  SpanId span_id = {};
  bool exists = false;     ///< false: there is no span, and the other members have no meaning
  bool sampled = false;    ///< true if the span is exported
  bool remote = false;     ///< true if a program that called this one began the trace
  bool random = false;     ///< true if the trace id is random (W3C Trace Context Level 2)
  void* tracer = nullptr;  ///< the WorkObserver that created the span, see observer_of()
};

/// A TraceContext is one piece of work, which several tasks on several threads may share. The
/// address of the TraceContext is passed on to everything that these tasks await or spawn.
/// CurrentActivity::trace() returns it while one of the tasks runs. A program uses it only for
/// output, never for decisions.
/// Threads: const on any thread while tasks work for it.
/// Lifetime: outlives those tasks.
class TraceContext {
 public:
  static constexpr std::size_t id_bytes_max = 128;
  using IdBuffer = std::span<char, id_bytes_max>;

  /// Returns the kind of work in one word: "request".
  virtual std::string_view kind() const noexcept = 0;
  /// Returns an identifier of at most id_bytes_max bytes that differs from all others. It is made
  /// in `buffer` on demand, unless it is stored elsewhere.
  virtual std::string_view id(IdBuffer buffer) const noexcept = 0;
  /// Returns the name of all work of this sort, cut to id_bytes_max bytes: "GET /users/{id}" for a
  /// request. It is made in `buffer` on demand. Empty if there is none.
  virtual std::string_view name(IdBuffer /*buffer*/) const noexcept { return {}; }
  /// Returns an address that has a meaning for the creator. A server returns that of the route of
  /// the request.
  virtual const void* origin() const noexcept { return nullptr; }
  /// Returns the tracestate with which the work arrived (W3C Trace Context §3.3), as it was sent.
  virtual std::string_view trace_state() const noexcept { return {}; }

  /// Returns the span of the work. Logs name its ids, and spans that begin later are its children.
  const ActiveSpan& span() const noexcept { return span_; }
  /// Sets the span, before tasks begin that read it.
  /// Threads: the creator's.
  void set_span(const ActiveSpan& span) const noexcept { span_ = span; }
  /// Removes the span, for the next piece of work.
  void clear_span() const noexcept { span_.exists = false; }

 protected:
  ~TraceContext() = default;

 private:
  mutable ActiveSpan span_;
};

}  // namespace weir

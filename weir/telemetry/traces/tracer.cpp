// Makes ids and queues what is exported.
#include "weir/telemetry/traces/tracer.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/base/version.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/telemetry/traces/detail/exporter.hpp"

namespace weir::telemetry {
namespace {

constexpr std::uint64_t step = 0x9E3779B97F4A7C15;  // of splitmix64

std::uint64_t mix(std::uint64_t state) noexcept {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
  return state ^ (state >> 31);
}

void put(std::uint64_t number, std::uint8_t* out) noexcept {
  std::memcpy(out, &number, sizeof(number));
}

/// Writes half of a trace id, or a span id. It is not zero.
void put_id(std::uint64_t number, std::uint8_t* out) noexcept {
  put(number != 0 ? number : 1, out);
}

}  // namespace

Tracer::Tracer(loop::PlatformClock& clock, TraceOptions options)
    : clock_(clock),
      options_(std::move(options)),
      ids_(std::make_unique<IdSources>()),
      spans_(options_.queue_capacity, static_cast<std::size_t>(options_.queue_bytes_max.bytes())),
      logs_(options_.queue_capacity, static_cast<std::size_t>(options_.queue_bytes_max.bytes())) {
  resource_.set("service.name", options_.service_name);
  resource_.set("telemetry.sdk.name", "weir");
  resource_.set("telemetry.sdk.language", "cpp");
  resource_.set("telemetry.sdk.version", version());
  for (const auto& [key, value] : options_.resource) resource_.set(key, value);
  for (IdSource& each : *ids_) {
    // relaxed: nothing runs yet.
    each.state.store(clock_.random(), std::memory_order_relaxed);
    each.key = clock_.random();
  }
}

Tracer::~Tracer() = default;

std::size_t Tracer::lane() noexcept {
  const Loop* const loop = Loop::current();
  if (loop == nullptr) return ExportQueue<SpanData>::no_core;
  return ExportQueue<SpanData>::lane_of(loop->core());
}

/// Returns the source of the ids of this thread, and its next state after `count` numbers.
std::pair<Tracer::IdSource&, std::uint64_t> Tracer::take_ids(std::uint64_t count) noexcept {
  // relaxed, in all of this class unless a comment says otherwise: the numbers order no memory.
  const Loop* const loop = Loop::current();
  if (loop != nullptr && loop->core() < ExportQueue<SpanData>::lanes) [[likely]] {
    IdSource& own = (*ids_)[loop->core()];  // no other thread changes the state
    const std::uint64_t state = own.state.load(std::memory_order_relaxed);
    own.state.store(state + count * step, std::memory_order_relaxed);
    return {own, state};
  }
  IdSource& shared = (*ids_)[ExportQueue<SpanData>::no_core];
  return {shared, shared.state.fetch_add(count * step, std::memory_order_relaxed)};
}

ActiveSpan Tracer::begin_trace() noexcept {
  const auto [ids, state] = take_ids(3);
  ActiveSpan span;
  const std::uint64_t low = mix(state + step);
  put_id(low, span.trace_id.data() + 8);
  span.exists = true;
  span.random = true;  // Level 2 §3.2.2.5.2 asks for 7 random bytes at the end
  span.sampled = options_.sampler.samples(span.trace_id);
  if (span.sampled) [[unlikely]] {
    put(mix(state + 2 * step) ^ ids.key, span.trace_id.data());
    put_id(mix(state + 3 * step), span.span_id.data());
  } else {
    // No collector stores these ids, so they need not be independent.
    put(ids.key, span.trace_id.data());
    put_id(low ^ ids.key, span.span_id.data());
  }
  span.tracer = static_cast<WorkObserver*>(this);
  return span;
}

ActiveSpan Tracer::continue_trace(const TraceParent& parent) noexcept {
  ActiveSpan span;
  span.trace_id = parent.trace_id;
  span.exists = true;
  span.remote = true;
  span.random = parent.random;
  span.sampled = options_.sampler.samples(span.trace_id, parent.sampled);
  span.tracer = static_cast<WorkObserver*>(this);
  if (span.sampled) return begin_child(span);
  span.span_id =
      parent.parent_id;  // programs below see the caller, because this span is not stored
  return span;
}

ActiveSpan Tracer::begin_child(const ActiveSpan& parent) noexcept {
  ActiveSpan span = parent;
  put_id(mix(take_ids(1).second + step), span.span_id.data());
  return span;
}

void Tracer::open_span() noexcept {
  (*ids_)[lane()].open.fetch_add(1, std::memory_order_relaxed);
}

bool Tracer::has_open_spans() const noexcept {
  std::int64_t open = 0;  // a span may end on another core than that of its begin
  for (const IdSource& each : *ids_) open += each.open.load(std::memory_order_relaxed);
  return open > 0;
}

void Tracer::record(std::unique_ptr<SpanData> span) noexcept {
  const std::size_t index = lane();
  const std::size_t waiting = spans_.push(std::move(span), index);
  (*ids_)[index].open.fetch_sub(1, std::memory_order_relaxed);
  if (waiting == options_.batch_max) wake_exporter();
}

void Tracer::record(std::unique_ptr<LogData> log) noexcept {
  if (logs_.push(std::move(log), lane()) == options_.batch_max) wake_exporter();
}

void Tracer::drop() noexcept {
  (*ids_)[lane()].open.fetch_sub(1, std::memory_order_relaxed);
  lost_.fetch_add(1, std::memory_order_relaxed);
}

void Tracer::wake_exporter() noexcept {
  // acquire pairs with the release in Wake::run().
  if (wake_.posted.exchange(true, std::memory_order_acquire)) return;
  const std::lock_guard lock(exporter_mutex_);
  if (exporter_ != nullptr) {
    exporter_->loop().post_from_foreign_thread(wake_);
  } else {
    wake_.posted.store(false, std::memory_order_release);
  }
}

void Tracer::Wake::run(loop::Runnable& self) {
  auto& wake = static_cast<Wake&>(self);
  wake.posted.store(false, std::memory_order_release);
  const std::lock_guard lock(wake.tracer.exporter_mutex_);
  Exporter* const exporter = wake.tracer.exporter_;
  if (exporter != nullptr && &exporter->loop() == Loop::current()) exporter->wake();
}

void Tracer::start(Scope& scope) {
  if (!options_.enabled || started_.exchange(true)) return;
  try {
    scope.spawn(export_spans());
  } catch (...) {
    started_ = false;
    throw;
  }
}

Task<> Tracer::export_spans() {
  const Context context = co_await this_context();
  for (;;) {
    try {
      Exporter exporter(*this, context);
      if (!exporter.is_active()) co_return;
      auto exporting = exporter.run();
      co_await std::move(exporting);
      co_return;
    } catch (const std::bad_alloc&) {
      // There may be memory later.
    }
    if (context.loop->draining()) co_return;
    const auto slept = co_await sleep(options_.backoff);
    if (!slept) co_return;
  }
}

TraceReport Tracer::report() const noexcept {
  const auto counts = [](const Counters& counters, std::uint64_t dropped, std::uint64_t queued) {
    return ExportCounts{.exported = counters.exported.value(),
                        .dropped = counters.dropped.value() + dropped,
                        .failed = counters.failed.value(),
                        .rejected = counters.rejected.value(),
                        .queued = queued};
  };
  const bool ended = ended_.load(std::memory_order_relaxed);
  const std::uint64_t lost = lost_.load(std::memory_order_relaxed);
  // Records that are queued after the end of the exporter are dropped.
  const std::uint64_t spans = spans_.size();
  const std::uint64_t logs = logs_.size();
  return {.spans = counts(span_counters_, spans_.dropped() + lost + (ended ? spans : 0),
                          ended ? 0 : spans),
          .logs = counts(log_counters_, logs_.dropped() + (ended ? logs : 0), ended ? 0 : logs),
          .requests = requests_.value(),
          .retries = retries_.value()};
}

}  // namespace weir::telemetry

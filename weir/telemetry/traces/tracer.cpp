// Makes ids and queues what is exported.
#include "weir/telemetry/traces/tracer.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "weir/base/version.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/scope.hpp"
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

void put_span_id(std::uint64_t state, SpanId& out) noexcept {
  const std::uint64_t number = mix(state);
  put(number != 0 ? number : 1, out.data());  // an id is not zero
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

ActiveSpan Tracer::begin_trace() noexcept {
  IdSource& ids = (*ids_)[lane()];
  // relaxed, in all of this class unless a comment says otherwise: the numbers order no memory.
  const std::uint64_t state = ids.state.fetch_add(3 * step, std::memory_order_relaxed);
  ActiveSpan span;
  put(mix(state + step) ^ ids.key, span.trace_id.data());
  const std::uint64_t low = mix(state + 2 * step);
  put(low != 0 ? low : 1, span.trace_id.data() + 8);
  put_span_id(state + 3 * step, span.span_id);
  span.exists = true;
  span.random = true;
  span.sampled = options_.sampler.samples(span.trace_id);
  span.tracer = this;
  return span;
}

ActiveSpan Tracer::continue_trace(const TraceParent& parent) noexcept {
  ActiveSpan span;
  span.trace_id = parent.trace_id;
  span.exists = true;
  span.remote = true;
  span.random = parent.random;
  span.sampled = options_.sampler.samples(span.trace_id, parent.sampled);
  span.tracer = this;
  return begin_child(span);
}

ActiveSpan Tracer::begin_child(const ActiveSpan& parent) noexcept {
  ActiveSpan span = parent;
  const std::uint64_t state = (*ids_)[lane()].state.fetch_add(step, std::memory_order_relaxed);
  put_span_id(state + step, span.span_id);
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
  if (options_.enabled && !started_.exchange(true)) scope.spawn(export_spans());
}

Task<> Tracer::export_spans() {
  const Context context = co_await this_context();
  Exporter exporter(*this, context);
  if (exporter.is_active()) co_await exporter.run();
}

TraceReport Tracer::report() const noexcept {
  const auto counts = [](const Counters& counters, std::uint64_t dropped) {
    return ExportCounts{.exported = counters.exported.value(),
                        .dropped = counters.dropped.value() + dropped,
                        .failed = counters.failed.value(),
                        .rejected = counters.rejected.value()};
  };
  const bool ended = ended_.load(std::memory_order_relaxed);
  const std::uint64_t lost = lost_.load(std::memory_order_relaxed);
  return {.spans = counts(span_counters_, spans_.dropped() + lost + (ended ? spans_.size() : 0)),
          .logs = counts(log_counters_, logs_.dropped() + (ended ? logs_.size() : 0)),
          .requests = requests_.value(),
          .retries = retries_.value()};
}

}  // namespace weir::telemetry

// Begins and ends spans.
#include "weir/telemetry/traces/span.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "weir/loop/detail/stall_detector.hpp"

namespace weir::telemetry {
namespace {

constexpr std::size_t attribute_bytes = 512;  // of a common span

std::string_view cut(std::string_view text) noexcept {
  return text.substr(0, SpanData::name_max);
}

}  // namespace

const ActiveSpan* current_span() noexcept {
  const TraceContext* const trace = loop::CurrentActivity::trace();
  return trace != nullptr && trace->span().exists ? &trace->span() : nullptr;
}

Span::Span(std::string_view name, SpanKind kind) noexcept {
  const ActiveSpan* const parent = current_span();
  if (parent == nullptr) return;
  active_ = *parent;
  tracer_ = Tracer::of(*parent);
  if (tracer_ == nullptr) return;
  begin(parent, name, kind, {});
}

Span::Span(Tracer& tracer, std::string_view name, SpanKind kind) noexcept : tracer_(&tracer) {
  const ActiveSpan* const parent = current_span();
  if (!tracer.enabled()) return;
  active_ = parent != nullptr ? *parent : tracer.begin_trace();
  if (active_.sampled) begin(parent, name, kind, {});
}

Span::Span(const Span& parent, std::string_view name, SpanKind kind) noexcept
    : active_(parent.active_), tracer_(parent.tracer_) {
  if (parent.active_.exists && active_.sampled && tracer_ != nullptr) {
    begin(&parent.active_, name, kind, {});
  }
}

Span Span::for_request(Tracer& tracer, const ActiveSpan& span, const SpanId& parent,
                       std::string_view name, std::string_view trace_state) noexcept {
  Span made(tracer, span);
  made.begin(nullptr, name, SpanKind::server, trace_state);
  if (made.data_ != nullptr) made.data_->parent_id = parent;
  return made;
}

Span Span::for_work(Tracer& tracer, const ActiveSpan& parent, const QueuedWork& work) noexcept {
  Span made(tracer, parent);
  made.begin(&parent, work.name, SpanKind::internal, {});
  if (made.data_ == nullptr) return made;
  try {
    if (!work.detail.empty()) made.data_->name.append(" ").append(cut(work.detail));
  } catch (const std::bad_alloc&) {
    // The name is shorter.
  }
  const Duration waited = std::max(made.start_ - work.queued_at, Duration::zero());
  made.data_->start -= waited;
  made.start_ -= waited;
  made.add_event("run");
  return made;
}

void Span::begin(const ActiveSpan* parent, std::string_view name, SpanKind kind,
                 std::string_view trace_state) noexcept {
  tracer_->open_span();
  try {
    data_ = std::make_unique<SpanData>();
    data_->name = cut(name);
    data_->trace_state = trace_state;
    data_->attributes.reserve(attribute_bytes);
  } catch (const std::bad_alloc&) {
    return lose();
  }
  if (parent != nullptr) {
    active_ = tracer_->begin_child(*parent);
    data_->parent_id = parent->span_id;
  }
  data_->trace_id = active_.trace_id;
  data_->span_id = active_.span_id;
  data_->remote_parent = parent == nullptr && active_.remote;
  data_->random_id = active_.random;
  data_->kind = kind;
  data_->start = tracer_->clock().wall_time();
  start_ = tracer_->clock().now();
  exceptions_ = std::uncaught_exceptions();
}

void Span::set_name(std::string_view name) noexcept {
  if (data_ == nullptr) return;
  try {
    data_->name = cut(name);
  } catch (const std::bad_alloc&) {
    lose();
  }
}

void Span::add_event(std::string_view name) noexcept {
  if (data_ == nullptr) return;
  if (data_->events.size() == SpanData::events_max) {
    ++data_->dropped_events;
    return;
  }
  try {
    const Duration since = tracer_->clock().now() - start_;
    data_->events.push_back({data_->start + since, std::string(cut(name))});
  } catch (const std::bad_alloc&) {
    lose();
  }
}

void Span::set_status(SpanStatus status, std::string_view message) noexcept {
  if (data_ == nullptr) return;
  data_->status = status;
  try {
    data_->status_message = cut(message);
  } catch (const std::bad_alloc&) {
    lose();
  }
}

void Span::set_error(std::error_code error) noexcept {
  if (data_ == nullptr) return;
  try {
    set_attribute("error.type",
                  std::string(error.category().name()) + ":" + std::to_string(error.value()));
    set_status(SpanStatus::error, error.message());
  } catch (const std::bad_alloc&) {
    lose();
  }
}

void Span::end() noexcept {
  if (data_ == nullptr) return;
  data_->end = data_->start + std::max(tracer_->clock().now() - start_, Duration::zero());
  if (data_->status == SpanStatus::unset && std::uncaught_exceptions() > exceptions_) {
    set_status(SpanStatus::error, "exception");
  }
  if (data_ != nullptr) tracer_->record(std::move(data_));
}

/// Gives the span up, because there is no memory.
void Span::lose() noexcept {
  data_.reset();
  tracer_->drop();
}

namespace {

/// Work of a pool or an event handler, with its span.
class WorkSpan final : public WorkObserver::Running {
 public:
  WorkSpan(const TraceContext* outer, Span span) noexcept
      : span_(std::move(span)), trace_(outer, span_.active()) {}
  const TraceContext& trace() const noexcept override { return trace_; }

 private:
  Span span_;
  SpanContext trace_;
};

}  // namespace

std::unique_ptr<WorkObserver::Running> Tracer::begin_work(const TraceContext* outer,
                                                          const ActiveSpan& parent,
                                                          const QueuedWork& work) noexcept {
  Span span = Span::for_work(*this, parent, work);
  try {
    return std::make_unique<WorkSpan>(outer, std::move(span));
  } catch (const std::bad_alloc&) {
    return nullptr;  // the span ends now
  }
}

std::string_view SpanContext::kind() const noexcept {
  return outer_ != nullptr ? outer_->kind() : "span";
}

std::string_view SpanContext::id(IdBuffer buffer) const noexcept {
  if (outer_ != nullptr) return outer_->id(buffer);
  constexpr std::string_view digits = "0123456789abcdef";
  std::size_t size = 0;
  for (const std::uint8_t each : span().span_id) {
    buffer[size++] = digits[each >> 4];
    buffer[size++] = digits[each & 15];
  }
  return {buffer.data(), size};
}

const void* SpanContext::origin() const noexcept {
  return outer_ != nullptr ? outer_->origin() : nullptr;
}

std::string_view SpanContext::trace_state() const noexcept {
  return outer_ != nullptr ? outer_->trace_state() : std::string_view();
}

}  // namespace weir::telemetry

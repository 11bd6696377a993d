// The loop of the exporter: batches, attempts, and the end.
#include "weir/telemetry/traces/detail/exporter.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "weir/http/message/detail/date.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/telemetry/traces/detail/otlp.hpp"

namespace weir::telemetry {
namespace {

constexpr Duration report_interval = std::chrono::minutes(1);
constexpr Duration drain_interval = std::chrono::milliseconds(100);
constexpr std::uint64_t response_bytes_max = 64 * 1024;

http::ClientOptions client_options(const TraceOptions& options) {
  http::ClientOptions made;
  made.limits.body_max = response_bytes_max;
  made.limits.total_timeout = options.export_timeout;
  made.limits.connections_max = 2;
  made.limits.redirects_max = 0;
  return made;
}

bool is_retryable(http::Status status) noexcept {
  const auto code = code_of(status);
  return code == 429 || code == 502 || code == 503 || code == 504;
}

}  // namespace

Exporter::Exporter(Tracer& tracer, const Context& context)
    : DrainObserver(&on_drain),
      loop::Timer(&on_flush_timeout),
      tracer_(tracer),
      options_(tracer.options_),
      loop_(*context.loop),
      cancel_(context.cancel),
      client_(client_options(options_)) {
  const std::lock_guard lock(tracer_.exporter_mutex_);
  if (tracer_.exporter_ != nullptr || !options_.enabled) return;
  tracer_.exporter_ = this;
  // relaxed, here and below: only report() reads it.
  tracer_.ended_.store(false, std::memory_order_relaxed);
  active_ = true;
}

Exporter::~Exporter() {
  if (!active_) return;
  {
    const std::lock_guard lock(tracer_.exporter_mutex_);
    tracer_.exporter_ = nullptr;
  }
  loop::Timer::cancel();
  collect(tracer_.spans_, spans_);
  collect(tracer_.logs_, logs_);
  drop(tracer_.spans_, spans_, tracer_.span_counters_);
  drop(tracer_.logs_, logs_, tracer_.log_counters_);
  tracer_.ended_.store(true, std::memory_order_relaxed);
}

Task<> Exporter::run() {
  if (loop_.draining()) {
    on_drain(*this);
  } else {
    loop_.observe_drain(*this);
  }
  auto exporting = in_context(Context{&loop_, &cancel_}, export_until_end());
  co_await std::move(exporting);
}

void Exporter::on_drain(DrainObserver& self) {
  auto& exporter = static_cast<Exporter&>(self);
  exporter.loop_.timers().start(
      exporter, after(exporter.loop_.platform().now(), exporter.options_.flush_timeout));
  exporter.event_.set();
}

void Exporter::on_flush_timeout(loop::Timer& self) {
  static_cast<Exporter&>(self).cancel_.cancel();
}

Task<> Exporter::export_until_end() {
  for (;;) {
    const Duration length = loop_.draining() ? drain_interval : options_.batch_delay;
    if (tracer_.spans_.size() < options_.batch_max) co_await wait(length);
    if (cancel_.cancelled()) co_return;
    // A span that is open now may end and be queued before the queues are collected.
    const bool open = tracer_.has_open_spans();
    co_await export_pending();
    if (loop_.draining() && !open && tracer_.spans_.size() + tracer_.logs_.size() == 0) co_return;
  }
}

/// Waits until the time is over, a queue has a batch, or the loop drains.
Task<> Exporter::wait(Duration length) {
  auto waiting = timeout(length, event_.wait());
  std::ignore = co_await std::move(waiting);
  event_.reset();
}

Task<> Exporter::export_pending() {
  collect(tracer_.spans_, spans_);
  collect(tracer_.logs_, logs_);
  while (spans_.first != nullptr && !cancel_.cancelled()) {
    Batch batch = next_batch(tracer_.spans_, spans_, options_.traces_url, tracer_.span_counters_,
                             &encode_spans);
    auto sending = send(std::move(batch));
    co_await std::move(sending);
  }
  while (logs_.first != nullptr && !cancel_.cancelled()) {
    Batch batch =
        next_batch(tracer_.logs_, logs_, options_.logs_url, tracer_.log_counters_, &encode_logs);
    auto sending = send(std::move(batch));
    co_await std::move(sending);
  }
}

template <class T>
void Exporter::collect(ExportQueue<T>& queue, Pending<T>& pending) noexcept {
  const auto chain = queue.take();
  if (chain.first == nullptr) return;
  (pending.first == nullptr ? pending.first : pending.last->next) = chain.first;
  pending.last = chain.last;
}

/// Encodes at most batch_max items and releases them, so that the queue has room for others.
template <class T, class Encode>
Exporter::Batch Exporter::next_batch(ExportQueue<T>& queue, Pending<T>& pending,
                                     std::string_view url, Tracer::Counters& counters,
                                     Encode encode) {
  Batch batch{.url = url, .body = {}, .count = 1, .counters = &counters};
  T* last = pending.first;
  for (; batch.count < options_.batch_max && last->next != nullptr; ++batch.count) {
    last = last->next;
  }
  Pending<T> taken{pending.first, last};
  pending.first = std::exchange(last->next, nullptr);
  try {
    if (!url.empty()) batch.body = encode(tracer_.resource_, taken.first, options_.encoding);
  } catch (const std::bad_alloc&) {
    batch.url = {};  // send() drops it
  }
  for (T* item = taken.first; item != nullptr;) queue.release(std::exchange(item, item->next));
  return batch;
}

template <class T>
void Exporter::drop(ExportQueue<T>& queue, Pending<T>& pending,
                    Tracer::Counters& counters) noexcept {
  while (pending.first != nullptr) {
    counters.dropped.add();
    queue.release(std::exchange(pending.first, pending.first->next));
  }
}

/// Sends a batch, again if the collector may accept it later. It counts the outcome.
Task<> Exporter::send(Batch batch) {
  if (batch.url.empty()) {
    batch.counters->dropped.add(batch.count);
    co_return;
  }
  for (unsigned attempts = 1;; ++attempts) {
    tracer_.requests_.add();
    if (attempts > 1) tracer_.retries_.add();
    Duration retry_after{};
    Sent sent = Sent::retry;
    try {
      auto attempting = attempt(batch, retry_after);
      sent = co_await std::move(attempting);
    } catch (const std::bad_alloc&) {
      // There may be memory for the next attempt.
    }
    if (sent == Sent::done) co_return;
    // A drain does not wait for a collector that is not there.
    const bool last = attempts >= options_.attempts_max || loop_.draining();
    if (sent == Sent::failed || last || cancel_.cancelled()) {
      batch.counters->failed.add(batch.count);
      co_return;
    }
    const Duration pause =
        std::max(std::min(retry_after, options_.retry_after_max), backoff(attempts));
    const Instant end = after(loop_.platform().now(), pause);
    // A full queue also sets the event. It does not shorten the wait, but a drain does.
    while (!loop_.draining() && !cancel_.cancelled() && loop_.platform().now() < end) {
      co_await wait(end - loop_.platform().now());
    }
  }
}

/// Returns the wait after this attempt: twice as long each time, less a random part.
Duration Exporter::backoff(unsigned attempt) {
  Duration length = options_.backoff;
  for (; attempt > 1 && length < options_.backoff_max; --attempt) length *= 2;
  length = std::min(length, options_.backoff_max);
  const auto half = static_cast<std::uint64_t>(length.count() / 2);
  if (half == 0) return length;
  return length - Duration(static_cast<std::int64_t>(loop_.platform().random() % half));
}

/// Sends a batch once, and counts it if the collector accepts it.
Task<Exporter::Sent> Exporter::attempt(const Batch& batch, Duration& retry_after) {
  http::ClientRequest request(http::Method::post, batch.url);
  for (const auto& [name, value] : options_.headers) request.set_header(name, value);
  request.set_header("User-Agent", "weir-otlp-exporter");
  const bool json = options_.encoding == OtlpEncoding::json;
  request.set_body(
      json ? http::MediaType("application/json") : http::MediaType("application/x-protobuf"),
      http::Body(batch.body));
  auto sending = client_.send(std::move(request));
  auto response = co_await std::move(sending);
  if (!response) {
    if (!cancel_.cancelled()) report(batch.url, response.error().message());
    co_return Sent::retry;
  }
  const http::Status status = response->status();
  const auto code = code_of(status);
  if (code >= 200 && code < 300) {
    co_await read_response(*response, batch);
    co_return Sent::done;
  }
  report(batch.url, "status " + std::to_string(code));
  if (!is_retryable(status)) co_return Sent::failed;
  if (const auto text = response->header("Retry-After")) {
    std::uint32_t seconds = 0;
    const char* const end = text->data() + text->size();
    if (std::from_chars(text->data(), end, seconds).ptr == end) {
      retry_after = std::chrono::seconds(seconds);
    } else if (const auto date = http::parse_http_date(*text)) {
      retry_after = *date - loop_.platform().wall_time();
    }
  }
  co_return Sent::retry;
}

/// Counts an accepted batch, less the items that the collector has rejected.
Task<> Exporter::read_response(http::ClientResponse& response, const Batch& batch) {
  std::uint64_t rejected = 0;
  auto reading = response.body();
  const auto body = co_await std::move(reading);
  if (body) {
    const auto read = parse_export_response(*body, options_.encoding);
    if (read) rejected = std::min<std::uint64_t>(read->rejected, batch.count);
    if (read && (rejected > 0 || !read->message.empty())) {
      report(batch.url, "rejected " + std::to_string(rejected) + ": " + read->message);
    }
  }
  batch.counters->exported.add(batch.count - rejected);
  batch.counters->rejected.add(rejected);
}

/// Writes at most one line in a minute to the log.
void Exporter::report(std::string_view url, std::string_view what) {
  ++unreported_;
  const Instant now = loop_.platform().now();
  if (reported_ != Instant::min() && now - reported_ < report_interval) return;
  reported_ = now;
  std::string line("weir: telemetry: cannot export to ");
  line.append(url).append(": ").append(what.substr(0, 200));
  const std::uint64_t others = std::exchange(unreported_, 0) - 1;
  if (others > 0) line.append(" (").append(std::to_string(others)).append(" failures before)");
  const auto is_control = [](char each) { return (each >= 0 && each < ' ') || each == '\x7f'; };
  std::ranges::replace_if(line, is_control, '?');
  loop_.platform().log(line);
}

}  // namespace weir::telemetry

// The loop of the exporter: batches, attempts, and the end.
#include "weir/telemetry/traces/detail/exporter.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/compression/compressor.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"

namespace weir::telemetry {
namespace {

constexpr Duration report_interval = std::chrono::minutes(1);
constexpr Duration drain_interval = std::chrono::milliseconds(100);
constexpr std::uint64_t response_bytes_max = 64 * 1024;
constexpr std::size_t body_bytes = 512 * 1024;     // a request with this size gets no more items
constexpr std::size_t bytes_per_turn = 32 * 1024;  // that are encoded
constexpr std::size_t compressed_piece = 8 * 1024;

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

/// Returns the time that a collector asks for: a number of seconds or a date (RFC 9110 §10.2.3).
Duration read_retry_after(std::string_view text, WallTime now) noexcept {
  std::uint32_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  if (!text.empty() && read.ptr == end) {
    return read.ec == std::errc() ? Duration(std::chrono::seconds(seconds)) : Duration::max();
  }
  const auto date = http::parse_http_date(text);
  return date && *date > now ? *date - now : Duration::zero();
}

}  // namespace

Exporter::Exporter(Tracer& tracer, const Context& context)
    : DrainObserver(&on_drain),
      loop::Timer(&on_flush_timeout),
      tracer_(tracer),
      options_(tracer.options_),
      loop_(*context.loop),
      cancel_(context.cancel),
      client_(client_options(options_)),
      spans_{.queue = tracer.spans_,
             .url = options_.traces_url,
             .headers = options_.traces_headers,
             .counters = tracer.span_counters_,
             .request = OtlpRequest(OtlpRequest::Signal::spans, options_.encoding),
             .wait = Wait(loop_)},
      logs_{.queue = tracer.logs_,
            .url = options_.logs_url,
            .headers = options_.logs_headers,
            .counters = tracer.log_counters_,
            .request = OtlpRequest(OtlpRequest::Signal::logs, options_.encoding),
            .wait = Wait(loop_)} {
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
  drop(spans_);
  drop(logs_);
  tracer_.ended_.store(true, std::memory_order_relaxed);
}

Task<> Exporter::run() {
  if (loop_.draining()) {
    on_drain(*this);
  } else {
    loop_.observe_drain(*this);
  }
  auto both = all(export_until_end(spans_), export_until_end(logs_));
  auto exporting = in_context(Context{&loop_, &cancel_}, std::move(both));
  std::ignore = co_await std::move(exporting);
}

void Exporter::on_drain(DrainObserver& self) {
  auto& exporter = static_cast<Exporter&>(self);
  exporter.loop_.timers().start(
      exporter, after(exporter.loop_.platform().now(), exporter.options_.flush_timeout));
  exporter.wake();
}

void Exporter::on_flush_timeout(loop::Timer& self) {
  static_cast<Exporter&>(self).cancel_.cancel();
}

/// Exports one signal until the end of the drain.
template <class T>
Task<> Exporter::export_until_end(Outgoing<T>& out) {
  bool lacks_memory = false;
  for (;;) {
    const Duration length = loop_.draining() ? drain_interval : options_.batch_delay;
    if (lacks_memory || out.queue.size() < options_.batch_max) {
      out.wait.begin(lacks_memory ? drain_interval : length);
      std::ignore = co_await out.wait.event().wait();
      out.wait.end();
    }
    if (cancel_.cancelled()) co_return;
    // A span that is open now may end and be queued before the queue is emptied, and its request
    // may write a record.
    const bool open = tracer_.has_open_spans();
    lacks_memory = false;
    try {
      auto exporting = export_queue(out);
      co_await std::move(exporting);
    } catch (const std::bad_alloc&) {
      lacks_memory = true;
    }
    if (lacks_memory) report(out.url, "out of memory");
    // The other signal may still wait for its collector, and records come in that time.
    if (loop_.draining() && !open && tracer_.spans_.size() + tracer_.logs_.size() == 0) co_return;
  }
}

/// Counts an item or a piece of a body. Returns true if the loop has to do other work now.
bool Exporter::ends_turn(std::size_t bytes) noexcept {
  ++items_of_turn_;
  bytes_of_turn_ += bytes;
  if (items_of_turn_ < items_per_turn && bytes_of_turn_ < bytes_per_turn) return false;
  items_of_turn_ = 0;
  bytes_of_turn_ = 0;
  return true;
}

/// Sends the items of a queue in batches, a few items in each turn.
template <class T>
Task<> Exporter::export_queue(Outgoing<T>& out) {
  for (std::size_t lane = 0; lane <= ExportQueue<T>::lanes; ++lane) {
    if (out.newest == nullptr) out.newest = out.queue.take(lane);
    while (out.newest != nullptr && !cancel_.cancelled()) {
      T* const item = std::exchange(out.newest, out.newest->next);
      item->next = std::exchange(out.oldest, item);
      if (ends_turn(0)) std::ignore = co_await sleep(Duration());
    }
    while (out.oldest != nullptr && !cancel_.cancelled()) {
      const std::size_t before = out.request.bytes();
      encode(out, std::exchange(out.oldest, out.oldest->next));
      if (ends_turn(out.request.bytes() - before)) std::ignore = co_await sleep(Duration());
      if (out.request.count() < options_.batch_max && out.request.bytes() < body_bytes) continue;
      auto sending = send_request(out);
      co_await std::move(sending);
    }
  }
  if (out.request.count() == 0) co_return;
  auto sending = send_request(out);
  co_await std::move(sending);
}

/// Encodes an item and releases it, so that the queue has room for others.
template <class T>
void Exporter::encode(Outgoing<T>& out, T* item) noexcept {
  bool encoded = false;
  if (!out.url.empty()) {
    try {
      out.request.add(*item);
      encoded = true;
    } catch (const std::bad_alloc&) {
      // The item is dropped.
    }
  }
  if (!encoded) out.counters.dropped.add();
  out.queue.release(item);
}

/// Drops the items that are left.
template <class T>
void Exporter::drop(Outgoing<T>& out) noexcept {
  out.counters.dropped.add(out.request.count());
  for (std::size_t lane = 0; lane <= ExportQueue<T>::lanes; ++lane) {
    for (T** const list : {&out.newest, &out.oldest}) {
      while (*list != nullptr) {
        out.counters.dropped.add();
        out.queue.release(std::exchange(*list, (*list)->next));
      }
    }
    out.newest = out.queue.take(lane);
  }
  while (out.newest != nullptr) {
    out.counters.dropped.add();
    out.queue.release(std::exchange(out.newest, out.newest->next));
  }
}

/// Sends the encoded items, and counts the outcome.
template <class T>
Task<> Exporter::send_request(Outgoing<T>& out) {
  Batch batch{.url = out.url,
              .headers = out.headers,
              .counters = out.counters,
              .wait = out.wait,
              .count = out.request.count()};
  try {
    batch.body = out.request.body(tracer_.resource_);
    out.request.clear();
    auto sending = send(batch);
    co_await std::move(sending);
  } catch (const std::bad_alloc&) {
    // The batch is dropped.
  }
  out.request.clear();
  if (batch.counted) co_return;
  batch.counters.dropped.add(batch.count);
  report(batch.url, "out of memory");
}

/// Sends a batch, again if the collector may accept it later.
Task<> Exporter::send(Batch& batch) {
  if (options_.gzip) {
    auto compressing = compress(batch);
    co_await std::move(compressing);
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
    // A drain does not wait for a collector that is not there.
    const bool last = attempts >= options_.attempts_max || loop_.draining();
    if (sent == Sent::failed || (sent == Sent::retry && (last || cancel_.cancelled()))) {
      batch.counters.failed.add(batch.count);
      sent = Sent::done;
    }
    if (sent == Sent::done) {
      batch.counted = true;
      co_return;
    }
    const Duration pause =
        std::max(std::min(retry_after, options_.retry_after_max), backoff(attempts));
    const Instant end = after(loop_.platform().now(), pause);
    // A full queue also sets the event. It does not shorten the wait, but a drain does.
    while (!loop_.draining() && !cancel_.cancelled() && loop_.platform().now() < end) {
      batch.wait.begin(end - loop_.platform().now());
      std::ignore = co_await batch.wait.event().wait();
      batch.wait.end();
    }
  }
}

/// Compresses the body of a batch, a piece in each turn. Without zlib it stays as it is.
Task<> Exporter::compress(Batch& batch) {
  auto compressor =
      compression::Compressor::make({.coding = compression::Coding::gzip, .level = 1});
  if (!compressor) co_return;
  std::string compressed;
  std::string_view rest = batch.body;
  for (bool complete = false; !complete;) {
    const std::string_view piece = rest.substr(0, compressed_piece);
    rest.remove_prefix(piece.size());
    const auto flush = rest.empty() ? compression::Flush::finish : compression::Flush::none;
    Bytes input = to_bytes(piece);
    for (bool finished = false; !finished;) {
      const std::size_t used = compressed.size();
      compressed.resize(used + compressed_piece);
      const MutableBytes room(reinterpret_cast<std::byte*>(compressed.data()) + used,
                              compressed_piece);
      const compression::Progress progress = compressor->compress(input, room, flush);
      compressed.resize(used + progress.produced);
      input = input.subspan(progress.consumed);
      finished = progress.complete;
    }
    complete = rest.empty();
    if (!complete && ends_turn(bytes_per_turn)) std::ignore = co_await sleep(Duration());
  }
  batch.body = std::move(compressed);
  batch.gzip = true;
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
  for (const auto& [name, value] : batch.headers) request.set_header(name, value);
  request.set_header("User-Agent", "weir-otlp-exporter");
  if (batch.gzip) request.set_header("Content-Encoding", "gzip");
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
    bool counted = false;
    try {
      auto counting = count_accepted(*response, batch);
      co_await std::move(counting);
      counted = true;
    } catch (const std::bad_alloc&) {  // sending the batch again would double its records
    }
    if (!counted) batch.counters.exported.add(batch.count);
    co_return Sent::done;
  }
  report(batch.url, "status " + std::to_string(code));
  if (!is_retryable(status)) co_return Sent::failed;
  if (const auto text = response->header("Retry-After")) {
    retry_after = read_retry_after(*text, loop_.platform().wall_time());
  }
  co_return Sent::retry;
}

/// Counts an accepted batch, less the items that the collector has rejected.
Task<> Exporter::count_accepted(http::ClientResponse& response, const Batch& batch) {
  std::uint64_t rejected = 0;
  try {
    auto reading = response.body();
    const auto body = co_await std::move(reading);
    if (body) {
      const auto read = parse_export_response(*body, options_.encoding);
      if (read) rejected = std::min<std::uint64_t>(read->rejected, batch.count);
      if (read && (rejected > 0 || !read->message.empty())) {
        report(batch.url, "rejected " + std::to_string(rejected) + ": " + read->message);
      }
    }
  } catch (const std::bad_alloc&) {
    // The collector has the batch all the same.
  }
  batch.counters.exported.add(batch.count - rejected);
  batch.counters.rejected.add(rejected);
}

/// Writes at most one line in a minute to the log.
void Exporter::report(std::string_view url, std::string_view what) noexcept {
  ++unreported_;
  const Instant now = loop_.platform().now();
  if (reported_ != Instant::min() && now - reported_ < report_interval) return;
  try {
    std::string line("weir: telemetry: cannot export to ");
    line.append(url).append(": ").append(what.substr(0, 200));
    const std::uint64_t others = unreported_ - 1;
    if (others > 0) line.append(" (").append(std::to_string(others)).append(" failures before)");
    const auto is_control = [](char each) { return (each >= 0 && each < ' ') || each == '\x7f'; };
    std::ranges::replace_if(line, is_control, '?');
    loop_.platform().log(line);
    reported_ = now;
    unreported_ = 0;
  } catch (const std::bad_alloc&) {
    // The next failure is reported.
  }
}

}  // namespace weir::telemetry

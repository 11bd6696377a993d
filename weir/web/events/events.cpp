#include "weir/web/events/events.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>

#include "weir/loop/loop.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/context.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http {
namespace {

constexpr char event_type[] = "text/event-stream";
constexpr std::string_view comment = ":\n\n";
constexpr Duration keep_alive_min = std::chrono::milliseconds(1);

/// Returns true if the text fits into one line. A NUL makes clients ignore an id.
bool is_one_line(std::string_view text) noexcept {
  constexpr std::string_view forbidden("\r\n\0", 3);
  return text.find_first_of(forbidden) == std::string_view::npos;
}

/// Appends one "data" line for each line of the text; the last line may be empty.
void append_data(std::string& out, std::string_view text) {
  for (;;) {
    const std::size_t end = text.find_first_of("\r\n");
    out.append("data: ").append(text.substr(0, end)).append("\n");
    if (end == std::string_view::npos) return;
    const bool two = text.substr(end, 2) == "\r\n";
    text.remove_prefix(end + (two ? 2 : 1));
  }
}

void append_retry(std::string& out, Duration retry) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(retry).count();
  out.append("retry: ").append(std::to_string(milliseconds)).append("\n");
}

Result<std::string> encode_event(const ServerSentEvent& event) {
  const bool valid = is_one_line(event.name) && is_one_line(event.id.value_or("")) &&
                     event.retry.value_or(Duration::zero()) >= Duration::zero();
  if (!valid) return fail(Errc::bad_input);
  std::string out;
  out.reserve(event.data.size() + event.name.size() + event.id.value_or("").size() + 64);
  if (event.retry) append_retry(out, *event.retry);
  if (event.id) out.append("id: ").append(*event.id).append("\n");
  if (!event.name.empty()) out.append("event: ").append(event.name).append("\n");
  append_data(out, event.data);
  return out.append("\n");
}

}  // namespace

Result<EncodedEvent> ServerSentEvent::encode() const {
  WEIR_TRY(auto text, encode_event(*this));
  return EncodedEvent(std::move(text));
}

/// Cancels the handler at the end of the grace of a drain.
class EventStream::Drain : DrainObserver, loop::Timer {
 public:
  Drain(EventStream& stream, Loop& loop, CancelSource& handler)
      : DrainObserver(&on_drain),
        loop::Timer(&on_timer),
        stream_(stream),
        loop_(loop),
        handler_(handler) {
    if (loop.draining()) {
      begin();
    } else {
      loop.observe_drain(*this);
    }
  }
  /// Returns true if the drain has cancelled the handler.
  bool cancelled() const noexcept { return cancelled_; }

 private:
  static void on_drain(DrainObserver& self) { static_cast<Drain&>(self).begin(); }
  static void on_timer(loop::Timer& timer) {
    auto& self = static_cast<Drain&>(timer);
    self.cancelled_ = !self.handler_.cancelled();
    self.handler_.cancel();
  }
  void begin() {
    stream_.draining_ = true;
    loop_.timers().start(*this, after(loop_.now(), stream_.options_.drain_grace));
  }

  EventStream& stream_;
  Loop& loop_;
  CancelSource& handler_;
  bool cancelled_ = false;
};

EventStream::EventStream(BodySink& sink, const EventStreamOptions& options,
                         std::string last_event_id)
    : sink_(sink), options_(options), last_event_id_(std::move(last_event_id)) {
  options_.keep_alive = std::max(options_.keep_alive, keep_alive_min);
}

Task<Result<>> EventStream::send(const ServerSentEvent& event) {
  return write_owned(encode_event(event));
}

Task<Result<>> EventStream::send(std::string_view data) {
  ServerSentEvent event;
  event.data = data;
  return write_owned(encode_event(event));
}

Task<Result<>> EventStream::write_owned(Result<std::string> bytes) {
  if (!bytes) co_return fail(bytes.error());
  co_return co_await write(*bytes);
}

Task<Result<>> EventStream::write(std::string_view bytes) {
  const auto guard = co_await sending_.lock();
  if (!guard) co_return fail(guard.error());
  co_return co_await write_locked(bytes);
}

/// Writes to the client; the caller holds the lock.
Task<Result<>> EventStream::write_locked(std::string_view bytes) {
  if (failed_) co_return fail(failed_);
  const Result<> sent = co_await sink_.write(bytes);
  if (!sent) failed_ = sent.error();
  last_sent_ = (co_await this_context()).loop->now();
  co_return sent;
}

/// Sends a comment whenever no event was sent for a while, until it is cancelled. Cancels the
/// handler if the client is lost.
Task<> EventStream::send_comments(CancelSource& handler) {
  for (;;) {
    const Result<> slept = co_await sleep_until(after(last_sent_, options_.keep_alive));
    if (!slept) co_return;
    const auto guard = co_await sending_.lock();
    if (!guard) co_return;
    const Instant now = (co_await this_context()).loop->now();
    if (now < after(last_sent_, options_.keep_alive)) continue;
    const Result<> sent = co_await write_locked(comment);
    if (!sent) {
      handler.cancel();
      co_return;
    }
  }
}

Task<Result<>> EventStream::run(Task<Result<>> handler) {
  // The first bytes also send the head: the client knows that it is connected.
  std::string first(comment);
  if (options_.retry) {
    first.clear();
    append_retry(first, *options_.retry);
    first += '\n';
  }
  const Result<> begun = co_await write(first);
  if (!begun) co_return begun;

  const Context own = co_await this_context();
  CancelSource handler_cancel(own.cancel);
  Drain drain(*this, *own.loop, handler_cancel);
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    auto running = in_context(Context{own.loop, &handler_cancel}, std::move(handler));
    scope.spawn(send_comments(handler_cancel));
    Result<> ended;
    std::exception_ptr thrown;
    try {
      ended = co_await std::move(running);
    } catch (...) {
      thrown = std::current_exception();
    }
    // A comment in progress is sent to its end; else it would cut the response off.
    const auto guard = co_await sending_.lock();
    scope.cancel();
    if (thrown) std::rethrow_exception(thrown);
    if (failed_) co_return fail(failed_);
    if (!ended && ended.error() == Errc::cancelled && drain.cancelled()) co_return {};
    co_return ended;
  };
  co_return co_await with_scope(OnFailure::isolate, body);
}

namespace detail {

Response event_response(StreamFunction stream) {
  Response response(Status::ok, event_type, Body(std::move(stream)));
  response.add_header("Cache-Control", "no-store");
  response.add_header("X-Accel-Buffering", "no");
  return response;
}

std::string last_event_id_of(const Request& request) {
  return std::string(request.header("last-event-id").value_or(""));
}

}  // namespace detail

}  // namespace weir::http

// Server-sent events (WHATWG HTML §9.2): a response that sends events while its client listens.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/message/body.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/task/sync/mutex.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class EncodedEvent;

/// One server-sent event. A browser passes it to the listeners of its EventSource.
/// Lifetime: the texts outlive the object.
struct ServerSentEvent {
  /// The text of the event, sent even if it is empty. Its line ends (LF, CR or CRLF) arrive as LF.
  std::string_view data = {};
  /// The type of the event, for addEventListener(); empty for "message".
  std::string_view name = {};
  /// The position of the event in the stream. A client that reconnects sends the last one as
  /// Last-Event-ID. nullopt keeps the position; an empty one resets it.
  std::optional<std::string_view> id = std::nullopt;
  /// The time after which the client reconnects, in whole milliseconds; nullopt keeps it.
  std::optional<Duration> retry = std::nullopt;

  /// Returns the bytes of the event, for a caller that sends it to several clients.
  /// Errors: bad_input if `name` or `id` contains CR, LF or NUL, or if `retry` is negative.
  Result<EncodedEvent> encode() const;
};

/// The bytes of an event as they are sent. A Broadcast shares them with any number of clients.
class EncodedEvent {
 public:
  std::string_view text() const noexcept { return text_; }

 private:
  friend ServerSentEvent;
  explicit EncodedEvent(std::string text) noexcept : text_(std::move(text)) {}
  std::string text_;
};

/// EventStreamOptions describes the response that events() makes.
struct EventStreamOptions {
  /// Time without an event after which the client gets a comment, which it ignores. Proxies then
  /// keep the connection open, and the server finds a client that has vanished. At least 1 ms.
  Duration keep_alive = std::chrono::seconds(15);
  /// Time between the begin of a drain and the cancellation of the handler.
  Duration drain_grace = std::chrono::seconds(1);
  /// The time after which the client reconnects; nullopt leaves it to the client.
  std::optional<Duration> retry = std::nullopt;
};

/// The stream of events to one client. The handler of events() gets it by reference.
/// Threads: one core's.
/// Lifetime: events() owns it, and it lives until the handler has returned.
class EventStream {
 public:
  EventStream(BodySink& sink, const EventStreamOptions& options, std::string last_event_id);
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  /// Sends the event. It waits while the client is slow; see Limits::write_rate. Several tasks of
  /// the handler may send at the same time.
  /// Errors: bad_input if encode() fails; nothing is sent then. Else those of BodySink::write().
  /// Cancel: sends nothing while it waits for another task; later, the response is cut off.
  /// Lifetime: the event may be destroyed after the call, before the task is awaited.
  Task<Result<>> send(const ServerSentEvent& event);
  /// Sends an event that has only data.
  Task<Result<>> send(std::string_view data);
  /// Sends an event that is encoded already.
  /// Lifetime: the event outlives the task.
  Task<Result<>> send(const EncodedEvent& event) { return write(event.text()); }

  /// Returns the Last-Event-ID of the request: the id of the last event that this client has
  /// received. It is empty for a client that begins. The text comes from the client, so that a
  /// handler checks it.
  std::string_view last_event_id() const noexcept { return last_event_id_; }
  /// Returns true if the server drains. The handler is cancelled soon; see
  /// EventStreamOptions::drain_grace.
  bool draining() const noexcept { return draining_; }

  /// Runs the handler beside the timer of comments; events() calls it.
  /// Returns: the result of the handler. The end is a success if the drain cancelled it.
  /// Errors: the error of a send that failed; else that of the handler.
  /// Cancel: passed on to the handler.
  Task<Result<>> run(Task<Result<>> handler);

 private:
  class Drain;
  Task<Result<>> write(std::string_view bytes);
  Task<Result<>> write_owned(Result<std::string> bytes);
  Task<Result<>> write_locked(std::string_view bytes);
  Task<> send_comments(class CancelSource& handler);

  BodySink& sink_;
  EventStreamOptions options_;
  std::string last_event_id_;
  Mutex sending_;
  Instant last_sent_{};
  std::error_code failed_;  // of the send that failed
  bool draining_ = false;
};

namespace detail {

template <class Write, class... Args>
concept WritesEvents = std::is_invocable_r_v<Task<Result<>>, Write&, EventStream&, Args...>;

/// Returns the response whose body `stream` writes.
Response event_response(StreamFunction stream);
std::string last_event_id_of(const Request& request);

}  // namespace detail

/// Returns a response of server-sent events, which `handler(stream, args...)` sends. The function
/// returns a Task<Result<>> and takes an EventStream& first. Function and arguments are moved in.
///
///     http::Response feed(const http::Request& request) {
///       return http::events(request, send_news);
///     }
///
/// The response has the type text/event-stream. Its headers "Cache-Control: no-store" and
/// "X-Accel-Buffering: no" stop caches and nginx from holding events back. No part of Weir holds
/// them back either: the compression of responses leaves this type as it is.
///
/// *End.* The response ends when the handler returns. The handler is cancelled when the client
/// leaves, or reads too slowly. An error of the handler cuts the response off. A client reconnects
/// in either case, unless it called close(). A handler answers 204 (http::no_content()) instead of
/// events() to end that.
///
/// *Drain.* EventStream::draining() tells that the server stops. The handler is cancelled after
/// EventStreamOptions::drain_grace, and the response ends complete. The client then reconnects with
/// its Last-Event-ID. The route should have no timeout, because it cancels the handler too.
/// Lifetime: the function's state and the request live until the response has ended.
template <class Handler, class... Args>
  requires detail::WritesEvents<Handler, Args...>
Response events(const Request& request, EventStreamOptions options, Handler handler, Args... args) {
  auto run = [options, id = detail::last_event_id_of(request), handler = std::move(handler),
              ... args = std::move(args)](BodySink& sink) mutable -> Task<Result<>> {
    EventStream stream(sink, options, std::move(id));
    auto running = stream.run(handler(stream, std::move(args)...));
    co_return co_await std::move(running);
  };
  return detail::event_response(std::move(run));
}
template <class Handler, class... Args>
  requires detail::WritesEvents<Handler, Args...>
Response events(const Request& request, Handler handler, Args... args) {
  return events(request, EventStreamOptions(), std::move(handler), std::move(args)...);
}

}  // namespace weir::http

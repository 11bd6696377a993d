// The client of server-sent events: reads the events of a response.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/client_response.hpp"
#include "weir/task/task.hpp"
#include "weir/web/events/event_parser.hpp"

namespace weir::http {

/// The events of one response; move-only.
///
///     auto response = co_await client.get("http://localhost:8080/feed");
///     if (!response) co_return fail(response.error());
///     auto reader = http::EventReader::open(std::move(*response));
///     if (!reader) co_return fail(reader.error());
///     auto event = co_await reader->read();
///
/// A program that reconnects waits for retry(), and sends last_event_id() in the header
/// Last-Event-ID. ClientLimits::body_timeout has to be longer than the time between the server's
/// comments.
/// Threads: the core of the client.
/// Lifetime: the client outlives it. No read is pending when it is moved or destroyed (asserted).
class EventReader {
 public:
  /// Reads the events of `response`, each of at most `event_bytes_max` bytes; see EventParser.
  /// Errors: error_of() of a status of 400 or more; closed for 204, after which a client does not
  /// reconnect; bad_input for another status than 200, or another type than text/event-stream.
  static Result<EventReader> open(ClientResponse response,
                                  std::size_t event_bytes_max = 1024 * 1024);

  /// Returns the next event.
  /// Errors: end_of_stream at the end of the response; limit_reached after an event that is too
  /// long; those of ClientResponse::read().
  /// Cancel: no event is lost; the next call returns it.
  Task<Result<ReceivedEvent>> read();

  /// Returns the id of the last complete event that had one.
  const std::string& last_event_id() const noexcept { return parser_.last_event_id(); }
  /// Returns the time that the server wants the client to wait before it reconnects, if any.
  std::optional<Duration> retry() const noexcept { return parser_.retry(); }

 private:
  EventReader(ClientResponse response, std::size_t event_bytes_max) noexcept
      : response_(std::move(response)), parser_(event_bytes_max) {}

  ClientResponse response_;
  EventParser parser_;
  std::string_view input_;  // the rest of the last piece of the response
};

}  // namespace weir::http

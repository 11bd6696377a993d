// The parser of server-sent events: bytes in, events out (WHATWG HTML §9.2.6).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

namespace weir::http {

/// An event that a client has received.
struct ReceivedEvent {
  std::string data;  ///< the lines of the event, with LF between them
  std::string name;  ///< the type of the event; "message" if the server gave none
  std::string id;    ///< the id of this event, or of the last event that had one
};

/// Turns the bytes of a stream into events. The bytes may be split at any place. A line ends with
/// LF, CR or CRLF. The parser ignores comments and unknown fields, and drops an event that is
/// incomplete when the stream ends.
/// Threads: one at a time.
class EventParser {
 public:
  /// `event_bytes_max` limits the bytes of an event: of its data, its name and its id, and of its
  /// longest line.
  explicit EventParser(std::size_t event_bytes_max = 1024 * 1024) noexcept
      : bytes_max_(event_bytes_max) {}

  /// Parses `input` up to the end of the next event, and removes the parsed bytes.
  /// Returns: the event; nullopt if the input was used up before.
  /// Errors: limit_reached above event_bytes_max; then also in all later calls.
  Result<std::optional<ReceivedEvent>> next(std::string_view& input);

  /// Returns the id of the last complete event that had one. A client that reconnects sends it as
  /// Last-Event-ID.
  const std::string& last_event_id() const noexcept { return last_id_; }
  /// Sets the last id of an earlier stream that this one continues.
  void set_last_event_id(std::string id) {
    next_id_ = id;
    last_id_ = std::move(id);
  }
  /// Returns the time that the server wants the client to wait before it reconnects, if any.
  std::optional<Duration> retry() const noexcept { return retry_; }

 private:
  bool add_to_line(std::string_view text);
  bool take_line(std::string_view line);
  bool is_too_long() const noexcept {
    return data_.size() + name_.size() + next_id_.size() > bytes_max_;
  }
  std::optional<ReceivedEvent> finish_event();

  std::size_t bytes_max_;
  std::string line_;  // the begin of a line whose end is missing
  std::string data_;
  std::string name_;
  std::string next_id_;  // of the event in progress
  std::string last_id_;
  std::optional<Duration> retry_;
  bool at_start_ = true;   // no line was complete yet
  bool after_cr_ = false;  // an LF that follows belongs to the CR
  bool has_data_ = false;
  bool failed_ = false;
};

}  // namespace weir::http

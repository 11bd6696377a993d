// The memory between a client and a MemoryCarrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/messages/message.hpp"
#include "weir/http/message/body_length.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

/// The pieces of a body between its sender and its receiver. A full pipe lets the sender wait.
/// Threads: its loop's.
class MemoryPipe {
 public:
  static constexpr std::size_t window = 64 * 1024;

  /// Adds a piece, when there is room. An empty one changes nothing.
  /// Errors: Errc::closed after close() or cut(); Errc::cancelled.
  /// Cancel: the piece is not added.
  Task<Result<>> send(std::string piece);
  /// Ends the body behind its pieces.
  void complete() { finish(End::complete); }
  /// Ends the body, unless it has ended; a part is missing.
  void cut() { finish(End::cut); }
  /// Ends the use of the pipe by the receiver, so that no send() waits.
  void close();

  /// Returns the next piece, if it has come.
  std::optional<std::string> take();
  /// Waits until a piece has come, or the end, or wake() was called.
  /// Errors: Errc::cancelled.
  /// Cancel: no data is lost.
  Task<Result<>> wait();
  void wake() { came_.set(); }

  /// Returns the end that the sender has sent; the pieces before it may not have been taken.
  End end() const noexcept { return end_; }
  bool empty() const noexcept { return pieces_.empty(); }
  bool closed() const noexcept { return closed_; }
  /// Returns the number of bytes that were sent.
  std::uint64_t sent_bytes() const noexcept { return sent_bytes_; }

 private:
  void finish(End end);

  std::deque<std::string> pieces_;
  std::size_t held_ = 0;  // bytes of pieces_
  std::uint64_t sent_bytes_ = 0;
  AutoResetEvent came_;
  AutoResetEvent taken_;
  End end_ = End::open;
  bool closed_ = false;  // by the receiver
};

/// The head of a request.
struct MemoryRequest {
  std::string method;
  std::string target;
  Fields fields;
  http::BodyLength length;
};

/// A request and its response. The client writes the parts of the request, and the carrier writes
/// those of the response.
/// Threads: its loop's.
struct MemoryWire {
  /// Gives up what has not come of the response, and the request unless it has ended.
  void leave();

  MemoryRequest request;
  MemoryPipe request_body;
  http::Headers request_trailers;  ///< written before the end of request_body
  std::vector<int> interim;        ///< the statuses of interim responses
  int status = 0;                  ///< 0: no head has come
  Fields response_fields;          ///< written with the status
  MemoryPipe response_body;        ///< its end is that of the response
  Fields response_trailers;        ///< written before the end of response_body
  std::function<void()> on_left;   ///< the carrier's, while it serves the request
};

}  // namespace weir::tests::messages

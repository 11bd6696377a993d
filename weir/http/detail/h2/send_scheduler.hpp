// The order in which the streams of an HTTP/2 connection send DATA (RFC 9218 §10).
#pragma once

#include <array>

#include "weir/base/detail/list.hpp"
#include "weir/http/detail/h2/priority.hpp"
#include "weir/http/detail/h2/stream.hpp"

namespace weir::http {

/// A SendScheduler queues the streams that want to send and whose windows are open. The most urgent
/// streams are first. Streams of one urgency send one after the other in the order in which they
/// were queued; incremental ones take turns after each frame. A stream whose window is used up
/// leaves its queue, and keeps its wish: enqueue() puts it back. The scheduler knows nothing of the
/// connection's window.
/// Threads: those of the session.
/// Lifetime: streams may be stopped or destroyed while they are queued.
class SendScheduler {
 public:
  SendScheduler() noexcept = default;

  /// Marks a stream that has bytes to send, and queues it.
  void want(H2Stream& stream) noexcept {
    stream.has_body_ = true;
    enqueue(stream);
  }
  /// Takes a stream out of the order. It has nothing more to send.
  static void stop(H2Stream& stream) noexcept {
    stream.has_body_ = false;
    stream.unlink();
  }
  /// Queues a stream behind the others of its urgency, if it wants to send, its window allows it,
  /// and it is not queued yet.
  void enqueue(H2Stream& stream) noexcept {
    if (!stream.has_body_ || stream.linked() || stream.send_window() <= 0) return;
    queues_[stream.priority_.urgency].push_back(stream);
  }
  /// Ends the turn of an incremental stream that has sent a frame. Other streams keep their place.
  void end_turn(H2Stream& stream) noexcept {
    if (!stream.linked() || !stream.priority_.incremental) return;
    stream.unlink();
    enqueue(stream);
  }
  /// Returns true if the stream is incremental and takes turns with others of its urgency.
  bool takes_turns(const H2Stream& stream) const noexcept {
    if (!stream.priority_.incremental || !stream.linked()) return false;
    const auto& queue = queues_[stream.priority_.urgency];
    return queue.front() != &stream || queue.next(stream) != nullptr;
  }
  /// Gives a stream another priority. A queued stream goes behind the others of its new urgency.
  void set_priority(H2Stream& stream, Priority priority) noexcept {
    stream.priority_ = priority;
    if (!stream.linked()) return;
    stream.unlink();
    enqueue(stream);
  }
  /// Returns the stream that sends next, or nullptr if no stream may send.
  H2Stream* next() noexcept;

 private:
  std::array<weir::detail::List<H2Stream>, Priority::urgency_max + 1> queues_;
};

}  // namespace weir::http

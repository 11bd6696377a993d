// One end of a connection of HTTP/2 for tests: it sends any message, and keeps what arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/messages/message.hpp"
#include "weir/http/detail/h2/frame.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

/// An Http2Peer reads and writes the frames of one connection while run() runs. It respects the
/// windows of the other side, and opens its own at the begin.
/// Threads: its loop's.
/// Lifetime: the stream outlives it, and it outlives its tasks.
class Http2Peer {
 public:
  enum class Role : std::uint8_t { client, server };
  /// A message on a stream as it arrives.
  struct Message {
    Fields fields = {};  ///< with the pseudo-header fields
    std::string body = {};
    Fields trailers = {};
    End end = End::open;
    std::optional<std::uint32_t> reset = {};  ///< the code of the reset that has cut it
    bool has_head = false;
  };
  Http2Peer(Stream& stream, Role role);

  /// Exchanges frames until the connection ends. Every open message is `cut` then.
  /// Cancel: returns.
  Task<> run();
  /// Sends a message with these pseudo-header fields, a piece at a time, as far as the windows
  /// allow. A message that is `cut` ends with a reset. Cancel: returns; a part of the message may
  /// have been sent. Lifetime: the message outlives the task.
  Task<> send(std::uint32_t stream, Fields pseudo, const SentMessage& message);
  /// Waits for the head of the next request.
  /// Returns: its stream; 0 if the connection has ended.
  /// Cancel: returns 0.
  Task<std::uint32_t> next_head();
  /// Waits until the message on the stream has ended.
  /// Cancel: returns.
  Task<> wait_for_end(std::uint32_t stream);
  /// Returns what has arrived on a stream.
  Message& message(std::uint32_t stream) { return messages_[stream]; }
  /// Returns true if the connection has ended.
  bool ended() const noexcept { return ended_; }

 private:
  Task<> read_all();
  Task<> write_all();
  Task<> reset(std::uint32_t stream);
  void take(const http::FrameEvent& event);
  void take_block(std::uint32_t stream);
  void end(std::uint32_t stream, End end);
  void put(std::string frame);
  void notify();
  std::int64_t& window_of(std::uint32_t stream);

  Stream& stream_;
  http::FrameReader reader_;
  http::HpackTable table_;
  std::map<std::uint32_t, Message> messages_;
  std::uint32_t last_head_ = 0;     // the stream that next_head() has returned
  std::size_t preface_left_ = 0;    // bytes of the client's preface that have not come
  std::string block_;               // the field block that is arriving
  bool block_ends_stream_ = false;  // its HEADERS has END_STREAM
  std::string output_;
  bool writing_ = false;  // a write of former output is pending
  std::int64_t window_ = 65'535;
  std::int64_t initial_window_ = 65'535;
  std::map<std::uint32_t, std::int64_t> windows_;
  ManualResetEvent changed_;
  bool ended_ = false;
};

}  // namespace weir::tests::messages

// One HTTP/2 connection without a socket (RFC 9113): bytes in, events and bytes out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/time.hpp"
#include "weir/http/detail/h2/event.hpp"
#include "weir/http/detail/h2/flow_control.hpp"
#include "weir/http/detail/h2/frame.hpp"
#include "weir/http/detail/h2/limits.hpp"
#include "weir/http/detail/h2/priority.hpp"
#include "weir/http/detail/h2/role.hpp"
#include "weir/http/detail/h2/settings.hpp"
#include "weir/http/detail/h2/stream.hpp"
#include "weir/http/detail/h2/stream_table.hpp"
#include "weir/http/detail/h2/work_account.hpp"

namespace weir::http {

/// The state of one connection: settings, streams, flow control, priorities, drain, and the
/// accounts of what the peer may cause. Field blocks stay encoded: the carrier decodes each of them
/// in the order of the events. The carrier also reads input, calls next() until it returns
/// need_more, and sends take_output().
/// Errors: members that append to the output and next() throw std::bad_alloc; the session cannot be
/// used after that, unless the member says otherwise.
/// Threads: one at a time.
class H2Session {
 public:
  /// The bytes with which a client begins.
  static constexpr std::string_view client_preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

  /// The values of `limits` are in their ranges; see in_range(). The session refers to them.
  H2Session(H2Role role, const H2Limits& limits, Instant now) noexcept;
  ~H2Session();
  H2Session(const H2Session&) = delete;
  H2Session& operator=(const H2Session&) = delete;

  /// Appends the preface and the settings to the output. Call it first.
  void start();

  // Input.

  /// Returns the next event. `input` starts at the end of the last event's `consumed` bytes.
  /// DATA that no event `data` delivers returns to the window of the connection immediately (RFC
  /// 9113 §6.9). This is DATA for a stream that has ended, is closed or was never accepted, DATA
  /// beyond the window of its stream, and DATA that contradicts the Content-Length.
  H2Event next(Bytes input, Instant now);
  /// Returns true if the peer is within a frame, a field block or the preface. Returns false before
  /// the first byte.
  bool within_frame() const noexcept {
    const bool within_preface = preface_left_ != 0 && preface_left_ != client_preface.size();
    return within_preface || block_frames_ != 0 || !reader_.between_frames();
  }
  /// Returns true if the peer is within the payload of DATA.
  bool within_data() const noexcept { return reader_.within_data(); }
  /// Returns a number that changes when a frame or a field block ends.
  std::uint32_t frame_number() const noexcept { return frame_number_; }

  /// Accepts the stream of the event `open`. `length` is its Content-Length, if it has one.
  /// Returns: false if END_STREAM contradicts the length. The stream is rejected then.
  [[nodiscard]] bool accept(H2Stream& stream, std::uint64_t length = H2Stream::no_length);
  /// Rejects the stream of the event `open` with RST_STREAM.
  void reject(H2Error error);
  /// Returns `count` bytes of `data` to the windows; WINDOW_UPDATE follows when it is worth a
  /// frame.
  void consume(H2Stream& stream, std::size_t count) {
    consume_on_connection_only(stream, count);
    allow_more(stream, count);
  }
  /// Consumes like consume(). The window of the stream doubles with each WINDOW_UPDATE, unless the
  /// rest of the body fits into it. All streams together grow by at most half of
  /// H2Limits::connection_window. The connection has back `returned` of the bytes already.
  void consume_and_grow(H2Stream& stream, std::size_t count, std::size_t returned = 0);
  /// Returns `count` bytes of `data` to the window of the connection. allow_more() returns them to
  /// the window of the stream later.
  void consume_on_connection_only(H2Stream& stream, std::size_t count);
  void allow_more(H2Stream& stream, std::size_t count);
  /// Forgets the stream and consumes its bytes. A stream that is not closed is reset first.
  void release(H2Stream& stream, H2Error error = H2Error::cancel);

  // Output.

  /// Returns the bytes to send.
  const Buffer& output() const noexcept { return output_; }
  /// Moves the bytes to send out. Further output is collected in another buffer.
  Buffer take_output() noexcept {
    control_bytes_ = 0;
    return std::move(output_);
  }
  /// Appends the field block that `write(out)` writes, at most `size` bytes, in HEADERS and, if it
  /// needs them, CONTINUATION. `write()` returns the end of its bytes. The stream is open.
  /// Errors: throws std::bad_alloc before it calls write(); the session remains usable.
  template <class Write>
  void send_headers(H2Stream& stream, std::size_t size, const Write& write, bool end_stream) {
    const std::size_t more_frames = size / frame_payload_default;
    output_.make_room(frame_header_size + size + more_frames * frame_header_size);
    char* const start = reinterpret_cast<char*>(output_.room().data()) + frame_header_size;
    const char* const end = write(start);
    finish_headers(stream, static_cast<std::size_t>(end - start), end_stream);
  }
  /// Appends a whole response: the field block that `write(out)` writes, at most `size` bytes, and
  /// DATA with all of `body`, which ends the stream. `size` fits into one frame.
  /// Returns: true if it appended the response. It appends nothing if the windows, the output or
  /// the state of the stream do not allow it.
  template <class Write>
  bool send_whole(H2Stream& stream, std::size_t size, const Write& write, Bytes body) {
    if (!may_send_whole(stream, body.size())) return false;
    const std::size_t room = 2 * frame_header_size + size + body.size();
    if (output_.room().size() < room) output_.make_room(room);
    char* const head = reinterpret_cast<char*>(output_.room().data());
    char* const block = head + frame_header_size;
    char* const block_end = write(block);
    const auto block_size = static_cast<std::uint32_t>(block_end - block);
    const bool head_ends = body.empty();
    const std::uint8_t ends = head_ends ? FrameFlag::end_stream : 0;
    const auto head_flags = static_cast<std::uint8_t>(FrameFlag::end_headers | ends);
    write_frame_header({block_size, FrameType::headers, head_flags, stream.id_}, head);
    char* end = block_end;
    if (!head_ends) {
      const auto count = static_cast<std::uint32_t>(body.size());
      end = write_frame_header({count, FrameType::data, FrameFlag::end_stream, stream.id_}, end);
      std::memcpy(end, body.data(), body.size());
      end += body.size();
      count_sent(stream, count);
    }
    output_.commit(static_cast<std::size_t>(end - head));
    end_local(stream);
    return true;
  }
  /// Appends DATA with as many bytes of `body` as the windows and the output allow.
  /// `end_stream` takes effect with the last byte; an empty body is allowed then.
  /// Returns: the number of bytes taken.
  std::size_t send_data(H2Stream& stream, Bytes body, bool end_stream);
  /// Returns how many of `size` bytes send_in_place() should send on a stream now. It is 0 if
  /// incremental streams take turns, whose frames are small (RFC 9218 §10).
  std::size_t allowed_in_place(const H2Stream& stream, std::size_t size) noexcept;
  /// Sends the output of the session, and then DATA from the memory of `body`, which is not empty.
  /// `write(pieces)` writes the first bytes of the pieces, and returns their number. The rest of a
  /// frame that was begun goes into the output. `end_stream` takes effect with the last byte.
  /// Returns: the number of bytes of the body that were written or are in the output. It is 0 if
  /// the windows or the output allow none, or if write() did not reach the body.
  /// Errors: throws std::bad_alloc before it calls write(); the session remains usable.
  template <class Write>
  std::size_t send_in_place(H2Stream& stream, Bytes body, bool end_stream, const Write& write) {
    const Bytes now =
        body.first(data_allowed(stream, std::min(body.size(), DataFrames::bytes_max)));
    if (now.empty()) return 0;
    output_.make_room(frame_header_size + frame_payload_default);
    const bool ends = end_stream && now.size() == body.size();
    const DataFrames frames(output_.bytes(), stream.id_, now, ends);
    return take_written(stream, frames, write(frames.pieces()));
  }
  /// Resets the stream, unless it is closed.
  void reset(H2Stream& stream, H2Error error);

  /// Marks a stream that has bytes to send. It is returned by next_sender() until `stop_sending()`.
  void want_send(H2Stream& stream) noexcept;
  void stop_sending(H2Stream& stream) noexcept { SendScheduler::stop(stream); }
  /// Returns the stream whose bytes should be sent next, or nullptr if none may be sent.
  H2Stream* next_sender() noexcept;
  /// Returns true if the window of the connection allows DATA.
  bool may_send() const noexcept { return flow_.may_send(); }
  /// Returns true if the window of the connection allows the peer to send DATA.
  bool may_receive() const noexcept { return flow_.may_receive(); }
  /// Returns the bytes of DATA that were sent, modulo 2^32.
  std::uint32_t data_sent() const noexcept { return flow_.sent(); }
  /// Changes the priority of a stream that is not closed.
  void set_priority(H2Stream& stream, Priority priority) noexcept;

  /// Begins the drain: GOAWAY that announces it, and a PING. The answer to the PING proves that the
  /// peer has read GOAWAY; finish_drain() follows then.
  void begin_drain();
  /// Sends the final GOAWAY: later streams are ignored.
  void finish_drain();
  /// Returns true if no stream is open or will be accepted.
  bool drained() const noexcept { return drain_finished() && streams_held() == 0; }
  /// Returns true after finish_drain().
  bool drain_finished() const noexcept { return goaway_sent_ == GoAway::final; }
  /// Ends the connection with GOAWAY.
  void fail(H2Error error);
  bool failed() const noexcept { return failed_; }
  /// Ends the connection without GOAWAY, because nothing can be sent. It allocates nothing.
  void abandon() noexcept { failed_ = true; }

  // Clients.

  /// Returns true if the peer and the limits allow a further stream.
  bool may_open() const noexcept {
    return !failed_ && !goaway_received_ && streams_.has_next_id() && streams_.has_room(limits_) &&
           streams_.open_count() < peer().max_concurrent_streams;
  }
  /// Opens a stream for a request; send_headers() or release() follows before next().
  /// Returns: false if may_open() is false.
  bool open(H2Stream& stream);
  /// Tells that the block of the last event `headers` was a final head. Trailers may follow then.
  /// `length` is the number of bytes of the body, if it is known. A body of another length is an
  /// error of the stream.
  static void final_head(H2Stream& stream, std::uint64_t length = H2Stream::no_length) noexcept {
    stream.final_head_ = true;
    stream.body_left_ = length;
  }
  void send_ping();

  const H2PeerSettings& peer() const noexcept { return settings_.peer(); }
  /// Returns true if the first SETTINGS of the peer have arrived.
  bool has_peer_settings() const noexcept { return settings_.received(); }
  /// Returns true if the peer has opened a stream.
  bool had_stream() const noexcept { return last_from_peer() != 0; }
  std::uint32_t streams_held() const noexcept { return streams_.held_count(); }
  /// Returns the number of streams that are not closed.
  std::uint32_t streams_open() const noexcept { return streams_.open_count(); }
  std::int32_t work_balance() const noexcept { return work_.balance(); }
  /// Frees memory that a connection without streams does not need.
  void drop_idle_memory() noexcept;

 private:
  friend std::uint64_t session_bytes_max(const H2Limits& limits,
                                         std::uint64_t stream_bytes) noexcept;
  enum class GoAway : std::uint8_t { none, announced, final };
  using Closed = StreamTable::Closed;
  static constexpr std::string_view drain_ping = "drained?";
  static constexpr std::string_view liveness_ping = "present?";

  // Each handler of a frame returns true if there is an event for the carrier.
  bool take_request(Bytes input, H2Event& event);
  bool read_preface(Bytes& input);
  bool has_work_left(Instant now, H2Event& event);
  bool handle(const FrameEvent& frame, H2Event& event);
  bool on_data(const FrameEvent& frame, H2Event& event);
  bool begin_data(const FrameEvent& frame, H2Event& event);
  bool on_stray_data(const FrameEvent& frame, H2Event& event);
  bool on_block(const FrameEvent& frame, H2Event& event);
  bool finish_block(Bytes block, H2Event& event);
  bool on_new_stream(H2Event& event);
  bool on_head(H2Stream& stream, H2Event& event);
  bool on_trailers(H2Stream& stream, H2Event& event);
  bool on_closed_block(H2Event& event);
  bool on_reset(const FrameEvent& frame, H2Event& event);
  bool on_window_update(const FrameEvent& frame, H2Event& event);
  bool on_setting(const FrameEvent& frame, H2Event& event);
  bool on_settings_end(H2Event& event);
  bool change_send_windows(std::int64_t change, H2Event& event);
  void on_settings_ack() noexcept;
  bool on_ping(const FrameEvent& frame, H2Event& event);
  bool on_priority_update(const FrameEvent& frame, H2Event& event);
  bool on_stream_error(const FrameEvent& frame, H2Event& event);

  bool fail_with(H2Error error, H2Event& event);
  bool reset_with(H2Stream& stream, H2Error error, H2Event& event);
  bool discard_with(H2Stream& stream, H2Error error, H2Event& event);
  bool refuse_block(H2Error error, H2Event& event);
  /// Returns the highest stream that the peer has opened.
  std::uint32_t last_from_peer() const noexcept {
    return role_ == H2Role::server ? streams_.last() : 0;
  }
  bool is_from_peer(std::uint32_t id) const noexcept {
    return (id & 1U) == (role_ == H2Role::server ? 1U : 0U);
  }
  void begin_stream(H2Stream& stream) noexcept;
  void close(H2Stream& stream, Closed how) noexcept;
  void end_local(H2Stream& stream) noexcept;
  bool end_remote(H2Stream& stream) noexcept;
  void consume_on_connection(std::uint32_t count);
  void return_connection_window();

  std::size_t data_allowed(const H2Stream& stream, std::size_t count) const noexcept;
  std::size_t take_written(H2Stream& stream, const DataFrames& frames, std::size_t written);
  void end_frame(H2Stream& stream, bool ends) noexcept;
  bool may_send_whole(const H2Stream& stream, std::size_t body_size) const noexcept {
    return body_size <= frame_payload_default && !stream.local_ended() && !failed_ &&
           static_cast<std::int64_t>(body_size) <= flow_.allowed(stream.windows_) &&
           (body_size == 0 || output_.size() < limits_.output_max);
  }
  void count_sent(H2Stream& stream, std::uint32_t size) noexcept {
    flow_.on_sent(stream.windows_, size);
    if (size >= WorkUnits::data_bytes_min) work_.earn_by_data(WorkUnits::sent_data);
  }
  template <class Write>
  void send_control(std::size_t size, const Write& write);
  void send_rst_stream(std::uint32_t id, H2Error error);
  void send_goaway(std::uint32_t last, H2Error error);
  void send_window_update(std::uint32_t id, std::uint32_t increment);
  void send_settings_ack();
  void send_ack(Bytes opaque);
  void send_ping(std::string_view opaque);
  void finish_headers(H2Stream& stream, std::size_t size, bool end_stream);

  const H2Limits& limits_;
  FrameReader reader_;
  H2Role role_;
  std::uint8_t preface_left_;  // bytes of the client's preface that have not arrived
  bool failed_ = false;
  bool goaway_received_ = false;
  GoAway goaway_sent_ = GoAway::none;
  Priority early_priority_;  // PRIORITY_UPDATE for a stream that is not open yet
  H2Error error_ = {};
  std::uint8_t block_flags_ = 0;
  std::uint16_t block_frames_ = 0;  // frames of the open field block
  H2Error block_error_ = {};
  std::uint32_t block_stream_ = 0;
  std::uint32_t frame_number_ = 0;
  std::uint32_t control_bytes_ = 0;  // in the output
  FlowControl flow_;
  std::uint32_t early_priority_stream_ = 0;
  H2Settings settings_;
  WorkAccount work_;
  H2Stream* data_stream_ = nullptr;  // the stream of the DATA that arrives, or nullptr to drop it
  Buffer block_;
  Buffer output_;
  StreamTable streams_;
};

/// Returns an upper bound of the bytes that a peer can make a session hold. `stream_bytes` is the
/// size of the carrier's block for a stream, with all that it holds except for its body.
std::uint64_t session_bytes_max(const H2Limits& limits, std::uint64_t stream_bytes) noexcept;

}  // namespace weir::http

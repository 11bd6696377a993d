// permessage-deflate (RFC 7692): the messages of one connection, and the compressors of a core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/detail/counter.hpp"
#include "weir/base/text/detail/utf8.hpp"
#include "weir/compression/detail/turn_work.hpp"
#include "weir/compression/raw_deflate.hpp"
#include "weir/http/ws/detail/extension.hpp"
#include "weir/http/ws/detail/frame.hpp"
#include "weir/http/ws/detail/session.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/metrics.hpp"

namespace weir::http {

/// The compression of messages that stand alone, so that several connections can send the same
/// compressed message.
struct WsSharedCompression {
  int window_bits = deflate_window_max;
  int level = 1;
  std::size_t bytes_min = 0;
  /// Returns true if a connection with these values can send what `other` has compressed. A
  /// receiver with a larger window understands references into a smaller one.
  bool takes(const WsSharedCompression& other) const noexcept {
    return other.window_bits <= window_bits && other.level == level && other.bytes_min == bytes_min;
  }
};

/// The compressors and decompressors of one core, for messages without context, and the metrics of
/// all compressed messages.
/// Threads: its core's; any for the counters.
class WsDeflateCore final : public MetricSource {
 public:
  /// The number of unused decompressors that a core keeps.
  static constexpr std::size_t idle_max = 8;

  /// Returns the state of the loop's core, which the first call makes.
  /// Errors: throws std::bad_alloc.
  static WsDeflateCore& of(Loop& loop);
  explicit WsDeflateCore(Loop& loop) { loop.metrics().add(*this); }
  ~WsDeflateCore() { detach(); }

  /// Returns a compressor after reset(), for use in one call.
  /// Errors: throws std::bad_alloc.
  compression::RawDeflater& deflater(int window_bits, int level);
  /// Compresses a whole message, without deflate_message_tail.
  /// Returns: the bytes; nothing if the message would not become smaller, is shorter than
  /// `options` asks for, or has more than shared_max bytes.
  /// Errors: throws std::bad_alloc.
  std::optional<Buffer> compress(Bytes message, const WsSharedCompression& options);
  static constexpr std::size_t shared_max = 64 * 1024;
  /// Returns a decompressor after reset() for the largest window.
  /// Errors: throws std::bad_alloc.
  std::unique_ptr<compression::RawInflater> take_inflater();
  void give_back(std::unique_ptr<compression::RawInflater> inflater) noexcept;
  /// Returns an upper bound of the bytes of the unused objects.
  static std::uint64_t bytes_max() noexcept;

  weir::detail::Counter compressed;    ///< messages and pieces of messages
  weir::detail::Counter decompressed;  ///< messages
  weir::detail::Counter rejected;      ///< messages that were invalid or too large

 private:
  /// A compressor for one window; the level is the last one that was used.
  struct Shared {
    int level = 0;
    std::unique_ptr<compression::RawDeflater> deflater;
  };

  void collect(MetricSnapshot& sum) const override;

  std::array<Shared, deflate_window_max - deflate_sending_window_min + 1> shared_;
  std::array<std::unique_ptr<compression::RawInflater>, idle_max> idle_;
};

/// Compresses and decompresses the messages of one connection.
/// Threads: its loop's.
class WsDeflate {
 public:
  /// The bytes of a message that are compressed for one frame.
  static constexpr std::size_t slice_max = 32 * 1024;

  /// Errors: throws std::bad_alloc.
  WsDeflate(Loop& loop, WsRole role, const WebSocketDeflate& agreed,
            const WebSocketCompression& options);
  ~WsDeflate();

  /// Returns true if the connection has done its work of the loop's present turn. It then neither
  /// compresses nor decompresses until the next one.
  bool turn_is_used() noexcept {
    work_.enter(loop_.counters().turns.value());
    return work_.is_used();
  }

  // Sending.

  /// Decides if a message is compressed when its first piece is sent. `continues` is true for the
  /// later frames, for which it returns the same.
  bool compresses(const WebSocketMessage& piece, bool continues) noexcept;
  /// Returns the room that compress() needs for a slice of this size.
  static constexpr std::size_t room_for(std::size_t slice) noexcept {
    return slice + slice / 4 + 128;
  }
  /// Compresses at most slice_max bytes, which are the payload of one frame. `ends` is true for the
  /// last frame of a message.
  /// Returns: the number of bytes that were written to `out`.
  /// Errors: throws std::bad_alloc, before anything is written.
  std::size_t compress(Bytes slice, bool ends, MutableBytes out);

  /// Returns how messages for several connections are compressed; nothing if the messages of this
  /// one refer to earlier ones, or are not compressed.
  std::optional<WsSharedCompression> shared() const noexcept;

  // Receiving.

  /// The progress of decompress().
  struct Step {
    bool complete = false;  ///< the part is used up, and all output was produced
    std::optional<WebSocketCloseCode> failure = {};
  };
  /// Decompresses a part of a message behind the bytes of `out`, and removes from `part` what was
  /// used. It stops after `room_max` bytes, and when turn_is_used(). A text is checked up to the
  /// bytes that have arrived.
  /// Errors: invalid_data, or message_too_big after `message_bytes_max` bytes of one message, in
  /// `failure`. Throws std::bad_alloc.
  Step decompress(WsEvent& part, std::uint64_t message_bytes_max, std::size_t room_max,
                  Buffer& out);

  /// Returns an upper bound of the bytes of a connection with these options.
  static std::uint64_t bytes_max(const WebSocketCompression& options) noexcept;

 private:
  Loop& loop_;
  WsDeflateCore& core_;
  compression::TurnWork work_;
  const WebSocketDeflate::Direction sends_;
  const WebSocketDeflate::Direction receives_;
  const std::uint8_t level_;
  const std::size_t bytes_min_;
  bool compresses_ = false;     // the message that is being sent
  bool output_full_ = false;    // the decompressor may have more output
  std::uint8_t tail_used_ = 0;  // bytes of deflate_message_tail that the decompressor has
  Utf8Checker utf8_;
  std::uint64_t received_ = 0;  // bytes of the message that were decompressed
  std::unique_ptr<compression::RawDeflater> deflater_;  // with a context
  std::unique_ptr<compression::RawInflater> inflater_;  // with a context, or of an open message
};

}  // namespace weir::http

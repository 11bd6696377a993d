// DEFLATE without a header (RFC 1951), message by message: the permessage-deflate of RFC 7692.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/compression/progress.hpp"

namespace weir::compression {

namespace detail {
class Encoder;
class Decoder;
}  // namespace detail

/// The four bytes that end each flushed message. A sender of RFC 7692 §7.2.1 removes them, and a
/// receiver gives them to its RawInflater after the last byte of a message (§7.2.2).
inline constexpr std::array<std::byte, 4> deflate_message_tail{std::byte{0}, std::byte{0},
                                                               std::byte{0xff}, std::byte{0xff}};

/// Returns true if this build has RawDeflater and RawInflater, which need zlib.
bool has_raw_deflate() noexcept;

/// The parameters of a RawDeflater; each bounds its memory.
struct RawDeflateOptions {
  /// The binary logarithm of the window's bytes, from 9 to 15. zlib has no raw DEFLATE with 8; a
  /// sender with `server_max_window_bits=8` therefore declines the extension.
  int window_bits = 15;
  int level = 1;         ///< from 0 (only stored) to 9 (smallest)
  int memory_level = 8;  ///< from 1 to 9; each step doubles the hash table, 64 KiB at 8
};

/// Compresses messages. Each message may refer to the ones before it (context takeover), unless
/// reset() was called in between. A compressor without context takeover needs no state between
/// messages, so one can serve all connections of a core.
/// Threads: one at a time.
class RawDeflater {
 public:
  /// The room that each call of compress() needs at least.
  static constexpr std::size_t room_min = 16;

  /// Errors: Errc::unsupported in a build without zlib, Errc::bad_configuration for an option that
  /// is out of its range. Throws std::bad_alloc.
  static Result<RawDeflater> make(const RawDeflateOptions& options);
  RawDeflater(RawDeflater&& other) noexcept;
  RawDeflater& operator=(RawDeflater&& other) noexcept;
  ~RawDeflater();

  /// Compresses a part of a message. The last part has Flush::sync, after which the output of the
  /// message ends with deflate_message_tail. Flush::finish is not allowed (asserted). `output` has
  /// at least room_min bytes (asserted).
  /// Returns: the progress. It is complete if the input is consumed and the flush is done.
  Progress compress(Bytes input, MutableBytes output, Flush flush) noexcept;
  /// Forgets all messages, so that the next one does not refer to them.
  void reset() noexcept;
  /// Returns the bytes that this compressor has allocated.
  std::size_t memory_bytes() const noexcept;

 private:
  explicit RawDeflater(std::unique_ptr<detail::Encoder> encoder) noexcept;

  std::unique_ptr<detail::Encoder> encoder_;
};

/// Decompresses messages, each after the ones before it. The caller bounds the output of a message:
/// it stops when the sum of `produced` exceeds its limit.
/// Threads: one at a time.
class RawInflater {
 public:
  /// Makes a decompressor for a sender with at most `window_bits`, from 8 to 15.
  /// Errors: Errc::unsupported in a build without zlib, Errc::bad_configuration for another number.
  /// Throws std::bad_alloc.
  static Result<RawInflater> make(int window_bits);
  RawInflater(RawInflater&& other) noexcept;
  RawInflater& operator=(RawInflater&& other) noexcept;
  ~RawInflater();

  /// Decompresses a part of a message. `output` is not empty (asserted). DEFLATE blocks that are
  /// marked as final may be followed by others (RFC 7692 §7.2.3.4). A call returns behind each of
  /// them, so that its work is bounded by `input` and `output`; see TurnWork.
  /// Returns: the progress. It is complete if the input is consumed and has no more output.
  /// Errors: DecompressError::corrupt; the decompressor is then of no use until reset(). Throws
  /// std::bad_alloc.
  Result<Progress> decompress(Bytes input, MutableBytes output);
  /// Forgets all messages: the sender does not use context takeover, or an error occurred.
  void reset() noexcept;
  /// Returns the bytes that this decompressor has allocated.
  std::size_t memory_bytes() const noexcept;

 private:
  explicit RawInflater(std::unique_ptr<detail::Decoder> decoder) noexcept;

  std::unique_ptr<detail::Decoder> decoder_;
};

/// Returns an upper bound of the bytes that a RawDeflater with these options allocates.
std::size_t raw_deflate_bytes_max(const RawDeflateOptions& options) noexcept;
/// Returns an upper bound of the bytes that a RawInflater with this window allocates.
std::size_t raw_inflate_bytes_max(int window_bits) noexcept;

}  // namespace weir::compression

// Compression of contents in pieces.
#pragma once

#include <cstddef>
#include <memory>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/compression/coding.hpp"
#include "weir/compression/progress.hpp"

namespace weir::compression {

namespace detail {
class Encoder;
}  // namespace detail

/// Compresses one content after another, each in pieces. The window has at most 256 KiB, so that
/// the memory of a compressor and of its receivers is small; see compressor_bytes_max().
/// Threads: one at a time.
class Compressor {
 public:
  /// The room that each call of compress() needs at least.
  static constexpr std::size_t room_min = 16;

  /// Errors: Errc::unsupported for a coding that is not available, Errc::bad_configuration for a
  /// level that is not valid or the identity. Throws std::bad_alloc.
  static Result<Compressor> make(const CodingLevel& level);
  Compressor(Compressor&& other) noexcept;
  Compressor& operator=(Compressor&& other) noexcept;
  ~Compressor();

  /// Compresses a piece of the content into `output`, which has at least room_min bytes (asserted).
  /// The caller repeats the call with the rest of the input, and without more input, until the
  /// progress is complete.
  /// Errors: throws std::bad_alloc.
  Progress compress(Bytes input, MutableBytes output, Flush flush);
  /// Compresses a piece, and appends all output to `output`.
  /// Errors: throws std::bad_alloc.
  void append(Bytes input, Flush flush, Buffer& output);
  /// Begins the next content.
  /// Errors: throws std::bad_alloc.
  void reset();

  const CodingLevel& level() const noexcept { return level_; }
  /// Returns the bytes that this compressor has allocated.
  std::size_t memory_bytes() const noexcept;

 private:
  Compressor(const CodingLevel& level, std::unique_ptr<detail::Encoder> encoder) noexcept;

  CodingLevel level_;
  std::unique_ptr<detail::Encoder> encoder_;
};

}  // namespace weir::compression

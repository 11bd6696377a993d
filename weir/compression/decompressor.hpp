// Decompression of contents in pieces, with limits for contents that expand beyond all bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/compression/coding.hpp"
#include "weir/compression/progress.hpp"

namespace weir::compression {

namespace detail {
class Decoder;
}  // namespace detail

/// The limits of the decompression of one content. Each comment ends with the error beyond the
/// limit. The limits hold while the content is decompressed: no output exists beyond them.
struct DecompressLimits {
  std::uint64_t output_max = 16 * 1024 * 1024;  ///< decompressed bytes; output_too_large
  /// Decompressed bytes for each byte of input, beyond ratio_free bytes of output; ratio_too_high.
  /// Texts have ratios below 50 as a rule. DEFLATE reaches 1032, brotli and zstd far more.
  std::uint32_t ratio_max = 200;
  std::uint64_t ratio_free = 1024 * 1024;  ///< output that the ratio does not limit
  /// Bytes of the window of zstd, rounded down to a power of two, and of the ring buffer of brotli;
  /// window_too_large. Receivers of zstd accept 8 MiB (RFC 9659). The ring buffer of brotli grows
  /// with the content to at most 16 MiB.
  std::size_t window_max = 8 * 1024 * 1024;
};

/// Decompresses one content after another, each in pieces. A content of gzip may have several
/// members (RFC 1952 §2.2), and one of zstd several frames.
/// Threads: one at a time.
class Decompressor {
 public:
  /// Errors: Errc::unsupported for a coding that is not available, Errc::bad_configuration for
  /// the identity. Throws std::bad_alloc.
  static Result<Decompressor> make(Coding coding, const DecompressLimits& limits = {});
  Decompressor(Decompressor&& other) noexcept;
  Decompressor& operator=(Decompressor&& other) noexcept;
  ~Decompressor();

  /// Decompresses a piece of the content into `output`, which is not empty (asserted). A call
  /// produces at most `output.size()` bytes.
  /// Returns: the progress. It is complete if the input is consumed and has no more output.
  /// Errors: a DecompressError, which all later calls return too. Throws std::bad_alloc.
  Result<Progress> decompress(Bytes input, MutableBytes output);
  /// Tells the end of the input, after the last progress was complete.
  /// Errors: DecompressError::truncated if the content is incomplete, trailing_data, or the error
  /// of an earlier call. No input at all is an empty content.
  Result<> finish() const noexcept;
  /// Begins the next content.
  /// Errors: throws std::bad_alloc.
  void reset();

  Coding coding() const noexcept { return coding_; }
  /// Returns the decompressed bytes of this content so far.
  std::uint64_t output_bytes() const noexcept { return output_bytes_; }
  /// Returns the bytes that this decompressor has allocated.
  std::size_t memory_bytes() const noexcept;

 private:
  Decompressor(Coding coding, const DecompressLimits& limits,
               std::unique_ptr<detail::Decoder> decoder) noexcept;
  bool exceeds_ratio() const noexcept;
  Result<Progress> fail_with(std::error_code error) noexcept;

  Coding coding_;
  bool ended_ = false;  // at the end of a member or a frame
  DecompressLimits limits_;
  std::uint64_t input_bytes_ = 0;
  std::uint64_t output_bytes_ = 0;
  std::error_code error_;
  std::unique_ptr<detail::Decoder> decoder_;
};

/// Returns an upper bound of the bytes that a Decompressor with these limits allocates.
std::size_t decompressor_bytes_max(Coding coding, const DecompressLimits& limits) noexcept;

}  // namespace weir::compression

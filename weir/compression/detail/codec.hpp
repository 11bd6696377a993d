// The contract between the compressors of this floor and the sources that use a library. A factory
// of a library that the build lacks returns nullptr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/compression/coding.hpp"
#include "weir/compression/progress.hpp"

namespace weir::compression::detail {

/// One direction of one library: input becomes compressed data.
/// Threads: one at a time.
class Encoder {
 public:
  virtual ~Encoder() = default;
  /// The room that each call of step() needs at least.
  static constexpr std::size_t room_min = 16;
  /// Returns the progress, which is complete if the input is consumed and the flush is done.
  /// Errors: throws std::bad_alloc.
  virtual Progress step(Bytes input, MutableBytes output, Flush flush) = 0;
  /// Begins new data, which does not refer to what came before.
  /// Errors: throws std::bad_alloc.
  virtual void reset() = 0;
  /// Returns the bytes that the library has allocated.
  virtual std::size_t memory_bytes() const noexcept = 0;
};

/// The progress of a Decoder.
struct DecodeStep {
  std::size_t consumed = 0;
  std::size_t produced = 0;
  bool ended = false;  ///< the end of a member or a frame; more input begins another one
};

/// The other direction: compressed data becomes output.
/// Threads: one at a time.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// `output` is not empty. A step that neither ends nor fills the output needs more input. A step
  /// of raw DEFLATE also returns behind each final block, so that the caller counts its work.
  /// Errors: DecompressError::corrupt, DecompressError::window_too_large. Throws std::bad_alloc.
  virtual Result<DecodeStep> step(Bytes input, MutableBytes output) = 0;
  /// Begins new data.
  /// Errors: throws std::bad_alloc.
  virtual void reset() = 0;
  virtual std::size_t memory_bytes() const noexcept = 0;
};

/// The format around DEFLATE data.
enum class DeflateFormat : std::uint8_t {
  raw,   ///< RFC 1951
  zlib,  ///< RFC 1950, the coding "deflate"
  gzip,  ///< RFC 1952
};

/// The parameters of DEFLATE, in the ranges of RawDeflateOptions.
struct DeflateParameters {
  DeflateFormat format = DeflateFormat::gzip;
  int window_bits = 15;
  int level = 1;
  int memory_level = 8;
};

/// Returns true if this build has the library.
bool has_zlib() noexcept;
bool has_brotli() noexcept;
bool has_zstd() noexcept;

std::unique_ptr<Encoder> make_deflate_encoder(const DeflateParameters& parameters);
/// Makes a decoder. One of raw DEFLATE never ends: blocks after a final block continue the data.
std::unique_ptr<Decoder> make_deflate_decoder(DeflateFormat format, int window_bits);

/// The binary logarithm of the windows of these encoders, which bounds their memory.
inline constexpr int stream_window_bits = 18;

/// Makes an encoder of brotli (RFC 7932) with a level from 0 to 11.
std::unique_ptr<Encoder> make_brotli_encoder(int level);
/// Makes a decoder that allocates at most `window_max` bytes and brotli_tables_bytes_max.
std::unique_ptr<Decoder> make_brotli_decoder(std::size_t window_max);
inline constexpr std::size_t brotli_tables_bytes_max = 4 * 1024 * 1024;

/// Makes an encoder of zstd (RFC 8878) with a level from 1 to 19.
std::unique_ptr<Encoder> make_zstd_encoder(int level);
/// Makes a decoder of frames whose window has at most `window_max` bytes, which is at least 1 KiB.
std::unique_ptr<Decoder> make_zstd_decoder(std::size_t window_max);

/// Makes the encoder of a valid level.
std::unique_ptr<Encoder> make_encoder(const CodingLevel& level);

/// Compresses whole contents with a level from 1 to 9, in the format zlib or gzip.
/// Threads: one at a time.
class WholeEncoder {
 public:
  virtual ~WholeEncoder() = default;
  /// Returns the number of bytes written to `output`; 0 if they do not fit.
  virtual std::size_t compress(Bytes input, MutableBytes output) noexcept = 0;
};
/// Makes an encoder by libdeflate, which is faster than zlib.
std::unique_ptr<WholeEncoder> make_libdeflate_encoder(DeflateFormat format, int level);

}  // namespace weir::compression::detail

// DEFLATE by zlib: raw, and in the formats zlib and gzip.
#include "weir/compression/detail/codec.hpp"

#if WEIR_ZLIB
#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <tuple>

#include "weir/compression/detail/counted_memory.hpp"
#include "weir/compression/error.hpp"
#endif

namespace weir::compression::detail {

#if WEIR_ZLIB

namespace {

/// A z_stream whose memory is counted.
/// Lifetime: it does not move, because zlib keeps its address.
class Stream {
 public:
  Stream() noexcept {
    z.zalloc = [](void* memory, uInt count, uInt size) -> void* {
      return static_cast<CountedMemory*>(memory)->allocate(std::size_t{count} * size);
    };
    z.zfree = [](void* memory, void* block) { CountedMemory::release(memory, block); };
    z.opaque = &memory_;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Sets the input and the output of the next call. Longer ones are cut: zlib counts in 32 bits.
  void set(Bytes input, MutableBytes output) noexcept {
    constexpr std::size_t size_max = std::numeric_limits<uInt>::max();
    // zlib rejects a null pointer even if there is no input.
    z.next_in = reinterpret_cast<const Bytef*>(input.empty() ? "" : to_text(input).data());
    z.avail_in = input_size_ = static_cast<uInt>(std::min(input.size(), size_max));
    z.next_out = reinterpret_cast<Bytef*>(output.data());
    z.avail_out = output_size_ = static_cast<uInt>(std::min(output.size(), size_max));
    cut_ = input.size() > size_max;
  }
  std::size_t consumed() const noexcept { return input_size_ - z.avail_in; }
  std::size_t produced() const noexcept { return output_size_ - z.avail_out; }
  bool input_is_cut() const noexcept { return cut_; }
  std::size_t memory_bytes() const noexcept { return memory_.bytes(); }

  z_stream z{};

 private:
  CountedMemory memory_;
  uInt input_size_ = 0;
  uInt output_size_ = 0;
  bool cut_ = false;
};

/// Returns the window's bits with the marks of the format that zlib expects in them.
int marked_bits(DeflateFormat format, int window_bits) noexcept {
  constexpr int gzip_mark = 16;
  if (format == DeflateFormat::raw) return -window_bits;
  return format == DeflateFormat::gzip ? window_bits + gzip_mark : window_bits;
}

class DeflateEncoder final : public Encoder {
 public:
  explicit DeflateEncoder(const DeflateParameters& of) {
    if (deflateInit2(&stream_.z, of.level, Z_DEFLATED, marked_bits(of.format, of.window_bits),
                     of.memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~DeflateEncoder() override { deflateEnd(&stream_.z); }

  Progress step(Bytes input, MutableBytes output, Flush flush) override {
    stream_.set(input, output);
    if (stream_.input_is_cut()) flush = Flush::none;
    constexpr std::array modes{Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH};
    // Z_BUF_ERROR means that there is nothing to do.
    const int status = deflate(&stream_.z, modes[static_cast<std::size_t>(flush)]);
    const bool done = flush == Flush::finish ? status == Z_STREAM_END : stream_.z.avail_out > 0;
    return {stream_.consumed(), stream_.produced(),
            done && stream_.z.avail_in == 0 && !stream_.input_is_cut()};
  }
  void reset() override { deflateReset(&stream_.z); }
  std::size_t memory_bytes() const noexcept override { return stream_.memory_bytes(); }

 private:
  Stream stream_;
};

class DeflateDecoder final : public Decoder {
 public:
  DeflateDecoder(DeflateFormat format, int window_bits) : is_raw_(format == DeflateFormat::raw) {
    if (inflateInit2(&stream_.z, marked_bits(format, window_bits)) != Z_OK) throw std::bad_alloc();
  }
  ~DeflateDecoder() override { inflateEnd(&stream_.z); }

  Result<DecodeStep> step(Bytes input, MutableBytes output) override {
    if (ended_) reset();
    stream_.set(input, output);
    const int status = inflate(&stream_.z, Z_SYNC_FLUSH);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_BUF_ERROR && status != Z_STREAM_END) {
      return fail(DecompressError::corrupt);
    }
    if (status == Z_STREAM_END && is_raw_) {
      // Later blocks may refer to the window, which this reset keeps. A copy of the window for each
      // final block would let two bytes of input cost 64 KiB of work.
      inflateResetKeep(&stream_.z);
    }
    ended_ = status == Z_STREAM_END && !is_raw_;
    return DecodeStep{stream_.consumed(), stream_.produced(), ended_};
  }
  void reset() override {
    ended_ = false;
    inflateReset(&stream_.z);
  }
  std::size_t memory_bytes() const noexcept override { return stream_.memory_bytes(); }

 private:
  Stream stream_;
  const bool is_raw_;
  bool ended_ = false;
};

}  // namespace

bool has_zlib() noexcept {
  return true;
}
std::unique_ptr<Encoder> make_deflate_encoder(const DeflateParameters& parameters) {
  return std::make_unique<DeflateEncoder>(parameters);
}
std::unique_ptr<Decoder> make_deflate_decoder(DeflateFormat format, int window_bits) {
  return std::make_unique<DeflateDecoder>(format, window_bits);
}

#else  // The build is without zlib.

bool has_zlib() noexcept {
  return false;
}
std::unique_ptr<Encoder> make_deflate_encoder(const DeflateParameters&) {
  return nullptr;
}
std::unique_ptr<Decoder> make_deflate_decoder(DeflateFormat, int) {
  return nullptr;
}

#endif

}  // namespace weir::compression::detail

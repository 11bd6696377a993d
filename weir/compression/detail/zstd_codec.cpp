// Zstandard (RFC 8878) by its library.
#include "weir/compression/detail/codec.hpp"

#if WEIR_ZSTD
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <bit>
#include <new>

#include "weir/compression/error.hpp"
#endif

namespace weir::compression::detail {

#if WEIR_ZSTD

namespace {

struct ZstdDeleter {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};
template <class Context>
using ContextPtr = std::unique_ptr<Context, ZstdDeleter>;

template <class Context>
ContextPtr<Context> checked(Context* context) {
  if (context == nullptr) throw std::bad_alloc();
  return ContextPtr<Context>(context);
}

class ZstdEncoder final : public Encoder {
 public:
  explicit ZstdEncoder(int level) : context_(checked(ZSTD_createCCtx())) {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_windowLog, stream_window_bits);
  }

  Progress step(Bytes input, MutableBytes output, Flush flush) override {
    static constexpr ZSTD_EndDirective directives[] = {ZSTD_e_continue, ZSTD_e_flush, ZSTD_e_end};
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    const std::size_t left = ZSTD_compressStream2(context_.get(), &out, &in,
                                                  directives[static_cast<std::size_t>(flush)]);
    if (ZSTD_isError(left)) throw std::bad_alloc();  // the only error of valid parameters
    return {in.pos, out.pos, in.pos == in.size && (flush == Flush::none || left == 0)};
  }
  void reset() override { ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_only); }
  std::size_t memory_bytes() const noexcept override { return ZSTD_sizeof_CCtx(context_.get()); }

 private:
  ContextPtr<ZSTD_CCtx> context_;
};

class ZstdDecoder final : public Decoder {
 public:
  explicit ZstdDecoder(std::size_t window_max) : context_(checked(ZSTD_createDCtx())) {
    ZSTD_DCtx_setParameter(
        context_.get(), ZSTD_d_windowLogMax,
        std::clamp<int>(static_cast<int>(std::bit_width(window_max)) - 1, 10, 31));
  }

  Result<DecodeStep> step(Bytes input, MutableBytes output) override {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    const std::size_t left = ZSTD_decompressStream(context_.get(), &out, &in);
    if (ZSTD_isError(left)) return fail(error(ZSTD_getErrorCode(left)));
    return DecodeStep{in.pos, out.pos, left == 0};
  }
  void reset() override { ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only); }
  std::size_t memory_bytes() const noexcept override { return ZSTD_sizeof_DCtx(context_.get()); }

 private:
  static DecompressError error(ZSTD_ErrorCode code) {
    if (code == ZSTD_error_memory_allocation) throw std::bad_alloc();
    return code == ZSTD_error_frameParameter_windowTooLarge ? DecompressError::window_too_large
                                                            : DecompressError::corrupt;
  }

  ContextPtr<ZSTD_DCtx> context_;
};

}  // namespace

bool has_zstd() noexcept {
  return true;
}
std::unique_ptr<Encoder> make_zstd_encoder(int level) {
  return std::make_unique<ZstdEncoder>(level);
}
std::unique_ptr<Decoder> make_zstd_decoder(std::size_t window_max) {
  return std::make_unique<ZstdDecoder>(window_max);
}

#else  // The build is without zstd.

bool has_zstd() noexcept {
  return false;
}
std::unique_ptr<Encoder> make_zstd_encoder(int) {
  return nullptr;
}
std::unique_ptr<Decoder> make_zstd_decoder(std::size_t) {
  return nullptr;
}

#endif

}  // namespace weir::compression::detail

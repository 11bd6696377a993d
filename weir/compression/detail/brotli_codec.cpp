// Brotli (RFC 7932) by its library.
#include "weir/compression/detail/codec.hpp"

#if WEIR_BROTLI
#include <brotli/decode.h>
#include <brotli/encode.h>

#include <cassert>
#include <new>
#include <utility>

#include "weir/compression/detail/counted_memory.hpp"
#include "weir/compression/error.hpp"
#endif

namespace weir::compression::detail {

#if WEIR_BROTLI

namespace {

void* allocate(void* memory, std::size_t bytes) {
  return static_cast<CountedMemory*>(memory)->allocate(bytes);
}

const std::uint8_t* data_of(Bytes bytes) noexcept {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
std::uint8_t* data_of(MutableBytes bytes) noexcept {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}

/// A state cannot be reused: reset() makes another one.
class BrotliEncoder final : public Encoder {
 public:
  explicit BrotliEncoder(int level) : level_(level) { begin(); }
  ~BrotliEncoder() override { BrotliEncoderDestroyInstance(state_); }

  Progress step(Bytes input, MutableBytes output, Flush flush) override {
    static constexpr BrotliEncoderOperation operations[] = {
        BROTLI_OPERATION_PROCESS, BROTLI_OPERATION_FLUSH, BROTLI_OPERATION_FINISH};
    const std::uint8_t* next_in = data_of(input);
    std::uint8_t* next_out = data_of(output);
    std::size_t in_left = input.size();
    std::size_t out_left = output.size();
    if (!BrotliEncoderCompressStream(state_, operations[static_cast<std::size_t>(flush)], &in_left,
                                     &next_in, &out_left, &next_out, nullptr)) {
      throw std::bad_alloc();
    }
    return {input.size() - in_left, output.size() - out_left,
            in_left == 0 && !BrotliEncoderHasMoreOutput(state_)};
  }
  void reset() override {
    BrotliEncoderDestroyInstance(std::exchange(state_, nullptr));
    begin();
  }
  std::size_t memory_bytes() const noexcept override { return memory_.bytes(); }

 private:
  void begin() {
    state_ = BrotliEncoderCreateInstance(&allocate, &CountedMemory::release, &memory_);
    if (state_ == nullptr) throw std::bad_alloc();
    BrotliEncoderSetParameter(state_, BROTLI_PARAM_QUALITY, static_cast<std::uint32_t>(level_));
    BrotliEncoderSetParameter(state_, BROTLI_PARAM_LGWIN, stream_window_bits);
  }

  CountedMemory memory_;
  int level_;
  BrotliEncoderState* state_ = nullptr;
};

class BrotliDecoder final : public Decoder {
 public:
  explicit BrotliDecoder(std::size_t window_max) : memory_(window_max + brotli_tables_bytes_max) {
    begin();
  }
  ~BrotliDecoder() override { BrotliDecoderDestroyInstance(state_); }

  Result<DecodeStep> step(Bytes input, MutableBytes output) override {
    const std::uint8_t* next_in = data_of(input);
    std::uint8_t* next_out = data_of(output);
    std::size_t in_left = input.size();
    std::size_t out_left = output.size();
    const auto result =
        BrotliDecoderDecompressStream(state_, &in_left, &next_in, &out_left, &next_out, nullptr);
    if (result == BROTLI_DECODER_RESULT_ERROR) return fail(error());
    return DecodeStep{input.size() - in_left, output.size() - out_left,
                      result == BROTLI_DECODER_RESULT_SUCCESS};
  }
  void reset() override {
    BrotliDecoderDestroyInstance(std::exchange(state_, nullptr));
    begin();
  }
  std::size_t memory_bytes() const noexcept override { return memory_.bytes(); }

 private:
  void begin() {
    state_ = BrotliDecoderCreateInstance(&allocate, &CountedMemory::release, &memory_);
    if (state_ == nullptr) throw std::bad_alloc();
  }
  DecompressError error() const {
    if (memory_.exceeded()) return DecompressError::window_too_large;
    const auto code = BrotliDecoderGetErrorCode(state_);
    if (code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
        code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES) {
      throw std::bad_alloc();
    }
    return DecompressError::corrupt;
  }

  CountedMemory memory_;
  BrotliDecoderState* state_ = nullptr;
};

}  // namespace

bool has_brotli() noexcept {
  return true;
}
std::unique_ptr<Encoder> make_brotli_encoder(int level) {
  return std::make_unique<BrotliEncoder>(level);
}
std::unique_ptr<Decoder> make_brotli_decoder(std::size_t window_max) {
  return std::make_unique<BrotliDecoder>(window_max);
}

#else  // The build is without brotli.

bool has_brotli() noexcept {
  return false;
}
std::unique_ptr<Encoder> make_brotli_encoder(int) {
  return nullptr;
}
std::unique_ptr<Decoder> make_brotli_decoder(std::size_t) {
  return nullptr;
}

#endif

}  // namespace weir::compression::detail

#include "weir/compression/raw_deflate.hpp"

#include <cassert>
#include <utility>

#include "weir/compression/detail/codec.hpp"

namespace weir::compression {
namespace {

constexpr std::size_t power_of_two(int exponent) noexcept {
  return std::size_t{1} << exponent;
}

/// The bytes of zlib's own structures, with room for later versions.
constexpr std::size_t structures = 16 * 1024;

constexpr bool is_between(int value, int low, int high) noexcept {
  return value >= low && value <= high;
}

}  // namespace

bool has_raw_deflate() noexcept {
  return detail::has_zlib();
}

Result<RawDeflater> RawDeflater::make(const RawDeflateOptions& options) {
  if (!is_between(options.window_bits, 9, 15) || !is_between(options.level, 0, 9) ||
      !is_between(options.memory_level, 1, 9)) {
    return fail(Errc::bad_configuration);
  }
  auto encoder = detail::make_deflate_encoder({.format = detail::DeflateFormat::raw,
                                               .window_bits = options.window_bits,
                                               .level = options.level,
                                               .memory_level = options.memory_level});
  if (encoder == nullptr) return fail(Errc::unsupported);
  return RawDeflater(std::move(encoder));
}

RawDeflater::RawDeflater(std::unique_ptr<detail::Encoder> encoder) noexcept
    : encoder_(std::move(encoder)) {}
RawDeflater::RawDeflater(RawDeflater&& other) noexcept = default;
RawDeflater& RawDeflater::operator=(RawDeflater&& other) noexcept = default;
RawDeflater::~RawDeflater() = default;

Progress RawDeflater::compress(Bytes input, MutableBytes output, Flush flush) noexcept {
  static_assert(room_min == detail::Encoder::room_min);
  assert(output.size() >= room_min && flush != Flush::finish);
  return encoder_->step(input, output, flush);
}

void RawDeflater::reset() noexcept {
  encoder_->reset();
}

std::size_t RawDeflater::memory_bytes() const noexcept {
  return encoder_->memory_bytes();
}

Result<RawInflater> RawInflater::make(int window_bits) {
  if (!is_between(window_bits, 8, 15)) return fail(Errc::bad_configuration);
  auto decoder = detail::make_deflate_decoder(detail::DeflateFormat::raw, window_bits);
  if (decoder == nullptr) return fail(Errc::unsupported);
  return RawInflater(std::move(decoder));
}

RawInflater::RawInflater(std::unique_ptr<detail::Decoder> decoder) noexcept
    : decoder_(std::move(decoder)) {}
RawInflater::RawInflater(RawInflater&& other) noexcept = default;
RawInflater& RawInflater::operator=(RawInflater&& other) noexcept = default;
RawInflater::~RawInflater() = default;

Result<Progress> RawInflater::decompress(Bytes input, MutableBytes output) {
  assert(!output.empty());
  WEIR_TRY(const auto step, decoder_->step(input, output));
  return Progress{step.consumed, step.produced,
                  step.consumed == input.size() && step.produced < output.size()};
}

void RawInflater::reset() noexcept {
  decoder_->reset();
}

std::size_t RawInflater::memory_bytes() const noexcept {
  return decoder_->memory_bytes();
}

std::size_t raw_deflate_bytes_max(const RawDeflateOptions& options) noexcept {
  // The window and the chains; the hash table and the symbols, which newer versions store in more.
  return power_of_two(options.window_bits + 2) + power_of_two(options.memory_level + 9) +
         power_of_two(options.memory_level + 6) + structures;
}

std::size_t raw_inflate_bytes_max(int window_bits) noexcept {
  return power_of_two(window_bits) + structures;
}

}  // namespace weir::compression

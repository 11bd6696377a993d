#include "weir/compression/decompressor.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "weir/compression/detail/codec.hpp"
#include "weir/compression/error.hpp"
#include "weir/compression/raw_deflate.hpp"

namespace weir::compression {
namespace {

constexpr int window_bits_max = 15;

std::unique_ptr<detail::Decoder> make_decoder(Coding coding, const DecompressLimits& limits) {
  switch (coding) {
    case Coding::identity:
      return nullptr;
    case Coding::gzip:
      return detail::make_deflate_decoder(detail::DeflateFormat::gzip, window_bits_max);
    case Coding::deflate:
      return detail::make_deflate_decoder(detail::DeflateFormat::zlib, window_bits_max);
    case Coding::brotli:
      return detail::make_brotli_decoder(limits.window_max);
    case Coding::zstd:
      return detail::make_zstd_decoder(limits.window_max);
  }
  std::unreachable();
}

/// Returns true if `first`, after the end of a member or a frame, may begin another one.
bool begins_member(Coding coding, std::byte first) noexcept {
  if (coding == Coding::gzip) return first == std::byte{0x1f};
  // A frame, or a frame that decoders skip (RFC 8878 §3.1.2).
  const bool skippable = first >= std::byte{0x50} && first <= std::byte{0x5f};
  return coding == Coding::zstd && (first == std::byte{0x28} || skippable);
}

}  // namespace

Result<Decompressor> Decompressor::make(Coding coding, const DecompressLimits& limits) {
  if (coding == Coding::identity) return fail(Errc::bad_configuration);
  auto decoder = make_decoder(coding, limits);
  if (decoder == nullptr) return fail(Errc::unsupported);
  return Decompressor(coding, limits, std::move(decoder));
}

Decompressor::Decompressor(Coding coding, const DecompressLimits& limits,
                           std::unique_ptr<detail::Decoder> decoder) noexcept
    : coding_(coding), limits_(limits), decoder_(std::move(decoder)) {}
Decompressor::Decompressor(Decompressor&& other) noexcept = default;
Decompressor& Decompressor::operator=(Decompressor&& other) noexcept = default;
Decompressor::~Decompressor() = default;

/// Returns true if the output is out of proportion to the input so far.
bool Decompressor::exceeds_ratio() const noexcept {
  if (output_bytes_ <= limits_.ratio_free) return false;
  return output_bytes_ / std::max<std::uint64_t>(input_bytes_, 1) >= limits_.ratio_max;
}

Result<Progress> Decompressor::fail_with(std::error_code error) noexcept {
  error_ = error;
  return fail(error);
}

Result<Progress> Decompressor::decompress(Bytes input, MutableBytes output) {
  assert(!output.empty());
  if (error_) return fail(error_);
  // After the last byte that the limit allows, one more byte shows that there is more output.
  std::array<std::byte, 1> probe;
  const std::uint64_t left = limits_.output_max - output_bytes_;
  const MutableBytes room =
      left == 0
          ? MutableBytes(probe)
          : output.first(static_cast<std::size_t>(std::min<std::uint64_t>(output.size(), left)));
  Progress progress;
  for (;;) {
    const Bytes rest = input.subspan(progress.consumed);
    const MutableBytes free = room.subspan(progress.produced);
    progress.complete = rest.empty() && ended_;
    if (progress.complete || free.empty()) return progress;
    if (ended_ && !begins_member(coding_, rest.front())) {
      return fail_with(DecompressError::trailing_data);
    }
    const auto step = decoder_->step(rest, free);
    if (!step) return fail_with(step.error());
    if (left == 0 && step->produced > 0) return fail_with(DecompressError::output_too_large);
    progress.consumed += step->consumed;
    progress.produced += step->produced;
    input_bytes_ += step->consumed;
    output_bytes_ += step->produced;
    ended_ = step->ended;
    if (exceeds_ratio()) return fail_with(DecompressError::ratio_too_high);
    if (!ended_ && step->produced < free.size()) {
      assert(step->consumed == rest.size());
      progress.complete = true;
      return progress;
    }
  }
}

Result<> Decompressor::finish() const noexcept {
  if (error_) return fail(error_);
  if (ended_ || input_bytes_ == 0) return {};
  return fail(DecompressError::truncated);
}

void Decompressor::reset() {
  decoder_->reset();
  error_ = {};
  ended_ = false;
  input_bytes_ = output_bytes_ = 0;
}

std::size_t Decompressor::memory_bytes() const noexcept {
  return decoder_->memory_bytes();
}

std::size_t decompressor_bytes_max(Coding coding, const DecompressLimits& limits) noexcept {
  constexpr std::size_t zstd_state = 1024 * 1024;
  switch (coding) {
    case Coding::identity:
      return 0;
    case Coding::gzip:
    case Coding::deflate:
      return raw_inflate_bytes_max(window_bits_max);
    case Coding::brotli:
      return limits.window_max + detail::brotli_tables_bytes_max;
    case Coding::zstd:
      return limits.window_max + zstd_state;
  }
  std::unreachable();
}

}  // namespace weir::compression

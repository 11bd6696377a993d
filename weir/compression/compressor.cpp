#include "weir/compression/compressor.hpp"

#include <cassert>
#include <utility>

#include "weir/compression/detail/codec.hpp"

namespace weir::compression {

Result<Compressor> Compressor::make(const CodingLevel& level) {
  if (!is_available(level.coding)) return fail(Errc::unsupported);
  if (!is_valid(level)) return fail(Errc::bad_configuration);
  return Compressor(level, detail::make_encoder(level));
}

Compressor::Compressor(const CodingLevel& level, std::unique_ptr<detail::Encoder> encoder) noexcept
    : level_(level), encoder_(std::move(encoder)) {}
Compressor::Compressor(Compressor&& other) noexcept = default;
Compressor& Compressor::operator=(Compressor&& other) noexcept = default;
Compressor::~Compressor() = default;

Progress Compressor::compress(Bytes input, MutableBytes output, Flush flush) {
  static_assert(room_min == detail::Encoder::room_min);
  assert(output.size() >= room_min);
  return encoder_->step(input, output, flush);
}

void Compressor::append(Bytes input, Flush flush, Buffer& output) {
  constexpr std::size_t more_room = 4096;
  for (;;) {
    if (output.room().size() < room_min) output.make_room(more_room);
    const Progress progress = encoder_->step(input, output.room(), flush);
    output.commit(progress.produced);
    if (progress.complete) return;
    input = input.subspan(progress.consumed);
  }
}

void Compressor::reset() {
  encoder_->reset();
}

std::size_t Compressor::memory_bytes() const noexcept {
  return encoder_->memory_bytes();
}

}  // namespace weir::compression

#include "weir/compression/compressor_pool.hpp"

#include <algorithm>

#include "weir/compression/detail/codec.hpp"

namespace weir::compression {
namespace {

/// Returns the room in which every library compresses contents of this size in one step.
std::size_t room_for(std::size_t size) noexcept {
  return size + size / 64 + 512;
}

}  // namespace

PooledCompressor::~PooledCompressor() {
  if (pool_ == nullptr) return;
  pool_->borrowed_.subtract();
  pool_->give_back(std::move(compressor_));
}

CompressorPool::CompressorPool() {
  idle_.reserve(idle_max);  // give_back() allocates nothing
}

CompressorPool::~CompressorPool() {
  assert(borrowed() == 0);
}

Result<Compressor> CompressorPool::take(const CodingLevel& level) {
  // The newest one, whose memory is in the caches of the CPU.
  const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                  [&](const Compressor& each) { return each.level() == level; });
  if (found == idle_.rend()) return Compressor::make(level);
  Compressor compressor = std::move(*found);
  idle_.erase(std::next(found).base());
  compressor.reset();
  return compressor;
}

void CompressorPool::give_back(Compressor compressor) noexcept {
  if (idle_.size() == idle_max) idle_.erase(idle_.begin());
  idle_.push_back(std::move(compressor));
}

Result<PooledCompressor> CompressorPool::borrow(const CodingLevel& level,
                                                std::size_t borrowed_max) {
  if (borrowed() >= borrowed_max) {
    refusals_.add();
    return fail(Errc::limit_reached);
  }
  WEIR_TRY(Compressor compressor, take(level));
  borrowed_.add();
  contents_.add();
  return PooledCompressor(*this, std::move(compressor));
}

detail::WholeEncoder* CompressorPool::whole_encoder(const CodingLevel& level) {
  if (level.coding != Coding::gzip && level.coding != Coding::deflate) return nullptr;
  for (const Whole& each : whole_) {
    if (each.level == level) return each.encoder.get();
  }
  auto made = detail::make_libdeflate_encoder(
      level.coding == Coding::gzip ? detail::DeflateFormat::gzip : detail::DeflateFormat::zlib,
      level.level);
  if (made == nullptr) return nullptr;
  return whole_.emplace_back(level, std::move(made)).encoder.get();
}

Result<Buffer> CompressorPool::compress(const CodingLevel& level, Bytes content) {
  if (!is_available(level.coding)) return fail(Errc::unsupported);
  if (!is_valid(level)) return fail(Errc::bad_configuration);
  Buffer output = Buffer::with_capacity(static_cast<std::uint32_t>(room_for(content.size())));
  contents_.add();
  if (detail::WholeEncoder* const encoder = whole_encoder(level)) {
    if (const std::size_t size = encoder->compress(content, output.room()); size > 0) {
      output.commit(size);
      return output;
    }
  }
  WEIR_TRY(Compressor compressor, take(level));
  compressor.append(content, Flush::finish, output);
  give_back(std::move(compressor));
  return output;
}

}  // namespace weir::compression

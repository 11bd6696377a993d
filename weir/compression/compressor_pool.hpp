// The compressors of one core: few states, reused for one content after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weir/base/buffer.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/detail/counter.hpp"
#include "weir/base/result.hpp"
#include "weir/compression/compressor.hpp"

namespace weir::compression {

namespace detail {
class WholeEncoder;
}  // namespace detail

class CompressorPool;

/// A Compressor that belongs to a pool and returns there; move-only.
/// Lifetime: the pool outlives it.
class PooledCompressor {
 public:
  PooledCompressor(PooledCompressor&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), compressor_(std::move(other.compressor_)) {}
  PooledCompressor& operator=(PooledCompressor&&) = delete;
  ~PooledCompressor();

  Compressor& operator*() noexcept { return compressor_; }
  Compressor* operator->() noexcept { return &compressor_; }

 private:
  friend class CompressorPool;
  PooledCompressor(CompressorPool& pool, Compressor compressor) noexcept
      : pool_(&pool), compressor_(std::move(compressor)) {}

  CompressorPool* pool_;
  Compressor compressor_;
};

/// The compressors of one core. A streamed content borrows one; a whole content uses one during a
/// single call. Unused compressors wait for the next content.
/// Threads: one at a time; any for the counters.
class CompressorPool {
 public:
  /// The number of unused compressors that a pool keeps.
  static constexpr std::size_t idle_max = 8;

  CompressorPool();
  CompressorPool(const CompressorPool&) = delete;
  CompressorPool& operator=(const CompressorPool&) = delete;
  ~CompressorPool();

  /// Borrows a compressor for a content, if less than `borrowed_max` are borrowed.
  /// Errors: Errc::limit_reached, and those of Compressor::make().
  Result<PooledCompressor> borrow(const CodingLevel& level, std::size_t borrowed_max);
  /// Compresses a whole content, by libdeflate if the coding is gzip or deflate and the build has
  /// it. Long contents keep the core for a long time: about 5 ms for 1 MiB of text.
  /// Returns: a buffer of the current core.
  /// Errors: those of Compressor::make(). Throws std::bad_alloc.
  Result<Buffer> compress(const CodingLevel& level, Bytes content);

  /// Returns the number of compressors that are borrowed now.
  std::uint64_t borrowed() const noexcept { return borrowed_.value(); }
  /// Returns the number of calls of borrow() that failed with limit_reached.
  std::uint64_t refusals() const noexcept { return refusals_.value(); }
  /// Returns the number of contents that were begun, streamed or whole.
  std::uint64_t contents() const noexcept { return contents_.value(); }
  /// Returns the number of compressors that wait unused.
  std::size_t idle() const noexcept { return idle_.size(); }

 private:
  friend class PooledCompressor;
  struct Whole {
    CodingLevel level;
    std::unique_ptr<detail::WholeEncoder> encoder;
  };

  Result<Compressor> take(const CodingLevel& level);
  void give_back(Compressor compressor) noexcept;
  detail::WholeEncoder* whole_encoder(const CodingLevel& level);

  std::vector<Compressor> idle_;
  std::vector<Whole> whole_;
  weir::detail::Counter borrowed_;
  weir::detail::Counter refusals_;
  weir::detail::Counter contents_;
};

}  // namespace weir::compression

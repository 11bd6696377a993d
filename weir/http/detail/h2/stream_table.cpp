#include "weir/http/detail/h2/stream_table.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <utility>

#include "weir/base/detail/block_pool.hpp"

namespace weir::http {
namespace {

constexpr std::uint32_t buckets_max = 256;

/// Returns the number of buckets: about one for two streams, and at most `buckets_max`.
std::uint32_t bucket_count_of(const H2Limits& limits) noexcept {
  return std::bit_ceil(std::clamp(limits.streams_max / 2, 1U, buckets_max));
}

}  // namespace

StreamTable::~StreamTable() {
  assert(held_ == 0 && "a stream was not released");
  release_block();
}

std::size_t StreamTable::block_bytes(const H2Limits& limits) noexcept {
  return sizeof(Block) + bucket_count_of(limits) * sizeof(H2Stream*);
}

void StreamTable::allocate(const H2Limits& limits) {
  const std::uint32_t count = bucket_count_of(limits);
  void* const block = BlockPool::allocate(block_bytes(limits));
  block_ = ::new (block) Block;
  std::uninitialized_fill_n(block_->buckets(), count, nullptr);
  block_->bucket_count = count;
}

void StreamTable::release_block() noexcept {
  if (block_ != nullptr) BlockDeleter<Block>()(std::exchange(block_, nullptr));
}

StreamTable::Closed StreamTable::how_closed(std::uint32_t id) const noexcept {
  if ((id & 1U) == 0) return Closed::unknown;
  if (is_ignored(id)) return Closed::reset_here;
  const auto* const found = std::find_if(
      closed_.begin(), closed_.end(),
      [id](const ClosedStream& each) { return each.has_id(id) && each.how() != Closed::unknown; });
  return found == closed_.end() ? Closed::unknown : found->how();
}

}  // namespace weir::http

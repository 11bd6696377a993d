#include "weir/loop/uring_unread.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace weir::uring {
namespace {

// What a first small arrival gets, so that the following ones find room behind it.
constexpr std::size_t small_capacity = 1024;

void append(Buffer& buffer, Bytes bytes) noexcept {
  std::memcpy(buffer.room().data(), bytes.data(), bytes.size());
  buffer.grow(bytes.size());
}

}  // namespace

struct Unread::Chunk {
  explicit Chunk(Buffer bytes) noexcept : buffer(std::move(bytes)) {}
  Buffer buffer;
  Chunk* next = nullptr;
};

Unread::~Unread() {
  while (!empty()) pop();
}

void Unread::push(Buffer buffer) {
  const std::size_t capacity = buffer.capacity();
  Chunk* chunk = make_block<Chunk>(std::move(buffer)).release();
  (last_ == nullptr ? first_ : last_->next) = chunk;
  last_ = chunk;
  held_ += capacity;
}

void Unread::push_copy(Bytes bytes) {
  assert(bytes.size() <= small_max);
  if (last_ != nullptr && last_->buffer.room().size() >= bytes.size()) {
    append(last_->buffer, bytes);
    return;
  }
  // The more waits already, the larger the buffers: many small arrivals end in few buffers.
  const std::size_t capacity =
      std::max(bytes.size(), std::min(std::max(held_, small_capacity), small_max));
  Buffer copy = Buffer::with_capacity(static_cast<std::uint32_t>(capacity));
  append(copy, bytes);
  push(std::move(copy));
}

Buffer Unread::pop() noexcept {
  const BlockPtr<Chunk> chunk(first_);
  first_ = chunk->next;
  if (first_ == nullptr) last_ = nullptr;
  held_ -= chunk->buffer.capacity();
  return std::move(chunk->buffer);
}

std::size_t Unread::read(MutableBytes target) noexcept {
  std::size_t count = 0;
  while (!empty() && count < target.size()) {
    Buffer& buffer = first_->buffer;
    const std::size_t some = std::min(buffer.size(), target.size() - count);
    std::memcpy(target.data() + count, buffer.data(), some);
    buffer.consume(some);
    count += some;
    if (buffer.empty()) pop();
  }
  return count;
}

}  // namespace weir::uring

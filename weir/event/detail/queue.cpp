// Allocates the chunks of event queues and the blocks of shared events.
#include "weir/event/detail/queue.hpp"

#include <new>

#include "weir/base/detail/block_pool.hpp"

namespace weir::detail {

EventQueue::~EventQueue() {
  release_memory();
}

void EventQueue::release_memory() noexcept {
  assert(empty());
  BlockPool::release(last_);
  write_ = limit_ = read_ = read_end_ = nullptr;
  first_ = last_ = nullptr;
}

void EventQueue::grow() {
  void* const memory = BlockPool::allocate(chunk_bytes);
  auto* const chunk = ::new (memory) Chunk{nullptr, nullptr};
  if (last_ == nullptr) {
    first_ = chunk;
    read_ = chunk->begin();
  } else {
    assert(!empty() && "an empty queue has room");
    last_->end = write_;
    last_->next = chunk;
    if (first_ == last_) read_end_ = write_;
  }
  last_ = chunk;
  write_ = chunk->begin();
  limit_ = reinterpret_cast<std::byte*>(chunk) + chunk_bytes;
}

void EventQueue::next_chunk() noexcept {
  Chunk* const done = std::exchange(first_, first_->next);
  BlockPool::release(done);
  read_ = first_->begin();
  read_end_ = first_->end;
}

SharedEvent* SharedEvent::allocate(const EventType& type, std::size_t value_bytes,
                                   std::size_t links) {
  static_assert(sizeof(SharedEvent) <= value_offset);
  static_assert(value_offset % __STDCPP_DEFAULT_NEW_ALIGNMENT__ == 0);
  const std::size_t links_offset =
      (value_offset + value_bytes + alignof(Link) - 1) / alignof(Link) * alignof(Link);
  auto* const memory =
      static_cast<std::byte*>(BlockPool::allocate(links_offset + links * sizeof(Link)));
  auto* const shared = ::new (memory) SharedEvent(type);
  if (links != 0) {
    shared->links_ = ::new (memory + links_offset) Link{nullptr, shared};
    for (std::size_t each = 1; each < links; ++each) {
      ::new (memory + links_offset + each * sizeof(Link)) Link{nullptr, shared};
    }
  }
  return shared;
}

void SharedEvent::unref() noexcept {
  // acq_rel: the last core has seen that all other cores have finished with the value.
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (type_.destroy != nullptr) type_.destroy(value());
  std::destroy_at(this);
  BlockPool::release(this);
}

}  // namespace weir::detail

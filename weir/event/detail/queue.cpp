#include "weir/event/detail/queue.hpp"

#include <new>

#include "weir/base/detail/block_pool.hpp"

namespace weir::detail {

EventQueue::~EventQueue() {
  give_back();
}

void EventQueue::give_back() noexcept {
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

}  // namespace weir::detail

// A pointer that destroys its value on the core that owns it, wherever the pointer is dropped.
#pragma once

#include <cassert>
#include <new>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/detail/destroy_queue.hpp"
#include "weir/loop/loop.hpp"

namespace weir {

/// A ForeignPtr owns a T like a std::unique_ptr, but the T is destroyed on its owner core. If the
/// pointer is dropped on another thread, the T is sent to the inbox of the owner loop. Its
/// destructor runs there, and its memory returns to that core's pool. A handle to an object of
/// one core (a connection, a cache entry) may thus pass between cores and be dropped anywhere.
/// Objects that return together cost at most one wake-up, and none if the loop is awake. If the
/// owner loop has ended, a T is destroyed on the thread that drops it. Objects on their way to
/// the loop at that time are destroyed with the loop.
///
/// A ForeignPtr orders only the destruction: the caller must ensure that the owner core does not
/// change a T while another core reads it.
/// Threads: one at a time; make_foreign() may be called on any thread.
/// Lifetime: any, also longer than the loop's.
template <class T>
class [[nodiscard]] ForeignPtr {
 public:
  ForeignPtr() noexcept = default;
  ForeignPtr(ForeignPtr&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  ForeignPtr& operator=(ForeignPtr&& other) noexcept {
    ForeignPtr old(std::move(other));
    std::swap(node_, old.node_);
    return *this;
  }
  ~ForeignPtr() { reset(); }

  explicit operator bool() const noexcept { return node_ != nullptr; }
  T* get() const noexcept { return node_ == nullptr ? nullptr : &node_->value; }
  T& operator*() const noexcept {
    assert(node_ != nullptr);
    return node_->value;
  }
  T* operator->() const noexcept { return &**this; }

  /// Drops the T; the pointer is empty afterwards.
  void reset() noexcept {
    if (node_ != nullptr) std::exchange(node_, nullptr)->destroy_on_owner();
  }

 private:
  template <class U, class... Args>
  friend ForeignPtr<U> make_foreign(Loop& owner, Args&&... args);

  struct Node : loop::DestroyQueue::Destroyable {
    template <class... Args>
    explicit Node(loop::DestroyQueue& owner, Args&&... args)
        : Destroyable(owner, &destroy), value(std::forward<Args>(args)...) {}
    static void destroy(Destroyable& self) noexcept {
      Node* const node = static_cast<Node*>(&self);
      node->~Node();
      BlockPool::release(node);
    }
    T value;
  };
  explicit ForeignPtr(Node* node) noexcept : node_(node) {}

  Node* node_ = nullptr;
};

/// Creates a T(args...) that `owner` owns. Call it on the owner core: the memory comes from the
/// pool of the calling core.
/// Threads: any, while the loop lives.
template <class T, class... Args>
ForeignPtr<T> make_foreign(Loop& owner, Args&&... args) {
  using Node = typename ForeignPtr<T>::Node;
  static_assert(alignof(Node) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  void* const memory = BlockPool::allocate(sizeof(Node));
  try {
    return ForeignPtr<T>(::new (memory) Node(owner.destroy_queue(), std::forward<Args>(args)...));
  } catch (...) {
    BlockPool::release(memory);
    throw;
  }
}

}  // namespace weir

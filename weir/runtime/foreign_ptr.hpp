// A value that is destroyed on the core that it belongs to, wherever it is let go.
#pragma once

#include <cassert>
#include <new>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/loop/homecoming.hpp"
#include "weir/loop/loop.hpp"

namespace weir {

/// Owns a T like a std::unique_ptr, but when the owner lets it go on a thread other than that of
/// its home loop, the T goes home by that loop's inbox; there its destructor runs and its memory
/// returns to the core's pool. So a handle to what belongs to one core (a connection, a cache's
/// entry) may be passed round among cores and dropped anywhere. Many that come home together cost
/// one wake-up at most, none if the loop is awake. When the home loop has ended, a T is destroyed
/// where it is let go; what is on its way then is destroyed with the loop.
///
/// It orders nothing but the end: who looks into the T on another core must know that nobody at
/// home changes it.
/// Threads: one at a time; make_homed() any. Lifetime: any, also longer than the loop's.
template <class T>
class [[nodiscard]] Homed {
 public:
  Homed() noexcept = default;
  Homed(Homed&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Homed& operator=(Homed&& other) noexcept {
    Homed old(std::move(other));
    std::swap(node_, old.node_);
    return *this;
  }
  ~Homed() { reset(); }

  explicit operator bool() const noexcept { return node_ != nullptr; }
  T* get() const noexcept { return node_ == nullptr ? nullptr : &node_->value; }
  T& operator*() const noexcept {
    assert(node_ != nullptr);
    return node_->value;
  }
  T* operator->() const noexcept { return &**this; }

  /// Lets it go; this is empty then.
  void reset() noexcept {
    if (node_ != nullptr) std::exchange(node_, nullptr)->let_go();
  }

 private:
  template <class U, class... Args>
  friend Homed<U> make_homed(Loop& home, Args&&... args);

  struct Node : Homecoming::Guest {
    template <class... Args>
    explicit Node(Homecoming& home, Args&&... args)
        : Guest(home, &destroy), value(std::forward<Args>(args)...) {}
    static void destroy(Guest& self) noexcept {
      Node* const node = static_cast<Node*>(&self);
      node->~Node();
      BlockPool::release(node);
    }
    T value;
  };
  explicit Homed(Node* node) noexcept : node_(node) {}

  Node* node_ = nullptr;
};

/// A T(args...) that belongs to `home`. Its memory is that of the core that makes it: make it at
/// home. Any thread, while the loop lives.
template <class T, class... Args>
Homed<T> make_homed(Loop& home, Args&&... args) {
  using Node = typename Homed<T>::Node;
  static_assert(alignof(Node) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  void* const memory = BlockPool::allocate(sizeof(Node));
  try {
    return Homed<T>(::new (memory) Node(home.homecoming(), std::forward<Args>(args)...));
  } catch (...) {
    BlockPool::release(memory);
    throw;
  }
}

}  // namespace weir

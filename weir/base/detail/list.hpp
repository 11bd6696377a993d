// Intrusive doubly linked lists, which link objects in place without an allocation.
#pragma once

#include <cassert>
#include <cstddef>

namespace weir::detail {

/// A ListNode is the base of an element in at most one List. It unlinks itself when destroyed. It
/// cannot be copied or moved.
/// Threads: those of the list that contains the node.
class ListNode {
 public:
  ListNode() noexcept = default;
  ListNode(const ListNode&) = delete;
  ListNode& operator=(const ListNode&) = delete;
  ~ListNode() { unlink(); }

  bool linked() const noexcept { return next_ != nullptr; }

  void unlink() noexcept {
    if (next_ == nullptr) return;
    next_->previous_ = previous_;
    previous_->next_ = next_;
    next_ = previous_ = nullptr;
  }

 private:
  template <class T>
  friend class List;
  ListNode* next_ = nullptr;
  ListNode* previous_ = nullptr;
};

/// A List links objects that derive from ListNode and does not own them. All operations are O(1),
/// except for size(), clear() and the destructor, which are O(n). An element may be unlinked at any
/// time, also while a caller empties the list with pop_front().
/// Threads: one at a time.
template <class T>
class List {
 public:
  List() noexcept { head_.next_ = head_.previous_ = &head_; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    clear();
    head_.next_ = head_.previous_ = nullptr;
  }

  bool empty() const noexcept { return head_.next_ == &head_; }

  void push_back(T& element) noexcept { insert_before(head_, element); }
  void push_front(T& element) noexcept { insert_before(*head_.next_, element); }
  /// Links `element` after `position`, an element of this list.
  void insert_after(T& position, T& element) noexcept {
    insert_before(*static_cast<ListNode&>(position).next_, element);
  }

  T* front() const noexcept { return empty() ? nullptr : static_cast<T*>(head_.next_); }

  T* pop_front() noexcept {
    T* element = front();
    if (element != nullptr) static_cast<ListNode*>(element)->unlink();
    return element;
  }

  /// Returns the element after `element`, or nullptr at the end.
  T* next(const T& element) const noexcept {
    ListNode* node = static_cast<const ListNode&>(element).next_;
    return node == &head_ ? nullptr : static_cast<T*>(node);
  }

  /// Moves all elements of `other` to the end of this list.
  void splice_back(List& other) noexcept {
    if (other.empty()) return;
    ListNode* first = other.head_.next_;
    ListNode* last = other.head_.previous_;
    first->previous_ = head_.previous_;
    head_.previous_->next_ = first;
    last->next_ = &head_;
    head_.previous_ = last;
    other.head_.next_ = other.head_.previous_ = &other.head_;
  }

  void clear() noexcept {
    while (pop_front() != nullptr) {
    }
  }

  std::size_t size() const noexcept {
    std::size_t count = 0;
    for (T* each = front(); each != nullptr; each = next(*each)) ++count;
    return count;
  }

 private:
  static void insert_before(ListNode& position, T& element) noexcept {
    ListNode& node = element;
    assert(!node.linked());
    node.next_ = &position;
    node.previous_ = position.previous_;
    position.previous_->next_ = &node;
    position.previous_ = &node;
  }

  ListNode head_;
};

}  // namespace weir::detail

// The room in a channel: a ring of a fixed number of places.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <utility>

namespace weir::detail {

/// First in, first out, at most `capacity` elements; memory is taken once, by the constructor.
/// Threads: one at a time.
template <class T>
class ChannelRing {
 public:
  explicit ChannelRing(std::size_t capacity)
      : places_(capacity == 0 ? nullptr : std::allocator<T>().allocate(capacity)),
        capacity_(capacity) {}
  ChannelRing(const ChannelRing&) = delete;
  ChannelRing& operator=(const ChannelRing&) = delete;
  ~ChannelRing() {
    while (!empty()) std::destroy_at(places_ + take_first());
    if (places_ != nullptr) std::allocator<T>().deallocate(places_, capacity_);
  }

  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == capacity_; }

  void push(T&& element) noexcept {
    assert(!full());
    std::construct_at(places_ + next_, std::move(element));
    next_ = behind(next_);
    ++size_;
  }
  T pop() noexcept {
    assert(!empty());
    T& place = places_[take_first()];
    T element(std::move(place));
    std::destroy_at(&place);
    return element;
  }

 private:
  std::size_t behind(std::size_t index) const noexcept {
    return index + 1 == capacity_ ? 0 : index + 1;
  }
  std::size_t take_first() noexcept {
    --size_;
    return std::exchange(first_, behind(first_));
  }

  T* places_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::size_t first_ = 0;
  std::size_t next_ = 0;
};

}  // namespace weir::detail

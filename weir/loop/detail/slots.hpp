// Objects that higher floors keep in a loop or in a group of loops.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace weir::loop {

/// Slots holds at most one object of each type. The floor that uses an object declares its type.
/// The loop and its group store the objects without knowing their types.
///
/// The first small objects, such as counters, are stored in the Slots itself and need no other
/// memory. Which ones these are depends on the program, so code that must not throw does not make
/// an object: it keeps a reference, or calls find().
/// Threads: any.
/// Lifetime: the objects live as long as the Slots. The object whose first get() began last is
/// destroyed first, so a constructor must not keep a reference to the object of another slot.
class Slots {
 public:
  Slots() noexcept = default;
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots() {
    // relaxed: no other thread uses the slots any more.
    Slot* slot = newest_.load(std::memory_order_relaxed);
    while (slot != nullptr) {
      Slot* const older = slot->older;
      slot->in_room ? slot->~Slot() : delete slot;
      slot = older;
    }
  }

  /// Returns the object of type T. The first call makes it from `arguments`. If its constructor
  /// throws, the next call makes it.
  /// Errors: throws std::bad_alloc, and what the constructor throws.
  template <class T, class... Arguments>
  T& get(Arguments&&... arguments) {
    if (T* const known = find<T>()) return *known;
    SlotOf<T>& slot = slot_of<T>();
    // A mutex of its own, because the constructor may use other slots. It is no std::once_flag,
    // which the thread sanitizer does not support when the constructor throws.
    const std::lock_guard lock(slot.mutex);
    if (!slot.object) {
      T& made = slot.object.emplace(std::forward<Arguments>(arguments)...);
      // release pairs with find(): a reader of the pointer sees the finished object.
      slot.made.store(&made, std::memory_order_release);
    }
    return *slot.object;
  }

  /// Returns the object of type T, or nullptr if no call of get() has made it yet.
  template <class T>
  T* find() const noexcept {
    const Slot* const slot = find_slot(&type_key<T>);
    return slot == nullptr ? nullptr : static_cast<T*>(slot->made.load(std::memory_order_acquire));
  }

 private:
  struct Slot {
    explicit Slot(const void* type) noexcept : key(type) {}
    virtual ~Slot() = default;
    const void* const key;
    Slot* older = nullptr;
    std::atomic<void*> made{nullptr};
    std::mutex mutex;  // guards the object while it is made
    bool in_room = false;
  };
  template <class T>
  struct SlotOf final : Slot {
    SlotOf() noexcept : Slot(&type_key<T>) {}
    std::optional<T> object;
  };
  // The address identifies the type. The object is not const, so that no linker merges two.
  template <class T>
  static inline char type_key = 0;

  const Slot* find_slot(const void* type) const noexcept {
    // acquire pairs with slot_of().
    const Slot* slot = newest_.load(std::memory_order_acquire);
    while (slot != nullptr && slot->key != type) slot = slot->older;
    return slot;
  }

  /// Returns the slot for type T, which may be empty.
  template <class T>
  SlotOf<T>& slot_of() {
    const std::lock_guard lock(mutex_);
    // relaxed: this mutex guards all writes.
    for (Slot* slot = newest_.load(std::memory_order_relaxed); slot != nullptr; slot = slot->older)
      if (slot->key == &type_key<T>) return static_cast<SlotOf<T>&>(*slot);
    SlotOf<T>* const slot = allocate<T>();
    slot->older = newest_.load(std::memory_order_relaxed);
    newest_.store(slot, std::memory_order_release);
    return *slot;
  }

  template <class T>
  SlotOf<T>* allocate() {
    if constexpr (alignof(SlotOf<T>) <= alignof(std::max_align_t)) {
      void* place = room_.data() + room_used_;
      std::size_t left = room_.size() - room_used_;
      if (std::align(alignof(SlotOf<T>), sizeof(SlotOf<T>), place, left) != nullptr) {
        room_used_ = room_.size() - left + sizeof(SlotOf<T>);
        auto* const slot = new (place) SlotOf<T>;
        slot->in_room = true;
        return slot;
      }
    }
    return new SlotOf<T>;
  }

  std::atomic<Slot*> newest_{nullptr};
  std::mutex mutex_;  // guards the members below and all changes of the list
  std::size_t room_used_ = 0;
  alignas(std::max_align_t) std::array<std::byte, 384> room_;
};

}  // namespace weir::loop

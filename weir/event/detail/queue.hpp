// EventQueue is a FIFO queue of records of different lengths, in chunks of its core's memory.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "weir/base/time.hpp"
#include "weir/event/event.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"

namespace weir::detail {

// An event whose value is stored outside of the queues, because it is large, other cores get it, or
// a sampled span has published it.

/// The span that published an event, and the time.
struct PublishingSpan {
  ActiveSpan span;
  Instant published_at;
};

/// A SharedEvent is one block of memory with this object, the value, and a link for each core that
/// receives it. The value does not change after the event is sent. The last core that releases the
/// event destroys it, and the memory returns to the core that made it.
/// Threads: any, except for allocate(), which only the maker calls.
class SharedEvent {
 public:
  /// A node in the list of events that have arrived on one core.
  struct Link {
    Link* next;
    SharedEvent* shared;
  };
  struct Unref {
    void operator()(SharedEvent* shared) const noexcept { shared->unref(); }
  };
  using Ptr = std::unique_ptr<SharedEvent, Unref>;

  /// Makes a SharedEvent of `value` with links for `links` cores and one reference.
  /// Errors: throws std::bad_alloc.
  template <EventValue T>
  static Ptr make(T&& value, std::size_t links, const EventOptions& options) {
    SharedEvent* const shared = allocate(event_type<T>, sizeof(T), links);
    shared->options_ = options;
    std::construct_at(static_cast<T*>(shared->value()), std::move(value));
    return Ptr(shared);
  }

  const EventType& type() const noexcept { return type_; }
  const EventOptions& options() const noexcept { return options_; }
  /// Returns the sampled span that published the event; nullptr if there is none.
  const PublishingSpan* span() const noexcept { return span_.get(); }
  /// Sets the span, before the event is sent.
  void set_span(std::unique_ptr<const PublishingSpan> span) noexcept { span_ = std::move(span); }
  void* value() noexcept { return reinterpret_cast<std::byte*>(this) + value_offset; }
  /// Returns the link for the receiver with this index; each link is used once.
  Link& link(std::size_t index) noexcept { return links_[index]; }

  /// Adds `more` references; called before the event is sent.
  void add_refs(std::uint32_t more) noexcept {
    // relaxed: no other core has the event yet.
    refs_.fetch_add(more, std::memory_order_relaxed);
  }
  /// Releases one reference.
  void unref() noexcept;

 private:
  static constexpr std::size_t value_offset = 48;

  explicit SharedEvent(const EventType& type) noexcept : type_(type) {}
  static SharedEvent* allocate(const EventType& type, std::size_t value_bytes, std::size_t links);

  const EventType& type_;
  Link* links_ = nullptr;
  EventOptions options_;
  std::unique_ptr<const PublishingSpan> span_;
  std::atomic<std::uint32_t> refs_{1};
};

/// An EventQueue stores records one after the other, so a queue of small events is read like an
/// array. Each record starts at a multiple of 8 bytes and does not move. The queue allocates no
/// memory while its records fit in one chunk. Further chunks are allocated one at a time from the
/// core's BlockPool and returned there. The last chunk is kept until release_memory().
/// Threads: one at a time.
/// Lifetime: emptied before it is destroyed (asserted).
class EventQueue {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t{16} * 1024;
  static constexpr std::size_t record_bytes_max = 256;

  EventQueue() noexcept = default;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  ~EventQueue();

  bool empty() const noexcept { return read_ == write_; }
  /// Releases the kept chunk; the queue is empty.
  void release_memory() noexcept;

  /// Ensures that the next add() of `bytes` cannot fail.
  /// Errors: throws std::bad_alloc.
  void make_room(std::size_t bytes) {
    assert(bytes % 8 == 0 && bytes <= record_bytes_max);
    if (static_cast<std::size_t>(limit_ - write_) < bytes) [[unlikely]]
      grow();
  }
  /// Adds a last record of `bytes`, for which make_room() was called; the caller writes its
  /// content.
  std::byte* add(std::size_t bytes) noexcept {
    assert(static_cast<std::size_t>(limit_ - write_) >= bytes);
    return std::exchange(write_, write_ + bytes);
  }

  /// Returns the first record of a queue that is not empty.
  std::byte* front() const noexcept {
    assert(!empty());
    return read_;
  }
  /// Removes the first record; `bytes` is the size that add() was given.
  void pop(std::size_t bytes) noexcept {
    read_ += bytes;
    if (read_ == write_) {
      rewind();
    } else if (read_ == read_end_) {
      next_chunk();
    }
  }

 private:
  struct Chunk {
    Chunk* next;
    std::byte* end;  // of the written part, set when the next chunk is added
    std::byte* begin() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  };
  static_assert(sizeof(Chunk) % 8 == 0);

  void grow();
  void next_chunk() noexcept;
  // Restarts the only chunk of the empty queue.
  void rewind() noexcept { read_ = write_ = last_->begin(); }

  std::byte* write_ = nullptr;
  std::byte* limit_ = nullptr;  // of the last chunk
  std::byte* read_ = nullptr;
  std::byte* read_end_ = nullptr;  // of the first chunk, set if there is a next one
  Chunk* first_ = nullptr;
  Chunk* last_ = nullptr;
};

}  // namespace weir::detail

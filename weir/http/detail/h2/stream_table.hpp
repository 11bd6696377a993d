// The streams of one HTTP/2 connection: the open ones, their number, and the last closed ones.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "weir/http/detail/h2/frame.hpp"
#include "weir/http/detail/h2/limits.hpp"
#include "weir/http/detail/h2/send_scheduler.hpp"
#include "weir/http/detail/h2/stream.hpp"

namespace weir::http {

/// A StreamTable finds the open streams of a connection by identifier. It counts the open streams
/// and those that the carrier holds, and remembers how the last ones were closed. Late frames on a
/// closed stream are no errors then. Only clients open streams, so all of them have odd identifiers
/// that grow. The open streams and their scheduler lie in a block of the core, which an idle
/// connection gives back.
/// Threads: those of the session.
/// Lifetime: each stream is released before it and the table are destroyed.
class StreamTable {
 public:
  /// The end of a stream.
  enum class Closed : std::uint8_t {
    unknown,  ///< never opened, or forgotten
    ended,
    reset_by_peer,
    reset_here,
  };

  StreamTable() noexcept = default;
  ~StreamTable();
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;

  // Identifiers.

  /// Returns the highest stream that was opened, or 0.
  std::uint32_t last() const noexcept { return last_; }
  /// Returns the identifier after the highest stream.
  std::uint32_t next_id() const noexcept { return (last_ + 1) | 1U; }
  /// Returns true if there are identifiers for further streams.
  bool has_next_id() const noexcept { return last_ < stream_id_max; }
  /// Counts a stream that the client has opened, accepted or not.
  void note_opened(std::uint32_t id) noexcept {
    assert(id > last_);
    last_ = id;
  }
  /// Returns true if the stream was never opened.
  bool is_idle(std::uint32_t id) const noexcept { return (id & 1U) == 0 || id > last_; }
  /// Ignores the streams that are opened from now on.
  void ignore_later() noexcept { ignored_above_ = last_; }
  bool is_ignored(std::uint32_t id) const noexcept { return id > ignored_above_; }
  /// Returns the highest stream that was opened and is not ignored.
  std::uint32_t last_served() const noexcept {
    return last_ < ignored_above_ ? last_ : ignored_above_;
  }

  // Numbers.

  /// Returns the number of streams that are not closed.
  std::uint32_t open_count() const noexcept { return open_; }
  /// Returns the number of accepted streams that were not released.
  std::uint32_t held_count() const noexcept { return held_; }
  /// Returns true if the limits allow a further stream.
  bool has_room(const H2Limits& limits) const noexcept {
    return open_ < limits.streams_max && held_ < streams_held_max(limits);
  }

  // Streams that are not closed.

  /// Ensures that there is memory for open streams.
  /// Errors: throws std::bad_alloc; nothing changes then.
  void reserve(const H2Limits& limits) {
    if (block_ == nullptr) allocate(limits);
  }
  /// Adds the stream `last()`, which the carrier holds from now on; reserve() was called.
  void insert(H2Stream& stream, const StreamWindows& windows) noexcept {
    assert(block_ != nullptr && find(last_) == nullptr);
    stream.begin(last_, windows);
    stream.next_in_bucket_ = std::exchange(*bucket(last_), &stream);
    ++held_;
    ++open_;
  }
  /// Returns the stream, or nullptr if it is not open.
  H2Stream* find(std::uint32_t id) const noexcept {
    if (open_ == 0) return nullptr;
    H2Stream* stream = *bucket(id);
    while (stream != nullptr && stream->id_ != id) stream = stream->next_in_bucket_;
    return stream;
  }
  /// Calls `action(stream)` for each open stream until it returns false.
  /// Returns: false if a call returned false.
  template <class Action>
  bool for_each(const Action& action) const {
    for (H2Stream* each : buckets()) {
      for (; each != nullptr; each = each->next_in_bucket_) {
        if (!action(*each)) return false;
      }
    }
    return true;
  }
  /// Closes an open stream, removes it from the senders, and remembers its end.
  void close(H2Stream& stream, Closed how) noexcept {
    H2Stream** link = bucket(stream.id_);
    while (*link != &stream) link = &(*link)->next_in_bucket_;
    *link = stream.next_in_bucket_;
    --open_;
    stream.close(how != Closed::ended);
    SendScheduler::stop(stream);
    remember(stream.id_, how);
  }
  /// Ends the time in which the carrier holds a stream.
  void release(H2Stream& stream) noexcept {
    assert(stream.held_);
    stream.held_ = false;
    --held_;
  }
  /// Returns the order of the senders. There is one while a stream is open.
  SendScheduler& scheduler() noexcept {
    assert(block_ != nullptr);
    return block_->scheduler;
  }
  /// Returns the stream that sends next, or nullptr if no stream may send.
  H2Stream* next_sender() noexcept {
    return block_ == nullptr ? nullptr : block_->scheduler.next();
  }

  // Closed streams.

  /// Remembers the end of a stream that was never in the table, or has left it.
  void remember(std::uint32_t id, Closed how) noexcept {
    std::copy_backward(closed_.begin(), closed_.end() - 1, closed_.end());
    closed_.front() = {id, how};
  }
  /// Returns the end of a stream. An ignored stream counts as reset here.
  Closed how_closed(std::uint32_t id) const noexcept;
  /// Returns true if the end of a stream may have been forgotten.
  bool has_forgotten() const noexcept { return closed_.back().how() != Closed::unknown; }

  // Memory.

  /// Returns the size of the block for open streams.
  static std::size_t block_bytes(const H2Limits& limits) noexcept;
  /// Frees the block if no stream is open.
  void drop_idle_memory() noexcept {
    if (open_ == 0) release_block();
  }

 private:
  // The end of a stream in 32 bits.
  class ClosedStream {
   public:
    ClosedStream() noexcept = default;
    ClosedStream(std::uint32_t id, Closed how) noexcept
        : bits_((id >> 1) << 2 | static_cast<std::uint32_t>(how)) {}
    bool has_id(std::uint32_t id) const noexcept { return bits_ >> 2 == id >> 1; }
    /// Returns Closed::unknown if there is no stream.
    Closed how() const noexcept { return static_cast<Closed>(bits_ & 3U); }

   private:
    std::uint32_t bits_ = 0;  // the identifier without its lowest bit, and a Closed of 2 bits
  };
  // What only a connection with open streams needs. The buckets of the streams follow it.
  struct Block {
    H2Stream** buckets() noexcept { return reinterpret_cast<H2Stream**>(this + 1); }
    SendScheduler scheduler;
    std::uint32_t bucket_count = 0;
  };
  static constexpr std::size_t remembered_count = 12;

  H2Stream** bucket(std::uint32_t id) const noexcept {
    return block_->buckets() + ((id >> 1) & (block_->bucket_count - 1));
  }
  std::span<H2Stream* const> buckets() const noexcept {
    if (block_ == nullptr) return {};
    return {block_->buckets(), block_->bucket_count};
  }
  void allocate(const H2Limits& limits);
  void release_block() noexcept;

  Block* block_ = nullptr;
  std::uint32_t last_ = 0;
  std::uint32_t ignored_above_ = stream_id_max;
  std::uint32_t open_ = 0;
  std::uint32_t held_ = 0;
  std::array<ClosedStream, remembered_count> closed_{};  // the last one first
};

}  // namespace weir::http

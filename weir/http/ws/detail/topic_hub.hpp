// The subscribers of a topic on one core, and the messages on their way to them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/detail/counter.hpp"
#include "weir/base/detail/list.hpp"
#include "weir/http/ws/detail/deflate.hpp"
#include "weir/http/ws/topic.hpp"
#include "weir/loop/detail/cross_core_queue.hpp"
#include "weir/loop/detail/destroy_queue.hpp"
#include "weir/loop/loop.hpp"

namespace weir::http {

class TopicHub;
class TopicPublication;

/// The wait of a publisher until all cores have given its message to their subscribers.
struct TopicReceipt;

/// The bytes of a published message, as a server sends them. All cores share them. It has one
/// TopicDelivery for each core that gets it.
/// Threads: any.
class TopicFrame {
 public:
  static TopicFrame* make(bool is_text, Bytes message, bool compressed = false);
  Bytes bytes() const noexcept { return bytes_; }
  bool is_text() const noexcept { return is_text_; }
  Bytes message() const noexcept { return bytes_.subspan(header_size_); }
  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

 private:
  TopicFrame() noexcept = default;
  void destroy() noexcept;
  std::atomic<std::uint32_t> references_{1};
  std::uint8_t header_size_ = 0;
  bool is_text_ = false;
  Bytes bytes_;
};

/// A counted reference to a frame.
class TopicFrameRef {
 public:
  TopicFrameRef() noexcept = default;
  /// Takes over one reference.
  explicit TopicFrameRef(TopicFrame* frame) noexcept : frame_(frame) {}
  TopicFrameRef(const TopicFrameRef& other) noexcept : frame_(other.frame_) {
    if (frame_ != nullptr) frame_->add_reference();
  }
  TopicFrameRef(TopicFrameRef&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  TopicFrameRef& operator=(TopicFrameRef other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~TopicFrameRef() {
    if (frame_ != nullptr) frame_->release();
  }
  Bytes bytes() const noexcept { return frame_->bytes(); }
  const TopicFrame& operator*() const noexcept { return *frame_; }

 private:
  TopicFrame* frame_ = nullptr;
};

/// A message on its way to the subscribers of one core.
struct TopicDelivery {
  TopicFrameRef frame;
  std::shared_ptr<TopicReceipt> receipt;
  TopicDelivery* next = nullptr;
};

/// One subscriber. Messages that its connection cannot take immediately wait in a queue.
/// Threads: those of its hub.
class TopicMember : public weir::detail::ListNode {
 public:
  /// Messages that a connection gets at one time.
  static constexpr std::size_t messages_max = 5;

  /// The place of a member in the list of its connection, while messages wait.
  struct Place : weir::detail::ListNode {
    explicit Place(TopicMember& of) noexcept : member(of) {}
    TopicMember& member;
  };

  TopicMember(TopicHub& hub, WsConnection& connection) noexcept;
  ~TopicMember();

  WsConnection& connection() noexcept { return connection_; }
  Place& place() noexcept { return place_; }
  bool empty() const noexcept { return count_ == 0; }
  bool full() const noexcept;
  /// Returns true if publishers wait for this subscriber.
  bool blocks() const noexcept;
  /// Adds a message to the queue, or lets the topic react if the queue is full.
  void add(const TopicFrameRef& frame);
  /// Removes the oldest message.
  TopicFrameRef take() noexcept;
  /// Drops all messages that wait.
  void clear() noexcept;

 private:
  friend TopicHub;
  TopicHub& hub_;
  WsConnection& connection_;
  Place place_{*this};
  std::unique_ptr<TopicFrameRef[]> ring_;  // exists while messages wait
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

/// The subscribers of one topic on one core.
/// Threads: its loop's, except for push() and destroy_on_owner().
/// Lifetime: destroy_on_owner() ends the use of the topic. The hub is then destroyed on its loop,
/// as soon as that does not call it any more.
class TopicHub final : loop::Runnable, public loop::DestroyQueue::Destroyable {
 public:
  TopicHub(TopicState& topic, Loop& loop) noexcept;

  Loop& loop() const noexcept { return loop_; }
  TopicState& topic() const noexcept { return topic_; }
  /// Passes a message to the hub. Returns false if it has no subscribers.
  /// Threads: any.
  bool push(TopicDelivery& delivery) noexcept {
    // relaxed: only the number passes between cores.
    on_way_.fetch_add(1, std::memory_order_relaxed);
    const bool pushed = arrived_.push(delivery, loop_);
    if (!pushed) on_way_.fetch_sub(1, std::memory_order_relaxed);
    return pushed;
  }
  /// Returns the number of messages that were passed to the hub, and that no pass has taken.
  /// Threads: any.
  std::size_t on_way() const noexcept { return on_way_.load(std::memory_order_relaxed); }
  void add(TopicMember& member) noexcept;
  void remove(TopicMember& member) noexcept;
  void on_full() noexcept { ++full_; }
  void on_room() noexcept;

 private:
  friend TopicMember;
  ~TopicHub() = default;
  static void destroy(Destroyable& self) noexcept;
  void end_if_idle() noexcept;
  static void receive(void* self, Loop& loop);
  void schedule() noexcept;
  void run();
  void begin_pass();
  void end_pass() noexcept;
  std::span<const TopicFrameRef> messages_for(const WsConnection& connection) noexcept;
  void compress_pass();
  BlockPtr<TopicDelivery> pop() noexcept;

  using Queue = loop::CrossCoreQueue<TopicDelivery, &TopicDelivery::next>;
  TopicState& topic_;
  Loop& loop_;
  Queue arrived_{&receive, this};
  std::atomic<std::size_t> on_way_{0};
  weir::detail::List<TopicMember> waiting_;  // for the messages of the pass
  weir::detail::List<TopicMember> served_;
  using Messages = std::array<TopicFrameRef, TopicMember::messages_max>;
  Messages pass_;
  Messages compressed_;              // those of the pass, if has_compressed_
  WsSharedCompression compression_;  // of the last pass with compressed messages
  std::size_t pass_size_ = 0;
  std::size_t members_ = 0;
  std::size_t full_ = 0;  // members whose queue is full
  bool has_compressed_ = false;
  bool scheduled_ = false;
  bool ends_ = false;  // the topic is gone
};

}  // namespace weir::http

// Topics: messages that are published to the WebSockets of all cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/http/ws/websocket.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class TopicMember;
class TopicState;

/// The reaction of a topic to a subscriber that has TopicOptions::capacity messages to receive.
enum class SlowSubscriber : std::uint8_t {
  drop_oldest,  ///< the subscriber loses the oldest message that waits for it
  drop_newest,  ///< the subscriber loses the new message
  close,        ///< the subscriber gets a Close with 1013 (try again later)
  wait,         ///< publish() waits until all subscribers have room
};

struct TopicOptions {
  std::size_t capacity = 64;  ///< messages that may wait for one subscriber
  /// Messages that may be on their way to the subscribers of one core.
  std::size_t on_way_max = 4096;
};

/// The use of a topic, for memory_bound().
struct TopicUse {
  std::size_t message_bytes_max = 0;  ///< bytes of the longest message that is published
  std::size_t subscribers = 0;        ///< subscribers on all cores
  unsigned cores = 1;                 ///< cores with subscribers
};

/// Returns an upper bound, in bytes, of the memory of a topic. Subscribers that read nothing reach
/// it. It is in addition to the bound of the server, which includes the WebSockets.
/// TopicOptions::capacity and on_way_max are the values to lower. A bound that does not fit is the
/// largest number.
std::uint64_t memory_bound(const TopicOptions& options, const TopicUse& use) noexcept;

/// The sums of a topic since it was made.
struct TopicStatistics {
  std::uint64_t published = 0;
  std::uint64_t delivered = 0;  ///< messages that subscribers' connections have accepted
  std::uint64_t dropped = 0;    ///< messages that slow subscribers have lost
  std::uint64_t closed = 0;     ///< slow subscribers that got a Close
};

/// A subscription of a WebSocket to a topic, which ends when this object is destroyed.
/// Threads: those of the WebSocket.
/// Lifetime: the WebSocket and the topic outlive it.
class TopicSubscription {
 public:
  TopicSubscription(TopicSubscription&& other) noexcept;
  TopicSubscription& operator=(TopicSubscription&& other) noexcept;
  ~TopicSubscription();

 private:
  friend class AnyTopic;
  explicit TopicSubscription(BlockPtr<TopicMember> member) noexcept;
  BlockPtr<TopicMember> member_;
};

/// The part of a Topic that does not depend on the reaction to slow subscribers.
class AnyTopic {
 public:
  AnyTopic(const AnyTopic&) = delete;
  AnyTopic& operator=(const AnyTopic&) = delete;

  /// Subscribes a WebSocket of a server. It gets the messages that are published later, between
  /// those that its handler sends. Messages of one publisher arrive in their order.
  /// Threads: those of the WebSocket.
  [[nodiscard]] TopicSubscription subscribe(WebSocket& socket);
  /// Returns the number of subscribers on all cores.
  /// Threads: any.
  std::size_t subscribers() const noexcept;
  /// Threads: any.
  TopicStatistics statistics() const noexcept;

 protected:
  AnyTopic(SlowSubscriber reaction, const TopicOptions& options);
  ~AnyTopic();
  Result<> publish_now(bool is_text, Bytes message);
  Task<Result<>> publish_and_wait(bool is_text, Bytes message);

 private:
  std::unique_ptr<TopicState> state_;
};

/// A Topic sends each published message to all of its subscribers on all cores. A message is
/// encoded once, and all connections send the same bytes. Each connection sends the messages of one
/// turn of its loop with one write. What a subscriber gets that reads too slowly is a part of the
/// type: `http::Topic<http::SlowSubscriber::drop_oldest> prices;`.
///
/// A message of at most 64 KiB is compressed once for the connections of a core that compress
/// without a window and in the same way (RFC 7692). The other connections get it as it is.
/// Threads: any for publish(); subscribers may be on any core.
/// Lifetime: outlives every subscription (asserted) and every call of publish().
template <SlowSubscriber reaction>
class Topic : public AnyTopic {
 public:
  explicit Topic(const TopicOptions& options = {}) : AnyTopic(reaction, options) {}

  /// Publishes a text or binary data. It never waits.
  /// Errors: Errc::bad_input for a text that is not UTF-8; Errc::limit_reached if
  /// TopicOptions::on_way_max messages are on their way to a core. No core gets this one then.
  /// Throws std::bad_alloc.
  Result<> publish(std::string_view text)
    requires(reaction != SlowSubscriber::wait)
  {
    return publish_now(true, to_bytes(text));
  }
  Result<> publish(Bytes binary)
    requires(reaction != SlowSubscriber::wait)
  {
    return publish_now(false, binary);
  }
  /// Publishes a text or binary data. It waits until all subscribers have room for the message.
  /// Errors: Errc::bad_input for a text that is not UTF-8; Errc::limit_reached as above;
  /// Errc::cancelled.
  /// Cancel: the message is published nevertheless.
  /// Threads: one loop's.
  Task<Result<>> publish(std::string_view text)
    requires(reaction == SlowSubscriber::wait)
  {
    return publish_and_wait(true, to_bytes(text));
  }
  Task<Result<>> publish(Bytes binary)
    requires(reaction == SlowSubscriber::wait)
  {
    return publish_and_wait(false, binary);
  }
};

}  // namespace weir::http

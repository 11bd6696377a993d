// Topics: frames that cores share, and the members of each core.
#include "weir/http/ws/topic.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
#include <tuple>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/base/text/detail/utf8.hpp"
#include "weir/http/ws/detail/connection.hpp"
#include "weir/http/ws/detail/topic_hub.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::http {
namespace {

// Members that get their messages in a row, before other tasks of the loop run.
constexpr unsigned members_in_a_row = 64;

bool is_utf8(Bytes text) noexcept {
  Utf8Checker checker;
  return checker.check(to_text(text)) == text.size() && checker.complete();
}

}  // namespace

// Frames.

TopicFrame* TopicFrame::make(bool is_text, Bytes message, bool compressed) {
  void* const block = BlockPool::allocate(sizeof(TopicFrame) + ws_header_size_max + message.size());
  auto* const frame = new (block) TopicFrame();
  char* const start = static_cast<char*>(block) + sizeof(TopicFrame);
  const WsFrameHeader header{.opcode = is_text ? WsOpcode::text : WsOpcode::binary,
                             .length = message.size(),
                             .mask = std::nullopt,
                             .compressed = compressed};
  char* const end = write_ws_header(header, start);
  if (!message.empty()) std::memcpy(end, message.data(), message.size());
  frame->is_text_ = is_text;
  frame->header_size_ = static_cast<std::uint8_t>(end - start);
  frame->bytes_ = to_bytes({start, static_cast<std::size_t>(end - start) + message.size()});
  return frame;
}

void TopicFrame::destroy() noexcept {
  this->~TopicFrame();
  BlockPool::release(this);
}

struct TopicReceipt final : loop::Runnable {
  explicit TopicReceipt(Loop& of) noexcept
      : loop::Runnable([](loop::Runnable& runnable) {
          auto& self = static_cast<TopicReceipt&>(runnable);
          const auto kept = std::move(self.self);
          self.all.set();
        }),
        publisher(of) {}

  /// Records that a core has given the message to its subscribers. The last core wakes the
  /// publisher. Threads: any.
  static void sign(std::shared_ptr<TopicReceipt> receipt) {
    if (receipt->left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    TopicReceipt& last = *receipt;
    last.self = std::move(receipt);
    last.publisher.post(last);
  }

  Loop& publisher;
  std::atomic<std::size_t> left{1};
  ManualResetEvent all;
  std::shared_ptr<TopicReceipt> self;  // from the post to its end
};

// The state of a topic.

struct HubDeleter {
  void operator()(TopicHub* hub) const noexcept { hub->destroy_on_owner(); }
};

class TopicState {
 public:
  TopicState(SlowSubscriber reaction, const TopicOptions& options) noexcept
      : reaction_(reaction),
        capacity_(std::max<std::size_t>(options.capacity, 1)),
        on_way_max_(std::max<std::size_t>(options.on_way_max, 1)) {}
  ~TopicState() { assert(members.load() == 0 && "the topic has subscribers"); }

  SlowSubscriber reaction() const noexcept { return reaction_; }
  std::size_t capacity() const noexcept { return capacity_; }

  TopicHub& hub(Loop& loop) {
    const std::lock_guard lock(mutex_);
    for (const auto& each : hubs_) {
      if (&each->loop() == &loop) return *each;
    }
    hubs_.reserve(hubs_.size() + 1);
    return *hubs_.emplace_back(new TopicHub(*this, loop));
  }

  Result<> publish(bool is_text, Bytes message, const std::shared_ptr<TopicReceipt>& receipt) {
    const TopicFrameRef frame(TopicFrame::make(is_text, message));
    // The order of the messages is the same on all cores.
    const std::lock_guard lock(mutex_);
    for (const auto& each : hubs_) {
      if (each->on_way() >= on_way_max_) return fail(Errc::limit_reached);
    }
    published.fetch_add(1, std::memory_order_relaxed);
    for (const auto& each : hubs_) {
      auto delivery = make_block<TopicDelivery>(frame, receipt);
      if (receipt != nullptr) receipt->left.fetch_add(1, std::memory_order_relaxed);
      if (each->push(*delivery)) {
        static_cast<void>(delivery.release());
      } else if (receipt != nullptr) {
        receipt->left.fetch_sub(1, std::memory_order_relaxed);
      }
    }
    return {};
  }

  std::atomic<std::uint64_t> published{0};
  std::atomic<std::uint64_t> offered{
      0};  // messages to subscribers, those that are dropped included
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::uint64_t> closed{0};
  std::atomic<std::size_t> members{0};

 private:
  const SlowSubscriber reaction_;
  const std::size_t capacity_;
  const std::size_t on_way_max_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<TopicHub, HubDeleter>> hubs_;
};

// Members.

TopicMember::TopicMember(TopicHub& hub, WsConnection& connection) noexcept
    : hub_(hub), connection_(connection) {
  hub.add(*this);
}

TopicMember::~TopicMember() {
  clear();
  hub_.remove(*this);
}

bool TopicMember::full() const noexcept {
  return count_ >= hub_.topic().capacity();
}

bool TopicMember::blocks() const noexcept {
  return hub_.topic().reaction() == SlowSubscriber::wait && full();
}

void TopicMember::add(const TopicFrameRef& frame) {
  TopicState& topic = hub_.topic();
  if (full()) {
    switch (topic.reaction()) {
      case SlowSubscriber::drop_oldest:
        topic.dropped.fetch_add(1, std::memory_order_relaxed);
        std::ignore = take();
        break;
      case SlowSubscriber::wait:
      case SlowSubscriber::drop_newest:
        topic.dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      case SlowSubscriber::close:
        topic.closed.fetch_add(1, std::memory_order_relaxed);
        connection_.begin_close(WebSocketCloseCode::try_again_later, "too slow");
        connection_.limit_close();
        return clear();
    }
  }
  if (ring_ == nullptr) ring_ = std::make_unique<TopicFrameRef[]>(topic.capacity());
  ring_[(first_ + count_) % topic.capacity()] = frame;
  if (++count_ == topic.capacity()) hub_.on_full();
}

TopicFrameRef TopicMember::take() noexcept {
  const bool was_full = full();
  TopicFrameRef frame = std::exchange(ring_[first_], {});
  first_ = (first_ + 1) % hub_.topic().capacity();
  --count_;
  if (was_full) hub_.on_room();
  if (count_ == 0) ring_.reset();
  return frame;
}

void TopicMember::clear() noexcept {
  if (count_ != 0 && full()) hub_.on_room();
  ring_.reset();
  count_ = 0;
  place_.unlink();
}

TopicSubscription::TopicSubscription(BlockPtr<TopicMember> member) noexcept
    : member_(std::move(member)) {}
TopicSubscription::TopicSubscription(TopicSubscription&& other) noexcept = default;
TopicSubscription& TopicSubscription::operator=(TopicSubscription&& other) noexcept = default;
TopicSubscription::~TopicSubscription() = default;

// Hubs.

TopicHub::TopicHub(TopicState& topic, Loop& loop) noexcept
    : loop::Runnable([](loop::Runnable& self) { static_cast<TopicHub&>(self).run(); }),
      Destroyable(loop.destroy_queue(), &destroy),
      topic_(topic),
      loop_(loop) {
  arrived_.close();
}

/// Runs on the thread of the loop, or after its end.
void TopicHub::destroy(Destroyable& self) noexcept {
  auto& hub = static_cast<TopicHub&>(self);
  hub.ends_ = true;
  if (Loop::current() != &hub.loop_) hub.scheduled_ = false;  // the loop is gone
  hub.end_if_idle();
}

/// Destroys the hub if the topic is gone and the loop does not call it any more.
void TopicHub::end_if_idle() noexcept {
  while (const BlockPtr<TopicDelivery> delivery = pop()) {
    if (delivery->receipt != nullptr) TopicReceipt::sign(delivery->receipt);
  }
  if (!scheduled_ && (arrived_.idle() || Loop::current() != &loop_)) delete this;
}

void TopicHub::add(TopicMember& member) noexcept {
  if (members_++ == 0) arrived_.reopen();
  topic_.members.fetch_add(1, std::memory_order_relaxed);
  served_.push_back(member);  // it gets no message of the present pass
}

void TopicHub::remove(TopicMember& member) noexcept {
  member.unlink();
  topic_.members.fetch_sub(1, std::memory_order_relaxed);
  if (--members_ != 0) return;
  arrived_.close();
  schedule();  // for the receipts of the messages that have arrived
}

void TopicHub::on_room() noexcept {
  --full_;
  if (topic_.reaction() == SlowSubscriber::wait && full_ == 0) schedule();
}

void TopicHub::receive(void* self, Loop&) {
  static_cast<TopicHub*>(self)->schedule();
}

void TopicHub::schedule() noexcept {
  if (std::exchange(scheduled_, true)) return;
  loop_.ready(*this);
}

BlockPtr<TopicDelivery> TopicHub::pop() noexcept {
  BlockPtr<TopicDelivery> delivery(arrived_.pop());
  if (delivery != nullptr) on_way_.fetch_sub(1, std::memory_order_relaxed);
  return delivery;
}

/// Takes the messages that have arrived for a pass over all members. With SlowSubscriber::wait it
/// takes one, and only if all members have room.
void TopicHub::begin_pass() {
  assert(pass_size_ == 0);
  const bool one_by_one = topic_.reaction() == SlowSubscriber::wait;
  const std::size_t most = one_by_one ? (full_ == 0 ? 1 : 0) : pass_.size();
  while (pass_size_ < most) {
    const BlockPtr<TopicDelivery> delivery = pop();
    if (delivery == nullptr) break;
    pass_[pass_size_++] = delivery->frame;
    if (delivery->receipt != nullptr) TopicReceipt::sign(delivery->receipt);
  }
  if (pass_size_ == 0) return;
  while (TopicMember* const member = served_.pop_front()) waiting_.push_back(*member);
}

void TopicHub::end_pass() noexcept {
  has_compressed_ = false;
  for (; pass_size_ != 0; --pass_size_) pass_[pass_size_ - 1] = compressed_[pass_size_ - 1] = {};
}

/// Compresses the messages of the pass, once for all members that can share the result. Messages
/// beyond the limit of one turn stay as they are.
void TopicHub::compress_pass() {
  WsDeflateCore& core = WsDeflateCore::of(loop_);
  std::size_t bytes_left = WsDeflateCore::shared_max;
  for (std::size_t at = 0; at < pass_size_; ++at) {
    compressed_[at] = pass_[at];
    const TopicFrame& frame = *pass_[at];
    const std::size_t size = frame.message().size();
    if (size > bytes_left) continue;
    bytes_left -= size;
    if (const auto compressed = core.compress(frame.message(), compression_)) {
      compressed_[at] = TopicFrameRef(TopicFrame::make(frame.is_text(), compressed->bytes(), true));
    }
  }
}

/// Returns the messages of the pass as `connection` gets them. They are compressed in the way of
/// the first member that shares a compressor. Members that cannot take this way get them as they
/// are.
std::span<const TopicFrameRef> TopicHub::messages_for(const WsConnection& connection) noexcept {
  const std::span<const TopicFrameRef> plain = std::span(pass_).first(pass_size_);
  const auto compression = connection.shared_compression();
  if (!compression) return plain;
  if (!has_compressed_) {
    compression_ = *compression;
    try {
      compress_pass();
    } catch (const std::bad_alloc&) {
      return plain;
    }
    has_compressed_ = true;
  }
  if (!compression->takes(compression_)) return plain;
  return std::span(compressed_).first(pass_size_);
}

void TopicHub::run() {
  scheduled_ = false;
  if (ends_) return end_if_idle();
  if (waiting_.empty()) {
    end_pass();  // its last members may have left
    begin_pass();
  }
  for (unsigned count = 0; count < members_in_a_row; ++count) {
    TopicMember* const member = waiting_.pop_front();
    if (member == nullptr) break;
    served_.push_back(*member);
    WsConnection& connection = member->connection();
    const std::size_t taken = connection.deliver(*member, messages_for(connection));
    topic_.offered.fetch_add(taken, std::memory_order_relaxed);
  }
  if (waiting_.empty()) end_pass();
  const bool more =
      arrived_.front() != nullptr && (topic_.reaction() != SlowSubscriber::wait || full_ == 0);
  if (!waiting_.empty() || more) schedule();
}

// The topic.

AnyTopic::AnyTopic(SlowSubscriber reaction, const TopicOptions& options)
    : state_(std::make_unique<TopicState>(reaction, options)) {}
AnyTopic::~AnyTopic() = default;

TopicSubscription AnyTopic::subscribe(WebSocket& socket) {
  auto& connection = static_cast<WsConnection&>(socket);
  assert(connection.role() == WsRole::server && "a client masks its frames");
  return TopicSubscription(make_block<TopicMember>(state_->hub(socket.loop()), connection));
}

std::uint64_t memory_bound(const TopicOptions& options, const TopicUse& use) noexcept {
  using weir::detail::block;
  using weir::detail::product;
  using weir::detail::sum;
  constexpr std::uint64_t heap_overhead = 32;  // of an object of the heap, beside its bytes
  const std::uint64_t frame =
      block(sum({sizeof(TopicFrame), ws_header_size_max, use.message_bytes_max}));
  // Frames that members share count for each of them, since members may wait for different ones.
  const std::uint64_t capacity = std::max<std::size_t>(options.capacity, 1);
  // A connection that sends has taken frames from the ring, which fills again. It has a copy of the
  // rest of a frame that it has sent in part, in a buffer that may have grown to twice the size.
  const std::uint64_t sending = std::min<std::uint64_t>(capacity, TopicMember::messages_max);
  const std::uint64_t copy = product(2, weir::detail::buffer(frame));
  const std::uint64_t member =
      sum({block(sizeof(TopicMember)), heap_overhead, product(sending, frame), copy,
           product(capacity, sum({sizeof(TopicFrameRef), frame}))});
  // A message on its way, with the receipt for a publisher that waits.
  const std::uint64_t on_way =
      sum({frame, block(sizeof(TopicDelivery)), sizeof(TopicReceipt) + heap_overhead});
  // A pass over the members has its messages, also compressed.
  const std::uint64_t hub =
      sum({sizeof(TopicHub), heap_overhead, product(2 * TopicMember::messages_max, frame),
           product(std::max<std::size_t>(options.on_way_max, 1), on_way)});
  return sum({sizeof(TopicState) + heap_overhead, product(use.subscribers, member),
              product(std::max(use.cores, 1U), hub)});
}

std::size_t AnyTopic::subscribers() const noexcept {
  return state_->members.load(std::memory_order_relaxed);
}

TopicStatistics AnyTopic::statistics() const noexcept {
  const std::uint64_t dropped = state_->dropped.load(std::memory_order_relaxed);
  const std::uint64_t offered = state_->offered.load(std::memory_order_relaxed);
  return {.published = state_->published.load(std::memory_order_relaxed),
          .delivered = std::max(offered, dropped) - dropped,
          .dropped = dropped,
          .closed = state_->closed.load(std::memory_order_relaxed)};
}

Result<> AnyTopic::publish_now(bool is_text, Bytes message) {
  if (is_text && !is_utf8(message)) return fail(Errc::bad_input);
  return state_->publish(is_text, message, nullptr);
}

Task<Result<>> AnyTopic::publish_and_wait(bool is_text, Bytes message) {
  if (is_text && !is_utf8(message)) co_return fail(Errc::bad_input);
  const auto receipt = std::make_shared<TopicReceipt>(*(co_await this_context()).loop);
  WEIR_CO_TRY(state_->publish(is_text, message, receipt));
  TopicReceipt::sign(receipt);
  co_return co_await receipt->all.wait();
}

}  // namespace weir::http

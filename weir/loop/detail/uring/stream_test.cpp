// Tests of a stream on io_uring with a kernel that loses a hang-up; the tests drive the ring
// themselves.
#include "weir/loop/detail/uring/stream.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/loop/test/readiness_fixture.hpp"

namespace weir::loop::uring::stream_test {
namespace {

using Receive = Recorded<ReceiveOperation>;

class UringStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!context_.ring.open() || !context_.buffers.open(context_.ring.native())) {
      GTEST_SKIP() << "this machine refuses io_uring";
    }
    context_.features.limited_multishot = true;
  }
  void TearDown() override {
    if (stream_) disconnect();
    context_.ring.close();
  }

  void connect() {
    auto listener = os::open_listener(os::Address::loopback(0));
    peer_ = std::move(*os::open_stream(os::AddressFamily::ipv4));
    ASSERT_TRUE(os::start_connect(peer_.get(), *os::local_address(listener->get())));
    descriptor_ = accept_from(*listener);
    stream_.emplace(descriptor_.get(), std::size_t{64} * 1024);
    context_.sockets.push_back(*stream_);
    failed_cancellations_ = 0;
  }
  void disconnect() {
    stream_->stop(context_);
    stream_->closing = true;
    while (stream_->in_flight > 0 && !HasFailure()) turn();
    stream_.reset();
  }
  /// Connects a stream and receives until its receive stays armed.
  void begin() {
    ASSERT_NO_FATAL_FAILURE(connect());
    for (const char* single : {"first", "second"}) {
      ASSERT_NO_FATAL_FAILURE(receive(single));
      EXPECT_FALSE(hangup_unconfirmed()) << single;
      EXPECT_EQ(stream_->in_flight, 0U) << "nothing to cancel";
    }
    ASSERT_NO_FATAL_FAILURE(receive("third"));
    if (!context_.features.limited_multishot) GTEST_SKIP() << "receives end with each arrival";
    ASSERT_TRUE(hangup_unconfirmed());
  }
  /// Lets the peer send `text`, and receives it.
  void receive(std::string_view text) {
    Receive receive;
    const bool finished = stream_->receive(context_, receive);
    peer_sends(text);
    if (!finished) finish(receive);
    ASSERT_EQ(receive.buffer.text(), text);
  }

  Stream& stream() { return *stream_; }
  BackendContext& context() { return context_; }
  bool hangup_unconfirmed() const { return context_.hangup_unconfirmed.front() == &*stream_; }

  /// Waits for completions and passes them on, except for those of cancellations. A cancellation
  /// completes only if there was nothing to cancel.
  void turn() {
    context_.ring.wait(std::chrono::seconds(5));
    int count = 0;
    context_.ring.reap([&](const Completion& completion) {
      ++count;
      if (completion.tag == Tag::none) {
        ++failed_cancellations_;
      } else {
        stream_->completed(context_, completion);
      }
    });
    ASSERT_GT(count, 0) << "no armed request can report the end";
    while (Runnable* runnable = ready_.pop()) runnable->run();
  }
  void finish(const Receive& receive) {
    while (receive.runs == 0 && !HasFailure()) turn();
  }
  void peer_sends(std::string_view text) {
    ASSERT_EQ(::send(peer_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  void peer_finishes() { ASSERT_TRUE(os::shut_down_sending(peer_.get())); }
  void peer_resets() {
    ASSERT_TRUE(os::set_linger(peer_.get(), std::chrono::seconds(0)));
    peer_.close();
  }

  /// Cancels the armed receive and keeps its completion, so that the stream still counts on it
  /// until give_back().
  void lose_receive() {
    context_.ring.cancel(&*stream_, Tag::receive);
    while (!kept_ && !HasFailure()) {
      context_.ring.wait(std::chrono::seconds(5));
      context_.ring.reap([&](const Completion& completion) {
        if (completion.tag == Tag::receive) kept_ = completion;
      });
    }
    ASSERT_EQ(kept_->result, -ECANCELED);
  }
  /// Waits until the stream cancels its lost receive, and gives it the completion.
  void give_back() {
    while (failed_cancellations_ == 0 && !HasFailure()) turn();
    stream_->completed(context_, *std::exchange(kept_, std::nullopt));
  }

 private:
  OsPlatform platform_;
  BlockPool pool_;
  ScopedBlockPool use_{pool_};
  RunQueue ready_;
  BackendCounters counters_;
  BackendContext context_{platform_, ready_, counters_};
  os::Fd peer_;
  os::Fd descriptor_;
  std::optional<Stream> stream_;
  std::optional<Completion> kept_;
  int failed_cancellations_ = 0;
};

TEST_F(UringStreamTest, ThePollReportsAnEndThatTheReceiveMissed) {
  for (const bool reset : {true, false}) {
    SCOPED_TRACE(reset ? "reset" : "end");
    begin();
    if (IsSkipped() || HasFailure()) return;
    Receive late;
    ASSERT_FALSE(stream().receive(context(), late));
    ASSERT_NO_FATAL_FAILURE(lose_receive());
    stream().check_hangup(context());
    EXPECT_FALSE(hangup_unconfirmed());
    reset ? peer_resets() : peer_finishes();
    ASSERT_NO_FATAL_FAILURE(give_back());
    ASSERT_NO_FATAL_FAILURE(finish(late));
    EXPECT_EQ(late.error(), reset ? system_error(ECONNRESET) : Errc::end_of_stream);
    disconnect();
  }
}

TEST_F(UringStreamTest, ThePollReportsAnEndThatCameBeforeIt) {
  begin();
  if (IsSkipped() || HasFailure()) return;
  RecordedHangup hangup;
  stream().observe_hangup(context(), &hangup);
  ASSERT_NO_FATAL_FAILURE(lose_receive());
  peer_resets();
  stream().check_hangup(context());
  ASSERT_NO_FATAL_FAILURE(give_back());
  EXPECT_EQ(hangup.calls, 1);
  Receive late;
  if (!stream().receive(context(), late)) finish(late);
  EXPECT_EQ(late.error(), system_error(ECONNRESET));
}

TEST_F(UringStreamTest, IsUnconfirmedOnceAndOnlyAfterData) {
  begin();
  if (IsSkipped() || HasFailure()) return;
  ASSERT_NO_FATAL_FAILURE(receive("more"));
  EXPECT_TRUE(hangup_unconfirmed());
  stream().check_hangup(context());
  ASSERT_NO_FATAL_FAILURE(receive("and more"));
  EXPECT_FALSE(hangup_unconfirmed()) << "a poll request watches the stream already";
}

std::string letters(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 23);
  return text;
}

class ReceiveQueueTest : public testing::Test {
 protected:
  static Buffer buffer_of(std::string_view text, std::uint32_t capacity) {
    Buffer buffer = Buffer::with_capacity(capacity);
    std::memcpy(buffer.room().data(), text.data(), text.size());
    buffer.commit(text.size());
    return buffer;
  }
  /// Reads up to `size` bytes.
  std::string read(std::size_t size) {
    std::string text(size, '-');
    const std::size_t count = queue_.read({reinterpret_cast<std::byte*>(text.data()), text.size()});
    EXPECT_EQ(text.substr(count), std::string(size - count, '-'));
    return text.substr(0, count);
  }

  BlockPool pool_;
  ScopedBlockPool use_{pool_};
  ReceiveQueue queue_;
};

TEST_F(ReceiveQueueTest, ReturnsBuffersInTheOrderOfTheirArrival) {
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.memory_used(), 0U);
  std::size_t memory = 0;
  for (const char* text : {"first", "second", "third"}) {
    Buffer buffer = buffer_of(text, 5000);
    memory += buffer.capacity();
    queue_.push(std::move(buffer));
  }
  EXPECT_FALSE(queue_.empty());
  EXPECT_EQ(queue_.memory_used(), memory);
  EXPECT_EQ(queue_.pop().text(), "first");
  EXPECT_EQ(queue_.memory_used(), memory / 3 * 2);
  EXPECT_EQ(queue_.pop().text(), "second");
  EXPECT_EQ(queue_.pop().text(), "third");
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.memory_used(), 0U);
  queue_.push(buffer_of("again", 5000));
  EXPECT_EQ(queue_.pop().text(), "again");
}

TEST_F(ReceiveQueueTest, ReadsAcrossBuffers) {
  queue_.push(buffer_of("abcd", 5000));
  queue_.push(buffer_of("efg", 5000));
  queue_.push(buffer_of("hi", 5000));
  EXPECT_EQ(read(0), "");
  EXPECT_EQ(read(2), "ab");
  EXPECT_EQ(read(3), "cde");
  EXPECT_EQ(read(2), "fg");
  EXPECT_FALSE(queue_.empty());
  EXPECT_EQ(read(10), "hi");
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.memory_used(), 0U);
  EXPECT_EQ(read(1), "");
}

TEST_F(ReceiveQueueTest, CopiesSmallArrivalsTogether) {
  for (int i = 0; i < 1000; ++i) queue_.push_copy(to_bytes(letters(1)));
  const std::size_t first = queue_.memory_used();
  EXPECT_GE(first, 1024U);
  EXPECT_LT(first, 2048U) << "one buffer";
  queue_.push_copy(to_bytes(letters(first - 1000)));
  EXPECT_EQ(queue_.memory_used(), first) << "the rest of the buffer";
  queue_.push_copy(to_bytes("x"));
  EXPECT_GE(queue_.memory_used(), 2 * first) << "the next one is as large as the queue";
  EXPECT_LT(queue_.memory_used(), 3 * first);
  EXPECT_EQ(queue_.pop().size(), first);
  EXPECT_EQ(queue_.pop().text(), "x");
}

TEST_F(ReceiveQueueTest, BuffersOfCopiesGrowUpToTheLargestCopiedArrival) {
  const std::string large = letters(ReceiveQueue::small_max);
  queue_.push_copy(to_bytes(large));
  std::size_t before = queue_.memory_used();
  EXPECT_GE(before, ReceiveQueue::small_max);
  EXPECT_LT(before, 2 * ReceiveQueue::small_max);
  for (int i = 0; i < 4; ++i) {
    queue_.push_copy(to_bytes(large));
    EXPECT_GE(queue_.memory_used() - before, ReceiveQueue::small_max);
    EXPECT_LT(queue_.memory_used() - before, 2 * ReceiveQueue::small_max);
    before = queue_.memory_used();
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(read(large.size()) == large);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(ReceiveQueueTest, ReleasesItsBuffersWithItself) {
  const std::size_t before = pool_.blocks_in_use();
  {
    ReceiveQueue queue;
    for (int i = 0; i < 5; ++i) queue.push(buffer_of("text", 5000));
    EXPECT_EQ(pool_.blocks_in_use(), before + 10);
  }
  EXPECT_EQ(pool_.blocks_in_use(), before);
}

}  // namespace
}  // namespace weir::loop::uring::stream_test

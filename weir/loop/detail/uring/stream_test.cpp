// A stream on io_uring beside a kernel that forgets: the tests drive the ring themselves, and keep
// from the stream what the kernel would have lost.
#include "weir/loop/uring_stream.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "weir/loop/test/readiness_fixture.hpp"

namespace weir::uring {
namespace {

using Receive = Recorded<ReceiveOperation>;

class UringStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!core_.ring.open() || !core_.buffers.open(core_.ring.native())) {
      GTEST_SKIP() << "this machine refuses io_uring";
    }
    core_.features.limited_multishot = true;
  }
  void TearDown() override {
    if (stream_) disconnect();
    core_.ring.close();
  }

  void connect() {
    auto listener = os::open_listener(os::Address::loopback(0));
    peer_ = std::move(*os::open_stream(os::AddressFamily::ipv4));
    ASSERT_TRUE(os::start_connect(peer_.get(), *os::local_address(listener->get())));
    descriptor_ = accept_from(*listener);
    stream_.emplace(descriptor_.get(), std::size_t{64} * 1024);
    core_.sockets.push_back(*stream_);
    cancelled_in_vain_ = 0;
  }
  void disconnect() {
    stream_->stop(core_);
    stream_->closing = true;
    while (stream_->in_flight > 0 && !HasFailure()) turn();
    stream_.reset();
  }
  /// Brings it to where a receive stays armed.
  void begin() {
    ASSERT_NO_FATAL_FAILURE(connect());
    ASSERT_NO_FATAL_FAILURE(receive("first"));
    EXPECT_FALSE(doubted());
    ASSERT_NO_FATAL_FAILURE(receive("second"));
    if (!core_.features.limited_multishot) GTEST_SKIP() << "receives end with each arrival";
    ASSERT_TRUE(doubted());
  }
  /// Lets the peer send `text`, and receives it.
  void receive(std::string_view text) {
    Receive receive;
    const bool finished = stream_->receive(core_, receive);
    peer_sends(text);
    if (!finished) finish(receive);
    ASSERT_EQ(receive.buffer.text(), text);
  }

  Stream& stream() { return *stream_; }
  Core& core() { return core_; }
  bool doubted() const { return core_.doubted.front() == &*stream_; }

  /// Waits for completions and hands them on, but for those of cancellations, which say something
  /// only when there was nothing to cancel.
  void turn() {
    core_.ring.wait(std::chrono::seconds(5));
    int count = 0;
    core_.ring.reap([&](const Completion& completion) {
      ++count;
      if (completion.tag == Tag::none) {
        ++cancelled_in_vain_;
      } else {
        stream_->completed(core_, completion);
      }
    });
    ASSERT_GT(count, 0) << "nothing is armed that would tell";
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

  /// Takes the armed receive away: the stream goes on believing in it until give_back().
  void make_deaf() {
    core_.ring.cancel(&*stream_, Tag::receive);
    while (!kept_ && !HasFailure()) {
      core_.ring.wait(std::chrono::seconds(5));
      core_.ring.reap([&](const Completion& completion) {
        if (completion.tag == Tag::receive) kept_ = completion;
      });
    }
    ASSERT_EQ(kept_->result, -ECANCELED);
  }
  /// What a stream gets that cancels its deaf receive. Waits until it does so.
  void give_back() {
    while (cancelled_in_vain_ == 0 && !HasFailure()) turn();
    stream_->completed(core_, *std::exchange(kept_, std::nullopt));
  }

 private:
  OsHost host_;
  BlockPool pool_;
  BlockPool::Use use_{pool_};
  RunQueue ready_;
  BackendCounters counters_;
  Core core_{host_, ready_, counters_};
  os::Fd peer_;
  os::Fd descriptor_;
  std::optional<Stream> stream_;
  std::optional<Completion> kept_;
  int cancelled_in_vain_ = 0;
};

TEST_F(UringStreamTest, AnEndThatTheArmedReceiveHasMissedIsSeenByThePoll) {
  for (const bool reset : {true, false}) {
    SCOPED_TRACE(reset ? "reset" : "end");
    begin();
    if (IsSkipped() || HasFailure()) return;
    Receive late;
    ASSERT_FALSE(stream().receive(core(), late));
    ASSERT_NO_FATAL_FAILURE(make_deaf());
    stream().check(core());
    EXPECT_FALSE(doubted());
    reset ? peer_resets() : peer_finishes();
    ASSERT_NO_FATAL_FAILURE(give_back());
    ASSERT_NO_FATAL_FAILURE(finish(late));
    EXPECT_EQ(late.error(), reset ? system_error(ECONNRESET) : Errc::end_of_stream);
    disconnect();
  }
}

TEST_F(UringStreamTest, AnEndThatCameBeforeThePollIsSeenByItToo) {
  begin();
  if (IsSkipped() || HasFailure()) return;
  RecordedHangup hangup;
  stream().watch(core(), &hangup);
  ASSERT_NO_FATAL_FAILURE(make_deaf());
  peer_resets();
  stream().check(core());
  ASSERT_NO_FATAL_FAILURE(give_back());
  EXPECT_EQ(hangup.calls, 1);
  Receive late;
  if (!stream().receive(core(), late)) finish(late);
  EXPECT_EQ(late.error(), system_error(ECONNRESET));
}

TEST_F(UringStreamTest, IsDoubtedOnceAndOnlyBehindData) {
  begin();
  if (IsSkipped() || HasFailure()) return;
  ASSERT_NO_FATAL_FAILURE(receive("more"));
  EXPECT_TRUE(doubted());
  stream().check(core());
  ASSERT_NO_FATAL_FAILURE(receive("and more"));
  EXPECT_FALSE(doubted()) << "a poll request watches over it already";
}

}  // namespace
}  // namespace weir::uring

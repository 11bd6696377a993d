// Tests of the queues that a loop shares with the kernel.
#include "weir/loop/detail/uring/ring.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "weir/os/detail/io/clock.hpp"
#include "weir/os/detail/io/fd.hpp"

namespace weir::loop::uring::ring_test {
namespace {

class UringRingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ring_.open()) GTEST_SKIP() << "this machine refuses io_uring";
  }
  /// Records a request that completes immediately.
  void record_nothing(void* object, Tag tag) {
    io_uring_sqe& entry = ring_.next();
    io_uring_prep_nop(&entry);
    Ring::mark(entry, object, tag);
  }
  struct alignas(16) Object {};

  detail::Counter system_calls_;
  Ring ring_{system_calls_};
};

TEST_F(UringRingTest, CompletionsNameTheirObjectAndKind) {
  Object one;
  Object other;
  EXPECT_TRUE(ring_.is_open());
  EXPECT_FALSE(ring_.issued_by_this_thread()) << "nothing has been submitted";
  record_nothing(&one, Tag::receive);
  record_nothing(&other, Tag::file);
  EXPECT_EQ(system_calls_.value(), 0U);
  ring_.poll();
  EXPECT_TRUE(ring_.issued_by_this_thread());
  EXPECT_EQ(system_calls_.value(), 1U);
  std::vector<std::pair<void*, Tag>> seen;
  const auto note = [&](const Completion& completion) {
    seen.emplace_back(completion.object, completion.tag);
    EXPECT_EQ(completion.result, 0);
    EXPECT_FALSE(completion.more());
  };
  ring_.reap(note);
  EXPECT_EQ(seen, (std::vector<std::pair<void*, Tag>>{{&one, Tag::receive}, {&other, Tag::file}}));
  ring_.reap(note);
  EXPECT_EQ(seen.size(), 2U) << "each completion once";
}

TEST_F(UringRingTest, PollEntersTheKernelOnlyIfThereIsSomethingToDo) {
  ring_.poll();
  ring_.poll();
  EXPECT_EQ(system_calls_.value(), 0U);
  record_nothing(nullptr, Tag::none);
  ring_.poll();
  ring_.poll();
  EXPECT_EQ(system_calls_.value(), 1U);
}

TEST_F(UringRingTest, SubmitsRecordedRequestsWhenTheQueueIsFull) {
  constexpr std::size_t count = 3000;  // the queue has 1024 entries
  Object object;
  for (std::size_t i = 0; i < count; ++i) record_nothing(&object, Tag::send);
  EXPECT_EQ(system_calls_.value(), 2U);
  ring_.poll();
  EXPECT_EQ(system_calls_.value(), 3U);
  std::size_t seen = 0;
  ring_.reap([&](const Completion& completion) {
    EXPECT_EQ(completion.object, &object);
    ++seen;
  });
  EXPECT_EQ(seen, count);
}

TEST_F(UringRingTest, WaitEndsAfterItsTime) {
  const Instant begun = os::monotonic_now();
  ring_.wait(Duration(2'500'000));
  EXPECT_GE(os::monotonic_now() - begun, std::chrono::microseconds(2500));
  ring_.wait(std::chrono::milliseconds(1001));
  EXPECT_GE(os::monotonic_now() - begun, std::chrono::milliseconds(1003));
  record_nothing(nullptr, Tag::none);
  ring_.wait(std::nullopt);  // ends with the completion
  EXPECT_EQ(system_calls_.value(), 3U);
}

TEST_F(UringRingTest, LendsAlignedMemoryUntilTheNextSubmission) {
  record_nothing(nullptr, Tag::none);
  std::vector<std::byte*> blocks;
  for (const std::size_t size : {1U, 15U, 16U, 17U, 32U}) {
    auto* const block = static_cast<std::byte*>(ring_.allocate_until_submit(size));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0U);
    std::memset(block, 0xff, size);
    blocks.push_back(block);
  }
  const std::vector<std::ptrdiff_t> distances = {16, 16, 16, 32};
  for (std::size_t i = 0; i < distances.size(); ++i) {
    EXPECT_EQ(blocks[i + 1] - blocks[i], distances[i]);
  }
  ring_.poll();
  EXPECT_EQ(ring_.allocate_until_submit(1), blocks[0]) << "the memory is used again";
}

TEST_F(UringRingTest, LendsAtMost256BlocksOf64KiBUntilTheNextSubmission) {
  constexpr std::size_t block = 64 * 1024;
  record_nothing(nullptr, Tag::none);
  std::set<void*> all;
  for (int i = 0; i < 2; ++i) all.insert(ring_.allocate_until_submit(block / 2));
  for (int i = 0; i < 255; ++i) {
    void* const memory = ring_.allocate_until_submit(block);
    ASSERT_NE(memory, nullptr) << i;
    std::memset(memory, 0xff, block);
    all.insert(memory);
  }
  EXPECT_EQ(all.size(), 257U);
  EXPECT_EQ(ring_.allocate_until_submit(1), nullptr);
  EXPECT_EQ(ring_.allocate_until_submit(block), nullptr);
  ring_.poll();
  EXPECT_TRUE(all.contains(ring_.allocate_until_submit(block)));
}

TEST_F(UringRingTest, ClosesDescriptorsOfRequestsThatWereNeverSubmitted) {
  auto pipe = os::open_pipe().value();
  ring_.close_descriptor(pipe.write_end.release());
  pollfd hangup{pipe.read_end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&hangup, 1, 0), 0);
  ring_.close();
  EXPECT_FALSE(ring_.is_open());
  EXPECT_EQ(::poll(&hangup, 1, 0), 1);
  ring_.close();
}

TEST_F(UringRingTest, ClosesDescriptorsWithoutACompletion) {
  auto pipe = os::open_pipe().value();
  ring_.close_descriptor(pipe.write_end.release());
  ring_.poll();
  pollfd hangup{pipe.read_end.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&hangup, 1, 0), 1);
  ring_.reap([](const Completion&) { ADD_FAILURE() << "a completion"; });
}

TEST_F(UringRingTest, CancelsTheRequestOfAnObjectAndKind) {
  auto pipe = os::open_pipe().value();
  Object object;
  for (const Tag tag : {Tag::hangup, Tag::connect}) {
    io_uring_sqe& entry = ring_.next();
    io_uring_prep_poll_add(&entry, pipe.read_end.get(), POLLIN);
    Ring::mark(entry, &object, tag);
  }
  ring_.cancel(&object, Tag::connect);
  ring_.poll();
  std::vector<Tag> cancelled;
  const auto note = [&](const Completion& completion) {
    EXPECT_EQ(completion.object, &object);
    EXPECT_EQ(completion.result, -ECANCELED);
    cancelled.push_back(completion.tag);
  };
  ring_.reap(note);
  EXPECT_EQ(cancelled, std::vector<Tag>{Tag::connect});
  ring_.cancel(&object, Tag::hangup);
  ring_.poll();
  ring_.reap(note);
  EXPECT_EQ(cancelled, (std::vector<Tag>{Tag::connect, Tag::hangup}));
}

}  // namespace
}  // namespace weir::loop::uring::ring_test

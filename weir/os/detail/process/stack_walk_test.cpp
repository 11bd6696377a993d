// Tests of walking frame pointers, with hostile ones.
#include "weir/os/detail/process/stack_walk.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace weir::os::stack_walk_test {
namespace {

/// A stack in an array of words. Frame records are written into it by index.
class MadeStack {
 public:
  std::uintptr_t at(std::size_t index) const {
    return reinterpret_cast<std::uintptr_t>(words_.data() + index);
  }
  void put_frame(std::size_t index, std::uintptr_t next, std::uintptr_t returns_to) {
    words_[index] = next;
    words_[index + 1] = returns_to;
  }
  void put(std::size_t index, std::uintptr_t word) { words_[index] = word; }
  StackBounds bounds() const { return {at(0), at(words_.size())}; }

  std::vector<std::uintptr_t> walk(std::uintptr_t frame, std::size_t stack = 0,
                                   std::size_t frames_max = 16) const {
    std::vector<std::uintptr_t> frames(frames_max);
    frames.resize(walk_frames({0x10'000, frame, at(stack)}, bounds(), frames));
    return frames;
  }

 private:
  std::array<std::uintptr_t, 64> words_{};
};
using Frames = std::vector<std::uintptr_t>;

TEST(StackWalk, FollowsTheChainOfFramePointers) {
  MadeStack stack;
  stack.put_frame(4, stack.at(10), 0x20'000);
  stack.put_frame(10, stack.at(62), 0x30'000);
  stack.put_frame(62, 0, 0x40'000);
  EXPECT_EQ(stack.walk(stack.at(4)), (Frames{0x10'000, 0x20'000, 0x30'000, 0x40'000}));
}

TEST(StackWalk, EndsAtTheRoomOfTheCaller) {
  MadeStack stack;
  stack.put_frame(4, stack.at(10), 0x20'000);
  stack.put_frame(10, stack.at(20), 0x30'000);
  EXPECT_EQ(stack.walk(stack.at(4), 0, 2), (Frames{0x10'000, 0x20'000}));
  EXPECT_EQ(stack.walk(stack.at(4), 0, 0), Frames{});
}

TEST(StackWalk, StopsAtAFramePointerOutsideOfTheStack) {
  MadeStack stack;
  for (const std::uintptr_t frame :
       {std::uintptr_t{0}, std::uintptr_t{8}, stack.at(0) - 16, stack.at(64), stack.at(63),
        stack.at(62) + 4, ~std::uintptr_t{0}, ~std::uintptr_t{7}}) {
    EXPECT_EQ(stack.walk(frame), Frames{0x10'000}) << frame;
  }
}

TEST(StackWalk, StopsAtAFrameThatIsNotAboveTheOneBefore) {
  MadeStack stack;
  stack.put_frame(10, stack.at(10), 0x20'000);  // itself
  EXPECT_EQ(stack.walk(stack.at(10)), (Frames{0x10'000, 0x20'000}));
  stack.put_frame(10, stack.at(11), 0x20'000);  // overlaps
  EXPECT_EQ(stack.walk(stack.at(10)), (Frames{0x10'000, 0x20'000}));
  stack.put_frame(10, stack.at(4), 0x20'000);  // below
  EXPECT_EQ(stack.walk(stack.at(10)), (Frames{0x10'000, 0x20'000}));
  EXPECT_EQ(stack.walk(stack.at(10), 12), Frames{0x10'000}) << "below the stack pointer";
}

TEST(StackWalk, StopsAtAReturnAddressThatIsNoCode) {
  MadeStack stack;
  stack.put_frame(4, stack.at(10), 0);
  EXPECT_EQ(stack.walk(stack.at(4)), Frames{0x10'000});
}

TEST(StackWalk, ReadsNothingWithAStackPointerOutsideOfTheStack) {
  MadeStack stack;
  std::array<std::uintptr_t, 8> frames{};
  for (const std::uintptr_t pointer : {std::uintptr_t{0}, stack.at(0) - 8, stack.at(64)}) {
    EXPECT_EQ(walk_frames({0x10'000, stack.at(4), pointer}, stack.bounds(), frames), 1u);
  }
  EXPECT_EQ(walk_frames({0, stack.at(4), stack.at(0)}, stack.bounds(), frames), 0u);
}

// The address sanitizer would report each read outside of the array.
TEST(StackWalk, ReadsOnlyTheStackWithRandomContents) {
  std::mt19937_64 random(static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed()));
  for (int round = 0; round < 20'000; ++round) {
    MadeStack stack;
    for (std::size_t index = 0; index < 64; ++index) {
      const bool plausible = random() % 4 != 0;
      stack.put(index, plausible ? stack.at(random() % 70) + random() % 3 : random());
    }
    const auto frames = stack.walk(stack.at(random() % 66), random() % 64, 100);
    EXPECT_GE(frames.size(), 1u);
    EXPECT_LE(frames.size(), 33u) << "each frame has two words of its own";
  }
}

TEST(StackWalk, KnowsTheStackOfThisThread) {
  const StackBounds stack = stack_of_this_thread();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  EXPECT_GE(here, stack.low);
  EXPECT_LT(here, stack.high);
}

}  // namespace
}  // namespace weir::os::stack_walk_test

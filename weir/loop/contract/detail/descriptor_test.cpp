// Tests of the owner of a descriptor: each descriptor is closed exactly once.
#include "weir/loop/contract/detail/descriptor.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"

namespace weir::loop::descriptor_test {
namespace {

/// Records the descriptors that it closes.
class ClosingPlatform final : public MemoryPlatform {
 public:
  void close(int descriptor) noexcept override { closed.push_back(descriptor); }
  std::vector<int> closed;
};

TEST(Descriptor, OwnsNothingByDefault) {
  Descriptor none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.value(), -1);
  none.reset();
  EXPECT_EQ(none.release(), -1);
}

TEST(Descriptor, ClosesItsDescriptorOnce) {
  ClosingPlatform platform;
  {
    Descriptor zero(platform, 0);
    EXPECT_TRUE(zero);
    EXPECT_EQ(zero.value(), 0);
    zero.reset();
    EXPECT_FALSE(zero);
    EXPECT_EQ(zero.value(), -1);
    EXPECT_EQ(platform.closed, std::vector<int>{0});
    zero.reset();
    const Descriptor other(platform, 7);
    const Descriptor invalid(platform, -1);
    EXPECT_FALSE(invalid);
  }
  EXPECT_EQ(platform.closed, (std::vector<int>{0, 7}));
}

TEST(Descriptor, AReleasedDescriptorStaysOpen) {
  ClosingPlatform platform;
  {
    Descriptor descriptor(platform, 4);
    EXPECT_EQ(descriptor.release(), 4);
    EXPECT_FALSE(descriptor);
    EXPECT_EQ(descriptor.release(), -1);
  }
  EXPECT_TRUE(platform.closed.empty());
}

TEST(Descriptor, MovingPassesTheDescriptorOn) {
  ClosingPlatform first;
  ClosingPlatform second;
  {
    Descriptor source(first, 5);
    Descriptor moved(std::move(source));
    EXPECT_EQ(moved.value(), 5);
    EXPECT_EQ(source.value(), -1);
    Descriptor assigned(second, 6);
    assigned = std::move(moved);
    EXPECT_EQ(assigned.value(), 5);
    EXPECT_TRUE(first.closed.empty());
  }
  EXPECT_EQ(first.closed, std::vector<int>{5}) << "by the platform that opened it";
  EXPECT_EQ(second.closed, std::vector<int>{6});
}

}  // namespace
}  // namespace weir::loop::descriptor_test

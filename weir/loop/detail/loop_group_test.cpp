#include "weir/loop/detail/loop_group.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "weir/testing/memory/memory_platform.hpp"

namespace weir::loop::loop_group_test {
namespace {

TEST(LoopGroup, LoopsShareInheritedSocketsOutByTheirNumber) {
  MemoryPlatform platform;
  LoopGroup group;
  const os::Address bound = os::Address::loopback(80);
  std::vector<std::shared_ptr<SharedListener>> sockets;
  while (sockets.size() < 6) {
    auto listener = platform.listen(os::Address::loopback(0), {}).value();
    sockets.push_back(std::make_shared<SharedListener>(platform, std::move(listener), bound));
  }
  group.listener_registry().inherit(std::move(sockets));
  group.set_loops({nullptr, nullptr, nullptr});
  const auto first = group.listener_registry().listen(platform, bound, {});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->additional.size(), 1U);
}

}  // namespace
}  // namespace weir::loop::loop_group_test

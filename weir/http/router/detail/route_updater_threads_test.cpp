// Tests changes of routes and slots on real threads, for the thread sanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/router/detail/route_store.hpp"
#include "weir/http/router/detail/route_updater.hpp"
#include "weir/http/router/router.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::http {
namespace {

TEST(RouteSlotsOnThreads, GiveEachNumberToOneHolder) {
  constexpr std::size_t threads = 3;
  constexpr std::size_t held_max = 4;
  RouteSlots slots;
  std::array<std::atomic<int>, threads * held_max> holders{};
  const auto use_slots = [&] {
    for (int round = 0; round < 3000; ++round) {
      std::array<std::size_t, held_max> held{};
      for (std::size_t& slot : held) {
        slot = slots.acquire();
        ASSERT_LT(slot, holders.size()) << "free numbers are used first";
        ASSERT_EQ(holders[slot].fetch_add(1), 0);
      }
      for (const std::size_t slot : held) {
        holders[slot].fetch_sub(1);
        slots.release(slot);
      }
    }
  };
  std::vector<std::jthread> all;
  for (std::size_t count = 0; count < threads; ++count) all.emplace_back(use_slots);
}

// A router may be served by runtimes that begin and end at any time.
TEST(RouteUpdaterOnThreads, SnapshotsMayComeAndGoOnSeveralThreads) {
  Router routes;
  routes.get("/a", [] { return Response(Status::ok); });
  const auto come_and_go = [&routes] {
    MemoryPlatform platform;
    const auto loop = Loop::make(platform, {}).value();
    for (int round = 0; round < 2000; ++round) {
      const RouteSnapshot first(*loop, routes.updater());
      const RouteSnapshot second(*loop, routes.updater());
      EXPECT_TRUE(routes.updater().in_use());
    }
  };
  std::vector<std::jthread> threads;
  for (int count = 0; count < 3; ++count) threads.emplace_back(come_and_go);
  threads.clear();
  EXPECT_FALSE(routes.updater().in_use());
}

}  // namespace
}  // namespace weir::http

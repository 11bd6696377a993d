// Tests changes of routes and slots on real threads, for the thread sanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>
#include <vector>

#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/router/detail/route_store.hpp"
#include "weir/http/router/detail/route_updater.hpp"
#include "weir/http/router/live_routes.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"
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

TEST(RouteUpdaterOnThreads, AnyThreadMayAskIfItIsInUse) {
  Router routes;
  MemoryPlatform platform;
  const auto loop = Loop::make(platform, {}).value();
  {
    const std::jthread serving([&] {
      for (int round = 0; round < 200; ++round) {
        const RouteSnapshot snapshot(*loop, routes.updater());
      }
    });
    const std::jthread asking([&] {
      for (int round = 0; round < 200; ++round) static_cast<void>(routes.updater().in_use());
    });
  }
  EXPECT_FALSE(routes.updater().in_use());
}

/// A request of a snapshot, which nothing stops.
struct Unstopped : InFlightRequest {
  Unstopped(RouteSnapshot& snapshot, const Route* route)
      : InFlightRequest(snapshot, route, [](InFlightRequest&) {}) {}
};

/// Two snapshots, on cores 1 and 2. A task on core 0 changes the routes. The loops run on the main
/// thread, and not while other threads use the snapshots.
class SnapshotsOnThreads : public MultiCoreTest {
 protected:
  void TearDown() override {
    first_.reset();
    second_.reset();
    MultiCoreTest::TearDown();
  }

  void run_core_0() {
    while (loop(0).turn(platform_.now())) {
    }
  }
  /// Calls both functions at the same time, on two threads.
  template <class First, class Second>
  static void run_on_threads(First first, Second second) {
    const std::jthread one(first);
    const std::jthread other(second);
  }
  /// Makes both snapshots take over the published table.
  void update_on_threads() {
    run_on_threads([this] { routes_.updater().update(*first_); },
                   [this] { routes_.updater().update(*second_); });
  }
  static const Route* find(const RouteSnapshot& snapshot) {
    const TextRequest request("GET /a");
    RouteMatch match;
    snapshot.table().match(request.head(), match);
    return match.route();
  }
  Task<> add() {
    const auto nothing = [] { return Response(Status::ok); };
    const auto added = co_await live_.get("/a", nothing);
    EXPECT_TRUE(added);
    if (added) id_ = *added;
  }
  Task<> remove() { EXPECT_TRUE(co_await live_.remove(id_)); }

  Router routes_;
  LiveRoutes live_{routes_};
  RouteId id_;
  std::optional<RouteSnapshot> first_{std::in_place, loop(1), routes_.updater()};
  std::optional<RouteSnapshot> second_{std::in_place, loop(2), routes_.updater()};
};

TEST_F(SnapshotsOnThreads, TakeOverATableAtTheSameTime) {
  for (int round = 0; round < 10; ++round) {
    Root adding(loop(0), add());
    run_core_0();
    update_on_threads();
    EXPECT_NE(find(*first_), nullptr);
    EXPECT_NE(find(*second_), nullptr);
    run_core_0();
    EXPECT_TRUE(adding.finished());

    Root removing(loop(0), remove());
    run_core_0();
    update_on_threads();
    EXPECT_EQ(find(*first_), nullptr);
    EXPECT_EQ(find(*second_), nullptr);
    run_core_0();
    EXPECT_TRUE(removing.finished());
    platform_.run_until_idle(loops());  // the notices arrive, and find nothing to do
  }
}

TEST_F(SnapshotsOnThreads, LastRequestsOfARemovedRouteMayEndAtTheSameTime) {
  for (int round = 0; round < 10; ++round) {
    Root adding(loop(0), add());
    platform_.run_until_idle(loops());
    ASSERT_TRUE(adding.finished());
    std::optional<Unstopped> one(std::in_place, *first_, find(*first_));
    std::optional<Unstopped> other(std::in_place, *second_, find(*second_));
    Root removing(loop(0), remove());
    platform_.run_until_idle(loops());
    EXPECT_FALSE(removing.finished());
    run_on_threads([&one] { one.reset(); }, [&other] { other.reset(); });
    platform_.run_until_idle(loops());
    EXPECT_TRUE(removing.finished());
  }
}

}  // namespace
}  // namespace weir::http

// Tests changes of routes and slots on real threads, for the thread sanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/http/router/detail/route_snapshot.hpp"
#include "weir/http/router/detail/route_store.hpp"
#include "weir/http/router/detail/route_updater.hpp"
#include "weir/http/router/live_routes.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::http::route_updater_threads_test {
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
      : InFlightRequest(snapshot, route, [](InFlightRequest&, StopReason) {}) {}
};

/// The trace of a request of a route.
class RequestOf final : public TraceContext {
 public:
  explicit RequestOf(const void* route) noexcept : route_(route) {}
  std::string_view kind() const noexcept override { return "request"; }
  std::string_view id(IdBuffer) const noexcept override { return {}; }
  const void* origin() const noexcept override { return route_; }

 private:
  const void* route_;
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
    std::atomic<int> missing{2};
    const auto together = [&missing](auto& function) {
      missing.fetch_sub(1);
      while (missing.load() != 0) std::this_thread::yield();
      function();
    };
    const std::jthread one([&] { together(first); });
    const std::jthread other([&] { together(second); });
  }
  /// Makes both snapshots take over the published table.
  void update_on_threads() {
    run_on_threads([this] { routes_.updater().update(*first_); },
                   [this] { routes_.updater().update(*second_); });
  }
  static const Route* find(const RouteSnapshot& snapshot, const std::string& path = "/a") {
    const TextRequest request("GET " + path);
    RouteMatch match;
    snapshot.table().match(request.head(), match);
    return match.route();
  }
  Task<> add_one(std::string path, std::vector<RouteId>& ids) {
    const Pattern pattern = Pattern::parse(path).value();
    const auto nothing = [] { return Response(Status::ok); };
    const auto added = co_await live_.get(pattern, nothing);
    EXPECT_TRUE(added);
    if (added) ids.push_back(*added);
  }
  /// Adds the routes "/PREFIX0", "/PREFIX1" and so on together, and appends their ids.
  Task<> add_several(std::string prefix, int count, std::vector<RouteId>& ids) {
    const auto add_all = [&](Scope& scope) -> Task<> {
      for (int number = 0; number < count; ++number) {
        scope.spawn(add_one("/" + prefix + std::to_string(number), ids));
      }
      co_return;
    };
    EXPECT_TRUE(co_await with_scope(add_all));
  }
  /// Removes the routes together, inside of a request if `request` is not nullptr.
  Task<> remove_several(const std::vector<RouteId>& ids, const RequestOf* request) {
    CancelSource source;
    source.set_trace(request);
    co_await remove_under(source, ids);
  }
  Task<> remove_under(CancelSource& source, const std::vector<RouteId>& ids) {
    const Context inside{(co_await this_context()).loop, &source};
    const auto remove_all = [this, &ids](Scope& scope) -> Task<> {
      for (const RouteId each : ids) scope.spawn(live_.remove(each));
      co_return;
    };
    auto removing = in_context(inside, with_scope(remove_all));
    const auto removed = co_await std::move(removing);
    EXPECT_TRUE(removed || source.cancelled());
  }

  Router routes_;
  LiveRoutes live_{routes_};
  std::optional<RouteSnapshot> first_{std::in_place, loop(1), routes_.updater()};
  std::optional<RouteSnapshot> second_{std::in_place, loop(2), routes_.updater()};
};

TEST_F(SnapshotsOnThreads, TakeOverATableAtTheSameTime) {
  for (int round = 0; round < 10; ++round) {
    std::vector<RouteId> ids;
    Root adding(loop(0), add_one("/a", ids));
    run_core_0();
    update_on_threads();
    EXPECT_NE(find(*first_), nullptr);
    EXPECT_NE(find(*second_), nullptr);
    run_core_0();
    EXPECT_TRUE(adding.finished());

    Root removing(loop(0), remove_several(ids, nullptr));
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
    std::vector<RouteId> ids;
    Root adding(loop(0), add_one("/a", ids));
    platform_.run_until_idle(loops());
    ASSERT_TRUE(adding.finished());
    std::optional<Unstopped> one(std::in_place, *first_, find(*first_));
    std::optional<Unstopped> other(std::in_place, *second_, find(*second_));
    Root removing(loop(0), remove_several(ids, nullptr));
    platform_.run_until_idle(loops());
    EXPECT_FALSE(removing.finished());
    run_on_threads([&one] { one.reset(); }, [&other] { other.reset(); });
    platform_.run_until_idle(loops());
    EXPECT_TRUE(removing.finished());
  }
}

TEST_F(SnapshotsOnThreads, LastRequestsMayEndWhileOtherRequestsRemoveRoutes) {
  // The end of all requests takes longer than the removals, which begin later.
  constexpr int used_count = 2000;
  constexpr int unused_count = 200;
  for (int round = 0; round < 6; ++round) {
    std::vector<RouteId> used;
    std::vector<RouteId> unused;
    Root adding_used(loop(0), add_several("used", used_count, used));
    Root adding_unused(loop(0), add_several("unused", unused_count, unused));
    platform_.run_until_idle(loops());
    ASSERT_EQ(used.size() + unused.size(), std::size_t{used_count + unused_count});
    std::deque<Unstopped> requests;
    for (int number = 0; number < used_count; ++number) {
      requests.emplace_back(*first_, find(*first_, "/used" + std::to_string(number)));
    }
    Root removing_used(loop(0), remove_several(used, nullptr));
    platform_.run_until_idle(loops());
    EXPECT_FALSE(removing_used.finished());
    const RequestOf other_route(this);
    Root removing_unused(loop(0), remove_several(unused, &other_route));
    run_on_threads([&requests] { requests.clear(); }, [this] { run_core_0(); });
    platform_.run_until_idle(loops());
    EXPECT_TRUE(removing_used.finished());
    EXPECT_TRUE(removing_unused.finished());
  }
}

TEST_F(SnapshotsOnThreads, MayComeAndGoWhileRemovalsAreCancelled) {
  constexpr int route_count = 50;
  MemoryPlatform platform;
  const auto elsewhere = Loop::make(platform, {}).value();
  for (int round = 0; round < 5; ++round) {
    std::vector<RouteId> ids;
    Root adding(loop(0), add_several("a", route_count, ids));
    platform_.run_until_idle(loops());
    ASSERT_EQ(ids.size(), std::size_t{route_count});
    std::deque<Unstopped> requests;
    for (int number = 0; number < route_count; ++number) {
      requests.emplace_back(*first_, find(*first_, "/a" + std::to_string(number)));
    }
    CancelSource cancel;
    Root removing(loop(0), remove_under(cancel, ids));
    platform_.run_until_idle(loops());
    const auto come_and_go = [&] {
      for (int times = 0; times < 200; ++times) {
        const RouteSnapshot snapshot(*elsewhere, routes_.updater());
      }
    };
    run_on_threads([&cancel] { cancel.cancel(); }, come_and_go);
    platform_.run_until_idle(loops());
    EXPECT_FALSE(removing.finished()) << "the requests have not ended";
    requests.clear();
    platform_.run_until_idle(loops());
    EXPECT_TRUE(removing.finished());
  }
}

// The updater releases the notice of the brief loop last, when that loop no longer exists.
TEST_F(SnapshotsOnThreads, ALoopMayEndBeforeItsNoticeIsReleased) {
  std::deque<RouteSnapshot> others;
  for (int count = 0; count < 1500; ++count) others.emplace_back(loop(1), routes_.updater());
  for (int round = 0; round < 6; ++round) {
    MemoryPlatform platform;
    std::unique_ptr<Loop> brief = Loop::make(platform, {}).value();
    std::optional<RouteSnapshot> snapshot(std::in_place, *brief, routes_.updater());
    const RouteTable* const old_table = &snapshot->table();
    const auto is_published = [&] {
      const RouteSnapshot newest(*brief, routes_.updater());
      return &newest.table() != old_table;
    };
    std::vector<RouteId> ids;
    Root adding(loop(0), add_one("/" + std::to_string(round), ids));
    const auto end_loop = [&] {
      while (!is_published()) std::this_thread::yield();
      snapshot.reset();
      brief.reset();
    };
    run_on_threads([this] { run_core_0(); }, end_loop);
    platform_.run_until_idle(loops());
    EXPECT_TRUE(adding.finished());
    EXPECT_EQ(ids.size(), 1U);
  }
}

// Each runtime changes routes on its own thread. The updater works for all of them in turn.
TEST_F(SnapshotsOnThreads, TasksOfSeveralThreadsMayChangeRoutesAtTheSameTime) {
  constexpr int rounds = 300;
  first_.reset();
  second_.reset();
  MemoryPlatform platforms[2];
  const std::unique_ptr<Loop> changers[] = {Loop::make(platforms[0], {}).value(),
                                            Loop::make(platforms[1], {}).value()};
  std::atomic<int> finished{0};
  const auto change_on = [&](Loop& changer, const char* path) {
    const auto change = [&]() -> Task<> {
      const Pattern pattern = Pattern::parse(path).value();
      for (int round = 0; round < rounds; ++round) {
        const auto nothing = [] { return Response(Status::ok); };
        const auto added = co_await live_.get(pattern, nothing);
        EXPECT_TRUE(added);
        if (!added) co_return;
        EXPECT_TRUE(co_await live_.remove(*added));
      }
    };
    const Root changing(changer, change());
    while (!changing.finished()) changer.turn(Instant::min());
    finished.fetch_add(1);
  };
  run_on_threads([&] { change_on(*changers[0], "/a"); }, [&] { change_on(*changers[1], "/b"); });
  EXPECT_EQ(finished.load(), 2);
  EXPECT_FALSE(routes_.updater().in_use());
}

}  // namespace
}  // namespace weir::http::route_updater_threads_test

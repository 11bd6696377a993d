// Tests changes of routes and slots on real threads, for the thread sanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "weir/http/router/detail/route_store.hpp"
#include "weir/http/router/detail/route_updater.hpp"
#include "weir/http/router/live_routes.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
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

/// A request of a snapshot that ends when it is stopped, or after some rounds of its loop.
struct BriefRequest : InFlightRequest {
  BriefRequest(RouteSnapshot& snapshot, const Route* route)
      : InFlightRequest(snapshot, route, &stop) {}
  static void stop(InFlightRequest& self) { static_cast<BriefRequest&>(self).stopped = true; }
  bool stopped = false;
};

/// Each core changes routes of its own and one route of all cores, and has requests of both.
class Changes {
 public:
  static constexpr unsigned cores = 3;
  static constexpr int rounds = 15;

  Task<> on_core(Scope& scope) {
    const unsigned core = scope.loop().core();
    std::size_t found = 0;
    for (int part = 0; part < 3; ++part) {
      RouteSnapshot snapshot(scope.loop(), routes_.updater());
      const auto both = [&](Scope& inner) -> Task<> {
        bool over = false;
        inner.spawn(read(snapshot, core, &over, found));
        co_await change(core, part);
        over = true;
      };
      static_cast<void>(co_await with_scope(both));
    }
    EXPECT_GT(found, 0U) << "on core " << core;
  }
  void check() {
    EXPECT_FALSE(routes_.updater().in_use());
    EXPECT_EQ(routes_.size(), 0U);
  }

 private:
  static Pattern pattern_of(unsigned core) {
    return Pattern::parse("/of/" + std::to_string(core)).value();
  }
  static Response nothing() { return Response(Status::ok); }

  /// Has a request of the core's own route and of the common route most of the time.
  static Task<> read(RouteSnapshot& snapshot, unsigned core, const bool* over, std::size_t& found) {
    const TextRequest own("GET /of/" + std::to_string(core));
    const TextRequest common("GET /common");
    RouteMatch match;
    for (unsigned round = 0; !*over; ++round) {
      snapshot.table().match(round % 2 == 0 ? own.head() : common.head(), match);
      if (!match.found()) {
        static_cast<void>(co_await sleep(Duration::zero()));
        continue;
      }
      ++found;
      const Route* const route = match.route();
      BriefRequest request(snapshot, route);
      for (unsigned left = round % 4; left != 0 && !request.stopped; --left) {
        static_cast<void>(co_await sleep(Duration::zero()));
        EXPECT_EQ(route->method, "GET");
      }
    }
  }
  Task<> change(unsigned core, int part) {
    const Pattern own = pattern_of(core);
    for (int round = 0; round < rounds / 3; ++round) {
      const auto added = co_await live_.get(own, nothing);
      EXPECT_TRUE(added);
      const auto common = co_await live_.get("/common", nothing);
      EXPECT_TRUE(common || common.error() == Errc::conflict);
      EXPECT_TRUE(co_await live_.replace(*added, nothing));
      if ((round + part) % 2 == 0) {
        EXPECT_TRUE(co_await live_.remove(*added));
      } else {
        const auto removed = co_await timeout(Duration::zero(), live_.remove(*added));
        EXPECT_TRUE(removed) << "it is removed despite its cancellation";
      }
      if (common) EXPECT_TRUE(co_await live_.remove(*common));
    }
  }

  Router routes_;
  LiveRoutes live_{routes_};
};

TEST(RouteUpdaterOnThreads, ChangesOfSeveralCoresAreAllMade) {
  RuntimeOptions options;
  options.announce = false;
  options.handle_signals = false;
  options.cores = Changes::cores;
  options.pin = false;
  options.backend = BackendChoice::epoll;
  Changes changes;
  {
    Runtime runtime(options);
    const auto body = [&changes](Scope& scope) -> Task<> { return changes.on_core(scope); };
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
  }
  changes.check();
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

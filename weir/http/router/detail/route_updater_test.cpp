// Tests publishing between cores, without HTTP: snapshots with lookups and requests, changes from
// every core, and a cancellation of each change at every step.
#include "weir/http/router/detail/route_updater.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/http/router/live_routes.hpp"
#include "weir/http/test/heap_fixture.hpp"
#include "weir/http/test/http_request.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"

namespace weir::http::route_updater_test {
namespace {

/// A handler of the route "/a". It checks that no request is inside when it is destroyed.
class Version {
 public:
  struct State {
    int inside = 0;
    bool gone = false;
    unsigned gone_on = 99;
  };
  Version(std::vector<State>& states, std::size_t number) : states_(&states), number_(number) {}
  Version(Version&& other) noexcept
      : states_(std::exchange(other.states_, nullptr)), number_(other.number_) {}
  ~Version() {
    if (states_ == nullptr) return;
    State& state = (*states_)[number_];
    EXPECT_EQ(state.inside, 0) << "version " << number_ << " has a request";
    EXPECT_FALSE(std::exchange(state.gone, true));
    if (Loop::current() != nullptr) state.gone_on = Loop::current()->core();
  }
  Response operator()() const { return text(std::to_string(number_)); }

 private:
  std::vector<State>* states_;
  std::size_t number_;
};

/// A request of a snapshot that lasts for some rounds of its loop.
struct Lasting : InFlightRequest {
  Lasting(RouteSnapshot& snapshot, const Route* route) : InFlightRequest(snapshot, route, &stop) {}
  static void stop(InFlightRequest& self, StopReason reason) {
    auto& request = static_cast<Lasting&>(self);
    (reason == StopReason::removal_begins ? request.told : request.stopped) = true;
  }
  bool told = false;  // that the removal has begun
  bool stopped = false;
};

/// Returns the version that `snapshot` answers with now, or nullopt.
std::optional<std::size_t> look_up(const RouteSnapshot& snapshot, RouteMatch& match) {
  TextRequest request("GET /a");
  snapshot.table().match(request.head(), match);
  if (!match.found()) return std::nullopt;
  return std::stoul(std::string(match.respond(request.request()).body().text()));
}

/// Has a snapshot on each of three cores, each with requests all the time. Core 0 replaces the
/// route, core 1 removes it and adds it again, core 2 only reads. Each change may be cancelled.
class Changing {
 public:
  explicit Changing(CancelInjector& injector) : injector_(injector) {
    first_ = routes_.get("/a", Version(states_, 0));
  }

  Task<> on(unsigned core) {
    const Context context = co_await this_context();
    RouteSnapshot snapshot(*context.loop, routes_.updater());
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(read(snapshot, core));
      if (core == 0) co_await injector_.as_target(0, replace());
      if (core == 1) co_await injector_.as_target(1, remove_and_add());
      ++changers_done_;
    };
    std::ignore = co_await with_scope(both);
  }
  bool outside() { return false; }
  void check() {
    EXPECT_EQ(changers_done_, 3U);
    for (const Version::State& each : states_) EXPECT_EQ(each.inside, 0);
  }

 private:
  /// Reads until all changers are done. A found route stays as long as a request holds it.
  Task<> read(RouteSnapshot& snapshot, unsigned core) {
    RouteMatch match;
    std::size_t newest = 0;
    for (unsigned round = 0; changers_done_ < 3; ++round) {
      const auto version = look_up(snapshot, match);
      if (version) {
        EXPECT_FALSE(states_[*version].gone) << "version " << *version << " on core " << core;
        EXPECT_GE(*version, newest);
        newest = *version;
        co_await hold(snapshot, *match.route(), *version, 1 + round % 3);
      } else {
        co_await yield();
      }
    }
  }
  Task<> hold(RouteSnapshot& snapshot, const Route& route, std::size_t version, unsigned rounds) {
    ++states_[version].inside;
    Lasting request(snapshot, &route);
    for (; rounds != 0 && !request.stopped; --rounds) co_await yield();
    EXPECT_FALSE(states_[version].gone);
    --states_[version].inside;
  }

  Task<> replace() {
    for (std::size_t count = 0; count < 2; ++count) {
      injector_.checkpoint();
      const std::size_t version = ++newest_;
      Version handler(states_, version);
      const RouteId id = id_.value_or(first_);
      const auto changed = co_await live_.replace(id, std::move(handler));
      injector_.checkpoint();
      EXPECT_TRUE(changed || states_[version].gone);
    }
  }
  Task<> remove_and_add() {
    injector_.checkpoint();
    const auto removed = co_await live_.remove(first_);
    EXPECT_TRUE(removed);
    injector_.checkpoint();
    const std::size_t version = ++newest_;
    Version handler(states_, version);
    const auto added = co_await live_.get("/a", std::move(handler));
    injector_.checkpoint();
    if (added) id_ = *added;
  }

  CancelInjector& injector_;
  std::vector<Version::State> states_ = std::vector<Version::State>(6);
  Router routes_;
  LiveRoutes live_{routes_};
  RouteId first_;
  std::optional<RouteId> id_;
  std::size_t newest_ = 0;
  unsigned changers_done_ = 0;
};

class RouteUpdaterTest : public MultiCoreTest {};

TEST_F(RouteUpdaterTest, KeepsRoutesInUseUnderCancellationAtEveryStep) {
  EXPECT_GT(sweep<Changing>(2), 20U);
}

/// Adds the route "/a".
Task<Result<RouteId>> add(LiveRoutes live) {
  const auto nothing = [] { return Response(Status::ok); };
  co_return co_await live.get("/a", nothing);
}

TEST_F(RouteUpdaterTest, ChangeDoesNotWaitForADestroyedSnapshot) {
  Router routes;
  std::optional<RouteSnapshot> staying(std::in_place, loop(0), routes.updater());
  std::optional<RouteSnapshot> going(std::in_place, loop(1), routes.updater());
  std::optional<Result<RouteId>> added;
  const auto adding = [&]() -> Task<> { added = co_await add(LiveRoutes(routes)); };
  Root root(loop(0), adding());
  while (loop(0).turn(platform_.now())) {
  }
  EXPECT_FALSE(root.finished()) << "the other loop has not had its turn";
  RouteMatch match;
  TextRequest request("GET /a");
  staying->table().match(request.head(), match);
  EXPECT_TRUE(match.found());
  going->table().match(request.head(), match);
  EXPECT_FALSE(match.found());
  going.reset();
  while (loop(0).turn(platform_.now())) {
  }
  EXPECT_TRUE(root.finished());
  EXPECT_TRUE(added && *added);
  platform_.run_until_idle(loops());  // its notice arrives and finds no snapshot
}

/// Removes a route.
Task<Result<>> remove(LiveRoutes live, RouteId id) {
  co_return co_await live.remove(id);
}

TEST_F(RouteUpdaterTest, RemovalDoesNotWaitForADestroyedSnapshot) {
  Router routes;
  const RouteId id = routes.get("/a", [] { return Response(Status::ok); });
  std::optional<RouteSnapshot> staying(std::in_place, loop(0), routes.updater());
  std::optional<RouteSnapshot> going(std::in_place, loop(1), routes.updater());
  std::optional<Result<>> removed;
  const auto removing = [&]() -> Task<> { removed = co_await remove(LiveRoutes(routes), id); };
  Root root(loop(0), removing());
  while (loop(0).turn(platform_.now())) {
  }
  EXPECT_FALSE(root.finished());
  going.reset();
  while (loop(0).turn(platform_.now())) {
  }
  EXPECT_TRUE(root.finished());
  EXPECT_TRUE(removed && *removed);
  platform_.run_until_idle(loops());
}

TEST_F(RouteUpdaterTest, ChangeWaitsForEverySnapshotThoughOthersComeAndGo) {
  Router routes;
  std::optional<RouteSnapshot> first(std::in_place, loop(0), routes.updater());
  std::optional<RouteSnapshot> late(std::in_place, loop(1), routes.updater());
  std::optional<RouteSnapshot> going(std::in_place, loop(2), routes.updater());
  const auto adding = [&]() -> Task<> { EXPECT_TRUE(co_await add(LiveRoutes(routes))); };
  Root root(loop(0), adding());
  const auto run = [&](unsigned core) {
    while (loop(core).turn(platform_.now())) {
    }
  };
  run(0);
  run(2);
  going.reset();  // it has taken the table over
  run(0);
  EXPECT_FALSE(root.finished()) << "core 1 does not serve the route yet";
  std::optional<RouteSnapshot> fresh(std::in_place, loop(2), routes.updater());
  RouteMatch match;
  TextRequest request("GET /a");
  fresh->table().match(request.head(), match);
  EXPECT_TRUE(match.found()) << "it begins with the newest table";
  fresh.reset();
  run(0);
  EXPECT_FALSE(root.finished());
  late->table().match(request.head(), match);
  EXPECT_FALSE(match.found());
  run(1);
  late->table().match(request.head(), match);
  EXPECT_TRUE(match.found());
  run(0);
  EXPECT_TRUE(root.finished());
}

TEST_F(RouteUpdaterTest, IsInUseWhileThereAreSnapshotsOrChanges) {
  Router routes;
  RouteUpdater& updater = routes.updater();
  EXPECT_FALSE(updater.in_use());
  {
    const RouteSnapshot snapshot(loop(0), updater);
    EXPECT_TRUE(updater.in_use());
  }
  EXPECT_FALSE(updater.in_use());
  bool seen = false;
  const auto adding = [&]() -> Task<> { EXPECT_TRUE(co_await add(LiveRoutes(routes))); };
  const auto look = [&]() -> Task<> {
    seen = updater.in_use();
    co_return;
  };
  Root root(loop(0), adding());
  Root looking(loop(0), look());
  platform_.run_until_idle(loops());
  EXPECT_TRUE(root.finished() && looking.finished());
  EXPECT_TRUE(seen) << "the change is queued";
  EXPECT_FALSE(updater.in_use());
}

TEST_F(RouteUpdaterTest, RequestsAreStoppedUntilTheLastOfThemEnds) {
  Router routes;
  const RouteId id = routes.get("/a", [] { return Response(Status::ok); });
  std::optional<RouteSnapshot> snapshot(std::in_place, loop(1), routes.updater());
  RouteMatch match;
  TextRequest request("GET /a");
  snapshot->table().match(request.head(), match);
  std::optional<Lasting> first(std::in_place, *snapshot, match.route());
  std::optional<Lasting> second(std::in_place, *snapshot, match.route());
  const auto removing = [&]() -> Task<> { EXPECT_TRUE(co_await remove(LiveRoutes(routes), id)); };
  Root root(loop(0), removing());
  platform_.run_until_idle(loops());
  EXPECT_TRUE(first->told && second->told);
  EXPECT_FALSE(first->stopped || second->stopped);
  second.reset();
  platform_.run_until_idle(loops());
  EXPECT_FALSE(root.finished());
  first.reset();
  platform_.run_until_idle(loops());
  EXPECT_TRUE(root.finished());
}

Task<> add_at(Router& routes, std::string path) {
  LiveRoutes live(routes);
  const Pattern pattern = Pattern::parse(path).value();
  const auto nothing = [] { return Response(Status::ok); };
  EXPECT_TRUE(co_await live.get(pattern, nothing));
}

TEST_F(RouteUpdaterTest, ChangesOfTheSameTimeShareATable) {
  Router routes;
  const RouteSnapshot snapshot(loop(1), routes.updater());
  const RouteTable* const before = &snapshot.table();
  std::deque<Root> roots;
  for (const char* const path : {"/x", "/y", "/z"}) {
    roots.emplace_back(loop(0), add_at(routes, path));
  }
  for (const unsigned core : {0U, 1U}) {
    while (loop(core).turn(platform_.now())) {
    }
  }
  const RouteTable* const shared = &snapshot.table();
  EXPECT_NE(shared, before);
  for (const char* const path : {"/x", "/y", "/z"}) {
    EXPECT_NE(shared->find_literal(Method::get, path), nullptr) << path;
  }
  platform_.run_until_idle(loops());
  for (const Root& each : roots) EXPECT_TRUE(each.finished());
  EXPECT_EQ(&snapshot.table(), shared) << "no further table was made";
}

TEST_F(RouteUpdaterTest, ChangesThatComeMeanwhileShareTheNextTable) {
  Router routes;
  const RouteSnapshot snapshot(loop(1), routes.updater());
  const auto run = [this](unsigned core) {
    while (loop(core).turn(platform_.now())) {
    }
  };
  const auto finds = [&snapshot](const char* path) {
    return snapshot.table().find_literal(Method::get, path) != nullptr;
  };
  Root first(loop(0), add_at(routes, "/x"));
  run(0);
  Root second(loop(0), add_at(routes, "/y"));
  Root third(loop(2), add_at(routes, "/z"));
  run(0);
  run(2);
  run(1);
  EXPECT_TRUE(finds("/x"));
  EXPECT_FALSE(finds("/y") || finds("/z")) << "they came after the first table";
  run(0);
  EXPECT_TRUE(first.finished());
  EXPECT_FALSE(second.finished() || third.finished());
  run(1);
  EXPECT_TRUE(finds("/y") && finds("/z"));
  run(0);
  run(2);
  EXPECT_TRUE(second.finished() && third.finished());
}

TEST_F(RouteUpdaterTest, SlotsOfFormerRoutesAreUsedAgain) {
  Router routes;
  std::size_t largest = 0;
  const auto use_slot = [&] {
    RouteMatch match;
    const TextRequest request("GET /a");
    routes.match(request.head(), match);
    ASSERT_TRUE(match.found());
    largest = std::max(largest, match.route()->slot);
  };
  const auto changes = [&]() -> Task<> {
    LiveRoutes live(routes);
    for (int round = 0; round < 20; ++round) {
      const auto added = co_await add(live);
      EXPECT_TRUE(added);
      if (!added) co_return;
      use_slot();
      const auto other = [] { return Response(Status::accepted); };
      EXPECT_TRUE(co_await live.replace(*added, other));
      use_slot();
      EXPECT_TRUE(co_await live.remove(*added));
    }
  };
  run_on_cores({changes});
  EXPECT_EQ(largest, 1U) << "a replacement has its own slot while the old handler exists";
}

TEST_F(RouteUpdaterTest, AReservedRequestNeedsNoMemory) {
  if (!TestHeap::replaced) GTEST_SKIP() << "only a replaced operator new counts allocations";
  Router routes;
  for (int number = 0; number < 100; ++number) {
    const Pattern pattern = Pattern::parse("/" + std::to_string(number)).value();
    EXPECT_TRUE(routes.get(pattern, [] { return Response(Status::ok); }));
  }
  RouteSnapshot unreserved(loop(1), routes.updater());
  RouteSnapshot reserved(loop(1), routes.updater());
  const Route* const route = reserved.table().find_literal(Method::get, "/99");
  ASSERT_NE(route, nullptr);
  const auto allocations_on = [route](RouteSnapshot& snapshot) {
    const std::uint64_t before = TestHeap::news;
    const Lasting request(snapshot, route);
    return TestHeap::news - before;
  };
  EXPECT_GT(allocations_on(unreserved), 0U);
  reserved.reserve(*route);
  EXPECT_EQ(allocations_on(reserved), 0U);
}

TEST_F(RouteUpdaterTest, NoticeForAnEndedLoopIsDropped) {
  Router routes;
  std::optional<RouteSnapshot> snapshot(std::in_place, loop(1), routes.updater());
  const auto adding = [&]() -> Task<> { EXPECT_TRUE(co_await add(LiveRoutes(routes))); };
  Root root(loop(0), adding());
  while (loop(0).turn(platform_.now())) {
  }
  EXPECT_FALSE(root.finished());
  snapshot.reset();
  group_.set_loops({&loop(0), &loop(2)});
  owned_.erase(owned_.begin() + 1);
  platform_.run_until_idle(loops());
  EXPECT_TRUE(root.finished());
}

Task<> come_and_go(LiveRoutes live, unsigned times) {
  for (; times != 0; --times) {
    const std::string path = "/b/" + std::to_string(times) + "/{x:[a-z]+}";
    const Pattern pattern = Pattern::parse(path).value();
    const auto one = [](std::string_view) { return Response(Status::ok); };
    const auto id = co_await live.get(pattern, one);
    EXPECT_TRUE(id);
    EXPECT_TRUE(co_await live.replace(*id, one));
    EXPECT_TRUE(co_await live.remove(*id));
  }
}

TEST_F(RouteUpdaterTest, RemovedRoutesLeaveNoMemoryBehind) {
  Router routes;
  routes.get("/a", [] { return Response(Status::ok); });
  std::array<RouteSnapshot, 2> readers{RouteSnapshot(loop(1), routes.updater()),
                                       RouteSnapshot(loop(2), routes.updater())};
  const auto changes = [&]() -> Task<> { return come_and_go(LiveRoutes(routes), 50); };
  run_on_cores({changes});
  const std::size_t before = allocated_bytes();
  run_on_cores({changes});
  EXPECT_LE(allocated_bytes(), before + 512);
}

TEST_F(RouteUpdaterTest, CompletedChangeHasFreedTheFormerTable) {
  const std::size_t empty = allocated_bytes();
  Router routes;
  for (int i = 0; i < 1000; ++i) {
    const Pattern pattern = Pattern::parse("/a/" + std::to_string(i)).value();
    EXPECT_TRUE(routes.get(pattern, [] { return Response(Status::ok); }));
  }
  const RouteSnapshot reader(loop(1), routes.updater());
  const std::size_t before = allocated_bytes();
  const auto change = [&]() -> Task<> { return come_and_go(LiveRoutes(routes), 1); };
  run_on_cores({change});
  const std::size_t after = allocated_bytes();
  EXPECT_LE(after, before + (before - empty) / 100);
}

}  // namespace
}  // namespace weir::http::route_updater_test

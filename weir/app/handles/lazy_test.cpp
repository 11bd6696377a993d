// Tests of Lazy parameters on one core.
#include "weir/app/handles/lazy.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/app/test/app_fixture.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/timeout.hpp"

namespace weir::lazy_test {
namespace {

using Lines = std::vector<std::string>;

struct Store : JournaledService {
  explicit Store(const Journal& journal, Duration of = 1s)
      : JournaledService(journal, "store"), start_takes(of) {}
  Task<Result<>> start() {
    if (start_takes == Duration::zero()) co_return fail(Errc::limit_reached);
    if (auto slept = co_await sleep(start_takes); !slept) co_return slept;
    write("started");
    co_return {};
  }
  Task<> stop() {
    write("stopping");
    co_return;
  }
  Duration start_takes;
};

/// A service that requests a store in use(), or in its start() if `at_start` is true.
struct User : JournaledService {
  User(const Journal& journal, inject::Lazy<Store> of, Scope& scope, bool early = false)
      : JournaledService(journal, "user"), store(of), spawning(scope), at_start(early) {}
  ~User() { EXPECT_TRUE(waiting == 0) << "a get() outlives its service"; }
  Task<Result<>> start() {
    if (at_start) co_return co_await use();
    co_return {};
  }
  Task<Result<>> use() {
    ++waiting;
    const auto found = co_await store.get();
    --waiting;
    write(found ? "has the store" : "has no store: " + found.error().message());
    if (!found) co_return fail(found.error());
    co_return {};
  }
  inject::Lazy<Store> store;
  Scope& spawning;
  bool at_start;
  int waiting = 0;
};

struct NeedsStore : JournaledService {
  NeedsStore(const Journal& journal, Store&) : JournaledService(journal, "needs store") {}
};

class LazyTest : public AppTest {
 protected:
  /// Adds a user, which use() calls, also after it was made again.
  ServiceId add_user(bool at_start = false) {
    return app_.per_core(
        [this, at_start](const Journal& journal, inject::Lazy<Store> of, Scope& scope) {
          auto made = std::make_unique<User>(journal, of, scope, at_start);
          user_ = made.get();
          return made;
        });
  }
  ServiceId add_store(Duration start_takes = 1s) {
    return app_.per_core(
        [start_takes](const Journal& journal) { return Store(journal, start_takes); });
  }
  /// Adds a service that asks for the store, to which `asking` then points.
  template <class Asking>
  ServiceId add_asking(Asking*& asking) {
    return app_.per_core([&asking](const Journal& journal, inject::Lazy<Store> of, Scope& scope) {
      auto made = std::make_unique<Asking>(journal, of, scope);
      asking = made.get();
      return made;
    });
  }
  Result<> use() { return run(user_->use()); }
  std::size_t count(const std::string& line) const {
    return static_cast<std::size_t>(std::ranges::count(lines_, line));
  }

  User* user_ = nullptr;
};

TEST_F(LazyTest, IsMadeWhenItIsFirstUsedAndStopsAfterItsUser) {
  add_store();
  add_user();
  ASSERT_TRUE(start());
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"user made"}));
  EXPECT_EQ(elapsed(), 0s);
  const auto services = app_.explain().services;
  const auto store = std::ranges::find(services, inject::type<Store>.name, &ServiceReport::name);
  ASSERT_NE(store, services.end());
  EXPECT_EQ(store->state, ServiceState::waiting);
  EXPECT_EQ(store->waits_for, (Lines{"a request through inject::Lazy"}));
  ASSERT_TRUE(use());
  EXPECT_EQ(elapsed(), 1s);
  ASSERT_TRUE(use());
  EXPECT_EQ(elapsed(), 1s);
  EXPECT_EQ(lines_,
            (Lines{"store made", "store started", "user has the store", "user has the store"}));
  stop();
  expect_order({"user gone", "store stopping", "store gone"});
}

TEST_F(LazyTest, AStoppedUserDoesNotWaitForItsLazyDependency) {
  add_store();
  const ServiceId id = add_user();
  ASSERT_TRUE(start());
  ASSERT_TRUE(run(app_.stop(id)));
  const auto services = app_.explain().services;
  const auto user = std::ranges::find(services, id, &ServiceReport::id);
  ASSERT_NE(user, services.end());
  EXPECT_EQ(user->waits_for, (Lines{"App::start(id)"}));
  stop();
}

TEST_F(LazyTest, AnUnusedServiceIsNeverMade) {
  add_store();
  add_user();
  ASSERT_TRUE(start());
  stop();
  EXPECT_EQ(lines_, (Lines{"user made", "user gone"}));
}

TEST_F(LazyTest, ARequiredServiceIsMadeWithoutDelayingTheLazyUser) {
  add_store(5s);
  add_user();
  app_.per_core<NeedsStore>();
  ASSERT_TRUE(start());
  expect_order({"user made", "store started", "needs store made"});
  ASSERT_TRUE(use());
  EXPECT_EQ(elapsed(), 5s);
  stop();
  expect_order({"user gone", "store stopping"});
}

TEST_F(LazyTest, AUserMayWaitInItsStart) {
  add_user(true);
  add_store(2s);
  ASSERT_TRUE(start());
  EXPECT_EQ(lines_, (Lines{"user made", "store made", "store started", "user has the store"}));
  stop();
  expect_order({"user gone", "store stopping"});
}

TEST_F(LazyTest, SimultaneousRequestsGetTheSameInstance) {
  add_store();
  add_user();
  add_user();
  ASSERT_TRUE(start());
  const auto both = [&](Scope& scope) -> Task<> {
    scope.spawn(user_->use());
    scope.spawn(user_->use());
    co_return;
  };
  ASSERT_TRUE(run(with_scope(both)));
  EXPECT_EQ(count("store made"), 1U);
  EXPECT_EQ(count("user has the store"), 2U);
  stop();
}

TEST_F(LazyTest, AFailedStartIsReturnedAsAnError) {
  const ServiceId store = add_store(Duration::zero());
  add_user();
  ASSERT_TRUE(start());
  EXPECT_EQ(use().error(), Errc::limit_reached);
  EXPECT_EQ(use().error(), Errc::limit_reached);
  EXPECT_EQ(count("store made"), 1U) << "there is no automatic retry";
  EXPECT_EQ(run(app_.start(store)).error(), Errc::limit_reached);
  EXPECT_EQ(count("store made"), 2U);
  EXPECT_TRUE(app_.running());
  stop();
}

TEST_F(LazyTest, AUserThatPassesTheErrorOnEndsTheAppsStart) {
  add_store(Duration::zero());
  add_user(true);
  EXPECT_EQ(start().error(), Errc::limit_reached);
  EXPECT_TRUE(has_line("user gone"));
  ASSERT_EQ(app_.errors().size(), 2U);
  EXPECT_NE(app_.errors().front().find("Store on core 0 could not start"), std::string::npos);
  EXPECT_FALSE(app_.running());
}

TEST_F(LazyTest, AFailedServiceThatIsAlsoRequiredEndsTheAppsStart) {
  add_store(Duration::zero());
  add_user();
  app_.per_core<NeedsStore>();
  EXPECT_EQ(start().error(), Errc::limit_reached);
  EXPECT_FALSE(app_.running());
  EXPECT_EQ(has_line("user made"), has_line("user gone"));
  EXPECT_FALSE(has_line("needs store made"));
}

/// A service whose first start takes long. Later starts fail.
struct Fickle : JournaledService {
  Fickle(const Journal& journal, int& of) : JournaledService(journal, "fickle"), starts(of) {}
  Task<Result<>> start() {
    if (++starts == 1) co_return co_await sleep(10s);
    co_return fail(Errc::limit_reached);
  }
  int& starts;
};

TEST_F(LazyTest, AStartMayFailAfterACancelledOne) {
  int starts = 0;
  const ServiceId fickle =
      app_.per_core([&starts](const Journal& journal) { return Fickle(journal, starts); });
  std::error_code error;
  struct Last {};
  app_.per_core([&error](inject::Lazy<Fickle> of, Scope& scope) {
    const auto use = [](inject::Lazy<Fickle> lazy, std::error_code& into) -> Task<> {
      std::ignore = co_await sleep(1s);
      const auto got = co_await lazy.get();
      if (!got) into = got.error();
    };
    scope.spawn(use(of, error));
    return Last();
  });
  ASSERT_TRUE(start());
  platform_.advance(*loop_, 2s);
  EXPECT_EQ(lines_, Lines{"fickle made"});
  ASSERT_TRUE(run(app_.stop(fickle)));
  EXPECT_EQ(elapsed(), 2s) << "the start was cancelled";
  EXPECT_EQ(error, Errc::not_found);
  EXPECT_EQ(run(app_.start(fickle)).error(), Errc::limit_reached);
  EXPECT_EQ(starts, 2);
  stop();
}

TEST_F(LazyTest, CancellingTheWaitDoesNotCancelTheStart) {
  add_store(3s);
  add_user();
  ASSERT_TRUE(start());
  const auto impatient = [&]() -> Task<> {
    auto got = co_await timeout(1s, user_->store.get());
    EXPECT_EQ(got.error(), Errc::timed_out);
  };
  run(impatient());
  EXPECT_EQ(elapsed(), 1s);
  ASSERT_TRUE(use());
  EXPECT_EQ(elapsed(), 3s);
  EXPECT_EQ(count("store made"), 1U);
  stop();
}

TEST_F(LazyTest, AUserStopsBeforeTheServiceAndStartsAgainAfterIt) {
  const ServiceId store = add_store();
  add_user();
  ASSERT_TRUE(start());
  ASSERT_TRUE(use());
  lines_.clear();
  ASSERT_TRUE(run(app_.stop(store)));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"user gone", "store stopping", "store gone"}));
  ASSERT_TRUE(run(app_.start(store)));
  EXPECT_EQ(lines_, (Lines{"store made", "store started", "user made"}));
  const Duration before = elapsed();
  ASSERT_TRUE(use());
  EXPECT_EQ(elapsed(), before) << "available from the beginning";
  stop();
  expect_order({"user gone", "store gone"});
}

TEST_F(LazyTest, AServiceThatHasNotUsedItKeepsRunningAndGetsNotFound) {
  const ServiceId store = add_store();
  add_user();
  app_.per_core<NeedsStore>();
  ASSERT_TRUE(start());
  ASSERT_TRUE(run(app_.stop(store)));
  EXPECT_FALSE(has_line("user gone"));
  EXPECT_EQ(use().error(), Errc::not_found);
  ASSERT_TRUE(run(app_.start(store)));
  ASSERT_TRUE(use());
  ASSERT_TRUE(run(app_.remove(store)));
  EXPECT_TRUE(has_line("user gone"));
  stop();
}

TEST_F(LazyTest, ARemovedUnusedServiceIsNotFound) {
  const ServiceId store = add_store();
  add_user();
  ASSERT_TRUE(start());
  ASSERT_TRUE(run(app_.remove(store)));
  EXPECT_EQ(use().error(), Errc::not_found);
  add_store();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_FALSE(has_line("store made"));
  ASSERT_TRUE(use());
  stop();
}

/// A service that requests a store when it stops.
struct AsksLast : JournaledService {
  AsksLast(const Journal& journal, inject::Lazy<Store> of)
      : JournaledService(journal, "asks last"), store(of) {}
  Task<> stop() {
    const auto got = co_await store.get();
    write(got ? "has the store" : got.error().message());
  }
  inject::Lazy<Store> store;
};

TEST_F(LazyTest, AStoppingServiceGetsOnlyAStoreThatRuns) {
  const std::string closed = "asks last " + make_error_code(Errc::closed).message();
  const ServiceId store = add_store();
  const ServiceId asks = app_.per_core<AsksLast>();
  ASSERT_TRUE(start());
  ASSERT_TRUE(run(app_.stop(asks)));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"asks last made", closed, "asks last gone"}));
  ASSERT_TRUE(run(app_.start(asks)));
  const ServiceId needs = app_.per_core<NeedsStore>();
  ASSERT_TRUE(run(app_.apply()));
  lines_.clear();
  ASSERT_TRUE(run(app_.stop(asks)));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"asks last has the store", "asks last gone"}));
  ASSERT_TRUE(run(app_.remove(asks)));
  app_.per_core<AsksLast>();
  ASSERT_TRUE(run(app_.remove(needs)));
  ASSERT_TRUE(run(app_.remove(store)));
  ASSERT_TRUE(run(app_.apply()));
  lines_.clear();
  stop();
  EXPECT_EQ(lines_, (Lines{closed, "asks last gone"})) << "no service provides it";
}

/// A service whose stop() waits for the answer to an earlier request.
struct AsksBefore : JournaledService {
  AsksBefore(const Journal& journal, inject::Lazy<Store> of, Scope& scope)
      : JournaledService(journal, "asks before"), store(of), spawning(scope) {}
  Task<> ask() {
    const auto got = co_await store.get();
    write(got ? "has the store" : got.error().message());
    answered.set();
  }
  Task<> stop() { std::ignore = co_await answered.wait(); }
  inject::Lazy<Store> store;
  Scope& spawning;
  ManualResetEvent answered;
};

TEST_F(LazyTest, AStopAnswersEarlierRequestsWithClosed) {
  AsksBefore* asking = nullptr;
  add_store(10s);
  const ServiceId id = add_asking(asking);
  ASSERT_TRUE(start());
  asking->spawning.spawn(asking->ask());
  ASSERT_TRUE(run(app_.stop(id)));
  expect_order({"store made", "asks before " + make_error_code(Errc::closed).message(),
                "asks before gone", "store started"});
  stop();
}

/// A service whose start() succeeds although it is cancelled.
struct AsksInStart : AsksBefore {
  using AsksBefore::AsksBefore;
  Task<Result<>> start() {
    std::ignore = co_await sleep(1s);
    co_return {};
  }
};

TEST_F(LazyTest, AStopDuringTheStartAnswersEarlierRequestsWithClosed) {
  AsksInStart* asking = nullptr;
  add_store(10s);
  const ServiceId id = add_asking(asking);
  struct Last {};
  app_.per_core([](inject::Lazy<AsksInStart> of, Scope& scope) {
    const auto use = [](inject::Lazy<AsksInStart> lazy) -> Task<> {
      std::ignore = co_await sleep(1s);
      const auto got = co_await lazy.get();
      EXPECT_FALSE(got);
    };
    scope.spawn(use(of));
    return Last();
  });
  ASSERT_TRUE(start());
  platform_.advance(*loop_, 1500ms);
  const auto body = [&](Scope& tasks) -> Task<> {
    tasks.spawn(asking->ask());
    co_await yield();
    EXPECT_TRUE(co_await app_.stop(id));
  };
  ASSERT_TRUE(run(with_scope(body)));
  expect_order(
      {"store made", "asks before " + make_error_code(Errc::closed).message(), "asks before gone"});
  stop();
}

TEST_F(LazyTest, ALaterRequiringServiceStartsIt) {
  add_store();
  add_user();
  ASSERT_TRUE(start());
  app_.per_core<NeedsStore>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(lines_, (Lines{"user made", "store made", "store started", "needs store made"}));
  stop();
}

TEST_F(LazyTest, ARunningServiceDoesNotStopForANewLazyUser) {
  add_store();
  ASSERT_TRUE(start());
  add_user();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_FALSE(has_line("store gone"));
  ASSERT_TRUE(use());
  stop();
}

TEST_F(LazyTest, StoppingTheServiceEndsTheWait) {
  const ServiceId store = add_store(10s);
  add_user();
  ASSERT_TRUE(start());
  user_->spawning.spawn(user_->use());
  ASSERT_TRUE(run(app_.stop(store)));
  EXPECT_EQ(lines_.back(), "user has no store: " + make_error_code(Errc::not_found).message());
  EXPECT_FALSE(has_line("user gone"));
  stop();
}

TEST_F(LazyTest, AWaitingUserMayStop) {
  add_store(10s);
  const ServiceId user = add_user();
  ASSERT_TRUE(start());
  user_->spawning.spawn(user_->use());
  ASSERT_TRUE(run(app_.stop(user)));
  expect_order({"store made", "user gone", "store started"});
  ASSERT_TRUE(run(app_.start(user)));
  ASSERT_TRUE(use());
  EXPECT_EQ(count("store made"), 1U);
  stop();
}

TEST_F(LazyTest, TheAppMayStopDuringAWait) {
  add_store(10s);
  add_user();
  ASSERT_TRUE(start());
  user_->spawning.spawn(user_->use());
  stop();
  EXPECT_EQ(elapsed(), 0s);
  expect_order({"store made", "user gone"});
  EXPECT_TRUE(has_line("store gone"));
}

// --- providers and filters -----------------------------------------------------------------------

struct Hen;
struct Egg {
  explicit Egg(inject::Lazy<Hen> of) : hen(of) {}
  inject::Lazy<Hen> hen;
};
struct Hen {
  explicit Hen(Egg&) {}
};

TEST_F(LazyTest, ACycleThroughALazyIsReported) {
  app_.per_core<Hen>();
  app_.per_core<Egg>();
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_TRUE(app_.errors().front().starts_with("dependency cycle: ")) << app_.errors().front();
}

TEST_F(LazyTest, ExactlyOneProviderIsRequired) {
  add_user();
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("no service provides it"), std::string::npos);
  add_store();
  add_store();
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("several"), std::string::npos);
}

enum class Speed { slow, fast };
struct IsFast {
  bool operator()(Speed speed) const { return speed == Speed::fast; }
};
struct Engine {
  explicit Engine(int of) : power(of) {}
  int power;
};
/// A shared service with a Lazy for shared services.
struct Car {
  explicit Car(inject::Lazy<const Engine, IsFast> of) : engine(of) {}
  Task<Result<int>> power() const {
    WEIR_CO_TRY(const auto found, co_await engine.get());
    co_return found.get().power;
  }
  inject::Lazy<const Engine, IsFast> engine;
};

TEST_F(LazyTest, AFilterSelectsTheProvider) {
  app_.shared([] { return Engine(1); }, {.properties = {Speed::slow}});
  app_.shared([] { return Engine(2); }, {.properties = {Speed::fast}});
  app_.shared<Car>();
  const Car* car = nullptr;
  struct Last {};
  app_.per_core([&car](const Car& of) {
    car = &of;
    return Last();
  });
  ASSERT_TRUE(start());
  const Result<int> power = run(car->power());
  ASSERT_TRUE(power);
  EXPECT_EQ(*power, 2);
  stop();
}

struct Tool : JournaledService {
  Tool(const Journal& journal, inject::Requester requester)
      : JournaledService(
            journal,
            "tool of " + std::string(requester.name().substr(requester.name().rfind(':') + 1))) {}
};
struct Craftsman : JournaledService {
  Craftsman(const Journal& journal, inject::Lazy<Tool> of)
      : JournaledService(journal, "craftsman"), tool(of) {}
  Task<Result<>> work() {
    WEIR_CO_TRY(co_await tool.get());
    co_return {};
  }
  inject::Lazy<Tool> tool;
};

TEST_F(LazyTest, AnInstanceByRequestIsMadeAtTheFirstUse) {
  app_.per_core<Tool>();
  Craftsman* craftsman = nullptr;
  const ServiceId id = app_.per_core([&craftsman](const Journal& journal, inject::Lazy<Tool> of) {
    auto made = std::make_unique<Craftsman>(journal, of);
    craftsman = made.get();
    return made;
  });
  ASSERT_TRUE(start());
  EXPECT_EQ(lines_, (Lines{"craftsman made"}));
  ASSERT_TRUE(run(craftsman->work()));
  EXPECT_EQ(lines_.back(), "tool of Craftsman made");
  lines_.clear();
  ASSERT_TRUE(run(app_.stop(id)));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"craftsman gone", "tool of Craftsman gone"}));
  ASSERT_TRUE(run(app_.start(id)));
  EXPECT_EQ(lines_, (Lines{"tool of Craftsman made", "craftsman made"}))
      << "it has used the tool before";
  ASSERT_TRUE(run(craftsman->work()));
  stop();
}

struct SlowTool : JournaledService {
  SlowTool(const Journal& journal, inject::Requester) : JournaledService(journal, "slow tool") {}
  Task<Result<>> start() { co_return co_await sleep(5s); }
};

TEST_F(LazyTest, ARequestForAnInstanceOfItsOwnMayBeRepeatedAfterAStop) {
  app_.per_core<SlowTool>();
  std::size_t uses = 0;
  struct Apprentice {};
  const ServiceId id = app_.per_core([&uses](inject::Lazy<SlowTool> of, Scope& scope) {
    const auto use = [](inject::Lazy<SlowTool> tool, std::size_t& count) -> Task<> {
      std::ignore = co_await sleep(1s);
      if (co_await tool.get()) ++count;
    };
    scope.spawn(use(of, uses));
    return Apprentice();
  });
  ASSERT_TRUE(start());
  platform_.advance(*loop_, 2s);
  EXPECT_EQ(lines_, Lines{"slow tool made"});
  ASSERT_TRUE(run(app_.stop(id)));
  EXPECT_EQ(elapsed(), 2s) << "the start of the tool was cancelled";
  EXPECT_EQ(lines_, (Lines{"slow tool made", "slow tool gone"}));
  ASSERT_TRUE(run(app_.start(id)));
  platform_.advance(*loop_, 7s);
  EXPECT_EQ(uses, 1U);
  EXPECT_EQ(count("slow tool made"), 2U);
  stop();
}

// --- replacement ---------------------------------------------------------------------------------

TEST_F(LazyTest, AReplacementIncludesServicesThatHaveUsedIt) {
  const ServiceId old = add_store();
  add_user();
  ASSERT_TRUE(start());
  ASSERT_TRUE(use());
  lines_.clear();
  const ServiceId fresh = add_store();
  ASSERT_TRUE(run(app_.replace(old, fresh)));
  expect_order({"store made", "user made", "user gone", "store gone"});
  ASSERT_TRUE(use());
  EXPECT_EQ(app_.explain().services.size(), 3U);
  stop();
}

TEST_F(LazyTest, AFailingReplacementChangesNothing) {
  const ServiceId old = add_store();
  add_user();
  ASSERT_TRUE(start());
  ASSERT_TRUE(use());
  for (const ReplacePolicy how : {ReplacePolicy::side_by_side, ReplacePolicy::exclusive}) {
    const ServiceId fresh =
        app_.per_core([](const Journal& journal) { return Store(journal, Duration::zero()); },
                      {.replace_policy = how});
    EXPECT_EQ(run(app_.replace(old, fresh)).error(), Errc::limit_reached);
    EXPECT_EQ(app_.errors().size(), 1U);
    for (const ServiceReport& each : app_.explain().services) {
      EXPECT_EQ(each.state, ServiceState::running) << each.name;
    }
    EXPECT_EQ(app_.explain().services.size(), 3U);
  }
  stop();
}

TEST_F(LazyTest, AReplacementKeepsServicesThatHaveNotUsedIt) {
  const ServiceId old = add_store();
  add_user();
  app_.per_core<NeedsStore>();
  ASSERT_TRUE(start());
  lines_.clear();
  const ServiceId fresh = add_store();
  ASSERT_TRUE(run(app_.replace(old, fresh)));
  EXPECT_FALSE(has_line("user gone"));
  EXPECT_FALSE(has_line("user made"));
  ASSERT_TRUE(use());
  ASSERT_TRUE(run(app_.stop(fresh)));
  EXPECT_TRUE(has_line("user gone")) << "it has used the new one";
  stop();
}

TEST_F(LazyTest, AReplacementMayPrecedeTheFirstUse) {
  ServiceId store = add_store();
  add_user();
  ASSERT_TRUE(start());
  lines_.clear();
  for (const ReplacePolicy how : {ReplacePolicy::side_by_side, ReplacePolicy::exclusive}) {
    const ServiceId fresh = app_.per_core([](const Journal& journal) { return Store(journal, 2s); },
                                          {.replace_policy = how});
    EXPECT_TRUE(run(app_.replace(store, fresh)));
    EXPECT_TRUE(app_.errors().empty());
    EXPECT_FALSE(app_.contains(store));
    EXPECT_TRUE(lines_.empty()) << "no service has requested it";
    store = fresh;
  }
  ASSERT_TRUE(use());
  EXPECT_EQ(elapsed(), 2s);
  EXPECT_EQ(lines_, (Lines{"store made", "store started", "user has the store"}));
  stop();
}

// --- unrelated changes ---------------------------------------------------------------------------

struct Slow : JournaledService {
  explicit Slow(const Journal& journal) : JournaledService(journal, "slow") {}
  Task<Result<>> start() { co_return co_await sleep(1s); }
};

class LazyMeanwhile : public LazyTest {
 protected:
  LazyMeanwhile() {
    store_ = add_store(Duration::zero());
    add_user();
    slow_ = app_.per_core<Slow>();
  }
  /// Makes a change, during which a user requests a store that cannot start.
  Result<> change(Task<Result<>> changing) {
    Result<> changed;
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(ask_later());
      changed = co_await std::move(changing);
    };
    EXPECT_TRUE(run(with_scope(both)));
    EXPECT_TRUE(has_line("user has no store: " + make_error_code(Errc::limit_reached).message()));
    lines_.clear();
    return changed;
  }
  Task<> ask_later() {
    std::ignore = co_await sleep(500ms);
    EXPECT_EQ((co_await user_->use()).error(), Errc::limit_reached);
  }
  ServiceId store_;
  ServiceId slow_;
};

TEST_F(LazyMeanwhile, AFailedLazyStartDoesNotFailAReplacement) {
  ASSERT_TRUE(start());
  const ServiceId fresh = app_.per_core<Slow>();
  EXPECT_TRUE(change(app_.replace(slow_, fresh)));
  EXPECT_TRUE(app_.errors().empty());
  EXPECT_TRUE(run(app_.stop(store_)));
  EXPECT_EQ(run(app_.start(store_)).error(), Errc::limit_reached) << "its own start fails";
  EXPECT_EQ(app_.errors().size(), 1U);
  stop();
}

TEST_F(LazyMeanwhile, AFailedLazyStartOfOneUserOfSeveralDoesNotFailAChange) {
  add_user();
  add_user();
  ASSERT_TRUE(start());
  app_.per_core<Slow>();
  EXPECT_TRUE(change(app_.apply()));
  EXPECT_TRUE(app_.errors().empty());
  stop();
}

TEST_F(LazyMeanwhile, AFailedLazyStartDoesNotFailAnExclusiveReplacement) {
  ASSERT_TRUE(start());
  const ServiceId fresh = app_.per_core<Slow>({.replace_policy = ReplacePolicy::exclusive});
  EXPECT_TRUE(change(app_.replace(slow_, fresh)));
  EXPECT_TRUE(app_.errors().empty());
  stop();
}

TEST_F(LazyMeanwhile, AFailedLazyStartDoesNotFailAnApply) {
  ASSERT_TRUE(start());
  app_.per_core<Slow>();
  EXPECT_TRUE(change(app_.apply()));
  EXPECT_TRUE(app_.errors().empty());
  stop();
}

}  // namespace
}  // namespace weir::lazy_test

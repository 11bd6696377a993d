// Tests of fakes, and of the placements and options of registered services.
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/app/test/app_fixture.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::app_fake_test {
namespace {

enum class Region { europe, asia };
struct InAsia {
  bool operator()(Region region) const { return region == Region::asia; }
};
struct Level {
  int value;
};

struct Store {
  virtual ~Store() = default;
  virtual int value() const { return 1; }
};
struct Postgres : Store {};
struct FakeStore : Store {
  int value() const override { return 2; }
  Task<> stop() { std::ignore = co_await sleep_until(never); }
};
struct Other {};

using FakeTest = AppTest;

TEST_F(FakeTest, ReplacesAllServicesOfItsType) {
  const ServiceId first =
      app_.per_core<Postgres, Store>({.properties = {Region::asia}, .stop_timeout = 4s});
  const ServiceId second = app_.per_core<Store>();
  const ServiceId other = app_.per_core<Other>();
  const ServiceId fake = app_.fake<Store>([] { return FakeStore(); });
  EXPECT_FALSE(app_.contains(first));
  EXPECT_FALSE(app_.contains(second));
  EXPECT_TRUE(app_.contains(other));
  EXPECT_TRUE(app_.contains(fake));
  std::vector<int> seen;
  struct Last {};
  app_.per_core([&seen](Store& store, inject::Where<Store, InAsia> asian, Other&) {
    seen = {store.value(), &store == &*asian};
    return Last();
  });
  ASSERT_TRUE(start());
  EXPECT_EQ(seen, (std::vector<int>{2, 1})) << "it has the properties of the first";
  stop();
  EXPECT_EQ(elapsed(), 4s) << "it has the stop timeout of the first";
}

TEST_F(FakeTest, MayBeOfTheSameType) {
  app_.shared<Store>();
  const ServiceId fake = app_.fake<Store>([] { return Store(); });
  ASSERT_TRUE(start());
  const auto services = app_.explain().services;
  ASSERT_EQ(services.size(), 2U);
  EXPECT_EQ(services[1].id, fake);
  EXPECT_EQ(services[1].placement, Placement::shared);
  stop();
}

TEST_F(FakeTest, MayFollowTheRemovalOfAnotherService) {
  const ServiceId other = app_.per_core<Other>();
  const ServiceId store = app_.per_core<Store>();
  ASSERT_TRUE(run(app_.remove(other)));
  const ServiceId fake = app_.fake<Store>([] { return FakeStore(); });
  EXPECT_FALSE(app_.contains(store));
  EXPECT_TRUE(app_.contains(fake));
}

struct OtherStore : Store {
  int value() const override { return 3; }
};

TEST_F(FakeTest, ReplacesAServiceBetweenTwoRuns) {
  const ServiceId real = app_.per_core<Postgres, Store>();
  std::vector<int> seen;
  struct Last {};
  app_.per_core([&seen](const Store& store) {
    seen.push_back(store.value());
    return Last();
  });
  ASSERT_TRUE(start());
  stop();
  app_.fake<Store>([] { return OtherStore(); });
  EXPECT_FALSE(app_.contains(real));
  ASSERT_TRUE(start());
  EXPECT_EQ(seen, (std::vector<int>{1, 3}));
  EXPECT_EQ(app_.explain().services.size(), 3U) << "the journal, the fake and its dependant";
  stop();
}

TEST_F(FakeTest, DoesNotReplaceAScopedService) {
  const ServiceId scoped = app_.scoped<Other, Store>();
  EXPECT_THROW(app_.fake<Store>([] { return FakeStore(); }), std::invalid_argument);
  const ServiceId real = app_.per_core<Postgres, Store>();
  app_.fake<Store>([] { return FakeStore(); });
  EXPECT_TRUE(app_.contains(scoped));
  EXPECT_FALSE(app_.contains(real));
}

TEST_F(FakeTest, NeedsAServiceOfItsType) {
  const ServiceId other = app_.per_core<Other>();
  std::string error;
  try {
    app_.fake<Store>([] { return FakeStore(); });
  } catch (const std::invalid_argument& thrown) {
    error = thrown.what();
  }
  EXPECT_EQ(error, "App::fake(): no service provides " + std::string(inject::type<Store>.name));
  EXPECT_TRUE(app_.contains(other));
}

/// Runs `body()` on core 0 of a runtime of two cores in memory.
template <class Body>
void run_on_two(const Body& body) {
  MemoryPlatform platform({.cores = 2});
  RuntimeOptions options;
  options.cores = 2;
  options.pin = false;
  options.announce = false;
  Runtime runtime(platform, options);
  const auto on_first = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() == 0) co_await body();
  };
  EXPECT_EQ(runtime.run_on_each_core(on_first), 0);
}

TEST(FakeOnCores, HasTheCoreOfTheFirst) {
  App app;
  app.on_core<Store>(1);
  app.per_core<Postgres, Store>();
  app.fake<Store>([] { return Store(); });
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE(co_await app.start());
    const auto services = app.explain().services;
    EXPECT_EQ(services.size(), 1U);
    EXPECT_EQ(services.at(0).placement, Placement::on_core);
    EXPECT_EQ(services.at(0).core, 1U);
    co_await app.stop();
  };
  run_on_two(body);
}

struct NeedsOther {
  explicit NeedsOther(Other&) {}
};

TEST(OnCore, OtherCoresCannotTakeTheService) {
  App app;
  app.on_core<Other>(1);
  app.per_core<NeedsOther>();
  const auto body = [&]() -> Task<> {
    const Result<> started = co_await app.start();
    EXPECT_EQ(started.error(), Errc::bad_configuration);
  };
  run_on_two(body);
  const std::string needs(inject::type<NeedsOther>.name);
  EXPECT_EQ(
      app.errors(),
      (std::vector<std::string>{needs + " requires " + std::string(inject::type<Other>.name) +
                                ", which is on core 1, but " + needs + " is itself on core 0"}));
}

struct Numbered : Store {
  explicit Numbered(int its_number) : number(its_number) {}
  int value() const override { return number; }
  int number;
};

TEST(OnCore, EachCoreTakesTheServiceOfItsOwn) {
  App app;
  std::vector<int> values(2);
  struct Last {};
  app.per_core([&values](Loop& loop, Store& store) {
    values[loop.core()] = store.value();
    return Last();
  });
  app.on_core<Store>(1, [] { return Numbered(8); });
  app.on_core<Store>(0, [] { return Numbered(7); });
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE(co_await app.start());
    co_await app.stop();
  };
  run_on_two(body);
  EXPECT_EQ(values, (std::vector<int>{7, 8}));
}

/// A service that exists once.
struct Only {
  explicit Only(int& of) : alive(of) { EXPECT_EQ(alive++, 0); }
  ~Only() { --alive; }
  Only(const Only&) = delete;
  Only& operator=(const Only&) = delete;
  int& alive;
};

TEST(OnCore, AServiceOfAnotherCoreReplacesExclusively) {
  App app;
  int alive = 0;
  const auto only = [&alive] { return std::make_unique<Only>(alive); };
  const ServiceId old = app.on_core(0, only);
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE(co_await app.start());
    const ServiceId fresh = app.on_core(1, only);
    EXPECT_TRUE(co_await app.replace(old, fresh));
    EXPECT_EQ(app.explain().services.at(0).core, 1U);
    EXPECT_EQ(alive, 1);
    co_await app.stop();
  };
  run_on_two(body);
}

struct SeesStores {
  SeesStores(Loop& loop, inject::All<Store> stores, inject::Optional<Store> store,
             std::vector<std::size_t>& counts) {
    counts[loop.core()] = stores.size();
    EXPECT_EQ(stores.empty(), !store);
    stores.on_change([&counts, &loop, stores] { counts[loop.core()] = stores.size(); });
  }
};

TEST(OnCore, OnlyServicesOfThatCoreSeeTheService) {
  App app;
  std::vector<std::size_t> counts(2, 7);
  app.on_core<Store>(1);
  app.per_core([&counts](Loop& loop, inject::All<Store> stores, inject::Optional<Store> store) {
    return SeesStores(loop, stores, store, counts);
  });
  // Another core receives providers a little later, in the order of all commands to that core.
  const auto seen = [&counts] { return counts; };
  const std::vector<std::size_t> one{0, 1};
  const std::vector<std::size_t> two{0, 2};
  const std::vector<std::size_t> three{1, 2};
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE(co_await app.start());
    EXPECT_EQ(co_await on_core(1, seen), one);
    app.on_core<Postgres, Store>(1);
    EXPECT_TRUE(co_await app.apply());
    EXPECT_EQ(co_await on_core(1, seen), two) << "also a service that is added later";
    app.on_core<Postgres, Store>(0);
    EXPECT_TRUE(co_await app.apply());
    EXPECT_EQ(co_await on_core(1, seen), three);
    co_await app.stop();
  };
  run_on_two(body);
}

Task<std::size_t> service_count(const App* app) {
  const Explanation explanation = co_await app->explain_async();
  co_return explanation.services.size();
}

TEST(ExplainAsync, WorksOnEachCoreAndIsEmptyAfterTheStop) {
  App app;
  app.per_core<Other>();
  std::vector<std::size_t> sizes;
  const auto count = [&app] { return service_count(&app); };
  const auto body = [&]() -> Task<> {
    sizes.push_back(co_await count());
    EXPECT_TRUE(co_await app.start());
    sizes.push_back(co_await count());
    sizes.push_back(co_await on_core(1, count));
    co_await app.stop();
    sizes.push_back(co_await count());
  };
  run_on_two(body);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{0, 2, 2, 0}));
}

TEST(ExplainAsync, IsNotAffectedByACancellation) {
  App app;
  app.per_core<Other>();
  std::vector<std::size_t> sizes;
  const auto count = [&app] { return service_count(&app); };
  const auto count_cancelled = [&]() -> Task<std::size_t> {
    CancelSource cancel;
    cancel.cancel();
    Context context = co_await this_context();
    context.cancel = &cancel;
    auto counting = in_context(context, count());
    co_return co_await std::move(counting);
  };
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE(co_await app.start());
    sizes.push_back(co_await count_cancelled());
    sizes.push_back(co_await on_core(1, count_cancelled));
    co_await app.stop();
  };
  run_on_two(body);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 2}));
}

using OnCoreTest = AppTest;

struct Curious {
  Curious(App& app, std::vector<ServiceState>& states) : app_(app), states_(states) {}
  Task<Result<>> start() {
    const Explanation explanation = co_await app_.explain_async();
    for (const ServiceReport& each : explanation.services) states_.push_back(each.state);
    co_return {};
  }
  App& app_;
  std::vector<ServiceState>& states_;
};

TEST_F(OnCoreTest, AStartingServiceMayAskForAnExplanation) {
  std::vector<ServiceState> states;
  app_.per_core([&states](App& app, const Journal&) { return Curious(app, states); });
  ASSERT_TRUE(start());
  EXPECT_EQ(states, (std::vector<ServiceState>{ServiceState::running, ServiceState::starting}));
  stop();
}

struct ScopedStore : Store {};

TEST_F(OnCoreTest, EachRegistrationHasItsPlacementAndItsOptions) {
  const ServiceOptions asian{.properties = {Region::asia}};
  const auto make = [] { return Store(); };
  app_.shared<Store>(asian);
  app_.shared(make, asian);
  app_.per_core<Store>(asian);
  app_.per_core(make, asian);
  app_.on_core<Store>(0, asian);
  app_.on_core(0, make, asian);
  app_.per_core<Store>();
  app_.scoped<Other, ScopedStore>(asian);
  app_.scoped<Other>([] { return Level{3}; }, asian);
  std::size_t count = 0;
  bool scoped = false;
  struct Last {};
  app_.per_core([&](inject::All<const Store, InAsia> stores, inject::Scoped<Other> scopes) {
    const auto look = [&count, &scoped, stores, scopes] {
      count = stores.size();
      Other root;
      auto scope = scopes.open(root);
      scoped = scope.get<ScopedStore, InAsia>() && scope.get<Level, InAsia>();
    };
    stores.on_change(look);
    scopes.on_change(look);
    look();
    return Last();
  });
  ASSERT_TRUE(start());
  EXPECT_EQ(count, 6U);
  EXPECT_TRUE(scoped);
  std::vector<Placement> placements;
  for (const ServiceReport& each : app_.explain().services) placements.push_back(each.placement);
  placements.resize(8);
  using enum Placement;
  EXPECT_EQ(placements, (std::vector<Placement>{shared, shared, shared, per_core, per_core, on_core,
                                                on_core, per_core}))
      << "the journal is the first";
  stop();
}

TEST_F(OnCoreTest, TheCoreIsAtMost65535) {
  EXPECT_THROW(app_.on_core<Other>(65536), std::out_of_range);
  app_.on_core<Other>(65535);
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  EXPECT_EQ(app_.errors(),
            (std::vector<std::string>{std::string(inject::type<Other>.name) +
                                      " is registered on core 65535, but the number of cores is "
                                      "1"}));
}

TEST_F(OnCoreTest, TheCoreIsBelowTheNumberOfCores) {
  app_.on_core<Other>(0);
  const ServiceId beyond = app_.on_core<Other>(1);
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  EXPECT_EQ(app_.errors().size(), 1U);
  EXPECT_TRUE(run(app_.remove(beyond)));
  EXPECT_TRUE(app_.errors().empty()) << "they are those of the last change";
  EXPECT_TRUE(start());
  EXPECT_TRUE(app_.errors().empty()) << "they are those of the last start";
  stop();
}

TEST(Properties, HaveAtMostOneValueOfEachType) {
  const Properties none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.get<Region>(), nullptr);
  const Properties two{Region::asia, Level{3}};
  EXPECT_FALSE(two.empty());
  ASSERT_NE(two.get<Region>(), nullptr);
  EXPECT_EQ(*two.get<Region>(), Region::asia);
  ASSERT_NE(two.get<Level>(), nullptr);
  EXPECT_EQ(two.get<Level>()->value, 3);
  EXPECT_EQ(two.get<int>(), nullptr);
  const Properties copy = two;
  EXPECT_EQ(copy.get<Level>(), two.get<Level>()) << "copies share their values";
}

TEST(ServiceIdTest, MatchesOnlyItsOwnService) {
  const ServiceId id(3, 7);
  EXPECT_EQ(id.index(), 3U);
  EXPECT_EQ(id.serial(), 7U);
  EXPECT_EQ(id, ServiceId(3, 7));
  EXPECT_NE(id, ServiceId(3, 8));
  EXPECT_NE(id, ServiceId(4, 7));
  EXPECT_NE(ServiceId(), ServiceId(0, 0));
  EXPECT_FALSE(App().contains(ServiceId()));
}

}  // namespace
}  // namespace weir::app_fake_test

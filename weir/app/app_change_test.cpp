// Tests of a running app whose services are stopped, added and removed.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/app/test/app_fixture.hpp"
#include "weir/task/combinators.hpp"

namespace weir::app_change_test {
namespace {

using Lines = std::vector<std::string>;

struct Store : JournaledService {
  explicit Store(const Journal& journal) : JournaledService(journal, "store") {}
  Task<Result<>> start() {
    std::ignore = co_await sleep(1s);
    co_return {};
  }
  Task<> stop() {
    write("stopping");
    std::ignore = co_await sleep(1s);
  }
};
struct Cache : JournaledService {
  Cache(const Journal& journal, Store&) : JournaledService(journal, "cache") {}
};
struct Web : JournaledService {
  Web(const Journal& journal, Cache&) : JournaledService(journal, "web") {}
};
struct Other : JournaledService {
  explicit Other(const Journal& journal) : JournaledService(journal, "other") {}
};

class AppChange : public AppTest {
 protected:
  void start_all() {
    ASSERT_TRUE(start());
    lines_.clear();
  }
};

TEST_F(AppChange, DependantsStopFirstAndStartAgain) {
  const ServiceId store = app_.per_core<Store>();
  app_.per_core<Cache>();
  app_.per_core<Web>();
  app_.per_core<Other>();
  start_all();
  ASSERT_TRUE(run(app_.stop(store)));
  EXPECT_EQ(std::exchange(lines_, {}),
            (Lines{"web gone", "cache gone", "store stopping", "store gone"}));
  ASSERT_TRUE(run(app_.stop(store)));
  EXPECT_TRUE(lines_.empty());
  ASSERT_TRUE(run(app_.start(store)));
  EXPECT_EQ(lines_, (Lines{"store made", "cache made", "web made"}));
  ASSERT_TRUE(run(app_.start(store)));
  stop();
}

TEST_F(AppChange, DependantsWaitForRemovedProviders) {
  const ServiceId store = app_.per_core<Store>();
  app_.per_core<Cache>();
  start_all();
  ASSERT_TRUE(run(app_.remove(store)));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"cache gone", "store stopping", "store gone"}));
  EXPECT_EQ(run(app_.stop(store)).error(), Errc::not_found);
  EXPECT_EQ(run(app_.start(store)).error(), Errc::not_found);
  EXPECT_EQ(run(app_.remove(store)).error(), Errc::not_found);
  const ServiceId again = app_.per_core<Store>();
  EXPECT_NE(again, store);
  EXPECT_EQ(run(app_.stop(store)).error(), Errc::not_found) << "the same index, another service";
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(lines_, (Lines{"store made", "cache made"}));
  stop();
}

/// Accepts every service, so that the one that was registered first is selected.
struct Any {
  bool operator()(const Properties&) const { return true; }
};
struct Chooser : JournaledService {
  Chooser(const Journal& journal, inject::Where<Store, Any>)
      : JournaledService(journal, "chooser") {}
};
struct CircularStore : Store {
  CircularStore(const Journal& journal, Chooser&) : Store(journal) {}
};

TEST_F(AppChange, DependantsTakeAnotherServiceThatProvidesTheType) {
  const ServiceId store = app_.per_core<Store>();
  app_.per_core<Store>();
  app_.per_core<Chooser>();
  start_all();
  ASSERT_TRUE(run(app_.remove(store)));
  EXPECT_EQ(lines_, (Lines{"chooser gone", "store stopping", "store gone", "chooser made"}));
  stop();
}

TEST_F(AppChange, AServiceStaysIfADependantMayNotTakeTheOtherOne) {
  const ServiceId store = app_.per_core<Store>();
  app_.shared<Store>();
  app_.per_core<Chooser>();
  start_all();
  EXPECT_EQ(run(app_.remove(store)).error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("shared (take it as const)"), std::string::npos);
  EXPECT_EQ(platform_.logged().back(), "weir: " + app_.errors().front());
  EXPECT_TRUE(lines_.empty()) << "nothing has changed";
  EXPECT_TRUE(app_.contains(store));
  ASSERT_TRUE(run(app_.apply())) << "later changes are not affected";
  stop();
}

TEST_F(AppChange, ServicesAreAddedWhileADependantWaitsForAnotherPlacement) {
  struct Reader : JournaledService {
    Reader(const Journal& journal, const Store&) : JournaledService(journal, "reader") {}
  };
  const ServiceId store = app_.shared<Store>();
  app_.per_core<Store>();
  app_.shared<Reader>();
  start_all();
  ASSERT_TRUE(run(app_.remove(store))) << "the reader waits for a shared store";
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"reader gone", "store stopping", "store gone"}));
  app_.per_core<Other>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(lines_, (Lines{"other made"}));
  stop();
}

TEST_F(AppChange, AServiceStaysIfItsRemovalWouldCloseACycle) {
  const ServiceId store = app_.per_core<Store>();
  app_.per_core<CircularStore, Store>();
  app_.per_core<Chooser>();
  start_all();
  EXPECT_EQ(run(app_.remove(store)).error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("dependency cycle"), std::string::npos);
  EXPECT_TRUE(lines_.empty()) << "nothing has changed";
  stop();
}

TEST_F(AppChange, AnAddedServiceMayWait) {
  start_all();
  app_.per_core<Cache>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_TRUE(lines_.empty());
  app_.per_core<Store>();
  EXPECT_TRUE(lines_.empty()) << "not before apply()";
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(lines_, (Lines{"store made", "cache made"}));
  stop();
}

TEST_F(AppChange, ALaterDependantDoesNotSeeARemovedService) {
  const ServiceId store = app_.per_core<Store>();
  start_all();
  ASSERT_TRUE(run(app_.remove(store)));
  lines_.clear();
  app_.per_core<Store>();
  app_.per_core<Cache>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(lines_, (Lines{"store made", "cache made"}));
  stop();
}

TEST_F(AppChange, AnInvalidServiceIsNotAdded) {
  app_.per_core<Store>();
  app_.per_core<Cache>();
  start_all();
  app_.per_core<Store>();
  app_.per_core<Other>();
  EXPECT_EQ(run(app_.apply()).error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("several"), std::string::npos);
  EXPECT_EQ(platform_.logged().back(), "weir: " + app_.errors().front());
  EXPECT_TRUE(lines_.empty());
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_TRUE(lines_.empty());
  stop();
  EXPECT_EQ(lines_, (Lines{"cache gone", "store stopping", "store gone"}));
}

struct Moody {
  explicit Moody(const std::function<bool()>& good) : good_(good) {}
  Task<Result<>> start() {
    if (!good_()) co_return fail(Errc::limit_reached);
    co_return {};
  }
  std::function<bool()> good_;
};
struct NeedsMoody : JournaledService {
  NeedsMoody(const Journal& journal, Moody&) : JournaledService(journal, "needs moody") {}
};

TEST_F(AppChange, ALaterFailureStopsOneServiceOnly) {
  bool good = true;
  const ServiceId moody = app_.per_core([&good] { return Moody([&good] { return good; }); });
  app_.per_core<NeedsMoody>();
  app_.per_core<Other>();
  start_all();
  ASSERT_TRUE(run(app_.stop(moody)));
  good = false;
  EXPECT_EQ(run(app_.start(moody)).error(), Errc::limit_reached);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("NeedsMoody"), std::string::npos);
  EXPECT_EQ(lines_, (Lines{"needs moody gone"}));
  EXPECT_TRUE(app_.running());
  good = true;
  EXPECT_TRUE(run(app_.start(moody)));
  EXPECT_EQ(lines_.back(), "needs moody made");
  stop();
}

TEST_F(AppChange, ManyChangesAtTheSameTimeEndWell) {
  const ServiceId store = app_.per_core<Store>();
  const ServiceId cache = app_.per_core<Cache>();
  app_.per_core<Web>();
  start_all();
  const auto changes = [&]() -> Task<> {
    const auto results = co_await all(app_.stop(store), app_.stop(cache), app_.start(store),
                                      app_.start(cache), app_.stop(store), app_.start(store));
    EXPECT_TRUE(results);
  };
  run(changes());
  EXPECT_EQ(lines_.back(), "web made");
  stop();
}

TEST_F(AppChange, ServicesAreRemovedAndAddedRepeatedly) {
  ServiceId store = app_.per_core<Store>();
  app_.per_core<Cache>();
  app_.per_core<Web>();
  start_all();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(run(app_.remove(store)));
    store = app_.per_core<Store>();
    ASSERT_TRUE(run(app_.apply()));
    EXPECT_EQ(lines_.back(), "web made");
  }
  stop();
}

TEST_F(AppChange, AServiceThatIsStoppedBeforeTheStartWaits) {
  const ServiceId store = app_.per_core<Store>();
  app_.per_core<Cache>();
  ASSERT_TRUE(run(app_.stop(store)));
  ASSERT_TRUE(start());
  EXPECT_TRUE(lines_.empty());
  ASSERT_TRUE(run(app_.start(store)));
  EXPECT_EQ(lines_, (Lines{"store made", "cache made"}));
  stop();
}

TEST_F(AppChange, ChangesOfAnAppThatDoesNotRunTakeEffectAtItsStart) {
  const ServiceId other = app_.per_core<Other>();
  const ServiceId store = app_.per_core<Store>();
  EXPECT_TRUE(app_.contains(other));
  ASSERT_TRUE(run(app_.remove(other)));
  EXPECT_FALSE(app_.contains(other));
  ASSERT_TRUE(run(app_.apply()));
  const ServiceId fresh = app_.per_core<Store>();
  EXPECT_EQ(run(app_.replace(store, fresh)).error(), Errc::cancelled);
  EXPECT_TRUE(app_.contains(store));
  EXPECT_FALSE(app_.contains(fresh));
  EXPECT_TRUE(lines_.empty());
  ASSERT_TRUE(start());
  EXPECT_EQ(lines_, (Lines{"store made"}));
  stop();
}

TEST_F(AppChange, ACancelledStartContinues) {
  const ServiceId store = app_.per_core<Store>();
  app_.per_core<Cache>();
  start_all();
  ASSERT_TRUE(run(app_.stop(store)));
  lines_.clear();
  CancelSource cancel;
  platform_.at(platform_.now() + 500ms, [&] { cancel.cancel(); });
  EXPECT_EQ(run(app_.start(store), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(lines_, (Lines{"store made"}));
  platform_.advance(*loop_, 1s);
  EXPECT_EQ(lines_, (Lines{"store made", "cache made"}));
  stop();
}

TEST_F(AppChange, OnlyItsOwnErrorsAreReported) {
  bool good = true;
  const ServiceId moody = app_.per_core([&good] { return Moody([&good] { return good; }); });
  start_all();
  ASSERT_TRUE(run(app_.stop(moody)));
  good = false;
  EXPECT_EQ(run(app_.start(moody)).error(), Errc::limit_reached);
  EXPECT_EQ(run(app_.start(moody)).error(), Errc::limit_reached);
  EXPECT_EQ(app_.errors().size(), 1U) << "not those of earlier changes";
  app_.per_core<Other>();
  EXPECT_TRUE(run(app_.apply()));
  EXPECT_EQ(lines_, (Lines{"other made"}));
  stop();
}

TEST_F(AppChange, EachChangeHasItsOwnErrors) {
  bool good = true;
  const ServiceId moody = app_.per_core([&good] { return Moody([&good] { return good; }); });
  const ServiceId other = app_.per_core<Store>();  // its start lasts a second
  start_all();
  ASSERT_TRUE(run(app_.stop(moody)));
  good = false;
  EXPECT_EQ(run(app_.start(moody)).error(), Errc::limit_reached);
  EXPECT_EQ(app_.errors().size(), 1U);
  ASSERT_TRUE(run(app_.stop(other)));
  EXPECT_TRUE(app_.errors().empty());
  const auto fail_to_start = [&]() -> Task<> {
    const Result<> started = co_await app_.start(moody);
    EXPECT_EQ(started.error(), Errc::limit_reached);
    EXPECT_EQ(app_.errors().size(), 1U);
  };
  const auto start_other = [&]() -> Task<> {
    EXPECT_TRUE(co_await app_.start(other));
    EXPECT_TRUE(app_.errors().empty());
  };
  const auto both = [&]() -> Task<> {
    const auto results = co_await all(fail_to_start(), start_other());
    EXPECT_TRUE(results);
  };
  run(both());
  stop();
}

TEST_F(AppChange, AChangeDuringAStartThatFailsEnds) {
  struct FailsLate {
    Task<Result<>> start() {
      std::ignore = co_await sleep(1s);
      co_return fail(Errc::limit_reached);
    }
  };
  const ServiceId other = app_.per_core<Other>();
  app_.per_core<FailsLate>();
  bool ended = false;
  const auto start_app = [&]() -> Task<> {
    const Result<> started = co_await app_.start();
    EXPECT_EQ(started.error(), Errc::limit_reached);
  };
  const auto change = [&]() -> Task<> {
    EXPECT_TRUE(co_await sleep(500ms));
    std::ignore = co_await app_.stop(other);
    ended = true;
  };
  const auto both = [&]() -> Task<> {
    const auto results = co_await all(start_app(), change());
    EXPECT_TRUE(results);
  };
  run(both());
  EXPECT_TRUE(ended);
  EXPECT_FALSE(app_.running());
}

struct Brittle : JournaledService {
  Brittle(const Journal& journal, Other&) : JournaledService(journal, "brittle") {}
  static Task<Result<>> start() { co_return fail(Errc::limit_reached); }
};

TEST_F(AppChange, AFailedServiceStaysFailedUntilItIsStartedAgain) {
  const ServiceId other = app_.per_core<Other>();
  start_all();
  const ServiceId brittle = app_.per_core<Brittle>();
  EXPECT_EQ(run(app_.apply()).error(), Errc::limit_reached);
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"brittle made", "brittle gone"}));
  const auto expect_failed = [&] {
    const ServiceReport report = app_.explain().services.back();
    EXPECT_EQ(report.id, brittle);
    EXPECT_EQ(report.state, ServiceState::failed);
    EXPECT_EQ(report.failure, make_error_code(Errc::limit_reached).message());
  };
  expect_failed();
  ASSERT_TRUE(run(app_.stop(other)));
  expect_failed();
  ASSERT_TRUE(run(app_.start(other)));
  expect_failed();
  ASSERT_TRUE(run(app_.stop(brittle)));
  expect_failed();
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"other gone", "other made"}));
  EXPECT_EQ(run(app_.start(brittle)).error(), Errc::limit_reached);
  EXPECT_EQ(lines_, (Lines{"brittle made", "brittle gone"}));
  expect_failed();
  stop();
}

struct Plain {};
struct Curious : JournaledService {
  Curious(const Journal& journal, inject::Optional<Plain>) : JournaledService(journal, "curious") {}
};
struct NeedsPlain : JournaledService {
  NeedsPlain(const Journal& journal, Plain&) : JournaledService(journal, "needs plain") {}
};

TEST_F(AppChange, ARemovedServiceIsNotOfferedLaterServices) {
  const ServiceId curious = app_.per_core<Curious>();
  start_all();
  ASSERT_TRUE(run(app_.remove(curious)));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"curious gone"}));
  app_.per_core<NeedsPlain>();
  const ServiceId plain = app_.per_core<Plain>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"needs plain made"}));
  app_.per_core<Curious>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"curious made"}));
  ASSERT_TRUE(run(app_.remove(plain)));
  EXPECT_EQ(lines_, (Lines{"needs plain gone"}));
  stop();
}

TEST_F(AppChange, AStartedServiceMayWaitForOthers) {
  const ServiceId store = app_.per_core<Store>();
  const ServiceId cache = app_.per_core<Cache>();
  start_all();
  ASSERT_TRUE(run(app_.stop(store)));
  ASSERT_TRUE(run(app_.stop(cache)));
  lines_.clear();
  ASSERT_TRUE(run(app_.start(cache)));
  EXPECT_TRUE(lines_.empty());
  EXPECT_EQ(app_.explain().services.back().waits_for,
            Lines{std::string(inject::type<Store>.name) + " on core 0"});
  ASSERT_TRUE(run(app_.start(store)));
  EXPECT_EQ(lines_, (Lines{"store made", "cache made"}));
  stop();
}

template <int N>
struct FailsLater {
  Duration length;
  Errc error;
  Task<Result<>> start() {
    std::ignore = co_await sleep(length);
    co_return fail(error);
  }
};

TEST_F(AppChange, TheErrorIsThatOfTheFirstServiceThatFailed) {
  start_all();
  app_.per_core([] { return FailsLater<0>{2s, Errc::unsupported}; });
  app_.per_core([] { return FailsLater<1>{1s, Errc::limit_reached}; });
  app_.per_core([] { return FailsLater<2>{3s, Errc::not_found}; });
  EXPECT_EQ(run(app_.apply()).error(), Errc::limit_reached);
  const auto line = [](std::string_view name, Errc error) {
    return std::string(name) + " on core 0 could not start: " + make_error_code(error).message();
  };
  EXPECT_EQ(app_.errors(), (Lines{line(inject::type<FailsLater<1>>.name, Errc::limit_reached),
                                  line(inject::type<FailsLater<0>>.name, Errc::unsupported),
                                  line(inject::type<FailsLater<2>>.name, Errc::not_found)}));
  stop();
}

/// A service that cannot be added, because it takes a shared service as writable.
struct Greedy : JournaledService {
  explicit Greedy(Journal& journal) : JournaledService(journal, "greedy") {}
};
struct Own : JournaledService {
  Own(const Journal& journal, inject::Requester) : JournaledService(journal, "own") {}
};
struct UsesOwn : JournaledService {
  UsesOwn(const Journal& journal, Own&) : JournaledService(journal, "uses own") {}
};

TEST_F(AppChange, AFailedApplyLeavesWaitingServicesAsTheyWere) {
  start_all();
  app_.per_core<Cache>();
  app_.per_core<UsesOwn>();
  ASSERT_TRUE(run(app_.apply()));
  const auto reasons = [this] {
    Lines all;
    for (const ServiceReport& each : app_.explain().services) {
      all.insert(all.end(), each.waits_for.begin(), each.waits_for.end());
    }
    return all;
  };
  const Lines before = reasons();
  EXPECT_EQ(before.size(), 2U);
  for (int round = 0; round < 2; ++round) {
    const ServiceId store = app_.per_core<Store>();
    const ServiceId own = app_.per_core<Own>();
    const ServiceId greedy = app_.per_core<Greedy>();
    EXPECT_EQ(run(app_.apply()).error(), Errc::bad_configuration);
    EXPECT_TRUE(lines_.empty());
    for (const ServiceId each : {store, own, greedy}) EXPECT_FALSE(app_.contains(each));
    EXPECT_EQ(reasons(), before);
  }
  const ServiceId own = app_.per_core<Own>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"own made", "uses own made"}));
  app_.per_core<Store>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"store made", "cache made"}));
  ASSERT_TRUE(run(app_.remove(own)));
  EXPECT_EQ(lines_, (Lines{"uses own gone", "own gone"}));
  stop();
}

TEST_F(AppChange, AServiceThatIsStoppedBeforeItIsAddedWaits) {
  start_all();
  const ServiceId other = app_.per_core<Other>();
  ASSERT_TRUE(run(app_.start(other)));
  EXPECT_TRUE(lines_.empty()) << "it takes part after apply()";
  ASSERT_TRUE(run(app_.stop(other)));
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_TRUE(lines_.empty());
  ASSERT_TRUE(run(app_.start(other)));
  EXPECT_EQ(lines_, (Lines{"other made"}));
  stop();
}

struct StopsItself : JournaledService {
  StopsItself(const Journal& journal, App& app, Scope& scope, const ServiceId& id)
      : JournaledService(journal, "service"), app_(app), scope_(scope), id_(id) {}
  Task<Result<>> start() {
    scope_.spawn(end());
    co_return {};
  }
  Task<> stop() {
    write("stopping");
    co_return;
  }
  Task<> end() {
    std::ignore = co_await sleep(1s);
    const Result<> stopped = co_await app_.stop(id_);
    write(stopped ? "is stopped" : stopped.error().message());
  }
  App& app_;
  Scope& scope_;
  const ServiceId& id_;
};

TEST_F(AppChange, ATaskOfAServiceMayStopThatService) {
  ServiceId id;
  id = app_.per_core([&id](const Journal& journal, App& app, Scope& scope) {
    return std::make_unique<StopsItself>(journal, app, scope, id);
  });
  start_all();
  platform_.advance(*loop_, 2s);
  EXPECT_EQ(lines_,
            (Lines{"service stopping", "service " + make_error_code(Errc::cancelled).message(),
                   "service gone"}));
  EXPECT_TRUE(app_.running());
  EXPECT_TRUE(app_.contains(id));
  stop();
}

}  // namespace
}  // namespace weir::app_change_test

// Tests of services that are replaced when their part of the configuration changes.
#include "weir/app/reloadable_service.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/app/test/app_fixture.hpp"

namespace weir::reloadable_service_test {
namespace {

using config::ReloadResult;
using Lines = std::vector<std::string>;

struct DatabaseOptions {
  std::string name = "a";
};
struct CacheOptions {
  int entries = 1;
};
struct Settings {
  DatabaseOptions database;
  CacheOptions cache;
  int unused = 0;
};

struct Database : JournaledService {
  Database(const Journal& journal, std::string of)
      : JournaledService(journal, "database " + of), name(std::move(of)) {}
  Task<Result<>> start() {
    std::ignore = co_await sleep(1s);
    if (name == "bad") co_return fail(Errc::limit_reached);
    if (name == "unknown") co_return fail(Errc::not_found);
    if (name == "cancelled") co_return fail(Errc::cancelled);
    co_return {};
  }
  std::string name;
};
struct Cache : JournaledService {
  Cache(const Journal& journal, int entries)
      : JournaledService(journal, "cache of " + std::to_string(entries)) {}
};
struct Web : JournaledService {
  Web(const Journal& journal, Database& below)
      : JournaledService(journal, "web on " + below.name) {}
};

struct Slow : JournaledService {
  explicit Slow(const Journal& journal) : JournaledService(journal, "slow") {}
  Task<Result<>> start() { co_return co_await sleep(1s); }
};

/// An app with a database, its dependants and a cache. The file configures the database and the
/// cache.
class ReloadableServiceTest : public AppTest {
 protected:
  ReloadableServiceTest() {
    put("");
    config::Sources sources;
    sources.file = path_;
    config::ReloadOptions options;
    options.on_rejected = [this](const config::Errors& errors) {
      rejected_.push_back(errors.message());
    };
    reloadable_.emplace(config::load<Settings>(platform_.files(), sources).value(), sources,
                        options);
  }
  void SetUp() override {
    AppTest::SetUp();
    cache_.emplace(app_, *reloadable_, &Settings::cache, [](App& to, const CacheOptions& part) {
      return to.per_core([part](const Journal& journal) { return Cache(journal, part.entries); });
    });
    database_.emplace(
        app_, *reloadable_, &Settings::database, [](App& to, const DatabaseOptions& part) {
          return to.per_core(
              [part](const Journal& journal) { return Database(journal, part.name); });
        });
    app_.per_core<Web>();
  }
  void put(std::string_view text) {
    const auto file = platform_.files().open(path_, {.mode = os::FileMode::truncate});
    ASSERT_TRUE(file) << file.error().message();
    if (!text.empty()) {
      ASSERT_EQ(platform_.files().write_at(file->value(), to_bytes(text), 0).value(), text.size());
    }
  }
  ReloadResult reload() { return run(reloadable_->reload()); }
  /// Runs a reload() that is cancelled in the middle of the database's start().
  ReloadResult reload_cancelled() {
    CancelSource cancel;
    platform_.at(platform_.now() + 600ms, [&] { cancel.cancel(); });
    return run(reloadable_->reload(), &cancel);
  }
  Task<> reload_later() { EXPECT_EQ(co_await reloadable_->reload(), ReloadResult::rejected); }
  Task<> apply() { EXPECT_TRUE(co_await app_.apply()); }
  Task<> remove_cache() { EXPECT_TRUE(co_await app_.remove(cache_->id())); }
  Lines take_lines() { return std::exchange(lines_, {}); }
  void start_all() {
    ASSERT_TRUE(start());
    lines_.clear();
  }

  const std::string path_ = "/tmp/live.toml";
  std::vector<std::string> rejected_;
  std::optional<config::Reloadable<Settings>> reloadable_;
  std::optional<config::ReloadableService> cache_;
  std::optional<config::ReloadableService> database_;
};

TEST_F(ReloadableServiceTest, AServiceIsReplacedIfItsPartChanges) {
  start_all();
  put("unused = 3\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_TRUE(lines_.empty()) << "no service uses this part";
  const ServiceId before = database_->id();
  put("database.name = 'b'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(take_lines(),
            (Lines{"database b made", "web on b made", "web on a gone", "database a gone"}));
  EXPECT_NE(database_->id(), before);
  put("database.name = 'b'\n[cache]\nentries = 2\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(take_lines(), (Lines{"cache of 2 made", "cache of 1 gone"}));
  EXPECT_EQ(app_.explain().services.size(), 4U);
  EXPECT_TRUE(run(app_.stop(database_->id())));
  EXPECT_EQ(take_lines(), (Lines{"web on b gone", "database b gone"}));
  stop();
}

TEST_F(ReloadableServiceTest, AppliesAllPartsOrNone) {
  start_all();
  put("database.name = 'bad'\n[cache]\nentries = 2\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(reloadable_->current()->database.name, "a");
  EXPECT_EQ(reloadable_->current()->cache.entries, 1);
  EXPECT_EQ(take_lines(), (Lines{"cache of 2 made", "cache of 1 gone", "database bad made",
                                 "database bad gone", "cache of 1 made", "cache of 2 gone"}));
  ASSERT_EQ(rejected_.size(), 1U);
  EXPECT_TRUE(rejected_[0].starts_with(path_ + ": database: ")) << rejected_[0];
  EXPECT_NE(rejected_[0].find("could not start"), std::string::npos) << rejected_[0];
  for (const ServiceReport& each : app_.explain().services) {
    EXPECT_EQ(each.state, ServiceState::running) << each.name;
  }
  put("database.name = 'good'\n[cache]\nentries = 2\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_TRUE(has_line("web on good made"));
  EXPECT_TRUE(has_line("cache of 2 made"));
  stop();
}

// The first apply() takes time, and the second one waits for it. The second then finds the fresh
// service among the added ones.
TEST_F(ReloadableServiceTest, AnApplyThatAddsTheFreshServiceKeepsTheOldOne) {
  start_all();
  app_.per_core<Slow>();
  put("[cache]\nentries = 2\n");
  const auto all_at_once = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(apply());
    scope.spawn(apply());
    EXPECT_EQ(co_await reloadable_->reload(), ReloadResult::rejected);
    co_return {};
  };
  EXPECT_TRUE(run(with_scope(all_at_once)));
  EXPECT_EQ(take_lines(), (Lines{"slow made", "cache of 2 made", "cache of 2 gone"}));
  EXPECT_EQ(rejected_, Lines{path_ + ": cache: " + make_error_code(Errc::conflict).message()});
  EXPECT_EQ(reloadable_->current()->cache.entries, 1);
  put("[cache]\nentries = 3\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(take_lines(), (Lines{"cache of 3 made", "cache of 1 gone"}));
  stop();
}

TEST_F(ReloadableServiceTest, AStartThatReturnsNotFoundIsAFailure) {
  start_all();
  put("database.name = 'unknown'\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(reloadable_->current()->database.name, "a");
  EXPECT_EQ(take_lines(), (Lines{"database unknown made", "database unknown gone"}));
  ASSERT_EQ(rejected_.size(), 1U);
  EXPECT_NE(rejected_[0].find("not found"), std::string::npos) << rejected_[0];
  EXPECT_TRUE(run(app_.stop(database_->id())));
  EXPECT_EQ(take_lines(), (Lines{"web on a gone", "database a gone"}));
  stop();
}

TEST_F(ReloadableServiceTest, AStoppedAppUsesTheNewPartAtItsNextStart) {
  put("database.name = 'b'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  start_all();
  put("database.name = 'c'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(lines_.front(), "database c made");
  stop();
  put("database.name = 'd'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  lines_.clear();
  ASSERT_TRUE(start());
  EXPECT_TRUE(has_line("web on d made"));
  EXPECT_FALSE(has_line("database c made"));
  stop();
}

TEST_F(ReloadableServiceTest, ARemovedServiceStaysRemoved) {
  start_all();
  ASSERT_TRUE(run(app_.remove(cache_->id())));
  take_lines();
  put("[cache]\nentries = 2\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_TRUE(lines_.empty());
  stop();
  put("[cache]\nentries = 3\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  ASSERT_TRUE(start());
  EXPECT_FALSE(has_line("cache of 3 made"));
  stop();
}

// The removal waits for the first change, and the reload waits for the removal.
TEST_F(ReloadableServiceTest, AServiceThatIsRemovedDuringTheReloadStaysRemoved) {
  start_all();
  app_.per_core<Slow>();
  put("[cache]\nentries = 2\n");
  const auto all_at_once = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(apply());
    scope.spawn(remove_cache());
    EXPECT_EQ(co_await reloadable_->reload(), ReloadResult::changed);
    co_return {};
  };
  EXPECT_TRUE(run(with_scope(all_at_once)));
  EXPECT_EQ(take_lines(), (Lines{"slow made", "cache of 1 gone"}));
  EXPECT_EQ(cache_->id(), ServiceId());
  EXPECT_EQ(reloadable_->current()->cache.entries, 2);
  EXPECT_EQ(app_.explain().services.size(), 4U);
  put("[cache]\nentries = 3\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_TRUE(take_lines().empty());
  stop();
}

TEST_F(ReloadableServiceTest, AServiceOfTheAppMayWatch) {
  struct Watching {};
  app_.per_core([this](Scope& scope) {
    scope.spawn(reloadable_->watch());
    return Watching();
  });
  start_all();
  put("database.name = 'b'\n");
  EXPECT_TRUE(run(as_task(sleep(5s))));
  EXPECT_TRUE(has_line("web on b made"));
  EXPECT_TRUE(has_line("database a gone"));
  // The app stops in the middle of the next reload.
  put("database.name = 'c'\n");
  EXPECT_TRUE(run(as_task(sleep(1600ms))));
  stop();
  EXPECT_FALSE(app_.running());
  EXPECT_TRUE(has_line("database c gone"));
  EXPECT_EQ(reloadable_->current()->database.name, "b");
  lines_.clear();
  ASSERT_TRUE(start());
  EXPECT_TRUE(has_line("database " + reloadable_->current()->database.name + " made"));
  EXPECT_TRUE(has_line("web on " + reloadable_->current()->database.name + " made"));
  stop();
}

TEST_F(ReloadableServiceTest, ACancelledReloadContinuesAndIsAppliedAgain) {
  start_all();
  put("database.name = 'b'\n[cache]\nentries = 2\n");
  EXPECT_EQ(reload_cancelled(), ReloadResult::unchanged)
      << "the cache was replaced and is restored";
  EXPECT_EQ(reloadable_->current()->database.name, "a");
  EXPECT_TRUE(run(as_task(sleep(5s))));
  EXPECT_TRUE(has_line("web on b made")) << "the change continues";
  EXPECT_TRUE(has_line("database a gone"));
  EXPECT_EQ(lines_.back(), "cache of 2 gone");
  take_lines();
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(reloadable_->current()->database.name, "b");
  EXPECT_EQ(take_lines(), (Lines{"cache of 2 made", "cache of 1 gone", "database b made",
                                 "web on b made", "web on b gone", "database b gone"}));
  EXPECT_EQ(app_.explain().services.size(), 4U);
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  EXPECT_TRUE(rejected_.empty());
  stop();
}

TEST_F(ReloadableServiceTest, ACancelledReloadIsAppliedAgainAlsoForAnOldFile) {
  put("database.name = 'b'\n");
  start_all();
  EXPECT_EQ(reload(), ReloadResult::changed);
  put("database.name = 'c'\n");
  EXPECT_EQ(reload_cancelled(), ReloadResult::unchanged);
  put("database.name = 'b'\n");
  EXPECT_TRUE(run(as_task(sleep(5s))));
  EXPECT_TRUE(has_line("web on c made"));
  take_lines();
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(take_lines(),
            (Lines{"database b made", "web on b made", "web on c gone", "database c gone"}));
  stop();
}

TEST_F(ReloadableServiceTest, ACancelledReloadThatFailsChangesNothing) {
  start_all();
  put("database.name = 'bad'\n[cache]\nentries = 2\n");
  EXPECT_EQ(reload_cancelled(), ReloadResult::unchanged);
  EXPECT_TRUE(run(as_task(sleep(5s))));
  EXPECT_EQ(reloadable_->current()->database.name, "a");
  EXPECT_FALSE(has_line("web on bad made"));
  EXPECT_EQ(lines_.back(), "cache of 2 gone");
  EXPECT_EQ(app_.explain().services.size(), 4U);
  EXPECT_TRUE(rejected_.empty()) << "the error is not known yet";
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(rejected_.size(), 1U);
  put("database.name = 'c'\n");
  EXPECT_EQ(reload(), ReloadResult::changed) << "with either service";
  EXPECT_TRUE(has_line("database a gone"));
  EXPECT_EQ(app_.explain().services.size(), 4U);
  stop();
}

TEST_F(ReloadableServiceTest, TheAppMayStopAfterSomePartsWereApplied) {
  start_all();
  put("database.name = 'b'\n[cache]\nentries = 2\n");
  const auto both = [this](Scope& scope) -> Task<> {
    scope.spawn(reload_later());
    std::ignore = co_await sleep(600ms);
    co_await app_.stop();
  };
  EXPECT_TRUE(run(with_scope(both)));
  EXPECT_EQ(reloadable_->current()->cache.entries, 1);
  ASSERT_EQ(rejected_.size(), 1U);
  EXPECT_EQ(rejected_[0], path_ + ": database: the app was stopped");
  lines_.clear();
  ASSERT_TRUE(start());
  EXPECT_TRUE(has_line("cache of 1 made"));
  EXPECT_TRUE(has_line("web on a made"));
  EXPECT_EQ(app_.explain().services.size(), 4U);
  stop();
}

TEST_F(ReloadableServiceTest, TheAppMayStopTogetherWithTheWatchingService) {
  struct Watching {};
  app_.per_core([this](Scope& scope) {
    scope.spawn(reloadable_->watch());
    return Watching();
  });
  start_all();
  put("database.name = 'b'\n[cache]\nentries = 2\n");
  EXPECT_TRUE(run(as_task(sleep(1600ms))));
  EXPECT_EQ(lines_.back(), "database b made");
  stop();
  EXPECT_EQ(reloadable_->current()->cache.entries, 1);
  lines_.clear();
  ASSERT_TRUE(start());
  EXPECT_TRUE(has_line("cache of 1 made"));
  EXPECT_TRUE(has_line("web on a made"));
  EXPECT_TRUE(run(as_task(sleep(5s))));
  EXPECT_TRUE(has_line("cache of 2 made")) << "the next watch() applies the part again";
  EXPECT_TRUE(has_line("web on b made"));
  EXPECT_EQ(app_.explain().services.size(), 5U);
  stop();
}

TEST_F(ReloadableServiceTest, AStartThatReturnsCancelledIsAFailure) {
  start_all();
  put("database.name = 'cancelled'\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(reloadable_->current()->database.name, "a");
  EXPECT_EQ(take_lines(), (Lines{"database cancelled made", "database cancelled gone"}));
  EXPECT_TRUE(run(app_.stop(database_->id())));
  EXPECT_EQ(take_lines(), (Lines{"web on a gone", "database a gone"}));
  stop();
}

/// A dependant that only works with database a.
template <int N>
struct Picky {
  explicit Picky(Database& below) : good(below.name == "a") {}
  Task<Result<>> start() const {
    if (!good) co_return fail(Errc::unsupported);
    co_return {};
  }
  bool good;
};

TEST_F(ReloadableServiceTest, ARejectionHasTheErrorsOfAllServicesThatFailed) {
  app_.per_core<Picky<0>>();
  app_.per_core<Picky<1>>();
  start_all();
  put("database.name = 'b'\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  const auto failure = [](std::string_view name) {
    return std::string(name) +
           " on core 0 could not start: " + make_error_code(Errc::unsupported).message();
  };
  const std::string one = failure(inject::type<Picky<0>>.name);
  const std::string two = failure(inject::type<Picky<1>>.name);
  const std::string prefix = path_ + ": database: ";
  ASSERT_EQ(rejected_.size(), 1U);
  EXPECT_TRUE(rejected_[0] == prefix + one + "; " + two ||
              rejected_[0] == prefix + two + "; " + one)
      << rejected_[0];
  stop();
}

}  // namespace
}  // namespace weir::reloadable_service_test

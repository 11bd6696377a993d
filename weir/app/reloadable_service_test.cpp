#include "weir/app/config_service.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/app/test/app_fixture.hpp"

namespace weir {
namespace {

using config::Reload;
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

struct Database : Said {
  Database(const Journal& journal, std::string of)
      : Said(journal, "database " + of), name(std::move(of)) {}
  Task<Result<>> start() {
    static_cast<void>(co_await sleep(1s));
    if (name == "bad") co_return fail(Errc::limit_reached);
    if (name == "unknown") co_return fail(Errc::not_found);
    if (name == "cancelled") co_return fail(Errc::cancelled);
    co_return {};
  }
  std::string name;
};
struct Cache : Said {
  Cache(const Journal& journal, int entries)
      : Said(journal, "cache of " + std::to_string(entries)) {}
};
struct Web : Said {
  Web(const Journal& journal, Database& below) : Said(journal, "web on " + below.name) {}
};

struct Slow : Said {
  explicit Slow(const Journal& journal) : Said(journal, "slow") {}
  Task<Result<>> start() { co_return co_await sleep(1s); }
};

/// An app with a database, whatever depends on it, and a cache; the last two from the file.
class LiveServiceTest : public AppTest {
 protected:
  LiveServiceTest() {
    put("");
    config::Sources sources;
    sources.file = path_;
    config::LiveOptions options;
    options.on_refused = [this](const config::Errors& errors) {
      refused_.push_back(errors.message());
    };
    live_.emplace(config::load<Settings>(host_.files(), sources).value(), sources, options);
  }
  void SetUp() override {
    AppTest::SetUp();
    cache_.emplace(app_, *live_, &Settings::cache, [](App& to, const CacheOptions& part) {
      return to.per_core([part](const Journal& journal) { return Cache(journal, part.entries); });
    });
    database_.emplace(app_, *live_, &Settings::database, [](App& to, const DatabaseOptions& part) {
      return to.per_core([part](const Journal& journal) { return Database(journal, part.name); });
    });
    app_.per_core<Web>();
  }
  void put(std::string_view text) {
    const auto file = host_.files().open(path_, {.mode = os::FileMode::replace});
    ASSERT_TRUE(file) << file.error().message();
    if (!text.empty()) {
      ASSERT_EQ(host_.files().write_at(file->value(), to_bytes(text), 0).value(), text.size());
    }
  }
  Reload reload() { return run(live_->reload()); }
  /// One that is cancelled in the middle of the database's start().
  Reload reload_cut_short() {
    CancelSource cancel;
    host_.at(host_.now() + 600ms, [&] { cancel.cancel(); });
    return run(live_->reload(), &cancel);
  }
  Task<> reload_later() { EXPECT_EQ(co_await live_->reload(), Reload::refused); }
  Task<> apply() { EXPECT_TRUE(co_await app_.apply()); }
  Lines take_lines() { return std::exchange(lines_, {}); }
  void start_all() {
    ASSERT_TRUE(start());
    lines_.clear();
  }

  const std::string path_ = "/tmp/live.toml";
  std::vector<std::string> refused_;
  std::optional<config::Live<Settings>> live_;
  std::optional<config::LiveService> cache_;
  std::optional<config::LiveService> database_;
};

TEST_F(LiveServiceTest, WhoTakesTheChangedPartIsMadeAnew) {
  start_all();
  put("unused = 3\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_TRUE(lines_.empty()) << "nobody takes that";
  const ServiceId before = database_->id();
  put("database.name = 'b'\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(take_lines(),
            (Lines{"database b made", "web on b made", "web on a gone", "database a gone"}));
  EXPECT_NE(database_->id(), before);
  put("database.name = 'b'\n[cache]\nentries = 2\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(take_lines(), (Lines{"cache of 2 made", "cache of 1 gone"}));
  EXPECT_EQ(app_.explain().services.size(), 4U);
  EXPECT_TRUE(run(app_.stop(database_->id())));
  EXPECT_EQ(take_lines(), (Lines{"web on b gone", "database b gone"}));
  stop();
}

TEST_F(LiveServiceTest, AllOrNothing) {
  start_all();
  put("database.name = 'bad'\n[cache]\nentries = 2\n");
  EXPECT_EQ(reload(), Reload::refused);
  EXPECT_EQ(live_->now()->database.name, "a");
  EXPECT_EQ(live_->now()->cache.entries, 1);
  EXPECT_EQ(take_lines(), (Lines{"cache of 2 made", "cache of 1 gone", "database bad made",
                                 "database bad gone", "cache of 1 made", "cache of 2 gone"}));
  ASSERT_EQ(refused_.size(), 1U);
  EXPECT_TRUE(refused_[0].starts_with(path_ + ": database: ")) << refused_[0];
  EXPECT_NE(refused_[0].find("could not start"), std::string::npos) << refused_[0];
  for (const ServiceReport& each : app_.explain().services) {
    EXPECT_EQ(each.state, ServiceState::running) << each.name;
  }
  put("database.name = 'good'\n[cache]\nentries = 2\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_TRUE(said("web on good made"));
  EXPECT_TRUE(said("cache of 2 made"));
  stop();
}

// The first change lasts, the second waits for it, and then finds the fresh service among what was
// added.
TEST_F(LiveServiceTest, AChangeThatTakesTheFreshOneAlongLeavesTheOldOne) {
  start_all();
  app_.per_core<Slow>();
  put("[cache]\nentries = 2\n");
  const auto all_at_once = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(apply());
    scope.spawn(apply());
    EXPECT_EQ(co_await live_->reload(), Reload::refused);
    co_return {};
  };
  EXPECT_TRUE(run(with_scope(all_at_once)));
  EXPECT_EQ(take_lines(), (Lines{"slow made", "cache of 2 made", "cache of 2 gone"}));
  EXPECT_EQ(live_->now()->cache.entries, 1);
  put("[cache]\nentries = 3\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(take_lines(), (Lines{"cache of 3 made", "cache of 1 gone"}));
  stop();
}

TEST_F(LiveServiceTest, AStartThatFindsNothingIsAFailureToo) {
  start_all();
  put("database.name = 'unknown'\n");
  EXPECT_EQ(reload(), Reload::refused);
  EXPECT_EQ(live_->now()->database.name, "a");
  EXPECT_EQ(take_lines(), (Lines{"database unknown made", "database unknown gone"}));
  ASSERT_EQ(refused_.size(), 1U);
  EXPECT_NE(refused_[0].find("not found"), std::string::npos) << refused_[0];
  EXPECT_TRUE(run(app_.stop(database_->id())));
  EXPECT_EQ(take_lines(), (Lines{"web on a gone", "database a gone"}));
  stop();
}

TEST_F(LiveServiceTest, AnAppThatDoesNotRunHasItFromItsNextStart) {
  put("database.name = 'b'\n");
  EXPECT_EQ(reload(), Reload::changed);
  start_all();
  put("database.name = 'c'\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(lines_.front(), "database c made");
  stop();
  put("database.name = 'd'\n");
  EXPECT_EQ(reload(), Reload::changed);
  lines_.clear();
  ASSERT_TRUE(start());
  EXPECT_TRUE(said("web on d made"));
  EXPECT_FALSE(said("database c made"));
  stop();
}

TEST_F(LiveServiceTest, WhatWasRemovedStaysAway) {
  start_all();
  ASSERT_TRUE(run(app_.remove(cache_->id())));
  take_lines();
  put("[cache]\nentries = 2\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_TRUE(lines_.empty());
  stop();
  put("[cache]\nentries = 3\n");
  EXPECT_EQ(reload(), Reload::changed);
  ASSERT_TRUE(start());
  EXPECT_FALSE(said("cache of 3 made"));
  stop();
}

TEST_F(LiveServiceTest, AServiceOfTheAppMayWatch) {
  struct Watching {};
  app_.per_core([this](Scope& scope) {
    scope.spawn(live_->watch());
    return Watching();
  });
  start_all();
  put("database.name = 'b'\n");
  EXPECT_TRUE(run(as_task(sleep(5s))));
  EXPECT_TRUE(said("web on b made"));
  EXPECT_TRUE(said("database a gone"));
  // Stopped in the middle of the next one.
  put("database.name = 'c'\n");
  EXPECT_TRUE(run(as_task(sleep(1600ms))));
  stop();
  EXPECT_FALSE(app_.running());
  EXPECT_TRUE(said("database c gone"));
  EXPECT_EQ(live_->now()->database.name, "b");
  lines_.clear();
  ASSERT_TRUE(start());
  EXPECT_TRUE(said("database " + live_->now()->database.name + " made"));
  EXPECT_TRUE(said("web on " + live_->now()->database.name + " made"));
  stop();
}

TEST_F(LiveServiceTest, WhoIsCancelledLeavesItToGoOnAndIsToldAgain) {
  start_all();
  put("database.name = 'b'\n[cache]\nentries = 2\n");
  EXPECT_EQ(reload_cut_short(), Reload::unchanged) << "the cache could be told, and goes back";
  EXPECT_EQ(live_->now()->database.name, "a");
  EXPECT_TRUE(run(as_task(sleep(5s))));
  EXPECT_TRUE(said("web on b made")) << "it goes on";
  EXPECT_TRUE(said("database a gone"));
  EXPECT_EQ(lines_.back(), "cache of 2 gone");
  take_lines();
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(live_->now()->database.name, "b");
  EXPECT_EQ(take_lines(), (Lines{"cache of 2 made", "cache of 1 gone", "database b made",
                                 "web on b made", "web on b gone", "database b gone"}));
  EXPECT_EQ(app_.explain().services.size(), 4U);
  EXPECT_EQ(reload(), Reload::unchanged);
  EXPECT_TRUE(refused_.empty());
  stop();
}

TEST_F(LiveServiceTest, WhoIsCancelledIsToldAgainAlsoWhenTheFileIsAsItWas) {
  put("database.name = 'b'\n");
  start_all();
  EXPECT_EQ(reload(), Reload::changed);
  put("database.name = 'c'\n");
  EXPECT_EQ(reload_cut_short(), Reload::unchanged);
  put("database.name = 'b'\n");
  EXPECT_TRUE(run(as_task(sleep(5s))));
  EXPECT_TRUE(said("web on c made"));
  take_lines();
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(take_lines(),
            (Lines{"database b made", "web on b made", "web on c gone", "database c gone"}));
  stop();
}

TEST_F(LiveServiceTest, WhatIsCancelledAndThenFailsHasChangedNothing) {
  start_all();
  put("database.name = 'bad'\n[cache]\nentries = 2\n");
  EXPECT_EQ(reload_cut_short(), Reload::unchanged);
  EXPECT_TRUE(run(as_task(sleep(5s))));
  EXPECT_EQ(live_->now()->database.name, "a");
  EXPECT_FALSE(said("web on bad made"));
  EXPECT_EQ(lines_.back(), "cache of 2 gone");
  EXPECT_EQ(app_.explain().services.size(), 4U);
  EXPECT_TRUE(refused_.empty()) << "nobody knows yet what is wrong";
  EXPECT_EQ(reload(), Reload::refused);
  EXPECT_EQ(refused_.size(), 1U);
  put("database.name = 'c'\n");
  EXPECT_EQ(reload(), Reload::changed) << "whichever of them it was";
  EXPECT_TRUE(said("database a gone"));
  EXPECT_EQ(app_.explain().services.size(), 4U);
  stop();
}

TEST_F(LiveServiceTest, TheAppStopsWhileSomeHaveTheirs) {
  start_all();
  put("database.name = 'b'\n[cache]\nentries = 2\n");
  const auto both = [this](Scope& scope) -> Task<> {
    scope.spawn(reload_later());
    static_cast<void>(co_await sleep(600ms));
    co_await app_.stop();
  };
  EXPECT_TRUE(run(with_scope(both)));
  EXPECT_EQ(live_->now()->cache.entries, 1);
  lines_.clear();
  ASSERT_TRUE(start());
  EXPECT_TRUE(said("cache of 1 made"));
  EXPECT_TRUE(said("web on a made"));
  EXPECT_EQ(app_.explain().services.size(), 4U);
  stop();
}

TEST_F(LiveServiceTest, TheAppStopsWithWhoWatches) {
  struct Watching {};
  app_.per_core([this](Scope& scope) {
    scope.spawn(live_->watch());
    return Watching();
  });
  start_all();
  put("database.name = 'b'\n[cache]\nentries = 2\n");
  EXPECT_TRUE(run(as_task(sleep(1600ms))));
  EXPECT_EQ(lines_.back(), "database b made");
  stop();
  EXPECT_EQ(live_->now()->cache.entries, 1);
  lines_.clear();
  ASSERT_TRUE(start());
  EXPECT_TRUE(said("cache of 1 made"));
  EXPECT_TRUE(said("web on a made"));
  EXPECT_TRUE(run(as_task(sleep(5s))));
  EXPECT_TRUE(said("cache of 2 made")) << "who watches again tells it again";
  EXPECT_TRUE(said("web on b made"));
  EXPECT_EQ(app_.explain().services.size(), 5U);
  stop();
}

TEST_F(LiveServiceTest, AStartThatSaysCancelledIsAFailureToo) {
  start_all();
  put("database.name = 'cancelled'\n");
  EXPECT_EQ(reload(), Reload::refused);
  EXPECT_EQ(live_->now()->database.name, "a");
  EXPECT_EQ(take_lines(), (Lines{"database cancelled made", "database cancelled gone"}));
  EXPECT_TRUE(run(app_.stop(database_->id())));
  EXPECT_EQ(take_lines(), (Lines{"web on a gone", "database a gone"}));
  stop();
}

}  // namespace
}  // namespace weir

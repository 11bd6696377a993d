// Tests the reload of a configuration: notification, rejection, rollback and cancellation.
#include "weir/config/reload.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/config/test/config_fixture.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::config::test::reload_test {
namespace {

class ConfigReloadTest : public LoopTest {
 protected:
  explicit ConfigReloadTest(const MemoryPlatformOptions& platform = {}) : LoopTest(platform) {
    put("name = 'first'\n[server]\nidle_timeout = '1s'\n");
    sources_ = sources_of({});
    sources_.file = path_;
    options_.on_rejected = [this](const Errors& errors) { rejected_.push_back(errors.message()); };
    reloadable_.emplace(load<Settings>(platform_.files(), sources_).value(), sources_, options_);
  }

  void put(std::string_view text) { write(path_, text); }
  void write(const std::string& path, std::string_view text) {
    const auto file = platform_.files().open(path, {.mode = os::FileMode::truncate});
    ASSERT_TRUE(file) << file.error().message();
    for (std::size_t done = 0; done < text.size();) {
      done += platform_.files().write_at(file->value(), to_bytes(text.substr(done)), done).value();
    }
  }
  void put_at(Duration when, std::string text) {
    platform_.at(platform_.now() + when, [this, text = std::move(text)] { put(text); });
  }

  ReloadResult reload() { return run(reloadable_->reload()); }
  /// Runs watch() for this time.
  void watch(Duration length) {
    CancelSource cancel;
    platform_.at(platform_.now() + length, [&] { cancel.cancel(); });
    run(reloadable_->watch(), &cancel);
  }

  const std::string path_ = "/tmp/live.toml";
  Sources sources_;
  ReloadOptions options_;
  std::vector<std::string> rejected_;
  std::vector<std::string> calls_;
  std::optional<Reloadable<Settings>> reloadable_;
};

TEST_F(ConfigReloadTest, NotifiesSubscribersOfChangedParts) {
  const auto server = reloadable_->on_change(&Settings::server, [&](const Server& next) {
    calls_.push_back("server " + json::to_text(next.idle_timeout));
  });
  const auto seed =
      reloadable_->on_change(&Settings::seed, [&](std::uint64_t) { calls_.push_back("seed"); });
  const auto all =
      reloadable_->on_change([&](const Settings& next) { calls_.push_back(next.name); });
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  const auto before = reloadable_->current();
  put("name = 'first'\n[server]\nidle_timeout = '2s'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, (std::vector<std::string>{"server 2s", "first"}));
  EXPECT_EQ(reloadable_->current()->server.idle_timeout, 2s);
  EXPECT_EQ(before->server.idle_timeout, 1s);
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  put("# another comment\nname = \"first\"\nserver.idle_timeout = '2000ms'\n");
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  EXPECT_EQ(calls_.size(), 2u);
}

TEST_F(ConfigReloadTest, AWrongFileChangesNothingAndIsReportedOnce) {
  const auto all =
      reloadable_->on_change([&](const Settings& next) { calls_.push_back(next.name); });
  put("name = 'second'\nseed = 'x'\nnoise = 1\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(reload(), ReloadResult::rejected);
  watch(10s);
  EXPECT_EQ(rejected_, (std::vector<std::string>{path_ +
                                                 ":2:8: seed: expected an integer from 0 to "
                                                 "18446744073709551615, found the string \"x\"\n" +
                                                 path_ + ":3:1: noise: unknown"}));
  EXPECT_TRUE(calls_.empty());
  EXPECT_EQ(reloadable_->current()->name, "first");
  put("name = 'third'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, std::vector<std::string>{"third"});
}

TEST_F(ConfigReloadTest, ARejectingCheckPreventsAllNotifications) {
  const auto name = reloadable_->on_change(
      &Settings::name, [&](const std::string& next) { calls_.push_back(next); });
  const auto seed = reloadable_->on_change(
      &Settings::seed, [&](std::uint64_t) { calls_.push_back("seed"); },
      [](std::uint64_t next) { return next > 9 ? Rejection("too large") : Rejection(); });
  put("name = 'x'\nseed = 10\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(rejected_, std::vector<std::string>{path_ + ": seed: too large"});
  EXPECT_TRUE(calls_.empty());
  EXPECT_EQ(reloadable_->current()->name, "first");
  put("name = 'x'\nseed = 9\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, (std::vector<std::string>{"x", "seed"}));
}

TEST_F(ConfigReloadTest, AllRejectingChecksOfChangedPartsAreReported) {
  const auto check = [this](const std::string& name, const Rejection& rejection) {
    return [this, name, rejection](const auto&) {
      calls_.push_back(name);
      return rejection;
    };
  };
  const auto ignore = [](const auto&) {};
  const auto name = reloadable_->on_change(&Settings::name, ignore, check("name", "no name"));
  const auto ratio = reloadable_->on_change(&Settings::ratio, ignore, check("ratio", "no ratio"));
  const auto seed = reloadable_->on_change(&Settings::seed, ignore, check("seed", "no seed"));
  const auto good = reloadable_->on_change(&Settings::seed, ignore, check("good", std::nullopt));
  const auto all = reloadable_->on_change(ignore, check("all", "nothing"));
  put("name = 'x'\nseed = 3\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(calls_, (std::vector<std::string>{"name", "seed", "good", "all"}));
  EXPECT_EQ(rejected_, std::vector<std::string>{path_ + ": name: no name\n" + path_ +
                                                ": seed: no seed\n" + path_ + ": nothing"});
}

TEST_F(ConfigReloadTest, AnExceptionOfACheckRejectsTheFile) {
  bool throws = true;
  const auto seed = reloadable_->on_change(
      &Settings::seed, [this](std::uint64_t) { calls_.push_back("seed"); },
      [&throws](std::uint64_t) -> Rejection {
        if (throws) throw std::runtime_error("no disk");
        return std::nullopt;
      });
  put("seed = 3\n");
  watch(10s);
  EXPECT_EQ(rejected_, std::vector<std::string>{path_ + ": seed: exception: no disk"});
  EXPECT_TRUE(calls_.empty());
  EXPECT_EQ(reloadable_->current()->seed, 7U);
  throws = false;
  put("seed = 4\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, std::vector<std::string>{"seed"});
}

TEST_F(ConfigReloadTest, ARejectionOfTheWholeConfigurationHasNoKey) {
  const auto all = reloadable_->on_change(
      [](const Settings& next) { return next.seed > 9 ? Rejection("too much") : Rejection(); });
  put("seed = 10\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(rejected_, std::vector<std::string>{path_ + ": too much"});
  EXPECT_EQ(reloadable_->current()->seed, 7U);
}

// The first read of the file finds content that is not known yet, so it is confirmed too.
TEST_F(ConfigReloadTest, WatchReadsTheFileAtItsOwnInterval) {
  options_.poll_interval = 7s;
  options_.debounce_time = 300ms;
  reloadable_.emplace(load<Settings>(platform_.files(), sources_).value(), sources_, options_);
  Duration when{};
  const auto all = reloadable_->on_change([&](const Settings&) { when = elapsed(); });
  put_at(8s, "name = 'x'\n");
  watch(20s);
  EXPECT_EQ(when, 7s + 300ms + 7s + 300ms);
}

TEST_F(ConfigReloadTest, WatchFinishesItsReloadWhenTheLoopDrains) {
  const auto slow = reloadable_->on_change([&](const Settings& next) -> Task<> {
    EXPECT_TRUE(co_await sleep(5s));
    calls_.push_back(next.name);
  });
  put("name = 'x'\n");
  platform_.at(platform_.now() + 3s, [&] { loop_->drain(); });
  run(reloadable_->watch());
  EXPECT_EQ(calls_, std::vector<std::string>{"x"});
  EXPECT_EQ(elapsed(), 2s + 100ms + 5s);
  EXPECT_EQ(reloadable_->current()->name, "x");
}

TEST_F(ConfigReloadTest, ACancelledWatchCancelsItsReload) {
  const auto slow = reloadable_->on_change([&](const Settings& next) -> Task<> {
    const Result<> slept = co_await sleep(5s);
    calls_.push_back(next.name + (slept ? " done" : " cancelled"));
  });
  put("name = 'x'\n");
  watch(3s);
  EXPECT_EQ(elapsed(), 3s);
  EXPECT_EQ(calls_, std::vector<std::string>{"x cancelled"});
  EXPECT_EQ(reloadable_->current()->name, "first");
}

TEST_F(ConfigReloadTest, LaterSourcesStillOverrideTheFile) {
  sources_.environment = {"APP_SEED=5"};
  sources_.arguments = {"--name=mine"};
  reloadable_.emplace(load<Settings>(platform_.files(), sources_).value(), sources_, options_);
  put("name = 'x'\nseed = 6\nratio = 2\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(reloadable_->current()->name, "mine");
  EXPECT_EQ(reloadable_->current()->seed, 5u);
  EXPECT_EQ(reloadable_->current()->ratio, 2.0);
}

TEST_F(ConfigReloadTest, DetectsWrittenAndRenamedFiles) {
  const auto all =
      reloadable_->on_change([&](const Settings& next) { calls_.push_back(next.name); });
  put_at(10s, "name = 'written'\n");
  platform_.at(platform_.now() + 20s, [this] {
    write("/tmp/new.toml", "name = 'renamed'\n");  // same length and same time
    ASSERT_TRUE(platform_.files().rename("/tmp/new.toml", path_));
  });
  watch(30s);
  EXPECT_EQ(calls_, (std::vector<std::string>{"written", "renamed"}));
  EXPECT_EQ(elapsed(), 30s);
}

TEST_F(ConfigReloadTest, WaitsUntilTheFileIsStable) {
  const auto all =
      reloadable_->on_change([&](const Settings& next) { calls_.push_back(next.name); });
  // The file is first read after 2 s, and complete only later.
  put_at(1999ms, "name = 'half'\n");
  put_at(2050ms, "name = 'half'\nseed = ");
  put_at(2150ms, "name = 'whole'\nseed = 2\n");
  watch(3s);
  EXPECT_EQ(calls_, std::vector<std::string>{"whole"});
  EXPECT_TRUE(rejected_.empty());
}

TEST_F(ConfigReloadTest, AVanishedFileChangesNothing) {
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  ASSERT_TRUE(platform_.files().remove(path_));
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(rejected_,
            std::vector<std::string>{path_ + ": cannot be read: No such file or directory"});
  EXPECT_EQ(reloadable_->current()->name, "first");
  put("name = 'back'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(reloadable_->current()->name, "back");
}

TEST_F(ConfigReloadTest, TheFileMayBeCreatedLater) {
  ASSERT_TRUE(platform_.files().remove(path_));
  reloadable_.emplace(load<Settings>(platform_.files(), sources_).value(), sources_, options_);
  EXPECT_EQ(reloadable_->current()->name, "weir");
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  EXPECT_TRUE(rejected_.empty());
  put("name = 'late'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(reloadable_->current()->name, "late");
}

TEST_F(ConfigReloadTest, DetectsAChangeBeforeTheFirstRead) {
  const auto all =
      reloadable_->on_change([&](const Settings& next) { calls_.push_back(next.name); });
  put("name = 'between'\n");
  watch(5s);
  EXPECT_EQ(calls_, std::vector<std::string>{"between"});
}

TEST_F(ConfigReloadTest, SubscribersAreAwaitedInOrder) {
  const auto slow = [&](const Settings&) -> Task<> {
    calls_.push_back("slow begins, " + reloadable_->current()->name);
    std::ignore = co_await sleep(5s);
    calls_.push_back("slow ends");
  };
  const auto first = reloadable_->on_change(slow);
  const auto second = reloadable_->on_change([&](const Settings&) { calls_.push_back("second"); });
  put("name = 'x'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, (std::vector<std::string>{"slow begins, x", "slow ends", "second"}));
}

TEST_F(ConfigReloadTest, AThrowingSubscriberDoesNotStopOthers) {
  const auto first = reloadable_->on_change(
      &Settings::name, [](const std::string&) { throw std::runtime_error("no disk"); });
  const auto second = reloadable_->on_change([&](const Settings&) { calls_.push_back("second"); });
  put("name = 'x'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, std::vector<std::string>{"second"});
  EXPECT_EQ(platform_.logged(), std::vector<std::string>{
                                    "weir: configuration: subscriber to name: exception: no disk"});
}

TEST_F(ConfigReloadTest, AThrowingSubscriberToAllFieldsIsNamed) {
  const auto all =
      reloadable_->on_change([](const Settings&) { throw std::runtime_error("no disk"); });
  put("name = 'x'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(platform_.logged(),
            std::vector<std::string>{
                "weir: configuration: subscriber to all fields: exception: no disk"});
}

TEST_F(ConfigReloadTest, ARejectionRollsBackEarlierSubscribers) {
  const auto all =
      reloadable_->on_change([&](const Settings& next) { calls_.push_back(next.name); });
  const auto name = reloadable_->on_change(&Settings::name, [&](const std::string& next) -> Task<> {
    co_await yield();
    calls_.push_back("name " + next);
    if (next == "first") throw std::runtime_error("no way back");
  });
  const auto seed =
      reloadable_->on_change(&Settings::seed, [&](std::uint64_t next) -> Task<Rejection> {
        co_await yield();
        co_return next > 9 ? Rejection("no disk for it") : Rejection();
      });
  const auto last = reloadable_->on_change([&](const Settings&) { calls_.push_back("last"); });
  put("name = 'x'\nseed = 10\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(rejected_, std::vector<std::string>{path_ + ": seed: no disk for it"});
  EXPECT_EQ(calls_, (std::vector<std::string>{"x", "name x", "name first", "first"}));
  EXPECT_EQ(reloadable_->current()->name, "first");
  EXPECT_EQ(platform_.logged().size(), 1u);
  EXPECT_EQ(reload(), ReloadResult::rejected) << "the file has not changed";
  EXPECT_EQ(calls_.size(), 4u);
  calls_.clear();
  put("name = 'x'\nseed = 9\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, (std::vector<std::string>{"x", "name x", "last"}));
}

TEST_F(ConfigReloadTest, ACancelledSubscriberIsNotifiedAgain) {
  const auto plain =
      reloadable_->on_change([&](const Settings& next) { calls_.push_back("plain " + next.name); });
  const auto waits = [&](const std::string& name) -> Task<> {
    calls_.push_back("begins " + name);
    std::ignore = co_await sleep(1s);
    calls_.push_back("has " + name);
  };
  const auto slow = reloadable_->on_change(&Settings::name, waits);
  const auto never = reloadable_->on_change(
      &Settings::name, [&](const std::string& name) { calls_.push_back("never " + name); });
  put("name = 'second'\n[server]\nidle_timeout = '1s'\n");
  CancelSource cancel;
  platform_.at(platform_.now() + 600ms, [&] { cancel.cancel(); });
  EXPECT_EQ(run(reloadable_->reload(), &cancel), ReloadResult::unchanged);
  EXPECT_EQ(calls_, (std::vector<std::string>{"plain second", "begins second", "has second",
                                              "plain first"}));
  EXPECT_EQ(reloadable_->current()->name, "first");
  calls_.clear();
  put("name = 'first'\n[server]\nidle_timeout = '1s'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, (std::vector<std::string>{"begins first", "has first"}));
  EXPECT_EQ(reload(), ReloadResult::unchanged) << "the subscriber has the current value";
  EXPECT_TRUE(rejected_.empty());
}

TEST_F(ConfigReloadTest, ACancelledSubscriberGetsTheCurrentValueIfTheNextFileIsWrong) {
  const auto waits = [&](const std::string& name) -> Task<> {
    calls_.push_back(name);
    std::ignore = co_await sleep(1s);
  };
  const auto slow = reloadable_->on_change(&Settings::name, waits);
  put("name = 'second'\n");
  CancelSource cancel;
  platform_.at(platform_.now() + 600ms, [&] { cancel.cancel(); });
  EXPECT_EQ(run(reloadable_->reload(), &cancel), ReloadResult::unchanged);
  EXPECT_EQ(calls_, std::vector<std::string>{"second"});
  put("nothing = 'is called so'\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(calls_, (std::vector<std::string>{"second", "first"}));
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(calls_.size(), 2U) << "the subscriber has the current value";
  EXPECT_EQ(rejected_.size(), 1U) << "the file has not changed";
}

TEST_F(ConfigReloadTest, SubscriptionsMayEndDuringANotification) {
  Subscription second;
  Subscription first = reloadable_->on_change([&](const Settings&) {
    calls_.push_back("first");
    first = Subscription();
    second = Subscription();
  });
  second = reloadable_->on_change([&](const Settings&) { calls_.push_back("second"); });
  Subscription gone = reloadable_->on_change([&](const Settings&) { calls_.push_back("gone"); });
  gone = Subscription();
  put("name = 'x'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  put("name = 'y'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, std::vector<std::string>{"first"});
  Subscription late = reloadable_->on_change([](const Settings&) {});
  reloadable_.reset();  // a subscription may outlive the Reloadable
}

TEST_F(ConfigReloadTest, ASubscriptionMayBeMoved) {
  Subscription first =
      reloadable_->on_change([&](const Settings& next) { calls_.push_back(next.name); });
  {
    Subscription second = std::move(first);
    first = Subscription();
    put("name = 'x'\n");
    EXPECT_EQ(reload(), ReloadResult::changed);
    EXPECT_EQ(calls_, std::vector<std::string>{"x"});
    first = std::move(second);
  }
  put("name = 'y'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, (std::vector<std::string>{"x", "y"}));
}

TEST_F(ConfigReloadTest, ConcurrentReloadsRunOneAfterTheOther) {
  const auto all = reloadable_->on_change([&](const Settings& next) -> Task<> {
    calls_.push_back(next.name);
    std::ignore = co_await sleep(1s);
  });
  put("name = 'x'\n");
  const auto both = run(weir::all(reloadable_->reload(), reloadable_->reload()));
  ASSERT_TRUE(both);
  EXPECT_EQ(std::get<0>(*both), ReloadResult::changed);
  EXPECT_EQ(std::get<1>(*both), ReloadResult::unchanged);
  EXPECT_EQ(calls_, std::vector<std::string>{"x"});
}

TEST_F(ConfigReloadTest, WatchEndsWhenTheLoopDrains) {
  platform_.at(platform_.now() + 3s, [&] { loop_->drain(); });
  run(reloadable_->watch());
  EXPECT_EQ(elapsed(), 3s);
  run(reloadable_->watch());
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(ConfigReloadTest, ErrorsAreLoggedWithoutACallback) {
  reloadable_.emplace(load<Settings>(platform_.files(), sources_).value(), sources_);
  put("name = 1\nseed = 'x'\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  ASSERT_EQ(platform_.logged().size(), 2u);
  EXPECT_EQ(platform_.logged()[0],
            "weir: configuration rejected: " + path_ + ":1:8: name: expected a string, found 1");
}

TEST_F(ConfigReloadTest, NothingChangesWithoutAFile) {
  sources_.file.clear();
  reloadable_.emplace(Settings(), sources_);
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  watch(10s);
  EXPECT_TRUE(platform_.logged().empty());
}

TEST_F(ConfigReloadTest, HasTheDocumentedDefaults) {
  EXPECT_EQ(ReloadOptions().poll_interval, 2s);
  EXPECT_EQ(ReloadOptions().debounce_time, 100ms);
  put("name = 'x'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(elapsed(), 100ms);
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  EXPECT_EQ(elapsed(), 100ms) << "a known file is not awaited";
}

TEST_F(ConfigReloadTest, AnotherReasonForAnUnreadableFileIsReported) {
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  ASSERT_TRUE(platform_.files().remove(path_));
  EXPECT_EQ(reload(), ReloadResult::rejected);
  put("name = 'x'\n");
  ASSERT_TRUE(platform_.files().set_permissions(path_, 0));
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(rejected_,
            (std::vector<std::string>{path_ + ": cannot be read: No such file or directory",
                                      path_ + ": cannot be read: Permission denied"}));
}

TEST_F(ConfigReloadTest, AFileAboveTheMaximumSizeIsRejected) {
  sources_.file_bytes_max = 12;
  reloadable_.emplace(Settings(), sources_, options_);
  put("name = 'abc'");
  EXPECT_EQ(reload(), ReloadResult::changed);
  put("name = 'abcd'");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  ASSERT_EQ(rejected_.size(), 1U);
  EXPECT_TRUE(rejected_[0].starts_with(path_ + ": ")) << rejected_[0];
  EXPECT_EQ(reloadable_->current()->name, "abc");
}

TEST_F(ConfigReloadTest, ANamedFileThatVanishesBeforeTheFirstReloadIsReported) {
  sources_.file.clear();
  sources_.arguments = {"--config", path_};
  reloadable_.emplace(load<Settings>(platform_.files(), sources_).value(), sources_, options_);
  ASSERT_TRUE(platform_.files().remove(path_));
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(rejected_.size(), 1U);
}

TEST_F(ConfigReloadTest, AnEndedSubscriptionIsNotAskedAndIsForgotten) {
  const auto owned = std::make_shared<int>(0);
  {
    const auto seed = reloadable_->on_change(
        &Settings::seed, [owned](std::uint64_t) {},
        [](std::uint64_t) { return Rejection("never"); });
    EXPECT_EQ(owned.use_count(), 2);
  }
  put("seed = 10\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  const auto other = reloadable_->on_change([](const Settings&) {});
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_F(ConfigReloadTest, ARollBackSeesTheOldConfigurationAndMayFail) {
  const auto name =
      reloadable_->on_change(&Settings::name, [&](const std::string& next) -> Rejection {
        calls_.push_back(next + " of " + reloadable_->current()->name);
        return next == "first" ? Rejection("no way back") : Rejection();
      });
  const auto seed = reloadable_->on_change(
      &Settings::seed, [](std::uint64_t) { return Rejection("no disk for it"); });
  put("name = 'x'\nseed = 10\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(calls_, (std::vector<std::string>{"x of x", "first of first"}));
  EXPECT_EQ(platform_.logged(),
            std::vector<std::string>{"weir: configuration: subscriber to name cannot be rolled "
                                     "back: no way back"});
}

// The address sanitizer finds a configuration that is used after it was replaced.
TEST_F(ConfigReloadTest, OtherThreadsReadTheCurrentConfiguration) {
  std::atomic<bool> over = false;
  const auto read_on = [&] {
    while (!over) {
      const auto seen = reloadable_->current();
      EXPECT_TRUE(seen->name == "first" || seen->name == "odd" || seen->name == "even");
    }
  };
  std::thread one(read_on);
  std::thread two(read_on);
  for (int round = 0; round < 200; ++round) {
    put(round % 2 == 0 ? "name = 'even'\n" : "name = 'odd'\n");
    EXPECT_EQ(reload(), ReloadResult::changed);
  }
  over = true;
  one.join();
  two.join();
}

/// Tests of a subscriber to the name that a cancellation has interrupted.
class ConfigCancelTest : public ConfigReloadTest {
 protected:
  auto slow_subscriber() {
    return [this](const std::string& name) -> Task<> {
      calls_.push_back(name);
      std::ignore = co_await sleep(1s);
    };
  }
  /// Cancels a reload of the name `second` while the subscriber takes it.
  void interrupt() {
    put("name = 'second'\n");
    CancelSource cancel;
    platform_.at(platform_.now() + 600ms, [&] { cancel.cancel(); });
    EXPECT_EQ(run(reloadable_->reload(), &cancel), ReloadResult::unchanged);
    EXPECT_EQ(calls_, std::vector<std::string>{"second"});
    calls_.clear();
  }
};

TEST_F(ConfigCancelTest, ARejectingCheckGivesTheCurrentValueAgain) {
  const auto slow = reloadable_->on_change(&Settings::name, slow_subscriber());
  const auto seed = reloadable_->on_change(
      &Settings::seed, [](std::uint64_t) {}, [](std::uint64_t) { return Rejection("never"); });
  interrupt();
  put("name = 'third'\nseed = 10\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(calls_, std::vector<std::string>{"first"});
}

TEST_F(ConfigCancelTest, ARejectingSubscriberGivesTheCurrentValueAgain) {
  const auto seed =
      reloadable_->on_change(&Settings::seed, [](std::uint64_t) { return Rejection("never"); });
  const auto slow = reloadable_->on_change(&Settings::name, slow_subscriber());
  interrupt();
  put("name = 'third'\nseed = 10\n");
  EXPECT_EQ(reload(), ReloadResult::rejected);
  EXPECT_EQ(calls_, std::vector<std::string>{"first"});
}

// The first subscriber is cancelled when it gets the old part again.
TEST_F(ConfigCancelTest, ACancelledRollBackIsRepeated) {
  const auto slow = [this](std::string of) {
    return [this, of](const std::string& name) -> Task<> {
      calls_.push_back(of + " " + name);
      std::ignore = co_await sleep(1s);
    };
  };
  const auto one = reloadable_->on_change(&Settings::name, slow("one"));
  const auto two = reloadable_->on_change(&Settings::name, slow("two"));
  put("name = 'second'\n");
  CancelSource cancel;
  platform_.at(platform_.now() + 1600ms, [&] { cancel.cancel(); });
  EXPECT_EQ(run(reloadable_->reload(), &cancel), ReloadResult::unchanged);
  EXPECT_EQ(calls_, (std::vector<std::string>{"one second", "two second", "one first"}));
  EXPECT_EQ(elapsed(), 1600ms);
  calls_.clear();
  put("name = 'first'\n[server]\nidle_timeout = '1s'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(calls_, (std::vector<std::string>{"one first", "two first"}));
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  EXPECT_EQ(calls_.size(), 2U);
}

TEST_F(ConfigCancelTest, AnEndedSubscriptionIsNotAwaited) {
  auto slow = reloadable_->on_change(&Settings::name, slow_subscriber());
  interrupt();
  slow = Subscription();
  put("name = 'third'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  const Instant before = platform_.now();
  EXPECT_EQ(reload(), ReloadResult::unchanged);
  EXPECT_EQ(platform_.now(), before) << "the file is known";
  EXPECT_TRUE(calls_.empty());
}

TEST_F(ConfigCancelTest, ASubscriptionMayEndBeforeItsTurn) {
  Subscription slow;
  const auto first = reloadable_->on_change([&](const Settings& next) {
    if (next.name == "third") slow = Subscription();
  });
  slow = reloadable_->on_change(&Settings::name, slow_subscriber());
  interrupt();
  put("name = 'third'\n");
  EXPECT_EQ(reload(), ReloadResult::changed);
  EXPECT_EQ(reloadable_->current()->name, "third");
  EXPECT_TRUE(calls_.empty());
}

TEST_F(ConfigCancelTest, AReloadThatWaitsForAnotherIsCancelled) {
  const auto slow = reloadable_->on_change(&Settings::name, slow_subscriber());
  put("name = 'second'\n");
  CancelSource cancel;
  platform_.at(platform_.now() + 600ms, [&] { cancel.cancel(); });
  const auto wait = [](Reloadable<Settings>& from, CancelSource& source) -> Task<ReloadResult> {
    const Context own = co_await this_context();
    auto reloading = in_context(Context{own.loop, &source}, from.reload());
    const ReloadResult result = co_await std::move(reloading);
    EXPECT_EQ(from.current()->name, "second") << "the other reload is in progress";
    co_return result;
  };
  const auto both = run(weir::all(reloadable_->reload(), wait(*reloadable_, cancel)));
  EXPECT_EQ(std::get<0>(both.value()), ReloadResult::changed);
  EXPECT_EQ(std::get<1>(both.value()), ReloadResult::unchanged);
  EXPECT_EQ(elapsed(), 1100ms);
}

/// Each read of the file takes 20 ms, so that a reload without subscribers takes 140 ms.
class ConfigSlowFileTest : public ConfigReloadTest {
 protected:
  static MemoryPlatformOptions slow_files() {
    MemoryPlatformOptions options;
    options.file_time = 10ms;
    return options;
  }
  ConfigSlowFileTest() : ConfigReloadTest(slow_files()) {}
};

TEST_F(ConfigSlowFileTest, ACancelledReloadAppliesNothing) {
  int next = 0;
  for (const Duration pause : {Duration(0), Duration(5ms), Duration(15ms), Duration(50ms),
                               Duration(125ms), Duration(135ms)}) {
    const std::string before = reloadable_->current()->name;
    const std::string name = "name" + std::to_string(next++);
    put("name = '" + name + "'\n");
    CancelSource cancel;
    if (pause == Duration::zero()) cancel.cancel();
    platform_.at(platform_.now() + pause, [&] { cancel.cancel(); });
    EXPECT_EQ(run(reloadable_->reload(), &cancel), ReloadResult::unchanged) << pause.count();
    EXPECT_EQ(reloadable_->current()->name, before);
    EXPECT_EQ(reload(), ReloadResult::changed);
    EXPECT_EQ(reloadable_->current()->name, name);
  }
  EXPECT_TRUE(rejected_.empty());
}

}  // namespace
}  // namespace weir::config::test::reload_test

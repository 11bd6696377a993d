#include "weir/app/config_live.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "weir/config/test/config_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/combinators.hpp"
#include "weir/testing/test/loop_fixture.hpp"

namespace weir::config::test {
namespace {

class ConfigLive : public LoopTest {
 protected:
  ConfigLive() {
    put("name = 'first'\n[server]\nidle_timeout = '1s'\n");
    sources_ = sources_of({});
    sources_.file = path_;
    options_.on_refused = [this](const Errors& errors) { refused_.push_back(errors.message()); };
    live_.emplace(load<Settings>(host_.files(), sources_).value(), sources_, options_);
  }

  void put(std::string_view text) { write(path_, text); }
  void write(const std::string& path, std::string_view text) {
    const auto file = host_.files().open(path, {.mode = os::FileMode::replace});
    ASSERT_TRUE(file) << file.error().message();
    for (std::size_t done = 0; done < text.size();) {
      done += host_.files().write_at(file->value(), to_bytes(text.substr(done)), done).value();
    }
  }
  void put_at(Duration when, std::string text) {
    host_.at(host_.now() + when, [this, text = std::move(text)] { put(text); });
  }

  Reload reload() { return run(live_->reload()); }
  /// Watches for so long.
  void watch(Duration length) {
    CancelSource cancel;
    host_.at(host_.now() + length, [&] { cancel.cancel(); });
    run(live_->watch(), &cancel);
  }

  const std::string path_ = "/tmp/live.toml";
  Sources sources_;
  LiveOptions options_;
  std::vector<std::string> refused_;
  std::vector<std::string> told_;
  std::optional<Live<Settings>> live_;
};

TEST_F(ConfigLive, TellsThoseWhosePartHasChanged) {
  const auto server = live_->on_change(&Settings::server, [&](const Server& next) {
    told_.push_back("server " + to_text(next.idle_timeout));
  });
  const auto seed =
      live_->on_change(&Settings::seed, [&](std::uint64_t) { told_.push_back("seed"); });
  const auto all = live_->on_change([&](const Settings& next) { told_.push_back(next.name); });
  EXPECT_EQ(reload(), Reload::unchanged);
  const auto before = live_->now();
  put("name = 'first'\n[server]\nidle_timeout = '2s'\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(told_, (std::vector<std::string>{"server 2s", "first"}));
  EXPECT_EQ(live_->now()->server.idle_timeout, 2s);
  EXPECT_EQ(before->server.idle_timeout, 1s);
  EXPECT_EQ(reload(), Reload::unchanged);
  put("# another comment\nname = \"first\"\nserver.idle_timeout = '2000ms'\n");
  EXPECT_EQ(reload(), Reload::unchanged);
  EXPECT_EQ(told_.size(), 2u);
}

TEST_F(ConfigLive, AWrongFileChangesNothingAndIsToldOnce) {
  const auto all = live_->on_change([&](const Settings& next) { told_.push_back(next.name); });
  put("name = 'second'\nseed = 'x'\nnoise = 1\n");
  EXPECT_EQ(reload(), Reload::refused);
  EXPECT_EQ(reload(), Reload::refused);
  watch(10s);
  EXPECT_EQ(refused_, (std::vector<std::string>{path_ +
                                                ":2:8: seed: expected an integer from 0 to "
                                                "18446744073709551615, found the string \"x\"\n" +
                                                path_ + ":3:1: noise: unknown"}));
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(live_->now()->name, "first");
  put("name = 'third'\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(told_, std::vector<std::string>{"third"});
}

TEST_F(ConfigLive, WhenOneRefusesNobodyIsTold) {
  const auto name =
      live_->on_change(&Settings::name, [&](const std::string& next) { told_.push_back(next); });
  const auto seed = live_->on_change(
      &Settings::seed, [&](std::uint64_t) { told_.push_back("seed"); },
      [](std::uint64_t next) { return next > 9 ? Refusal("too large") : Refusal(); });
  put("name = 'x'\nseed = 10\n");
  EXPECT_EQ(reload(), Reload::refused);
  EXPECT_EQ(refused_, std::vector<std::string>{path_ + ": seed: too large"});
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(live_->now()->name, "first");
  put("name = 'x'\nseed = 9\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(told_, (std::vector<std::string>{"x", "seed"}));
}

TEST_F(ConfigLive, TheLaterSourcesGoOnToWin) {
  sources_.environment = {"APP_SEED=5"};
  sources_.arguments = {"--name=mine"};
  live_.emplace(load<Settings>(host_.files(), sources_).value(), sources_, options_);
  put("name = 'x'\nseed = 6\nratio = 2\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(live_->now()->name, "mine");
  EXPECT_EQ(live_->now()->seed, 5u);
  EXPECT_EQ(live_->now()->ratio, 2.0);
}

TEST_F(ConfigLive, SeesFilesThatAreWrittenAndRenamedAlike) {
  const auto all = live_->on_change([&](const Settings& next) { told_.push_back(next.name); });
  put_at(10s, "name = 'written'\n");
  host_.at(host_.now() + 20s, [this] {
    write("/tmp/new.toml", "name = 'renamed'\n");  // as long as the other, and in the same moment
    ASSERT_TRUE(host_.files().rename("/tmp/new.toml", path_));
  });
  watch(30s);
  EXPECT_EQ(told_, (std::vector<std::string>{"written", "renamed"}));
  EXPECT_EQ(elapsed(), 30s);
}

TEST_F(ConfigLive, WaitsUntilAFileHasSettled) {
  const auto all = live_->on_change([&](const Settings& next) { told_.push_back(next.name); });
  // Looked at after 2 s; complete only later.
  put_at(1999ms, "name = 'half'\n");
  put_at(2050ms, "name = 'half'\nseed = ");
  put_at(2150ms, "name = 'whole'\nseed = 2\n");
  watch(3s);
  EXPECT_EQ(told_, std::vector<std::string>{"whole"});
  EXPECT_TRUE(refused_.empty());
}

TEST_F(ConfigLive, AFileThatVanishesChangesNothing) {
  EXPECT_EQ(reload(), Reload::unchanged);
  ASSERT_TRUE(host_.files().remove(path_));
  EXPECT_EQ(reload(), Reload::refused);
  EXPECT_EQ(refused_,
            std::vector<std::string>{path_ + ": cannot be read: No such file or directory"});
  EXPECT_EQ(live_->now()->name, "first");
  put("name = 'back'\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(live_->now()->name, "back");
}

TEST_F(ConfigLive, AFileMayComeLater) {
  ASSERT_TRUE(host_.files().remove(path_));
  live_.emplace(load<Settings>(host_.files(), sources_).value(), sources_, options_);
  EXPECT_EQ(live_->now()->name, "weir");
  EXPECT_EQ(reload(), Reload::unchanged);
  EXPECT_TRUE(refused_.empty());
  put("name = 'late'\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(live_->now()->name, "late");
}

TEST_F(ConfigLive, AChangeBeforeTheFirstLookIsSeen) {
  const auto all = live_->on_change([&](const Settings& next) { told_.push_back(next.name); });
  put("name = 'between'\n");
  watch(5s);
  EXPECT_EQ(told_, std::vector<std::string>{"between"});
}

TEST_F(ConfigLive, TakersAreAwaitedOneAfterTheOther) {
  const auto slow = [&](const Settings&) -> Task<> {
    told_.push_back("slow begins, " + live_->now()->name);
    static_cast<void>(co_await sleep(5s));
    told_.push_back("slow ends");
  };
  const auto first = live_->on_change(slow);
  const auto second = live_->on_change([&](const Settings&) { told_.push_back("second"); });
  put("name = 'x'\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(told_, (std::vector<std::string>{"slow begins, x", "slow ends", "second"}));
}

TEST_F(ConfigLive, WhatATakerThrowsIsItsOwn) {
  const auto first = live_->on_change(
      &Settings::name, [](const std::string&) { throw std::runtime_error("no disk"); });
  const auto second = live_->on_change([&](const Settings&) { told_.push_back("second"); });
  put("name = 'x'\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(told_, std::vector<std::string>{"second"});
  EXPECT_EQ(host_.logged(),
            std::vector<std::string>{"weir: configuration: who takes name: it threw: no disk"});
}

TEST_F(ConfigLive, WhenOneCannotTakeItAllHaveTheOldOneAgain) {
  const auto all = live_->on_change([&](const Settings& next) { told_.push_back(next.name); });
  const auto name = live_->on_change(&Settings::name, [&](const std::string& next) -> Task<> {
    co_await yield();
    told_.push_back("name " + next);
    if (next == "first") throw std::runtime_error("no way back");
  });
  const auto seed = live_->on_change(&Settings::seed, [&](std::uint64_t next) -> Task<Refusal> {
    co_await yield();
    co_return next > 9 ? Refusal("no disk for it") : Refusal();
  });
  const auto last = live_->on_change([&](const Settings&) { told_.push_back("last"); });
  put("name = 'x'\nseed = 10\n");
  EXPECT_EQ(reload(), Reload::refused);
  EXPECT_EQ(refused_, std::vector<std::string>{path_ + ": seed: no disk for it"});
  EXPECT_EQ(told_, (std::vector<std::string>{"x", "name x", "name first", "first"}));
  EXPECT_EQ(live_->now()->name, "first");
  EXPECT_EQ(host_.logged().size(), 1u);
  EXPECT_EQ(reload(), Reload::refused) << "it is the same file";
  EXPECT_EQ(told_.size(), 4u);
  told_.clear();
  put("name = 'x'\nseed = 9\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(told_, (std::vector<std::string>{"x", "name x", "last"}));
}

TEST_F(ConfigLive, WhoIsCancelledWhileItTakesItIsToldAgain) {
  const auto plain =
      live_->on_change([&](const Settings& next) { told_.push_back("plain " + next.name); });
  const auto waits = [&](const std::string& name) -> Task<> {
    told_.push_back("begins " + name);
    static_cast<void>(co_await sleep(1s));
    told_.push_back("has " + name);
  };
  const auto slow = live_->on_change(&Settings::name, waits);
  const auto never = live_->on_change(
      &Settings::name, [&](const std::string& name) { told_.push_back("never " + name); });
  put("name = 'second'\n[server]\nidle_timeout = '1s'\n");
  CancelSource cancel;
  host_.at(host_.now() + 600ms, [&] { cancel.cancel(); });
  EXPECT_EQ(run(live_->reload(), &cancel), Reload::unchanged);
  EXPECT_EQ(told_, (std::vector<std::string>{"plain second", "begins second", "has second",
                                             "plain first"}));
  EXPECT_EQ(live_->now()->name, "first");
  told_.clear();
  put("name = 'first'\n[server]\nidle_timeout = '1s'\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(told_, (std::vector<std::string>{"begins first", "has first"}));
  EXPECT_EQ(reload(), Reload::unchanged) << "now it has what counts";
  EXPECT_TRUE(refused_.empty());
}

TEST_F(ConfigLive, WhoWasCancelledIsToldWhatCountsAlsoWhereTheFileIsWrongThen) {
  const auto waits = [&](const std::string& name) -> Task<> {
    told_.push_back(name);
    static_cast<void>(co_await sleep(1s));
  };
  const auto slow = live_->on_change(&Settings::name, waits);
  put("name = 'second'\n");
  CancelSource cancel;
  host_.at(host_.now() + 600ms, [&] { cancel.cancel(); });
  EXPECT_EQ(run(live_->reload(), &cancel), Reload::unchanged);
  EXPECT_EQ(told_, std::vector<std::string>{"second"});
  put("nothing = 'is called so'\n");
  EXPECT_EQ(reload(), Reload::refused);
  EXPECT_EQ(told_, (std::vector<std::string>{"second", "first"}));
  EXPECT_EQ(reload(), Reload::refused);
  EXPECT_EQ(told_.size(), 2U) << "it has what counts";
  EXPECT_EQ(refused_.size(), 1U) << "and the file is known";
}

TEST_F(ConfigLive, SubscriptionsEndAlsoWhileTheyAreTold) {
  Subscription second;
  Subscription first = live_->on_change([&](const Settings&) {
    told_.push_back("first");
    first = Subscription();
    second = Subscription();
  });
  second = live_->on_change([&](const Settings&) { told_.push_back("second"); });
  Subscription gone = live_->on_change([&](const Settings&) { told_.push_back("gone"); });
  gone = Subscription();
  put("name = 'x'\n");
  EXPECT_EQ(reload(), Reload::changed);
  put("name = 'y'\n");
  EXPECT_EQ(reload(), Reload::changed);
  EXPECT_EQ(told_, std::vector<std::string>{"first"});
  Subscription late = live_->on_change([](const Settings&) {});
  live_.reset();  // a subscription may outlive it
}

TEST_F(ConfigLive, TwoLooksAtOnceAreOneAfterTheOther) {
  const auto all = live_->on_change([&](const Settings& next) -> Task<> {
    told_.push_back(next.name);
    static_cast<void>(co_await sleep(1s));
  });
  put("name = 'x'\n");
  const auto both = run(weir::all(live_->reload(), live_->reload()));
  ASSERT_TRUE(both);
  EXPECT_EQ(std::get<0>(*both), Reload::changed);
  EXPECT_EQ(std::get<1>(*both), Reload::unchanged);
  EXPECT_EQ(told_, std::vector<std::string>{"x"});
}

TEST_F(ConfigLive, WatchingEndsWhenTheLoopDrains) {
  host_.at(host_.now() + 3s, [&] { loop_->drain(); });
  run(live_->watch());
  EXPECT_EQ(elapsed(), 3s);
  run(live_->watch());
  EXPECT_EQ(elapsed(), 3s);
}

TEST_F(ConfigLive, WithoutAListenerErrorsAreLogged) {
  live_.emplace(load<Settings>(host_.files(), sources_).value(), sources_);
  put("name = 1\nseed = 'x'\n");
  EXPECT_EQ(reload(), Reload::refused);
  ASSERT_EQ(host_.logged().size(), 2u);
  EXPECT_EQ(host_.logged()[0],
            "weir: not taken: " + path_ + ":1:8: name: expected a string, found 1");
}

TEST_F(ConfigLive, WithoutAFileNothingEverChanges) {
  sources_.file.clear();
  live_.emplace(Settings(), sources_);
  EXPECT_EQ(reload(), Reload::unchanged);
  watch(10s);
  EXPECT_TRUE(host_.logged().empty());
}

}  // namespace
}  // namespace weir::config::test

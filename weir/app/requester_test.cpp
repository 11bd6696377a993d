#include "weir/app/requester.hpp"

#include <string>
#include <vector>

#include "weir/app/test/app_fixture.hpp"

namespace weir {
namespace {

struct Level {
  int value;
};

struct Logger : Said {
  Logger(const Journal& journal, Requester who)
      : Said(journal, "logger of " + std::string(who.name().substr(who.name().rfind(':') + 1))),
        level(who.properties().get<Level>() == nullptr ? 0 : who.properties().get<Level>()->value) {
  }
  int level;
};

struct First : Said {
  First(const Journal& journal, Logger& own) : Said(journal, "first"), logger(own) {}
  Logger& logger;
};
struct Second : Said {
  Second(const Journal& journal, Logger& own, First& first) : Said(journal, "second") {
    EXPECT_NE(&own, &first.logger);
    EXPECT_EQ(own.level, 3);
    EXPECT_EQ(first.logger.level, 0);
  }
};

using RequesterTest = AppTest;

TEST_F(RequesterTest, EachGetsItsOwn) {
  app_.per_core<Second>({.properties = {Level{3}}});
  app_.per_core<First>();
  app_.per_core<Logger>();
  ASSERT_TRUE(start());
  expect_order({"logger of First made", "first made", "second made"});
  expect_order({"logger of Second made", "second made"});
  EXPECT_EQ(lines_.size(), 4U);
  stop();
  expect_order({"second gone", "first gone", "logger of First gone"});
  expect_order({"second gone", "logger of Second gone"});
  EXPECT_EQ(lines_.size(), 8U);
}

TEST_F(RequesterTest, NobodyAsksNobodyIsMade) {
  app_.per_core<Logger>();
  ASSERT_TRUE(start());
  EXPECT_TRUE(lines_.empty());
  stop();
}

TEST_F(RequesterTest, ItGoesWithItsRequester) {
  const ServiceId first = app_.per_core<First>();
  app_.per_core<Logger>();
  ASSERT_TRUE(start());
  lines_.clear();
  ASSERT_TRUE(run(app_.stop(first)));
  EXPECT_EQ(lines_, (std::vector<std::string>{"first gone", "logger of First gone"}));
  lines_.clear();
  ASSERT_TRUE(run(app_.start(first)));
  EXPECT_EQ(lines_, (std::vector<std::string>{"logger of First made", "first made"}));
  ASSERT_TRUE(run(app_.remove(first)));
  EXPECT_TRUE(said("logger of First gone"));
  stop();
}

struct Sink {};
struct Nested : Said {
  Nested(const Journal& journal, Requester who, Logger&) : Said(journal, "nested") {
    EXPECT_EQ(who.name(), wiring::type<Sink>.name);
    EXPECT_TRUE(who.is<Sink>());
    EXPECT_FALSE(who.is<Nested>());
  }
};

TEST_F(RequesterTest, WhatIsMadeForOneMayRequestToo) {
  app_.per_core<Logger>();
  app_.per_core<Nested>();
  app_.per_core([](Nested&) { return Sink(); });
  ASSERT_TRUE(start());
  expect_order({"logger of Nested made", "nested made"});
  stop();
  expect_order({"nested gone", "logger of Nested gone"});
}

struct Slow : Said {
  Slow(const Journal& journal, Requester) : Said(journal, "slow") {}
  Task<Result<>> start() {
    static_cast<void>(co_await sleep(1s));
    co_return {};
  }
  Task<> stop() { static_cast<void>(co_await sleep(1s)); }
};
struct UsesSlow : Said {
  UsesSlow(const Journal& journal, Slow&) : Said(journal, "user") {}
};

TEST_F(RequesterTest, WhatIsMadeMayTakeItsTime) {
  app_.per_core<UsesSlow>();
  app_.per_core<Slow>();
  ASSERT_TRUE(start());
  EXPECT_EQ(elapsed(), 1s);
  stop();
  EXPECT_EQ(elapsed(), 2s);
  EXPECT_EQ(lines_, (std::vector<std::string>{"slow made", "user made", "user gone", "slow gone"}));
}

TEST_F(RequesterTest, TheFactoryMayBeStoppedAndItsUsersStop) {
  app_.per_core<First>();
  const ServiceId logger = app_.per_core<Logger>();
  ASSERT_TRUE(start());
  lines_.clear();
  ASSERT_TRUE(run(app_.stop(logger)));
  EXPECT_EQ(lines_, (std::vector<std::string>{"first gone", "logger of First gone"}));
  ASSERT_TRUE(run(app_.start(logger)));
  EXPECT_EQ(lines_.size(), 4U);
  ASSERT_TRUE(run(app_.remove(logger)));
  EXPECT_EQ(lines_.size(), 6U);
  app_.per_core<Logger>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(lines_.size(), 8U);
  EXPECT_EQ(lines_.back(), "first made");
  stop();
}

}  // namespace
}  // namespace weir

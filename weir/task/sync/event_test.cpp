#include "weir/task/sync/event.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir {
namespace {

using EventTest = StrikeTest;

template <class Event>
Task<> note_passing(Event& event, std::vector<int>& to, int number) {
  EXPECT_TRUE(co_await event.wait());
  to.push_back(number);
}

// --- manual reset -------------------------------------------------------------------------------

TEST_F(EventTest, ManualLetsEverybodyPassInOrder) {
  CoreManualResetEvent event;
  std::vector<int> passed;
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 4; ++i) scope.spawn(note_passing(event, passed, i));
    co_await yield();
    EXPECT_TRUE(passed.empty());
    event.set();
    EXPECT_TRUE(passed.empty()) << "nobody is resumed by set() itself";
    co_await yield();
    EXPECT_EQ(passed, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_TRUE(co_await event.wait()) << "it stays set";
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(EventTest, ManualResetDoesNotTakeBackWhoHasPassed) {
  CoreManualResetEvent event;
  std::vector<int> passed;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn(note_passing(event, passed, 1));
    event.set();
    event.reset();
    EXPECT_EQ((co_await timeout(1s, event.wait())).error(), Errc::timed_out);
    EXPECT_EQ(passed, (std::vector<int>{1}));
  };
  EXPECT_TRUE(run(with_scope(body)));
}

// --- auto reset ---------------------------------------------------------------------------------

TEST_F(EventTest, AutoLetsOnePassEachTime) {
  CoreAutoResetEvent event;
  std::vector<int> passed;
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 3; ++i) scope.spawn(note_passing(event, passed, i));
    for (int i = 1; i <= 3; ++i) {
      event.set();
      EXPECT_FALSE(event.is_set());
      co_await yield();
      EXPECT_EQ(passed.size(), static_cast<std::size_t>(i));
    }
    EXPECT_EQ(passed, (std::vector<int>{0, 1, 2}));
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(EventTest, AutoRemembersOneSetAndNoMore) {
  CoreAutoResetEvent event;
  const auto body = [&]() -> Task<> {
    event.set();
    event.set();
    EXPECT_TRUE(co_await event.wait());
    EXPECT_EQ((co_await timeout(1s, event.wait())).error(), Errc::timed_out);
    event.set();
    event.reset();
    EXPECT_EQ((co_await timeout(1s, event.wait())).error(), Errc::timed_out);
  };
  run(body());
}

// A set() goes to exactly one task, whichever waits are cancelled, and is never lost: what was set
// is what passed and what is remembered.
Task<> pass_often(Strike& strike, CoreAutoResetEvent& event, int& passed) {
  for (int i = 0; i < 3; ++i) {
    strike.point();
    if (!co_await event.wait()) co_return;
    ++passed;
  }
  strike.point();
}

TEST_F(EventTest, AutoLosesNoSetWhoeverIsCancelled) {
  const auto scenario = [](Strike& strike) -> Task<> {
    CoreAutoResetEvent event;
    int passed = 0, sets = 0;
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t victim = 0; victim < 3; ++victim) {
        scope.spawn(strike.as_victim(victim, pass_often(strike, event, passed)));
      }
      for (; scope.running() != 0; ++sets) {
        // One at a time, so that none falls on another that is still remembered.
        EXPECT_FALSE(event.is_set());
        event.set();
        strike.point();
        co_await yield();
        co_await yield();
      }
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_EQ(sets, passed + (event.is_set() ? 1 : 0));
    EXPECT_GE(passed, 6) << "those who were not cancelled pass three times each";
  };
  EXPECT_GT(sweep(3, scenario), 30U);
}

// Each set() lets everybody pass who waited when it came, and nobody else, whoever is cancelled.
Task<> pass_each(Strike& strike, CoreManualResetEvent& event, const int& sets, int& passed) {
  for (int i = 0; i < 3; ++i) {
    strike.point();
    const int before = sets;
    if (!co_await event.wait()) co_return;
    EXPECT_EQ(sets, before + 1);
    ++passed;
  }
  strike.point();
}

TEST_F(EventTest, ManualForgetsNobodyWhoeverIsCancelled) {
  const auto scenario = [](Strike& strike) -> Task<> {
    CoreManualResetEvent event;
    int passed = 0, sets = 0;
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t victim = 0; victim < 3; ++victim) {
        scope.spawn(strike.as_victim(victim, pass_each(strike, event, sets, passed)));
      }
      while (scope.running() != 0 && sets < 10) {
        ++sets;
        event.set();
        event.reset();
        strike.point();
        co_await yield();
        co_await yield();
      }
      EXPECT_EQ(scope.running(), 0U) << "somebody was forgotten";
      scope.cancel();
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_GE(passed, 6) << "those who were not cancelled pass three times each";
  };
  EXPECT_GT(sweep(3, scenario), 30U);
}

// --- cancelling ---------------------------------------------------------------------------------

TEST_F(EventTest, UnderACancelledSourceOnlyWhatNeedsNoWaiting) {
  CoreManualResetEvent open(true), shut;
  CoreAutoResetEvent once(true);
  CancelSource cancel;
  cancel.cancel();
  EXPECT_TRUE(run(as_task(open.wait()), &cancel));
  EXPECT_EQ(run(as_task(shut.wait()), &cancel).error(), Errc::cancelled);
  EXPECT_TRUE(run(as_task(once.wait()), &cancel));
  EXPECT_EQ(run(as_task(once.wait()), &cancel).error(), Errc::cancelled);
}

TEST_F(EventTest, ASetBeatsACancellationThatComesBehindIt) {
  CoreAutoResetEvent event;
  CancelSource cancel;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](CoreAutoResetEvent& set, CancelSource& source) -> Task<> {
      co_await yield();
      set.set();
      source.cancel();
    }(event, cancel));
    EXPECT_TRUE(co_await event.wait());
    EXPECT_TRUE(cancel.cancelled());
  };
  EXPECT_TRUE(run(with_scope(body), &cancel));
  EXPECT_FALSE(event.is_set());
}

TEST_F(EventTest, ACancellationBeatsASetThatComesBehindIt) {
  CoreAutoResetEvent event;
  CancelSource cancel;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](CoreAutoResetEvent& set, CancelSource& source) -> Task<> {
      co_await yield();
      source.cancel();
      set.set();
    }(event, cancel));
    EXPECT_EQ((co_await event.wait()).error(), Errc::cancelled);
  };
  EXPECT_TRUE(run(with_scope(body), &cancel));
  EXPECT_TRUE(event.is_set()) << "it is for whoever comes next";
}

#ifndef NDEBUG
TEST_F(EventTest, DestroyedWhileWaitedOnIsAFault) {
  const auto destroy = [this] {
    auto event = std::make_unique<CoreManualResetEvent>();
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(event->wait());
      event.reset();
      co_return;
    };
    static_cast<void>(run(with_scope(body)));
  };
  EXPECT_DEATH(destroy(), "destroyed while waited on");
}
#endif

}  // namespace
}  // namespace weir

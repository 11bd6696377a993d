// Tests of ManualResetEvent and AutoResetEvent.
#include "weir/task/sync/event.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/cancel_injection_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::event_test {
namespace {

using EventTest = CancelSweepTest;

template <class Event>
Task<> note_passing(Event& event, std::vector<int>& to, int number) {
  EXPECT_TRUE(co_await event.wait());
  to.push_back(number);
}

// --- manual reset -------------------------------------------------------------------------------

TEST_F(EventTest, ManualLetsAllWaitersPassInOrder) {
  ManualResetEvent event;
  std::vector<int> passed;
  const auto body = [&](Scope& scope) -> Task<> {
    for (int i = 0; i < 4; ++i) scope.spawn(note_passing(event, passed, i));
    co_await yield();
    EXPECT_TRUE(passed.empty());
    event.set();
    EXPECT_TRUE(passed.empty()) << "set() itself resumes no task";
    co_await yield();
    EXPECT_EQ(passed, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_TRUE(co_await event.wait()) << "it stays set";
  };
  EXPECT_TRUE(run(with_scope(body)));
}

TEST_F(EventTest, IsSetFromSetUntilReset) {
  const auto check = [](auto& shut, auto& open) {
    EXPECT_FALSE(shut.is_set());
    EXPECT_TRUE(open.is_set());
    shut.set();
    open.reset();
    EXPECT_TRUE(shut.is_set());
    EXPECT_FALSE(open.is_set());
  };
  ManualResetEvent manual, set_manual(true);
  AutoResetEvent automatic, set_automatic(true);
  check(manual, set_manual);
  check(automatic, set_automatic);
  EXPECT_TRUE(run(as_task(manual.wait())));
  EXPECT_TRUE(run(as_task(automatic.wait())));
  EXPECT_TRUE(manual.is_set());
  EXPECT_FALSE(automatic.is_set()) << "one task has passed";
}

TEST_F(EventTest, ManualResetDoesNotStopGrantedWaiters) {
  ManualResetEvent event;
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

TEST_F(EventTest, AutoLetsOneWaiterPassPerSet) {
  AutoResetEvent event;
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

TEST_F(EventTest, AutoStoresAtMostOneSet) {
  AutoResetEvent event;
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

// Each set() goes to exactly one task, whichever waits are cancelled. Each set() is either used
// or stored.
Task<> pass_often(CancelInjector& injector, AutoResetEvent& event, int& passed) {
  for (int i = 0; i < 3; ++i) {
    injector.checkpoint();
    if (!co_await event.wait()) co_return;
    ++passed;
  }
  injector.checkpoint();
}

TEST_F(EventTest, AutoLosesNoSetByACancellation) {
  const auto scenario = [](CancelInjector& injector) -> Task<> {
    AutoResetEvent event;
    int passed = 0, sets = 0;
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t target = 0; target < 3; ++target) {
        scope.spawn(injector.as_target(target, pass_often(injector, event, passed)));
      }
      for (; scope.running() != 0; ++sets) {
        // The test sets the event once at a time, so that no set() meets a stored one.
        EXPECT_FALSE(event.is_set());
        event.set();
        injector.checkpoint();
        co_await yield();
        co_await yield();
      }
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_EQ(sets, passed + (event.is_set() ? 1 : 0));
    EXPECT_GE(passed, 6) << "each task that is not cancelled passes three times";
  };
  EXPECT_GT(sweep(3, scenario), 30U);
}

// Each set() lets exactly the tasks pass that waited when it came, whichever tasks are cancelled.
Task<> pass_each(CancelInjector& injector, ManualResetEvent& event, const int& sets, int& passed) {
  for (int i = 0; i < 3; ++i) {
    injector.checkpoint();
    const int before = sets;
    if (!co_await event.wait()) co_return;
    EXPECT_EQ(sets, before + 1);
    ++passed;
  }
  injector.checkpoint();
}

TEST_F(EventTest, ManualResumesEachWaiterDespiteCancellations) {
  const auto scenario = [](CancelInjector& injector) -> Task<> {
    ManualResetEvent event;
    int passed = 0, sets = 0;
    const auto body = [&](Scope& scope) -> Task<> {
      for (std::size_t target = 0; target < 3; ++target) {
        scope.spawn(injector.as_target(target, pass_each(injector, event, sets, passed)));
      }
      while (scope.running() != 0 && sets < 10) {
        ++sets;
        event.set();
        event.reset();
        injector.checkpoint();
        co_await yield();
        co_await yield();
      }
      EXPECT_EQ(scope.running(), 0U) << "a waiter was not resumed";
      scope.cancel();
    };
    EXPECT_TRUE(co_await with_scope(body));
    EXPECT_GE(passed, 6) << "each task that is not cancelled passes three times";
  };
  EXPECT_GT(sweep(3, scenario), 30U);
}

// --- cancelling ---------------------------------------------------------------------------------

TEST_F(EventTest, ASetEventIsAvailableUnderACancelledSource) {
  ManualResetEvent open(true), shut;
  AutoResetEvent once(true);
  CancelSource cancel;
  cancel.cancel();
  EXPECT_TRUE(run(as_task(open.wait()), &cancel));
  EXPECT_EQ(run(as_task(shut.wait()), &cancel).error(), Errc::cancelled);
  EXPECT_TRUE(run(as_task(once.wait()), &cancel));
  EXPECT_EQ(run(as_task(once.wait()), &cancel).error(), Errc::cancelled);
}

TEST_F(EventTest, ASetBeatsALaterCancellation) {
  AutoResetEvent event;
  CancelSource cancel;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](AutoResetEvent& set, CancelSource& source) -> Task<> {
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

TEST_F(EventTest, ACancellationBeatsALaterSet) {
  AutoResetEvent event;
  CancelSource cancel;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](AutoResetEvent& set, CancelSource& source) -> Task<> {
      co_await yield();
      source.cancel();
      set.set();
    }(event, cancel));
    EXPECT_EQ((co_await event.wait()).error(), Errc::cancelled);
  };
  EXPECT_TRUE(run(with_scope(body), &cancel));
  EXPECT_TRUE(event.is_set()) << "the set() is stored for the next task";
}

#ifndef NDEBUG
TEST_F(EventTest, AssertsThatNoTaskWaitsWhenDestroyed) {
  const auto destroy = [this](auto event) {
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(event->wait());
      event.reset();
      co_return;
    };
    static_cast<void>(run(with_scope(body)));
  };
  EXPECT_DEATH(destroy(std::make_unique<ManualResetEvent>()), "destroyed while waited on");
  EXPECT_DEATH(destroy(std::make_unique<AutoResetEvent>()), "destroyed while waited on");
}
#endif

}  // namespace
}  // namespace weir::event_test

// Tests the signatures of handlers, and task handlers.
#include "weir/event/detail/event_handler.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "weir/event/test/event_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::event_handler_test {
namespace {

// ---- Signatures ---------------------------------------------------------------------------------

TEST(EventOf, IsTheFirstParameter) {
  const auto constant = [](const Ping&) {};
  auto changing = [sum = std::size_t{0}](Pong&& pong) mutable noexcept {
    return sum += pong.number;
  };
  const auto generic = [](const auto&) {};
  EXPECT_TRUE((std::is_same_v<detail::EventOf<void (*)(const Ping&)>, Ping>));
  EXPECT_TRUE((std::is_same_v<detail::EventOf<Task<> (*)(Ping)>, Ping>));
  EXPECT_TRUE(
      (std::is_same_v<detail::EventOf<EventVerdict (*)(const AnyEvent&) noexcept>, AnyEvent>));
  EXPECT_TRUE((std::is_same_v<detail::EventOf<std::decay_t<decltype(constant)>>, Ping>));
  EXPECT_TRUE((std::is_same_v<detail::EventOf<decltype(changing)>, Pong>));
  EXPECT_TRUE((std::is_same_v<detail::EventOf<std::function<void(const Ping&)>>, Ping>));
  EXPECT_TRUE((std::is_same_v<detail::EventOf<std::decay_t<decltype(generic)>>, detail::NoEvent>));
}

// ---- Task handlers ------------------------------------------------------------------------------

class TaskHandlerTest : public CoreEventsTest {
 protected:
  /// Runs `body(scope)` in a scope on the loop.
  void in_scope(const std::function<Task<>(Scope&)>& body,
                OnFailure policy = OnFailure::cancel_siblings) {
    const auto whole = [&](Scope& scope) { return body(scope); };
    const auto root = [&]() -> Task<> { ended_ = co_await with_scope(policy, whole); };
    run_made(root);
  }
  /// Records its start, sleeps for a second, and records its end.
  Task<> doze(Ping ping) {
    record("begin ", ping.number);
    const auto slept = co_await sleep(1s);
    if (!slept) record("cancelled ", ping.number);
    record("end ", ping.number);
  }
  auto dozing() {
    return [this](Ping ping) { return doze(ping); };
  }
  Result<> ended_;
};

TEST_F(TaskHandlerTest, TasksRunConcurrentlyInTheScope) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, dozing());
    publish_pings(1, 2);
    co_await sleep_for(500ms);
    EXPECT_EQ(take_records(), (Records{"begin 1", "begin 2"}));
    EXPECT_EQ(scope.running(), 2U);
    publish_pings(3, 3);
    co_await yield();
  });
  EXPECT_EQ(elapsed(), 1500ms) << "the scope waits for its tasks";
  EXPECT_EQ(take_records(), (Records{"begin 3", "end 1", "end 2", "end 3"}));
  EXPECT_TRUE(ended_);
}

TEST_F(TaskHandlerTest, EventsLiveAsLongAsTheTask) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, [this](const std::string& text) -> Task<> {
      co_await sleep_for(1s);
      record(text);
    });
    EXPECT_TRUE(events().publish(std::string(100, 'x')));
    co_await yield();
  });
  EXPECT_EQ(take_records(), (Records{std::string(100, 'x')}));
}

TEST_F(TaskHandlerTest, CoalescesToTheLatest) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, dozing(), {.coalesce = true});
    publish_pings(1, 4);
    co_await sleep_for(500ms);
    EXPECT_EQ(take_records(), (Records{"begin 1"}));
    EXPECT_EQ(scope.running(), 1U);
    co_await sleep_for(1s);
    EXPECT_EQ(take_records(), (Records{"end 1", "begin 4"}));
    publish_pings(5, 6);
    co_await sleep_for(2s);
    EXPECT_EQ(take_records(), (Records{"end 4", "begin 6", "end 6"}));
    publish_pings(7, 7);
    co_await sleep_for(500ms);
    EXPECT_EQ(take_records(), (Records{"begin 7"})) << "immediately if no task is running";
    co_await sleep_for(1s);
    EXPECT_EQ(take_records(), (Records{"end 7"}));
    EXPECT_EQ(scope.running(), 0U);
  });
  EXPECT_EQ(events().counters().dropped.value(), 0U);
}

TEST_F(TaskHandlerTest, CoalescesOnlyEventsOfItsSource) {
  const EventSource source = bus_->make_source();
  in_scope([this, source](Scope& scope) -> Task<> {
    const EventTaskOptions options{.from = source, .coalesce = true};
    const auto handler = events().on(scope, dozing(), options);
    publish_pings(1, 2, {.source = source});
    publish_pings(3, 3);
    co_await sleep_for(3s);
  });
  EXPECT_EQ(take_records(), (Records{"begin 1", "end 1", "begin 2", "end 2"}));
}

TEST_F(TaskHandlerTest, ARunningTaskOutlivesItsRegistration) {
  auto captured = std::make_shared<int>(1);
  in_scope([this, &captured](Scope& scope) -> Task<> {
    {
      const auto handler = events().on(scope, [this, captured](Ping ping) { return doze(ping); },
                                       {.coalesce = true});
      publish_pings(1, 2);
      co_await sleep_for(500ms);
    }
    EXPECT_EQ(captured.use_count(), 2) << "the running task still needs the handler";
    publish_pings(3, 3);
    co_await sleep_for(2s);
    EXPECT_EQ(captured.use_count(), 1);
  });
  EXPECT_EQ(take_records(), (Records{"begin 1", "end 1"})) << "the stored event is dropped";
}

TEST_F(TaskHandlerTest, EndsInsideItsOwnTask) {
  EventRegistration handler;
  in_scope([&](Scope& scope) -> Task<> {
    handler = events().on(scope, [&](Ping ping) -> Task<> {
      handler.end();
      return doze(ping);
    });
    publish_pings(1, 2);
    co_await yield();
  });
  EXPECT_EQ(take_records(), (Records{"begin 1", "end 1"}));
}

TEST_F(TaskHandlerTest, LimitsConcurrentTasks) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, dozing(), {.concurrency_max = 2});
    publish_pings(1, 5);
    co_await sleep_for(500ms);
    EXPECT_EQ(take_records(), (Records{"begin 1", "begin 2"}));
    co_await sleep_for(1s);
    publish_pings(6, 6);
    co_await sleep_for(1s);
  });
  EXPECT_EQ(take_records(), (Records{"end 1", "end 2", "begin 6", "end 6"}));
  EXPECT_EQ(events().counters().dropped.value(), 3U);
  std::map<std::string, std::uint64_t> metrics;
  const MetricSnapshot sum = loop_->metrics().read();
  for (const Metric& each : sum.metrics()) metrics[each.name] = each.value;
  EXPECT_EQ(metrics["events handled"], 6U);
  EXPECT_EQ(metrics["event runs dropped"], 3U);
  EXPECT_EQ(metrics["events rejected"], 0U);
}

TEST_F(TaskHandlerTest, FailuresAreCountedAndDoNotStopOthers) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto throwing = events().on(scope, [](Ping) -> Task<> {
      co_await sleep_for(1ms);
      throw std::runtime_error("out of tune");
    });
    const auto failing = events().on(scope, [](Ping) -> Task<Result<>> {
      co_await yield();
      co_return fail(Errc::bad_input);
    });
    const auto good = events().on(scope, dozing(), {.coalesce = true});
    publish_pings(1, 2);
    co_await sleep_for(3s);
  });
  EXPECT_TRUE(ended_) << "failures of handlers are not failures of the scope";
  EXPECT_EQ(take_records(), (Records{"begin 1", "end 1", "begin 2", "end 2"}));
  EXPECT_EQ(events().counters().failures.value(), 4U);
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_TRUE(platform_.logged()[0].contains("malformed input")) << platform_.logged()[0];
}

TEST_F(TaskHandlerTest, ACoalescingHandlerContinuesAfterAFailure) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto fails_first = [this](Ping ping) -> Task<> {
      record("begin ", ping.number);
      co_await sleep_for(1s);
      if (ping.number == 1) throw std::runtime_error("out of tune");
      record("end ", ping.number);
    };
    const auto handler = events().on(scope, fails_first, {.coalesce = true});
    publish_pings(1, 3);
    co_await sleep_for(3s);
  });
  EXPECT_EQ(take_records(), (Records{"begin 1", "begin 3", "end 3"}));
  EXPECT_EQ(events().counters().failures.value(), 1U);
}

TEST_F(TaskHandlerTest, AnEventWithoutMemoryForItsTaskIsAFailure) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, dozing(), {.coalesce = true});
    const auto other = events().on(record_pings());
    publish_pings(1, 1);
    loop_->blocks().fail_after(0);
    co_await yield();
    EXPECT_FALSE(loop_->blocks().will_fail());
    EXPECT_EQ(take_records(), (Records{"ping 1"})) << "other handlers are still called";
    EXPECT_EQ(events().counters().failures.value(), 1U);
    EXPECT_EQ(scope.running(), 0U);
    publish_pings(2, 2);
    co_await yield();
    EXPECT_EQ(take_records(), (Records{"begin 2", "ping 2"})) << "no task was running";
  });
  EXPECT_EQ(take_records(), (Records{"end 2"}));
  EXPECT_TRUE(ended_);
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_TRUE(platform_.logged()[0].contains("weir::Ping")) << platform_.logged()[0];
}

TEST_F(TaskHandlerTest, CancellationIsNoFailure) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto failing =
        events().on(scope, [](Ping) -> Task<Result<>> { co_return co_await sleep(1s); });
    const auto dozes = events().on(scope, dozing(), {.coalesce = true});
    publish_pings(1, 2);
    co_await sleep_for(500ms);
    scope.cancel();
    co_await yield();
    co_await yield();
  });
  EXPECT_EQ(elapsed(), 500ms);
  EXPECT_EQ(take_records(), (Records{"begin 1", "cancelled 1", "end 1"})) << "event 2 is dropped";
  EXPECT_EQ(events().counters().failures.value(), 0U);
}

TEST_F(TaskHandlerTest, CancelledIsAFailureIfTheScopeWasNotCancelled) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto failing =
        events().on(scope, [](Ping) -> Task<Result<>> { co_return fail(Errc::cancelled); });
    publish_pings(1, 2);
    co_await sleep_for(1s);
    EXPECT_FALSE(scope.cancelled());
  });
  EXPECT_EQ(events().counters().failures.value(), 2U);
}

TEST_F(TaskHandlerTest, AnotherErrorAfterTheCancellationIsAFailure) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto failing = events().on(scope, [](Ping ping) -> Task<Result<>> {
      EXPECT_FALSE(co_await sleep(1s));
      if (ping.number == 1) throw std::runtime_error("out of tune");
      co_return fail(Errc::bad_input);
    });
    publish_pings(1, 2);
    co_await sleep_for(500ms);
    scope.cancel();
    co_await yield();
    co_await yield();
  });
  EXPECT_EQ(elapsed(), 500ms);
  EXPECT_EQ(events().counters().failures.value(), 2U);
}

TEST_F(TaskHandlerTest, RunsAtMost1024TasksByDefault) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, [](Ping) { return sleep_for(1s); });
    publish_pings(1, 1030);
    co_await sleep_for(500ms);
    EXPECT_EQ(scope.running(), 1024U);
    EXPECT_EQ(events().counters().dropped.value(), 6U);
    co_await sleep_for(1s);
    publish_pings(1, 1);
    co_await sleep_for(500ms);
    EXPECT_EQ(scope.running(), 1U);
  });
  EXPECT_EQ(events().counters().dropped.value(), 6U);
}

TEST_F(TaskHandlerTest, TasksOverlapByDefault) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, dozing());
    const auto alone = events().on(scope, dozing(), {.coalesce = true, .concurrency_max = 5});
    publish_pings(1, 3);
    co_await sleep_for(500ms);
    EXPECT_EQ(scope.running(), 4U) << "three and one";
  });
}

// The registration ends inside or outside of the handler, while a task of the handler runs.
TEST_F(TaskHandlerTest, ARunningTaskOutlivesTheBus) {
  for (const bool ends_inside : {true, false}) {
    auto captured = std::make_shared<int>(1);
    EventRegistration handler;
    in_scope([&](Scope& scope) -> Task<> {
      const auto run_on = [&, captured](Ping ping) -> Task<> {
        if (ends_inside) handler.end();
        return doze(ping);
      };
      handler = events().on(scope, run_on);
      publish_pings(1, 1);
      co_await sleep_for(500ms);
      handler.end();
      bus_.reset();
      EXPECT_GT(captured.use_count(), 2) << "the running task still needs the handler";
      co_await sleep_for(1s);
      EXPECT_EQ(captured.use_count(), 2) << "only the copy in this function is left";
    });
    EXPECT_EQ(captured.use_count(), 1);
    EXPECT_EQ(take_records(), (Records{"begin 1", "end 1"}));
    bus_.emplace(1);
  }
}

TEST_F(TaskHandlerTest, AFailureAfterTheEndOfTheBusIsLogged) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto failing = events().on(scope, [](Ping) -> Task<> {
      co_await sleep_for(1s);
      throw std::runtime_error("late");
    });
    publish_pings(1, 1);
    co_await sleep_for(500ms);
    bus_.reset();
  });
  EXPECT_TRUE(ended_);
  ASSERT_EQ(platform_.logged().size(), 1U);
  EXPECT_TRUE(platform_.logged()[0].contains("late")) << platform_.logged()[0];
}

}  // namespace
}  // namespace weir::event_handler_test

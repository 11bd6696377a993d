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

namespace weir {
namespace {

// ---- What signatures say ------------------------------------------------------------------------

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

// ---- Handlers that wait -------------------------------------------------------------------------

class EventTaskTest : public EventsTest {
 protected:
  /// Runs `body(scope)` in a scope on the loop.
  void in_scope(const std::function<Task<>(Scope&)>& body,
                OnFailure policy = OnFailure::fail_together) {
    const auto whole = [&](Scope& scope) { return body(scope); };
    const auto root = [&]() -> Task<> { ended_ = co_await with_scope(policy, whole); };
    run_made(root);
  }
  /// Notes when it begins, sleeps for a second, and notes when it ends.
  Task<> doze(Ping ping) {
    note("begin ", ping.number);
    const auto slept = co_await sleep(1s);
    if (!slept) note("cancelled ", ping.number);
    note("end ", ping.number);
  }
  auto dozing() {
    return [this](Ping ping) { return doze(ping); };
  }
  Result<> ended_;
};

TEST_F(EventTaskTest, RunsInTheScopeBesideOthers) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, dozing());
    publish_pings(1, 2);
    co_await pass(500ms);
    EXPECT_EQ(take_notes(), (Notes{"begin 1", "begin 2"}));
    EXPECT_EQ(scope.running(), 2U);
    publish_pings(3, 3);
    co_await yield();
  });
  EXPECT_EQ(elapsed(), 1500ms) << "the scope waits for its runs";
  EXPECT_EQ(take_notes(), (Notes{"begin 3", "end 1", "end 2", "end 3"}));
  EXPECT_TRUE(ended_);
}

TEST_F(EventTaskTest, EventsLiveAsLongAsTheRun) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, [this](const std::string& text) -> Task<> {
      co_await pass(1s);
      note(text);
    });
    EXPECT_TRUE(events().publish(std::string(100, 'x')));
    co_await yield();
  });
  EXPECT_EQ(take_notes(), (Notes{std::string(100, 'x')}));
}

TEST_F(EventTaskTest, CoalescesToTheLatest) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, dozing(), {.coalesce = true});
    publish_pings(1, 4);
    co_await pass(500ms);
    EXPECT_EQ(take_notes(), (Notes{"begin 1"}));
    EXPECT_EQ(scope.running(), 1U);
    co_await pass(1s);
    EXPECT_EQ(take_notes(), (Notes{"end 1", "begin 4"}));
    publish_pings(5, 6);
    co_await pass(2s);
    EXPECT_EQ(take_notes(), (Notes{"end 4", "begin 6", "end 6"}));
    publish_pings(7, 7);
    co_await pass(500ms);
    EXPECT_EQ(take_notes(), (Notes{"begin 7"})) << "at once, when none is under way";
    co_await pass(1s);
    EXPECT_EQ(take_notes(), (Notes{"end 7"}));
    EXPECT_EQ(scope.running(), 0U);
  });
  EXPECT_EQ(events().counters().dropped.value(), 0U);
}

TEST_F(EventTaskTest, CoalescesOnlyWhatItWouldGet) {
  const EventSource source = bus_->make_source();
  in_scope([this, source](Scope& scope) -> Task<> {
    const EventTaskOptions options{.from = source, .coalesce = true};
    const auto handler = events().on(scope, dozing(), options);
    publish_pings(1, 2, {.source = source});
    publish_pings(3, 3);
    co_await pass(3s);
  });
  EXPECT_EQ(take_notes(), (Notes{"begin 1", "end 1", "begin 2", "end 2"}));
}

TEST_F(EventTaskTest, ARunUnderWayOutlivesItsRegistration) {
  auto captured = std::make_shared<int>(1);
  in_scope([this, &captured](Scope& scope) -> Task<> {
    {
      const auto handler = events().on(scope, [this, captured](Ping ping) { return doze(ping); },
                                       {.coalesce = true});
      publish_pings(1, 2);
      co_await pass(500ms);
    }
    EXPECT_EQ(captured.use_count(), 2) << "the run still needs it";
    publish_pings(3, 3);
    co_await pass(2s);
    EXPECT_EQ(captured.use_count(), 1);
  });
  EXPECT_EQ(take_notes(), (Notes{"begin 1", "end 1"})) << "what came meanwhile is not run";
}

TEST_F(EventTaskTest, EndsInsideItsOwnRun) {
  EventRegistration handler;
  in_scope([&](Scope& scope) -> Task<> {
    handler = events().on(scope, [&](Ping ping) -> Task<> {
      handler.end();
      return doze(ping);
    });
    publish_pings(1, 2);
    co_await yield();
  });
  EXPECT_EQ(take_notes(), (Notes{"begin 1", "end 1"}));
}

TEST_F(EventTaskTest, HasNoMoreRunsThanItMay) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto handler = events().on(scope, dozing(), {.running_max = 2});
    publish_pings(1, 5);
    co_await pass(500ms);
    EXPECT_EQ(take_notes(), (Notes{"begin 1", "begin 2"}));
    co_await pass(1s);
    publish_pings(6, 6);
    co_await pass(1s);
  });
  EXPECT_EQ(take_notes(), (Notes{"end 1", "end 2", "begin 6", "end 6"}));
  EXPECT_EQ(events().counters().dropped.value(), 3U);
  std::map<std::string, std::uint64_t> figures;
  const FigureSum sum = loop_->figures().read();
  for (const Figure& each : sum.figures()) figures[each.name] = each.value;
  EXPECT_EQ(figures["events handled"], 6U);
  EXPECT_EQ(figures["event runs dropped"], 3U);
  EXPECT_EQ(figures["events refused"], 0U);
}

TEST_F(EventTaskTest, FailuresAreCountedAndStopNobody) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto throwing = events().on(scope, [](Ping) -> Task<> {
      co_await pass(1ms);
      throw std::runtime_error("out of tune");
    });
    const auto failing = events().on(scope, [](Ping) -> Task<Result<>> {
      co_await yield();
      co_return fail(Errc::bad_input);
    });
    const auto good = events().on(scope, dozing(), {.coalesce = true});
    publish_pings(1, 2);
    co_await pass(3s);
  });
  EXPECT_TRUE(ended_) << "they are no failures of the scope";
  EXPECT_EQ(take_notes(), (Notes{"begin 1", "end 1", "begin 2", "end 2"}));
  EXPECT_EQ(events().counters().failures.value(), 4U);
  ASSERT_EQ(host_.logged().size(), 1U);
  EXPECT_TRUE(host_.logged()[0].contains("malformed input")) << host_.logged()[0];
}

TEST_F(EventTaskTest, BeingCancelledIsNoFailure) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto failing =
        events().on(scope, [](Ping) -> Task<Result<>> { co_return co_await sleep(1s); });
    const auto dozes = events().on(scope, dozing(), {.coalesce = true});
    publish_pings(1, 2);
    co_await pass(500ms);
    scope.cancel();
    co_await yield();
    co_await yield();
  });
  EXPECT_EQ(elapsed(), 500ms);
  EXPECT_EQ(take_notes(), (Notes{"begin 1", "cancelled 1", "end 1"})) << "2 is not begun any more";
  EXPECT_EQ(events().counters().failures.value(), 0U);
}

TEST_F(EventTaskTest, AFailureAfterTheEndOfTheEventsIsLogged) {
  in_scope([this](Scope& scope) -> Task<> {
    const auto failing = events().on(scope, [](Ping) -> Task<> {
      co_await pass(1s);
      throw std::runtime_error("late");
    });
    publish_pings(1, 1);
    co_await pass(500ms);
    bus_.reset();
  });
  EXPECT_TRUE(ended_);
  ASSERT_EQ(host_.logged().size(), 1U);
  EXPECT_TRUE(host_.logged()[0].contains("late")) << host_.logged()[0];
}

}  // namespace
}  // namespace weir

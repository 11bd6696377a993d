// Tests spans of a program: their parents, their end, and the tasks that run in them.
#include "weir/telemetry/traces/span.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "weir/event/bus.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/pool/blocking_pool.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/timeout.hpp"
#include "weir/telemetry/traces/test/collector_fixture.hpp"

namespace weir::telemetry::span_test {
namespace {

using namespace std::chrono_literals;

class SpanTest : public testing::Test {
 protected:
  /// Runs a program in a World, and returns when its spans have arrived.
  void run(std::function<Task<>(Tracer&)> body, TraceOptions options = collector_options()) {
    world_.host("collector").start_service(collector_.main());
    world_.host("app", {.cores = 2})
        .start(traced_program(std::move(options), report_, std::move(body)));
    const sim::WorldReport outcome = world_.run_until_done(10min);
    EXPECT_TRUE(outcome.ok()) << outcome.text();
  }
  ReceivedSpan span(std::string_view name) const {
    for (const ReceivedSpan& each : collector_.spans) {
      if (each.name == name) return each;
    }
    ADD_FAILURE() << "no span " << name;
    return {};
  }

  sim::World world_{{.seed = 1, .jitter = sim::no_jitter}};
  Collector collector_;
  TraceReport report_;
};

TEST_F(SpanTest, HasItsTimesItsAttributesAndItsEvents) {
  run([](Tracer& tracer) -> Task<> {
    Span span(tracer, "work", SpanKind::consumer);
    span.set_attribute("n", 7);
    std::ignore = co_await sleep(2s);
    span.add_event("half");
    std::ignore = co_await sleep(1s);
    span.set_name("renamed");
    span.set_status(SpanStatus::ok);
    span.end();
    EXPECT_FALSE(span.recording());
    span.set_attribute("late", 1);
    span.end();
  });
  ASSERT_EQ(collector_.spans.size(), 1U);
  const ReceivedSpan made = span("renamed");
  EXPECT_EQ(made.kind, "5");
  EXPECT_EQ(made.status, "1");
  EXPECT_EQ(made.attributes, Texts{"n=3:7"});
  EXPECT_EQ(made.events, Texts{"half"});
  const std::uint64_t length = std::stoull(made.end) - std::stoull(made.start);
  EXPECT_GE(length, 3'000'000'000U);
  EXPECT_LT(length, 3'010'000'000U);
}

TEST_F(SpanTest, BelongsToTheSpanThatItsTaskRunsIn) {
  run([](Tracer& tracer) -> Task<> {
    const auto inner = []() -> Task<int> {
      const Span leaf("leaf");
      std::ignore = co_await sleep(1s);
      const Span late("late");
      co_return 7;
    };
    const auto other = [&]() -> Task<int> {
      std::ignore = co_await sleep(500ms);
      auto nested = in_span("nested", inner());
      co_return co_await std::move(nested);
    };
    const auto outer = [&]() -> Task<int> {
      auto first = in_span("first", inner());
      auto second = in_span("second", other());
      auto both = co_await all(std::move(first), std::move(second));
      co_return std::get<0>(*both) + std::get<1>(*both);
    };
    Span root(tracer, "root");
    auto running = in_span(std::move(root), outer());
    EXPECT_EQ(co_await std::move(running), 14);
    EXPECT_EQ(current_span(), nullptr);
  });
  EXPECT_EQ(collector_.spans.size(), 8U);
  const ReceivedSpan root = span("root");
  EXPECT_EQ(root.parent_id, "");
  EXPECT_EQ(span("first").parent_id, root.span_id);
  EXPECT_EQ(span("second").parent_id, root.span_id);
  EXPECT_EQ(span("nested").parent_id, span("second").span_id);
  std::multiset<std::string> parents;
  for (const ReceivedSpan& each : collector_.spans) {
    EXPECT_EQ(each.trace_id, root.trace_id);
    if (each.name == "leaf" || each.name == "late") parents.insert(each.parent_id);
  }
  const std::string first = span("first").span_id;
  const std::string nested = span("nested").span_id;
  EXPECT_EQ(parents, (std::multiset<std::string>{first, first, nested, nested}));
}

TEST_F(SpanTest, FollowsItsTaskToOtherCoresAndIntoPools) {
  world_.host("collector").start_service(collector_.main());
  world_.host("app", {.cores = 2}).start([](loop::Platform& platform) {
    Tracer tracer(platform, collector_options());
    BlockingPool pool(platform);
    Runtime runtime(platform, {});
    return runtime.run_on_each_core([&](Scope& scope) -> Task<> {
      const Context context = co_await this_context();
      tracer.start(scope);
      if (context.loop->core() != 0) co_return;
      const auto work = [&pool]() -> Task<> {
        co_await on_core(1, [] { const Span span("on core 1"); });
        std::ignore = co_await pool.run([] { const Span span("in a pool"); });
      };
      auto running = in_span(Span(tracer, "root"), work());
      co_await std::move(running);
      runtime.drain();
    });
  });
  const sim::WorldReport outcome = world_.run_until_done(10min);
  EXPECT_TRUE(outcome.ok()) << outcome.text();
  const std::string root = span("root").span_id;
  EXPECT_EQ(span("on core 1").parent_id, root);
  const ReceivedSpan pool = span("pool");
  EXPECT_EQ(pool.parent_id, root);
  EXPECT_EQ(pool.kind, "1");
  EXPECT_EQ(pool.events, Texts{"run"});
  EXPECT_EQ(span("in a pool").parent_id, pool.span_id);
  EXPECT_EQ(collector_.spans.size(), 4U);
}

TEST_F(SpanTest, StaysInTasksOfAScopeAfterItsBody) {
  run([](Tracer& tracer) -> Task<> {
    const auto later = []() -> Task<> {
      std::ignore = co_await sleep(2s);
      const Span span("late");
    };
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(later());
      const Span span("early");
      co_return;
    };
    auto running = in_span(Span(tracer, "root"), with_scope(body));
    std::ignore = co_await std::move(running);
  });
  const std::string root = span("root").span_id;
  EXPECT_EQ(span("early").parent_id, root);
  EXPECT_EQ(span("late").parent_id, root);
}

TEST_F(SpanTest, OfQueuedWorkBeginsWhenTheWorkIsQueued) {
  run([](Tracer& tracer) -> Task<> {
    const Span root(tracer, "root");
    const Instant queued = tracer.clock().now();
    std::ignore = co_await sleep(2s);
    Span work = Span::for_work(tracer, root.active(),
                               {.name = "work", .detail = "of mine", .queued_at = queued});
    std::ignore = co_await sleep(1s);
  });
  const ReceivedSpan made = span("work of mine");
  EXPECT_EQ(made.parent_id, span("root").span_id);
  EXPECT_EQ(made.events, Texts{"run"});
  const std::uint64_t length = std::stoull(made.end) - std::stoull(made.start);
  EXPECT_GE(length, 3'000'000'000U);
  EXPECT_LT(length, 3'010'000'000U);
}

struct Ordered {
  int number = 0;
};

TEST_F(SpanTest, FollowsAnEventToItsHandlers) {
  world_.host("collector").start_service(collector_.main());
  constexpr std::size_t cores = 2;
  world_.host("app", {.cores = cores}).start([](loop::Platform& platform) {
    Tracer tracer(platform, collector_options());
    EventBus bus(cores);
    Runtime runtime(platform, {});
    return runtime.run_on_each_core([&](Scope& scope) -> Task<> {
      tracer.start(scope);
      CoreEvents& events = bus.local(scope.loop());
      const auto handler = events.on([](const Ordered&) { const Span span("call"); });
      const auto tasks = events.on(scope, [](Ordered) -> Task<> {
        std::ignore = co_await sleep(1s);
        const Span span("in a task");
      });
      std::ignore = co_await sleep(1s);
      if (scope.loop().core() == 0) {
        const auto publish = [&]() -> Task<> {
          EXPECT_TRUE(events.publish(Ordered{1}));
          EXPECT_TRUE(events.publish_to_all(Ordered{2}));
          EXPECT_TRUE(events.publish_on(1, Ordered{3}));
          co_return;
        };
        auto publishing = in_span(Span(tracer, "root"), publish());
        co_await std::move(publishing);
        EXPECT_TRUE(events.publish(Ordered{4})) << "outside of a span";
      }
      std::ignore = co_await sleep(5s);
      if (scope.loop().core() != 0) co_return;
      co_await bus.stop();
      runtime.drain();
    });
  });
  const sim::WorldReport outcome = world_.run_until_done(10min);
  EXPECT_TRUE(outcome.ok()) << outcome.text();
  const std::string root = span("root").span_id;
  std::multiset<std::string> events;
  std::multiset<std::string> tasks;
  std::multiset<std::string> called_in;
  std::multiset<std::string> worked_in;
  std::multiset<std::string> parents;
  for (const ReceivedSpan& each : collector_.spans) {
    if (each.name.starts_with("event ") && each.name.ends_with("Ordered")) {
      events.insert(each.span_id);
      EXPECT_EQ(each.parent_id, root);
      EXPECT_EQ(each.events, Texts{"run"});
    } else if (each.name.starts_with("handle ")) {
      tasks.insert(each.span_id);
      parents.insert(each.parent_id);
      EXPECT_GE(std::stoull(each.end) - std::stoull(each.start), 1'000'000'000U);
    } else if (each.name == "call") {
      called_in.insert(each.parent_id);
    } else if (each.name == "in a task") {
      worked_in.insert(each.parent_id);
    }
  }
  EXPECT_EQ(events.size(), 4U) << "1, 2 on two cores, 3; and none of 4";
  EXPECT_EQ(parents, events);
  EXPECT_EQ(called_in, events);
  EXPECT_EQ(worked_in, tasks);
}

TEST_F(SpanTest, NamesTheErrorOfItsTask) {
  run([](Tracer& tracer) -> Task<> {
    const auto fails = []() -> Task<Result<int>> { co_return fail(Errc::not_found); };
    const auto throws = []() -> Task<> {
      std::ignore = co_await sleep(1ms);
      throw std::runtime_error("x");
    };
    auto failing = in_span(Span(tracer, "fails"), fails());
    EXPECT_EQ((co_await std::move(failing)).error(), Errc::not_found);
    auto throwing = in_span(Span(tracer, "throws"), throws());
    try {
      co_await std::move(throwing);
      ADD_FAILURE();
    } catch (const std::runtime_error&) {
    }
    try {
      const Span scoped(tracer, "scoped");
      throw std::runtime_error("x");
    } catch (const std::runtime_error&) {
    }
  });
  EXPECT_EQ(span("fails").status, "2");
  EXPECT_TRUE(span("fails").has("error.type=1:weir:8"));
  EXPECT_EQ(span("throws").status, "2");
  EXPECT_EQ(span("scoped").status, "2");
}

TEST_F(SpanTest, PassesACancellationOnToItsTask) {
  run([](Tracer& tracer) -> Task<> {
    const auto slow = []() -> Task<Result<>> { co_return co_await sleep(1h); };
    auto running = in_span(Span(tracer, "slow"), slow());
    const auto outcome = co_await timeout(1s, std::move(running));
    EXPECT_EQ(outcome.error(), Errc::timed_out);
  });
  EXPECT_EQ(span("slow").status, "2");
  EXPECT_TRUE(span("slow").has("error.type=1:weir:1"));
}

TEST_F(SpanTest, CanNameItsParent) {
  run([](Tracer& tracer) -> Task<> {
    const Span parent(tracer, "parent");
    const Span child(parent, "child");
    const Span grandchild(child, "grandchild", SpanKind::producer);
    co_return;
  });
  EXPECT_EQ(span("child").parent_id, span("parent").span_id);
  EXPECT_EQ(span("grandchild").parent_id, span("child").span_id);
  EXPECT_EQ(span("grandchild").kind, "4");
}

TEST_F(SpanTest, RecordsNothingOutsideOfASampledTrace) {
  TraceOptions options = collector_options();
  options.sampler = Sampler::always_off();
  run(
      [](Tracer& tracer) -> Task<> {
        EXPECT_FALSE(Span("no parent").recording());
        Span root(tracer, "root");
        EXPECT_FALSE(root.recording());
        EXPECT_TRUE(root.active().exists) << "it has ids for requests to other programs";
        root.set_attribute("a", 1);
        root.add_event("x");
        root.set_error(make_error_code(Errc::closed));
        EXPECT_FALSE(Span(root, "child").recording());
        const auto work = []() -> Task<int> { co_return 1; };
        auto running = in_span(std::move(root), work());
        EXPECT_EQ(co_await std::move(running), 1);
      },
      options);
  EXPECT_TRUE(collector_.spans.empty());
  EXPECT_EQ(report_.spans.dropped, 0U);
}

TEST_F(SpanTest, ADisabledTracerDoesNothing) {
  TraceOptions options = collector_options();
  options.enabled = false;
  run(
      [](Tracer& tracer) -> Task<> {
        Span span(tracer, "x");
        EXPECT_FALSE(span.recording());
        EXPECT_FALSE(span.active().exists);
        co_return;
      },
      options);
  EXPECT_EQ(report_.requests, 0U);
}

TEST_F(SpanTest, LimitsItsEventsAndItsName) {
  run([](Tracer& tracer) -> Task<> {
    Span span(tracer, std::string(5000, 'n'));
    for (int count = 0; count < 40; ++count) span.add_event("event");
    co_return;
  });
  ASSERT_EQ(collector_.spans.size(), 1U);
  EXPECT_EQ(collector_.spans[0].name.size(), SpanData::name_max);
  EXPECT_EQ(collector_.spans[0].events.size(), SpanData::events_max);
}

TEST(TracerIds, DifferAndFollowTheRatio) {
  sim::World world({.seed = 3});
  TraceOptions options;
  options.sampler = Sampler::ratio(0.25);
  Tracer tracer(world.host("a"), options);
  std::set<std::string> ids;
  int sampled = 0;
  for (int count = 0; count < 4000; ++count) {
    const ActiveSpan span = tracer.begin_trace();
    ids.insert(to_hex(span.trace_id));
    ids.insert(to_hex(span.span_id));
    sampled += span.sampled ? 1 : 0;
  }
  EXPECT_EQ(ids.size(), 8000U);
  EXPECT_NEAR(sampled, 1000, 120);
}

}  // namespace
}  // namespace weir::telemetry::span_test

// Tests of the exporter in Worlds, with a collector that is slow, vanishes or refuses.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "weir/http_testing/raw_server.hpp"
#include "weir/log/log_service.hpp"
#include "weir/task/timeout.hpp"
#include "weir/telemetry/traces/otlp_log_sink.hpp"
#include "weir/telemetry/traces/span.hpp"
#include "weir/telemetry/traces/test/collector_fixture.hpp"

namespace weir::telemetry::exporter_world_test {
namespace {

using namespace std::chrono_literals;

/// A World with a program that makes spans, and with a collector unless the test starts another.
class ExporterWorld : public testing::Test {
 protected:
  void run(Duration limit = 10min) {
    const sim::WorldReport outcome = world_.run_until_done(limit);
    EXPECT_TRUE(outcome.ok()) << outcome.text();
  }
  void start_collector() { world_.host("collector").start_service(collector_.main()); }
  void start(TraceOptions options, std::function<Task<>(Tracer&)> body) {
    world_.host("app").start(traced_program(std::move(options), report_, std::move(body)));
  }
  /// Makes `count` spans without a wait.
  static void make_spans(Tracer& tracer, std::size_t count) {
    for (std::size_t made = 0; made < count; ++made) {
      Span span(tracer, "span " + std::to_string(made));
      EXPECT_TRUE(span.recording());
    }
  }

  sim::World world_{{.seed = 1, .jitter = sim::no_jitter}};
  Collector collector_;
  TraceReport report_;
};

TEST_F(ExporterWorld, SendsFullBatchesAtOnceAndTheRestAfterTheDelay) {
  start_collector();
  std::size_t early = 0;
  std::size_t late = 0;
  start(collector_options(), [&](Tracer& tracer) -> Task<> {
    make_spans(tracer, 1000);
    std::ignore = co_await sleep(1s);
    early = collector_.spans.size();
    make_spans(tracer, 3);
    std::ignore = co_await sleep(6s);
    late = collector_.spans.size();
  });
  run();
  EXPECT_EQ(early, 1000U);
  EXPECT_EQ(late, 1003U);
  EXPECT_EQ(collector_.batches, (std::vector<std::size_t>{512, 488, 3}));
  EXPECT_EQ(report_.spans.exported, 1003U);
  EXPECT_EQ(report_.spans.dropped + report_.spans.failed, 0U);
  EXPECT_EQ(collector_.content_type, "application/x-protobuf");
  EXPECT_EQ(collector_.spans[7].name, "span 7");
  EXPECT_EQ(collector_.spans[7].service, "shop");
  EXPECT_EQ(collector_.spans[7].parent_id, "");
}

TEST_F(ExporterWorld, ExportsTheLastSpansOfADrain) {
  start_collector();
  start(collector_options(), [&](Tracer& tracer) -> Task<> {
    make_spans(tracer, 3);
    co_return;
  });
  run(4s);
  EXPECT_EQ(collector_.spans.size(), 3U);
}

TEST_F(ExporterWorld, WaitsForSpansThatAreOpenWhenTheLoopDrains) {
  start_collector();
  const Instant begin = world_.now();
  std::unique_ptr<Span> open;
  start(collector_options(), [&](Tracer& tracer) -> Task<> {
    open = std::make_unique<Span>(tracer, "open");
    co_return;
  });
  world_.schedule(2s, [&] { open.reset(); });
  run(1min);
  ASSERT_EQ(collector_.spans.size(), 1U);
  EXPECT_GE(world_.now() - begin, 2s);
}

TEST_F(ExporterWorld, RetriesAfterTheTimeThatTheCollectorAsksFor) {
  using http::Status;
  collector_.script = {{.status = Status::service_unavailable, .retry_after = "20"},
                       {.status = Status::too_many_requests},
                       {.status = Status::bad_gateway},
                       {.status = Status::gateway_timeout}};
  start_collector();
  std::size_t before = 0;
  std::size_t requests_before = 0;
  start(collector_options(), [&](Tracer& tracer) -> Task<> {
    make_spans(tracer, 2);
    std::ignore = co_await sleep(24s);
    requests_before = collector_.requests;
    std::ignore = co_await sleep(20s);
    before = collector_.spans.size();
  });
  run();
  EXPECT_EQ(requests_before, 1U);
  EXPECT_EQ(before, 2U);
  EXPECT_EQ(report_.spans.exported, 2U);
  EXPECT_EQ(report_.requests, 5U);
  EXPECT_EQ(report_.retries, 4U);
}

TEST_F(ExporterWorld, DoesNotRetryWhatTheCollectorRefuses) {
  for (int count = 0; count < 3; ++count) {
    collector_.script.push_back(
        {.status = count == 1 ? http::Status::internal_error : http::Status::bad_request});
  }
  start_collector();
  start(collector_options(), [&](Tracer& tracer) -> Task<> {
    for (int count = 0; count < 4; ++count) {
      make_spans(tracer, 10);
      std::ignore = co_await sleep(6s);
    }
  });
  run();
  EXPECT_EQ(report_.spans.failed, 30U);
  EXPECT_EQ(report_.spans.exported, 10U);
  EXPECT_EQ(report_.retries, 0U);
}

TEST_F(ExporterWorld, GivesUpAfterTheLastAttempt) {
  collector_.script.assign(5, {.status = http::Status::service_unavailable});
  start_collector();
  start(collector_options(), [&](Tracer& tracer) -> Task<> {
    make_spans(tracer, 10);
    std::ignore = co_await sleep(2min);
  });
  run();
  EXPECT_EQ(report_.requests, 5U);
  EXPECT_EQ(report_.spans.failed, 10U);
}

TEST_F(ExporterWorld, CountsAPartialSuccess) {
  collector_.script = {{.body = std::string("\x0a\x07\x08\x04\x12\x03why", 9)}};
  start_collector();
  start(collector_options(), [&](Tracer& tracer) -> Task<> {
    make_spans(tracer, 10);
    co_return;
  });
  run();
  EXPECT_EQ(report_.spans.exported, 6U);
  EXPECT_EQ(report_.spans.rejected, 4U);
  EXPECT_EQ(report_.spans.failed, 0U);
}

TEST_F(ExporterWorld, DropsSpansOfADeadCollectorAndKeepsItsBounds) {
  TraceOptions options = collector_options();
  options.queue_capacity = 600;
  world_.host("collector");  // nothing listens there
  const Instant start_time = world_.now();
  Duration made_for{};
  start(options, [&](Tracer& tracer) -> Task<> {
    const Instant begin = world_.now();
    for (int second = 0; second < 60; ++second) {
      make_spans(tracer, 1000);
      std::ignore = co_await sleep(1s);
    }
    made_for = world_.now() - begin;
  });
  run();
  EXPECT_EQ(report_.spans.exported, 0U);
  EXPECT_EQ(report_.spans.dropped + report_.spans.failed, 60'000U);
  EXPECT_GT(report_.spans.failed, 0U);
  EXPECT_EQ(made_for, 60s) << "the program is not delayed";
  EXPECT_LT(world_.now() - start_time, 62s) << "a drain does not wait for a dead collector";
}

TEST_F(ExporterWorld, ADrainWaitsForAStalledCollectorUntilTheFlushTimeout) {
  world_.host("collector").start_service([this](loop::Platform& platform) {
    http::Router routes;
    routes.post("/v1/traces", []() -> Task<http::Response> {
      std::ignore = co_await sleep(1h);
      co_return http::text("late");
    });
    static_cast<void>(this);
    return http::run(routes, platform, {.endpoint = Endpoint::any(4318)});
  });
  TraceOptions options = collector_options();
  options.flush_timeout = 3s;
  Instant drained{};
  start(options, [&](Tracer& tracer) -> Task<> {
    make_spans(tracer, 10);
    std::ignore = co_await sleep(6s);
    make_spans(tracer, 5);
    drained = world_.now();
  });
  EXPECT_TRUE(world_.run_until([this] { return world_.host("app").done(); }, 1min));
  EXPECT_GE(world_.now() - drained, 3s);
  EXPECT_LT(world_.now() - drained, 3100ms);
  EXPECT_EQ(report_.spans.failed, 10U);
  EXPECT_EQ(report_.spans.dropped, 5U);
  run(1h);
}

TEST_F(ExporterWorld, ACancellationEndsTheExporterAtOnce) {
  world_.host("collector").start_service(http::raw_server("HTTP/1.1 200 OK\r\n\r\n", 1h));
  TraceOptions options = collector_options();
  options.traces_url = "http://collector/";
  Duration took{};
  start(options, [&](Tracer& tracer) -> Task<> {
    make_spans(tracer, 600);
    const auto owned = std::make_unique<Tracer>(tracer.clock(), options);
    Tracer& other = *owned;
    make_spans(other, 600);
    const Instant begin = world_.now();
    auto exporting = other.export_spans();
    const auto outcome = co_await timeout(2s, std::move(exporting));
    EXPECT_EQ(outcome.error(), Errc::timed_out);
    took = world_.now() - begin;
    const ExportCounts counts = other.report().spans;
    EXPECT_EQ(counts.failed, 512U) << "those that were being sent";
    EXPECT_EQ(counts.dropped, 88U);
  });
  run(3h);
  EXPECT_GE(took, 2s);
  EXPECT_LT(took, 2100ms);
}

TEST_F(ExporterWorld, ExportsAgainWhenTheCollectorReturns) {
  start_collector();
  std::size_t before = 0;
  start(collector_options(), [&](Tracer& tracer) -> Task<> {
    make_spans(tracer, 600);
    std::ignore = co_await sleep(10s);
    before = collector_.spans.size();
    for (int count = 0; count < 10; ++count) {
      make_spans(tracer, 10);
      std::ignore = co_await sleep(5s);
    }
  });
  world_.schedule(9s, [this] { world_.host("collector").kill(); });
  world_.schedule(30s, [this] { start_collector(); });
  run();
  EXPECT_EQ(before, 600U);
  EXPECT_EQ(report_.spans.exported + report_.spans.failed, 700U);
  EXPECT_EQ(collector_.spans.size(), report_.spans.exported);
  EXPECT_GE(report_.spans.exported, 670U) << "later batches outlast the restart";
}

TEST_F(ExporterWorld, SendsJsonAndTheHeadersOfItsOptions) {
  std::string received;
  world_.host("collector").start_service([&](loop::Platform& platform) {
    http::Router routes;
    routes.post("/v1/traces", [&](http::Request& request) -> Task<http::Response> {
      received = request.header("Authorization").value_or("");
      received += '\n';
      received += request.header("Content-Type").value_or("");
      received += '\n';
      received += (co_await request.body()).value_or("failed");
      co_return http::text("{}");
    });
    return http::run(routes, platform, {.endpoint = Endpoint::any(4318)});
  });
  TraceOptions options = collector_options();
  options.encoding = OtlpEncoding::json;
  options.headers = {{"Authorization", "Bearer x"}};
  start(options, [&](Tracer& tracer) -> Task<> {
    make_spans(tracer, 1);
    co_return;
  });
  run();
  EXPECT_TRUE(received.starts_with("Bearer x\napplication/json\n{\"resourceSpans\"")) << received;
  EXPECT_EQ(report_.spans.exported, 1U);
}

TEST_F(ExporterWorld, DropsSpansWithoutAUrl) {
  TraceOptions options = collector_options();
  options.traces_url.clear();
  start(options, [&](Tracer& tracer) -> Task<> {
    make_spans(tracer, 7);
    co_return;
  });
  run();
  EXPECT_EQ(report_.spans.dropped, 7U);
  EXPECT_EQ(report_.requests, 0U);
}

TEST_F(ExporterWorld, ExportsLogRecordsWithTheIdsOfTheirTrace) {
  start_collector();
  ReceivedSpan expected;
  world_.host("app").start([&](loop::Platform& platform) {
    Tracer tracer(platform, collector_options());
    std::vector<std::unique_ptr<LogSink>> sinks;
    sinks.push_back(std::make_unique<OtlpLogSink>(tracer));
    LogService logs(platform, {}, std::move(sinks));
    Runtime runtime(platform, {});
    const Logger log = logs.logger("store");
    const int status = runtime.run_on_each_core([&](Scope& scope) -> Task<> {
      tracer.start(scope);
      Span span(tracer, "work");
      expected.span_id = to_hex(span.active().span_id);
      expected.trace_id = to_hex(span.active().trace_id);
      const auto work = [&]() -> Task<> {
        log.warning("slow", field("took", 7), field("who", "ann"));
        co_return;
      };
      auto working = in_span(std::move(span), work());
      co_await std::move(working);
      std::ignore = co_await sleep(6s);
      runtime.drain();
    });
    report_ = tracer.report();
    return status;
  });
  run();
  ASSERT_EQ(collector_.logs.size(), 1U);
  const Fields scope_logs =
      fields_of(value_of(fields_of(value_of(fields_of(collector_.logs[0]), 1)), 2));
  EXPECT_EQ(value_of(fields_of(value_of(scope_logs, 1)), 1), "store");
  const Fields record = fields_of(value_of(scope_logs, 2));
  EXPECT_EQ(value_of(record, 2), "13");
  EXPECT_EQ(value_of(record, 3), "warning");
  EXPECT_EQ(value_of(fields_of(value_of(record, 5)), 1), "slow");
  EXPECT_EQ(hex_of(value_of(record, 9)), expected.trace_id);
  EXPECT_EQ(hex_of(value_of(record, 10)), expected.span_id);
  EXPECT_EQ(attribute_texts(record, 6),
            (Texts{"span=1:" + expected.span_id, "took=3:7", "who=1:ann", "weir.core=3:0"}));
  EXPECT_EQ(report_.logs.exported, 1U);
}

TEST_F(ExporterWorld, ADeadCollectorOfSpansDelaysNoLogs) {
  start_collector();
  world_.host("dead");  // nothing listens there
  TraceOptions options = collector_options();
  options.traces_url = "http://dead:4318/v1/traces";
  std::size_t arrived = 0;
  world_.host("app").start([&](loop::Platform& platform) {
    Tracer tracer(platform, options);
    std::vector<std::unique_ptr<LogSink>> sinks;
    sinks.push_back(std::make_unique<OtlpLogSink>(tracer));
    LogService logs(platform, {}, std::move(sinks));
    Runtime runtime(platform, {});
    const Logger log = logs.logger("store");
    const int status = runtime.run_on_each_core([&](Scope& scope) -> Task<> {
      tracer.start(scope);
      make_spans(tracer, 5000);
      std::ignore = co_await sleep(100ms);  // the spans are on their way
      log.warning("slow");
      std::ignore = co_await sleep(6s);
      arrived = collector_.logs.size();
      log.warning("last");
      runtime.drain();
    });
    report_ = tracer.report();
    return status;
  });
  run();
  EXPECT_EQ(arrived, 1U);
  EXPECT_EQ(collector_.logs.size(), 2U) << "the drain exports the last one";
  EXPECT_EQ(report_.logs.exported, 2U);
  EXPECT_EQ(report_.spans.exported, 0U);
}

/// Programs with several cores, a collector that fails at times, and any order of events.
TEST(ExporterSeeds, EverySpanIsCountedOnce) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    sim::World world({.seed = seed});
    Collector collector;
    for (int count = 0; count < 6; ++count) {
      constexpr std::array statuses{http::Status::ok, http::Status::service_unavailable,
                                    http::Status::bad_request};
      collector.script.push_back({.status = statuses[world.random().below(3)],
                                  .delay = std::chrono::milliseconds(world.random().below(3000))});
    }
    world.host("collector").start_service(collector.main());
    TraceReport report;
    TraceOptions options = collector_options();
    options.queue_capacity = 300;
    options.batch_max = 100;
    options.flush_timeout = 30s;
    constexpr std::size_t cores = 3;
    world.host("app", {.cores = cores}).start([&](loop::Platform& platform) {
      Tracer tracer(platform, options);
      Runtime runtime(platform, {});
      const int status = runtime.run_on_each_core([&](Scope& scope) -> Task<> {
        const Context context = co_await this_context();
        tracer.start(scope);
        for (int count = 0; count < 50; ++count) {
          for (int each = 0; each < 20; ++each) const Span span(tracer, "span");
          std::ignore = co_await sleep(50ms);
        }
        if (context.loop->core() == 1) runtime.drain();
      });
      report = tracer.report();
      return status;
    });
    if (seed % 3 == 0) {
      world.schedule(1s, [&] { world.partition(world.host("app"), world.host("collector")); });
      world.schedule(4s, [&] { world.heal(world.host("app"), world.host("collector")); });
    }
    const sim::WorldReport outcome = world.run_until_done(5min);
    EXPECT_TRUE(outcome.ok()) << outcome.text();
    const ExportCounts& spans = report.spans;
    EXPECT_EQ(spans.exported + spans.failed + spans.dropped, cores * 1000) << "seed " << seed;
    EXPECT_GE(collector.spans.size(), spans.exported) << "seed " << seed;
    EXPECT_LE(report.requests, 200U);
  }
}

}  // namespace
}  // namespace weir::telemetry::exporter_world_test

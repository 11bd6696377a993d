// Tests the limits of the exporter in Worlds: work of a turn, bodies, answers of the collector.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/compression/coding.hpp"
#include "weir/compression/decompressor.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/task/sleep.hpp"
#include "weir/telemetry/traces/detail/exporter.hpp"
#include "weir/telemetry/traces/span.hpp"
#include "weir/telemetry/traces/test/collector_fixture.hpp"

namespace weir::telemetry::exporter_limits_test {
namespace {

using namespace std::chrono_literals;

class ExporterLimits : public testing::Test {
 protected:
  /// Runs a program in a World with a collector.
  void run(const TraceOptions& options, std::function<Task<>(Tracer&)> body) {
    world_.host("collector").start_service(collector_.main());
    world_.host("app").start(traced_program(options, report_, std::move(body)));
    const sim::WorldReport outcome = world_.run_until_done(30min);
    EXPECT_TRUE(outcome.ok()) << outcome.text();
  }
  /// Returns the time from the first to the second request, if the first answer is 503.
  Duration retried_after(std::string retry_after, Duration shift = {}) {
    if (shift != Duration()) {
      retry_after = http::Date(world_.host("app").wall_time() + shift).text();
    }
    collector_.script = {{.status = http::Status::service_unavailable, .retry_after = retry_after}};
    Duration waited{};
    run(collector_options(), [&](Tracer& tracer) -> Task<> {
      Span(tracer, "span").end();
      while (collector_.requests == 0) std::ignore = co_await sleep(10ms);
      const Instant first = world_.now();
      while (collector_.requests == 1) std::ignore = co_await sleep(10ms);
      waited = world_.now() - first;
    });
    EXPECT_EQ(report_.spans.exported, 1U);
    return waited;
  }

  sim::World world_{{.seed = 1, .jitter = sim::no_jitter}};
  Collector collector_;
  TraceReport report_;
};

TEST_F(ExporterLimits, EncodesFewSpansInATurn) {
  for (const OtlpEncoding encoding : {OtlpEncoding::protobuf, OtlpEncoding::json}) {
    sim::World world({.seed = 1, .jitter = sim::no_jitter});
    Collector collector;
    world.host("collector").start_service(collector.main());
    TraceOptions options = collector_options();
    options.encoding = encoding;
    constexpr std::size_t count = 1000;
    options.batch_max = count;
    std::size_t most = 0;
    std::size_t turns = 0;
    TraceReport report;
    world.host("app").start(traced_program(options, report, [&](Tracer& tracer) -> Task<> {
      for (std::size_t made = 0; made < count; ++made) Span(tracer, "span").end();
      for (std::size_t before = count; before != 0;) {
        std::ignore = co_await sleep(Duration());  // one turn
        const std::size_t queued = tracer.report().spans.queued;
        most = std::max(most, before - queued);
        turns += queued != before ? 1 : 0;
        before = queued;
      }
    }));
    const sim::WorldReport outcome = world.run_until_done(10min);
    EXPECT_TRUE(outcome.ok()) << outcome.text();
    EXPECT_LE(most, Exporter::items_per_turn);
    EXPECT_GE(turns, count / Exporter::items_per_turn);
    EXPECT_EQ(report.spans.exported, count);
  }
}

TEST_F(ExporterLimits, SendsLargeSpansInSeveralRequests) {
  run(collector_options(), [](Tracer& tracer) -> Task<> {
    for (int made = 0; made < 200; ++made) {
      Span span(tracer, "large");
      for (int count = 0; count < 3; ++count) {
        span.set_attribute("text " + std::to_string(count), std::string(4000, 'x'));
      }
    }
    std::ignore = co_await sleep(6s);
  });
  EXPECT_EQ(report_.spans.exported, 200U);
  ASSERT_GE(collector_.batches.size(), 4U);
  for (const std::size_t each : collector_.batches) EXPECT_LE(each, 50U);
}

TEST_F(ExporterLimits, KeepsItsBoundsWhileTheCollectorStalls) {
  collector_.script.assign(20, {.delay = 1h});
  TraceOptions options = collector_options();
  options.queue_capacity = 600;
  constexpr std::size_t seconds = 60;
  Duration made_for{};
  run(options, [&](Tracer& tracer) -> Task<> {
    const Instant begin = world_.now();
    for (std::size_t second = 0; second < seconds; ++second) {
      for (int made = 0; made < 1000; ++made) Span(tracer, "span").end();
      EXPECT_LE(tracer.report().spans.queued, 600U);
      std::ignore = co_await sleep(1s);
    }
    made_for = world_.now() - begin;
  });
  EXPECT_EQ(made_for, 60s) << "the program is not delayed";
  EXPECT_EQ(report_.spans.exported, 0U);
  EXPECT_GT(report_.spans.failed, 0U);
  EXPECT_EQ(report_.spans.failed + report_.spans.dropped, 1000 * seconds);
}

TEST_F(ExporterLimits, CompressesItsRequests) {
  if (!compression::is_available(compression::Coding::gzip)) GTEST_SKIP() << "no zlib";
  TraceOptions options = collector_options();
  options.gzip = true;
  collector_.script = {{.status = http::Status::service_unavailable}};  // the body is sent again
  run(options, [](Tracer& tracer) -> Task<> {
    for (int made = 0; made < 400; ++made) Span(tracer, "a span with a name").end();
    std::ignore = co_await sleep(20s);
  });
  EXPECT_EQ(collector_.content_encoding, "gzip");
  EXPECT_EQ(report_.spans.exported, 400U);
  ASSERT_EQ(collector_.spans.size(), 400U);
  EXPECT_EQ(collector_.spans[399].name, "a span with a name");
  EXPECT_LT(collector_.body_bytes, 16'000U) << "of about 40,000";
}

TEST_F(ExporterLimits, SendsTheHeadersOfEachSignal) {
  TraceOptions options = collector_options();
  options.headers = {{"Authorization", "both"}};
  options.traces_headers = {{"Authorization", "traces"}};
  run(options, [](Tracer& tracer) -> Task<> {
    Span(tracer, "span").end();
    co_return;
  });
  EXPECT_EQ(collector_.authorization, "traces");
}

TEST_F(ExporterLimits, WaitsForTheSecondsOfRetryAfter) {
  const Duration waited = retried_after("7");
  EXPECT_GE(waited, 7s);
  EXPECT_LT(waited, 8s);
}

TEST_F(ExporterLimits, WaitsForTheDateOfRetryAfter) {
  const Duration waited = retried_after("", 15s);  // the span is sent after 5 s
  EXPECT_GE(waited, 8s);
  EXPECT_LT(waited, 11s);
}

TEST_F(ExporterLimits, DoesNotWaitForAnUnreasonableRetryAfter) {
  const Duration waited = retried_after("99999999999999");
  EXPECT_GE(waited, 60s) << "TraceOptions::retry_after_max";
  EXPECT_LT(waited, 61s);
}

TEST_F(ExporterLimits, IgnoresAnInvalidOrPastRetryAfter) {
  EXPECT_LT(retried_after("-5"), 1100ms);
}

TEST_F(ExporterLimits, CountsSpansWhoseResponseIsTooLarge) {
  collector_.script = {
      {.body = std::string(1'000'000, '\x0a')},
      {.body = std::string("\x0a\x7f\x01", 3)},
      {.body = std::string("\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 12)}};
  run(collector_options(), [&](Tracer& tracer) -> Task<> {
    for (int count = 0; count < 4; ++count) {
      for (int made = 0; made < 10; ++made) Span(tracer, "span").end();
      std::ignore = co_await sleep(6s);
    }
  });
  EXPECT_EQ(collector_.requests, 4U) << "nothing is repeated";
  EXPECT_EQ(report_.spans.exported, 30U) << "the collector has accepted them";
  EXPECT_EQ(report_.spans.rejected, 10U) << "never more than were sent";
}

}  // namespace
}  // namespace weir::telemetry::exporter_limits_test

// Tests that the export goes on after failed allocations, and that they are counted.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include "weir/task/sleep.hpp"
#include "weir/telemetry/traces/span.hpp"
#include "weir/telemetry/traces/test/collector_fixture.hpp"

namespace {

/// Allocations of at least this number of bytes fail on this thread.
thread_local std::size_t failing_size = std::numeric_limits<std::size_t>::max();
thread_local std::size_t failures = 0;

}  // namespace

// The thread sanitizer's operators cannot be replaced.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_TEST_THREAD_SANITIZED 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define WEIR_TEST_THREAD_SANITIZED 1
#endif
#ifndef WEIR_TEST_THREAD_SANITIZED
void* operator new(std::size_t bytes) {
  if (bytes >= failing_size) {
    ++failures;
    throw std::bad_alloc();
  }
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace weir::telemetry::exporter_memory_test {
namespace {

using namespace std::chrono_literals;

/// Parameters: the size of allocations that fail, and the encoding.
class ExporterMemory : public testing::TestWithParam<std::tuple<std::size_t, OtlpEncoding>> {
 protected:
  void SetUp() override {
#ifdef WEIR_TEST_THREAD_SANITIZED
    GTEST_SKIP() << "only a replaced operator new fails";
#endif
  }
};

TEST_P(ExporterMemory, ExportsAgainWhenThereIsMemory) {
  sim::World world({.seed = 1, .jitter = sim::no_jitter});
  Collector collector;
  TraceReport report;
  world.host("collector").start_service(collector.main());
  TraceOptions options = collector_options();
  options.encoding = std::get<1>(GetParam());
  constexpr std::size_t failing = 1500;
  const auto make_spans = [](Tracer& tracer, std::size_t count) {
    for (std::size_t made = 0; made < count; ++made) {
      Span span(tracer, "span");
      span.set_attribute("text", std::string(100, 'x'));
    }
  };
  std::size_t failed = 0;
  world.host("app").start(traced_program(options, report, [&](Tracer& tracer) -> Task<> {
    failing_size = std::get<0>(GetParam());
    make_spans(tracer, failing);
    std::ignore = co_await sleep(60s);
    failing_size = std::numeric_limits<std::size_t>::max();
    failed = std::exchange(failures, 0);
    make_spans(tracer, 1000);
    std::ignore = co_await sleep(10s);
    const ExportCounts counts = tracer.report().spans;
    EXPECT_EQ(counts.queued, 0U);
    EXPECT_GE(counts.exported, 1000U) << "the exporter is still there";
    make_spans(tracer, 3);
    std::ignore = co_await sleep(10s);
  }));
  const sim::WorldReport outcome = world.run_until_done(10min);
  EXPECT_TRUE(outcome.ok()) << outcome.text();
  const ExportCounts& spans = report.spans;
  EXPECT_GT(failed, 0U);
  EXPECT_GT(spans.dropped + spans.failed, 0U) << "of those without memory";
  EXPECT_EQ(spans.exported + spans.dropped + spans.failed, failing + 1003) << "each is counted";
  EXPECT_GE(spans.exported, 1003U);
  EXPECT_EQ(spans.queued, 0U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ExporterMemory,
                         testing::Combine(testing::Values(2'000, 20'000, 60'000),
                                          testing::Values(OtlpEncoding::protobuf,
                                                          OtlpEncoding::json)));

}  // namespace
}  // namespace weir::telemetry::exporter_memory_test

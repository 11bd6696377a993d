#include "weir/telemetry/metrics/detail/runtime_metrics.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "weir/base/detail/counter.hpp"
#include "weir/loop/loop.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::telemetry::detail::runtime_metrics_test {
namespace {

/// A component with one described metric, two that differ by a label, and one of an application.
class Component final : MetricSource {
 public:
  explicit Component(Loop& loop) { loop.metrics().add(*this); }
  ~Component() { detach(); }
  weir::detail::Counter count;

 private:
  void collect(MetricSnapshot& sum) const override {
    static constexpr MetricInfo time{
        .name = "test.time", .unit = "s", .help = "Time.", .scale = 1e-9};
    static constexpr MetricInfo red{.name = "test.colour", .label = "colour", .label_value = "red"};
    static constexpr MetricInfo blue{
        .name = "test.colour", .label = "colour", .label_value = "blue"};
    const auto now = Metric::Kind::gauge;
    sum.add({"time in ns", 1'500'000'000, Metric::Kind::counter, &time});
    sum.add({"red things", count.value(), now, &red});
    sum.add({"blue things", 7, now, &blue});
    sum.add({"look-ups: mine", 3});
  }
};

/// Returns the samples of a metric: labels and values.
std::string samples_of(const RuntimeMetrics& metrics, std::string_view name) {
  std::string text;
  for (const ReadMetric& metric : metrics.metrics()) {
    if (metric.name != name) continue;
    for (const ReadMetric::Sample& sample : metric.samples) {
      for (const auto& label : sample.labels) text += label.first + "=" + label.second + " ";
      text += std::to_string(sample.value) + "; ";
    }
  }
  return text;
}

TEST(RuntimeMetricsTest, AddsUpTheMetricsOfComponents) {
  MemoryPlatform platform{MemoryPlatformOptions()};
  const auto one = Loop::make(platform, {.core = 0}).value();
  const auto two = Loop::make(platform, {.core = 1}).value();
  Component first(*one);
  Component second(*two);
  first.count.add(1);
  second.count.add(10);
  RuntimeMetrics metrics;
  metrics.add_loop(*one);
  metrics.add_loop(*two);
  EXPECT_EQ(samples_of(metrics, "test.time"), "3.000000; ");
  EXPECT_EQ(samples_of(metrics, "test.colour"), "colour=red 11.000000; colour=blue 14.000000; ");
  EXPECT_EQ(samples_of(metrics, "look-ups: mine"), "6.000000; ");
}

TEST(RuntimeMetricsTest, HasOneSampleForEachCore) {
  MemoryPlatform platform{MemoryPlatformOptions()};
  const auto loop = Loop::make(platform, {.core = 3}).value();
  loop->turn(platform.now());
  loop->turn(platform.now());
  loop::Timer timer([](loop::Timer&) {});
  loop->timers().start(timer, platform.now() + std::chrono::seconds(1));
  RuntimeMetrics metrics;
  metrics.add_loop(*loop);
  metrics.add_group(*loop);
  timer.cancel();
  EXPECT_EQ(samples_of(metrics, "weir.core.turns"), "core=3 2.000000; ");
  EXPECT_EQ(samples_of(metrics, "weir.core.timers"), "core=3 1.000000; ");
  EXPECT_EQ(samples_of(metrics, "weir.server.connections"), "0.000000; ");
  EXPECT_FALSE(samples_of(metrics, "weir.build.info").empty());
}

}  // namespace
}  // namespace weir::telemetry::detail::runtime_metrics_test

#include "weir/telemetry/metrics/metrics.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace weir::telemetry::metrics_test {
namespace {

using namespace std::chrono_literals;

std::uint64_t dropped_of(const char* name) {
  const detail::Family* each = detail::Registry::instance().first();
  while (each != nullptr && each->name() != name) each = each->next();
  return each == nullptr ? 0 : detail::ThreadCells::sum(each->dropped().first);
}

TEST(CounterTest, AddsUpOverThreads) {
  const Counter counter("test.threads");
  std::vector<std::thread> threads;
  for (int count = 0; count < 4; ++count) {
    threads.emplace_back([&counter] {
      for (int step = 0; step < 1000; ++step) counter.add();
      counter.add(5);
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(counter.value(), 4U * 1005U);
  std::thread([&counter] { counter.add(); }).join();  // it takes the cells of an ended thread
  EXPECT_EQ(counter.value(), 4U * 1005U + 1);
}

TEST(CounterTest, KeepsItsTotalWhenItsOwnerIsReplaced) {
  auto owner = std::make_unique<Counter>("test.replaced");
  owner->add(3);
  owner = std::make_unique<Counter>("test.replaced");
  owner->add(4);
  EXPECT_EQ(owner->value(), 7U);
}

TEST(CounterTest, RejectsANameOfAnotherKind) {
  const Counter counter("test.kind");
  EXPECT_THROW(Gauge("test.kind"), std::invalid_argument);
  EXPECT_THROW(Counter("test.kind", {.labels = {"a"}}), std::invalid_argument);
  EXPECT_THROW(Counter(""), std::invalid_argument);
  EXPECT_NO_THROW(Counter("test.kind", {.help = "Other texts are the same metric."}));
}

TEST(CounterTest, CountsByLabelValues) {
  const Counter counter("test.labels", {.labels = {"kind", "region"}});
  counter.with("book", "eu").add(2);
  counter.with("book", "us").add(3);
  counter.with(std::string("book"), "eu").add(1);
  counter.with("book").add(7);                // the region is empty
  counter.with("book", "eu", "more").add(1);  // the third value is left out
  const detail::Family* family = detail::Registry::instance().first();
  while (family->name() != "test.labels") family = family->next();
  std::string text;
  for (const detail::Series* each = family->first(); each != nullptr; each = each->next.load()) {
    text += each->values[0] + "/" + each->values[1] + "=" +
            std::to_string(detail::ThreadCells::sum(each->first)) + " ";
  }
  EXPECT_EQ(text, "book/eu=4 book/us=3 book/=7 ");
}

TEST(CounterTest, CountsLabelValuesByTheirPrintableForm) {
  const Counter counter("test.printable", {.labels = {"name"}});
  counter.with("a\xff").add(1);
  counter.with("a\\xff").add(2);  // the same text on a page
  counter.with("a\n\x1b[31m").add(4);
  counter.with("\xc3\xa4").add(8);
  const detail::Family* family = detail::Registry::instance().first();
  while (family->name() != "test.printable") family = family->next();
  std::string text;
  for (const detail::Series* each = family->first(); each != nullptr; each = each->next.load()) {
    text += each->values[0] + "=" + std::to_string(detail::ThreadCells::sum(each->first)) + " ";
  }
  EXPECT_EQ(text, "a\\xff=3 a\n\\x1b[31m=4 \xc3\xa4=8 ");
}

TEST(CounterTest, RejectsNamesThatPrometheusCannotTellApart) {
  const Counter counter("test.same.name");
  EXPECT_THROW(Counter("test_same_name"), std::invalid_argument);
  EXPECT_THROW(Gauge("test.same_name"), std::invalid_argument);
  EXPECT_THROW(Gauge("test.same.name.total"), std::invalid_argument);
  const Histogram histogram("test.wait", {.unit = ""});
  EXPECT_THROW(Gauge("test.wait.count"), std::invalid_argument);
  EXPECT_NO_THROW(Counter("test.same.name"));
  EXPECT_THROW(Counter("test.twice", {.labels = {"a.b", "a_b"}}), std::invalid_argument);
  EXPECT_THROW(Counter("test.empty.label", {.labels = {""}}), std::invalid_argument);
  EXPECT_THROW(Histogram("test.le", {.labels = {"le"}}), std::invalid_argument);
  EXPECT_NO_THROW(Counter("test.le.counter", {.labels = {"le"}}));
}

TEST(CounterTest, BoundsItsLabelSets) {
  const Counter counter("test.bound", {.labels = {"user"}, .label_sets_max = 3});
  for (int user = 0; user < 10; ++user) counter.with(std::to_string(user)).add(100);
  EXPECT_EQ(dropped_of("test.bound"), 7U);
  counter.with("1").add();  // a known set goes on
  EXPECT_EQ(dropped_of("test.bound"), 7U);
  counter.add();  // a metric with labels has no series without them
  EXPECT_EQ(dropped_of("test.bound"), 8U);
}

TEST(CounterTest, FindsManyLabelSetsFromManyThreads) {
  const Counter counter("test.many", {.labels = {"number"}, .label_sets_max = 2000});
  std::vector<std::thread> threads;
  for (int count = 0; count < 3; ++count) {
    threads.emplace_back([&counter] {
      for (int round = 0; round < 2; ++round) {
        for (int number = 0; number < 2000; ++number) counter.with(std::to_string(number)).add();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  const detail::Family* family = detail::Registry::instance().first();
  while (family->name() != "test.many") family = family->next();
  int series = 0;
  for (const detail::Series* each = family->first(); each != nullptr; each = each->next.load()) {
    EXPECT_EQ(detail::ThreadCells::sum(each->first), 6U);
    ++series;
  }
  EXPECT_EQ(series, 2000);
  EXPECT_EQ(dropped_of("test.many"), 0U);
}

TEST(CounterTest, CountsEachMeasurementOnceWhenThreadsReachTheBound) {
  const Counter counter("test.reached", {.labels = {"number"}, .label_sets_max = 100});
  std::vector<std::thread> threads;
  for (int count = 0; count < 4; ++count) {
    threads.emplace_back([&counter, count] {
      for (int number = 0; number < 1000; ++number) {
        counter.with(std::to_string((number + 250 * count) % 1000)).add();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  const detail::Family* family = detail::Registry::instance().first();
  while (family->name() != "test.reached") family = family->next();
  std::uint64_t counted = 0;
  int series = 0;
  for (const detail::Series* each = family->first(); each != nullptr; each = each->next.load()) {
    counted += detail::ThreadCells::sum(each->first);
    ++series;
  }
  EXPECT_EQ(series, 100);
  EXPECT_EQ(counted + dropped_of("test.reached"), 4000U);
  EXPECT_GE(dropped_of("test.reached"), 3600U);
}

struct ReplacedService {
  Counter counter{"test.service.calls", {.labels = {"kind"}}};
  Gauge gauge{"test.service.jobs"};
  Histogram histogram{"test.service.duration"};
};

TEST(CounterTest, KeepsTheTotalsOfAServiceThatIsReplaced) {
  auto service = std::make_unique<ReplacedService>();
  service->counter.with("a").add(3);
  service->gauge.set(5);
  service->histogram.record(1.0);
  auto successor = std::make_unique<ReplacedService>();  // both exist while one replaces the other
  successor->counter.with("a").add(4);
  successor->gauge.set(2);
  successor->histogram.record(2.0);
  EXPECT_EQ(successor->gauge.value(), 7);
  service.reset();
  EXPECT_EQ(successor->gauge.value(), 2) << "a gauge is the present value of its objects";
  EXPECT_EQ(successor->histogram.count(), 2U);
  const detail::Family* family = detail::Registry::instance().first();
  while (family->name() != "test.service.calls") family = family->next();
  EXPECT_EQ(detail::ThreadCells::sum(family->first()->first), 7U);
}

TEST(GaugeTest, AddsUpTheValuesOfItsObjects) {
  Gauge one("test.gauge");
  one.set(5);
  one.set(3);
  {
    Gauge two("test.gauge");
    two.set(-10);
    EXPECT_EQ(one.value(), -7);
    two.add(4);
    EXPECT_EQ(one.value(), -3);
    two.subtract(4);
  }
  EXPECT_EQ(one.value(), 3) << "a gauge takes its value along";
}

TEST(HistogramTest, CountsValuesByBucket) {
  const Histogram histogram("test.histogram", {.bounds = {1, 2, 4}});
  for (const double value : {0.5, 1.0, 1.5, 4.0, 4.5, 100.0}) histogram.record(value);
  histogram.record(1500ms);
  EXPECT_EQ(histogram.count(), 7U);
  const detail::Family* family = detail::Registry::instance().first();
  while (family->name() != "test.histogram") family = family->next();
  const detail::CellId first = family->first()->first;
  EXPECT_EQ(detail::ThreadCells::real_sum(first), 113.0);
  EXPECT_EQ(detail::ThreadCells::sum(first + 1), 2U);
  EXPECT_EQ(detail::ThreadCells::sum(first + 2), 2U);
  EXPECT_EQ(detail::ThreadCells::sum(first + 3), 1U);
  EXPECT_EQ(detail::ThreadCells::sum(first + 4), 2U);
}

TEST(HistogramTest, RejectsInvalidBounds) {
  EXPECT_THROW(Histogram("test.bounds", {.bounds = {2, 1}}), std::invalid_argument);
  EXPECT_THROW(Histogram("test.bounds", {.bounds = std::vector<double>(65)}),
               std::invalid_argument);
}

}  // namespace
}  // namespace weir::telemetry::metrics_test

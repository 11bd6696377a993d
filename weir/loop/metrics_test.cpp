#include "weir/loop/metrics.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "weir/base/detail/counter.hpp"

namespace weir::metrics_test {
namespace {

class Server final : public MetricSource {
 public:
  explicit Server(Metrics& metrics) { metrics.add(*this); }
  ~Server() { detach(); }
  detail::Counter requests;
  detail::Counter open;

 private:
  void collect(MetricSnapshot& sum) const override {
    sum.add({"requests", requests.value()});
    sum.add({"open", open.value(), Metric::Kind::gauge});
  }
};

std::uint64_t value_of(const Metrics& metrics, const std::string& name) {
  const MetricSnapshot sum = metrics.read();
  for (const Metric& each : sum.metrics()) {
    if (each.name == name) return each.value;
  }
  return 0;
}

TEST(Metrics, AddsUpSeveralSources) {
  Metrics metrics;
  EXPECT_TRUE(metrics.read().metrics().empty());
  Server one(metrics);
  Server other(metrics);
  one.requests.add(3);
  other.requests.add(4);
  other.open.add();
  EXPECT_EQ(value_of(metrics, "requests"), 7U);
  EXPECT_EQ(value_of(metrics, "open"), 1U);
  EXPECT_EQ(metrics.read().metrics().size(), 2U);
}

TEST(Metrics, RetainsTheTotalsOfADestroyedSource) {
  Metrics metrics;
  std::optional<Server> server(std::in_place, metrics);
  server->requests.add(5);
  server->open.add(2);
  server.reset();
  EXPECT_EQ(value_of(metrics, "requests"), 5U);
  EXPECT_EQ(value_of(metrics, "open"), 0U);
  server.emplace(metrics);
  server->requests.add(1);
  EXPECT_EQ(value_of(metrics, "requests"), 6U);
}

TEST(Metrics, ASourceCountsInTheMetricsThatItWasAddedToLast) {
  std::optional<Metrics> first(std::in_place);
  Metrics second;
  Server server(*first);
  server.requests.add(2);
  first->add(server);
  EXPECT_EQ(value_of(*first, "requests"), 2U) << "added once";
  second.add(server);
  server.requests.add();
  EXPECT_EQ(value_of(*first, "requests"), 2U) << "the totals are retained";
  EXPECT_EQ(value_of(second, "requests"), 3U);
  first.reset();
}

TEST(Metrics, MetricsMayBeDestroyedBeforeTheirSources) {
  std::optional<Metrics> metrics(std::in_place);
  const Server one(*metrics);
  Server other(*metrics);
  metrics.reset();
  metrics.emplace();
  metrics->add(other);
  other.requests.add();
  EXPECT_EQ(value_of(*metrics, "requests"), 1U);
}

// Each thread adds and destroys its own sources at the same time.
TEST(Metrics, ThreadsAddAndDestroySourcesConcurrently) {
  Metrics metrics;
  const auto come_and_go = [&] {
    for (int i = 0; i < 1000; ++i) {
      Server server(metrics);
      server.requests.add();
      metrics.add(server);
    }
  };
  std::thread another(come_and_go);
  come_and_go();
  another.join();
  EXPECT_EQ(value_of(metrics, "requests"), 2000U);
}

TEST(Metrics, ReadsWhileSourcesAreAddedAndDestroyed) {
  Metrics metrics;
  std::atomic<bool> done{false};
  std::thread core([&] {
    for (int i = 0; i < 200; ++i) {
      Server server(metrics);
      server.requests.add();
    }
    done = true;
  });
  std::uint64_t before = 0;
  while (!done) {
    const std::uint64_t now = value_of(metrics, "requests");
    EXPECT_GE(now, before) << "no count is ever lost";
    before = now;
  }
  core.join();
  EXPECT_EQ(value_of(metrics, "requests"), 200U);
}

TEST(Metrics, RetainsTheCpuTimeOfEndedThreads) {
  Metrics metrics;
  EXPECT_EQ(metrics.cpu_time(), Duration(0));
  Duration own{};
  std::thread([&] {
    metrics.on_thread_start();
    while (metrics.cpu_time() == Duration(0)) {
    }
    metrics.on_thread_end();
    own = metrics.cpu_time();
  }).join();
  EXPECT_GT(own, Duration(0));
  EXPECT_EQ(metrics.cpu_time(), own) << "it is retained";
  std::thread([&] {
    metrics.on_thread_start();
    EXPECT_GE(metrics.cpu_time(), own) << "the time of the next thread is added";
    metrics.on_thread_end();
  }).join();
}

TEST(Metrics, DoNotCountTheCpuTimeOfAThreadBeforeItRunsTheLoop) {
  std::thread([] {
    const os::ThreadProbe probe = os::ThreadProbe::of_this_thread();
    while (probe.cpu_time() < std::chrono::milliseconds(20)) {
    }
    Metrics metrics;
    const Duration before = probe.cpu_time();
    metrics.on_thread_start();
    const Duration running = metrics.cpu_time();
    EXPECT_LE(running, probe.cpu_time() - before);
    metrics.on_thread_end();
    const Duration ended = metrics.cpu_time();
    EXPECT_LE(ended, probe.cpu_time() - before);
    EXPECT_GE(ended, running);
    const Duration between = probe.cpu_time();
    metrics.on_thread_start();
    EXPECT_LE(metrics.cpu_time() - ended, probe.cpu_time() - between);
    metrics.on_thread_end();
    EXPECT_EQ(metrics.cpu_time(), metrics.cpu_time()) << "no thread runs the loop";
  }).join();
}

TEST(MetricSnapshot, KeepsTheOrderOfTheFirstAdditions) {
  MetricSnapshot sum;
  sum.add({"b", 1});
  sum.add({"a", 2, Metric::Kind::gauge});
  sum.add({"b", 3});
  sum.add({"c", 4});
  sum.add({"a", 5, Metric::Kind::gauge});
  struct {
    const char* name;
    std::uint64_t value;
    Metric::Kind kind;
  } const expected[] = {{"b", 4, Metric::Kind::counter},
                        {"a", 7, Metric::Kind::gauge},
                        {"c", 4, Metric::Kind::counter}};
  ASSERT_EQ(sum.metrics().size(), std::size(expected));
  for (std::size_t index = 0; index < std::size(expected); ++index) {
    EXPECT_EQ(sum.metrics()[index].name, expected[index].name);
    EXPECT_EQ(sum.metrics()[index].value, expected[index].value);
    EXPECT_EQ(sum.metrics()[index].kind, expected[index].kind);
  }
}

TEST(Metrics, CpuTimeNeverDecreasesWhileThreadsComeAndGo) {
  Metrics metrics;
  std::atomic<bool> done{false};
  std::thread core([&] {
    for (int i = 0; i < 5000; ++i) {
      metrics.on_thread_start();
      metrics.on_thread_end();
    }
    done = true;
  });
  Duration before{};
  while (!done) {
    const Duration now = metrics.cpu_time();
    EXPECT_GE(now, before);
    before = now;
  }
  core.join();
}

TEST(Metrics, HaveTotalsUnlessTheySayOtherwise) {
  const Metric metric{.name = "requests"};
  EXPECT_EQ(metric.value, 0U);
  EXPECT_EQ(metric.kind, Metric::Kind::counter);
}

}  // namespace
}  // namespace weir::metrics_test

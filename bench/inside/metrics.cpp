// Measures counters and histograms: alone, and while a second thread uses the same one. If
// prometheus-cpp is installed, measures its counters and histograms as well. Prints one line of
// JSON per round: nanoseconds per measurement.
#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "weir/telemetry.hpp"

#if WEIR_BENCH_PROMETHEUS
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#endif

namespace weir {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t times = 2'000'000;
constexpr unsigned values_in_turn = 64;

/// Durations in seconds that fall into several buckets.
std::array<double, values_in_turn> durations() {
  std::array<double, values_in_turn> all{};
  double duration = 40e-6;
  for (double& each : all) each = duration *= 1.2;
  return all;
}

template <class Measure>
double nanoseconds_each(const Measure& measure) {
  const auto begin = Clock::now();
  for (std::int64_t time = 0; time < times; ++time) {
    measure(static_cast<unsigned>(time) % values_in_turn);
    asm volatile("" : : : "memory");  // no additions are joined
  }
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  return took.count() / static_cast<double>(times);
}

struct Times {
  double alone;
  double together;
};

/// Runs `measure(n)` on one thread, and then on two threads at the same time.
template <class Measure>
Times both(const Measure& measure) {
  const double alone = nanoseconds_each(measure);
  std::array<double, 2> each{};
  std::barrier start(2);
  const auto run = [&](double& result) {
    start.arrive_and_wait();
    result = nanoseconds_each(measure);
  };
  std::thread other([&] { run(each[1]); });
  run(each[0]);
  other.join();
  return {alone, (each[0] + each[1]) / 2};
}

void print(const char* separator, const char* name, Times times_of) {
  std::printf("%s\"%s\": {\"alone\": %.3f, \"together\": %.3f}", separator, name, times_of.alone,
              times_of.together);
}

void expect(bool right) {
  if (!right) std::abort();
}

void print_weir(unsigned long round) {
  const auto measurements = static_cast<std::uint64_t>(times) * 3 * (round + 1);
  const std::array seconds = durations();
  const telemetry::Counter counter("bench.orders");
  print("{", "Weir, counter", both([&](unsigned) { counter.add(); }));
  expect(counter.value() == measurements);
  const telemetry::Counter labelled("bench.labelled", {.labels = {"shop", "state"}});
  print(", ", "Weir, counter found by two labels",
        both([&](unsigned) { labelled.with("north", "paid").add(); }));
  const telemetry::Histogram classic("bench.classic", {.native = false});
  print(", ", "Weir, histogram", both([&](unsigned number) { classic.record(seconds[number]); }));
  expect(classic.count() == measurements);
  const telemetry::Histogram native("bench.native");
  print(", ", "Weir, histogram, native too",
        both([&](unsigned number) { native.record(seconds[number]); }));
  expect(native.count() == measurements);
}

#if WEIR_BENCH_PROMETHEUS
void print_prometheus() {
  const std::array seconds = durations();
  prometheus::Registry registry;
  auto& counters = prometheus::BuildCounter().Name("orders").Register(registry);
  auto& counter = counters.Add({});
  print(", ", "prometheus-cpp, counter", both([&](unsigned) { counter.Increment(); }));
  expect(counter.Value() == static_cast<double>(times) * 3);
  print(", ", "prometheus-cpp, counter found by two labels",
        both([&](unsigned) { counters.Add({{"shop", "north"}, {"state", "paid"}}).Increment(); }));
  auto& histogram = prometheus::BuildHistogram().Name("took").Register(registry).Add(
      {}, prometheus::Histogram::BucketBoundaries(telemetry::duration_bounds()));
  print(", ", "prometheus-cpp, histogram",
        both([&](unsigned number) { histogram.Observe(seconds[number]); }));
}
#endif

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  for (unsigned long round = 0; round < rounds; ++round) {
    weir::print_weir(round);
#if WEIR_BENCH_PROMETHEUS
    weir::print_prometheus();
#endif
    std::printf("}\n");
    std::fflush(stdout);
  }
}

// real_time: runs 140 us of work every 500 us, 5,000 times on one pinned core. Measures the time
// from the due time to the end of the work, on an ordinary thread and on a real-time thread.
#include <weir/runtime/runtime.hpp>
#include <weir/task/interval.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

using namespace weir;

constexpr Duration period = 500us;  // each run must end within it
constexpr std::array<int, 9> bounds{100, 120, 140, 160, 180, 200, 250, 300, 500};  // us

struct Times {
  std::size_t runs = 0, missed = 0;
  Duration least = Duration::max(), most{}, sum{};
  std::array<std::size_t, bounds.size() + 1> histogram{};

  void add(Duration time) {
    ++runs, missed += time > period, sum += time;
    least = std::min(least, time), most = std::max(most, time);
    ++histogram[std::size_t(std::ranges::upper_bound(bounds, time / 1us) - bounds.begin())];
  }
  void print(const char* how) const {
    std::printf("%s: %zu runs, %zu missed; min %ld us, average %ld us, max %ld us\n", how, runs,
                missed, long(least / 1us), long(sum / 1us / long(runs)), long(most / 1us));
    for (std::size_t i = 0; i < bounds.size(); ++i)
      std::printf("  < %4d us %6zu\n", bounds[i], histogram[i]);
    std::printf("    longer  %6zu\n", histogram.back());
  }
};

void work() {
  volatile int rounds = 350'000;  // about 140 us
  while (rounds > 0) rounds = rounds - 1;
}

Task<Result<>> measure(Scope& scope, std::size_t runs, Times& times) {
  Interval moments(period, {.missed = MissedTicks::burst});
  while (times.runs < runs) {
    const auto moment = co_await moments.next();
    if (!moment) co_return std::unexpected(moment.error());
    work();
    times.add(scope.loop().platform().now() - moment->due);
  }
  co_return {};
}

int main(int argc, char** argv) {
  const std::size_t runs = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 5000;
  for (const bool real_time : {false, true}) {
    RuntimeOptions options{.cores = 1};
    if (real_time) options.real_time = RealTime();
    Times times;
    if (Runtime(options).run_on_each_core(measure, runs, std::ref(times)) != 0) return 1;
    if (times.runs != 0) times.print(real_time ? "with real time" : "without real time");
  }
}

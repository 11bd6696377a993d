// B11: registers, starts, stops and removes services, each with its own logger that is created on
// demand. Measures factories, constructors, start() and stop() tasks, eight apps in eight threads,
// and the growth of time and memory from 1,000 to 64,000 services. Prints one line of JSON per
// round. `--count N` runs once for N services, for a counter of instructions.
#include <malloc.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/inside/child_process.hpp"
#include "weir/app.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/task/detail/run.hpp"

namespace weir {
namespace {

constexpr std::int64_t services = 10'000;
constexpr std::int64_t few = 1'000;
constexpr std::int64_t many = 64'000;
constexpr int threads = 8;
constexpr int times_each = 5;

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begun) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

/// A logger, created for each service that requires one.
struct Logger {
  explicit Logger(inject::Requester requester) : name(requester.name()) {}
  std::string_view name;
};
struct Service {
  explicit Service(Logger& own) : logger(own) {}
  Logger& logger;
};
struct TaskService : Service {
  using Service::Service;
  Task<Result<>> start() { co_return {}; }
  Task<> stop() { co_return; }
};

void add_by_factory(App& app, std::int64_t count) {
  app.per_core([](inject::Requester requester) { return Logger(requester); });
  for (std::int64_t i = 0; i < count; ++i) {
    app.per_core([](Logger& own) { return Service(own); });
  }
}
template <class Each>
void add_by_constructor(App& app, std::int64_t count) {
  app.per_core<Logger>();
  for (std::int64_t i = 0; i < count; ++i) app.per_core<Each>();
}
using Add = void (*)(App& app, std::int64_t count);

/// Bytes in use on the heap.
double allocated() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

Task<> live(Add add, std::int64_t count, double* most) {
  App app;
  add(app, count);
  require((co_await app.start()).has_value());
  if (most != nullptr) *most = allocated();
  co_await app.stop();
}

struct BenchLoop {
  OsPlatform platform;
  std::unique_ptr<Loop> loop = Loop::make(platform, {.backend = BackendChoice::epoll}).value();

  void run_app(Add add, std::int64_t count, double* most = nullptr) {
    weir::run(*loop, live(add, count, most));
  }
};

void stay_on_one_processor() {
  static_cast<void>(os::pin_current_thread(os::allowed_cpus().front()));
}

/// Milliseconds per app, after one app as a warm-up.
double milliseconds_of(Add add, std::int64_t count) {
  stay_on_one_processor();
  BenchLoop bench_loop;
  bench_loop.run_app(add, count);
  const std::int64_t times = std::max<std::int64_t>(1, many / count);
  const auto begun = Clock::now();
  for (std::int64_t i = 0; i < times; ++i) bench_loop.run_app(add, count);
  return milliseconds_since(begun) / static_cast<double>(times);
}

double bytes_of(Add add, std::int64_t count) {
  BenchLoop bench_loop;
  bench_loop.run_app(add, 1);
  const double before = allocated();
  double most = 0;
  bench_loop.run_app(add, count, &most);
  return most - before;
}

struct ParallelApps {
  double one = 0;    // milliseconds of one app in one thread
  double eight = 0;  // milliseconds of eight apps in eight threads
};

/// Runs one app after another in each thread, each thread with its own loop.
double milliseconds_with(int apps) {
  std::barrier together(apps + 1);
  std::vector<std::jthread> running;
  for (int i = 0; i < apps; ++i) {
    running.emplace_back([&] {
      BenchLoop bench_loop;
      bench_loop.run_app(&add_by_factory, services);
      together.arrive_and_wait();
      for (int time = 0; time < times_each; ++time) bench_loop.run_app(&add_by_factory, services);
      together.arrive_and_wait();
    });
  }
  together.arrive_and_wait();
  const auto begun = Clock::now();
  together.arrive_and_wait();
  return milliseconds_since(begun) / times_each;
}

ParallelApps measure_parallel_apps() {
  ParallelApps parallel_apps;
  parallel_apps.one = milliseconds_with(1);
  parallel_apps.eight = milliseconds_with(threads);
  return parallel_apps;
}

/// The exponent e of cost ~ services^e.
double exponent(double least, double most) {
  return std::log(most / least) / std::log(static_cast<double>(many) / few);
}

void print_app(const char* name, Add add) {
  const double milliseconds = run_in_child_process(milliseconds_of, add, services);
  const double bytes = run_in_child_process(bytes_of, add, services);
  std::printf("\"%s\": {\"milliseconds\": %.3f, \"bytes each\": %.0f}, ", name, milliseconds,
              bytes / services);
}

void print_round() {
  std::fputs("{", stdout);
  print_app("by factory", &add_by_factory);
  print_app("by constructor", &add_by_constructor<Service>);
  print_app("with start() and stop()", &add_by_constructor<TaskService>);
  const ParallelApps apps = run_in_child_process(measure_parallel_apps);
  const auto processors = static_cast<double>(os::allowed_cpus().size());
  std::printf(
      "\"eight apps in eight threads\": {\"milliseconds\": %.3f, \"one\": %.3f, "
      "\"processors\": %.0f}, ",
      apps.eight, apps.one, processors);
  std::printf("\"growth\": {\"time\": %.4f, \"memory\": %.4f}}\n",
              exponent(run_in_child_process(milliseconds_of, &add_by_factory, few),
                       run_in_child_process(milliseconds_of, &add_by_factory, many)),
              exponent(run_in_child_process(bytes_of, &add_by_factory, few),
                       run_in_child_process(bytes_of, &add_by_factory, many)));
  std::fflush(stdout);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--count") == 0) {
    weir::BenchLoop().run_app(&weir::add_by_factory, std::strtol(argv[2], nullptr, 10));
    return 0;
  }
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  for (unsigned long round = 0; round < rounds; ++round) weir::print_round();
}

// B11: services, each requiring a logger of its own that is made on demand, registered, started,
// stopped and forgotten; by factory, by constructor, and with tasks that start and stop them. And
// eight such apps in eight threads, and how time and memory grow from 1,000 services to 64,000.
// Prints one line of JSON for each round. `--count N` does it once for N services, for a counter of
// instructions.
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

/// Made for each service that requires one.
struct Logger {
  explicit Logger(Requester who) : name(who.name()) {}
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
  app.per_core([](Requester who) { return Logger(who); });
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

/// Bytes that were asked of the heap and not given back.
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

struct Machine {
  OsHost host;
  std::unique_ptr<Loop> loop = Loop::make(host, {.backend = BackendChoice::epoll}).value();

  void run_app(Add add, std::int64_t count, double* most = nullptr) {
    weir::run(*loop, live(add, count, most));
  }
};

void stay_on_one_processor() {
  static_cast<void>(os::pin_this_thread(os::allowed_cpus().front()));
}

/// Of one app, once there was one before.
double milliseconds_of(Add add, std::int64_t count) {
  stay_on_one_processor();
  Machine machine;
  machine.run_app(add, count);
  const std::int64_t times = std::max<std::int64_t>(1, many / count);
  const auto begun = Clock::now();
  for (std::int64_t i = 0; i < times; ++i) machine.run_app(add, count);
  return milliseconds_since(begun) / static_cast<double>(times);
}

double bytes_of(Add add, std::int64_t count) {
  Machine machine;
  machine.run_app(add, 1);
  const double before = allocated();
  double most = 0;
  machine.run_app(add, count, &most);
  return most - before;
}

struct Company {
  double one = 0;    // milliseconds of one app in one thread
  double eight = 0;  // of eight
};

/// Each thread with a loop and an app of its own, again and again.
double milliseconds_with(int apps) {
  std::barrier together(apps + 1);
  std::vector<std::jthread> running;
  for (int i = 0; i < apps; ++i) {
    running.emplace_back([&] {
      Machine machine;
      machine.run_app(&add_by_factory, services);
      together.arrive_and_wait();
      for (int time = 0; time < times_each; ++time) machine.run_app(&add_by_factory, services);
      together.arrive_and_wait();
    });
  }
  together.arrive_and_wait();
  const auto begun = Clock::now();
  together.arrive_and_wait();
  return milliseconds_since(begun) / times_each;
}

Company company() {
  Company company;
  company.one = milliseconds_with(1);
  company.eight = milliseconds_with(threads);
  return company;
}

/// The e of cost ~ services^e.
double exponent(double least, double most) {
  return std::log(most / least) / std::log(static_cast<double>(many) / few);
}

void print_app(const char* name, Add add) {
  const double milliseconds = in_a_fresh_process(milliseconds_of, add, services);
  const double bytes = in_a_fresh_process(bytes_of, add, services);
  std::printf("\"%s\": {\"milliseconds\": %.3f, \"bytes each\": %.0f}, ", name, milliseconds,
              bytes / services);
}

void print_round() {
  std::fputs("{", stdout);
  print_app("by factory", &add_by_factory);
  print_app("by constructor", &add_by_constructor<Service>);
  print_app("with start() and stop()", &add_by_constructor<TaskService>);
  const Company of = in_a_fresh_process(company);
  const auto processors = static_cast<double>(os::allowed_cpus().size());
  std::printf(
      "\"eight apps in eight threads\": {\"milliseconds\": %.3f, \"one\": %.3f, "
      "\"processors\": %.0f}, ",
      of.eight, of.one, processors);
  std::printf("\"growth\": {\"time\": %.4f, \"memory\": %.4f}}\n",
              exponent(in_a_fresh_process(milliseconds_of, &add_by_factory, few),
                       in_a_fresh_process(milliseconds_of, &add_by_factory, many)),
              exponent(in_a_fresh_process(bytes_of, &add_by_factory, few),
                       in_a_fresh_process(bytes_of, &add_by_factory, many)));
  std::fflush(stdout);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--count") == 0) {
    weir::Machine().run_app(&weir::add_by_factory, std::strtol(argv[2], nullptr, 10));
    return 0;
  }
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  for (unsigned long round = 0; round < rounds; ++round) weir::print_round();
}

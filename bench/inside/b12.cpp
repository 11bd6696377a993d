// B12: stops and starts a provider and its dependent service a million times. Prints one line of
// JSON per round: millions of cycles per second, and the growth of the heap in bytes after the
// first hundredth.
#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "bench/inside/child_process.hpp"
#include "weir/app.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/task/detail/run.hpp"

namespace weir {
namespace {

constexpr std::int64_t cycles = 1'000'000;
constexpr std::int64_t warm_up = cycles / 100;

struct Results {
  double millions = 0;  // cycles per second
  double grown_bytes = 0;
};

struct Provider {};
struct Dependant {
  explicit Dependant(Provider& on) : provider(on) {}
  Provider& provider;
};

ServiceId add_by_constructor(App& app) {
  app.per_core<Dependant>();
  return app.per_core<Provider>();
}
ServiceId add_by_factory(App& app) {
  app.per_core([](Provider& on) { return Dependant(on); });
  return app.per_core([] { return Provider(); });
}
using Add = ServiceId (*)(App& app);

double allocated() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

Task<> stop_and_start(App& app, ServiceId provider, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    require((co_await app.stop(provider)).has_value());
    require((co_await app.start(provider)).has_value());
  }
}

Task<Results> measure_app(Add add) {
  App app;
  const ServiceId provider = add(app);
  require((co_await app.start()).has_value());
  co_await stop_and_start(app, provider, warm_up);
  const double before = allocated();
  const auto begun = std::chrono::steady_clock::now();
  co_await stop_and_start(app, provider, cycles);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  const double grown = allocated() - before;
  co_await app.stop();
  co_return Results{static_cast<double>(cycles) / took.count() / 1e6, grown};
}

Results measure(Add add) {
  static_cast<void>(os::pin_current_thread(os::allowed_cpus().front()));
  OsPlatform platform;
  const auto loop = Loop::make(platform, {.backend = BackendChoice::epoll}).value();
  return run(*loop, measure_app(add));
}

void print(const char* name, Add add, const char* behind) {
  const Results of = run_in_child_process(measure, add);
  std::printf("\"%s\": {\"millions\": %.3f, \"grown bytes\": %.0f}%s", name, of.millions,
              of.grown_bytes, behind);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  for (unsigned long round = 0; round < rounds; ++round) {
    std::fputs("{", stdout);
    weir::print("by constructor", &weir::add_by_constructor, ", ");
    weir::print("by factory", &weir::add_by_factory, "}\n");
    std::fflush(stdout);
  }
}

// What an app costs: starting and stopping many services (B11), and one again and again (B12).
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "weir/app.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os_host.hpp"
#include "weir/task/run.hpp"

namespace weir {
namespace {

struct Bench {
  OsHost host;
  std::unique_ptr<Loop> loop = Loop::make(host, {.backend = BackendChoice::epoll}).value();
};

/// Made for each service that requires one.
struct Logger {
  explicit Logger(Requester who) : name(who.name()) {}
  std::string_view name;
};
struct Service {
  explicit Service(Logger& own) : logger(own) {}
  Logger& logger;
};
/// The same with tasks that start and stop it.
struct TaskService : Service {
  using Service::Service;
  Task<Result<>> start() { co_return {}; }
  Task<> stop() { co_return; }
};

std::size_t allocated() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

Task<> start_and_stop(App& app, std::size_t* most) {
  if (auto started = co_await app.start(); !started) std::abort();
  if (most != nullptr) *most = allocated();
  co_await app.stop();
}

template <class Each>
void register_all(App& app, std::int64_t services, bool by_factory) {
  if (by_factory) {
    app.per_core([](Requester who) { return Logger(who); });
  } else {
    app.per_core<Logger>();
  }
  for (std::int64_t i = 0; i < services; ++i) {
    if (by_factory) {
      app.per_core([](Logger& own) { return Each(own); });
    } else {
      app.per_core<Each>();
    }
  }
}

/// B11: so many services and a logger for each, registered, started, stopped and forgotten.
template <class Each, bool by_factory>
void all_services(benchmark::State& state) {
  Bench bench;
  const auto body = [](benchmark::State& of) -> Task<> {
    for (auto _ : of) {
      App app;
      register_all<Each>(app, of.range(0), by_factory);
      co_await start_and_stop(app, nullptr);
    }
  };
  run(*bench.loop, body(state));
  state.SetItemsProcessed(state.iterations() * state.range(0));
  std::size_t most = 0;
  const std::size_t before = allocated();
  const auto once = [&]() -> Task<> {
    App app;
    register_all<Each>(app, state.range(0), by_factory);
    co_await start_and_stop(app, &most);
  };
  Bench fresh;
  run(*fresh.loop, once());
  state.counters["bytes_per_service"] =
      static_cast<double>(most - before) / static_cast<double>(state.range(0));
}
BENCHMARK(all_services<Service, false>)->RangeMultiplier(8)->Range(1000, 64000);
BENCHMARK(all_services<Service, true>)->Arg(10000);
BENCHMARK(all_services<TaskService, false>)->Arg(10000);

struct Provider {};
struct Dependant {
  explicit Dependant(Provider& on) : provider(on) {}
  Provider& provider;
};

/// B12: a provider stops and starts, and its dependant with it.
void stop_and_start_a_provider(benchmark::State& state) {
  Bench bench;
  const auto body = [](benchmark::State& of) -> Task<> {
    App app;
    const ServiceId provider = app.per_core<Provider>();
    app.per_core<Dependant>();
    if (!co_await app.start()) std::abort();
    const std::size_t before = allocated();
    for (auto _ : of) {
      if (!co_await app.stop(provider)) std::abort();
      if (!co_await app.start(provider)) std::abort();
    }
    of.counters["bytes_grown"] = static_cast<double>(allocated()) - static_cast<double>(before);
    co_await app.stop();
  };
  run(*bench.loop, body(state));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(stop_and_start_a_provider);

}  // namespace
}  // namespace weir

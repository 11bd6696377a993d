// services_cores: one configuration for all cores, a store and a worker on each core, and a ticker
// on one core.
#include <weir/app.hpp>

#include <cstdio>

using namespace weir;

/// One object that all cores share. Services receive it as const.
struct Config {
  int shards = 2;
};

/// One object on each core. Only services of that core use it, so it needs no lock and no atomic.
struct Store {
  Store(const Config& config, Loop& loop) : shards(config.shards), core(loop.core()) {}
  int shards;
  unsigned core;
};

struct Worker {
  Worker(Store& store, Loop& loop) {
    std::fprintf(stderr, "worker on core %u with the store of core %u, %d shards\n", loop.core(),
                 store.core, store.shards);
  }
};

/// One object on core 1. It may use the services of that core.
struct Ticker {
  Ticker(Store& store, Scope& scope) : core(store.core) { scope.spawn(tick()); }
  Task<> tick() {
    while (const auto slept = co_await sleep(100ms)) {
      std::fprintf(stderr, "tick on core %u\n", core);
    }
  }
  unsigned core;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  options.cores = 2;
  App app;
  app.on_core<Ticker>(1);
  app.per_core<Worker>();
  app.per_core<Store>();
  app.shared<Config>();
  return app.run(options);
}

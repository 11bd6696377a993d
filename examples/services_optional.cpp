// services_optional: a service that works with or without a cache, and is notified when one starts.
#include <weir/app.hpp>

#include <cstdio>

using namespace weir;

struct Cache {
  Task<Result<>> start() { co_return co_await sleep(50ms); }
  int size = 64;
};

/// Starts without the cache. A service that takes `Cache&` would wait for it.
class Store {
 public:
  explicit Store(inject::Optional<Cache> cache) : cache_(cache) {
    print();
    cache_.on_change([this] { print(); });
  }

 private:
  void print() const {
    if (cache_) {
      std::fprintf(stderr, "store: a cache of %d\n", cache_->size);
    } else {
      std::fputs("store: no cache\n", stderr);
    }
  }

  inject::Optional<Cache> cache_;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  options.cores = 1;
  App app;
  app.per_core<Store>();
  app.per_core<Cache>();
  return app.run(options);
}

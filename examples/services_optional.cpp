// services_optional: a service that works with a cache or without, and is told when one comes.
#include <weir/app.hpp>

#include <cstdio>

using namespace weir;

struct Cache {
  Task<Result<>> start() { co_return co_await sleep(50ms); }
  int size = 64;
};

/// Does not wait for the cache; whoever requires it by `Cache&` would.
class Store {
 public:
  explicit Store(Optional<Cache> cache) : cache_(cache) {
    tell();
    cache_.on_change([this] { tell(); });
  }

 private:
  void tell() const {
    if (cache_) {
      std::fprintf(stderr, "store: a cache of %d\n", cache_->size);
    } else {
      std::fputs("store: no cache\n", stderr);
    }
  }

  Optional<Cache> cache_;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  options.cores = 1;
  App app;
  app.per_core<Store>();
  app.per_core<Cache>();
  return app.run(options);
}

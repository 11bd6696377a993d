// services_replace: replaces a price list while the shop that uses it runs. The new list and a new
// shop start beside the old ones; then the old ones stop.
#include <weir/app.hpp>

#include <cstdio>

using namespace weir;

struct Prices {
  explicit Prices(int amount) : price(amount) {}
  Task<> stop() {
    std::fprintf(stderr, "prices of %d: gone\n", price);
    co_return;
  }
  int price;
};

struct Shop {
  explicit Shop(const Prices& from) : prices(from) {
    std::fprintf(stderr, "shop: open at %d\n", prices.price);
  }
  ~Shop() { std::fprintf(stderr, "shop: closed at %d\n", prices.price); }
  const Prices& prices;
};

/// Stands for a service that decides on changes.
class Manager {
 public:
  Manager(App& app, Scope& scope, ServiceId prices) : app_(app), scope_(scope), prices_(prices) {}
  Task<Result<>> start() {
    scope_.spawn(raise());
    co_return {};
  }

 private:
  Task<Result<>> raise() {
    if (auto slept = co_await sleep(50ms); !slept) co_return slept;
    const ServiceId fresh = app_.per_core([] { return Prices(11); });
    co_return co_await app_.replace(prices_, fresh);
  }

  App& app_;
  Scope& scope_;
  ServiceId prices_;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  options.cores = 1;
  App app;
  const ServiceId prices = app.per_core([] { return Prices(10); });
  app.per_core<Shop>();
  app.per_core([prices](App& of, Scope& scope) { return Manager(of, scope, prices); });
  return app.run(options);
}

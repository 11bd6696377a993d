// services_remote: keeps one ledger on core 1, and calls it there from other cores without a lock.
#include <weir/app.hpp>

#include <cstdio>
#include <memory>

using namespace weir;

class Ledger {
 public:
  explicit Ledger(Loop& loop) : core_(loop.core()) {}
  Result<int> add(int amount) {
    if (amount > 100) return fail(Errc::limit_reached);
    total_ += amount;
    std::fprintf(stderr, "ledger on core %u: %d\n", core_, total_);
    return total_;
  }

 private:
  unsigned core_;
  int total_ = 0;
};

class Shop {
 public:
  Shop(inject::Remote<Ledger> ledger, Loop& loop, Scope& scope, App& app, ServiceId ledger_id)
      : ledger_(ledger), core_(loop.core()) {
    if (core_ == 0) scope.spawn(sell(app, ledger_id));
  }

 private:
  Task<Result<>> sell(App& app, ServiceId ledger_id) {
    while (!ledger_) {  // the app does not wait for it
      if (auto slept = co_await sleep(1ms); !slept) co_return slept;
    }
    for (const int amount : {5, 500}) {
      const Result<int> total = co_await ledger_.call(&Ledger::add, amount);
      if (total) std::fprintf(stderr, "shop on core %u: sold for %d\n", core_, amount);
      if (!total) std::fprintf(stderr, "shop: %d is too much\n", amount);
    }
    if (auto removed = co_await app.remove(ledger_id); !removed) co_return removed;
    const Result<int> total = co_await ledger_.call(&Ledger::add, 1);
    if (total.error() == Errc::not_found) std::fputs("shop: the ledger was removed\n", stderr);
    co_return {};
  }

  inject::Remote<Ledger> ledger_;
  unsigned core_;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  options.cores = 2;
  App app;
  const ServiceId ledger = app.on_core<Ledger>(1);
  app.per_core([ledger](inject::Remote<Ledger> of, Loop& loop, Scope& scope, App& in) {
    return std::make_unique<Shop>(of, loop, scope, in, ledger);
  });
  return app.run(options);
}

// A typical user's file with twenty services of all kinds. ./dev bench compiling measures the time
// of its compilation. The program starts all services and stops them.
#include <weir/app.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace weir;

struct Config {
  std::string name = "shop";
  int shards = 4;
};
struct Usage {};

struct Logger {
  explicit Logger(inject::Requester who) : name(who.name()) {}
  std::string name;
};

class Database {
 public:
  Database(const Config& config, Logger& logger) : shards_(config.shards), logger_(logger) {}
  Task<Result<>> start() { co_return {}; }
  Task<> stop() { co_return; }
  int shards() const { return shards_; }
  const std::string& name() const { return logger_.name; }

 private:
  int shards_;
  Logger& logger_;
};
struct Cache {
  explicit Cache(Database& of) : database(of) {}
  Database& database;
};

struct Users {
  Users(Database& of, inject::Optional<Cache> some, Logger&) : database(of), cache(some) {}
  Task<Result<>> start() { co_return {}; }
  Database& database;
  inject::Optional<Cache> cache;
};
struct Orders {
  Orders(Database& of, Users& by, Logger&) : database(of), users(by) {}
  Database& database;
  Users& users;
};
struct Stock {
  Stock(Database& of, Logger&) : database(of) {}
  Task<Result<>> start() { co_return {}; }
  Database& database;
};
struct Prices {
  Prices(const Config& of, Stock& on) : config(of), stock(on) {}
  const Config& config;
  Stock& stock;
};
struct Search {
  Search(Stock& of, Prices& by) : stock(of), prices(by) {}
  Stock& stock;
  Prices& prices;
};

/// A method of payment.
struct Payment {
  virtual ~Payment() = default;
  virtual std::string name() const = 0;
};
struct Card : Payment {
  explicit Card(Logger&) {}
  std::string name() const override { return "card"; }
};
struct Invoice : Payment {
  explicit Invoice(Users&) {}
  std::string name() const override { return "invoice"; }
};
struct Checkout {
  Checkout(Orders& of, inject::All<Payment> by, Logger&) : orders(of), payments(by) {}
  Task<Result<>> start() { co_return {}; }
  Task<> stop() { co_return; }
  Orders& orders;
  inject::All<Payment> payments;
};

class Mails {
 public:
  Mails(Scope& scope, Logger&) : scope_(scope) {}
  Task<Result<>> start() {
    scope_.spawn(send());
    co_return {};
  }

 private:
  Task<> send() {
    while (const auto slept = co_await sleep(1s)) ++sent_;
  }
  Scope& scope_;
  int sent_ = 0;
};
struct Reports {
  Reports(Orders& of, Users& by, Mails& with) : orders(of), users(by), mails(with) {}
  Orders& orders;
  Users& users;
  Mails& mails;
};
struct Sessions {
  Sessions(Users& of, Loop& on) : users(of), loop(on) {}
  Users& users;
  Loop& loop;
};
struct Admin {
  Admin(App& of, Reports& by) : app(of), reports(by) {}
  App& app;
  Reports& reports;
};
struct Api {
  Api(Orders& of, Search& by, Checkout& with, Sessions& in) : parts{&of, &by, &with, &in} {}
  Task<Result<>> start() { co_return {}; }
  std::vector<const void*> parts;
};
struct Pages {
  Pages(Search& of, Prices& by, Sessions& in) : parts{&of, &by, &in} {}
  std::vector<const void*> parts;
};
struct Web {
  Web(Api& of, Pages& by, inject::Optional<Admin> some) : api(of), pages(by), admin(some) {}
  Task<Result<>> start() { co_return {}; }
  Task<> stop() { co_return; }
  Api& api;
  Pages& pages;
  inject::Optional<Admin> admin;
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  App app;
  app.shared([] { return Config(); });
  app.shared<Usage>();
  app.per_core<Logger>();
  app.per_core<Database>();
  app.per_core([](Database& database) { return Cache(database); });
  app.per_core<Users>();
  app.per_core<Orders>();
  app.per_core<Stock>();
  app.per_core([](const Config& config, Stock& stock) { return Prices(config, stock); });
  app.per_core<Search>();
  app.per_core<Card, Payment>();
  app.per_core<Invoice, Payment>();
  app.per_core<Checkout>();
  app.per_core<Mails>();
  app.per_core<Reports>();
  app.per_core<Sessions>();
  app.on_core<Admin>(0);
  app.per_core<Api>();
  app.per_core<Pages>();
  app.per_core<Web>();
  return app.run(options);
}

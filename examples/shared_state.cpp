// shared_state: state that all cores use, in three ways. Try:
//   curl localhost:8080/prices/tea; curl -X POST localhost:8080/tickets; curl localhost:8080/served
#include <weir/http.hpp>
#include <weir/runtime.hpp>
#include <weir/tls.hpp>

#include <map>

using namespace weir;

struct Price {
  int cents;
};
struct Ticket {
  int number;
};
struct Served {
  long prices = 0;
};

struct Shop {
  explicit Shop(std::size_t cores) : served(cores) {}

  // 1. All cores read it, and nothing changes it.
  const std::map<std::string, int> cents{{"coffee", 300}, {"tea", 250}};
  // 2. Each core changes its own.
  PerCore<Served> served;
  // 3. Core 0 has it, and the other cores call core 0.
  int tickets_left = 2;
};

Task<Result<Price>> price_of(Shop& shop, std::string item) {
  const Context context = co_await this_context();
  ++shop.served.local(*context.loop).prices;
  const auto found = shop.cents.find(item);
  if (found == shop.cents.end()) co_return fail(Errc::not_found);
  co_return Price{found->second};
}

Task<Served> count_served(Shop& shop) {
  const auto prices = [](const Served& of_one_core) { return of_one_core.prices; };
  const long sum = co_await shop.served.reduce(prices, 0L, std::plus<long>());
  co_return Served{sum};
}

Result<Ticket> take_ticket(Shop& shop) {
  if (shop.tickets_left == 0) return fail(Errc::conflict);
  return Ticket{shop.tickets_left--};
}

int main(int argc, char** argv) {
  const auto options = http::ProgramOptions::from_args(argc, argv);
  Runtime runtime(options);
  Shop shop(runtime.core_count());
  http::Router routes;
  routes.get("/prices/{item}", [&shop](std::string item) { return price_of(shop, item); });
  routes.get("/served", [&shop] { return count_served(shop); });
  routes.post("/tickets", [&shop] { return on_core(0, take_ticket, std::ref(shop)); });
  return runtime.run_on_each_core(http::serve, std::cref(routes), options.serve_options());
}

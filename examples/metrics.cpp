// metrics: a shop that measures its orders and requests, and shows them to Prometheus at /metrics.
#include <weir/http.hpp>
#include <weir/telemetry.hpp>
#include <weir/tls.hpp>

using namespace weir;
using namespace std::chrono_literals;

struct Order {
  std::string product;
  int count = 1;
};

// A plain struct that all cores share. Each core counts in numbers of its own.
struct ShopMetrics {
  telemetry::Counter orders{
      "shop.orders",
      {.help = "Orders taken.", .unit = "{order}", .labels = {"product"}, .label_sets_max = 100}};
  telemetry::Gauge waiting{"shop.orders.waiting", {.help = "Orders at the till."}};
  telemetry::Histogram payment{"shop.payment.duration", {.help = "Duration of payments."}};
};

Task<Result<>> pay(ShopMetrics& metrics, Loop& loop) {
  const Instant begin = loop.now();
  WEIR_CO_TRY(co_await sleep(3ms));  // another service
  metrics.payment.record(loop.now() - begin);
  co_return {};
}

http::Router shop(ShopMetrics& metrics) {
  http::Router routes;
  routes.post(
      "/orders",
      [&metrics](http::Request& request, http::Json<Order> order) -> Task<Result<http::Response>> {
        metrics.waiting.add();
        const auto paid = co_await pay(metrics, *request.loop());
        metrics.waiting.subtract();
        if (!paid) co_return fail(paid.error());
        metrics.orders.with(order->product).add();
        co_return http::text("thanks\n");
      });
  routes.get("/orders/{number}",
             [](int number) { return http::text("order " + std::to_string(number) + "\n"); });
  return routes;
}

int main(int argc, char** argv) {
  auto options = http::ProgramOptions::from_args(argc, argv);
  ShopMetrics metrics;
  telemetry::ServerMetrics server_metrics;
  http::Router routes = shop(metrics);
  telemetry::mount_metrics(routes).value();
  http::ServeOptions serving = options.serve_options();
  serving.observer = &server_metrics;
  return Runtime(options).run_on_each_core(http::serve, std::cref(routes), serving);
}

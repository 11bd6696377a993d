// events: every core receives an order, and one core packs its parcel. Try:
//   curl -X POST localhost:8080/orders/3; curl localhost:8080/orders
#include <weir/app.hpp>
#include <weir/event.hpp>
#include <weir/http.hpp>
#include <weir/tls.hpp>

#include <cstdio>
#include <memory>

using namespace weir;

struct Ordered {
  int pieces;
};
struct Parcel {
  int pieces;
};

class Orders {  // one object on each core
 public:
  Orders(EventBus& bus, Scope& scope, http::ServiceRoutes& routes)
      : events_(bus.local(scope.loop())),
        counting_(events_.on([this](const Ordered& order) { pieces_ += order.pieces; })),
        packing_(events_.on(scope, pack, {.concurrency_max = 4})) {
    routes.post("/orders/{pieces}", [this](int pieces) { return take(pieces); });
    routes.get("/orders", [this] { return http::text(std::to_string(pieces_) + " pieces\n"); });
  }
  Task<> stop() {
    packing_.end();  // no event starts a task any more when the app waits for the tasks
    co_return;
  }

 private:
  http::Response take(int pieces) {
    auto told = events_.publish_to_all(Ordered{pieces});
    if (told) told = events_.publish(Parcel{pieces});
    return http::Response(told ? http::Status::accepted : http::Status::service_unavailable);
  }
  static Task<> pack(Parcel parcel) {
    if (const auto slept = co_await sleep(20ms)) std::fprintf(stderr, "packed %d\n", parcel.pieces);
  }

  CoreEvents& events_;
  int pieces_ = 0;
  EventRegistration counting_;
  EventRegistration packing_;
};

int main(int argc, char** argv) {
  auto options = http::ProgramOptions::from_args(argc, argv);
  Runtime runtime(options);
  EventBus bus(runtime.core_count());
  http::Router routes;
  App app;
  app.per_core([&bus](Scope& scope, http::ServiceRoutes& to) {
    return std::make_unique<Orders>(bus, scope, to);
  });
  serve_http(app, routes, options.serve_options());
  return app.run(runtime);
}

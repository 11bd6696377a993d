// fan_out: compares the prices of two shops, which are routes of the same program here.
#include "examples/fan_out.hpp"

using namespace weir;

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  const std::string shop = "http://" + options.endpoint.to_string() + "/shops/";
  http::Router router;
  router.get("/shops/{shop}", [](std::string shop) { return Price{std::move(shop), 250}; });
  App app;
  wire(app, router, {.north = shop + "north", .south = shop + "south"}, options.endpoint);
  return app.run(options);
}

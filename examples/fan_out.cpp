// fan_out: asks two services at the same time and answers with both results.
#include <weir/app.hpp>
#include <weir/app/http_server.hpp>
#include <weir/http.hpp>
#include <weir/http/router/service_routes.hpp>

using namespace weir;

struct Price {
  std::string shop;
  int cents = 0;
};

/// Asks one shop. A failure is answered with 502, or with 504 after the timeout.
Task<Result<Price>> ask(http::Client& client, std::string url) {
  http::ClientRequest request(http::Method::get, url);
  request.set_timeout(2s);
  auto response = co_await client.send(std::move(request));
  if (!response) co_return fail(response.error());
  co_return co_await response->json<Price>();
}

Task<http::Response> compare(http::Client& client, std::string shops) {
  auto north = ask(client, shops + "/north");
  auto south = ask(client, shops + "/south");
  auto both = co_await all(std::move(north), std::move(south));
  if (!both) co_return http::to_status(both.error());
  std::vector<Price> prices;
  prices.push_back(std::move(std::get<0>(*both)));
  prices.push_back(std::move(std::get<1>(*both)));
  co_return http::json(prices);
}

Price price(std::string_view shop) {
  return {std::string(shop), shop == "north" ? 250 : 240};
}

struct Pages {
  Pages(http::ServiceRoutes& routes, http::Client& client) {
    routes.get("/shops/{shop}", price);  // in a real program: other machines
    routes.get("/prices", [&client](http::Request& request) {
      return compare(client, "http://" + std::string(request.authority()) + "/shops");
    });
  }
};

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  http::Router routes;
  App app;
  app.per_core([] { return std::make_unique<http::Client>(); });  // one pool on each core
  app.per_core<Pages>();
  serve_http(app, routes, {.endpoint = options.endpoint});
  return app.run(options);
}

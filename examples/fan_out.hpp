// fan_out: asks two shops at the same time and answers with both prices.
#pragma once

#include <weir/app.hpp>
#include <weir/app/http_server.hpp>
#include <weir/http.hpp>

namespace http = weir::http;

/// The URLs of the shops.
struct Shops {
  std::string north = "http://north/price";
  std::string south = "http://south/price";
};

struct Price {
  std::string shop;
  int cents = 0;
};

/// Asks one shop, for at most two seconds.
inline weir::Task<weir::Result<Price>> ask(http::Client& client, std::string url) {
  http::ClientRequest request(http::Method::get, url);
  request.set_timeout(std::chrono::seconds(2));
  WEIR_CO_TRY(auto response, co_await client.send(std::move(request)));
  co_return co_await response.json<Price>();
}

/// The first failure cancels the other request. The answer is then 504 after a timeout, else 502.
inline weir::Task<http::Response> compare(http::Client& client, const Shops& shops) {
  auto north = ask(client, shops.north);
  auto south = ask(client, shops.south);
  auto both = co_await weir::all(std::move(north), std::move(south));
  if (!both) co_return both.error();
  co_return http::json(*both);
}

inline void wire(weir::App& app, http::Router& router, const Shops& shops,
                 const weir::Endpoint& endpoint) {
  router.get("/prices", compare);
  app.per_core<http::Client>();  // one pool on each core
  app.shared([shops] { return shops; });
  weir::serve_http(app, router, {.endpoint = endpoint});
}

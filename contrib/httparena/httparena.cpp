// httparena: Weir's entry for HttpArena. It uses the documented API with default settings. Each
// profile of README.md has one part of this program. Options: httparena --help.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <weir/config.hpp>
#include <weir/http.hpp>
#include <weir/json/read.hpp>
#include <weir/loop/os/os_platform.hpp>
#include <weir/tls.hpp>
#include <weir/web.hpp>

using namespace weir;

struct Settings {
  Endpoint listen = Endpoint::any(8080);  ///< HTTP/1.1; the other ports are 8081, 8082 and 8443
  std::string data = "/data";
  std::string certificates = "/certs";
  RuntimeOptions runtime;
};

// baseline, limited-conn, pipelined, baseline-h2, baseline-h2c

struct Operands {
  std::int32_t a = 0;
  std::int32_t b = 0;
};

http::Response sum(http::Query<Operands> operands) {
  return http::text(std::to_string(std::int64_t{operands->a} + operands->b));
}

Task<http::Response> sum_with_body(http::Request& request, http::Query<Operands> operands) {
  const auto body = co_await request.body();
  if (!body) co_return http::to_status(body.error());
  std::int32_t number = 0;
  const auto parsed = std::from_chars(body->data(), body->data() + body->size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != body->data() + body->size())
    co_return http::Status::bad_request;
  co_return http::text(std::to_string(std::int64_t{operands->a} + operands->b + number));
}

// json, json-comp, json-tls, json-h2c: clients that accept a coding get it.

struct Rating {
  std::int32_t score;
  std::int32_t count;
};

struct Item {
  std::int32_t id;
  std::string name;
  std::string category;
  std::int32_t price;
  std::int32_t quantity;
  bool active;
  std::vector<std::string> tags;
  Rating rating;
};

struct Dataset {
  std::vector<Item> items;
};

/// An item of a response. The texts are those of the dataset.
struct PricedItem {
  std::int32_t id;
  std::string_view name;
  std::string_view category;
  std::int32_t price;
  std::int32_t quantity;
  bool active;
  std::vector<std::string_view> tags;
  Rating rating;
  std::int64_t total;
};

struct Order {
  std::vector<PricedItem> items;
  std::size_t count;
};

struct Multiplier {
  std::int32_t m = 1;
};

Order first_items(std::size_t count, http::Query<Multiplier> multiplier, const Dataset& dataset) {
  Order order;
  order.count = std::min(count, dataset.items.size());
  order.items.reserve(order.count);
  for (std::size_t index = 0; index < order.count; ++index) {
    const Item& item = dataset.items[index];
    order.items.push_back({item.id, item.name, item.category, item.price, item.quantity,
                           item.active,
                           std::vector<std::string_view>(item.tags.begin(), item.tags.end()),
                           item.rating, std::int64_t{item.price} * item.quantity * multiplier->m});
  }
  return order;
}

Dataset read_dataset(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto items = json::read<std::vector<Item>>(text);
  if (!items) {
    std::cerr << "httparena: " << path << ": " << items.error().message() << "\n";
    std::exit(1);
  }
  return {std::move(*items)};
}

// upload

Task<http::Response> count_bytes(http::Request& request) {
  std::uint64_t received = 0;
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return http::to_status(piece.error());
    if (piece->empty()) co_return http::text(std::to_string(received));
    received += piece->size();
  }
}

// static, static-h2: the rules of HttpArena want each file to be read for each request.

http::Router static_files(const Settings& settings) {
  http::FilesOptions options;
  options.precompressed = true;
  options.cache_entries_max = 0;
  return http::files(settings.data + "/static", std::move(options));
}

// echo-ws

Task<Result<>> echo(http::WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

std::shared_ptr<tls::Server> secured(const Settings& settings, std::vector<std::string> protocols) {
  tls::ServerOptions options;
  options.files = {{.chain = settings.certificates + "/server.crt",
                    .key = settings.certificates + "/server.key"}};
  options.protocols = std::move(protocols);
  return std::make_shared<tls::Server>(std::move(options));
}

int main(int, char** argv, char** environment) {
  auto sources = config::Sources::from_main(argv, environment);
  sources.prefix = "HTTPARENA";
  OsPlatform platform;
  const auto settings = config::load_or_exit<Settings>(platform.files(), sources);
  Dataset dataset = read_dataset(settings.data + "/dataset.json");

  http::Router router;
  router.get("/baseline11", sum);
  router.post("/baseline11", sum_with_body);
  router.get("/baseline2", sum);
  router.get("/pipeline", [] { return http::text("ok"); });
  router.group("/json", http::compress()).get("/{count}", first_items);
  router.post("/upload", count_bytes, {.body_max = 32 * 1024 * 1024});
  router.mount("/static", static_files(settings));
  router.websocket("/ws", echo);
  router.bind(dataset);

  const auto with_port = [&](std::uint16_t port, std::shared_ptr<tls::Server> tls) {
    return http::ServeOptions{.endpoint = settings.listen.with_port(port), .tls = std::move(tls)};
  };
  const http::ServeOptions http1_tls = with_port(8081, secured(settings, {"http/1.1"}));
  const http::ServeOptions http2_tls = with_port(8443, secured(settings, {"h2", "http/1.1"}));
  http::ServeOptions http2 = with_port(8082, nullptr);
  http2.plain_http2 = http::PlainHttp2::only;
  return Runtime(platform, settings.runtime).run_on_each_core([&](Scope& scope) {
    for (const http::ServeOptions& more : {http1_tls, http2, http2_tls})
      scope.spawn(http::serve(scope, router, more));
    return http::serve(scope, router, http::ServeOptions{.endpoint = settings.listen});
  });
}

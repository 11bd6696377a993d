// compression: sends compressed responses to clients that accept them, and reads compressed
// requests.
#include <string>
#include <vector>
#include <weir/web.hpp>

using namespace weir;

struct Item {
  int id;
  std::string name;
  double price;
  std::vector<std::string> tags;
};

std::vector<Item> make_catalogue() {
  const std::string colours[] = {"red", "green", "light blue", "black", "white"};
  const std::string things[] = {"lamp", "table", "chair", "shelf", "carpet", "mirror", "clock"};
  std::vector<Item> all;
  for (int id = 1; id <= 125; ++id) {
    const auto index = static_cast<std::size_t>(id);
    const std::string& colour = colours[index * index % 5];
    all.push_back({id,
                   colour + " " + things[index % 7],
                   (id * 7919 % 10'000) / 100.0,
                   {colour, index % 3 == 0 ? "new" : "on stock"}});
  }
  return all;
}

struct Account {
  std::string name;
  std::string token;
};

/// Writes the lines of a report while it is made. The client sees each line immediately.
Task<Result<>> write_report(http::BodySink& sink) {
  for (int line = 1; line <= 3; ++line) {
    const std::string text = "line " + std::to_string(line) + "\n";
    if (auto sent = co_await sink.write(text); !sent) co_return sent;
    if (auto slept = co_await sleep(std::chrono::milliseconds(50)); !slept) co_return slept;
  }
  co_return {};
}

Task<Result<http::Response>> measure(http::Request& request) {
  auto body = co_await request.body();
  if (!body) co_return fail(body.error());  // 400 if it is corrupt, 413 if it is too large
  co_return http::text(std::to_string(body->size()) + " bytes");
}

int main(int argc, char** argv) {
  const std::string catalogue = json::write(make_catalogue());
  http::Router routes;
  routes.use(http::compress());
  routes.use(http::decompress_requests());
  routes.get("/catalogue", [&] {
    return http::Response(http::Status::ok, http::json_type, http::Body(catalogue));
  });
  routes.get("/report", [] { return http::stream("text/plain", write_report); });
  routes.post("/measure", measure);

  // The response has a secret beside a text of the request: its size must not tell the secret.
  auto account = routes.group("/account", http::no_compression);
  account.get("/{name}", [](std::string name) { return Account{name, "7f3a"}; });
  return http::run(routes, argc, argv);
}

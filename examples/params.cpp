// params: reads a path, a query, headers and a body, with the types of the handlers' parameters.
#include <weir/http.hpp>

using namespace weir;

http::Response sum(int left, int right) {
  return http::text(std::to_string(std::int64_t{left} + right) + "\n");
}

http::Response version(std::string_view text, int major, int minor) {
  return http::text(std::string(text) + " is " + std::to_string(major) + " point " +
                    std::to_string(minor) + "\n");
}

http::Response file(http::Wildcard path) {
  std::string parts;
  for (auto segment = path.begin(); segment != path.end(); ++segment) {
    parts += "[" + segment.decoded() + "]";
  }
  return http::text(parts + "\n");
}

http::Response search(const http::Request& request) {
  const auto words = request.query("q");
  if (!words) return http::Status::bad_request;
  auto response = http::text("searching for " + *words + "\n");
  response.set_header("X-Agent", request.header("User-Agent").value_or("unknown"));
  return response;
}

Task<http::Response> count(http::Request& request) {
  std::size_t bytes = 0;
  for (;;) {
    auto piece = co_await request.read();
    if (!piece) co_return http::to_status(piece.error());
    if (piece->empty()) break;
    bytes += piece->size();
  }
  co_return http::text(std::to_string(bytes) + " bytes\n");
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.get("/sum/{left}/{right}", sum);
  routes.get("/versions/{version:v([0-9]+)\\.([0-9]+)}", version);
  routes.get("/files/{path...}", file);
  routes.get("/search", search);
  routes.post("/count", count, {.body_max = 64 * 1024 * 1024});
  return http::run(routes, argc, argv);
}

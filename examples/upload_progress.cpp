// upload_progress: tells the client how much of its upload has arrived, while it runs.
#include <weir/http.hpp>

using namespace weir;

constexpr std::uint64_t step = 256 * 1024;

Task<Result<>> count(http::Request& request, http::BodySink& body) {
  const auto length = request.body_length().bytes();
  const std::string of = length ? " of " + std::to_string(*length) : "";
  std::uint64_t received = 0;
  for (std::uint64_t next = step;;) {
    auto piece = co_await request.read();
    if (!piece) co_return fail(piece.error());
    received += piece->size();
    if (!piece->empty() && received < next) continue;
    const std::string line = std::to_string(received) + of + " bytes\n";
    if (auto written = co_await body.write(line); !written) co_return written;
    if (piece->empty()) co_return {};
    next = received + step;
  }
}

http::Response upload(http::Request& request) {
  return http::duplex(request, "text/plain", count);
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.post("/uploads", upload, {.body_max = std::uint64_t{1} << 40});
  return http::run(routes, argc, argv);
}

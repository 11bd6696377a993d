// streaming: produces and consumes bodies piece by piece, at the speed of the peer.
#include <weir/http.hpp>

using namespace weir;

Task<Result<>> write_lines(http::BodySink& body, int count) {
  std::string piece;
  for (int line = 1; line <= count; ++line) {
    piece += "line " + std::to_string(line) + "\n";
    if (piece.size() < 8192 && line < count) continue;
    if (auto written = co_await body.write(piece); !written) co_return written;
    piece.clear();
  }
  co_return {};
}

http::Response lines(int count) {
  return http::stream("text/plain", write_lines, count);
}

Task<Result<>> write_ticks(http::BodySink& body) {
  for (int tick = 0; tick < 5; ++tick) {
    if (auto slept = co_await sleep(50ms); !slept) co_return slept;
    const std::string event = "data: tick " + std::to_string(tick) + "\n\n";
    if (auto written = co_await body.write(event); !written) co_return written;
  }
  co_return {};
}

http::Response ticks() {
  return http::stream("text/event-stream", write_ticks);
}

Task<http::Response> checksum(http::Request& request) {
  unsigned sum = 0;
  for (;;) {
    auto piece = co_await request.read();
    if (!piece) co_return http::to_status(piece.error());
    if (piece->empty()) break;
    for (const std::byte each : *piece) sum = sum * 31 + std::to_integer<unsigned>(each);
  }
  co_return http::text(std::to_string(sum) + "\n");
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.get("/lines/{count}", lines);
  routes.get("/ticks", ticks);
  routes.post("/checksum", checksum, {.body_max = std::uint64_t{1} << 40});
  return http::run(routes, argc, argv);
}

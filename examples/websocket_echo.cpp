// websocket_echo: WebSockets that return each message, two of them compressed. The tests with
// Autobahn and the benchmarks use it. Messages may have 32 MiB.
//
//     ./dev run websocket_echo
//     python3 -m websockets ws://localhost:8080/ws
#include <weir/http.hpp>
#include <weir/tls.hpp>

using namespace weir;

Task<Result<>> echo(http::WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

int main(int argc, char** argv) {
  http::Router router;
  router.get("/", [] { return http::text("a WebSocket is at /ws\n"); });
  router.websocket("/ws", echo);
  router.websocket("/compressed", echo, {.compression = http::WebSocketCompression{}});
  constexpr http::WebSocketCompression windows{.send_window_bits = 15, .receive_window_bits = 15};
  router.websocket("/windows", echo, {.compression = windows});
  http::Limits limits;
  limits.websocket.message_bytes_max = 32 * 1024 * 1024;
  return http::run(router, argc, argv, limits);
}

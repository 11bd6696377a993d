// The client of autobahn.py: it runs the cases of Autobahn's fuzzing server, and returns each
// message.
//
//     autobahn_client ws://127.0.0.1:9001 ws|compressed|windows
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http.hpp"
#include "weir/runtime.hpp"
#include "weir/task.hpp"

namespace {

using namespace weir;

constexpr std::uint64_t message_bytes_max = 32 * 1024 * 1024;  // more than those of class 9

/// Returns the options of a run of autobahn.py.
http::ClientWebSocketOptions websocket_options(std::string_view run) {
  http::ClientWebSocketOptions options;
  options.limits.message_bytes_max = message_bytes_max;
  if (run != "ws") options.compression = http::WebSocketCompression{};
  if (run == "windows") {
    options.compression->send_window_bits = 15;
    options.compression->receive_window_bits = 15;
  }
  return options;
}

Task<Result<>> echo(http::WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

/// Returns the number of cases, which the server sends as a text.
Task<Result<unsigned>> count_cases(http::Client& client, std::string url) {
  std::string text;
  auto read = [&text](http::WebSocket& socket) -> Task<Result<>> {
    WEIR_CO_TRY(const auto message, co_await socket.read());
    text = message.text();
    co_return {};
  };
  WEIR_CO_TRY(co_await client.websocket(url + "/getCaseCount", read, websocket_options("ws")));
  co_return static_cast<unsigned>(std::stoul(text));
}

Task<Result<>> run_cases(std::string url, std::string_view run) {
  http::Client client;
  WEIR_CO_TRY(const unsigned count, co_await count_cases(client, url));
  for (unsigned number = 1; number <= count; ++number) {
    const std::string target = "/runCase?case=" + std::to_string(number) + "&agent=weir";
    // Autobahn judges the result; many cases end with an error on purpose.
    std::ignore = co_await client.websocket(url + target, echo, websocket_options(run));
  }
  const auto nothing = [](http::WebSocket& socket) -> Task<Result<>> {
    std::ignore = co_await socket.read();
    co_return {};
  };
  co_return co_await client.websocket(url + "/updateReports?agent=weir", nothing,
                                      websocket_options("ws"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: autobahn_client URL RUN\n", stderr);
    return 2;
  }
  return Runtime({.cores = 1, .announce = false}).run_on_each_core([argv](Scope&) {
    return run_cases(argv[1], argv[2]);
  });
}

// The service that server_fuzz attacks. Each answer names the request that it belongs to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/context.hpp"
#include "weir/task/sleep.hpp"

namespace weir::fuzz {

inline std::string plain_line(std::string_view path) {
  return "plain " + std::string(path) + "\n";
}
/// Returns the answer of the echo routes. `sum` is the sum of the body's bytes.
inline std::string echo_line(std::string_view path, std::size_t size, unsigned sum) {
  return "echo " + std::string(path) + " " + std::to_string(size) + " " + std::to_string(sum) +
         "\n";
}
inline unsigned byte_sum(std::string_view bytes) {
  unsigned sum = 0;
  for (const char each : bytes) sum += static_cast<unsigned char>(each);
  return sum;
}

inline http::Response plain(http::Request& request) {
  return http::text(plain_line(request.path_text()));
}

/// Waits for at most 100 seconds: a run expects that all handlers end within its drain_time.
inline Task<http::Response> slow(http::Request& request, unsigned milliseconds) {
  const auto slept = co_await sleep(std::chrono::milliseconds(milliseconds % 100'000));
  if (!slept) co_return http::Response(http::Status::service_unavailable);
  co_return http::text(plain_line(request.path_text()));
}

inline Task<http::Response> in_pool(http::Request& request) {
  Loop& loop = *(co_await this_context()).loop;
  auto text = co_await shared_pool(loop).pool().run(plain_line, std::string(request.path_text()));
  if (!text) co_return http::Response(http::to_status(text.error()));
  co_return http::text(std::move(*text));
}

inline Task<Result<>> write_lines(http::BodySink& body, std::string line, unsigned count) {
  for (unsigned number = 0; number < count % 512; ++number) {
    if (auto written = co_await body.write(line); !written) co_return written;
  }
  co_return {};
}

inline http::Response lines(http::Request& request, unsigned count) {
  return http::stream("text/plain", write_lines, plain_line(request.path_text()), count);
}

inline Task<http::Response> echo(http::Request& request) {
  std::string body;
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return http::Response(http::to_status(piece.error()));
    if (piece->empty()) break;
    body.append(reinterpret_cast<const char*>(piece->data()), piece->size());
  }
  co_return http::text(echo_line(request.path_text(), body.size(), byte_sum(body)));
}

inline Task<http::Response> echo_whole(http::Request& request) {
  const auto body = co_await request.body_view();
  if (!body) co_return http::Response(http::to_status(body.error()));
  co_return http::text(echo_line(request.path_text(), body->size(), byte_sum(*body)));
}

inline http::Response throwing(http::Request&) {
  throw std::runtime_error("thrown on request");
}

inline void add_routes(http::Router& routes) {
  routes.get("/slow/{milliseconds}", slow);
  routes.get("/pool", in_pool);
  routes.get("/lines/{count}", lines);
  routes.get("/throw", throwing);
  routes.get("/", plain);
  routes.get("/{rest...}", [](http::Request& request, std::string_view) { return plain(request); });
  routes.post("/echo", echo);
  routes.post("/whole", echo_whole);
  routes.post("/unread", plain);
}

/// Returns limits that few bytes and little time reach.
inline http::Limits tight_limits() {
  http::Limits limits;
  limits.head = {.request_line_max = 200, .headers_bytes_max = 400, .headers_max = 8};
  limits.chunks = {
      .line_max = 40, .extensions_max = 60, .trailers_bytes_max = 80, .trailers_max = 2};
  limits.head_timeout = std::chrono::seconds(2);
  limits.idle_timeout = std::chrono::seconds(3);
  limits.body_max = 600;
  limits.body_rate = {std::chrono::seconds(1), 240, std::chrono::seconds(2)};
  limits.write_rate = {std::chrono::seconds(1), 240, std::chrono::seconds(2)};
  limits.unread_body_max = 200;
  limits.linger_bytes_max = 300;
  limits.rejected_body_max = 600;
  limits.connections_max = 3;
  return limits;
}

/// ActiveServers are the servers that serve now, one for each core.
using ActiveServers = std::vector<http::ServerState*>;

/// A RegisteredServer is in the list of active servers during its lifetime.
struct RegisteredServer {
  RegisteredServer(Loop& loop, const http::Router& routes, const http::Limits& limits,
                   ActiveServers& all_servers, http::PlainHttp2 plain_http2)
      : servers(all_servers), core(loop, routes, {.limits = limits, .plain_http2 = plain_http2}) {
    servers.push_back(&core);
  }
  ~RegisteredServer() { std::erase(servers, &core); }
  RegisteredServer(const RegisteredServer&) = delete;
  RegisteredServer& operator=(const RegisteredServer&) = delete;

  ActiveServers& servers;
  http::ServerState core;
};

inline Task<Result<>> serve_registered(Scope& scope, const http::Router& routes, Endpoint endpoint,
                                       http::Limits limits, ActiveServers& servers,
                                       http::PlainHttp2 plain_http2) {
  RegisteredServer server(scope.loop(), routes, limits, servers, plain_http2);
  co_return co_await http::listen_and_serve(scope, server.core, endpoint);
}

/// Runs an input of a target: the bytes of its choices, then the script.
template <class Choices, class Run>
int run_script(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t input_bytes_max = 4096;
  if (size < Choices::size) return 0;
  const Choices choices{data[0], data[1], data[2]};
  std::string_view script(reinterpret_cast<const char*>(data), std::min(size, input_bytes_max));
  script.remove_prefix(Choices::size);
  Run(choices, script).run();
  return 0;
}

}  // namespace weir::fuzz

#include "weir/http/server/serve.hpp"

#include <functional>
#include <new>
#include <string>

#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/runtime/options.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::http {
namespace {

/// Logs the server's counters. A lack of memory for the text is no failure.
void log_summary(Loop& loop, const ServerState& server) noexcept {
  try {
    loop.platform().log("weir: core " + std::to_string(loop.core()) + ": " +
                        server.counters().summary());
  } catch (const std::bad_alloc&) {
    loop.platform().log("weir: server stopped, counters unknown (out of memory)");
  }
}

}  // namespace

Task<Result<>> serve(Scope& scope, const Router& router, ServeOptions options) {
  ServerState server(scope.loop(), router, options.limits);
  auto served = co_await listen_and_serve(scope, server, options.endpoint);
  log_summary(scope.loop(), server);
  co_return served;
}

int run(const Router& router, int argc, char** argv, const Limits& limits) {
  const auto options = ServerOptions::from_args(argc, argv);
  return Runtime(options).run_on_each_core(serve, std::cref(router),
                                           ServeOptions{options.endpoint, limits});
}

int run(const Router& router, loop::Platform& platform, const ServeOptions& options) {
  return Runtime(platform, {.announce = false}).run_on_each_core(serve, std::cref(router), options);
}

}  // namespace weir::http

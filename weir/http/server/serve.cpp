#include "weir/http/server/serve.hpp"

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/http/server/program_options.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/tls/server.hpp"

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

Response RedirectToHttps::operator()(const Request& request) const {
  std::string_view host = request.authority();
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != host.npos && host.find(']', colon) == host.npos;
  if (has_port) host = host.substr(0, colon);
  if (host.empty()) return Status::bad_request;  // HTTP/1.0 needs no Host
  std::string location = "https://" + std::string(host);
  if (port_ != 443) location.append(":").append(std::to_string(port_));
  location.append(request.path_text());
  if (!request.query_text().empty()) location.append("?").append(request.query_text());
  return redirect(location, Status::permanent_redirect);
}

Task<Result<>> serve(Scope& scope, const Router& router, ServeOptions options) {
  ServerState server(scope.loop(), router, options);
  auto served = co_await listen_and_serve(scope, server, options.endpoint);
  log_summary(scope.loop(), server);
  co_return served;
}

int run(const Router& router, int argc, char** argv, const Limits& limits) {
  const auto options = ProgramOptions::from_args(argc, argv);
  return Runtime(options).run_on_each_core(serve, std::cref(router), options.serve_options(limits));
}

int run(const Router& router, loop::Platform& platform, const ServeOptions& options) {
  return Runtime(platform, {.announce = false}).run_on_each_core(serve, std::cref(router), options);
}

}  // namespace weir::http

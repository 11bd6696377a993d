// Worlds of a server that answers with what it has decoded.
#include "tools/simulate/request_scenarios.hpp"

#include "tools/simulate/decoding_routes.hpp"
#include "tools/simulate/document_requests.hpp"
#include "tools/simulate/regular_clients.hpp"
#include "tools/simulate/target_requests.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::simulate {
namespace {

Outcome run_requests(const sim::WorldOptions& options, const DecodingRun& run,
                     RegularClientsOptions asks) {
  sim::World world(options);
  const auto cores = 1 + static_cast<unsigned>(world.random().below(2));
  sim::Host& server = world.host("server", {.cores = cores});
  server.start_service([&run, cores](loop::Platform& host) {
    http::Router routes;
    (run.add_routes != nullptr ? run.add_routes : add_decoding_routes)(routes);
    return Runtime(host, quiet(cores))
        .run_on_each_core(http::serve, std::cref(routes), http::ServeOptions{Endpoint::any(80)});
  });
  asks.server = server.address(80);
  asks.checks_date = true;
  asks.connections = run.connections;
  asks.requests = run.requests;
  RegularClients clients(asks);
  world.host("clients").start([&clients](loop::Platform& host) {
    return Runtime(host, quiet(1)).run_on_each_core([&clients](Scope& scope) {
      return clients.run(scope);
    });
  });
  world.check("clients", [&clients] { return clients.violation(); });
  world.check("number", [&] {
    return std::string(clients.answered() == run.connections * run.requests
                           ? ""
                           : "not all requests were answered");
  });
  Outcome outcome{.report = world.run_until_done(std::chrono::hours(1))};
  outcome.trace = world.trace();
  outcome.answered = clients.answered();
  return outcome;
}

}  // namespace

Outcome run_targets(const sim::WorldOptions& options, const DecodingRun& run) {
  return run_requests(options, run, {.draw = draw_target_request});
}

Outcome run_documents(const sim::WorldOptions& options, const DecodingRun& run) {
  return run_requests(options, run, {.draw = draw_document_request});
}

Outcome with_targets(const sim::WorldOptions& options) {
  return run_targets(options, {.requests = 100});
}

Outcome with_documents(const sim::WorldOptions& options) {
  return run_documents(options, {.requests = 50});
}

}  // namespace weir::simulate

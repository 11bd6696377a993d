// Scenarios that do more than send requests to an HTTP service.
#pragma once

#include "tools/simulate/client_scenario.hpp"
#include "tools/simulate/http2_cut_scenario.hpp"
#include "tools/simulate/http2_restart_scenario.hpp"
#include "tools/simulate/http2_scenario.hpp"
#include "tools/simulate/scenarios.hpp"
#include "tools/simulate/tls_scenario.hpp"
#include "tools/simulate/websocket_cut_scenario.hpp"
#include "tools/simulate/websocket_scenario.hpp"
#include "tools/simulate/websocket_service.hpp"

namespace weir::simulate {

/// Requests pages that are routes or services, while they change and faults are injected.
Outcome with_routes(const sim::WorldOptions& options);
Outcome with_services(const sim::WorldOptions& options);
/// Runs one to five cores that send messages, publish news and call each other.
Outcome with_cores(const sim::WorldOptions& options);
/// Runs one to five cores that publish events for each other until the bus is stopped.
Outcome with_events(const sim::WorldOptions& options);
/// Runs one to five cores that share a pool for blocking work.
Outcome with_pools(const sim::WorldOptions& options);
/// Sends requests over connections that the server closes at any moment; half of the runs only
/// close idle ones.
Outcome with_client(const sim::WorldOptions& options);
/// Runs the server and the clients of `scenario`, which draws from the numbers of `world`.
Outcome run_client(sim::World& world, ClientScenario& scenario);
/// Sends requests of HTTP/2. A third of the runs have faults, and in a third the server drains.
Outcome with_http2(const sim::WorldOptions& options);
/// Runs the server and the clients of `scenario`.
Outcome run_http2(sim::World& world, Http2Scenario& scenario);
/// Sends each prefix of a request of HTTP/2 with a body.
Outcome with_http2_cuts(const sim::WorldOptions& options);
/// Runs the server and the clients of `scenario`.
Outcome run_http2_cuts(sim::World& world, Http2CutScenario& scenario);
/// Sends requests of an http::Client over HTTP/2 to a server that restarts.
Outcome with_http2_restarts(const sim::WorldOptions& options);
/// Runs the processes of the server and the client of `scenario`.
Outcome run_http2_restarts(sim::World& world, Http2RestartScenario& scenario);
/// Sends messages through WebSockets and reads topics, undisturbed or with one of the disturbances.
Outcome with_websockets(const sim::WorldOptions& options);
/// Runs the server and the clients of `scenario`.
Outcome run_websockets(sim::World& world, WebSocketService& service, WebSocketScenario& scenario);
/// Sends each prefix of a handshake and of messages.
Outcome with_websocket_cuts(const sim::WorldOptions& options);
/// Runs the server and the clients of `scenario`.
Outcome run_websocket_cuts(sim::World& world, WebSocketService& service,
                           WebSocketCutScenario& scenario);
/// Sends requests to an HTTPS server that changes its certificates and keys; half of the runs have
/// faults.
Outcome with_tls(const sim::WorldOptions& options);
/// Runs the server and the clients of `scenario`.
Outcome run_tls(sim::World& world, TlsScenario& scenario);
/// Sends requests in datagrams through a network that loses, duplicates and cuts.
Outcome with_datagrams(const sim::WorldOptions& options);

}  // namespace weir::simulate

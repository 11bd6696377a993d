// Pages for the people who run an app.
#pragma once

#include <string>

#include "weir/app/app.hpp"
#include "weir/event/bus.hpp"
#include "weir/http/router/router.hpp"

namespace weir {

struct AdminOptions {
  std::string title = "Weir";                  ///< of the pages: which app this is
  const EventBus* events = nullptr;            ///< whose rates are shown; outlives the servers
  Duration refresh = std::chrono::seconds(2);  ///< how often the page reloads itself
};

/// Adds views of what the app is doing, for people and programs:
///
///   GET /weir/services        a page: states, edges, cores, rates of events; it refreshes itself
///   GET /weir/services.json   the same for programs
///   GET /weir/services.dot    for Graphviz
///   GET /weir/services.txt    as App::explain() says it
///
/// Nobody is asked who they are, and names of types and errors are shown: mount it on a router that
/// is served inside only, such as on loopback, and not on the one that the world sees:
///
///   http::Router inside;
///   mount_admin(inside, app);
///   serve_http(app, inside, {.endpoint = os::Address::loopback(9090)});
///
/// The page has no script; its Content-Security-Policy allows none, nor anything from elsewhere.
/// Before the router is served. Both outlive its servers, which run on the app's loops.
void mount_admin(http::Router& router, App& app, const AdminOptions& options = {});

}  // namespace weir

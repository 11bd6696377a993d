// The HTTP server as a service of an app: what its services register is served on every core.
#pragma once

#include "weir/app/app.hpp"
#include "weir/http/limits.hpp"
#include "weir/http/router/router.hpp"
#include "weir/os/address.hpp"

namespace weir {

struct HttpServerOptions {
  Endpoint endpoint = Endpoint::any(8080);
  http::Limits limits = {};
};

/// Adds a server for the router on every core to the app, and mounts it (see App::mount()) unless
/// one is mounted already: another one may be served elsewhere, such as one for people inside only.
/// Its start fails where nobody can listen there; who connects before the whole app has
/// started waits for that. Routes that belong to nobody, and
/// middleware, may be in the router before; it outlives the app.
///
///   http::Router routes;
///   App app;
///   app.per_core<Greeter>();  // Greeter(http::Routes&)
///   serve_http(app, routes, {.endpoint = options.endpoint});
///   return app.run(options);
///
/// When the app stops, the servers end first: all who have been accepted are answered, and when the
/// loop drains (SIGTERM) also those who wait to be; then the services stop that have routes.
ServiceId serve_http(App& app, http::Router& router, const HttpServerOptions& options = {});

}  // namespace weir

// The HTTP server as a service of an app: it serves the app's routes on every core.
#pragma once

#include "weir/app/app.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/serve.hpp"

namespace weir {

/// Adds an HTTP server for `router` on every core to the app, with the endpoint, the limits and the
/// TLS of `options`. It mounts the router (see App::mount()) unless one is mounted already. Another
/// router may be served elsewhere, such as one for an internal network only. The start fails if the
/// endpoint cannot be bound. Clients that connect before the whole app has started wait until it
/// has. The router may already contain middleware, and routes that belong to no service.
///
/// A handler of the mounted router may take services by reference, in any position:
/// `Task<http::Response> add_note(int user, http::Json<Note> note, Store& store)`. It gets the
/// services of its core, as the constructor of a per-core service does. Each such handler is a
/// service of its own, called `POST /users/{user}/notes`, which depends on these services. The
/// rules of ServiceRoutes apply. It answers when they have started, its requests end before they
/// stop, and App::replace() gives it the new ones. A request looks nothing up.
///
///   http::Router routes;
///   App app;
///   app.per_core<Greeter>();  // Greeter(http::ServiceRoutes&)
///   serve_http(app, routes, {.endpoint = options.endpoint});
///   return app.run(options);
///
/// The servers stop first when the app stops. They answer all accepted connections; when the loop
/// drains (SIGTERM), they also answer the connections that wait to be accepted. The services with
/// routes stop afterwards.
/// Lifetime: the router outlives the app.
ServiceId serve_http(App& app, http::Router& router, const http::ServeOptions& options = {});

}  // namespace weir

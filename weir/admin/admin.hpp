// Admin pages that show the state of a running app.
#pragma once

#include <string>

#include "weir/app/app.hpp"
#include "weir/event/bus.hpp"
#include "weir/http/router/router.hpp"

namespace weir {

/// AdminOptions sets what the admin pages show and how often they reload.
struct AdminOptions {
  std::string title = "Weir";  ///< title of the pages, such as the app's name
  /// Event bus whose rates are shown, or nullptr; outlives the servers.
  const EventBus* events = nullptr;
  Duration refresh = std::chrono::seconds(2);  ///< reload interval of the page
  /// The relative path that the link "All pages" leads to, such as "overview". Empty: no link.
  std::string home = {};
};

/// Adds routes that show the state of the app:
///
///     GET /weir/services        a page with states, edges, cores and event rates
///     GET /weir/services.json   the same data as JSON
///     GET /weir/services.dot    a graph for Graphviz
///     GET /weir/services.txt    the text of App::explain()
///
/// The first path also returns JSON or text, as `?format=json` or the Accept header asks.
///
/// The routes have no authentication, and they show names of types and errors. Mount them on a
/// router that is served internally, such as on loopback, and never on a public router. Behind
/// cross_origin_protection(), pages of the web cannot cause requests:
///
///   http::Router inside;
///   inside.use(http::cross_origin_protection({.safe_methods = true}));
///   mount_admin(inside, app);
///   serve_http(app, inside, {.endpoint = os::Address::loopback(9090)});
///
/// The page has no script. Its Content-Security-Policy allows no script and no content from other
/// origins. Call this before the router is served.
/// Lifetime: `router` and `app` outlive the servers of `router`, which run on the app's loops.
void mount_admin(http::Router& router, App& app, const AdminOptions& options = {});

}  // namespace weir

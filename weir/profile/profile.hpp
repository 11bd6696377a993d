// CPU profiles of a running service: where its cores spend their time, by route and coroutine.
#pragma once

#include <string_view>

namespace weir::http {
class Router;
}

namespace weir::profile {

/// Adds a route that records a CPU profile of all cores of the runtime and answers with it:
///
///     GET /profile                        10 s at 99 Hz, for `go tool pprof`
///     GET /profile?seconds=30&hz=199      1 to 60 s, 1 to 999 Hz
///     GET /profile?format=html            a page with a flame graph
///     GET /profile?format=folded          folded stacks, for flamegraph.pl
///     GET /profile?route=/users/{id}      only the time of this route
///
/// A timer of the CPU time of each core interrupts it, and a signal handler (SIGPROF) walks the
/// frame pointers of its stack. The same is done for up to 128 other threads that Weir has started,
/// such as those of pools. Weir's libraries have frame pointers, and its exported compile options
/// give them to the program. A thread that waits costs nothing and has no samples. The samples are
/// rarer than `hz` if that exceeds the kernel's clock (CONFIG_HZ); each then counts for several.
/// Work that is shorter than a tick of this clock has too few samples if other processes compete
/// for the core.
///
/// A process records one profile at a time, and another request gets 409. A drain ends a profile
/// early, and so does the client if it resets the connection. The platform may take no profiles
/// (501). The kernel may refuse a timer, or the pool may be full (503).
///
/// The route has no authentication, shows names of functions and costs CPU time. Mount it on a
/// router that is served internally, such as on loopback, and never on a public router. Any page of
/// the web can still name a loopback address. So the router needs http::allowed_hosts() and
/// http::cross_origin_protection({.safe_methods = true}), as that of an AdminListener has them.
/// Call this before the router is served.
void mount_profile(http::Router& router, std::string_view path = "/profile");

}  // namespace weir::profile

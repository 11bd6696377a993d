// hot_restart: a new version takes over from the one that serves, and no client notices. Try:
//   hot_restart --takeover ./hot_restart.sock &       and then the same again and again
//   systemd-socket-activate -l 8080 hot_restart       sockets that outlive every version
#include <unistd.h>

#include <cstdio>
#include <weir/runtime/inherited_sockets.hpp>
#include <weir/http.hpp>

using namespace weir;

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  auto inherited = inherited_sockets_from_environment(environ);
  if (!inherited) {
    std::fprintf(stderr, "LISTEN_FDS: %s\n", inherited.error().message().c_str());
    return 2;
  }
  options.inherited = std::move(*inherited);
  if (!options.inherited.empty()) options.endpoint = options.inherited.front().endpoint;
  if (options.takeover) options.takeover->service = "hot_restart";  // whose sockets these are

  const std::string greeting = "served by process " + std::to_string(::getpid()) + "\n";
  http::Router routes;
  routes.get("/", [&] { return http::text(greeting); });
  return Runtime(options).run_on_each_core(http::serve, std::cref(routes), options.endpoint);
}

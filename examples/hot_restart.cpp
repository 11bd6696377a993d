// hot_restart: replaces a serving process with a new version, and no client notices. Try:
//   hot_restart --hot-restart ./hot_restart.sock &    repeat it for each restart
//   systemd-socket-activate -l 8080 hot_restart       the sockets outlive every version
#include <unistd.h>

#include <cstdio>
#include <weir/http.hpp>
#include <weir/runtime/options.hpp>
#include <weir/tls.hpp>

using namespace weir;

int main(int argc, char** argv) {
  auto options = http::ProgramOptions::from_args(argc, argv);
  auto inherited = inherited_sockets_from_environment(environ);
  if (!inherited) {
    std::fprintf(stderr, "LISTEN_FDS: %s\n", inherited.error().message().c_str());
    return 2;
  }
  options.inherited = std::move(*inherited);
  if (!options.inherited.empty()) options.endpoint = options.inherited.front().endpoint;
  if (options.hot_restart) options.hot_restart->service = "hot_restart";  // the sockets' owner

  const std::string greeting = "served by process " + std::to_string(::getpid()) + "\n";
  http::Router routes;
  routes.get("/", [&] { return http::text(greeting); });
  return Runtime(options).run_on_each_core(http::serve, std::cref(routes), options.serve_options());
}

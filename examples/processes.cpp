// processes: serves with several worker processes. A crash ends only one worker's connections, and
// the supervisor restarts that worker while the others serve. Try:
//   processes --processes 2 --port 8080 &
//   curl localhost:8080/; curl localhost:8080/crash; curl localhost:8080/
// or curl localhost:8080/leave, which drains one worker for good.
#include <unistd.h>

#include <cstdlib>
#include <weir/http.hpp>
#include <weir/tls.hpp>

using namespace weir;

http::Response crash() {
  std::_Exit(3);  // like a bug: it ends the process without any cleanup
}

int main(int argc, char** argv) {
  auto options = http::ProgramOptions::from_args(argc, argv);
  // Runs once, before the workers start. Each worker has its own copy.
  http::Router routes;
  Runtime runtime(options);
  routes.get("/",
             [] { return http::text("served by process " + std::to_string(::getpid()) + "\n"); });
  routes.get("/crash", crash);
  routes.get("/leave", [&runtime] {
    runtime.drain();
    return http::text("this worker drains\n");
  });
  return runtime.run_on_each_core(http::serve, std::cref(routes), options.serve_options());
}

// processes: several worker processes; one that crashes takes but its own connections with it, and
// begins again while the others serve. Try:
//   processes --processes 2 --port 8080 &
//   curl localhost:8080/; curl localhost:8080/crash; curl localhost:8080/
// or curl localhost:8080/leave, which has one worker drain, for good.
#include <unistd.h>

#include <cstdlib>
#include <weir/http.hpp>

using namespace weir;

http::Response crash() {
  std::_Exit(3);  // as a bug would end it: without a word, in the middle of everything
}

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  // Made once, before the workers are: each has a copy of its own.
  http::Router routes;
  Runtime runtime(options);
  routes.get("/",
             [] { return http::text("served by process " + std::to_string(::getpid()) + "\n"); });
  routes.get("/crash", crash);
  routes.get("/leave", [&runtime] {
    runtime.drain();
    return http::text("this worker leaves\n");
  });
  return runtime.run_on_each_core(http::serve, std::cref(routes), options.endpoint);
}

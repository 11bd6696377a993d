// A service of a project that uses an installed Weir.
#include <weir/base/version.hpp>
#include <weir/http.hpp>

using namespace weir;

struct Sum {
  int left;
  int right;
};

struct Total {
  int total;
};

Task<Total> add(Sum sum) {
  std::ignore = co_await sleep(1ms);
  co_return Total{sum.left + sum.right};
}

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  http::Router routes;
  routes.get("/version", [] { return http::text(std::string(version())); });
  routes.post("/sums", add);
  return Runtime(options).run_on_each_core(http::serve, std::cref(routes),
                                           http::ServeOptions{options.endpoint});
}

// report: a service that tells what its cores do, and names what keeps them from doing more.
#include <weir/http.hpp>

using namespace weir;

bool is_prime(int number) {
  for (int divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return number > 1;
}

// Not how to do it: meanwhile the core answers nobody else. A pool has threads for this.
http::Response count_primes(int below) {
  if (below < 0 || below > 100'000'000) return http::status(404);
  int count = 0;
  for (int number = 2; number < below; ++number) count += is_prime(number) ? 1 : 0;
  return http::text(std::to_string(count) + "\n");
}

int main(int argc, char** argv) {
  auto options = ServerOptions::from_args(argc, argv);
  Runtime runtime(options);
  http::Router routes;
  routes.get("/", [] { return http::text("Hello, World!\n"); });
  routes.get("/primes/{below}", count_primes);
  routes.get("/report", [&runtime] { return http::text(runtime.report().to_text()); });
  return runtime.run_on_each_core(http::serve, std::cref(routes), options.endpoint);
}

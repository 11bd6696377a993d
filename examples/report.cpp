// report: a service that reports the activity of its cores and names the handlers that stall them.
#include <weir/http.hpp>
#include <weir/tls.hpp>

using namespace weir;

bool is_prime(int number) {
  for (int divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return number > 1;
}

// A bad example: the core answers no other request meanwhile. Use a BlockingPool for such work.
http::Response count_primes(int below) {
  if (below < 0 || below > 100'000'000) return http::Response(http::Status::not_found);
  int count = 0;
  for (int number = 2; number < below; ++number) count += is_prime(number) ? 1 : 0;
  return http::text(std::to_string(count) + "\n");
}

int main(int argc, char** argv) {
  auto options = http::ProgramOptions::from_args(argc, argv);
  Runtime runtime(options);
  http::Router routes;
  routes.get("/", [] { return http::text("Hello, World!\n"); });
  routes.get("/primes/{below}", count_primes);
  routes.get("/report", [&runtime] { return http::text(runtime.report().to_text()); });
  return runtime.run_on_each_core(http::serve, std::cref(routes), options.serve_options());
}

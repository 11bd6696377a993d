// profile: a service that records where its cores spend their time, by route and function.
#include <weir/http.hpp>
#include <weir/profile.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace weir;

bool is_prime(int number) {
  for (int divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return number > 1;
}

http::Response count_primes(int below) {
  if (below < 0 || below > 1'000'000) return http::Response(http::Status::not_found);
  int count = 0;
  for (int number = 2; number < below; ++number) count += is_prime(number) ? 1 : 0;
  return http::text(std::to_string(count) + "\n");
}

Task<http::Response> find_median(int count) {
  if (count < 1 || count > 1'000'000) co_return http::Response(http::Status::not_found);
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(count));
  std::uint32_t number = 1;
  for (std::uint32_t& each : numbers) each = number = number * 1'664'525 + 1'013'904'223;
  co_await yield();  // other requests of this core run between the two steps
  std::ranges::sort(numbers);
  co_return http::text(std::to_string(numbers[numbers.size() / 2]) + "\n");
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.get("/", [] { return http::text("Hello, World!\n"); });
  routes.get("/primes/{below}", count_primes);
  routes.get("/median/{count}", find_median);
  // A real service mounts the profile on a router that only its operators reach.
  profile::mount_profile(routes);
  return http::run(routes, argc, argv);
}

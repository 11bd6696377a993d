// spans: prints the time of the span of an unsampled request, and of a sampled span with five
// attributes, in nanoseconds: the smallest, the median and the largest of nine rounds.
#include "bench/gate/spans.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace weir::gate {
namespace {

void measure(const char* name, void (*operation)(unsigned), unsigned times) {
  operation(times / 10);
  std::array<double, 9> rounds{};
  for (double& each : rounds) {
    const auto begin = std::chrono::steady_clock::now();
    operation(times);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    each = taken.count() / times;
  }
  std::ranges::sort(rounds);
  std::printf("%s: median %.1f ns (%.1f..%.1f)\n", name, rounds[4], rounds.front(), rounds.back());
}

}  // namespace
}  // namespace weir::gate

int main() {
  using namespace weir::gate;
  measure("unsampled request", trace_unsampled_request, 4'000'000);
  measure("unsampled request, as its caller says", trace_followed_request, 4'000'000);
  measure("sampled span", record_sampled_span, 400'000);
}

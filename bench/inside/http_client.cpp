// Measures the HTTP client on one loop: GET requests one after another on each of some connections.
// Prints one JSON object: requests, failures and seconds of processor time of the measured time.
// http_client URL CONNECTIONS SECONDS SECONDS_OF_WARM_UP BYTES_OF_BODY
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"

namespace weir {
namespace {

struct Work {
  std::string url;
  std::size_t connections = 0;
  Duration measured = {};
  Duration warm_up = {};
  std::size_t body_bytes = 0;
};

struct Counts {
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;
  bool stops = false;
};

/// Returns the processor time of this process, in seconds.
double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Sends one request. Returns true if the response and the length of its body are as expected.
Task<bool> ask(http::Client& client, const Work& work) {
  auto response = co_await client.get(work.url);
  if (!response || response->status() != http::Status::ok) co_return false;
  std::size_t bytes = 0;
  for (;;) {
    const auto piece = co_await response->read();
    if (!piece) co_return false;
    if (piece->empty()) co_return bytes == work.body_bytes;
    bytes += piece->size();
  }
}

Task<> ask_repeatedly(http::Client& client, const Work& work, Counts& counts) {
  while (!counts.stops) {
    const bool good = co_await ask(client, work);
    ++counts.requests;
    if (!good) ++counts.failures;
  }
}

Task<> print_counts(const Work& work, Counts& counts) {
  std::ignore = co_await sleep(work.warm_up);
  const Counts before = counts;
  const double processor_before = processor_seconds();
  std::ignore = co_await sleep(work.measured);
  std::printf("{\"requests\": %llu, \"failures\": %llu, \"processor_seconds\": %.6f}\n",
              static_cast<unsigned long long>(counts.requests - before.requests),
              static_cast<unsigned long long>(counts.failures),
              processor_seconds() - processor_before);
  counts.stops = true;
}

Task<> measure(Scope&, const Work& work) {
  http::Client client({.limits = {.connections_per_origin_max = work.connections}});
  Counts counts;
  std::vector<Task<>> tasks;
  for (std::size_t index = 0; index < work.connections; ++index)
    tasks.push_back(ask_repeatedly(client, work, counts));
  tasks.push_back(print_counts(work, counts));
  std::ignore = co_await all(std::move(tasks));
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("usage: http_client URL CONNECTIONS SECONDS WARM_UP BYTES\n", stderr);
    return 2;
  }
  const auto seconds = [](const char* text) {
    return std::chrono::duration_cast<weir::Duration>(
        std::chrono::duration<double>(std::atof(text)));
  };
  const weir::Work work{argv[1], static_cast<std::size_t>(std::atoi(argv[2])), seconds(argv[3]),
                        seconds(argv[4]), static_cast<std::size_t>(std::atoi(argv[5]))};
  const weir::RuntimeOptions options{.cores = 1, .announce = false};
  return weir::Runtime(options).run_on_each_core(weir::measure, std::cref(work));
}

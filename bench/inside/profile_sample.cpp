// Measures the CPU time of one sample of a profile, inside of a request. The handler of a request
// sends its own thread signals like those of the profile's timer. Prints one line of JSON.
//
// The signal, its handler with the stack and the route, and the return are measured, and a system
// call that takes the place of the timer.
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "weir/http.hpp"
#include "weir/profile.hpp"
#include "weir/runtime.hpp"
#include "weir/task/sleep.hpp"

namespace weir {
namespace {

constexpr int rounds = 30;
constexpr int samples = 500;  // fewer than the memory of a thread holds
constexpr std::uint16_t port = 9465;

/// Returns what the profile's timer of this thread passes to its handler; nullptr without a
/// profile.
void* timer_value() {
  std::ifstream timers("/proc/self/timers");
  const std::string own = "notify: signal/tid." + std::to_string(::gettid());
  std::uintptr_t value = 0;
  for (std::string line; std::getline(timers, line);) {
    if (line.starts_with("signal: "))
      value = std::stoull(line.substr(line.find('/') + 1), nullptr, 16);
    if (line == own) return reinterpret_cast<void*>(value);
  }
  return nullptr;
}

double cpu_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Returns the CPU time of a sample in nanoseconds; "none" without a profile.
http::Response measure() {
  void* const value = timer_value();
  if (value == nullptr) return http::text("none");
  siginfo_t info{};
  info.si_signo = SIGPROF;
  info.si_code = SI_TIMER;
  info.si_value.sival_ptr = value;
  const double begin = cpu_nanoseconds();
  for (int count = 0; count < samples; ++count)
    ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), SIGPROF, &info);
  return http::text(std::to_string((cpu_nanoseconds() - begin) / samples));
}

Task<std::string> get(http::Client& client, const std::string& target) {
  auto response = co_await client.get("http://127.0.0.1:" + std::to_string(port) + target);
  if (!response) co_return "none";
  auto body = co_await response->body();
  co_return body ? *body : "none";
}

Task<> profile() {
  http::Client client;
  std::ignore = co_await get(client, "/profile?seconds=8&hz=1&format=folded");
}

Task<Result<>> run(Scope& scope, Runtime& runtime, const http::Router& routes) {
  const auto ask = [](Scope& outer, Runtime& own) -> Task<> {
    http::Client client;
    outer.spawn(profile());
    std::vector<double> costs;
    while (costs.size() < rounds) {
      const std::string cost = co_await get(client, "/measure");
      if (cost.starts_with("none")) {
        std::ignore = co_await sleep(std::chrono::milliseconds(20));
        continue;
      }
      costs.push_back(std::stod(cost));
      std::ignore = co_await sleep(std::chrono::milliseconds(200));  // the samples are drained
    }
    std::ranges::sort(costs);
    const double median = costs[costs.size() / 2];
    std::printf(
        "{\"work\": \"profile_sample\", \"ns_min\": %.0f, \"ns_median\": %.0f, \"ns_max\": %.0f, "
        "\"share_at_99_hz\": %.6f}\n",
        costs.front(), median, costs.back(), median * 99 * 1e-9);
    std::fflush(stdout);
    own.drain();
  };
  scope.spawn(ask(scope, runtime));
  const http::ServeOptions served{.endpoint = Endpoint::loopback(port)};
  co_return co_await http::serve(scope, routes, served);
}

}  // namespace
}  // namespace weir

int main() {
  weir::http::Router routes;
  routes.get("/measure", &weir::measure);
  weir::profile::mount_profile(routes);
  weir::RuntimeOptions options;
  options.cores = 1;
  options.announce = false;
  weir::Runtime runtime(options);
  const auto body = [&](weir::Scope& scope) -> weir::Task<weir::Result<>> {
    co_return co_await weir::run(scope, runtime, routes);
  };
  return runtime.run_on_each_core(body);
}

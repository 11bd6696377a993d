// Runs thousands of clients that connect, pipeline, stall, reset and vanish at random, over real
// sockets on every backend. Routes change, and the runtime drains, stops and starts again
// meanwhile. Every answer must be correct, and nothing may leak. The sanitizers check the rest.
// The command ./dev stress runs longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/random_client.hpp"
#include "tests/server.hpp"
#include "weir/http.hpp"
#include "weir/sim/test/seed_fixture.hpp"

namespace weir::tests::stress_test {
namespace {

using namespace std::chrono_literals;

/// The number of running handlers. It is 0 when a runtime has ended.
std::atomic<int> at_work{0};

struct InFlightCount {
  InFlightCount() { ++at_work; }
  ~InFlightCount() { --at_work; }
  InFlightCount(const InFlightCount&) = delete;
  InFlightCount& operator=(const InFlightCount&) = delete;
};

http::Response number(int id) {
  return http::text("number " + std::to_string(id) + "\n");
}

Task<http::Response> slow(int id, int milliseconds) {
  const InFlightCount here;
  const auto slept = co_await sleep(std::chrono::milliseconds(milliseconds));
  if (!slept) co_return http::Response(http::Status::service_unavailable);
  co_return http::text("slow " + std::to_string(id) + "\n");
}

Task<Result<>> write_lines(http::BodySink& body, int id, int count) {
  const InFlightCount here;
  const std::string line = std::to_string(id) + "\n";
  for (int left = count; left > 0; --left) {
    if (auto written = co_await body.write(line); !written) co_return written;
  }
  co_return {};
}

http::Response lines(int id, int count) {
  return http::stream("text/plain", write_lines, id, count);
}

Task<http::Response> echo(http::Request& request) {
  const InFlightCount here;
  std::string text;
  for (;;) {
    const auto piece = co_await request.read();
    if (!piece) co_return http::to_status(piece.error());
    if (piece->empty()) break;
    text += to_text(*piece);
  }
  co_return http::text(std::move(text));
}

/// The handler of a route that is added and removed repeatedly.
Task<http::Response> course() {
  const InFlightCount here;
  std::ignore = co_await sleep(1ms);
  co_return http::text("course\n");
}

/// A StressedService starts and ends repeatedly, at one address and with one router.
class StressedService {
 public:
  StressedService(BackendName backend, std::uint32_t seed)
      : backend_(to_backend_choice(backend)), random_(seed) {
    routes_.get("/number/{id}", number);
    routes_.get("/slow/{id}/{milliseconds}", slow);
    routes_.get("/lines/{id}/{count}", lines);
    routes_.post("/echo", echo);
  }

  const os::Address& address() const noexcept { return address_; }
  std::size_t rounds() const noexcept { return rounds_; }
  std::size_t changes() const noexcept { return changes_; }

  /// Serves until 50 to 449 more clients have come, and then drains or stops.
  void serve_one_round(const std::atomic<std::size_t>& clients) {
    RuntimeOptions options;
    options.cores = 1 + static_cast<unsigned>(random_() % 3);
    options.backend = backend_;
    options.pin = false;
    options.handle_signals = false;
    options.announce = false;
    options.drain_timeout = std::chrono::milliseconds(random_() % 300);
    Runtime runtime(options);
    auto status = std::async(std::launch::async, [this, &runtime] {
      return runtime.run_on_each_core(&StressedService::serve, this);
    });
    const std::size_t enough = clients + 50 + random_() % 400;
    EXPECT_TRUE(eventually([&] { return clients >= enough; }));
    random_() % 3 == 0 ? runtime.stop() : runtime.drain();
    EXPECT_EQ(status.get(), 0);
    EXPECT_EQ(at_work, 0);
    ++rounds_;
  }

 private:
  static Task<Result<>> serve(Scope& scope, StressedService* self) {
    scope.spawn(self->change_routes());
    const http::Limits limits{.idle_timeout = 1s, .connections_max = 60};
    const http::ServeOptions options{self->address_, limits};
    co_return co_await http::serve(scope, self->routes_, options);
  }

  /// Adds, replaces and removes a route repeatedly until its loop ends.
  Task<> change_routes() {
    Loop& loop = *(co_await this_context()).loop;
    const std::string path = "/course/" + std::to_string(loop.core());
    while (!loop.draining()) {
      const auto pattern = http::Pattern::parse(path).value();
      const auto id = co_await live_.get(pattern, course);
      if (!id) break;
      std::ignore = co_await sleep(2ms);
      std::ignore = co_await live_.replace(*id, course);
      const auto removed = co_await live_.remove(*id);
      EXPECT_TRUE(removed) << removed.error().message();
      ++changes_;
    }
  }

  BackendChoice backend_;
  std::minstd_rand random_;
  os::Address address_ = free_address();
  http::Router routes_;
  http::LiveRoutes live_{routes_};
  std::size_t rounds_ = 0;
  std::atomic<std::size_t> changes_{0};
};

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator each("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(each), end(each)));
}

class Stress : public EachBackend {};

TEST_P(Stress, ClientsRoutesAndRuntimesComeAndGo) {
  constexpr std::size_t clients_least = 1500;
  constexpr std::size_t rounds_least = 6;
  const auto seed = static_cast<std::uint32_t>(test_seed());
  SCOPED_TRACE(test_replay() + std::to_string(seed));
  const std::size_t descriptors = open_descriptors();
  RandomClientCounts counts;
  {
    StressedService service(GetParam(), seed);
    std::atomic<std::size_t> clients{0};
    std::atomic<bool> over{false};
    std::vector<std::future<RandomClientCounts>> threads;
    for (std::uint32_t number = 0; number < 4; ++number) {
      threads.push_back(std::async(std::launch::async, [&, number] {
        RandomClient client(service.address(), seed * 31 + number);
        while (!over) {
          if (client.run_one()) {
            ++clients;
          } else {
            pause_between_polls();  // waits for the next server
          }
        }
        return client.counts();
      }));
    }
    while (clients < clients_least || service.rounds() < rounds_least) {
      service.serve_one_round(clients);
      if (HasFailure()) break;
    }
    over = true;
    for (auto& each : threads) counts += each.get();
    std::cout << "seed " << seed << ": " << counts.clients << " clients, " << counts.requests
              << " requests, " << counts.answers << " answers, " << service.rounds() << " rounds, "
              << service.changes() << " routes\n";
    EXPECT_GT(counts.answers, counts.clients / 10);
    EXPECT_GT(service.changes(), 0U);
  }
  for (const std::string& each : counts.faults) ADD_FAILURE() << each;
  EXPECT_EQ(open_descriptors(), descriptors);
}

INSTANTIATE_TEST_SUITE_P(On, Stress, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::stress_test

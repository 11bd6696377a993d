// Tests more connections, requests, bytes and slow peers than the limits allow, over real sockets
// on every backend. The attackers are slowhttptest and Weir's own. Clients within the limits are
// served meanwhile, and memory stays under the bound of the limits. The server returns to its
// first state when the attackers have gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/attacker_pool.hpp"
#include "tests/limited_server.hpp"
#include "tests/regular_client.hpp"
#include "tests/sanitized.hpp"
#include "weir/os/detail/machine/limits.hpp"
#include "weir/sim/test/seed_fixture.hpp"
#include "weir/task/test/sweep_budget.hpp"

namespace weir::tests::overload_test {
namespace {

/// Short timeouts, so that the tests end soon. Idle connections may stay, because the regular
/// client is idle between its requests.
const std::vector<std::string> short_timeouts{"--limits.connections_max=200",
                                              "--limits.body_max=65536",
                                              "--limits.head_timeout=1s",
                                              "--limits.body_rate.grace=1s",
                                              "--limits.body_rate.stall_max=1s",
                                              "--limits.body_rate.bytes_per_second=20000",
                                              "--limits.write_rate.grace=1s",
                                              "--limits.write_rate.stall_max=1s",
                                              "--limits.write_rate.bytes_per_second=20000"};

/// A defence that attackers must have triggered more than `more_than` times.
struct Met {
  std::string_view counter;
  std::uint64_t more_than;
};
constexpr std::array met_in_the_end{Met{"http connections rejected", 100},
                                    Met{"http slow readers", 2},
                                    Met{"http requests rejected: head_timed_out", 20},
                                    Met{"http requests rejected: body_timed_out", 20},
                                    Met{"http requests rejected: headers_too_long", 2},
                                    Met{"http requests rejected: trailers_too_long", 2},
                                    Met{"http requests rejected: chunk_extensions_too_long", 2}};

/// Returns the first of these defences that is still missing, or an empty text.
std::string first_missing(Client& observer) {
  for (const Met& each : met_in_the_end) {
    const auto met = LimitedServer::total(observer, each.counter);
    if (!met) return std::string(each.counter) + ": the observer got no answer";
    if (*met > each.more_than) continue;
    return std::string(each.counter) + ": " + std::to_string(*met);
  }
  return {};
}

class Overload : public EachBackend {
 protected:
  /// The longest duration of an attack. It is long for sanitizers and for other tests that run at
  /// the same time.
  static constexpr std::chrono::seconds attack_max{100};
  /// The memory in addition to the bound of the limits: malloc's reserve and the stacks of
  /// threads. Sanitizers also keep freed memory for a while.
  static constexpr std::size_t margin = std::size_t{32} << 20;

  /// Attacks until `enough` returns true, and measures memory meanwhile.
  template <class Enough>
  void attack_until(const LimitedServer& server, const RegularClient& client, Enough enough) {
    EXPECT_TRUE(eventually(
        [&] {
          resident_ = std::max(resident_, server.process().resident_bytes());
          return enough() || !client.fault().empty();
        },
        attack_max));
    EXPECT_EQ(client.fault(), "");
  }
  std::size_t resident_ = 0;  // largest value so far
};

TEST_P(Overload, AttackersOfAllKindsHurtNoOtherClient) {
  const auto seed = static_cast<std::uint32_t>(test_seed());
  std::cout << "seed " << seed << "\n";
  SCOPED_TRACE(test_replay() + std::to_string(seed));
  LimitedServer server(GetParam(), short_timeouts);
  const std::size_t before = server.process().resident_bytes();
  {
    RegularClient client(server.port());
    Client observer(server.port());
    AttackerPool attackers(server.port(), 400, seed);
    attack_until(server, client, [&] {
      // The observer sends a request each time, because the server closes a silent connection.
      const bool all_met = first_missing(observer).empty();
      return all_met && client.answered() > 1000 && attackers.ended() > 2000;
    });
    EXPECT_EQ(first_missing(observer), "");
    EXPECT_LE(LimitedServer::total(observer, "http connections open").value_or(0), 201U);
    std::cout << attackers.ended() << " attackers ended, " << client.answered() << " answers\n";
  }
  EXPECT_TRUE(server.wait_until_recovered());
  if (!sanitized) {
    EXPECT_LE(resident_, before + server.memory_bound() + margin);
  }
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

// Runs all modes of slowhttptest: slow heads, slow bodies, ranges and slow reading.
TEST_P(Overload, SurvivesAllModesOfSlowHttpTest) {
  LimitedServer server(GetParam(), short_timeouts);
  const std::size_t before = server.process().resident_bytes();
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
  const std::vector<std::string> common{"-c", "100", "-r", "100", "-l", "4", "-i", "1", "-p", "3"};
  const std::vector<std::vector<std::string>> modes{
      {"-H", "-u", url + "/"},
      {"-B", "-s", "60000", "-u", url + "/count"},
      {"-R", "-a", "1", "-b", "3000", "-u", url + "/large"},
      {"-X", "-k", "5", "-w", "256", "-y", "1024", "-n", "1", "-z", "32", "-u", url + "/large"}};
  {
    RegularClient client(server.port());
    std::deque<Process> generators;
    for (std::vector<std::string> mode : modes) {
      mode.insert(mode.end(), common.begin(), common.end());
      generators.emplace_back("/usr/bin/slowhttptest", mode);
    }
    attack_until(server, client, [&] {
      return std::ranges::all_of(generators, [](Process& each) {
        return each.wait_for_exit(std::chrono::milliseconds(1)).has_value();
      });
    });
    for (Process& each : generators) {
      EXPECT_EQ(each.wait_for_exit(), 0) << each.errors();
      EXPECT_TRUE(each.output().contains("Test ended on")) << each.output();
    }
  }
  EXPECT_TRUE(server.wait_until_recovered());
  if (!sanitized) {
    EXPECT_LE(resident_, before + server.memory_bound() + margin);
  }
  EXPECT_GT(server.total("http requests rejected: head_timed_out").value_or(0), 0U);
  EXPECT_GT(server.total("http requests rejected: body_timed_out").value_or(0), 0U);
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(Overload, KeepsThousandsOfIdleConnectionsAndServesOthers) {
  // This process holds one end of each connection, and needs as many descriptors as the server.
  const auto limit = static_cast<std::size_t>(os::raise_descriptor_limit().now);
  // The kernel checks all descriptors in each call of poll(). A process that samples opens fewer.
  const std::size_t wanted = GetParam().option == "poll" || SweepBudget::samples() ? 6000 : 19'000;
  const std::size_t count = std::min(wanted, limit - std::min<std::size_t>(limit, 900));
  // The timeouts exceed the time that any machine needs to open all connections.
  LimitedServer server(GetParam(),
                       {"--limits.connections_max=" + std::to_string(count + 10),
                        "--limits.first_request_timeout=3600s", "--limits.idle_timeout=3600s"});
  const std::size_t before = server.process().resident_bytes();
  {
    RegularClient client(server.port());
    Client observer(server.port());
    std::vector<Client> idle;
    for (std::size_t i = 0; i < count; ++i) {
      idle.emplace_back(server.port());
      if (i % 3 != 0) continue;  // the others have sent no request yet
      ASSERT_TRUE(idle.back().exchange(get("/"))) << i;
    }
    const auto open = [&] { return LimitedServer::total(observer, "http connections open"); };
    EXPECT_TRUE(eventually([&] { return open() == count + 2; }));
    const std::size_t resident = server.process().resident_bytes();
    if (!sanitized) {
      EXPECT_LE(resident, before + count * 2048 + margin);
    }
    const std::size_t answered = client.answered();
    attack_until(server, client, [&] { return client.answered() > answered + 100; });
    // Connections beyond the limit get a 503.
    for (int i = 0; i < 100; ++i) {
      auto late = Client::connect(os::Address::loopback(server.port()));
      ASSERT_TRUE(late);
      const auto answer = late->exchange(get("/"));
      if (answer && answer->status != 200) {
        EXPECT_EQ(answer->status, 503);
      }
    }
    std::cout << (resident - before) / count << " bytes each\n";
    for (Client& each : idle) each.reset();
    EXPECT_TRUE(eventually([&] { return open() == 2U; }));
    EXPECT_EQ(client.fault(), "");
  }
  EXPECT_TRUE(server.wait_until_recovered());
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

TEST_P(Overload, AStormOfResetsLeaksNothing) {
  LimitedServer server(GetParam(), {"--limits.connections_max=100"});
  {
    RegularClient client(server.port());
    std::vector<std::thread> storm;
    for (int number = 0; number < 3; ++number) {
      storm.emplace_back([&server, number] {
        for (int i = 0; i < 2000; ++i) {
          auto peer = Client::connect(os::Address::loopback(server.port()));
          if (!peer) continue;
          if (i % 4 == 1) (void)peer->send_some(get("/large"));
          if (i % 4 == 2) (void)peer->send_some("POST /count HTTP/1.1\r\nHost: h\r\nContent-Le");
          if (i % 4 == 3) (void)peer->send_some(post("/count", std::string(100, 'x')));
          (i + number) % 5 == 0 ? peer->close() : peer->reset();
        }
      });
    }
    for (std::thread& each : storm) each.join();
    const std::size_t answered = client.answered();
    attack_until(server, client, [&] { return client.answered() > answered + 100; });
  }
  EXPECT_TRUE(server.wait_until_recovered());
  EXPECT_EQ(server.stop(), 0) << server.process().errors();
}

INSTANTIATE_TEST_SUITE_P(On, Overload, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::overload_test

// Tests that profile the loops of a runtime on real threads.
#include "weir/profile/detail/recording.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "weir/http/client/client.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/net/tcp.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/profile/detail/flame_page.hpp"
#include "weir/profile/detail/pprof.hpp"
#include "weir/profile/profile.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"

namespace weir::profile::recording_test {
namespace {

using namespace std::chrono_literals;

volatile unsigned sink = 0;

// Functions that only burn time, whose names the profiles must have.
[[gnu::noinline]] void burn_in_the_profile_test(std::chrono::nanoseconds length) {
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
    for (unsigned index = 0; index < 20'000; ++index) sink = sink + index * index;
  }
}

Task<> burn_until(const std::atomic<bool>& done) {
  while (!done.load()) {
    burn_in_the_profile_test(5ms);
    std::ignore = co_await sleep(1ms);  // timers and input have their turn
  }
}

/// Returns the share of the stacks that have a function whose name contains `part`.
double share_of(const Profile& profile, std::string_view part) {
  std::uint64_t with = 0;
  for (const auto& [stack, weight] : profile.stacks) {
    const bool has = std::ranges::any_of(stack.addresses, [&](std::uintptr_t address) {
      return profile.name_of(address).function.find(part) != std::string::npos;
    });
    if (has) with += weight;
  }
  return static_cast<double>(with) /
         static_cast<double>(std::max<std::uint64_t>(profile.weight(), 1));
}

class RecordingTest : public testing::Test {
 protected:
  using Test = std::function<Task<>()>;

  /// Runs a test on core 0 while `core_count` loops run.
  void run(unsigned core_count, const Test& test) {
    RuntimeOptions options;
    options.cores = core_count;
    Runtime runtime(options);
    const auto body = [&](Scope& scope) -> Task<> {
      scope.spawn(burn_until(done_));
      if (scope.loop().core() == 0) {
        co_await test();
        done_.store(true);
      }
      co_return;
    };
    EXPECT_EQ(runtime.run_on_each_core(body), 0);
  }

  std::atomic<bool> done_{false};
};

TEST_F(RecordingTest, FindsTheHotFunctionAndCoroutineOfEachLoop) {
  run(2, []() -> Task<> {
    RecordingOptions options;
    options.length = 1s;
    options.hertz = 250;
    const auto profile = co_await record(options);
    EXPECT_TRUE(profile) << profile.error().reason;
    if (!profile) co_return;
    EXPECT_GE(profile->weight(), 20u);
    EXPECT_GE(share_of(*profile, "burn_in_the_profile_test"), 0.6);
    EXPECT_EQ(profile->dropped, 0u);
    std::uint64_t of_core[2] = {};
    std::uint64_t in_coroutine = 0;
    for (const auto& [stack, weight] : profile->stacks) {
      if (stack.core == loop::CpuSample::no_core) continue;
      of_core[stack.core] += weight;
      if (stack.activity == 0) continue;
      const std::string& name = profile->name_of(stack.activity).function;
      if (name.find("burn_until") != name.npos) in_coroutine += weight;
    }
    EXPECT_GT(of_core[0], 0u);
    EXPECT_GT(of_core[1], 0u);
    EXPECT_GE(2 * in_coroutine, profile->weight());
  });
}

/// Returns the number of POSIX timers of this process; 0 if the kernel does not tell.
std::size_t timers_of_process() {
  std::ifstream timers("/proc/self/timers");
  std::size_t count = 0;
  for (std::string line; std::getline(timers, line);) count += line.starts_with("ID:") ? 1 : 0;
  return count;
}

/// Expects that a profile has left neither timers nor its signal handler behind.
void expect_nothing_left() {
  EXPECT_EQ(timers_of_process(), 0u);
  struct sigaction action{};
  ::sigaction(SIGPROF, nullptr, &action);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

/// Returns the weight of the stacks of one thread that have a function whose name contains `part`.
std::uint64_t weight_of(const Profile& profile, std::string_view thread, std::string_view part) {
  std::uint64_t sum = 0;
  for (const auto& [stack, weight] : profile.stacks) {
    const bool has = std::ranges::any_of(stack.addresses, [&](std::uintptr_t address) {
      return profile.name_of(address).function.find(part) != std::string::npos;
    });
    if (has && stack.thread == thread) sum += weight;
  }
  return sum;
}

void burn_in_a_pool(std::atomic<bool>& done) {
  while (!done.load()) burn_in_the_profile_test(1ms);
}

TEST_F(RecordingTest, SamplesTheThreadsOfPools) {
  run(1, []() -> Task<> {
    std::atomic<bool> done{false};
    const auto both = [&](Scope& scope) -> Task<> {
      const Context context = co_await this_context();
      auto& pool = shared_pool(*context.loop).pool();
      for (int job = 0; job < 2; ++job) {
        scope.spawn([](BlockingPool& of, std::atomic<bool>& end) -> Task<> {
          std::ignore = co_await sleep(100ms);  // the first threads start during the profile
          EXPECT_TRUE(co_await of.run(&burn_in_a_pool, borrow(end)));
        }(pool, done));
      }
      scope.spawn([](std::atomic<bool>& end) -> Task<> {
        std::ignore = co_await sleep(1200ms);
        end.store(true);
      }(done));
      RecordingOptions options;
      options.length = 1s;
      options.hertz = 250;
      const auto profile = co_await record(options);
      EXPECT_TRUE(profile);
      if (!profile) co_return;
      EXPECT_GE(weight_of(*profile, "weir-pool", "burn_in_a_pool"), 10u);
      EXPECT_EQ(weight_of(*profile, "", "burn_in_a_pool"), 0u) << "not on the loop";
      EXPECT_TRUE(to_folded(*profile).contains("(no request);weir-pool;"));
      EXPECT_TRUE(to_pprof(*profile).contains("weir-pool"));
    };
    std::ignore = co_await with_scope(both);
  });
}

TEST_F(RecordingTest, RefusesASecondProfile) {
  run(1, []() -> Task<> {
    const auto both = [](Scope& scope) -> Task<> {
      scope.spawn([]() -> Task<> {
        RecordingOptions options;
        options.length = 300ms;
        EXPECT_TRUE(co_await record(options));
      }());
      const auto second = co_await record(RecordingOptions());
      EXPECT_FALSE(second);
      if (!second) {
        EXPECT_EQ(second.error().code, Errc::conflict) << second.error().reason;
      }
    };
    std::ignore = co_await with_scope(both);
  });
}

TEST_F(RecordingTest, EndsWhenItIsCancelled) {
  run(1, []() -> Task<> {
    const auto begin = std::chrono::steady_clock::now();
    auto endless = [](Scope& scope) -> Task<> {
      scope.spawn([](Scope& outer) -> Task<> {
        std::ignore = co_await sleep(50ms);
        outer.cancel();
      }(scope));
      RecordingOptions options;
      options.length = 60s;
      const auto profile = co_await record(options);
      EXPECT_FALSE(profile);
      if (!profile) {
        EXPECT_EQ(profile.error().code, Errc::cancelled);
      }
    };
    std::ignore = co_await with_scope(endless);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
    expect_nothing_left();
    RecordingOptions next;
    next.length = 100ms;
    EXPECT_TRUE(co_await record(next)) << "the next profile may start";
  });
}

TEST_F(RecordingTest, EndsEarlyInADrain) {
  std::atomic<Runtime*> runtime{nullptr};
  RuntimeOptions options;
  options.cores = 1;
  Runtime drained(options);
  runtime = &drained;
  const auto body = [&](Scope& scope) -> Task<> {
    scope.spawn([](Runtime& own) -> Task<> {
      std::ignore = co_await sleep(200ms);
      own.drain();
    }(*runtime.load()));
    RecordingOptions long_one;
    long_one.length = 60s;
    const auto profile = co_await record(long_one);
    EXPECT_TRUE(profile);
    if (profile) {
      EXPECT_LT(profile->length, 30s);
    }
  };
  EXPECT_EQ(drained.run_on_each_core(body), 0);
}

TEST_F(RecordingTest, WaitsUntilAllLoopsHaveBegun) {
  RuntimeOptions options;
  options.cores = 8;
  options.pin = false;
  Runtime runtime(options);
  const auto body = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() != 0) co_return;
    RecordingOptions short_one;
    short_one.length = 1ms;
    const auto profile = co_await record(short_one);
    EXPECT_TRUE(profile) << profile.error().reason;
    runtime.drain();
  };
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
}

// Profiles of a server, by route.

/// An address of this machine that no other process uses.
os::Address free_address() {
  const auto process = static_cast<unsigned>(::getpid());
  const std::string host =
      "127.77." + std::to_string(process >> 8 & 0xff) + "." + std::to_string(process & 0xff);
  const os::Fd listener = os::open_listener(os::Address::parse(host + ":0").value()).value();
  return os::local_address(listener.get()).value();
}

/// Waits for the timers of a profile. Returns false if there are none after 20 s.
Task<bool> profile_has_begun() {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (timers_of_process() == 0) {
    if (std::chrono::steady_clock::now() > end) co_return false;
    std::ignore = co_await sleep(5ms);
  }
  co_return true;
}

/// Sends a request for a profile, and closes the connection soon after the profile has begun. The
/// server cannot tell that from a client that only sends no more.
Task<> leave_early(os::Address address, std::string target) {
  auto stream = co_await tcp::connect(address);
  EXPECT_TRUE(stream);
  if (!stream) co_return;
  const std::string request = "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_TRUE(co_await stream->write(std::string_view(request)));
  if (!co_await profile_has_begun()) {
    const auto answer = co_await stream->read({.timeout = 1s});
    ADD_FAILURE() << "no profile: " << (answer ? answer->text() : answer.error().message());
  }
  std::ignore = co_await sleep(150ms);
}

http::Response hot(int) {
  burn_in_the_profile_test(2ms);
  return http::text("done\n");
}
Task<http::Response> warm(int) {
  burn_in_the_profile_test(1ms);
  co_await yield();
  co_return http::text("done\n");
}

Task<std::string> body_of(http::Client& client, std::string url) {
  auto response = co_await client.get(url);
  if (!response) co_return "error: " + response.error().message();
  auto text = co_await response->body();
  co_return text ? *text : "error: " + text.error().message();
}

Task<> ask_until(const std::atomic<bool>& done, std::string url) {
  http::Client client;
  while (!done.load()) std::ignore = co_await body_of(client, url);
}

TEST(ServedProfile, ShowsTheRoutesThatUseTheTime) {
  http::Router routes;
  routes.get("/hot/{n}", hot);
  routes.get("/warm/{n}", warm);
  mount_profile(routes);
  const os::Address address = free_address();
  const std::string base = "http://" + address.to_string();
  std::atomic<bool> done{false};
  std::string everything;
  std::string only_warm;
  RuntimeOptions options;
  options.cores = 2;
  Runtime runtime(options);
  const auto ask = [&]() -> Task<> {
    http::Client client;
    while ((co_await body_of(client, base + "/hot/1")) != "done\n")
      std::ignore = co_await sleep(10ms);
    everything = co_await body_of(client, base + "/profile?seconds=1&hz=250&format=folded");
    only_warm = co_await body_of(
        client, base + "/profile?seconds=1&hz=250&format=folded&route=/warm/%7Bn%7D");
    done.store(true);
    runtime.drain();
  };
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 0) {
      scope.spawn(ask());
      scope.spawn(ask_until(done, base + "/hot/7"));
      scope.spawn(ask_until(done, base + "/warm/7"));
    }
    const http::ServeOptions served{.endpoint = address};
    co_return co_await http::serve(scope, routes, served);
  };
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  EXPECT_NE(everything.find("GET /hot/{n};"), std::string::npos) << everything.substr(0, 2000);
  EXPECT_NE(everything.find("GET /warm/{n};"), std::string::npos);
  EXPECT_NE(everything.find("burn_in_the_profile_test"), std::string::npos);
  EXPECT_NE(everything.find("(no request);"), std::string::npos) << "the loops themselves";
  EXPECT_TRUE(only_warm.starts_with("GET /warm/{n};")) << only_warm.substr(0, 2000);
  EXPECT_EQ(only_warm.find("GET /hot"), std::string::npos);
}

TEST(ServedProfile, LeavesNothingBehindWhenItsClientLeaves) {
  if (std::ifstream("/proc/self/timers").fail()) GTEST_SKIP() << "the kernel lists no timers";
  http::Router routes;
  mount_profile(routes);
  const os::Address address = free_address();
  std::string second;
  std::string next;
  RuntimeOptions options;
  options.cores = 2;
  Runtime runtime(options);
  const auto ask = [&]() -> Task<> {
    http::Client client;
    const std::string base = "http://" + address.to_string();
    while ((co_await body_of(client, base + "/")).starts_with("error"))
      std::ignore = co_await sleep(10ms);
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(leave_early(address, "/profile?seconds=3&hz=999"));
      if (!co_await profile_has_begun()) co_return;
      second = co_await body_of(client, base + "/profile?seconds=1");
    };
    std::ignore = co_await with_scope(both);
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (timers_of_process() != 0 && std::chrono::steady_clock::now() < end)
      std::ignore = co_await sleep(10ms);
    expect_nothing_left();
    next = co_await body_of(client, base + "/profile?seconds=1&format=folded");
    runtime.drain();
  };
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() == 0) scope.spawn(ask());
    const http::ServeOptions served{.endpoint = address};
    co_return co_await http::serve(scope, routes, served);
  };
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  EXPECT_NE(second.find("another profile"), std::string::npos) << second;
  EXPECT_FALSE(next.starts_with("error") || next.find("another profile") != next.npos) << next;
  expect_nothing_left();
}

}  // namespace
}  // namespace weir::profile::recording_test

// Tests of the route, on platforms with and without profiles, in virtual time.
#include "weir/profile/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "weir/compression/decompressor.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/http_testing/test_client.hpp"
#include "weir/loop/contract/detail/profiler.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::profile::profile_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

/// A platform in memory whose loops spend all their time in the functions f256 and f512. Each loop
/// has `per_step` samples whenever 100 ms have passed. A turn may drain them only once.
class ProfiledPlatform : public MemoryPlatform, public loop::PlatformProfiler {
 public:
  using MemoryPlatform::MemoryPlatform;

  std::expected<std::unique_ptr<loop::CpuProfile>, loop::ProfileError> start_cpu_profile(
      std::span<Loop* const> loops, const loop::CpuProfileOptions& options) override {
    if (refusal) return std::unexpected(loop::ProfileError{refusal, "the reason"});
    ++started;
    ++running;
    hertz = options.hertz;
    return std::make_unique<MadeProfile>(*this, loops.size());
  }
  os::Symbols symbolize(std::span<const std::uintptr_t> addresses) override {
    os::Symbols symbols;
    for (const std::uintptr_t each : addresses)
      symbols.names.push_back({.function = "f" + std::to_string(each)});
    return symbols;
  }

  std::error_code refusal;
  unsigned started = 0;
  unsigned running = 0;
  unsigned hertz = 0;
  std::size_t per_step = 1;
  std::size_t most_at_once = 0;  // largest number of samples in one turn of a loop

 private:
  class MadeProfile final : public loop::CpuProfile {
   public:
    MadeProfile(ProfiledPlatform& platform, std::size_t cores) noexcept
        : platform_(platform), cores_(cores) {}
    ~MadeProfile() override { --platform_.running; }
    bool drain(std::size_t most, const std::function<void(const loop::CpuSample&)>& use) override {
      const std::array<std::uintptr_t, 2> frames{256, 513};
      if (waiting_ == 0 && platform_.now() != last_) waiting_ = cores_ * platform_.per_step;
      last_ = platform_.now();
      std::size_t used = 0;
      for (; used < most && waiting_ > 0; ++used, --waiting_) {
        const std::size_t core = waiting_ % cores_;
        use({.thread = core, .core = core, .weight = 1, .frames = frames});
      }
      note_turn(used);
      return used == most;
    }
    void stop() noexcept override {}
    std::uint64_t dropped() const noexcept override { return 5; }

   private:
    void note_turn(std::size_t used) {
      if (Loop::current() == nullptr) return;  // on a thread of the pool
      const std::uint64_t turn = Loop::current()->counters().turns.value();
      in_turn_ = turn == turn_ ? in_turn_ + used : used;
      turn_ = turn;
      platform_.most_at_once = std::max(platform_.most_at_once, in_turn_);
    }

    ProfiledPlatform& platform_;
    std::size_t cores_;
    std::size_t waiting_ = 0;
    Instant last_ = Instant::min();
    std::uint64_t turn_ = 0;
    std::size_t in_turn_ = 0;
  };
};

class ProfileRouteTest : public testing::Test {
 protected:
  ProfileRouteTest() { mount_profile(routes_); }

  void at(Duration moment, MemoryClock::Event event) {
    platform_.at(platform_.now() + moment, std::move(event));
  }
  /// Serves on two cores, and sends a GET.
  /// Returns: the response; empty if the client left before it came.
  std::string ask(const std::string& target, Duration leaves_after = 2min) {
    std::unique_ptr<MemoryPeer> peer;
    at(1s, [&] {
      peer = std::make_unique<MemoryPeer>(platform_, os::Address::loopback(80));
      peer->send("GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    });
    std::string received;
    at(1s + leaves_after, [&] {
      received = peer->received();
      peer->reset();
      peer.reset();
    });
    at(3min, [&] {
      running_after_ = platform_.running;
      platform_.raise(loop::Signal::terminate);
    });
    Runtime runtime(platform_, {.cores = 2});
    EXPECT_EQ(runtime.run_on_each_core(http::serve, std::cref(routes_),
                                       http::ServeOptions{.endpoint = Endpoint::loopback(80)}),
              0);
    if (peer != nullptr) received = peer->received();  // a drain came before
    return received;
  }

  ProfiledPlatform platform_{MemoryPlatformOptions{.cores = 2}};
  http::Router routes_;
  unsigned running_after_ = 0;
};

TEST_F(ProfileRouteTest, AnswersWithFoldedStacksOfAllCores) {
  const std::string response = ask("/profile?seconds=2&format=folded");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(response, HasSubstr("\r\n\r\n(no request);f512;f256 40\n"))
      << "20 steps of two cores";
  EXPECT_EQ(platform_.hertz, 99u);
  EXPECT_EQ(running_after_, 0u);
}

TEST_F(ProfileRouteTest, AnswersWithAPageUnderAStrictPolicy) {
  const std::string response = ask("/profile?seconds=1&hz=999&format=html");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(response, HasSubstr("Content-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(response, HasSubstr("<title>f256: 20 samples"));
  EXPECT_THAT(response, HasSubstr("at 999 Hz in 1.0 s, 5 dropped"));
  EXPECT_EQ(platform_.hertz, 999u);
}

TEST_F(ProfileRouteTest, AnswersWithAFileForPprof) {
  const std::string response = ask("/profile?seconds=1");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(response, HasSubstr("Content-Type: application/octet-stream\r\n"));
  EXPECT_THAT(response, HasSubstr("filename=\"profile.pb.gz\""));
  EXPECT_THAT(response, HasSubstr("Cache-Control: no-store\r\n"));
  const std::string body = response.substr(response.find("\r\n\r\n") + 4);
  if (compression::is_available(compression::Coding::gzip)) {
    EXPECT_THAT(body, StartsWith("\x1f\x8b"));
  } else {
    EXPECT_THAT(body, HasSubstr("f256"));
  }
}

TEST_F(ProfileRouteTest, DrainsAFewSamplesInEachTurn) {
  platform_.per_step = 1000;
  const std::string response = ask("/profile?seconds=1&format=folded");
  EXPECT_THAT(response, HasSubstr("(no request);f512;f256 20000\n"));
  EXPECT_LE(platform_.most_at_once, 16u);
}

TEST_F(ProfileRouteTest, AcceptsTheExtremes) {
  for (const auto& [query, hertz] :
       {std::pair("seconds=1&hz=1", 1u), {"seconds=60&hz=999", 999u}}) {
    EXPECT_THAT(ask("/profile?format=folded&" + std::string(query)), StartsWith("HTTP/1.1 200"));
    EXPECT_EQ(platform_.hertz, hertz);
    EXPECT_EQ(running_after_, 0u);
  }
}

TEST_F(ProfileRouteTest, EndsEarlyInADrain) {
  at(4s, [&] { platform_.raise(loop::Signal::terminate); });
  const std::string response = ask("/profile?seconds=60&format=html");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(response, HasSubstr("Hz in 3.")) << "three of sixty seconds";
  EXPECT_EQ(platform_.running, 0u);
}

TEST_F(ProfileRouteTest, RejectsValuesOutOfRange) {
  for (const std::string query :
       {"seconds=0", "seconds=61", "seconds=100000", "seconds=-1", "seconds=x", "seconds=", "hz=0",
        "hz=1000", "hz=99999999999999999999", "format=svg", "format="}) {
    http::TestClient client(routes_);
    EXPECT_EQ(client.get("/profile?" + query).status(), 400) << query;
  }
  EXPECT_EQ(platform_.started, 0u);
}

TEST_F(ProfileRouteTest, GivesTheReasonIfThePlatformRefuses) {
  const std::map<std::error_code, std::string> statuses{
      {Errc::conflict, "409"}, {Errc::unsupported, "501"}, {system_error(EAGAIN), "503"}};
  for (const auto& [error, status] : statuses) {
    platform_.refusal = error;
    const std::string response = ask("/profile");
    EXPECT_THAT(response, StartsWith("HTTP/1.1 " + status));
    EXPECT_THAT(response, HasSubstr("no CPU profile: the reason"));
  }
}

TEST_F(ProfileRouteTest, IsUnsupportedInAWorld) {
  http::TestClient client(routes_);
  const auto response = client.get("/profile");
  EXPECT_EQ(response.status(), 501);
  EXPECT_THAT(response.body(), HasSubstr("this platform takes no CPU profiles"));
}

TEST_F(ProfileRouteTest, EndsWhenItsClientLeaves) {
  platform_.per_step = 100;
  ask("/profile?seconds=60", 5s);
  EXPECT_EQ(platform_.started, 1u);
  EXPECT_EQ(running_after_, 0u);
}

TEST_F(ProfileRouteTest, IsMountedAtAnyPath) {
  http::Router routes;
  mount_profile(routes, "/debug/cpu");
  EXPECT_TRUE(routes.check());
  http::TestClient client(routes);
  EXPECT_EQ(client.get("/debug/cpu").status(), 501);
  EXPECT_EQ(client.get("/profile").status(), 404);
}

}  // namespace
}  // namespace weir::profile::profile_test

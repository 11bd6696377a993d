// Tests of the route, on platforms with and without profiles, in virtual time.
#include "weir/profile/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "weir/compression/decompressor.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/http_testing/test_client.hpp"
#include "weir/loop/contract/detail/profiler.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"
#include "weir/testing/memory/memory_platform.hpp"

namespace weir::profile {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

/// A platform in memory whose loops spend all their time in the functions f256 and f512.
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

 private:
  class MadeProfile final : public loop::CpuProfile {
   public:
    MadeProfile(ProfiledPlatform& platform, std::size_t cores) noexcept
        : platform_(platform), cores_(cores) {}
    ~MadeProfile() override { --platform_.running; }
    void drain(const std::function<void(const loop::CpuSample&)>& use) override {
      const std::array<std::uintptr_t, 2> frames{256, 513};
      for (std::size_t core = 0; core < cores_; ++core)
        use({.core = core, .weight = 1, .frames = frames});
    }
    void stop() noexcept override {}
    std::uint64_t dropped() const noexcept override { return 5; }

   private:
    ProfiledPlatform& platform_;
    std::size_t cores_;
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
    });
    at(3min, [&] {
      running_after_ = platform_.running;
      platform_.raise(loop::Signal::terminate);
    });
    Runtime runtime(platform_, {.cores = 2});
    EXPECT_EQ(runtime.run_on_each_core(http::serve, std::cref(routes_),
                                       http::ServeOptions{.endpoint = Endpoint::loopback(80)}),
              0);
    return received;
  }

  ProfiledPlatform platform_{MemoryPlatformOptions{.cores = 2}};
  http::Router routes_;
  unsigned running_after_ = 0;
};

TEST_F(ProfileRouteTest, AnswersWithFoldedStacksOfAllCores) {
  const std::string response = ask("/profile?seconds=2&format=folded");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(response, HasSubstr("\r\n\r\n(no request);f512;f256 42\n"))
      << "21 drains of two cores";
  EXPECT_EQ(platform_.hertz, 99u);
  EXPECT_EQ(running_after_, 0u);
}

TEST_F(ProfileRouteTest, AnswersWithAPageUnderAStrictPolicy) {
  const std::string response = ask("/profile?seconds=1&hz=999&format=html");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(response, HasSubstr("Content-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(response, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(response, HasSubstr("<title>f256: 22 samples"));
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

TEST_F(ProfileRouteTest, RejectsValuesOutOfRange) {
  for (const std::string query :
       {"seconds=0", "seconds=61", "seconds=-1", "seconds=x", "seconds=", "hz=0", "hz=1000",
        "hz=99999999999999999999", "format=svg", "format="}) {
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
}  // namespace weir::profile

// Tests of the admin listener beside a full service and in a drain, on the cores of a runtime.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/admin/listener.hpp"
#include "weir/app/http_server.hpp"
#include "weir/http.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sleep.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::admin_drain_test {
namespace {

using namespace std::chrono_literals;

/// A service with the admin listener beside it. Both have two cores.
class AdminDrainTest : public testing::Test {
 protected:
  AdminDrainTest() {
    router_.get("/", [] { return http::text("fast\n"); });
    router_.get("/slow", []() -> Task<http::Response> {
      std::ignore = co_await sleep(10s);
      co_return http::text("slow\n");
    });
  }
  static AdminListenerOptions options_at(const Endpoint& endpoint) {
    AdminListenerOptions options;
    options.endpoint = endpoint;
    return options;
  }

  void at(Duration moment, std::function<void()> event) {
    platform_.at(platform_.now() + moment, std::move(event));
  }
  MemoryPeer& connect(const Endpoint& server) { return peers_.emplace_back(platform_, server); }
  static std::string get(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  /// Sends a request on a new connection at `moment`, and calls `look` a second later.
  void ask_at(Duration moment, const Endpoint& server, std::string_view path,
              std::function<void(const std::string& answer)> look) {
    at(moment, [this, server, text = get(path), look = std::move(look)] {
      MemoryPeer& peer = connect(server);
      peer.send(text);
      platform_.at(platform_.now() + 1s, [&peer, look] { look(peer.received()); });
    });
  }
  void expect_at(Duration moment, const Endpoint& server, std::string_view path,
                 std::string_view part) {
    ++expected_;
    ask_at(moment, server, path, [this, moment, part = std::string(part)](const std::string& text) {
      EXPECT_TRUE(text.contains(part)) << moment.count() << ": " << text;
      ++seen_;
    });
  }
  /// Runs until all cores have ended.
  int run() {
    const Instant began = platform_.now();
    const auto body = [this](Scope& scope) -> Task<Result<>> {
      if (admin_) scope.spawn(admin_->serve(scope));
      http::ServeOptions options;
      options.endpoint = service_;
      options.limits = limits_;
      co_return co_await http::serve(scope, router_, options);
    };
    const int status = runtime_.run_on_each_core(body);
    took_ = platform_.now() - began;
    EXPECT_EQ(seen_, expected_);
    return status;
  }
  static RuntimeOptions two_cores() {
    RuntimeOptions options;
    options.cores = 2;
    options.announce = false;
    options.drain_timeout = 60s;
    return options;
  }
  bool is_open(const Endpoint& server) { return connect(server).connected(); }

  const Endpoint service_ = Endpoint::loopback(80);
  const Endpoint at_ = Endpoint::loopback(9090);
  MemoryPlatform platform_{{.cores = 2}};
  Runtime runtime_{platform_, two_cores()};
  http::Limits limits_;
  http::Router router_;
  std::optional<AdminListener> admin_{std::in_place, options_at(at_)};
  std::deque<MemoryPeer> peers_;
  Duration took_{};
  int expected_ = 0;
  int seen_ = 0;
};

TEST_F(AdminDrainTest, AnswersUntilTheDrainHasEnded) {
  expect_at(1s, service_, "/slow", "");
  expect_at(1s, at_, "/readyz", R"({"status":"ok"})");
  at(2s, [this] { runtime_.drain(); });
  for (const Duration moment : {3s, 5s, 9s}) {
    expect_at(moment, at_, "/livez", "HTTP/1.1 200 ");
    expect_at(moment, at_, "/readyz", "HTTP/1.1 503 ");
    expect_at(moment, at_, "/readyz", R"("failed":["draining"])");
    expect_at(moment, at_, "/weir/connections.txt", "GET /slow");
  }
  at(5s, [this] { EXPECT_FALSE(is_open(service_)); });
  EXPECT_EQ(run(), 0);
  EXPECT_FALSE(is_open(at_));
}

TEST_F(AdminDrainTest, DoesNotMakeTheDrainLonger) {
  std::optional<Duration> alone;
  for (const bool has_admin : {false, true}) {
    peers_.clear();
    if (!has_admin) admin_.reset();
    if (has_admin) admin_.emplace(options_at(at_));
    at(1s, [this] { connect(service_).send(get("/slow")); });
    at(2s, [this] { runtime_.drain(); });
    if (has_admin) {
      at(1s, [this] { connect(at_).send(get("/livez")); });            // an idle connection
      at(1s, [this] { connect(at_).send("GET /li"); });                // a part of a head
      at(10900ms, [this] { connect(at_).send(get("/weir/cores")); });  // at the end of the drain
      at(10950ms, [this] { connect(at_); });                           // a silent connection
    }
    EXPECT_EQ(run(), 0);
    if (!alone) alone = took_;
    EXPECT_EQ(took_, *alone);
  }
}

TEST_F(AdminDrainTest, OutlivesTheServicesOfAnApp) {
  App app;
  AdminListenerOptions options = options_at(at_);
  options.app = &app;
  admin_.emplace(std::move(options));
  admin_->health().add_check("disk", []() -> Result<> { return fail(Errc::not_found); });
  serve_admin(app, *admin_);
  http::ServeOptions serving;
  serving.endpoint = service_;
  serve_http(app, router_, serving);
  expect_at(1s, service_, "/slow", "");
  expect_at(1s, at_, "/readyz", R"("failed":["disk"])");
  at(2s, [this] { runtime_.drain(); });
  expect_at(5s, at_, "/livez", "HTTP/1.1 200 ");
  expect_at(5s, at_, "/readyz", R"("failed":["draining")");
  expect_at(5s, at_, "/weir/services.txt", "HttpServer");
  ask_at(5s, at_, "/readyz", [](const std::string& text) {
    EXPECT_FALSE(text.contains("disk")) << "checks may use what has ended";
  });
  EXPECT_EQ(app.run(runtime_), 0);
  EXPECT_EQ(seen_, expected_);
  EXPECT_FALSE(is_open(at_));
}

TEST_F(AdminDrainTest, EndsWithTheAppThatStopsWithoutADrain) {
  App app;
  serve_admin(app, *admin_);
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    if (scope.loop().core() != 0) co_return {};
    WEIR_CO_TRY(co_await app.start());
    EXPECT_TRUE(is_open(at_));
    MemoryPeer& idle = connect(at_);
    idle.send(get("/livez"));
    std::ignore = co_await sleep(1s);
    co_await app.stop();
    EXPECT_FALSE(is_open(at_));
    EXPECT_TRUE(idle.ended());
    co_return {};
  };
  EXPECT_EQ(runtime_.run_on_each_core(body), 0);
}

TEST_F(AdminDrainTest, EndsIfItsTaskIsCancelled) {
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    CancelSource cancel(scope.context().cancel);
    const Context own{&scope.loop(), &cancel};
    const auto cancel_later = [&]() -> Task<> {
      std::ignore = co_await sleep(2s);
      cancel.cancel();
    };
    scope.spawn(cancel_later());
    auto serving = in_context(own, admin_->serve(scope));
    const auto served = co_await std::move(serving);
    EXPECT_EQ(served.error(), Errc::cancelled);
    if (scope.loop().core() == 1) co_return {};
    std::ignore = co_await sleep(1s);
    EXPECT_FALSE(is_open(at_)) << "on both cores";
    co_return {};
  };
  expect_at(500ms, at_, "/livez", "HTTP/1.1 200 ");
  at(1s, [this] { connect(at_); });
  EXPECT_EQ(runtime_.run_on_each_core(body), 0);
  EXPECT_EQ(seen_, expected_);
}

TEST_F(AdminDrainTest, IsReachedWhileTheServiceHasAllItsConnections) {
  limits_.connections_max = 2;
  at(1s, [this] {
    connect(service_).send(get("/slow"));
    connect(service_).send(get("/slow"));
  });
  expect_at(2s, service_, "/", "HTTP/1.1 503 ");
  expect_at(2s, at_, "/readyz", "HTTP/1.1 200 ");
  expect_at(2s, at_, "/weir/cores", "HTTP/1.1 200 ");
  at(5s, [this] { runtime_.drain(); });
  EXPECT_EQ(run(), 0);
}

TEST_F(AdminDrainTest, LeavesTheConnectionsOfTheService) {
  limits_.connections_max = 1;
  AdminListenerOptions options = options_at(at_);
  options.connections_max = 3;
  admin_.emplace(std::move(options));
  at(1s, [this] {
    for (int count = 0; count < 3; ++count) connect(at_).send("GET /livez");
  });
  expect_at(2s, at_, "/livez", "HTTP/1.1 503 ");
  expect_at(2s, service_, "/", "fast");
  expect_at(20s, at_, "/livez", "HTTP/1.1 200 ");  // those with a part of a request were closed
  at(30s, [this] { runtime_.drain(); });
  EXPECT_EQ(run(), 0);
}

TEST_F(AdminDrainTest, IsReachedWhileSilentConnectionsFillIt) {
  AdminListenerOptions options = options_at(at_);
  options.connections_max = 3;
  admin_.emplace(std::move(options));
  for (const Duration moment : {1s, 3s, 5s}) {
    // One after the other, so that each core has some.
    for (int count = 0; count < 9; ++count) {
      at(moment + count * 10ms, [this] { connect(at_); });
    }
    expect_at(moment + 1500ms, at_, "/livez", "HTTP/1.1 200 ");
  }
  at(30s, [this] { runtime_.drain(); });
  EXPECT_EQ(run(), 0);
}

/// A service without a limit of its own, on a machine with few descriptors.
TEST(AdminListenerDescriptors, AreLeftByAServiceThatIsFull) {
  MemoryPlatform platform({.descriptors_max = 140});
  RuntimeOptions options;
  options.announce = false;
  Runtime runtime(platform, options);
  http::Router router;
  AdminListener admin;
  std::deque<MemoryPeer> clients;
  std::deque<MemoryPeer> operators;
  const auto body = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(admin.serve(scope));
    http::ServeOptions serving;
    serving.endpoint = Endpoint::loopback(80);
    scope.spawn(http::serve(scope, router, serving));
    std::ignore = co_await sleep(1s);
    for (int count = 0; count < 300; ++count) {
      clients.emplace_back(platform, Endpoint::loopback(80));
    }
    std::ignore = co_await sleep(500ms);
    const std::string line = platform.logged().front();
    const std::size_t begin = line.find("http://") + 7;
    const Endpoint pages = Endpoint::parse(line.substr(begin, line.rfind("/weir") - begin)).value();
    for (int count = 0; count < 64; ++count) {
      MemoryPeer& peer = operators.emplace_back(platform, pages);
      peer.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    std::ignore = co_await sleep(500ms);
    for (MemoryPeer& each : operators) {
      EXPECT_TRUE(each.received().starts_with("HTTP/1.1 200 ")) << each.received();
    }
    runtime.drain();
    co_return {};
  };
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
  EXPECT_EQ(operators.size(), 64U);
}

}  // namespace
}  // namespace weir::admin_drain_test

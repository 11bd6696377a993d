// Tests of routes of services: they exist while the service runs, and replacements take them over.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/app/http_server.hpp"
#include "weir/app/test/app_fixture.hpp"
#include "weir/http/router/service_routes.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::app_routes_test {
namespace {

using Lines = std::vector<std::string>;

/// The text of the page. Its start takes a second, and so does its stop.
struct Text : JournaledService {
  Text(const Journal& journal, std::string of)
      : JournaledService(journal, "text " + of), words(std::move(of)) {}
  Task<Result<>> start() {
    std::ignore = co_await sleep(1s);
    if (words == "bad") co_return fail(Errc::limit_reached);
    co_return {};
  }
  Task<> stop() {
    write("stopping");
    std::ignore = co_await sleep(1s);
  }
  std::string words;
};

struct Page : JournaledService {
  Page(const Journal& journal, Text& of, http::ServiceRoutes& routes)
      : JournaledService(journal, "page of " + of.words), text(of) {
    routes.get("/page", [this] { return http::text(text.words); });
    routes.get("/slow", [this]() -> Task<http::Response> {
      std::ignore = co_await sleep(3s);
      co_return http::text(text.words);
    });
    if (text.words == "clash") {
      routes.get("/fixed", [this] { return http::text(text.words); });
    }
  }
  Text& text;
};

class AppRoutes : public AppTest {
 protected:
  AppRoutes() {
    routes_.get("/fixed", [] { return http::text("fixed"); });
  }
  void SetUp() override {
    AppTest::SetUp();
    app_.mount(routes_, {.wait_timeout = 5s, .retry_after = 2s});
    server_ = serve_http(app_, routes_, {.endpoint = os::Address::loopback(80)});
    page_ = app_.per_core<Page>();
  }
  void TearDown() override {
    peers_.clear();
    if (app_.running()) stop();
    AppTest::TearDown();
  }

  ServiceId text(const std::string& words,
                 ReplacePolicy replace_policy = ReplacePolicy::side_by_side) {
    return app_.per_core([words](const Journal& journal) { return Text(journal, words); },
                         {.replace_policy = replace_policy});
  }
  MemoryPeer& send_get(std::string_view path, std::uint16_t port = 80) {
    peers_.push_back(std::make_unique<MemoryPeer>(platform_, os::Address::loopback(port)));
    peers_.back()->send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return *peers_.back();
  }
  static std::string responses_to(MemoryPeer& peer) {
    std::string all;
    for (const sim::HttpResponse& each : sim::parse_http_responses(peer.take())) {
      all += std::to_string(each.status) + (each.status == 200 ? " " + each.body : "");
    }
    return all;
  }
  std::string ask(std::string_view path, std::uint16_t port = 80) {
    MemoryPeer& peer = send_get(path, port);
    platform_.run_until_idle(*loop_);
    return responses_to(peer);
  }
  /// Sends a request every 250 ms for `length`; answers() then returns the distinct responses in
  /// order.
  void get_repeatedly(Duration length) {
    for (Duration when{}; when < length; when += 250ms) {
      platform_.at(platform_.now() + when, [this] { repeated_.push_back(&send_get("/page")); });
    }
  }
  Lines answers() {
    platform_.run_until_idle(*loop_);
    Lines lines;
    for (MemoryPeer* const each : repeated_) {
      std::string response = responses_to(*each);
      if (lines.empty() || lines.back() != response) lines.push_back(std::move(response));
    }
    return lines;
  }

  /// Starts the stopped server while the loop drains. All services then stop in order.
  void restart_server_in_drain() {
    ASSERT_TRUE(run(app_.stop(server_)));
    loop_->drain();
    ASSERT_TRUE(run(app_.start(server_)));
    lines_.clear();
    stop();
    EXPECT_EQ(lines_,
              (std::vector<std::string>{"page of a gone", "text a stopping", "text a gone"}));
  }

  http::Router routes_;
  ServiceId server_;
  ServiceId page_;
  std::vector<std::unique_ptr<MemoryPeer>> peers_;
  std::vector<MemoryPeer*> repeated_;
};

TEST_F(AppRoutes, ExistWhileTheServiceRuns) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  EXPECT_EQ(ask("/page"), "200 a");
  ASSERT_TRUE(run(app_.stop(page_)));
  EXPECT_EQ(ask("/page"), "404");
  ASSERT_TRUE(run(app_.start(page_)));
  EXPECT_EQ(ask("/page"), "200 a");
  ASSERT_TRUE(run(app_.stop(a)));
  EXPECT_EQ(ask("/page"), "404");
  EXPECT_EQ(ask("/fixed"), "200 fixed");
  ASSERT_TRUE(run(app_.start(a)));
  ASSERT_TRUE(run(app_.remove(page_)));
  EXPECT_EQ(ask("/page"), "404");
}

TEST_F(AppRoutes, RequestsWaitUntilAllServicesHaveStarted) {
  text("a");
  MemoryPeer* early = nullptr;
  platform_.at(platform_.now() + 500ms, [&] { early = &send_get("/page"); });
  ASSERT_TRUE(start());
  platform_.run_until_idle(*loop_);
  EXPECT_EQ(responses_to(*early), "200 a");
}

TEST_F(AppRoutes, AStoppingServiceFinishesItsRequestsFirst) {
  text("a");
  ASSERT_TRUE(start());
  MemoryPeer& slow = send_get("/slow");
  platform_.advance(*loop_, 1s);
  lines_.clear();
  const Instant before = platform_.now();
  ASSERT_TRUE(run(app_.stop(page_)));
  EXPECT_EQ(platform_.now() - before, 2s);
  EXPECT_EQ(lines_, Lines{"page of a gone"});
  EXPECT_EQ(responses_to(slow), "200 a");
}

struct Desk : JournaledService {
  Desk(const Journal& journal, http::ServiceRoutes& routes) : JournaledService(journal, "desk") {
    routes.get("/desk", [this]() -> Task<http::Response> {
      std::ignore = co_await sleep(3s);
      write("answers");
      co_return http::text("desk");
    });
  }
  Task<> stop() {
    write("stopping");
    co_return;
  }
};

TEST_F(AppRoutes, RequestsEndBeforeTheStopOfTheirService) {
  text("a");
  const ServiceId desk = app_.per_core<Desk>();
  ASSERT_TRUE(start());
  MemoryPeer& slow = send_get("/desk");
  platform_.advance(*loop_, 1s);
  lines_.clear();
  ASSERT_TRUE(run(app_.stop(desk)));
  EXPECT_EQ(lines_, (Lines{"desk answers", "desk stopping", "desk gone"}));
  EXPECT_EQ(responses_to(slow), "200 desk");
}

TEST_F(AppRoutes, TheServerStopsBeforeTheOtherServices) {
  text("a");
  ASSERT_TRUE(start());
  MemoryPeer& slow = send_get("/slow");
  platform_.advance(*loop_, 1s);
  lines_.clear();
  stop();
  EXPECT_EQ(responses_to(slow), "200 a");
  EXPECT_EQ(lines_, (Lines{"page of a gone", "text a stopping", "text a gone"}));
  EXPECT_FALSE(MemoryPeer(platform_, os::Address::loopback(80)).connected());
  ASSERT_TRUE(start());
  EXPECT_EQ(ask("/page"), "200 a");
}

TEST_F(AppRoutes, ADrainingServerAnswersConnectionsThatWait) {
  text("a");
  ASSERT_TRUE(start());
  MemoryPeer& waiting = send_get("/page");
  loop_->drain();
  const std::size_t logged_before = platform_.logged().size();
  stop();
  EXPECT_EQ(responses_to(waiting), "200 a");
  EXPECT_FALSE(MemoryPeer(platform_, os::Address::loopback(80)).connected());
  ASSERT_EQ(platform_.logged().size(), logged_before + 1);
  EXPECT_TRUE(platform_.logged().back().starts_with("weir: core 0: ")) << platform_.logged().back();
}

TEST_F(AppRoutes, AServerMayStartAgainWhileItsLoopDrains) {
  text("a");
  ASSERT_TRUE(start());
  restart_server_in_drain();
}

// The server then ends immediately, because the other process serves later connections.
TEST_F(AppRoutes, AServerMayStartWhileItsLoopDrainsASocketOfAnotherProcess) {
  text("a");
  const os::Address address = os::Address::loopback(80);
  auto socket = std::make_shared<loop::SharedListener>(
      platform_, platform_.listen(address, {}).value(), address);
  socket->set_externally_owned();
  loop_->group().listener_registry().inherit({socket});
  ASSERT_TRUE(start());
  EXPECT_EQ(ask("/page"), "200 a");
  restart_server_in_drain();
}

TEST_F(AppRoutes, AServerMayDrainBeforeAllServicesHaveStarted) {
  text("a");
  CancelSource cancel;
  platform_.at(platform_.now() + 500ms, [&] {
    loop_->drain();
    cancel.cancel();
  });
  EXPECT_EQ(run(app_.start(), &cancel).error(), Errc::cancelled);
  EXPECT_EQ(elapsed(), 1500ms) << "the time of the text's stop";
  EXPECT_EQ(lines_, (Lines{"text a made", "text a stopping", "text a gone"}));
}

TEST_F(AppRoutes, AServerHasTheLimitsOfItsOptions) {
  text("a");
  http::Limits limits;
  limits.head.request_line_max = static_cast<std::uint32_t>(sizeof("GET /page HTTP/1.1") - 1);
  serve_http(app_, routes_, {.endpoint = os::Address::loopback(81), .limits = limits});
  ASSERT_TRUE(start());
  EXPECT_EQ(ask("/page", 81), "200 a");
  EXPECT_EQ(ask("/fixed", 81), "414");
  EXPECT_EQ(ask("/fixed"), "200 fixed");
}

TEST_F(AppRoutes, AWrongRouterFailsTheStartAndIsLogged) {
  text("a");
  routes_.get("/fixed", [] { return http::text("fixed again"); });
  EXPECT_EQ(start().error(), Errc::conflict);
  EXPECT_EQ(std::ranges::count(platform_.logged(), "weir: GET /fixed: conflicts with /fixed"), 1);
}

TEST_F(AppRoutes, AnEndpointThatIsTakenFailsTheStart) {
  text("a");
  const auto listen = []() -> Task<Result<tcp::Listener>> {
    const ListenOptions not_shared{.reuse_port = false};
    co_return co_await tcp::listen(Endpoint::loopback(80), not_shared);
  };
  auto taken = run(listen());
  ASSERT_TRUE(taken);
  EXPECT_EQ(start().error(), std::errc::address_in_use);
  taken = fail(Errc::closed);
  EXPECT_TRUE(start());
}

TEST_F(AppRoutes, ReplacementSideBySideLosesNoRequest) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  const ServiceId b = text("b");
  get_repeatedly(6s);
  MemoryPeer& slow = send_get("/slow");
  ASSERT_TRUE(run(app_.replace(a, b)));
  EXPECT_EQ(responses_to(slow), "200 a");
  platform_.advance(*loop_, 6s);
  EXPECT_EQ(answers(), (Lines{"200 a", "200 b"}));
  expect_order({"text b made", "page of b made", "page of a gone", "text a stopping"});
}

TEST_F(AppRoutes, AReplacementServesItsRoutesAgainAfterAStop) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  const ServiceId b = text("b");
  ASSERT_TRUE(run(app_.replace(a, b)));
  EXPECT_EQ(ask("/page"), "200 b");
  ASSERT_TRUE(run(app_.stop(b)));
  EXPECT_EQ(ask("/page"), "404");
  ASSERT_TRUE(run(app_.start(b)));
  EXPECT_EQ(ask("/page"), "200 b");
}

TEST_F(AppRoutes, AFailingReplacementChangesNothing) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  get_repeatedly(6s);
  EXPECT_EQ(run(app_.replace(a, text("bad"))).error(), Errc::limit_reached);
  EXPECT_EQ(run(app_.replace(a, text("clash"))).error(), Errc::conflict);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("GET /fixed: route already exists"), std::string::npos)
      << app_.errors().front();
  platform_.advance(*loop_, 6s);
  EXPECT_EQ(answers(), Lines{"200 a"});
  EXPECT_TRUE(has_line("text clash gone"));
  EXPECT_FALSE(has_line("text a gone"));
}

TEST_F(AppRoutes, RequestsWaitForAnExclusiveReplacement) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  const ServiceId b = text("b", ReplacePolicy::exclusive);
  get_repeatedly(4s);
  ASSERT_TRUE(run(app_.replace(a, b)));
  platform_.advance(*loop_, 4s);
  EXPECT_EQ(answers(), Lines{"200 b"});
  expect_order(
      {"page of a gone", "text a stopping", "text a gone", "text b made", "page of b made"});
  EXPECT_EQ(run(app_.stop(a)).error(), Errc::not_found);
  ASSERT_TRUE(run(app_.stop(page_)));
  EXPECT_EQ(ask("/page"), "404") << "no replacement follows any more";
}

struct SlowText : Text {
  explicit SlowText(const Journal& journal) : Text(journal, "slow") {}
  Task<Result<>> start() {
    std::ignore = co_await sleep(8s);
    co_return {};
  }
};

// The old service stops for 1 s, and the new one starts for 8 s. The wait_timeout is 5 s.
TEST_F(AppRoutes, ARequestWaitsForAReplacementAtMostTheWaitTimeout) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  const ServiceId slow =
      app_.per_core<Text>([](const Journal& journal) { return SlowText(journal); },
                          {.replace_policy = ReplacePolicy::exclusive});
  MemoryPeer* early = nullptr;
  MemoryPeer* late = nullptr;
  const Instant begins = platform_.now();
  platform_.at(begins + 500ms, [&] { early = &send_get("/page"); });
  platform_.at(begins + 6s, [&] { late = &send_get("/page"); });
  platform_.at(begins + 5400ms, [&] { EXPECT_EQ(early->received(), ""); });
  platform_.at(begins + 5600ms, [&] {
    const auto answers = sim::parse_http_responses(early->received());
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].status, 503);
    EXPECT_EQ(answers[0].header("Retry-After"), "2");
  });
  ASSERT_TRUE(run(app_.replace(a, slow)));
  EXPECT_EQ(platform_.now() - begins, 9s);
  platform_.run_until_idle(*loop_);
  EXPECT_EQ(responses_to(*late), "200 slow");
}

TEST_F(AppRoutes, TheOldServiceRunsAgainIfTheNewOneCannotStart) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  const ServiceId bad = text("bad", ReplacePolicy::exclusive);
  get_repeatedly(4s);
  EXPECT_EQ(run(app_.replace(a, bad)).error(), Errc::limit_reached);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("Text on core 0 could not start"), std::string::npos);
  platform_.advance(*loop_, 4s);
  EXPECT_EQ(answers(), Lines{"200 a"});
  expect_order({"text a gone", "text bad made", "text bad gone"});
  EXPECT_EQ(run(app_.stop(bad)).error(), Errc::not_found);
  const ServiceId clash = text("clash", ReplacePolicy::exclusive);
  EXPECT_EQ(run(app_.replace(a, clash)).error(), Errc::conflict) << "a dependant cannot start";
  EXPECT_EQ(ask("/page"), "200 a");
  for (const ServiceReport& each : app_.explain().services) {
    EXPECT_EQ(each.state, ServiceState::running) << each.name;
  }
  ASSERT_TRUE(run(app_.replace(a, text("c", ReplacePolicy::exclusive))));
  EXPECT_EQ(ask("/page"), "200 c");
}

struct Once {
  explicit Once(bool& good) : good_(good) {}
  Task<Result<>> start() {
    if (!std::exchange(good_, false)) co_return fail(Errc::unsupported);
    co_return {};
  }
  bool& good_;
};
struct OnceBad : Once {
  using Once::Once;
};
struct OncePage {
  OncePage(const Once&, http::ServiceRoutes& routes) {
    routes.get("/once", [] { return http::text("once"); });
  }
};

TEST_F(AppRoutes, BothErrorsAreReportedIfNeitherServiceCanStart) {
  text("a");
  bool good = true;
  bool never = false;
  const ServiceId once = app_.shared([&good] { return Once(good); });
  app_.shared<OncePage>();
  ASSERT_TRUE(start());
  const ServiceId other = app_.shared<Once>([&never] { return OnceBad(never); },
                                            {.replace_policy = ReplacePolicy::exclusive});
  MemoryPeer* waits = nullptr;
  platform_.at(platform_.now(), [&] { waits = &send_get("/once"); });
  EXPECT_EQ(run(app_.replace(once, other)).error(), Errc::unsupported);
  EXPECT_EQ(app_.errors().size(), 2U);
  EXPECT_EQ(ask("/once"), "404");
  EXPECT_EQ(ask("/page"), "200 a");
  EXPECT_NE(waits, nullptr);
}

TEST_F(AppRoutes, AServiceMayRequestItsOwnReplacement) {
  ServiceId a = text("a");
  ServiceId b;
  struct Admin {
    Admin(App& app, http::ServiceRoutes& routes, const Text& of, ServiceId& from, ServiceId& to) {
      routes.post("/replace", [&]() -> Task<http::Response> {
        const Result<> replaced = co_await app.replace(from, to);
        co_return http::text(of.words + (replaced ? " done" : " " + replaced.error().message()));
      });
    }
  };
  app_.per_core([&](App& app, http::ServiceRoutes& routes,
                    const Text& of) { return Admin(app, routes, of, a, b); },
                {.stop_timeout = 2s});
  ASSERT_TRUE(start());
  b = text("b");
  peers_.push_back(std::make_unique<MemoryPeer>(platform_, os::Address::loopback(80)));
  peers_.back()->send("POST /replace HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  platform_.advance(*loop_, 10s);
  // The request belongs to the old instance and waits for its end, until it is cancelled.
  EXPECT_EQ(responses_to(*peers_.back()), "503");
  EXPECT_EQ(ask("/page"), "200 b");
  EXPECT_EQ(run(app_.stop(a)).error(), Errc::not_found);
}

TEST_F(AppRoutes, RoutesNeedAMountedRouterAndAllCores) {
  App other;
  struct Shared {
    explicit Shared(http::ServiceRoutes& routes) {
      routes.get("/x", [] { return http::text("x"); });
    }
  };
  struct ByRequest {
    ByRequest(http::ServiceRoutes&, inject::Requester) {}
  };
  const auto takes = [](std::string_view name) {
    return std::string(name) + " takes http::ServiceRoutes, but ";
  };
  const std::string shared = takes(inject::type<Shared>.name);
  other.shared<Shared>();
  EXPECT_EQ(run(other.start()).error(), Errc::bad_configuration);
  EXPECT_EQ(other.errors(), Lines{shared + "no router is mounted (call App::mount())"});

  app_.on_core<Shared>(0);
  app_.per_core<ByRequest>();
  text("a");
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  EXPECT_EQ(app_.errors(),
            (Lines{shared + "it exists only on core 0, and all cores serve routes (register it as "
                            "shared)",
                   takes(inject::type<ByRequest>.name) +
                       "each requiring service gets its own instance (let those services register "
                       "routes)"}));
}

TEST_F(AppRoutes, ARouteOfAServiceThatCannotStartIsNotServed) {
  struct Broken {
    explicit Broken(http::ServiceRoutes& routes) {
      routes.get("/broken", [] { return http::text("broken"); });
      throw std::runtime_error("no luck");
    }
  };
  struct Unready {
    explicit Unready(http::ServiceRoutes& routes) {
      routes.get("/unready", [] { return http::text("unready"); });
    }
    static Task<Result<>> start() { co_return fail(Errc::unsupported); }
  };
  text("a");
  ASSERT_TRUE(start());
  const ServiceId broken = app_.shared<Broken>();
  EXPECT_EQ(run(app_.apply()).error(), std::errc::state_not_recoverable);
  const ServiceId unready = app_.shared<Unready>();
  EXPECT_EQ(run(app_.apply()).error(), Errc::unsupported);
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(ask("/broken"), "404");
    EXPECT_EQ(ask("/unready"), "404");
    EXPECT_EQ(run(app_.start(broken)).error(), std::errc::state_not_recoverable);
    EXPECT_EQ(run(app_.start(unready)).error(), Errc::unsupported);
  }
  EXPECT_EQ(ask("/page"), "200 a");
}

TEST_F(AppRoutes, ARouteOfAnotherServiceCannotBeRegistered) {
  struct Rival : JournaledService {
    Rival(const Journal& journal, http::ServiceRoutes& routes)
        : JournaledService(journal, "rival") {
      routes.get("/page", [] { return http::text("rival"); });
    }
    Task<> stop() {
      write("stopping");
      co_return;
    }
  };
  text("a");
  ASSERT_TRUE(start());
  app_.shared<Rival>();
  EXPECT_EQ(run(app_.apply()).error(), Errc::conflict);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("GET /page: already registered by "), std::string::npos)
      << app_.errors().front();
  EXPECT_EQ(ask("/page"), "200 a");
  expect_order({"rival made", "rival stopping", "rival gone"});
}

}  // namespace
}  // namespace weir::app_routes_test

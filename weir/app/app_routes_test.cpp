// Routes of services: they come and go with them, and change hands when those are replaced.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/app/test/app_fixture.hpp"
#include "weir/app/http_server.hpp"
#include "weir/http/router/service_routes.hpp"
#include "weir/testing/http_answers.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir {
namespace {

using Lines = std::vector<std::string>;

/// What the page says; its start takes a second, and so does its stop.
struct Text : Said {
  Text(const Journal& journal, std::string of)
      : Said(journal, "text " + of), words(std::move(of)) {}
  Task<Result<>> start() {
    static_cast<void>(co_await sleep(1s));
    if (words == "bad") co_return fail(Errc::limit_reached);
    co_return {};
  }
  Task<> stop() {
    say("stopping");
    static_cast<void>(co_await sleep(1s));
  }
  std::string words;
};

struct Page : Said {
  Page(const Journal& journal, Text& of, http::Routes& routes)
      : Said(journal, "page of " + of.words), text(of) {
    routes.get("/page", [this] { return http::text(text.words); });
    routes.get("/slow", [this]() -> Task<http::Response> {
      static_cast<void>(co_await sleep(3s));
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
    app_.mount(routes_, {.wait_max = 5s, .retry_after = 2s});
    serve_http(app_, routes_, {.endpoint = os::Address::loopback(80)});
    page_ = app_.per_core<Page>();
  }
  void TearDown() override {
    peers_.clear();
    if (app_.running()) stop();
    AppTest::TearDown();
  }

  ServiceId text(const std::string& words, Replacing replacing = Replacing::side_by_side) {
    return app_.per_core([words](const Journal& journal) { return Text(journal, words); },
                         {.replacing = replacing});
  }
  MemoryPeer& send_get(std::string_view path) {
    peers_.push_back(std::make_unique<MemoryPeer>(host_, os::Address::loopback(80)));
    peers_.back()->send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    return *peers_.back();
  }
  static std::string said_to(MemoryPeer& peer) {
    std::string all;
    for (const HttpAnswer& each : read_http_answers(peer.take())) {
      all += std::to_string(each.status) + (each.status == 200 ? " " + each.body : "");
    }
    return all;
  }
  std::string ask(std::string_view path) {
    MemoryPeer& peer = send_get(path);
    host_.run_until_idle(*loop_);
    return said_to(peer);
  }
  /// Asks every quarter of a second for so long, and then says what was answered, each once.
  void ask_all_along(Duration length) {
    for (Duration when{}; when < length; when += 250ms) {
      host_.at(host_.now() + when, [this] { asked_.push_back(&send_get("/page")); });
    }
  }
  Lines answers() {
    host_.run_until_idle(*loop_);
    Lines lines;
    for (MemoryPeer* const each : asked_) {
      std::string said = said_to(*each);
      if (lines.empty() || lines.back() != said) lines.push_back(std::move(said));
    }
    return lines;
  }

  http::Router routes_;
  ServiceId page_;
  std::vector<std::unique_ptr<MemoryPeer>> peers_;
  std::vector<MemoryPeer*> asked_;
};

TEST_F(AppRoutes, AreThereWhileTheServiceRuns) {
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

TEST_F(AppRoutes, NobodyIsServedBeforeAllHasStarted) {
  text("a");
  MemoryPeer* early = nullptr;
  host_.at(host_.now() + 500ms, [&] { early = &send_get("/page"); });
  ASSERT_TRUE(start());
  host_.run_until_idle(*loop_);
  EXPECT_EQ(said_to(*early), "200 a");
}

TEST_F(AppRoutes, AStoppingServiceFinishesItsRequestsFirst) {
  text("a");
  ASSERT_TRUE(start());
  MemoryPeer& slow = send_get("/slow");
  host_.advance(*loop_, 1s);
  lines_.clear();
  const Instant before = host_.now();
  ASSERT_TRUE(run(app_.stop(page_)));
  EXPECT_EQ(host_.now() - before, 2s);
  EXPECT_EQ(lines_, Lines{"page of a gone"});
  EXPECT_EQ(said_to(slow), "200 a");
}

TEST_F(AppRoutes, WhenAllStopsTheServerEndsFirst) {
  text("a");
  ASSERT_TRUE(start());
  MemoryPeer& slow = send_get("/slow");
  host_.advance(*loop_, 1s);
  lines_.clear();
  stop();
  EXPECT_EQ(said_to(slow), "200 a");
  EXPECT_EQ(lines_, (Lines{"page of a gone", "text a stopping", "text a gone"}));
  EXPECT_FALSE(MemoryPeer(host_, os::Address::loopback(80)).connected());
  ASSERT_TRUE(start());
  EXPECT_EQ(ask("/page"), "200 a");
}

TEST_F(AppRoutes, ReplacedSideBySideNothingIsLost) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  const ServiceId b = text("b");
  ask_all_along(6s);
  MemoryPeer& slow = send_get("/slow");
  ASSERT_TRUE(run(app_.replace(a, b)));
  EXPECT_EQ(said_to(slow), "200 a");
  host_.advance(*loop_, 6s);
  EXPECT_EQ(answers(), (Lines{"200 a", "200 b"}));
  expect_order({"text b made", "page of b made", "page of a gone", "text a stopping"});
}

TEST_F(AppRoutes, WhatCannotStartChangesNothing) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  ask_all_along(6s);
  EXPECT_EQ(run(app_.replace(a, text("bad"))).error(), Errc::limit_reached);
  EXPECT_EQ(run(app_.replace(a, text("clash"))).error(), Errc::conflict);
  ASSERT_EQ(app_.problems().size(), 1U);
  EXPECT_NE(app_.problems().front().find("GET /fixed: there is such a route already"),
            std::string::npos)
      << app_.problems().front();
  host_.advance(*loop_, 6s);
  EXPECT_EQ(answers(), Lines{"200 a"});
  EXPECT_TRUE(said("text clash gone"));
  EXPECT_FALSE(said("text a gone"));
}

TEST_F(AppRoutes, ReplacedExclusivelyRequestsWait) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  const ServiceId b = text("b", Replacing::exclusive);
  ask_all_along(4s);
  ASSERT_TRUE(run(app_.replace(a, b)));
  host_.advance(*loop_, 4s);
  EXPECT_EQ(answers(), Lines{"200 b"});
  expect_order(
      {"page of a gone", "text a stopping", "text a gone", "text b made", "page of b made"});
  EXPECT_EQ(run(app_.stop(a)).error(), Errc::not_found);
}

TEST_F(AppRoutes, WhenTheNewOneCannotStartTheOldOneIsBack) {
  const ServiceId a = text("a");
  ASSERT_TRUE(start());
  const ServiceId bad = text("bad", Replacing::exclusive);
  ask_all_along(4s);
  EXPECT_EQ(run(app_.replace(a, bad)).error(), Errc::limit_reached);
  ASSERT_EQ(app_.problems().size(), 1U);
  EXPECT_NE(app_.problems().front().find("Text on core 0 could not start"), std::string::npos);
  host_.advance(*loop_, 4s);
  EXPECT_EQ(answers(), Lines{"200 a"});
  expect_order({"text a gone", "text bad made", "text bad gone"});
  EXPECT_EQ(run(app_.stop(bad)).error(), Errc::not_found);
  const ServiceId clash = text("clash", Replacing::exclusive);
  EXPECT_EQ(run(app_.replace(a, clash)).error(), Errc::conflict) << "a dependant cannot start";
  EXPECT_EQ(ask("/page"), "200 a");
  for (const ServiceReport& each : app_.explain().services) {
    EXPECT_EQ(each.state, ServiceState::running) << each.name;
  }
  ASSERT_TRUE(run(app_.replace(a, text("c", Replacing::exclusive))));
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
  OncePage(const Once&, http::Routes& routes) {
    routes.get("/once", [] { return http::text("once"); });
  }
};

TEST_F(AppRoutes, WhenTheOldOneCannotEitherBothAreTold) {
  text("a");
  bool good = true;
  bool never = false;
  const ServiceId once = app_.shared([&good] { return Once(good); });
  app_.shared<OncePage>();
  ASSERT_TRUE(start());
  const ServiceId other =
      app_.shared<Once>([&never] { return OnceBad(never); }, {.replacing = Replacing::exclusive});
  MemoryPeer* waits = nullptr;
  host_.at(host_.now(), [&] { waits = &send_get("/once"); });
  EXPECT_EQ(run(app_.replace(once, other)).error(), Errc::unsupported);
  EXPECT_EQ(app_.problems().size(), 2U);
  EXPECT_EQ(ask("/once"), "404");
  EXPECT_EQ(ask("/page"), "200 a");
  EXPECT_NE(waits, nullptr);
}

TEST_F(AppRoutes, AServiceMayAskForItsOwnReplacement) {
  ServiceId a = text("a");
  ServiceId b;
  struct Admin {
    Admin(App& app, http::Routes& routes, const Text& of, ServiceId& from, ServiceId& to) {
      routes.post("/replace", [&]() -> Task<http::Response> {
        const Result<> replaced = co_await app.replace(from, to);
        co_return http::text(of.words + (replaced ? " done" : " " + replaced.error().message()));
      });
    }
  };
  app_.per_core(
      [&](App& app, http::Routes& routes, const Text& of) { return Admin(app, routes, of, a, b); },
      {.stop_deadline = 2s});
  ASSERT_TRUE(start());
  b = text("b");
  peers_.push_back(std::make_unique<MemoryPeer>(host_, os::Address::loopback(80)));
  peers_.back()->send("POST /replace HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  host_.advance(*loop_, 10s);
  // It waits for the end of the old instance, whose request it is: until it is asked to stop.
  EXPECT_EQ(said_to(*peers_.back()), "503");
  EXPECT_EQ(ask("/page"), "200 b");
  EXPECT_EQ(run(app_.stop(a)).error(), Errc::not_found);
}

TEST_F(AppRoutes, RoutesNeedAPlace) {
  App other;
  struct Shared {
    explicit Shared(http::Routes& routes) {
      routes.get("/x", [] { return http::text("x"); });
    }
  };
  struct ByRequest {
    ByRequest(http::Routes&, Requester) {}
  };
  other.shared<Shared>();
  EXPECT_EQ(run(other.start()).error(), Errc::bad_configuration);
  ASSERT_EQ(other.problems().size(), 1U);
  EXPECT_NE(other.problems().front().find("no router is mounted"), std::string::npos);

  app_.on_core<Shared>(0);
  app_.per_core<ByRequest>();
  text("a");
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  EXPECT_EQ(app_.problems().size(), 2U);
}

TEST_F(AppRoutes, ARouteThatSomebodyHasCannotBeRegistered) {
  struct Rival : Said {
    Rival(const Journal& journal, http::Routes& routes) : Said(journal, "rival") {
      routes.get("/page", [] { return http::text("rival"); });
    }
    Task<> stop() {
      say("stopping");
      co_return;
    }
  };
  text("a");
  ASSERT_TRUE(start());
  app_.shared<Rival>();
  EXPECT_EQ(run(app_.apply()).error(), Errc::conflict);
  ASSERT_EQ(app_.problems().size(), 1U);
  EXPECT_NE(app_.problems().front().find("GET /page is "), std::string::npos)
      << app_.problems().front();
  EXPECT_EQ(ask("/page"), "200 a");
  expect_order({"rival made", "rival stopping", "rival gone"});
}

}  // namespace
}  // namespace weir

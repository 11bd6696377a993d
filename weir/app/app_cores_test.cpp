// Tests of apps on several cores, in memory and on threads.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/app/http_server.hpp"
#include "weir/app/test/app_fixture.hpp"
#include "weir/http/router/service_routes.hpp"
#include "weir/http_testing/detail/http_answers.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/testing/memory/detail/memory_peer.hpp"

namespace weir::app_cores_test {
namespace {

RuntimeOptions quiet(unsigned cores) {
  RuntimeOptions options;
  options.cores = cores;
  options.pin = false;
  options.announce = false;
  return options;
}

struct Config {
  Config() : core(Loop::current()->core()) {}
  Task<Result<>> start() {
    co_await yield();
    ready = true;
    co_return {};
  }
  unsigned core;
  bool ready = false;
};

/// A service that checks that it is made, used and destroyed on one core.
struct OnOne {
  explicit OnOne(Loop& loop) : owner_loop(loop) { check(); }
  ~OnOne() { check(); }
  Task<Result<>> start() {
    check();
    co_await yield();
    check();
    co_return {};
  }
  Task<> stop() {
    check();
    co_await yield();
    check();
  }
  void check() const { EXPECT_EQ(Loop::current(), &owner_loop); }
  Loop& owner_loop;
};

struct Store : OnOne {
  Store(Loop& loop, const Config& config) : OnOne(loop) {
    EXPECT_TRUE(config.ready);
    EXPECT_EQ(config.core, 0U);
  }
};

struct Web : OnOne {
  Web(Loop& loop, Store& store) : OnOne(loop) { EXPECT_EQ(&store.owner_loop, &loop); }
};

struct Last : OnOne {
  Last(Loop& loop, Web&, inject::Optional<Store> store) : OnOne(loop) {
    EXPECT_TRUE(store);
    EXPECT_EQ(loop.core(), 2U);
  }
};

struct Counters {
  mutable std::atomic<int> up{0};
};
struct Counted : OnOne {
  Counted(Loop& loop, const Web& web, const Counters& counters, inject::All<Store> stores)
      : OnOne(loop), counters_(counters) {
    EXPECT_EQ(&web.owner_loop, &loop);
    EXPECT_LE(stores.size(), 1U);
    ++counters_.up;
  }
  ~Counted() { --counters_.up; }
  const Counters& counters_;
};

void register_all(App& app) {
  app.shared<Counters>();
  app.per_core<Counted>();
  app.on_core<Last>(2);
  app.per_core<Web>();
  app.per_core<Store>();
  app.shared<Config>();
}

/// Runs `body(app)` on core 0 of a runtime of three.
void run_on_three(Runtime& runtime, const std::function<Task<>(App&)>& body) {
  App app;
  register_all(app);
  const auto on_first = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() == 0) co_await body(app);
  };
  EXPECT_EQ(runtime.run_on_each_core(on_first), 0);
}

Task<> start_and_stop(App& app) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(co_await app.start());
    const auto services = app.explain().services;
    EXPECT_EQ(services.size(), 1U + 1U + 1U + 3U * 3U);
    for (const ServiceReport& each : services) EXPECT_EQ(each.state, ServiceState::running);
    co_await app.stop();
  }
}

TEST(AppCores, EachServiceStaysOnItsCore) {
  MemoryPlatform platform({.cores = 3});
  Runtime runtime(platform, quiet(3));
  run_on_three(runtime, start_and_stop);
}

TEST(AppCoresOnThreads, EachServiceStaysOnItsCore) {
  Runtime runtime(quiet(3));
  run_on_three(runtime, start_and_stop);
}

Task<> change(App& app) {
  EXPECT_TRUE(co_await app.start());
  for (int i = 0; i < 20; ++i) {
    const ServiceId extra = app.per_core([](Loop& loop, const Web&) { return OnOne(loop); });
    EXPECT_TRUE(co_await app.apply());
    const auto services = app.explain().services;
    const auto web = std::ranges::find(services, inject::type<Web>.name, &ServiceReport::name);
    EXPECT_TRUE(co_await app.stop(web->id));
    EXPECT_TRUE(co_await app.start(web->id));
    EXPECT_TRUE(co_await app.remove(extra));
  }
  for (const ServiceReport& each : app.explain().services) {
    EXPECT_EQ(each.state, ServiceState::running);
  }
  co_await app.stop();
}

TEST(AppCores, ServicesChangeOnAllCores) {
  MemoryPlatform platform({.cores = 3});
  Runtime runtime(platform, quiet(3));
  run_on_three(runtime, change);
}

TEST(AppCoresOnThreads, ServicesChangeOnAllCores) {
  Runtime runtime(quiet(3));
  run_on_three(runtime, change);
}

struct Tool {};
struct Central {
  Central() : core(Loop::current()->core()) {}
  unsigned core;
};

TEST(AppCores, ASharedServiceLivesOnTheCoreOfTheStart) {
  MemoryPlatform platform({.cores = 3});
  Runtime runtime(platform, quiet(3));
  App app;
  unsigned users = 0;
  app.per_core([&users](Loop& loop, const Central& central, Tool&) {
    EXPECT_EQ(central.core, 1U);
    ++users;
    return OnOne(loop);
  });
  app.per_core([](Loop& loop, inject::Requester requester) {
    EXPECT_EQ(requester.core(), loop.core());
    return Tool();
  });
  const ServiceId central = app.shared<Central>();
  const auto find_core = [&]() -> Task<unsigned> {
    const Explanation explanation = co_await app.explain_async();
    const auto& services = explanation.services;
    EXPECT_EQ(services.size(), 3U * 2U + 1U);
    const auto found = std::ranges::find(services, central, &ServiceReport::id);
    co_return found == services.end() ? 99 : found->core;
  };
  const auto on_second = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() != 1) co_return;
    EXPECT_TRUE(co_await app.start());
    EXPECT_EQ(users, 3U);
    EXPECT_EQ(co_await find_core(), 1U);
    EXPECT_EQ(co_await on_core(0, find_core), 1U);
    co_await app.stop();
  };
  EXPECT_EQ(runtime.run_on_each_core(on_second), 0);
}

struct Extra {};

TEST(AppCores, AnAppMayRunOnAnotherRuntimeLater) {
  App app;
  register_all(app);
  for (int round = 0; round < 2; ++round) {
    MemoryPlatform platform({.cores = 3});
    Runtime runtime(platform, quiet(3));
    const auto on_first = [&](Scope& scope) -> Task<> {
      if (scope.loop().core() != 0) co_return;
      const ServiceId extra = app.per_core<Extra>();
      EXPECT_TRUE(co_await app.remove(extra)) << "also before the start";
      co_await start_and_stop(app);
    };
    EXPECT_EQ(runtime.run_on_each_core(on_first), 0);
  }
}

struct Gathering {
  explicit Gathering(inject::All<Extra> extras) : all(extras) {}
  inject::All<Extra> all;
};

Task<> add_extras(App& app) {
  const Gathering* gathering = nullptr;
  app.on_core(0, [&gathering](inject::All<Extra> extras) {
    auto made = std::make_unique<Gathering>(extras);
    gathering = made.get();
    return made;
  });
  EXPECT_TRUE(co_await app.start());
  app.on_core<Extra>(1);
  EXPECT_TRUE(co_await app.apply());
  EXPECT_EQ(gathering->all.size(), 0U) << "the extra is on another core";
  app.on_core<Extra>(0);
  EXPECT_TRUE(co_await app.apply());
  EXPECT_EQ(gathering->all.size(), 1U);
  app.per_core<Extra>();
  EXPECT_TRUE(co_await app.apply());
  EXPECT_EQ(gathering->all.size(), 2U) << "one for each registration";
  co_await app.stop();
}

TEST(AppCores, AllContainsLaterServicesOfItsOwnCoreOnly) {
  MemoryPlatform platform({.cores = 3});
  Runtime runtime(platform, quiet(3));
  run_on_three(runtime, add_extras);
}

struct FailingOnTwo : OnOne {
  FailingOnTwo(Loop& loop, Web&) : OnOne(loop) {}
  Task<Result<>> start() {
    if (owner_loop.core() != 2) co_return {};
    co_await yield();
    co_return fail(Errc::unsupported);
  }
};

TEST(AppCoresOnThreads, AFailureOnOneCoreStopsAll) {
  Runtime runtime(quiet(3));
  const auto body = [](App& app) -> Task<> {
    app.per_core<FailingOnTwo>();
    EXPECT_EQ((co_await app.start()).error(), Errc::unsupported);
    EXPECT_EQ(app.errors().size(), 1U);
    EXPECT_NE(app.errors().front().find("on core 2"), std::string::npos);
  };
  run_on_three(runtime, body);
}

/// A shared service that answers with the number of the core that calls it.
struct SharedPage {
  explicit SharedPage(http::ServiceRoutes& routes) {
    routes.get("/shared", [] { return http::text(std::to_string(Loop::current()->core())); });
  }
};
struct OwnPage {
  OwnPage(Loop& loop, http::ServiceRoutes& routes) {
    routes.get("/own", [&loop] {
      EXPECT_EQ(Loop::current(), &loop);
      return http::text(std::to_string(loop.core()));
    });
  }
};

/// An app with a server on each of three cores.
class AppRoutesOnCores : public MultiCoreTest {
 protected:
  using Lines = std::vector<std::string>;
  AppRoutesOnCores() { serve_http(app_, router_, {.endpoint = Endpoint::loopback(80)}); }

  /// Sends one request to the server of each core. Returns the answers in alphabetical order.
  Lines ask_each(std::string_view path) {
    Lines answers;
    std::vector<std::unique_ptr<MemoryPeer>> peers;
    for (std::size_t core = 0; core < loops().size(); ++core) {
      peers.push_back(std::make_unique<MemoryPeer>(platform_, os::Address::loopback(80)));
      peers.back()->send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    platform_.run_until_idle(loops());
    for (const auto& peer : peers) {
      for (const sim::HttpResponse& each : sim::parse_http_responses(peer->received())) {
        answers.push_back(std::to_string(each.status) +
                          (each.status == 200 ? " by " + each.body : ""));
      }
    }
    std::ranges::sort(answers);
    return answers;
  }
  /// Runs `body` on the app's core.
  void run_on_first(std::function<Task<>()> body) {
    std::vector<std::function<Task<>()>> bodies;
    bodies.push_back(std::move(body));
    run_on_cores(std::move(bodies));
  }

  const Lines by_all_{"200 by 0", "200 by 1", "200 by 2"};
  const Lines not_found_{3, "404"};
  http::Router router_;
  App app_;
};

TEST_F(AppRoutesOnCores, ASharedServiceAnswersOnEveryCore) {
  const ServiceId page = app_.shared<SharedPage>();
  app_.per_core<OwnPage>();
  run_on_first([&]() -> Task<> { EXPECT_TRUE(co_await app_.start()); });
  EXPECT_EQ(ask_each("/shared"), by_all_);
  EXPECT_EQ(ask_each("/own"), by_all_);
  run_on_first([&]() -> Task<> { EXPECT_TRUE(co_await app_.stop(page)); });
  EXPECT_EQ(ask_each("/shared"), not_found_);
  run_on_first([&]() -> Task<> { EXPECT_TRUE(co_await app_.start(page)); });
  EXPECT_EQ(ask_each("/shared"), by_all_);
  run_on_first([&]() -> Task<> {
    const ServiceId fresh = app_.shared([](http::ServiceRoutes& routes) {
      routes.get("/fresh", [] { return http::text(std::to_string(Loop::current()->core())); });
      return SharedPage(routes);
    });
    EXPECT_TRUE(co_await app_.replace(page, fresh));
  });
  EXPECT_EQ(ask_each("/shared"), by_all_);
  EXPECT_EQ(ask_each("/fresh"), by_all_);
  EXPECT_EQ(ask_each("/own"), by_all_);
  run_on_first([&]() -> Task<> { co_await app_.stop(); });
}

struct Endless {
  Task<Result<>> start() { co_return co_await sleep_until(never); }
};

TEST(AppRun, RunsUntilTheTerminateSignal) {
  for (const bool starting : {false, true}) {
    MemoryPlatform platform({.cores = 3});
    RuntimeOptions options = quiet(3);
    options.handle_signals = true;
    Runtime runtime(platform, options);
    App app;
    register_all(app);
    if (starting) app.per_core<Endless>();
    bool up = false;
    platform.at(platform.now() + 5s, [&] {
      up = app.running() && std::ranges::all_of(app.explain().services, [](const auto& each) {
             return each.state == ServiceState::running;
           });
      platform.raise(loop::Signal::terminate);
    });
    EXPECT_EQ(app.run(runtime), 0);
    EXPECT_EQ(up, !starting);
    EXPECT_FALSE(app.running());
  }
}

/// A service that asks its loop to drain when it has started.
struct EndsTheRun : OnOne {
  EndsTheRun(Loop& loop, Scope& scope, int& ends) : OnOne(loop), scope_(scope), ends_(ends) {}
  Task<Result<>> start() {
    scope_.spawn(end());
    co_return {};
  }
  Task<> stop() {
    ++ends_;
    co_return;
  }
  Task<> end() {
    co_await yield();
    owner_loop.drain();
  }
  Scope& scope_;
  int& ends_;
};
struct FailsAtOnce {
  static Task<Result<>> start() { co_return fail(Errc::unsupported); }
};

TEST(AppRun, MakesARuntimeOfItsOwn) {
  RuntimeOptions options = quiet(1);
  options.handle_signals = false;
  App app;
  int ends = 0;
  app.per_core([&ends](Loop& loop, Scope& scope) {
    return std::make_unique<EndsTheRun>(loop, scope, ends);
  });
  for (int round = 1; round <= 2; ++round) {
    EXPECT_EQ(app.run(options), 0);
    EXPECT_EQ(ends, round);
    EXPECT_FALSE(app.running());
  }
  App failing;
  failing.shared<FailsAtOnce>();
  EXPECT_EQ(failing.run(options), 1);
  EXPECT_EQ(failing.errors().size(), 1U);
}

TEST(AppRun, FailsIfAServiceFails) {
  MemoryPlatform platform({.cores = 3});
  Runtime runtime(platform, quiet(3));
  App app;
  register_all(app);
  app.per_core<FailingOnTwo>();
  EXPECT_EQ(app.run(runtime), 1);
  EXPECT_FALSE(app.running());
}

}  // namespace
}  // namespace weir::app_cores_test

// A service with routes is replaced, and at every step of that something else happens: the app is
// stopped, or one of its services is stopped, started or removed by hand, or whoever asked for the
// replacement goes. At each of them the app explains itself.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "weir/app/app.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/router/service_routes.hpp"

namespace weir {
namespace {

/// How many of everything there are.
struct Census {
  int alive = 0;
};
class Counted {
 public:
  explicit Counted(Census& census) : census_(census) { ++census_.alive; }
  ~Counted() { --census_.alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  Census& census_;
};

struct Version : Counted {
  explicit Version(Census& census) : Counted(census) {}
  Task<Result<>> start() {
    if (auto slept = co_await sleep(0s); !slept) co_return slept;
    co_return {};
  }
  Task<> stop() { co_await yield(); }
};
struct Page : Counted {
  Page(Census& census, http::Routes& routes, const char* path) : Counted(census) {
    routes.get(http::Pattern::parse(path).value(), [] { return http::text("page"); });
  }
};
struct SharedPage : Page {
  using Page::Page;
};

/// What strikes while a service is replaced. All but the first are the app's changes.
enum class Blow { app_stops, dependant_stops, dependant_starts, dependant_removed, old_removed };

template <Replacing how, Blow blow = Blow::app_stops>
struct Replaced {
  explicit Replaced(Strike& of) : strike(of) {
    app.mount(routes);
    old = app.shared([this] { return Version(census); });
    page = app.per_core(
        [this](const Version&, http::Routes& to) { return Page(census, to, "/page"); });
    app.shared([this](const Version&, http::Routes& to) { return SharedPage(census, to, "/all"); });
  }

  Task<> on(unsigned core) {
    if (core == 0) co_await life();
  }
  Task<> life() {
    EXPECT_TRUE(co_await app.start());
    if (blow == Blow::dependant_starts) {
      EXPECT_TRUE(co_await app.stop(page));
    }
    const auto body = [this](Scope& scope) -> Task<> {
      scope.spawn(act_when_struck());
      const ServiceId fresh = app.shared([this] { return Version(census); }, {.replacing = how});
      auto replacing = app.replace(old, fresh);
      const Result<> replaced = co_await strike.as_victim(1, std::move(replacing));
      EXPECT_TRUE(replaced || may_fail(replaced.error())) << replaced.error().message();
      fresh_is_left = !replaced && replaced.error() == Errc::not_found;
      strike.cancel_all();
    };
    static_cast<void>(co_await with_scope(body));
    explain();
    if (blow != Blow::app_stops) co_await look_at_what_is_left();
    co_await app.stop();
    EXPECT_EQ(census.alive, 0);
    EXPECT_EQ(routes.size(), 0U);
    EXPECT_TRUE(co_await app.start()) << "what is left fits together";
    EXPECT_EQ(census.alive, blow == Blow::dependant_removed ? 2 : 5);
    EXPECT_EQ(routes.size(), blow == Blow::dependant_removed ? 1U : 2U);
    co_await app.stop();
    over = true;
  }
  bool may_fail(std::error_code error) const {
    if (error == Errc::cancelled) return true;
    if (blow == Blow::app_stops) return error == Errc::conflict;
    return blow == Blow::old_removed && error == Errc::not_found;
  }

  Task<> act_when_struck() {
    const auto wait = []() -> Task<Result<>> { co_return co_await sleep_until(never); };
    auto waiting = wait();
    static_cast<void>(co_await strike.as_victim(0, std::move(waiting)));
    Context shield = co_await this_context();
    shield.cancel = nullptr;
    auto acting = in_context(shield, act());
    co_await std::move(acting);
  }
  Task<> act() {
    if (blow == Blow::app_stops) {
      co_await app.stop();
      EXPECT_EQ(census.alive, 0);
    } else if (blow == Blow::dependant_stops) {
      EXPECT_TRUE(co_await app.stop(page));
      EXPECT_EQ(running("::Page"), 0U);
    } else if (blow == Blow::dependant_starts) {
      EXPECT_TRUE(co_await app.start(page));
    } else if (blow == Blow::dependant_removed) {
      EXPECT_TRUE(co_await app.remove(page));
      EXPECT_EQ(running("::Page"), 0U);
    } else {
      const Result<> removed = co_await app.remove(old);
      EXPECT_TRUE(removed || removed.error() == Errc::not_found);
    }
  }
  /// Whatever had struck and whatever came of the replacement: what was asked for by hand holds.
  Task<> look_at_what_is_left() {
    const bool no_pages = blow == Blow::dependant_stops || blow == Blow::dependant_removed;
    const bool version = running("::Version") == 1;
    EXPECT_TRUE(version || blow == Blow::old_removed);
    EXPECT_EQ(running("::Page"), version && !no_pages ? 3U : 0U);
    EXPECT_EQ(running("::SharedPage"), version ? 1U : 0U);
    EXPECT_EQ(census.alive, !version ? 0 : no_pages ? 2 : 5) << "nobody is hidden";
    if (blow == Blow::dependant_stops) {
      EXPECT_TRUE(co_await app.start(page));
    }
    if (!version && !fresh_is_left) app.shared([this] { return Version(census); });
  }

  std::size_t running(std::string_view name) const {
    const Explanation now = app.explain();
    return static_cast<std::size_t>(std::ranges::count_if(now.services, [&](const auto& each) {
      return each.name.ends_with(name) && each.state == ServiceState::running;
    }));
  }
  /// Each index leads somewhere, and whoever waits says for what.
  void explain() const {
    const Explanation now = app.explain();
    for (const ServiceReport& each : now.services) {
      for (const std::size_t used : each.uses) EXPECT_LT(used, now.services.size());
      for (const std::size_t used : each.may_use) EXPECT_LT(used, now.services.size());
      if (each.state != ServiceState::waiting) continue;
      EXPECT_FALSE(each.waits_for.empty()) << each.name << " waits for nothing";
    }
  }
  bool outside() const {
    explain();
    return false;
  }
  void check() const {
    EXPECT_TRUE(over);
    EXPECT_EQ(census.alive, 0);
    EXPECT_EQ(routes.size(), 0U);
  }

  Strike& strike;
  Census census;
  http::Router routes;
  App app;
  ServiceId old;
  ServiceId page;
  bool fresh_is_left = false;  // registered, but no part of the app
  bool over = false;
};

using ReplacementSteps = CoresTest;

TEST_F(ReplacementSteps, SideBySide) {
  EXPECT_GT(sweep<Replaced<Replacing::side_by_side>>(2), 40U);
}

TEST_F(ReplacementSteps, Exclusively) {
  EXPECT_GT(sweep<Replaced<Replacing::exclusive>>(2), 40U);
}

TEST_F(ReplacementSteps, ADependantIsStoppedByHand) {
  EXPECT_GT((sweep<Replaced<Replacing::side_by_side, Blow::dependant_stops>>(2)), 40U);
  EXPECT_GT((sweep<Replaced<Replacing::exclusive, Blow::dependant_stops>>(2)), 40U);
}

TEST_F(ReplacementSteps, ADependantIsStartedByHand) {
  EXPECT_GT((sweep<Replaced<Replacing::side_by_side, Blow::dependant_starts>>(2)), 40U);
  EXPECT_GT((sweep<Replaced<Replacing::exclusive, Blow::dependant_starts>>(2)), 40U);
}

TEST_F(ReplacementSteps, ADependantIsRemoved) {
  EXPECT_GT((sweep<Replaced<Replacing::side_by_side, Blow::dependant_removed>>(2)), 40U);
  EXPECT_GT((sweep<Replaced<Replacing::exclusive, Blow::dependant_removed>>(2)), 40U);
}

TEST_F(ReplacementSteps, WhatIsReplacedIsRemoved) {
  EXPECT_GT((sweep<Replaced<Replacing::side_by_side, Blow::old_removed>>(2)), 40U);
  EXPECT_GT((sweep<Replaced<Replacing::exclusive, Blow::old_removed>>(2)), 40U);
}

}  // namespace
}  // namespace weir

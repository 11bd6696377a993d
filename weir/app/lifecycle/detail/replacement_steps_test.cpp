// Tests of the replacement of a service with routes that is interrupted at every step. The app is
// stopped; a service is stopped, started or removed; or the caller of the replacement is
// cancelled. The app explains itself at each step.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "weir/app/app.hpp"
#include "weir/http/router/router.hpp"
#include "weir/http/router/service_routes.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"

namespace weir::replacement_steps_test {
namespace {

/// The number of services that are alive.
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
  Page(Census& census, http::ServiceRoutes& routes, const char* path) : Counted(census) {
    routes.get(http::Pattern::parse(path).value(), [] { return http::text("page"); });
  }
};
struct SharedPage : Page {
  using Page::Page;
};

/// The change that interrupts a replacement.
enum class Interruption {
  app_stops,
  dependant_stops,
  dependant_starts,
  dependant_removed,
  old_removed
};

template <ReplacePolicy how, Interruption interruption = Interruption::app_stops>
struct Replaced {
  explicit Replaced(CancelInjector& of) : injector(of) {
    app.mount(routes);
    old = app.shared([this] { return Version(census); });
    page = app.per_core(
        [this](const Version&, http::ServiceRoutes& to) { return Page(census, to, "/page"); });
    app.shared(
        [this](const Version&, http::ServiceRoutes& to) { return SharedPage(census, to, "/all"); });
  }

  Task<> on(unsigned core) {
    if (core == 0) co_await life();
  }
  Task<> life() {
    EXPECT_TRUE(co_await app.start());
    if (interruption == Interruption::dependant_starts) {
      EXPECT_TRUE(co_await app.stop(page));
    }
    const auto body = [this](Scope& scope) -> Task<> {
      scope.spawn(act_when_cancelled());
      const ServiceId fresh =
          app.shared([this] { return Version(census); }, {.replace_policy = how});
      auto replacing = app.replace(old, fresh);
      const Result<> replaced = co_await injector.as_target(1, std::move(replacing));
      EXPECT_TRUE(replaced || may_fail(replaced.error())) << replaced.error().message();
      fresh_is_left = !replaced && replaced.error() == Errc::not_found;
      injector.cancel_all();
    };
    std::ignore = co_await with_scope(body);
    explain();
    if (interruption != Interruption::app_stops) co_await check_remaining();
    co_await app.stop();
    EXPECT_EQ(census.alive, 0);
    EXPECT_EQ(routes.size(), 0U);
    EXPECT_TRUE(co_await app.start()) << "what is left fits together";
    EXPECT_EQ(census.alive, interruption == Interruption::dependant_removed ? 2 : 5);
    EXPECT_EQ(routes.size(), interruption == Interruption::dependant_removed ? 1U : 2U);
    co_await app.stop();
    over = true;
  }
  bool may_fail(std::error_code error) const {
    if (error == Errc::cancelled) return true;
    if (interruption == Interruption::app_stops) return error == Errc::conflict;
    return interruption == Interruption::old_removed && error == Errc::not_found;
  }

  Task<> act_when_cancelled() {
    const auto wait = []() -> Task<Result<>> { co_return co_await sleep_until(never); };
    auto waiting = wait();
    std::ignore = co_await injector.as_target(0, std::move(waiting));
    Context shield = co_await this_context();
    shield.cancel = nullptr;
    auto acting = in_context(shield, act());
    co_await std::move(acting);
  }
  Task<> act() {
    if (interruption == Interruption::app_stops) {
      co_await app.stop();
      EXPECT_EQ(census.alive, 0);
    } else if (interruption == Interruption::dependant_stops) {
      EXPECT_TRUE(co_await app.stop(page));
      EXPECT_EQ(running("::Page"), 0U);
    } else if (interruption == Interruption::dependant_starts) {
      EXPECT_TRUE(co_await app.start(page));
    } else if (interruption == Interruption::dependant_removed) {
      EXPECT_TRUE(co_await app.remove(page));
      EXPECT_EQ(running("::Page"), 0U);
    } else {
      const Result<> removed = co_await app.remove(old);
      EXPECT_TRUE(removed || removed.error() == Errc::not_found);
    }
  }
  /// Checks the app after any interruption and any result: the explicit changes are in effect.
  Task<> check_remaining() {
    const bool no_pages = interruption == Interruption::dependant_stops ||
                          interruption == Interruption::dependant_removed;
    const bool version = running("::Version") == 1;
    EXPECT_TRUE(version || interruption == Interruption::old_removed);
    EXPECT_EQ(running("::Page"), version && !no_pages ? 3U : 0U);
    EXPECT_EQ(running("::SharedPage"), version ? 1U : 0U);
    EXPECT_EQ(census.alive, !version ? 0 : no_pages ? 2 : 5) << "no instance is hidden";
    if (interruption == Interruption::dependant_stops) {
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
  /// Checks that each index is valid and that each waiting service has a reason.
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

  CancelInjector& injector;
  Census census;
  http::Router routes;
  App app;
  ServiceId old;
  ServiceId page;
  bool fresh_is_left = false;  // registered, but not part of the app
  bool over = false;
};

using ReplacementSteps = MultiCoreTest;

TEST_F(ReplacementSteps, AReplacementSideBySideMayBeInterrupted) {
  EXPECT_GT(sweep<Replaced<ReplacePolicy::side_by_side>>(2), 40U);
}

TEST_F(ReplacementSteps, AnExclusiveReplacementMayBeInterrupted) {
  EXPECT_GT(sweep<Replaced<ReplacePolicy::exclusive>>(2), 40U);
}

TEST_F(ReplacementSteps, ADependantMayBeStopped) {
  EXPECT_GT((sweep<Replaced<ReplacePolicy::side_by_side, Interruption::dependant_stops>>(2)), 40U);
  EXPECT_GT((sweep<Replaced<ReplacePolicy::exclusive, Interruption::dependant_stops>>(2)), 40U);
}

TEST_F(ReplacementSteps, ADependantMayBeStarted) {
  EXPECT_GT((sweep<Replaced<ReplacePolicy::side_by_side, Interruption::dependant_starts>>(2)), 40U);
  EXPECT_GT((sweep<Replaced<ReplacePolicy::exclusive, Interruption::dependant_starts>>(2)), 40U);
}

TEST_F(ReplacementSteps, ADependantMayBeRemoved) {
  EXPECT_GT((sweep<Replaced<ReplacePolicy::side_by_side, Interruption::dependant_removed>>(2)),
            40U);
  EXPECT_GT((sweep<Replaced<ReplacePolicy::exclusive, Interruption::dependant_removed>>(2)), 40U);
}

TEST_F(ReplacementSteps, TheReplacedServiceMayBeRemoved) {
  EXPECT_GT((sweep<Replaced<ReplacePolicy::side_by_side, Interruption::old_removed>>(2)), 40U);
  EXPECT_GT((sweep<Replaced<ReplacePolicy::exclusive, Interruption::old_removed>>(2)), 40U);
}

}  // namespace
}  // namespace weir::replacement_steps_test

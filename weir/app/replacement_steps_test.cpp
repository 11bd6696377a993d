// A service with routes is replaced, and the app is stopped at every step of that; or whoever asked
// for it goes.
#include <cstddef>
#include <memory>
#include <utility>

#include "weir/app/app.hpp"
#include "weir/cores/cores_fixture.hpp"
#include "weir/http/router.hpp"
#include "weir/http/routes.hpp"

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

template <Replacing how>
struct Replaced {
  explicit Replaced(Strike& of) : strike(of) {
    app.mount(routes);
    old = app.shared([this] { return Version(census); });
    app.per_core([this](const Version&, http::Routes& to) { return Page(census, to, "/page"); });
    app.shared([this](const Version&, http::Routes& to) { return SharedPage(census, to, "/all"); });
  }

  Task<> on(unsigned core) {
    if (core == 0) co_await life();
  }
  Task<> life() {
    EXPECT_TRUE(co_await app.start());
    const auto body = [this](Scope& scope) -> Task<> {
      scope.spawn(stop_when_struck());
      const ServiceId fresh = app.shared([this] { return Version(census); }, {.replacing = how});
      auto replacing = app.replace(old, fresh);
      const Result<> replaced = co_await strike.as_victim(1, std::move(replacing));
      EXPECT_TRUE(replaced || replaced.error() == Errc::cancelled ||
                  replaced.error() == Errc::conflict)
          << replaced.error().message();
      strike.cancel_all();
    };
    static_cast<void>(co_await with_scope(body));
    co_await app.stop();
    EXPECT_EQ(census.alive, 0);
    EXPECT_EQ(routes.size(), 0U);
    EXPECT_TRUE(co_await app.start()) << "what is left fits together";
    EXPECT_EQ(census.alive, 5);
    EXPECT_EQ(routes.size(), 2U);
    co_await app.stop();
    over = true;
  }
  Task<> stop_when_struck() {
    const auto wait = []() -> Task<Result<>> { co_return co_await sleep_until(never); };
    auto waiting = wait();
    static_cast<void>(co_await strike.as_victim(0, std::move(waiting)));
    Context shield = co_await this_context();
    shield.cancel = nullptr;
    auto stopping = in_context(shield, app.stop());
    co_await std::move(stopping);
    EXPECT_EQ(census.alive, 0);
  }
  bool outside() const { return false; }
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
  bool over = false;
};

using ReplacementSteps = CoresTest;

TEST_F(ReplacementSteps, SideBySide) {
  EXPECT_GT(sweep<Replaced<Replacing::side_by_side>>(2), 40U);
}

TEST_F(ReplacementSteps, Exclusively) {
  EXPECT_GT(sweep<Replaced<Replacing::exclusive>>(2), 40U);
}

}  // namespace
}  // namespace weir

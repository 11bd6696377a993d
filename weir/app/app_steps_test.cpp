// Tests that stop or cancel an app at every step of its start and of its stop.
#include <cstddef>
#include <memory>
#include <vector>

#include "weir/app/app.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"

namespace weir::app_steps_test {
namespace {

/// The numbers of services that are alive and that were made.
struct Census {
  int alive = 0;
  int made = 0;
};

template <int N>
struct Counted {
  explicit Counted(Census& census) : census_(census) {
    ++census_.alive;
    ++census_.made;
  }
  ~Counted() { --census_.alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  Task<Result<>> start() {
    for (int i = 0; i < 2; ++i) {
      if (auto slept = co_await sleep(0s); !slept) co_return slept;
    }
    started_ = true;
    co_return {};
  }
  Task<> stop() {
    EXPECT_TRUE(started_);
    co_await yield();
    started_ = false;
  }
  bool started() const { return started_; }

 private:
  Census& census_;
  bool started_ = false;
};

/// An app with chains, a diamond, services made by request and optional ones, on all cores.
struct Diamond {
  explicit Diamond(CancelInjector& of) : injector(of) {
    app.shared([this] { return Made<0>(census, nullptr); });
    app.per_core([this](inject::Requester) { return Made<1>(census, nullptr); });
    app.per_core([this](const Made<0>& base, Made<1>&) { return Made<2>(census, &base); });
    app.per_core([this](Made<2>& below, Made<1>&) { return Made<3>(census, &below); });
    app.on_core(
        1, [this](Made<2>& below, inject::Optional<Made<3>>) { return Made<4>(census, &below); });
    app.per_core(
        [this](Made<2>& below, Made<3>&, inject::All<Made<4>>) { return Made<5>(census, &below); });
  }

  template <int N>
  struct Made : Counted<N> {
    template <class Below>
    Made(Census& census, const Below* below) : Counted<N>(census) {
      if (below != nullptr) {
        EXPECT_TRUE(below->started());
      }
    }
    Made(Census& census, std::nullptr_t) : Counted<N>(census) {}
  };

  Task<> on(unsigned core) {
    if (core == 0) co_await life();
  }
  Task<> life() {
    auto starting = app.start();
    const Result<> started = co_await injector.as_target(0, std::move(starting));
    injector.checkpoint();
    EXPECT_TRUE(started || started.error() == Errc::cancelled);
    EXPECT_EQ(app.running(), started.has_value());
    if (!started) {
      EXPECT_EQ(census.alive, 0);
    }
    // One is shared and one lives on core 1. Each core has three more; two of them have one by
    // request.
    if (started) {
      EXPECT_EQ(census.alive, 1 + 1 + 3 * (3 + 2));
    }
    if (started) {
      auto stopping = app.stop();
      co_await injector.as_target(1, std::move(stopping));
    }
    EXPECT_EQ(census.alive, 0);
    over = true;
  }
  bool outside() const { return false; }
  void check() const { EXPECT_TRUE(over); }

  CancelInjector& injector;
  Census census;
  App app;
  bool over = false;
};

using AppSteps = MultiCoreTest;

TEST_F(AppSteps, CancelledAtEveryStep) {
  EXPECT_GT(sweep<Diamond>(2), 40U);
}

/// Another task stops the app meanwhile.
struct StoppedMeanwhile : Diamond {
  using Diamond::Diamond;
  Task<> on(unsigned core) {
    if (core == 0) co_await both();
  }
  Task<> both() {
    const auto body = [this](Scope& scope) -> Task<> {
      scope.spawn(stop_when_cancelled());
      const Result<> started = co_await app.start();
      EXPECT_TRUE(started || started.error() == Errc::cancelled);
      if (!started) {
        EXPECT_EQ(census.alive, 0);
      }
      injector.cancel_all();
    };
    std::ignore = co_await with_scope(body);
    co_await app.stop();
    EXPECT_EQ(census.alive, 0);
    over = true;
  }
  Task<> stop_when_cancelled() {
    const auto wait = []() -> Task<Result<>> { co_return co_await sleep_until(never); };
    auto waiting = wait();
    const Result<> ended = co_await injector.as_target(0, std::move(waiting));
    EXPECT_FALSE(ended);
    Context shield = co_await this_context();
    shield.cancel = nullptr;
    auto stopping = in_context(shield, app.stop());
    co_await std::move(stopping);
    EXPECT_EQ(census.alive, 0);
  }
};

TEST_F(AppSteps, StoppedAtEveryStep) {
  EXPECT_GT(sweep<StoppedMeanwhile>(1), 20U);
}

}  // namespace
}  // namespace weir::app_steps_test

// Tests of Lazy parameters on several cores: in memory, step by step, and on threads.
#include "weir/app/handles/lazy.hpp"

#include <atomic>
#include <utility>

#include "weir/app/app.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"

namespace weir::lazy_cores_test {
namespace {

/// The number of services that are alive.
struct Census {
  mutable std::atomic<int> alive{0};
};

/// A service that checks that it is used on its own core only, and only while it runs.
struct Store {
  Store(const Census& of, Loop& loop) : census(of), owner_loop(loop) { ++census.alive; }
  ~Store() {
    EXPECT_EQ(Loop::current(), &owner_loop);
    --census.alive;
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  Task<Result<>> start() {
    if (auto slept = co_await sleep(0s); !slept) co_return slept;
    ready = true;
    co_return {};
  }
  Task<> stop() {
    co_await yield();
    ready = false;
  }
  void use() {
    EXPECT_EQ(Loop::current(), &owner_loop);
    EXPECT_TRUE(ready);
    ++uses;
  }
  const Census& census;
  Loop& owner_loop;
  bool ready = false;
  int uses = 0;
};

/// A service that uses a store repeatedly while it runs. An eager one also uses it in its start().
template <bool eager>
struct User {
  User(const Census& of, inject::Lazy<Store> from, Scope& scope)
      : census(of), store(from), spawning(scope) {
    ++census.alive;
  }
  ~User() { --census.alive; }
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  Task<Result<>> start() {
    if constexpr (eager) {
      WEIR_CO_TRY(const auto found, co_await store.get());
      found.get().use();
    }
    spawning.spawn(use());
    spawning.spawn(use());
    co_return {};
  }
  Task<> use() {
    while (!spawning.cancelled()) {
      const auto found = co_await store.get();
      if (found) found->get().use();
      std::ignore = co_await sleep(50us);  // leaves processor time to the other cores
    }
  }
  const Census& census;
  inject::Lazy<Store> store;
  Scope& spawning;
};

ServiceId register_all(App& app) {
  app.shared<Census>();
  app.per_core<User<false>>();
  app.per_core<User<true>>();
  return app.per_core<Store>();
}

/// Cancels the app at every step of its start and of its stop.
struct Steps {
  explicit Steps(CancelInjector& of) : injector(of) {
    app.shared([this] { return Counter(alive); });
    app.per_core([](const Counter& of) { return Counted(of); });
    app.per_core(
        [this](const Counter& of, inject::Lazy<Counted> lazy) { return Asks(of, lazy, late); });
    app.on_core(
        1, [this](const Counter& of, inject::Lazy<Counted> lazy) { return Asks(of, lazy, late); });
  }

  struct Counter {
    explicit Counter(int& of) : alive(of) {}
    int& alive;
  };
  struct Counted {
    explicit Counted(const Counter& of) : counter(&of) {}
    Counted(Counted&& other) noexcept
        : counter(std::exchange(other.counter, nullptr)), counts(std::exchange(other.counts, 0)) {}
    ~Counted() {
      if (counts != 0) --counter->alive;
    }
    Task<Result<>> start() {
      counts = 1;
      ++counter->alive;
      co_return co_await sleep(0s);
    }
    Task<> stop() { co_await yield(); }
    const Counter* counter;
    int counts = 0;
  };
  struct Asks : Counted {
    Asks(const Counter& of, inject::Lazy<Counted> from, int& missed)
        : Counted(of), lazy(from), late(missed) {}
    Task<Result<>> start() {
      if (auto started = co_await Counted::start(); !started) co_return started;
      WEIR_CO_TRY(const auto found, co_await lazy.get());
      EXPECT_EQ(found.get().counts, 1);
      co_return {};
    }
    Task<> stop() {
      // A service that was given is still available; otherwise get() fails without waiting.
      const auto found = co_await lazy.get();
      if (found) {
        EXPECT_EQ(found->get().counts, 1);
      }
      late += found ? 0 : 1;
    }
    inject::Lazy<Counted> lazy;
    int& late;
  };

  Task<> on(unsigned core) {
    if (core == 0) co_await life();
  }
  Task<> life() {
    auto starting = app.start();
    const Result<> started = co_await injector.as_target(0, std::move(starting));
    injector.checkpoint();
    EXPECT_TRUE(started || started.error() == Errc::cancelled);
    EXPECT_EQ(alive, started ? 3 + 3 + 1 : 0);
    if (started) {
      auto stopping = app.stop();
      co_await injector.as_target(1, std::move(stopping));
      EXPECT_EQ(late, 0);
    }
    EXPECT_EQ(alive, 0);
    over = true;
  }
  bool outside() const { return false; }
  void check() const { EXPECT_TRUE(over); }

  CancelInjector& injector;
  int alive = 0;
  int late = 0;
  App app;
  bool over = false;
};

using LazySteps = MultiCoreTest;

TEST_F(LazySteps, CancelledAtEveryStep) {
  EXPECT_GT(sweep<Steps>(2), 40U);
}

RuntimeOptions quiet(unsigned cores) {
  RuntimeOptions options;
  options.cores = cores;
  options.pin = false;
  options.announce = false;
  return options;
}

Task<> change(App& app, int rounds) {
  ServiceId store = register_all(app);
  for (int round = 0; round < rounds; ++round) {
    EXPECT_TRUE(co_await app.start());
    for (int time = 0; time < 4; ++time) {
      EXPECT_TRUE(co_await app.stop(store));
      EXPECT_TRUE(co_await app.start(store));
      const ServiceId fresh = app.per_core<Store>();
      EXPECT_TRUE(co_await app.replace(store, fresh));
      store = fresh;
    }
    for (const ServiceReport& each : app.explain().services) {
      EXPECT_EQ(each.state, ServiceState::running) << each.name;
    }
    co_await app.stop();
  }
}

void run_on_three(Runtime& runtime, int rounds) {
  App app;
  const auto on_first = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() == 0) co_await change(app, rounds);
  };
  EXPECT_EQ(runtime.run_on_each_core(on_first), 0);
}

TEST(LazyCores, ServicesMayBeStoppedStartedAndReplacedWhileInUse) {
  MemoryPlatform platform({.cores = 3});
  Runtime runtime(platform, quiet(3));
  run_on_three(runtime, 12);
}

TEST(LazyCoresOnThreads, ServicesMayBeStoppedStartedAndReplacedWhileInUse) {
  Runtime runtime(quiet(3));
  run_on_three(runtime, 2);
}

}  // namespace
}  // namespace weir::lazy_cores_test

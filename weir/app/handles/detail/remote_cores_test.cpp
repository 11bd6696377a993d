// Tests of calls to services on other cores that are stopped, started and replaced meanwhile: step
// by step in memory, and on threads.
#include "weir/app/handles/remote.hpp"

#include <atomic>
#include <memory>

#include "weir/app/app.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/runtime/test/runtime_fixture.hpp"

namespace weir::remote_cores_test {
namespace {

/// The sums of all amounts that ledgers have added and that callers have got results for.
struct Totals {
  mutable std::atomic<long> written{0};
  mutable std::atomic<long> answered{0};
};

class Ledger {
 public:
  Ledger(const Totals& totals, Loop& loop) : totals_(totals), owner_loop_(loop) {}
  ~Ledger() {
    EXPECT_EQ(Loop::current(), &owner_loop_);
    EXPECT_EQ(under_way_, 0);
    totals_.written += total_;
  }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  long add(long amount) { return total_ += amount; }
  Task<long> add_later(std::unique_ptr<long> amount) {
    EXPECT_EQ(Loop::current(), &owner_loop_);
    ++under_way_;
    co_await yield();
    --under_way_;
    co_return total_ += *amount;
  }
  Task<> stop() {
    EXPECT_EQ(under_way_, 0);
    co_return;
  }

 private:
  const Totals& totals_;
  Loop& owner_loop_;
  long total_ = 0;  // not atomic: only its own core writes it
  int under_way_ = 0;
};

/// A service on one core that is called from all cores.
class Clerk {
 public:
  explicit Clerk(inject::Remote<Ledger> ledger) : ledger_(ledger) {}
  Task<Result<long>> add(long amount) const { return ledger_.call(&Ledger::add, amount); }

 private:
  inject::Remote<Ledger> ledger_;
};

/// A service that calls the ledger repeatedly while it runs, directly or through the clerk.
class Caller {
 public:
  Caller(const Totals& totals, inject::Remote<Ledger> ledger, const Clerk& clerk, Scope& scope)
      : totals_(totals), ledger_(ledger), clerk_(clerk), scope_(scope) {}
  Task<Result<>> start() {
    for (int i = 0; i < 4; ++i) scope_.spawn(call());
    co_return {};
  }

 private:
  Task<> call() {
    for (int i = 0; !scope_.cancelled(); ++i) {
      Result<long> answer = fail(Errc::not_found);
      if (i % 3 == 0) {
        answer = co_await ledger_.call(&Ledger::add, 1L);
      } else if (i % 3 == 1) {
        answer = co_await clerk_.add(1);
      } else {
        answer = co_await ledger_.call(&Ledger::add_later, std::make_unique<long>(1));
      }
      if (answer) ++totals_.answered;
      std::ignore = co_await sleep(50us);  // leaves processor time to the other cores
    }
  }

  const Totals& totals_;
  inject::Remote<Ledger> ledger_;
  const Clerk& clerk_;
  Scope& scope_;
};

Task<> change(App& app, int rounds) {
  const Totals* totals = nullptr;
  app.shared<Totals>();
  app.shared<Clerk>();
  app.per_core<Caller>();
  struct Last {};
  app.on_core(0, [&totals](const Totals& of) {
    totals = &of;
    return Last();
  });
  ServiceId ledger = app.on_core<Ledger>(2);
  EXPECT_TRUE(co_await app.start());
  for (int round = 0; round < rounds; ++round) {
    const ServiceId fresh = app.on_core<Ledger>(round % 4 == 3 ? 1 : 2);
    EXPECT_TRUE(co_await app.replace(ledger, fresh));
    ledger = fresh;
    if (round % 8 != 0) continue;
    EXPECT_TRUE(co_await app.stop(ledger));
    EXPECT_TRUE(co_await app.start(ledger));
  }
  while (totals->answered < 100) std::ignore = co_await sleep(50us);
  for (const ServiceReport& each : app.explain().services) {
    EXPECT_EQ(each.state, ServiceState::running) << each.name;
  }
  EXPECT_TRUE(co_await app.remove(ledger));
  EXPECT_GE(totals->written, 100);
  const ServiceId last = app.on_core<Ledger>(0);
  EXPECT_TRUE(co_await app.apply());
  const Explanation services = app.explain();
  for (const ServiceReport& each : services.services) {
    if (each.name != inject::type<Caller>.name) continue;
    EXPECT_TRUE(co_await app.stop(each.id));
  }
  EXPECT_TRUE(co_await app.remove(last));
  EXPECT_EQ(totals->written, totals->answered) << "each call returned once, or was not made";
  co_await app.stop();
}

void run_on_three(Runtime& runtime, int rounds) {
  App app;
  const auto on_first = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() == 0) co_await change(app, rounds);
  };
  EXPECT_EQ(runtime.run_on_each_core(on_first), 0);
}

RuntimeOptions quiet(unsigned cores) {
  RuntimeOptions options;
  options.cores = cores;
  options.pin = false;
  options.announce = false;
  return options;
}

TEST(RemoteCores, NoCallIsLostWhileTheProviderIsReplaced) {
  MemoryPlatform platform({.cores = 3});
  Runtime runtime(platform, quiet(3));
  run_on_three(runtime, 40);
}

TEST(RemoteCoresOnThreads, NoCallIsLostWhileTheProviderIsReplaced) {
  Runtime runtime(quiet(3));
  run_on_three(runtime, 12);
}

/// A service that counts its running calls, for all cores of one thread.
struct Slow {
  explicit Slow(int& of) : under_way(of) {}
  Slow(Slow&& other) noexcept : under_way(other.under_way) {}
  ~Slow() { EXPECT_EQ(under_way, 0); }
  Task<Result<int>> work() {
    ++under_way;
    const Result<> slept = co_await sleep(0s);
    co_await yield();
    --under_way;
    if (!slept) co_return fail(slept.error());
    co_return 7;
  }
  int& under_way;
};

/// Cancels a call, or stops its provider, at every step.
struct Steps {
  explicit Steps(CancelInjector& of) : injector(of) {
    slow = app.on_core(1, [this] { return Slow(under_way); });
    app.on_core(0, [this](inject::Remote<Slow> of) {
      auto made = std::make_unique<User>(of);
      user = made.get();
      return made;
    });
  }
  struct User {
    explicit User(inject::Remote<Slow> of) : remote(of) {}
    inject::Remote<Slow> remote;
  };

  Task<> on(unsigned core) {
    if (core == 0) co_await life();
  }
  Task<> life() {
    EXPECT_TRUE(co_await app.start());
    const auto both = [this](Scope& scope) -> Task<> {
      scope.spawn(stop_when_cancelled());
      for (int i = 0; i < 3; ++i) {
        auto calling = user->remote.call(&Slow::work);
        const Result<int> answer = co_await injector.as_target(1, std::move(calling));
        injector.checkpoint();
        if (answer) {
          EXPECT_EQ(*answer, 7);
        } else if (answer.error() != Errc::not_found) {
          EXPECT_EQ(answer.error(), Errc::cancelled);
        }
      }
      injector.cancel_all();
    };
    EXPECT_TRUE(co_await with_scope(both));
    EXPECT_FALSE(user->remote);
    co_await app.stop();
    over = true;
  }
  Task<> stop_when_cancelled() {
    const auto wait = []() -> Task<Result<>> { co_return co_await sleep_until(never); };
    auto waiting = wait();
    EXPECT_FALSE(co_await injector.as_target(0, std::move(waiting)));
    EXPECT_TRUE(co_await app.stop(slow));
  }
  bool outside() const { return false; }
  void check() const { EXPECT_TRUE(over); }

  CancelInjector& injector;
  App app;
  ServiceId slow;
  User* user = nullptr;
  int under_way = 0;
  bool over = false;
};

using RemoteSteps = MultiCoreTest;

TEST_F(RemoteSteps, CallsMayBeCancelledOrStoppedAtEveryStep) {
  EXPECT_GT(sweep<Steps>(2), 40U);
}

}  // namespace
}  // namespace weir::remote_cores_test

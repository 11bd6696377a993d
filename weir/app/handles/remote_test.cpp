// Tests of calls to services on other cores.
#include "weir/app/handles/remote.hpp"

#include <array>
#include <concepts>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/app/test/app_fixture.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/sync/event.hpp"

namespace weir::remote_test {
namespace {

enum class Currency { euro, yen };
struct IsYen {
  bool operator()(Currency currency) const { return currency == Currency::yen; }
};

/// A service that checks that it is used on its own core only.
class Ledger {
 public:
  explicit Ledger(Loop& loop, int first = 0) : owner_loop_(loop), total_(first) {}
  ~Ledger() {
    check();
    EXPECT_EQ(under_way_, 0) << "destroyed during a call";
  }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  int add(int amount) {
    check();
    return total_ += amount;
  }
  Task<int> add_later(int amount) {
    check();
    co_await yield();
    co_return add(amount);
  }
  int total() const noexcept {
    check();
    return total_;
  }
  Result<int> take(int amount) {
    if (amount > total_) return fail(Errc::limit_reached);
    return total_ -= amount;
  }
  Task<Result<std::string>> name(std::string of, const std::string& title) {
    co_await yield();
    check();
    co_return title + " " + of;
  }
  void note(std::unique_ptr<std::string> text) { notes_.push_back(std::move(text)); }
  Task<> note_later(std::unique_ptr<std::string> text) {
    co_await yield();
    note(std::move(text));
  }
  std::size_t notes() const { return notes_.size(); }
  int throws() { throw std::runtime_error("out of ink"); }
  Task<Result<>> waits() {
    ++under_way_;
    const Result<> slept = co_await sleep(10s);
    check();
    --under_way_;
    co_return slept;
  }
  Task<Result<>> waits_for_ever() {
    ++under_way_;
    const Result<> slept = co_await sleep_until(never);
    --under_way_;
    co_return slept;
  }
  // Methods that other cores may not call.
  const std::string& title() const { return title_; }
  Task<std::reference_wrapper<std::string>> title_later() { co_return title_; }
  void write_to(std::string& text) const { text = title_; }

 private:
  void check() const { EXPECT_EQ(Loop::current(), &owner_loop_); }

  Loop& owner_loop_;
  int total_ = 0;
  int under_way_ = 0;
  std::vector<std::unique_ptr<std::string>> notes_;
  std::string title_;
};

// --- which methods may be called -----------------------------------------------------------------

template <auto method, class... Arguments>
concept Callable = requires(const inject::Remote<Ledger>& ledger, Arguments... arguments) {
  ledger.call(method, std::move(arguments)...);
};
template <auto method, class... Arguments>
concept CallableOnConst =
    requires(const inject::Remote<const Ledger>& ledger, Arguments... arguments) {
      ledger.call(method, std::move(arguments)...);
    };

TEST(RemoteMethod, ReturnsAResultOfAValue) {
  static_assert(Callable<&Ledger::add, int>);
  static_assert(Callable<&Ledger::total>);
  static_assert(Callable<&Ledger::name, std::string, std::string>);
  static_assert(Callable<&Ledger::note, std::unique_ptr<std::string>>);
  const auto gives = []<class T>([[maybe_unused]] auto call, std::type_identity<T>) {
    static_assert(
        std::same_as<decltype(call(std::declval<const inject::Remote<Ledger>&>())), Task<T>>);
  };
  gives([](const auto& of) { return of.call(&Ledger::add, 1); }, std::type_identity<Result<int>>());
  gives([](const auto& of) { return of.call(&Ledger::add_later, 1); },
        std::type_identity<Result<int>>());
  gives([](const auto& of) { return of.call(&Ledger::take, 1); },
        std::type_identity<Result<int>>());
  gives([](const auto& of) { return of.call(&Ledger::waits); }, std::type_identity<Result<>>());
  gives([](const auto& of) { return of.call(&Ledger::note, nullptr); },
        std::type_identity<Result<>>());
}

TEST(RemoteMethod, TakesAndReturnsNoReferences) {
  static_assert(!Callable<&Ledger::title>);
  static_assert(!Callable<&Ledger::title_later>);
  static_assert(!Callable<&Ledger::write_to, std::string>);
  static_assert(!Callable<&Ledger::write_to, std::reference_wrapper<std::string>>);
  static_assert(!Callable<&Ledger::add, std::reference_wrapper<int>>);
  static_assert(!Callable<&Ledger::add>);
  static_assert(!Callable<&Ledger::add, std::string>);
  static_assert(CallableOnConst<&Ledger::total>);
  static_assert(!CallableOnConst<&Ledger::add, int>);
}

// --- calls ---------------------------------------------------------------------------------------

RuntimeOptions quiet(unsigned cores) {
  RuntimeOptions options;
  options.cores = cores;
  options.pin = false;
  options.announce = false;
  return options;
}

/// Runs an app on three cores in memory, in virtual time.
class RemoteTest : public testing::Test {
 protected:
  /// A service on each core that calls the ledger.
  struct User {
    User(inject::Remote<Ledger> of, Loop& loop, Scope& scope)
        : ledger(of), owner_loop(loop), spawning(scope) {}
    inject::Remote<Ledger> ledger;
    Loop& owner_loop;
    Scope& spawning;
  };

  RemoteTest() : platform_({.cores = 3}) {
    users_id_ = app_.per_core([this](inject::Remote<Ledger> ledger, Loop& loop, Scope& scope) {
      auto made = std::make_unique<User>(ledger, loop, scope);
      users_[loop.core()] = made.get();
      return made;
    });
  }
  ServiceId add_ledger(unsigned core, int first = 0, const ServiceOptions& options = {}) {
    return app_.on_core(
        core, [first](Loop& loop) { return std::make_unique<Ledger>(loop, first); }, options);
  }
  /// Runs `body` on core 0 while the app runs.
  void run(const std::function<Task<>()>& body) {
    Runtime runtime(platform_, quiet(3));
    const auto on_first = [&](Scope& scope) -> Task<> {
      if (scope.loop().core() != 0) co_return;
      const Result<> started = co_await app_.start();
      EXPECT_TRUE(started);
      if (started) co_await body();
      co_await app_.stop();
    };
    EXPECT_EQ(runtime.run_on_each_core(on_first), 0);
  }
  /// Calls the method through the user on that core.
  template <class Method, class... Args>
  auto call(unsigned core, Method method, Args... args) {
    const auto there = [](User* user, Method of, auto... given) {
      return user->ledger.call(of, std::move(given)...);
    };
    return on_core(core, there, users_[core], method, std::move(args)...);
  }

  /// Returns true if the user on that core sees a ledger.
  Task<bool> has_ledger(unsigned core) {
    const auto there = [](const User* user) { return bool(user->ledger); };
    return on_core(core, there, users_[core]);
  }
  Task<> call_that_ends_well() { EXPECT_TRUE(co_await call(1, &Ledger::waits)); }
  Task<> call_that_is_cancelled() {
    EXPECT_EQ((co_await call(1, &Ledger::waits_for_ever)).error(), Errc::cancelled);
  }

  MemoryPlatform platform_;
  App app_;
  ServiceId users_id_;
  std::array<User*, 3> users_{};
};

TEST_F(RemoteTest, MethodsRunOnTheServicesOwnCore) {
  add_ledger(2, 100);
  const auto body = [&]() -> Task<> {
    for (const unsigned core : {0U, 1U, 2U}) {
      EXPECT_TRUE(co_await has_ledger(core));
      const Result<int> added = co_await call(core, &Ledger::add, 1);
      EXPECT_EQ(added.value(), 101 + static_cast<int>(core));
    }
    EXPECT_EQ((co_await call(0, &Ledger::add_later, 7)).value(), 110);
    EXPECT_EQ((co_await call(1, &Ledger::total)).value(), 110);
    EXPECT_EQ((co_await call(1, &Ledger::take, 1000)).error(), Errc::limit_reached);
    EXPECT_EQ((co_await call(1, &Ledger::take, 10)).value(), 100);
  };
  run(body);
}

/// A service on core 0 that all cores use.
struct Clerk {
  explicit Clerk(inject::Remote<Ledger> of) : ledger(of) {}
  template <class Method, class... Args>
  auto call(Method method, Args... args) const {
    return ledger.call(method, std::move(args)...);
  }
  inject::Remote<Ledger> ledger;
};

TEST_F(RemoteTest, ASharedServiceMayCallFromEveryCore) {
  const Clerk* clerk = nullptr;
  app_.shared([&clerk](inject::Remote<Ledger> of) {
    auto made = std::make_unique<Clerk>(of);
    clerk = made.get();
    return made;
  });
  ServiceId ledger = add_ledger(0);
  const auto body = [&]() -> Task<> {
    const auto add = [&clerk](int amount) { return clerk->call(&Ledger::add_later, amount); };
    const auto name = [&clerk] {
      return clerk->call(&Ledger::name, std::string("Weir"), std::string("Ledger of"));
    };
    const auto note = [&clerk] {
      return clerk->call(&Ledger::note, std::make_unique<std::string>("one"));
    };
    const auto waits = [&clerk] { return timeout(1s, clerk->call(&Ledger::waits_for_ever)); };
    for (const unsigned where : {0U, 1U, 2U}) {
      if (where != 0) {
        const ServiceId fresh = add_ledger(where);
        EXPECT_TRUE(co_await app_.replace(ledger, fresh));
        ledger = fresh;
      }
      for (const unsigned core : {0U, 1U, 2U}) {
        EXPECT_EQ((co_await on_core(core, add, 1)).value(), static_cast<int>(core) + 1);
        EXPECT_EQ((co_await on_core(core, name)).value(), "Ledger of Weir");
        EXPECT_TRUE(co_await on_core(core, note));
        EXPECT_EQ((co_await on_core(core, waits)).error(), Errc::timed_out);
      }
      EXPECT_TRUE(co_await app_.stop(ledger));
      for (const unsigned core : {0U, 1U, 2U}) {
        EXPECT_EQ((co_await on_core(core, add, 1)).error(), Errc::not_found);
      }
    }
  };
  run(body);
}

TEST_F(RemoteTest, ArgumentsAreMovedToTheOtherCore) {
  add_ledger(1);
  const auto body = [&]() -> Task<> {
    const Result<std::string> name =
        co_await call(0, &Ledger::name, std::string("Weir"), std::string("Ledger of"));
    EXPECT_EQ(name.value(), "Ledger of Weir");
    EXPECT_TRUE(co_await call(2, &Ledger::note, std::make_unique<std::string>("one")));
    EXPECT_TRUE(co_await call(0, &Ledger::note_later, std::make_unique<std::string>("two")));
    EXPECT_EQ((co_await call(1, &Ledger::notes)).value(), 2U);
  };
  run(body);
}

TEST_F(RemoteTest, ExceptionsReachTheCaller) {
  add_ledger(1);
  const auto body = [&]() -> Task<> {
    std::string caught;
    try {
      std::ignore = co_await call(0, &Ledger::throws);
    } catch (const std::runtime_error& thrown) {
      caught = thrown.what();
    }
    EXPECT_EQ(caught, "out of ink");
    EXPECT_EQ((co_await call(0, &Ledger::add, 1)).value(), 1);
  };
  run(body);
}

TEST_F(RemoteTest, AnAbsentProviderIsAnErrorAndANewOneIsCalled) {
  const ServiceId ledger = add_ledger(2);
  const auto body = [&]() -> Task<> {
    EXPECT_TRUE(co_await app_.stop(ledger));
    EXPECT_FALSE(co_await has_ledger(1));
    EXPECT_EQ((co_await call(1, &Ledger::add, 1)).error(), Errc::not_found);
    EXPECT_TRUE(co_await app_.start(ledger));
    EXPECT_EQ((co_await call(1, &Ledger::add, 2)).value(), 2) << "a new instance";
    EXPECT_TRUE(co_await app_.remove(ledger));
    EXPECT_EQ((co_await call(1, &Ledger::add, 1)).error(), Errc::not_found);
    add_ledger(0, 50);
    EXPECT_TRUE(co_await app_.apply());
    EXPECT_EQ((co_await call(1, &Ledger::add, 1)).value(), 51);
  };
  run(body);
}

TEST_F(RemoteTest, AStoppingProviderWaitsForRunningCalls) {
  const ServiceId ledger = add_ledger(2, 0, {.stop_timeout = 60s});
  const auto body = [&]() -> Task<> {
    const Instant before = platform_.now();
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(call_that_ends_well());
      std::ignore = co_await sleep(1s);
      EXPECT_TRUE(co_await app_.stop(ledger));
      EXPECT_EQ(platform_.now() - before, 10s);
    };
    EXPECT_TRUE(co_await with_scope(both));
    EXPECT_EQ((co_await call(1, &Ledger::waits)).error(), Errc::not_found);
  };
  run(body);
}

TEST_F(RemoteTest, NewCallsFailWhileAStoppingProviderWaits) {
  const ServiceId ledger = add_ledger(2);
  const auto body = [&]() -> Task<> {
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(call_that_ends_well());
      std::ignore = co_await sleep(1s);
      scope.spawn(app_.stop(ledger));
      std::ignore = co_await sleep(1s);
      EXPECT_EQ((co_await call(1, &Ledger::add, 1)).error(), Errc::not_found);
      EXPECT_EQ((co_await call(0, &Ledger::add, 1)).error(), Errc::not_found);
    };
    EXPECT_TRUE(co_await with_scope(both));
  };
  run(body);
}

TEST_F(RemoteTest, ACallbackReportsAStopThatWaitsForACall) {
  const ServiceId ledger = add_ledger(2, 0, {.stop_timeout = 60s});
  int changes = 0;
  const auto body = [&]() -> Task<> {
    const auto observe = [&changes](User* user) {
      user->ledger.on_change([&changes] { ++changes; });
    };
    co_await on_core(1, observe, users_[1]);
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(call_that_ends_well());
      std::ignore = co_await sleep(1s);
      scope.spawn(app_.stop(ledger));
      std::ignore = co_await sleep(1s);
      EXPECT_EQ(changes, 1);
    };
    EXPECT_TRUE(co_await with_scope(both));
    EXPECT_EQ(changes, 1) << "once for each departure";
  };
  run(body);
}

TEST_F(RemoteTest, RunningCallsAreCancelledAfterTheStopTimeout) {
  const ServiceId ledger = add_ledger(2, 0, {.stop_timeout = 5s});
  const auto body = [&]() -> Task<> {
    const Instant before = platform_.now();
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(call_that_is_cancelled());
      std::ignore = co_await sleep(1s);
      EXPECT_TRUE(co_await app_.stop(ledger));
      EXPECT_EQ(platform_.now() - before, 6s);
    };
    EXPECT_TRUE(co_await with_scope(both));
  };
  run(body);
}

TEST_F(RemoteTest, AStoppingProviderWaitsForTheLastOfSeveralCalls) {
  const ServiceId ledger = add_ledger(2, 0, {.stop_timeout = 60s});
  const auto body = [&]() -> Task<> {
    const Instant before = platform_.now();
    const auto both = [&](Scope& scope) -> Task<> {
      scope.spawn(call_that_ends_well());
      std::ignore = co_await sleep(1s);
      scope.spawn(call_that_ends_well());
      std::ignore = co_await sleep(1s);
      EXPECT_TRUE(co_await app_.stop(ledger));
      EXPECT_EQ(platform_.now() - before, 11s);
    };
    EXPECT_TRUE(co_await with_scope(both));
  };
  run(body);
}

TEST_F(RemoteTest, AllRunningCallsAreCancelledAfterTheStopTimeout) {
  const ServiceId ledger = add_ledger(2, 0, {.stop_timeout = 5s});
  const auto body = [&]() -> Task<> {
    const Instant before = platform_.now();
    const auto all_calls = [&](Scope& scope) -> Task<> {
      for (int calls = 0; calls < 3; ++calls) scope.spawn(call_that_is_cancelled());
      std::ignore = co_await sleep(1s);
      EXPECT_TRUE(co_await app_.stop(ledger));
      EXPECT_EQ(platform_.now() - before, 6s);
    };
    EXPECT_TRUE(co_await with_scope(all_calls));
  };
  run(body);
}

TEST_F(RemoteTest, TheCallerMayCancel) {
  add_ledger(2);
  const auto body = [&]() -> Task<> {
    const Instant before = platform_.now();
    auto calling = call(1, &Ledger::waits_for_ever);
    EXPECT_EQ((co_await timeout(2s, std::move(calling))).error(), Errc::timed_out);
    EXPECT_EQ(platform_.now() - before, 2s);
    EXPECT_EQ((co_await call(1, &Ledger::add, 1)).value(), 1);
  };
  run(body);
}

TEST_F(RemoteTest, TheCallerMayStopDuringACall) {
  add_ledger(2);
  const auto body = [&]() -> Task<> {
    const auto spawn = [](User* user) {
      user->spawning.spawn(user->ledger.call(&Ledger::waits_for_ever));
    };
    co_await on_core(1, spawn, users_[1]);
    std::ignore = co_await sleep(1s);
    EXPECT_TRUE(co_await app_.stop(users_id_));
    EXPECT_TRUE(co_await app_.start(users_id_));
    EXPECT_EQ((co_await call(1, &Ledger::add, 1)).value(), 1);
  };
  run(body);
}

TEST_F(RemoteTest, AReplacementGetsTheLaterCalls) {
  ServiceId ledger = add_ledger(2, 0);
  const auto body = [&]() -> Task<> {
    for (int round = 1; round <= 20; ++round) {
      const ServiceId fresh = add_ledger(2, 1000 * round);
      EXPECT_TRUE(co_await app_.replace(ledger, fresh));
      EXPECT_EQ((co_await call(1, &Ledger::add, 1)).value(), 1000 * round + 1);
      ledger = fresh;
    }
    const ServiceId elsewhere = add_ledger(1, 7);
    EXPECT_TRUE(co_await app_.replace(ledger, elsewhere));
    EXPECT_EQ((co_await call(1, &Ledger::total)).value(), 7);
  };
  run(body);
}

struct YenUser {
  explicit YenUser(inject::Remote<Ledger, IsYen> of) : ledger(of) {}
  inject::Remote<Ledger, IsYen> ledger;
};

TEST(RemoteFilter, SelectsTheFirstServiceThatIsPresent) {
  MemoryPlatform platform({.cores = 3});
  Runtime runtime(platform, quiet(3));
  App app;
  const YenUser* user = nullptr;
  app.on_core(0, [&user](inject::Remote<Ledger, IsYen> of) {
    auto made = std::make_unique<YenUser>(of);
    user = made.get();
    return made;
  });
  const auto add = [&app](unsigned core, int total, Currency currency) {
    return app.on_core(core, [total](Loop& loop) { return std::make_unique<Ledger>(loop, total); },
                       {.properties = {currency}});
  };
  add(1, 5, Currency::euro);
  const ServiceId first = add(2, 100, Currency::yen);
  const ServiceId second = add(1, 200, Currency::yen);
  const auto body = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() != 0) co_return;
    EXPECT_TRUE(co_await app.start());
    EXPECT_TRUE(co_await app.stop(second));
    EXPECT_EQ((co_await user->ledger.call(&Ledger::total)).value(), 100);
    EXPECT_TRUE(co_await app.start(second));
    EXPECT_EQ((co_await user->ledger.call(&Ledger::total)).value(), 100);
    EXPECT_TRUE(co_await app.stop(first));
    EXPECT_EQ((co_await user->ledger.call(&Ledger::total)).value(), 200);
    EXPECT_TRUE(co_await app.stop(second));
    EXPECT_EQ((co_await user->ledger.call(&Ledger::total)).error(), Errc::not_found);
    co_await app.stop();
  };
  EXPECT_EQ(runtime.run_on_each_core(body), 0);
}

struct Ping;
struct Pong {
  explicit Pong(inject::Remote<Ping> of) : ping(of) {}
  Task<Result<int>> back(int count);
  inject::Remote<Ping> ping;
};
struct Ping {
  explicit Ping(inject::Remote<Pong> of) : pong(of) {}
  Task<Result<int>> serve(int count) {
    if (count == 0) co_return 0;
    const Result<int> rest = co_await pong.call(&Pong::back, count - 1);
    if (!rest) co_return rest;
    co_return *rest + 1;
  }
  inject::Remote<Pong> pong;
};
Task<Result<int>> Pong::back(int count) {
  if (count == 0) co_return 0;
  const Result<int> rest = co_await ping.call(&Ping::serve, count - 1);
  if (!rest) co_return rest;
  co_return *rest + 1;
}

TEST_F(RemoteTest, TwoServicesMayCallEachOther) {
  add_ledger(0);
  app_.on_core<Ping>(1);
  app_.on_core<Pong>(2);
  const inject::Remote<Ping>* ping = nullptr;
  struct Last {
    explicit Last(inject::Remote<Ping> of) : own(of) {}
    inject::Remote<Ping> own;
  };
  app_.on_core(0, [&ping](inject::Remote<Ping> of) {
    auto made = std::make_unique<Last>(of);
    ping = &made->own;
    return made;
  });
  const auto body = [&]() -> Task<> {
    EXPECT_EQ((co_await ping->call(&Ping::serve, 20)).value(), 20);
  };
  run(body);
}

// --- choice of the provider ----------------------------------------------------------------------

/// Returns the error of start() in an app without the users above.
class RemoteProblems : public AppTest {
 protected:
  std::string problem() {
    EXPECT_EQ(start().error(), Errc::bad_configuration);
    EXPECT_EQ(app_.errors().size(), 1U);
    return app_.errors().empty() ? "" : app_.errors().front();
  }
};

struct Caller {
  explicit Caller(inject::Remote<Ledger> of) : ledger(of) {}
  inject::Remote<Ledger> ledger;
};
struct YenCaller {
  explicit YenCaller(inject::Remote<Ledger, IsYen> of) : ledger(of) {}
  inject::Remote<Ledger, IsYen> ledger;
};

TEST_F(RemoteProblems, AProviderIsRequired) {
  app_.per_core<Caller>();
  const std::string error = problem();
  EXPECT_NE(error.find("Caller takes "), error.npos) << error;
  EXPECT_NE(error.find("no service provides it"), error.npos) << error;
}

TEST_F(RemoteProblems, SeveralProvidersAreAnError) {
  app_.per_core<Caller>();
  for (int i = 0; i < 2; ++i) {
    app_.on_core(0, [](Loop& loop) { return std::make_unique<Ledger>(loop); });
  }
  const std::string error = problem();
  EXPECT_NE(error.find("there are several: "), error.npos) << error;
}

TEST_F(RemoteProblems, APerCoreProviderIsAnError) {
  app_.per_core<Caller>();
  app_.per_core([](Loop& loop) { return std::make_unique<Ledger>(loop); });
  const std::string error = problem();
  EXPECT_NE(error.find("but that service is per core"), error.npos) << error;
}

TEST_F(RemoteProblems, AProviderThatCannotBeCalledIsNamed) {
  const std::string takes = std::string(inject::type<Caller>.name) + " takes " +
                            std::string(inject::type<Ledger>.name) + " as Remote, but ";
  const auto errors_with = [this](const std::function<void(App&)>& add_provider) {
    App app;
    app.per_core<Caller>();
    add_provider(app);
    EXPECT_EQ(run(app.start()).error(), Errc::bad_configuration);
    return app.errors();
  };
  using Errors = std::vector<std::string>;
  EXPECT_EQ(errors_with([](App& app) {
              app.shared([](Loop& loop) { return std::make_unique<Ledger>(loop); });
            }),
            Errors{takes + "that service is shared"});
  EXPECT_EQ(errors_with([](App& app) {
              app.on_core(
                  0, [](Loop& loop, inject::Requester) { return std::make_unique<Ledger>(loop); });
            }),
            Errors{takes + "that service is created per requester"});
  EXPECT_EQ(errors_with([](App& app) {
              app.on_core(3, [](Loop& loop) { return std::make_unique<Ledger>(loop); });
            }),
            (Errors{std::string(inject::type<Ledger>.name) +
                        " is registered on core 3, but the number of cores is 1",
                    takes + "that service is on core 3"}));
}

TEST_F(RemoteProblems, AFilterThatAcceptsNoProviderIsNamed) {
  app_.on_core(0, [](Loop& loop) { return std::make_unique<Ledger>(loop); },
               {.properties = {Currency::euro}});
  app_.per_core<YenCaller>();
  EXPECT_EQ(problem(), std::string(inject::type<YenCaller>.name) + " takes " +
                           std::string(inject::type<Ledger>.name) +
                           " as Remote, but its filter accepts no service that provides it");
}

TEST_F(RemoteProblems, AFilterSelectsTheProvider) {
  app_.on_core(0, [](Loop& loop) { return std::make_unique<Ledger>(loop, 5); },
               {.properties = {Currency::euro}});
  app_.on_core(0, [](Loop& loop) { return std::make_unique<Ledger>(loop, 100); },
               {.properties = {Currency::yen}});
  const YenCaller* caller = nullptr;
  app_.per_core([&caller](inject::Remote<Ledger, IsYen> of) {
    auto made = std::make_unique<YenCaller>(of);
    caller = made.get();
    return made;
  });
  ASSERT_TRUE(start());
  EXPECT_EQ(run(caller->ledger.call(&Ledger::total)).value(), 100);
  stop();
}

}  // namespace
}  // namespace weir::remote_test

// Tests of the start and stop of an app's services, and of factories.
#include "weir/app/app.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/app/test/app_fixture.hpp"
#include "weir/task/combinators.hpp"

namespace weir::app_test {
namespace {

struct Store : JournaledService {
  explicit Store(const Journal& journal) : JournaledService(journal, "store") {}
  Task<Result<>> start() {
    write("starting");
    std::ignore = co_await sleep(1s);
    write("started");
    co_return {};
  }
  Task<> stop() {
    write("stopping");
    std::ignore = co_await sleep(1s);
    write("stopped");
  }
  int value() const { return 42; }
};

struct Cache : JournaledService {
  Cache(const Journal& journal, Store& store) : JournaledService(journal, "cache") {
    EXPECT_EQ(store.value(), 42);
  }
};

struct Web : JournaledService {
  Web(Cache&, Store&, const Journal& journal) : JournaledService(journal, "web") {}
  Task<Result<>> start() {
    write("started");
    co_return {};
  }
};

TEST_F(AppTest, StartsRequiredServicesFirstAndStopsThemLast) {
  app_.per_core<Web>();
  app_.per_core<Cache>();
  app_.per_core<Store>();
  ASSERT_TRUE(start());
  EXPECT_TRUE(app_.running());
  EXPECT_EQ(lines_, (std::vector<std::string>{"store made", "store starting", "store started",
                                              "cache made", "web made", "web started"}));
  lines_.clear();
  stop();
  EXPECT_FALSE(app_.running());
  EXPECT_EQ(lines_, (std::vector<std::string>{"web gone", "cache gone", "store stopping",
                                              "store stopped", "store gone"}));
}

TEST_F(AppTest, CanBeStartedAgain) {
  app_.per_core<Web>();
  app_.per_core<Cache>();
  app_.per_core<Store>();
  ASSERT_TRUE(start());
  stop();
  const auto first = std::exchange(lines_, {});
  ASSERT_TRUE(start());
  EXPECT_EQ(start().error(), Errc::conflict);
  stop();
  stop();
  EXPECT_EQ(lines_, first);
}

template <int N>
struct Slow {
  Task<Result<>> start() {
    std::ignore = co_await sleep(1s);
    co_return {};
  }
  Task<> stop() { std::ignore = co_await sleep(2s); }
};
struct NeedsSlow {
  NeedsSlow(Slow<0>&, Slow<1>&, Slow<2>&) {}
};

TEST_F(AppTest, IndependentServicesStartAndStopAtTheSameTime) {
  app_.per_core<Slow<0>>();
  app_.per_core<NeedsSlow>();
  app_.per_core<Slow<1>>();
  app_.per_core<Slow<2>>();
  ASSERT_TRUE(start());
  EXPECT_EQ(elapsed(), 1s);
  stop();
  EXPECT_EQ(elapsed(), 3s);
}

struct Failing : JournaledService {
  Failing(const Journal& journal, Store&) : JournaledService(journal, "failing") {}
  Task<Result<>> start() {
    std::ignore = co_await sleep(1s);
    co_return fail(Errc::limit_reached);
  }
  Task<> stop() {
    write("stopping");
    co_return;
  }
};
struct NeedsFailing : JournaledService {
  NeedsFailing(const Journal& journal, Failing&) : JournaledService(journal, "needs failing") {}
};

TEST_F(AppTest, AFailingStartStopsStartedServicesAndReportsTheReason) {
  app_.per_core<NeedsFailing>();
  app_.per_core<Failing>();
  app_.per_core<Store>();
  const Result<> started = start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error(), Errc::limit_reached);
  EXPECT_FALSE(app_.running());
  EXPECT_FALSE(has_line("needs failing made"));
  EXPECT_FALSE(has_line("failing stopping"));
  expect_order({"store started", "failing made", "failing gone", "store stopping", "store gone"});
  ASSERT_EQ(app_.errors().size(), 1U);
  const std::string problem = app_.errors().front();
  EXPECT_NE(problem.find("Failing on core 0 could not start"), problem.npos) << problem;
  EXPECT_NE(problem.find(started.error().message()), problem.npos) << problem;
  EXPECT_NE(problem.find("NeedsFailing"), problem.npos) << problem;
  EXPECT_FALSE(start());
  EXPECT_EQ(app_.errors(), std::vector<std::string>{problem}) << "the errors of the last start";
}

struct Endless : JournaledService {
  explicit Endless(const Journal& journal) : JournaledService(journal, "endless") {}
  Task<Result<>> start() {
    const Result<> slept = co_await sleep_until(never);
    write("gave up");
    co_return slept;
  }
  Task<> stop() {
    write("stopping");
    co_return;
  }
};

TEST_F(AppTest, OneFailureCancelsOtherStarts) {
  app_.per_core<Endless>();
  app_.per_core<Store>();
  app_.per_core<Failing>();
  EXPECT_EQ(start().error(), Errc::limit_reached);
  expect_order({"endless made", "endless gave up", "endless gone"});
  EXPECT_EQ(app_.errors().size(), 1U);
}

struct Itself {
  explicit Itself(const Journal&) : self(this) {}
  Itself* self;
};

TEST_F(AppTest, AStartThatWasCancelledBeforeLeavesNothingRunning) {
  app_.per_core<Itself>();
  CancelSource cancel;
  cancel.cancel();
  EXPECT_EQ(run(app_.start(), &cancel).error(), Errc::cancelled);
  EXPECT_FALSE(app_.running());
  EXPECT_TRUE(start());
  stop();
}

TEST_F(AppTest, AStartHasATimeout) {
  app_.per_core<Endless>({.start_timeout = 3s});
  EXPECT_EQ(start().error(), Errc::timed_out);
  EXPECT_EQ(elapsed(), 3s);
  EXPECT_EQ(lines_, (std::vector<std::string>{"endless made", "endless gave up", "endless gone"}));
}

TEST_F(AppTest, AStartThatSucceedsAfterItsTimeoutCounts) {
  app_.per_core<Store>({.start_timeout = 400ms});
  ASSERT_TRUE(start());
  EXPECT_EQ(elapsed(), 400ms) << "the call was cancelled";
  EXPECT_EQ(std::exchange(lines_, {}),
            (std::vector<std::string>{"store made", "store starting", "store started"}));
  stop();
  EXPECT_EQ(lines_, (std::vector<std::string>{"store stopping", "store stopped", "store gone"}));
}

struct StopsNever : JournaledService {
  explicit StopsNever(const Journal& journal) : JournaledService(journal, "stops never") {}
  Task<> stop() { std::ignore = co_await sleep_until(never); }
};

TEST_F(AppTest, AStopHasATimeout) {
  app_.per_core<StopsNever>({.stop_timeout = 4s});
  ASSERT_TRUE(start());
  stop();
  EXPECT_EQ(elapsed(), 4s);
  EXPECT_TRUE(has_line("stops never gone"));
  ASSERT_FALSE(platform_.logged().empty());
  EXPECT_NE(platform_.logged().back().find("StopsNever"), std::string::npos);
}

TEST_F(AppTest, AStartIsAConflictUntilTheStopHasEnded) {
  app_.per_core<StopsNever>({.stop_timeout = 4s});
  ASSERT_TRUE(start());
  const auto start_meanwhile = [&](Scope& scope) -> Task<> {
    scope.spawn(app_.stop());
    std::ignore = co_await sleep(3s);
    EXPECT_FALSE(app_.running());
    const Result<> again = co_await app_.start();
    EXPECT_EQ(again.error(), Errc::conflict);
  };
  EXPECT_TRUE(run(with_scope(start_meanwhile)));
  EXPECT_EQ(elapsed(), 4s);
  EXPECT_EQ(lines_, (std::vector<std::string>{"stops never made", "stops never gone"}));
  EXPECT_TRUE(start());
  stop();
}

TEST_F(AppTest, ASecondStartIsAConflictWhileTheFirstContinues) {
  app_.per_core<Slow<0>>();
  const auto start_first = [&]() -> Task<> { EXPECT_TRUE(co_await app_.start()); };
  const auto start_twice = [&](Scope& scope) -> Task<> {
    scope.spawn(start_first());
    std::ignore = co_await sleep(500ms);
    const Result<> second = co_await app_.start();
    EXPECT_EQ(second.error(), Errc::conflict);
  };
  EXPECT_TRUE(run(with_scope(start_twice)));
  EXPECT_EQ(elapsed(), 1s);
  EXPECT_TRUE(app_.running());
  stop();
}

struct Throwing {
  Throwing() { throw std::runtime_error("no luck"); }
};

TEST_F(AppTest, AConstructorsExceptionIsTheReason) {
  app_.per_core<Store>();
  app_.per_core<Throwing>();
  EXPECT_FALSE(start());
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("no luck"), std::string::npos);
  EXPECT_EQ(has_line("store made"), has_line("store gone"));
}

struct ThrowingLater : JournaledService {
  explicit ThrowingLater(const Journal& journal) : JournaledService(journal, "throwing later") {}
  Task<Result<>> start() {
    std::ignore = co_await sleep(1s);
    throw std::runtime_error("bad luck");
  }
};

TEST_F(AppTest, AStartsExceptionIsTheReason) {
  app_.per_core<ThrowingLater>();
  EXPECT_FALSE(start());
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("bad luck"), std::string::npos);
  EXPECT_TRUE(has_line("throwing later gone"));
}

// --- factories -----------------------------------------------------------------------------------

struct Number {
  int value;
};
struct Shape {
  virtual ~Shape() = default;
  virtual int corners() const = 0;
};
struct Named {
  virtual ~Named() = default;
  std::string name = "square";
};
struct Square : Named, Shape {
  int corners() const override { return 4; }
};

TEST_F(AppTest, AFactorysResultIsTheService) {
  app_.shared([] { return Number{7}; });
  app_.per_core<Shape>([](const Number&) { return std::make_unique<Square>(); });
  std::vector<std::string> seen;
  struct Last {};
  app_.per_core([&seen](const Number& number, Shape& shape, Square& square) {
    seen.push_back(std::to_string(number.value) + std::to_string(shape.corners()) + square.name);
    return Last();
  });
  ASSERT_TRUE(start());
  EXPECT_EQ(seen, (std::vector<std::string>{"74square"}));
  stop();
}

struct Counter {
  std::unique_ptr<int> count = std::make_unique<int>(0);
};

TEST_F(AppTest, AValueIsOneServiceThatOutlivesEachRun) {
  app_.shared(Number{7});
  app_.shared<Named>(Square());
  app_.shared(Counter());
  struct First {};
  struct Last {};
  std::vector<const void*> seen;
  std::string name;
  app_.per_core([&](const Counter& counter, const Number& number) {
    seen.push_back(&counter);
    *counter.count += number.value;
    return First();
  });
  app_.per_core([&](const Counter& counter, const Named& named, const First&) {
    seen.push_back(&counter);
    name = named.name + std::to_string(*counter.count);
    return Last();
  });
  for (const char* const expected : {"square7", "square14"}) {
    ASSERT_TRUE(start());
    EXPECT_EQ(name, expected);
    stop();
  }
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), seen[0]), 4);
}

TEST_F(AppTest, AFakeReplacesAValue) {
  app_.shared(Number{7});
  app_.fake<Number>([] { return Number{8}; });
  int seen = 0;
  struct Last {};
  app_.per_core([&seen](const Number& number) {
    seen = number.value;
    return Last();
  });
  ASSERT_TRUE(start());
  EXPECT_EQ(seen, 8);
  stop();
}

TEST_F(AppTest, OneInstanceHasSeveralInterfaces) {
  app_.per_core<Square, Named, Shape>();
  bool same = false;
  struct Last {};
  app_.per_core([&same](Named& named, Shape& shape, Square& square) {
    same = &named == &square && &shape == &square;
    return Last();
  });
  ASSERT_TRUE(start());
  EXPECT_TRUE(same);
  stop();
}

TEST_F(AppTest, AFactoryMayFail) {
  app_.shared([]() -> Result<Number> { return fail(Errc::not_found); });
  EXPECT_EQ(start().error(), Errc::not_found);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("Number"), std::string::npos);
}

TEST_F(AppTest, AFactoryMayReturnAResultWithAValue) {
  app_.shared(
      []() -> Result<std::unique_ptr<Number>> { return std::make_unique<Number>(Number{3}); });
  ASSERT_TRUE(start());
  stop();
}

struct alignas(128) Wide {
  Wide() = default;
  std::array<char, 128> bytes{};
};

TEST_F(AppTest, AlignmentIsKept) {
  app_.per_core<Wide>();
  std::uintptr_t address = 1;
  struct Last {};
  app_.per_core([&address](Wide& wide) {
    address = reinterpret_cast<std::uintptr_t>(&wide);
    return Last();
  });
  ASSERT_TRUE(start());
  EXPECT_EQ(address % 128, 0U);
  stop();
}

TEST_F(AppTest, AConstructorMakesItsObjectInPlace) {
  app_.per_core<Itself>();
  bool same = false;
  struct Last {};
  app_.per_core([&same](Itself& itself) {
    same = itself.self == &itself;
    return Last();
  });
  ASSERT_TRUE(start());
  EXPECT_TRUE(same);
  stop();
}

struct Spawning : JournaledService {
  Spawning(const Journal& journal, Scope& scope)
      : JournaledService(journal, "spawning"), scope_(scope) {}
  Task<Result<>> start() {
    scope_.spawn(work());
    co_return {};
  }
  Task<> stop() {
    write("stopping");
    co_return;
  }
  Task<> work() {
    std::ignore = co_await sleep_until(never);
    write("work ended");
  }
  Scope& scope_;
};

TEST_F(AppTest, SpawnedTasksEndBeforeTheirService) {
  app_.per_core<Spawning>();
  ASSERT_TRUE(start());
  EXPECT_FALSE(has_line("spawning work ended"));
  stop();
  expect_order({"spawning stopping", "spawning work ended", "spawning gone"});
}

struct SpawnsAndFails : JournaledService {
  SpawnsAndFails(const Journal& journal, Scope& scope)
      : JournaledService(journal, "spawns and fails"), scope_(scope) {}
  Task<Result<>> start() {
    scope_.spawn(work());
    co_return fail(Errc::limit_reached);
  }
  Task<> work() {
    std::ignore = co_await sleep_until(never);
    write("work ended");
  }
  Scope& scope_;
};

TEST_F(AppTest, TasksOfAServiceThatCouldNotStartEnd) {
  app_.per_core<SpawnsAndFails>();
  EXPECT_EQ(start().error(), Errc::limit_reached);
  EXPECT_EQ(lines_,
            (std::vector<std::string>{"spawns and fails made", "spawns and fails work ended",
                                      "spawns and fails gone"}));
}

struct SpawnsTwo : JournaledService {
  SpawnsTwo(const Journal& journal, Scope& scope) : JournaledService(journal, "spawns two") {
    scope.spawn(fail_soon());
    scope.spawn(work());
  }
  Task<> fail_soon() {
    std::ignore = co_await sleep(1s);
    write("work fails");
    throw std::runtime_error("out of luck");
  }
  Task<> work() {
    std::ignore = co_await sleep_until(never);
    write("work ended");
  }
};

TEST_F(AppTest, AFailureOfASpawnedTaskDoesNotAffectTheOthers) {
  app_.per_core<SpawnsTwo>();
  ASSERT_TRUE(start());
  platform_.advance(*loop_, 2s);
  EXPECT_TRUE(app_.running());
  EXPECT_EQ(lines_, (std::vector<std::string>{"spawns two made", "spawns two work fails"}));
  stop();
  EXPECT_EQ(lines_.back(), "spawns two gone");
  EXPECT_TRUE(has_line("spawns two work ended"));
}

TEST_F(AppTest, AStartTakesAtMost30SecondsByDefault) {
  app_.per_core<Endless>();
  EXPECT_EQ(start().error(), Errc::timed_out);
  EXPECT_EQ(elapsed(), 30s);
}

TEST_F(AppTest, AStopTakesAtMost10SecondsByDefault) {
  app_.per_core<StopsNever>();
  ASSERT_TRUE(start());
  stop();
  EXPECT_EQ(elapsed(), 10s);
  EXPECT_EQ(platform_.logged().back(),
            "weir: " + std::string(inject::type<StopsNever>.name) +
                ": stop failed: " + make_error_code(Errc::timed_out).message());
}

TEST_F(AppTest, ACancelledStopCancelsTheServicesStops) {
  app_.per_core<StopsNever>({.stop_timeout = 100s});
  ASSERT_TRUE(start());
  CancelSource cancel;
  platform_.at(platform_.now() + 2s, [&] { cancel.cancel(); });
  run(app_.stop(), &cancel);
  EXPECT_EQ(elapsed(), 2s);
  EXPECT_TRUE(has_line("stops never gone"));
  EXPECT_FALSE(app_.running());
}

struct ThrowsInStop : JournaledService {
  explicit ThrowsInStop(const Journal& journal) : JournaledService(journal, "throws") {}
  Task<> stop() {
    std::ignore = co_await sleep(1s);
    throw std::runtime_error("stuck");
  }
};

TEST_F(AppTest, AStopsExceptionIsLoggedAndTheServiceIsDestroyed) {
  app_.per_core<ThrowsInStop>();
  app_.per_core<Store>();
  ASSERT_TRUE(start());
  const std::size_t logged_before = platform_.logged().size();
  stop();
  EXPECT_TRUE(has_line("throws gone"));
  ASSERT_EQ(platform_.logged().size(), logged_before + 1) << "a good stop logs nothing";
  const std::string line = platform_.logged().back();
  EXPECT_TRUE(
      line.starts_with("weir: " + std::string(inject::type<ThrowsInStop>.name) + ": stop failed: "))
      << line;
  EXPECT_NE(line.find("stuck"), line.npos) << line;
}

struct FailsAfterSpawning : JournaledService {
  FailsAfterSpawning(const Journal& journal, Scope& scope) : JournaledService(journal, "spawner") {
    scope.spawn(work(journal));
    throw std::runtime_error("too late");
  }
  static Task<> work(const Journal& journal) {
    std::ignore = co_await sleep_until(never);
    journal.write("work ended");
  }
};

TEST_F(AppTest, TasksOfAServiceThatCouldNotBeMadeEnd) {
  app_.per_core<FailsAfterSpawning>();
  EXPECT_FALSE(start());
  EXPECT_EQ(lines_, (std::vector<std::string>{"spawner made", "spawner gone", "work ended"}));
}

// Both calls of stop() wait for the services. The first one closes the run, and the second one
// resumes after the next start() has begun.
TEST_F(AppTest, TheSecondOfTwoStopsDoesNotEndALaterRun) {
  app_.per_core<Store>();
  ASSERT_TRUE(start());
  const auto stop_and_start = [&]() -> Task<> {
    co_await app_.stop();
    EXPECT_FALSE(app_.running());
    EXPECT_TRUE(co_await app_.start());
  };
  const auto stop_only = [&]() -> Task<> { co_await app_.stop(); };
  const auto both = [&]() -> Task<> {
    const auto results = co_await all(stop_and_start(), stop_only());
    EXPECT_TRUE(results);
  };
  run(both());
  EXPECT_TRUE(app_.running());
  EXPECT_EQ(elapsed(), 3s) << "two starts and a stop";
  EXPECT_EQ(std::ranges::count(lines_, "store made"), 2);
  EXPECT_EQ(std::ranges::count(lines_, "store gone"), 1);
  stop();
  EXPECT_EQ(std::ranges::count(lines_, "store gone"), 2);
}

TEST_F(AppTest, AServiceThatStartsDespiteItsCancellationIsStopped) {
  app_.per_core<Store>();
  app_.per_core<Cache>();
  const auto start_app = [&]() -> Task<> {
    const Result<> started = co_await app_.start();
    EXPECT_EQ(started.error(), Errc::cancelled);
  };
  const auto stop_later = [&]() -> Task<> {
    EXPECT_TRUE(co_await sleep(400ms));
    co_await app_.stop();
  };
  const auto both = [&]() -> Task<> {
    const auto results = co_await all(start_app(), stop_later());
    EXPECT_TRUE(results);
  };
  run(both());
  EXPECT_EQ(lines_, (std::vector<std::string>{"store made", "store starting", "store started",
                                              "store stopping", "store stopped", "store gone"}));
  EXPECT_EQ(elapsed(), 1400ms) << "its stop() is not cancelled";
  EXPECT_TRUE(app_.errors().empty());
}

}  // namespace
}  // namespace weir::app_test

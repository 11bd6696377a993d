// Tests of Optional, All, Where and Requester parameters.
#include "weir/app/handles/handles.hpp"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/app/test/app_fixture.hpp"

namespace weir::handles_test {
namespace {

enum class Region { europe, asia };
struct InAsia {
  bool operator()(Region region) const { return region == Region::asia; }
};
struct Anonymous {
  bool operator()(const Properties& properties) const {
    return properties.get<Region>() == nullptr;
  }
};

struct Store : JournaledService {
  Store(const Journal& journal, std::string name) : JournaledService(journal, name), name_(name) {}
  Task<> stop() {
    write("stopping");
    std::ignore = co_await sleep(1s);
  }
  std::string name_;
};

/// A service that writes the stores that it sees to the journal.
struct User : JournaledService {
  User(const Journal& journal, inject::Optional<Store> one, inject::All<Store> all,
       inject::Optional<Store, InAsia> asian)
      : JournaledService(journal, "user"), one_(one), all_(all), asian_(asian) {
    look();
    one_.on_change([this] { look(); });
    all_.on_change([this] { look(); });
    asian_.on_change([this] { look(); });
  }
  void look() {
    std::string names = one_ ? one_->name_ + ":" : "none:";
    for (Store& each : all_) names += " " + each.name_;
    if (asian_) names += " asian " + asian_->name_;
    write("sees " + names);
  }
  inject::Optional<Store> one_;
  inject::All<Store> all_;
  inject::Optional<Store, InAsia> asian_;
};

class ProvidersTest : public AppTest {
 protected:
  ServiceId store(const std::string& name, Properties properties = {}) {
    return app_.per_core([name](const Journal& journal) { return Store(journal, name); },
                         {.properties = std::move(properties)});
  }
  std::vector<std::string> take() { return std::exchange(lines_, {}); }
  /// Returns the stores that the user saw last, before the line `end`.
  std::string last_seen(const std::string& end = {}) const {
    std::string last;
    for (const std::string& each : lines_) {
      if (each == end) break;
      if (each.starts_with("user sees ")) last = each;
    }
    return last;
  }
};

using Lines = std::vector<std::string>;

TEST_F(ProvidersTest, AnOptionalProviderMayBeAbsent) {
  app_.per_core<User>();
  ASSERT_TRUE(start());
  EXPECT_EQ(take(), (Lines{"user made", "user sees none:"}));
  stop();
}

TEST_F(ProvidersTest, ProvidersAppearAndDisappear) {
  app_.per_core<User>();
  ASSERT_TRUE(start());
  take();
  const ServiceId a = store("a");
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(last_seen(), "user sees a: a");
  EXPECT_EQ(take().front(), "a made");
  const ServiceId b = store("b", {Region::asia});
  ASSERT_TRUE(run(app_.apply()));
  take();
  ASSERT_TRUE(run(app_.stop(a)));
  EXPECT_EQ(lines_.back(), "a gone");
  EXPECT_EQ(last_seen("a stopping"), "user sees b: b asian b") << "on_change() comes first";
  ASSERT_TRUE(run(app_.start(a)));
  EXPECT_EQ(last_seen(), "user sees b: b a asian b");
  ASSERT_TRUE(run(app_.remove(b)));
  EXPECT_EQ(last_seen("b stopping"), "user sees a: a");
  stop();
  EXPECT_TRUE(has_line("user gone"));
}

TEST_F(ProvidersTest, FiltersSelectProviders) {
  app_.per_core<User>();
  store("a", {Region::europe});
  store("b", {Region::asia});
  store("c");
  struct Last {};
  std::string chosen;
  app_.per_core(
      [&chosen](inject::Where<Store, InAsia> asian, inject::Where<Store, Anonymous> anonymous) {
        chosen = asian->name_ + anonymous.get().name_;
        return Last();
      });
  ASSERT_TRUE(start());
  EXPECT_EQ(chosen, "bc");
  stop();
}

TEST_F(ProvidersTest, AFilterThatAcceptsNoServiceIsAnError) {
  store("a", {Region::europe});
  struct Last {};
  app_.per_core([](inject::Where<Store, InAsia>) { return Last(); });
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("its filter"), std::string::npos);
}

TEST_F(ProvidersTest, AnotherAcceptedServiceReplacesARemovedOne) {
  const ServiceId a = store("a", {Region::asia});
  store("b", {Region::asia});
  struct Last {};
  Lines chosen;
  app_.per_core([&chosen](inject::Where<Store, InAsia> asian) {
    chosen.push_back(asian->name_);
    return Last();
  });
  ASSERT_TRUE(start());
  ASSERT_TRUE(run(app_.remove(a)));
  EXPECT_EQ(chosen, (Lines{"a", "b"}));
  stop();
}

/// A filter that throws for services in Asia.
struct Fragile {
  bool operator()(Region region) const {
    if (region == Region::asia) throw std::runtime_error("too far");
    return true;
  }
};

TEST_F(ProvidersTest, AServiceIsNotAcceptedIfTheFilterThrows) {
  store("a", {Region::asia});
  struct Last {};
  std::string chosen;
  std::size_t count = 0;
  app_.per_core([&](inject::Where<Store, Fragile> one, inject::All<Store, Fragile> all) {
    chosen = one->name_;
    count = all.size();
    all.on_change([&count, all] { count = all.size(); });
    return Last();
  });
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("its filter accepts no service"), std::string::npos);
  store("b", {Region::europe});
  ASSERT_TRUE(start());
  EXPECT_EQ(chosen, "b");
  EXPECT_EQ(count, 1U);
  const ServiceId c = store("c", {Region::asia});
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_TRUE(has_line("c made"));
  EXPECT_EQ(count, 1U);
  store("d", {Region::europe});
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(count, 2U);
  ASSERT_TRUE(run(app_.remove(c)));
  stop();
}

struct Watching {
  explicit Watching(inject::All<Store> all) {
    all.on_change([] { ADD_FAILURE() << "the second callback replaces this one"; });
    all.on_change([] { throw std::runtime_error("not now"); });
  }
};

TEST_F(ProvidersTest, AnExceptionOfTheCallbackIsLogged) {
  app_.per_core<Watching>();
  ASSERT_TRUE(start());
  const std::size_t logged_before = platform_.logged().size();
  const ServiceId a = store("a");
  ASSERT_TRUE(run(app_.apply()));
  ASSERT_EQ(platform_.logged().size(), logged_before + 1);
  const std::string line = platform_.logged().back();
  EXPECT_TRUE(line.starts_with("weir: " + std::string(inject::type<Watching>.name) +
                               ": on_change() callback failed: "))
      << line;
  EXPECT_NE(line.find("not now"), line.npos) << line;
  ASSERT_TRUE(run(app_.stop(a)));
  EXPECT_EQ(platform_.logged().size(), logged_before + 2);
  EXPECT_EQ(lines_.back(), "a gone");
  stop();
}

struct Late : JournaledService {
  explicit Late(const Journal& journal) : JournaledService(journal, "late") {}
  Task<Result<>> start() { co_return co_await sleep(1s); }
};
/// A service that is still starting when Late has started.
struct Later : JournaledService {
  Later(const Journal& journal, inject::Optional<Late> of)
      : JournaledService(journal, "later"), late(of) {
    write(late ? "sees it" : "sees nothing");
    late.on_change([this] { write(late ? "sees it" : "sees nothing"); });
  }
  Task<Result<>> start() { co_return co_await sleep(2s); }
  inject::Optional<Late> late;
};

struct Observing {};

TEST_F(ProvidersTest, ALaterCallbackReplacesTheFirstAndEndsWithItsService) {
  const auto first = std::make_shared<int>(0);
  const auto second = std::make_shared<int>(0);
  const ServiceId watching = app_.per_core([&first, &second](inject::Optional<Store> one) {
    one.on_change([first = first] { ++*first; });
    one.on_change([second = second] { ++*second; });
    return Observing();
  });
  ASSERT_TRUE(start());
  EXPECT_EQ(first.use_count(), 1);
  EXPECT_EQ(second.use_count(), 2);
  const ServiceId a = store("a");
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(*first, 0);
  EXPECT_EQ(*second, 1);
  ASSERT_TRUE(run(app_.stop(watching)));
  EXPECT_EQ(second.use_count(), 1);
  ASSERT_TRUE(run(app_.stop(a)));
  EXPECT_EQ(*second, 1);
  ASSERT_TRUE(run(app_.start(watching)));
  EXPECT_EQ(second.use_count(), 2);
  ASSERT_TRUE(run(app_.start(a)));
  EXPECT_EQ(*second, 2);
  stop();
  EXPECT_EQ(second.use_count(), 1);
}

TEST_F(ProvidersTest, AProviderMayAppearDuringTheStart) {
  app_.per_core<Later>();
  app_.per_core<Late>();
  ASSERT_TRUE(start());
  EXPECT_EQ(elapsed(), 2s) << "neither waits for the other";
  EXPECT_EQ(take(), (Lines{"later made", "later sees nothing", "late made", "later sees it"}));
  stop();
}

struct Sibling {
  explicit Sibling(inject::All<Sibling> all) : all_(all) {}
  inject::All<Sibling> all_;
};

TEST_F(ProvidersTest, AServiceDoesNotSeeItself) {
  Sibling* first = nullptr;
  app_.per_core<Sibling>();
  app_.per_core<Sibling>();
  struct Last {};
  app_.per_core([&first](inject::All<Sibling> all) {
    if (!all.empty()) first = &*all.begin();
    return Last();
  });
  ASSERT_TRUE(start());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->all_.size(), 1U);
  EXPECT_NE(&*first->all_.begin(), first);
  stop();
}

}  // namespace

namespace {

struct Level {
  int value;
};

struct Logger : JournaledService {
  Logger(const Journal& journal, inject::Requester requester)
      : JournaledService(
            journal,
            "logger of " + std::string(requester.name().substr(requester.name().rfind(':') + 1))),
        level(requester.properties().get<Level>() == nullptr
                  ? 0
                  : requester.properties().get<Level>()->value) {}
  int level;
};

struct First : JournaledService {
  First(const Journal& journal, Logger& own) : JournaledService(journal, "first"), logger(own) {}
  Logger& logger;
};
struct Second : JournaledService {
  Second(const Journal& journal, Logger& own, First& first) : JournaledService(journal, "second") {
    EXPECT_NE(&own, &first.logger);
    EXPECT_EQ(own.level, 3);
    EXPECT_EQ(first.logger.level, 0);
  }
};

using RequesterTest = AppTest;

TEST_F(RequesterTest, EachRequesterGetsItsOwnInstance) {
  app_.per_core<Second>({.properties = {Level{3}}});
  app_.per_core<First>();
  app_.per_core<Logger>();
  ASSERT_TRUE(start());
  expect_order({"logger of First made", "first made", "second made"});
  expect_order({"logger of Second made", "second made"});
  EXPECT_EQ(lines_.size(), 4U);
  stop();
  expect_order({"second gone", "first gone", "logger of First gone"});
  expect_order({"second gone", "logger of Second gone"});
  EXPECT_EQ(lines_.size(), 8U);
}

TEST_F(RequesterTest, NoInstanceIsMadeWithoutARequester) {
  app_.per_core<Logger>();
  ASSERT_TRUE(start());
  EXPECT_TRUE(lines_.empty());
  stop();
}

TEST_F(RequesterTest, AnInstanceIsRemovedWithItsRequester) {
  const ServiceId first = app_.per_core<First>();
  app_.per_core<Logger>();
  ASSERT_TRUE(start());
  lines_.clear();
  ASSERT_TRUE(run(app_.stop(first)));
  EXPECT_EQ(lines_, (std::vector<std::string>{"first gone", "logger of First gone"}));
  lines_.clear();
  ASSERT_TRUE(run(app_.start(first)));
  EXPECT_EQ(lines_, (std::vector<std::string>{"logger of First made", "first made"}));
  ASSERT_TRUE(run(app_.remove(first)));
  EXPECT_TRUE(has_line("logger of First gone"));
  stop();
}

struct Sink {};
struct Nested : JournaledService {
  Nested(const Journal& journal, inject::Requester requester, Logger&)
      : JournaledService(journal, "nested") {
    EXPECT_EQ(requester.name(), inject::type<Sink>.name);
    EXPECT_TRUE(requester.is<Sink>());
    EXPECT_FALSE(requester.is<Nested>());
  }
};

TEST_F(RequesterTest, AnInstanceMadeByRequestMayRequestOthers) {
  app_.per_core<Logger>();
  app_.per_core<Nested>();
  app_.per_core([](Nested&) { return Sink(); });
  ASSERT_TRUE(start());
  expect_order({"logger of Nested made", "nested made"});
  stop();
  expect_order({"nested gone", "logger of Nested gone"});
}

struct Slow : JournaledService {
  Slow(const Journal& journal, inject::Requester) : JournaledService(journal, "slow") {}
  Task<Result<>> start() {
    std::ignore = co_await sleep(1s);
    co_return {};
  }
  Task<> stop() { std::ignore = co_await sleep(1s); }
};
struct UsesSlow : JournaledService {
  UsesSlow(const Journal& journal, Slow&) : JournaledService(journal, "user") {}
};

TEST_F(RequesterTest, AnInstanceMadeByRequestMayStartSlowly) {
  app_.per_core<UsesSlow>();
  app_.per_core<Slow>();
  ASSERT_TRUE(start());
  EXPECT_EQ(elapsed(), 1s);
  stop();
  EXPECT_EQ(elapsed(), 2s);
  EXPECT_EQ(lines_, (std::vector<std::string>{"slow made", "user made", "user gone", "slow gone"}));
}

TEST_F(RequesterTest, RequestersStopIfTheRegistrationIsStopped) {
  app_.per_core<First>();
  const ServiceId logger = app_.per_core<Logger>();
  ASSERT_TRUE(start());
  lines_.clear();
  ASSERT_TRUE(run(app_.stop(logger)));
  EXPECT_EQ(lines_, (std::vector<std::string>{"first gone", "logger of First gone"}));
  ASSERT_TRUE(run(app_.start(logger)));
  EXPECT_EQ(lines_.size(), 4U);
  ASSERT_TRUE(run(app_.remove(logger)));
  EXPECT_EQ(lines_.size(), 6U);
  app_.per_core<Logger>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(lines_.size(), 8U);
  EXPECT_EQ(lines_.back(), "first made");
  stop();
}

/// An instance made by request that starts only if it may.
struct Moody : JournaledService {
  Moody(const Journal& journal, std::string name, const bool& good)
      : JournaledService(journal, std::move(name)), good_(good) {}
  Task<Result<>> start() const {
    if (!good_) co_return fail(Errc::limit_reached);
    co_return {};
  }
  const bool& good_;
};
struct Every {
  bool operator()(const Properties&) const { return true; }
};
struct UsesMoody : JournaledService {
  UsesMoody(const Journal& journal, inject::Where<Moody, Every>)
      : JournaledService(journal, "user") {}
};

class MoodyTest : public RequesterTest {
 protected:
  using Lines = std::vector<std::string>;
  ServiceId moody(const std::string& name, const bool& good) {
    return app_.per_core([name, &good](const Journal& journal, inject::Requester) {
      return std::make_unique<Moody>(journal, name, good);
    });
  }
  /// Adds a user whose first moody instance cannot start.
  void fail_to_start() {
    ASSERT_TRUE(start());
    first_ = moody("first", good_);
    user_ = app_.per_core<UsesMoody>();
    EXPECT_EQ(run(app_.apply()).error(), Errc::limit_reached);
    EXPECT_EQ(std::exchange(lines_, {}), (Lines{"first made", "first gone"}));
  }
  bool good_ = false;
  ServiceId first_;
  ServiceId user_;
};

TEST_F(MoodyTest, AFailedInstanceIsMadeAgainWithItsRequester) {
  fail_to_start();
  good_ = true;
  ASSERT_TRUE(run(app_.stop(user_)));
  EXPECT_TRUE(lines_.empty());
  ASSERT_TRUE(run(app_.start(user_)));
  EXPECT_EQ(lines_, (Lines{"first made", "user made"}));
  for (const ServiceReport& each : app_.explain().services) EXPECT_EQ(each.failure, "");
  stop();
}

TEST_F(MoodyTest, AFailedInstanceIsMadeAgainByAStartOfItsService) {
  fail_to_start();
  EXPECT_EQ(run(app_.start(first_)).error(), Errc::limit_reached);
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"first made", "first gone"}));
  good_ = true;
  ASSERT_TRUE(run(app_.start(first_)));
  EXPECT_EQ(lines_, (Lines{"first made", "user made"}));
  stop();
}

TEST_F(MoodyTest, AFailedInstanceIsReplacedByOneOfAnotherService) {
  const bool always = true;
  fail_to_start();
  moody("second", always);
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_TRUE(lines_.empty()) << "the first service is still there";
  ASSERT_TRUE(run(app_.remove(first_)));
  EXPECT_EQ(lines_, (Lines{"second made", "user made"}));
  stop();
}

struct Below {};
struct Named {
  std::string name;
};
struct Any {
  bool operator()(const Properties&) const { return true; }
};

// A removed service's place is reused: the first instance of all is then made for the user alone.
TEST_F(RequesterTest, ADependantOfARemovedServiceGetsAnInstanceOfItsOwn) {
  App app;
  struct Earliest {};
  struct User {};
  std::vector<std::string> used;
  const ServiceId earliest = app.per_core<Earliest>();
  app.per_core<Below>();
  const ServiceId common = app.per_core([] { return Named{"common"}; });
  const ServiceId own = app.per_core([](inject::Requester, Below&) { return Named{"own"}; });
  const ServiceId user = app.per_core([&used](inject::Where<Named, Any> named) {
    used.push_back(named->name);
    return User();
  });
  const auto state = [&] {
    const auto services = app.explain().services;
    return std::ranges::find(services, user, &ServiceReport::id)->state;
  };
  ASSERT_TRUE(run(app.start()));
  ASSERT_TRUE(run(app.remove(earliest)));
  ASSERT_TRUE(run(app.remove(common)));
  EXPECT_EQ(used, (std::vector<std::string>{"common", "own"}));
  EXPECT_EQ(state(), ServiceState::running);
  EXPECT_EQ(app.explain().services.size(), 3U);
  ASSERT_TRUE(run(app.remove(own)));
  EXPECT_EQ(state(), ServiceState::waiting);
  EXPECT_EQ(app.explain().services.size(), 2U) << "its own instance is removed, too";
  app.per_core([] { return Named{"later"}; });
  ASSERT_TRUE(run(app.apply()));
  EXPECT_EQ(used, (std::vector<std::string>{"common", "own", "later"}));
  EXPECT_EQ(state(), ServiceState::running);
  run(app.stop());
}

}  // namespace
}  // namespace weir::handles_test

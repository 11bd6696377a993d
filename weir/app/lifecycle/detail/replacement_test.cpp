// Tests of the replacement of running services.
#include "weir/app/lifecycle/detail/replacement.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/app/test/app_fixture.hpp"
#include "weir/http/router/service_routes.hpp"

namespace weir::replacement_test {
namespace {

using Lines = std::vector<std::string>;

struct Database : JournaledService {
  Database(const Journal& journal, std::string of)
      : JournaledService(journal, "database " + of), name(of) {}
  Task<Result<>> start() {
    std::ignore = co_await sleep(1s);
    if (name == "bad") co_return fail(Errc::limit_reached);
    co_return {};
  }
  Task<> stop() {
    write("stopping");
    std::ignore = co_await sleep(1s);
  }
  std::string name;
};
struct Logger : JournaledService {
  Logger(const Journal& journal, inject::Requester) : JournaledService(journal, "logger") {}
};
struct Store : JournaledService {
  Store(const Journal& journal, Database& below, Logger&)
      : JournaledService(journal, "store on " + below.name), database(below) {}
  Database& database;
};
struct Web : JournaledService {
  Web(const Journal& journal, Store& store)
      : JournaledService(journal, "web on " + store.database.name), name(store.database.name) {}
  std::string name;
};
/// A service that writes the databases and webs that it sees to the journal.
struct Watcher : JournaledService {
  Watcher(const Journal& journal, inject::All<Database> of, inject::Optional<Web> some)
      : JournaledService(journal, "watcher"), databases(of), web(some) {
    databases.on_change([this] { look(); });
    web.on_change([this] { look(); });
  }
  void look() {
    std::string names;
    for (Database& each : databases) names += " " + each.name;
    write("sees" + names + (web ? " web on " + web->name : " no web"));
  }
  inject::All<Database> databases;
  inject::Optional<Web> web;
};

class ReplacementTest : public AppTest {
 protected:
  ServiceId database(const std::string& name,
                     ReplacePolicy replace_policy = ReplacePolicy::side_by_side) {
    return app_.per_core([name](const Journal& journal) { return Database(journal, name); },
                         {.replace_policy = replace_policy});
  }
  void start_with_a() {
    a_ = database("a");
    app_.per_core<Store>();
    logger_ = app_.per_core<Logger>();
    app_.per_core<Watcher>();
    web_ = app_.per_core<Web>();
    ASSERT_TRUE(start());
    lines_.clear();
  }
  std::size_t count(const std::string& line) const {
    return static_cast<std::size_t>(std::ranges::count(lines_, line));
  }
  /// Returns the report of the only service whose type has this name.
  ServiceReport report(std::string_view name) const {
    const Explanation now = app_.explain();
    const auto found = std::ranges::find_if(
        now.services, [&](const auto& each) { return each.name.ends_with(name); });
    EXPECT_NE(found, now.services.end()) << name;
    return found == now.services.end() ? ServiceReport() : *found;
  }
  ServiceId a_;
  ServiceId logger_;
  ServiceId web_;
};

TEST_F(ReplacementTest, NewInstancesRunBeforeOldOnesStop) {
  start_with_a();
  const ServiceId b = database("b");
  ASSERT_TRUE(run(app_.replace(a_, b)));
  expect_order({"database b made", "store on b made", "web on b made", "web on a gone",
                "store on a gone", "database a stopping", "database a gone"});
  EXPECT_EQ(count("logger made"), 1U);
  EXPECT_EQ(count("logger gone"), 1U);
  const std::string last = *std::ranges::find_if(
      lines_.rbegin(), lines_.rend(), [](auto& each) { return each.starts_with("watcher"); });
  EXPECT_EQ(last, "watcher sees b web on b");
  EXPECT_FALSE(has_line("watcher sees no web"));
  EXPECT_FALSE(has_line("watcher sees a no web"));
  EXPECT_FALSE(has_line("watcher gone"));
  EXPECT_EQ(run(app_.stop(a_)).error(), Errc::not_found);
  for (const ServiceReport& each : app_.explain().services) {
    EXPECT_EQ(each.state, ServiceState::running) << each.name;
  }
  EXPECT_EQ(app_.explain().services.size(), 6U);
  lines_.clear();
  ASSERT_TRUE(run(app_.stop(b)));
  EXPECT_TRUE(has_line("web on b gone"));
  ASSERT_TRUE(run(app_.start(b)));
  stop();
}

TEST_F(ReplacementTest, AServiceMayBeReplacedRepeatedly) {
  start_with_a();
  for (int i = 0; i < 50; ++i) {
    const ServiceId next = database(std::to_string(i));
    ASSERT_TRUE(run(app_.replace(a_, next)));
    a_ = next;
    EXPECT_EQ(app_.explain().services.size(), 6U);
  }
  stop();
}

TEST_F(ReplacementTest, AFailingReplacementChangesNothing) {
  start_with_a();
  const ServiceId bad = database("bad");
  EXPECT_EQ(run(app_.replace(a_, bad)).error(), Errc::limit_reached);
  EXPECT_EQ(lines_.front(), "database bad made");
  EXPECT_EQ(lines_.back(), "database bad gone");
  EXPECT_FALSE(has_line("web on a gone"));
  EXPECT_EQ(app_.errors().size(), 1U);
  EXPECT_EQ(run(app_.stop(bad)).error(), Errc::not_found);
  EXPECT_EQ(app_.explain().services.size(), 6U);
  const ServiceId b = database("b");
  ASSERT_TRUE(run(app_.replace(a_, b)));
  EXPECT_TRUE(has_line("web on b made"));
  stop();
}

TEST_F(ReplacementTest, OldInstancesStopFirstIfExclusive) {
  start_with_a();
  const ServiceId b = database("b", ReplacePolicy::exclusive);
  ASSERT_TRUE(run(app_.replace(a_, b)));
  expect_order({"web on a gone", "store on a gone", "database a stopping", "database a gone",
                "database b made", "store on b made", "web on b made"});
  stop();
}

TEST_F(ReplacementTest, AStoppedDependantTakesTheNewServiceLater) {
  start_with_a();
  ASSERT_TRUE(run(app_.stop(web_)));
  const ServiceId b = database("b");
  ASSERT_TRUE(run(app_.replace(a_, b)));
  EXPECT_FALSE(has_line("web on b made"));
  ASSERT_TRUE(run(app_.start(web_)));
  EXPECT_TRUE(has_line("web on b made"));
  stop();
}

TEST_F(ReplacementTest, InvalidIdsAreRejected) {
  start_with_a();
  EXPECT_EQ(run(app_.replace(a_, web_)).error(), Errc::conflict);
  const ServiceId b = database("b");
  EXPECT_EQ(run(app_.replace(b, ServiceId())).error(), Errc::not_found);
  EXPECT_EQ(run(app_.replace(ServiceId(), b)).error(), Errc::not_found);
  EXPECT_TRUE(app_.contains(b)) << "the new service stays registered";
  EXPECT_EQ(run(app_.replace(a_, a_)).error(), Errc::conflict);
  EXPECT_TRUE(app_.contains(a_));
  EXPECT_EQ(run(app_.replace(b, b)).error(), Errc::conflict) << "it was not added yet";
  EXPECT_TRUE(app_.contains(b));
  ASSERT_TRUE(run(app_.remove(b)));
  EXPECT_EQ(run(app_.replace(a_, b)).error(), Errc::not_found);
  stop();
}

TEST_F(ReplacementTest, TheAppMayStopDuringAReplacement) {
  start_with_a();
  const ServiceId b = database("b");
  const auto both = [&](Scope& scope) -> Task<> {
    const auto replace = [](App& app, ServiceId old, ServiceId fresh) -> Task<> {
      EXPECT_FALSE(co_await app.replace(old, fresh));
    };
    scope.spawn(replace(app_, a_, b));
    std::ignore = co_await sleep(500ms);
    co_await app_.stop();
  };
  static_cast<void>(run(with_scope(both)));
  EXPECT_TRUE(has_line("database b gone"));
  EXPECT_TRUE(has_line("database a gone"));
  EXPECT_FALSE(app_.running());
}

TEST_F(ReplacementTest, AServiceMadeByRequestIsReplacedExclusively) {
  start_with_a();
  const ServiceId fresh = app_.per_core<Logger>();
  ASSERT_TRUE(run(app_.replace(logger_, fresh)));
  expect_order({"web on a gone", "store on a gone", "logger gone", "logger made", "store on a made",
                "web on a made"});
  EXPECT_FALSE(has_line("database a gone"));
  EXPECT_EQ(report("::Logger").id, fresh);
  EXPECT_EQ(app_.explain().services.size(), 6U);
  EXPECT_FALSE(app_.contains(logger_));
  stop();
}

TEST_F(ReplacementTest, AStoppedServiceStartsAgainIfTheNewOneCannotStart) {
  start_with_a();
  ASSERT_TRUE(run(app_.stop(a_)));
  lines_.clear();
  EXPECT_EQ(run(app_.replace(a_, database("bad"))).error(), Errc::limit_reached);
  expect_order({"database bad made", "database bad gone", "database a made", "store on a made",
                "web on a made"});
  EXPECT_EQ(report("::Database").state, ServiceState::running);
  stop();
}

/// A database that starts only if it is allowed to.
struct Guarded : Database {
  Guarded(const Journal& journal, const bool& of) : Database(journal, "guarded"), allowed(of) {}
  Task<Result<>> start() const {
    if (!allowed) co_return fail(Errc::unsupported);
    co_return {};
  }
  const bool& allowed;
};

TEST_F(ReplacementTest, AFailedServiceStartsAgainIfTheNewOneCannotStart) {
  ASSERT_TRUE(start());
  bool allowed = false;
  const ServiceId old =
      app_.per_core([&allowed](const Journal& journal) { return Guarded(journal, allowed); });
  EXPECT_EQ(run(app_.apply()).error(), Errc::unsupported);
  allowed = true;
  lines_.clear();
  EXPECT_EQ(run(app_.replace(old, database("bad"))).error(), Errc::limit_reached);
  expect_order({"database bad made", "database bad gone", "database guarded made"});
  EXPECT_EQ(report("::Guarded").state, ServiceState::running);
  stop();
}

struct Spare : JournaledService {
  explicit Spare(const Journal& journal) : JournaledService(journal, "spare") {}
};

TEST_F(ReplacementTest, AServiceOfAnotherPlacementReplacesExclusively) {
  const ServiceId spare = app_.per_core<Spare>();
  ASSERT_TRUE(start());
  lines_.clear();
  const ServiceId shared = app_.shared<Spare>();
  ASSERT_TRUE(run(app_.replace(spare, shared)));
  EXPECT_EQ(std::exchange(lines_, {}), (Lines{"spare gone", "spare made"}));
  EXPECT_EQ(report("::Spare").placement, Placement::shared);
  EXPECT_EQ(run(app_.replace(shared, database("bad"))).error(), Errc::limit_reached);
  expect_order({"spare gone", "database bad made", "database bad gone", "spare made"});
  EXPECT_EQ(report("::Spare").placement, Placement::shared) << "the old placement";
  stop();
}

struct OwnSpare : Spare {
  OwnSpare(const Journal& journal, inject::Requester) : Spare(journal) {}
};
struct SpareUser : JournaledService {
  SpareUser(const Journal& journal, Spare&) : JournaledService(journal, "user") {}
};

TEST_F(ReplacementTest, AReplacementIsExclusiveIfOneServiceIsMadeByRequest) {
  const ServiceId spare = app_.per_core<Spare>();
  app_.per_core<SpareUser>();
  ASSERT_TRUE(start());
  lines_.clear();
  const Lines exclusive{"user gone", "spare gone", "spare made", "user made"};
  const ServiceId own = app_.per_core<OwnSpare, Spare>();
  ASSERT_TRUE(run(app_.replace(spare, own)));
  EXPECT_EQ(std::exchange(lines_, {}), exclusive);
  ASSERT_TRUE(run(app_.replace(own, app_.per_core<Spare>())));
  EXPECT_EQ(std::exchange(lines_, {}), exclusive);
  EXPECT_EQ(app_.explain().services.size(), 3U);
  stop();
}

TEST_F(ReplacementTest, AServiceThatDependantsCannotTakeReplacesExclusively) {
  start_with_a();
  const ServiceId spare = app_.per_core<Spare>();
  ASSERT_TRUE(run(app_.replace(a_, spare)));
  expect_order({"web on a gone", "store on a gone", "database a gone", "spare made"});
  EXPECT_FALSE(has_line("store on a made"));
  EXPECT_EQ(report("::Store").state, ServiceState::waiting);
  EXPECT_FALSE(app_.contains(a_));
  database("b");
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_TRUE(has_line("web on b made"));
  stop();
}

TEST_F(ReplacementTest, AnExclusiveServiceIsReplacedExclusively) {
  start_with_a();
  const ServiceId b = database("b", ReplacePolicy::exclusive);
  ASSERT_TRUE(run(app_.replace(a_, b)));
  ASSERT_TRUE(run(app_.replace(b, database("c"))));
  expect_order({"web on b gone", "database b gone", "database c made", "web on c made"});
  stop();
}

TEST_F(ReplacementTest, AReplacementIsComplete) {
  start_with_a();
  for (const auto how : {ReplacePolicy::side_by_side, ReplacePolicy::exclusive}) {
    const ServiceId b = database("b", how);
    ASSERT_TRUE(run(app_.replace(a_, b)));
    a_ = b;
    lines_.clear();
    ASSERT_TRUE(run(app_.apply()));
    EXPECT_TRUE(lines_.empty()) << "nothing is left to be added";
    EXPECT_EQ(app_.explain().services.size(), 6U);
    ASSERT_TRUE(run(app_.stop(web_)));
    EXPECT_TRUE(has_line("web on b gone")) << "it is the new instance";
    ASSERT_TRUE(run(app_.start(web_)));
  }
  stop();
}

TEST_F(ReplacementTest, AServiceThatWaitsForAnotherDoesNotReplace) {
  start_with_a();
  for (const auto how : {ReplacePolicy::side_by_side, ReplacePolicy::exclusive}) {
    lines_.clear();
    const ServiceId waiting =
        app_.per_core([](const Journal& journal, Spare&) { return Database(journal, "waiting"); },
                      {.replace_policy = how});
    EXPECT_EQ(run(app_.replace(a_, waiting)).error(), Errc::bad_configuration);
    EXPECT_EQ(app_.errors(),
              (std::vector<std::string>{
                  std::string(inject::type<Database>.name) + " on core 0 waits for " +
                  std::string(inject::type<Spare>.name) + ", which no service provides"}));
    EXPECT_EQ(platform_.logged().back(), "weir: " + app_.errors().front());
    EXPECT_FALSE(app_.contains(waiting));
    EXPECT_FALSE(has_line("database waiting made"));
    EXPECT_EQ(has_line("database a gone"), how == ReplacePolicy::exclusive);
    EXPECT_EQ(report("::Database").state, ServiceState::running);
    EXPECT_EQ(report("::Web").state, ServiceState::running);
  }
  stop();
}

TEST_F(ReplacementTest, AServiceThatWasNotAddedYetIsReplaced) {
  ASSERT_TRUE(start());
  const ServiceId pending = database("pending");
  const ServiceId b = database("b");
  ASSERT_TRUE(run(app_.replace(pending, b)));
  EXPECT_EQ(std::exchange(lines_, {}), Lines{"database b made"});
  EXPECT_FALSE(app_.contains(pending));
  const ServiceId other = database("other");
  const ServiceId waiting =
      app_.per_core([](const Journal& journal, Spare&) { return Database(journal, "waiting"); });
  EXPECT_EQ(run(app_.replace(other, waiting)).error(), Errc::bad_configuration);
  EXPECT_EQ(app_.errors().size(), 1U);
  EXPECT_FALSE(app_.contains(waiting));
  EXPECT_TRUE(lines_.empty()) << "the old service did not run before";
  EXPECT_TRUE(app_.contains(other));
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(std::exchange(lines_, {}), Lines{"database other made"});
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_TRUE(lines_.empty());
  stop();
}

TEST_F(ReplacementTest, AServiceThatWasNotAddedYetStaysStopped) {
  ASSERT_TRUE(start());
  const ServiceId old = database("old");
  ASSERT_TRUE(run(app_.stop(old)));
  EXPECT_EQ(run(app_.replace(old, database("bad"))).error(), Errc::limit_reached);
  lines_.clear();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_TRUE(lines_.empty()) << "it was stopped";
  ASSERT_TRUE(run(app_.start(old)));
  EXPECT_EQ(lines_, Lines{"database old made"});
  stop();
}

struct Tool {};
struct Any {
  bool operator()(const Properties&) const { return true; }
};
struct ToolUser : JournaledService {
  ToolUser(const Journal& journal, Database& below, inject::Where<Tool, Any>)
      : JournaledService(journal, "tool user on " + below.name) {}
};

// The filter selects the tool that was registered first. The replaced tool is the last one then.
TEST_F(ReplacementTest, ADependantThatWaitsForAnotherServiceIsNamed) {
  a_ = database("a");
  app_.per_core<Store>();
  app_.per_core<Logger>();
  const ServiceId first = app_.per_core<Tool>();
  const ServiceId second = app_.per_core<Tool>();
  app_.per_core<ToolUser>();
  ASSERT_TRUE(start());
  ASSERT_TRUE(run(app_.replace(first, app_.per_core<Tool>())));
  ASSERT_TRUE(run(app_.stop(second)));
  lines_.clear();
  const ServiceId b = database("b");
  EXPECT_EQ(run(app_.replace(a_, b)).error(), Errc::bad_configuration);
  EXPECT_EQ(app_.errors(),
            Lines{std::string(inject::type<ToolUser>.name) + " on core 0 waits for " +
                  std::string(inject::type<Tool>.name) + " on core 0"});
  EXPECT_EQ(platform_.logged().back(), "weir: " + app_.errors().front());
  EXPECT_FALSE(app_.contains(b));
  EXPECT_TRUE(has_line("database b gone"));
  EXPECT_FALSE(has_line("tool user on a gone"));
  EXPECT_FALSE(has_line("store on a gone"));
  stop();
}

struct Greedy : JournaledService {
  explicit Greedy(Journal& journal) : JournaledService(journal, "greedy") {}
};
struct Routed : JournaledService {
  Routed(const Journal& journal, http::ServiceRoutes&) : JournaledService(journal, "routed") {}
};
struct Face {
  virtual ~Face() = default;
};
struct Smile : Face {};
struct Frown : Face {};
struct Mirror {
  explicit Mirror(Face&) {}
};

TEST_F(ReplacementTest, AnInvalidServiceDoesNotReplaceSideBySide) {
  a_ = database("a");
  app_.per_core<Store>();
  app_.per_core<Logger>();
  app_.per_core<Web>();
  const ServiceId spare = app_.per_core<Spare>();
  app_.per_core<Smile, Face>();
  app_.per_core<Mirror>();
  ASSERT_TRUE(start());
  lines_.clear();
  const auto circle = [](const Journal& journal, Web&) { return Database(journal, "circle"); };
  struct Case {
    ServiceId old;
    ServiceId fresh;
    std::string_view error;
  };
  const Case cases[] = {{spare, app_.per_core<Greedy>(), "take it as const"},
                        {spare, app_.per_core<Routed>(), "no router is mounted"},
                        {spare, app_.per_core<Frown, Face>(), "there are several: "},
                        {a_, app_.per_core(circle), "dependency cycle: "}};
  for (const Case& each : cases) {
    EXPECT_EQ(run(app_.replace(each.old, each.fresh)).error(), Errc::bad_configuration);
    ASSERT_EQ(app_.errors().size(), 1U) << each.error;
    EXPECT_NE(app_.errors().front().find(each.error), std::string::npos) << app_.errors().front();
    EXPECT_EQ(platform_.logged().back(), "weir: " + app_.errors().front());
    EXPECT_FALSE(app_.contains(each.fresh));
    EXPECT_TRUE(lines_.empty()) << "nothing was made";
  }
  EXPECT_TRUE(run(app_.apply())) << "all services fit together";
  EXPECT_EQ(app_.explain().services.size(), 8U);
  const ServiceId b = database("b");
  EXPECT_TRUE(run(app_.replace(a_, b)));
  EXPECT_TRUE(has_line("web on b made"));
  stop();
}

TEST_F(ReplacementTest, AnInvalidServiceDoesNotReplaceAndIsLogged) {
  start_with_a();
  const ServiceId greedy = app_.per_core<Greedy>({.replace_policy = ReplacePolicy::exclusive});
  EXPECT_EQ(run(app_.replace(a_, greedy)).error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("take it as const"), std::string::npos);
  EXPECT_EQ(platform_.logged().back(), "weir: " + app_.errors().front());
  EXPECT_FALSE(app_.contains(greedy));
  EXPECT_FALSE(has_line("greedy made"));
  expect_order({"database a gone", "database a made", "web on a made"});
  stop();
}

enum class Region { europe, asia };
struct InAsia {
  bool operator()(Region region) const { return region == Region::asia; }
};
struct Local : JournaledService {
  Local(const Journal& journal, inject::Where<Database, InAsia> below)
      : JournaledService(journal, "local on " + below->name) {}
};

TEST_F(ReplacementTest, AServiceThatAFilterRejectsReplacesExclusively) {
  const auto in = [this](const std::string& name, Region region) {
    return app_.per_core([name](const Journal& journal) { return Database(journal, name); },
                         {.properties = {region}});
  };
  const ServiceId a = in("a", Region::asia);
  app_.per_core<Local>();
  ASSERT_TRUE(start());
  lines_.clear();
  const ServiceId b = in("b", Region::asia);
  ASSERT_TRUE(run(app_.replace(a, b)));
  expect_order({"database b made", "local on b made", "local on a gone"});
  lines_.clear();
  const ServiceId c = in("c", Region::europe);
  ASSERT_TRUE(run(app_.replace(b, c)));
  expect_order({"local on b gone", "database b gone", "database c made"});
  EXPECT_EQ(report("::Local").state, ServiceState::waiting);
  EXPECT_FALSE(has_line("local on c made"));
  lines_.clear();
  const ServiceId d = in("d", Region::asia);
  ASSERT_TRUE(run(app_.replace(c, d)));
  expect_order({"database d made", "database c gone"});
  expect_order({"database d made", "local on d made"});
  EXPECT_EQ(report("::Local").state, ServiceState::running);
  ASSERT_TRUE(run(app_.replace(d, in("e", Region::asia))));
  expect_order({"local on e made", "local on d gone"});
  stop();
}

/// A replacement of a Spare that provides a tool in addition.
struct Toolbox : Spare, Tool {
  using Spare::Spare;
};
struct Worker : JournaledService {
  Worker(const Journal& journal, Tool&) : JournaledService(journal, "worker") {}
};
struct Apprentice : JournaledService {
  Apprentice(const Journal& journal, inject::All<Tool> of)
      : JournaledService(journal, "apprentice"), tools(of) {
    tools.on_change([this] { write(tools.empty() ? "has no tool" : "has a tool"); });
  }
  inject::All<Tool> tools;
};

TEST_F(ReplacementTest, ANewServiceIsGivenToServicesThatWaitForIt) {
  const ServiceId spare = app_.per_core<Spare>();
  app_.per_core<Apprentice>();
  ASSERT_TRUE(start());
  app_.per_core<Worker>();
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_FALSE(has_line("worker made"));
  lines_.clear();
  const ServiceId toolbox = app_.per_core<Toolbox, Spare, Tool>();
  ASSERT_TRUE(run(app_.replace(spare, toolbox)));
  EXPECT_EQ(std::ranges::count(lines_, "worker made"), 1);
  EXPECT_EQ(std::ranges::count(lines_, "apprentice has a tool"), 1);
  lines_.clear();
  ASSERT_TRUE(run(app_.remove(toolbox)));
  EXPECT_EQ(std::ranges::count(lines_, "worker gone"), 1);
  EXPECT_EQ(std::ranges::count(lines_, "apprentice has no tool"), 1);
  stop();
}

struct Broken : JournaledService {
  Broken(const Journal& journal, Tool&) : JournaledService(journal, "broken") {}
  static Task<Result<>> start() { co_return fail(Errc::unsupported); }
};

TEST_F(ReplacementTest, AServiceThatWaitedForTheNewOneMayFail) {
  const ServiceId spare = app_.per_core<Spare>();
  ASSERT_TRUE(start());
  app_.per_core<Broken>();
  ASSERT_TRUE(run(app_.apply()));
  const ServiceId toolbox = app_.per_core<Toolbox, Spare, Tool>();
  EXPECT_TRUE(run(app_.replace(spare, toolbox)));
  EXPECT_TRUE(has_line("broken gone"));
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_EQ(platform_.logged().back(), "weir: " + app_.errors().front());
  EXPECT_EQ(report("::Broken").state, ServiceState::failed);
  EXPECT_TRUE(app_.contains(toolbox));
  stop();
}

struct LazyWorker : JournaledService {
  LazyWorker(const Journal& journal, inject::Lazy<Tool>)
      : JournaledService(journal, "lazy worker") {}
};

// The worker is offered the new service, which requires the worker.
TEST_F(ReplacementTest, ACycleThroughAServiceThatLacksAProviderIsFound) {
  const ServiceId spare = app_.per_core<Spare>();
  ASSERT_TRUE(start());
  app_.per_core<LazyWorker>();
  ASSERT_TRUE(run(app_.apply()));
  const ServiceId toolbox = app_.per_core<Spare, Tool>(
      [](const Journal& journal, LazyWorker&) { return Toolbox(journal); });
  EXPECT_EQ(run(app_.replace(spare, toolbox)).error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("dependency cycle: "), std::string::npos);
  EXPECT_EQ(report("::Spare").state, ServiceState::running);
  stop();
}

/// A service for each requester that uses a tool.
struct Drill {
  Drill(inject::Requester, Tool&) {}
};
struct Bench : JournaledService {
  Bench(const Journal& journal, Tool&, Drill&) : JournaledService(journal, "bench") {}
  explicit Bench(const Journal& journal) : JournaledService(journal, "bench") {}
};
/// A bench that needs no other tool, because it is one.
struct ToolBench : Bench, Tool {
  using Bench::Bench;
};

TEST_F(ReplacementTest, TheOldServiceIsNotValidated) {
  app_.per_core<Tool>();
  app_.per_core<Drill>();
  const ServiceId old = app_.per_core([](const Journal& journal, Tool& tool, Drill& drill) {
    return std::make_unique<Bench>(journal, tool, drill);
  });
  ASSERT_TRUE(start());
  lines_.clear();
  const ServiceId fresh = app_.per_core<Bench, Tool>(
      [](const Journal& journal) { return std::make_unique<ToolBench>(journal); });
  EXPECT_TRUE(run(app_.replace(old, fresh)));
  EXPECT_TRUE(app_.errors().empty());
  EXPECT_EQ(lines_, (Lines{"bench made", "bench gone"}));
  EXPECT_FALSE(app_.contains(old));
  stop();
}

struct Report {
  explicit Report(const Tool&) {}
};

// The shared report cannot take the tool that remains, and waits. That is no error of the change.
TEST_F(ReplacementTest, ErrorsOfOtherServicesDoNotPreventAReplacement) {
  const ServiceId tool = app_.shared<Tool>();
  app_.per_core<Tool>();
  app_.shared<Report>();
  const ServiceId spare = app_.per_core<Spare>();
  ASSERT_TRUE(start());
  ASSERT_TRUE(run(app_.remove(tool)));
  lines_.clear();
  EXPECT_TRUE(run(app_.replace(spare, app_.per_core<Spare>())));
  EXPECT_TRUE(app_.errors().empty());
  EXPECT_EQ(lines_, (Lines{"spare made", "spare gone"}));
  const ServiceId now = report("::Spare").id;
  EXPECT_EQ(run(app_.replace(now, app_.per_core<Greedy>())).error(), Errc::bad_configuration);
  EXPECT_EQ(app_.errors().size(), 1U) << "the error of the change only";
  stop();
}

struct Unused : JournaledService {
  explicit Unused(const Journal& journal) : JournaledService(journal, "unused") {}
};
struct LazyUser {
  explicit LazyUser(inject::Lazy<Unused>) {}
};

TEST_F(ReplacementTest, ARejectedServiceStartsNoOther) {
  const ServiceId spare = app_.per_core<Spare>();
  const ServiceId unused = app_.per_core<Unused>();
  app_.per_core<LazyUser>();
  ASSERT_TRUE(start());
  lines_.clear();
  const ServiceId fresh =
      app_.per_core([](Journal& journal, Unused&) { return std::make_unique<Greedy>(journal); });
  EXPECT_EQ(run(app_.replace(spare, fresh)).error(), Errc::bad_configuration);
  ASSERT_TRUE(run(app_.start(unused)));
  EXPECT_TRUE(lines_.empty()) << "no service has requested the unused one";
  stop();
}

/// A dependant that only works with database a.
struct Picky : JournaledService {
  Picky(const Journal& journal, Database& below)
      : JournaledService(journal, "picky on " + below.name), good(below.name == "a") {}
  Task<Result<>> start() const {
    if (!good) co_return fail(Errc::unsupported);
    co_return {};
  }
  bool good;
};
/// A dependant that starts slowly.
struct Sluggish : JournaledService {
  Sluggish(const Journal& journal, Database& below)
      : JournaledService(journal, "sluggish on " + below.name) {}
  static Task<Result<>> start() { co_return co_await sleep(10s); }
};

// Database a has stopped after 1 s, and database b has started after 2 s.
TEST_F(ReplacementTest, AFailureIsExplainedAfterTheAppWasStoppedMeanwhile) {
  a_ = database("a");
  app_.per_core<Picky>();
  app_.per_core<Sluggish>();
  ASSERT_TRUE(start());
  const ServiceId b = database("b", ReplacePolicy::exclusive);
  const auto both = [&](Scope& scope) -> Task<> {
    const auto replace = [](App& app, ServiceId old, ServiceId fresh) -> Task<> {
      const Result<> replaced = co_await app.replace(old, fresh);
      EXPECT_EQ(replaced.error(), Errc::cancelled);
    };
    scope.spawn(replace(app_, a_, b));
    std::ignore = co_await sleep(5s);
    co_await app_.stop();
  };
  static_cast<void>(run(with_scope(both)));
  EXPECT_FALSE(app_.running());
  EXPECT_TRUE(has_line("sluggish on b gone"));
  EXPECT_EQ(report("::Picky").state, ServiceState::failed);
  EXPECT_EQ(report("::Picky").failure, make_error_code(Errc::unsupported).message());
  lines_.clear();
  ASSERT_TRUE(start());
  EXPECT_TRUE(has_line("picky on a made"));
  stop();
}

TEST_F(ReplacementTest, AFailedDependantStartsAgainWithTheOldService) {
  a_ = database("a");
  app_.per_core<Picky>();
  ASSERT_TRUE(start());
  lines_.clear();
  const ServiceId b = database("b", ReplacePolicy::exclusive);
  EXPECT_EQ(run(app_.replace(a_, b)).error(), Errc::unsupported);
  expect_order({"picky on a gone", "database a gone", "database b made", "picky on b made",
                "picky on b gone", "database b gone", "database a made", "picky on a made"});
  EXPECT_EQ(report("::Picky").state, ServiceState::running);
  EXPECT_EQ(app_.errors().size(), 1U);
  stop();
}

}  // namespace
}  // namespace weir::replacement_test

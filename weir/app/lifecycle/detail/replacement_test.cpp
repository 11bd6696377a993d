// Tests of the replacement of running services.
#include "weir/app/lifecycle/detail/replacement.hpp"

#include <string>
#include <vector>

#include "weir/app/test/app_fixture.hpp"

namespace weir {
namespace {

using Lines = std::vector<std::string>;

struct Database : JournaledService {
  Database(const Journal& journal, std::string of)
      : JournaledService(journal, "database " + of), name(of) {}
  Task<Result<>> start() {
    static_cast<void>(co_await sleep(1s));
    if (name == "bad") co_return fail(Errc::limit_reached);
    co_return {};
  }
  Task<> stop() {
    write("stopping");
    static_cast<void>(co_await sleep(1s));
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
    app_.per_core<Logger>();
    app_.per_core<Watcher>();
    web_ = app_.per_core<Web>();
    ASSERT_TRUE(start());
    lines_.clear();
  }
  std::size_t count(const std::string& line) const {
    return static_cast<std::size_t>(std::ranges::count(lines_, line));
  }
  ServiceId a_;
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
    static_cast<void>(co_await sleep(500ms));
    co_await app_.stop();
  };
  static_cast<void>(run(with_scope(both)));
  EXPECT_TRUE(has_line("database b gone"));
  EXPECT_TRUE(has_line("database a gone"));
  EXPECT_FALSE(app_.running());
}

}  // namespace
}  // namespace weir

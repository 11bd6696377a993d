// Tests of scoped services and of the scopes that own them.
#include "weir/app/handles/scoped.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/app/test/app_fixture.hpp"
#include "weir/runtime/runtime.hpp"

namespace weir::scoped_test {
namespace {

using Lines = std::vector<std::string>;

/// The root object of the scopes.
struct Request {
  std::string path = "/";
};

struct Database : JournaledService {
  explicit Database(const Journal& journal) : JournaledService(journal, "database") {}
  Task<> stop() {
    write("stopping");
    co_return;
  }
};
struct Trace : JournaledService {
  Trace(const Journal& journal, Request& of)
      : JournaledService(journal, "trace of " + of.path), request(of) {}
  Request& request;
};
struct Named {
  virtual ~Named() = default;
  virtual std::string name() const = 0;
};
struct Session : JournaledService, Named {
  Session(const Journal& journal, const Request& of, Database& on, Trace& by)
      : JournaledService(journal, "session of " + of.path),
        database(on),
        trace(by),
        path(of.path) {}
  std::string name() const override { return "session of " + path; }
  Database& database;
  Trace& trace;
  std::string path;
};

/// A service that the tests open scopes with.
struct Web {
  explicit Web(inject::Scoped<Request> of) : requests(of) {}
  inject::Scoped<Request> requests;
};

class ScopedTest : public AppTest {
 protected:
  ServiceId add_web() {
    return app_.per_core([this](inject::Scoped<Request> of) {
      auto made = std::make_unique<Web>(of);
      web_ = made.get();
      return made;
    });
  }
  void start_all() {
    database_ = app_.per_core<Database>();
    session_ = app_.scoped<Request, Session, Named>();
    trace_ = app_.scoped<Request, Trace>();
    add_web();
    ASSERT_TRUE(start());
    lines_.clear();
  }

  Web* web_ = nullptr;
  ServiceId database_;
  ServiceId session_;
  ServiceId trace_;
};

TEST_F(ScopedTest, EachScopeMakesItsInstancesOnDemandAndDestroysThemInReverse) {
  start_all();
  {
    Request first{"/first"};
    auto scope = web_->requests.open(first);
    EXPECT_TRUE(lines_.empty());
    const auto session = scope.get<Session>();
    ASSERT_TRUE(session);
    EXPECT_EQ(lines_, (Lines{"trace of /first made", "session of /first made"}));
    EXPECT_EQ(&scope.get<Session>()->get(), &session->get());
    EXPECT_EQ(&scope.get<Trace>()->get(), &session->get().trace);
    EXPECT_EQ(&session->get().trace.request, &first);
    Request second{"/second"};
    auto other = web_->requests.open(second);
    ASSERT_TRUE(other.get<Trace>());
    EXPECT_EQ(&other.get<Trace>()->get().request, &second);
    EXPECT_EQ(lines_.back(), "trace of /second made");
    lines_.clear();
  }
  EXPECT_EQ(lines_,
            (Lines{"trace of /second gone", "session of /first gone", "trace of /first gone"}));
  stop();
}

TEST_F(ScopedTest, AnInstanceIsUsedAlsoIfOthersWereMadeAfterIt) {
  struct Stamp {};
  app_.scoped<Request, Stamp>();
  start_all();
  {
    Request request{"/first"};
    auto scope = web_->requests.open(request);
    const auto trace = scope.get<Trace>();
    ASSERT_TRUE(trace && scope.get<Stamp>());
    EXPECT_EQ(&scope.get<Session>()->get().trace, &trace->get());
    EXPECT_EQ(lines_, (Lines{"trace of /first made", "session of /first made"}));
  }
  stop();
}

TEST_F(ScopedTest, AnUnusedScopeMakesNothing) {
  start_all();
  Request request;
  {
    const auto scope = web_->requests.open(request);
  }
  EXPECT_TRUE(lines_.empty());
  stop();
}

TEST_F(ScopedTest, AnInstanceHasItsInterfaces) {
  start_all();
  Request request{"/named"};
  {
    auto scope = web_->requests.open(request);
    const auto named = scope.get<Named>();
    ASSERT_TRUE(named);
    EXPECT_EQ(named->get().name(), "session of /named");
    EXPECT_EQ(static_cast<Named*>(&scope.get<Session>()->get()), &named->get());
    EXPECT_EQ(&scope.get<const Session>()->get(), &scope.get<Session>()->get());
  }
  stop();
}

TEST_F(ScopedTest, EachInstanceAllocatesOneBlock) {
  start_all();
  const auto count = [&]() -> Task<> {
    Request request;
    const std::size_t before = frames();
    auto scope = web_->requests.open(request);
    EXPECT_EQ(frames(), before);
    EXPECT_TRUE(scope.get<Session>());
    EXPECT_EQ(frames(), before + 2) << "a session and its trace";
    co_return;
  };
  run_made(count);
  stop();
}

TEST_F(ScopedTest, GetReturnsOrThrowsTheErrorOfTheFactory) {
  struct Failing {};
  struct Throwing {};
  app_.scoped<Request>([](Trace&) -> Result<Failing> { return fail(Errc::limit_reached); });
  app_.scoped<Request>(
      [](Trace&) -> std::unique_ptr<Throwing> { throw std::runtime_error("no luck"); });
  start_all();
  {
    Request request{"/broken"};
    auto scope = web_->requests.open(request);
    EXPECT_EQ(scope.get<Failing>().error(), Errc::limit_reached);
    EXPECT_EQ(scope.get<Failing>().error(), Errc::limit_reached);
    EXPECT_THROW(static_cast<void>(scope.get<Throwing>()), std::runtime_error);
    EXPECT_TRUE(scope.get<Session>());
    EXPECT_EQ(lines_.size(), 8U) << "a temporary trace for each attempt, and one for the session";
  }
  stop();
}

TEST_F(ScopedTest, InstancesForAFailedOneAreDestroyed) {
  struct Failing {};
  app_.scoped<Request>([](Trace&) -> Result<Failing> { return fail(Errc::limit_reached); });
  start_all();
  {
    Request request{"/vain"};
    auto scope = web_->requests.open(request);
    EXPECT_EQ(scope.get<Failing>().error(), Errc::limit_reached);
    EXPECT_EQ(lines_, (Lines{"trace of /vain made", "trace of /vain gone"}));
    EXPECT_TRUE(run(app_.remove(trace_))) << "no scope has an instance";
    EXPECT_EQ(scope.get<Trace>().error(), Errc::not_found);
  }
  stop();
}

enum class Kind { plain, rich };
struct IsRich {
  bool operator()(Kind kind) const { return kind == Kind::rich; }
};
struct View {
  Kind kind;
  int number = 1;
};

TEST_F(ScopedTest, SeveralProvidersNeedAFilter) {
  app_.scoped<Request>([] { return View{Kind::plain}; }, {.properties = {Kind::plain}});
  app_.scoped<Request>([] { return View{Kind::rich}; }, {.properties = {Kind::rich}});
  app_.scoped<Request>([] { return View{Kind::rich, 2}; }, {.properties = {Kind::rich}});
  struct Page {
    Kind kind;
  };
  app_.scoped<Request>([](inject::Where<View, IsRich> view) { return Page{view->kind}; });
  start_all();
  {
    Request request;
    auto scope = web_->requests.open(request);
    EXPECT_EQ(scope.get<View>().error(), Errc::conflict);
    const auto rich = scope.get<View, IsRich>();
    ASSERT_TRUE(rich);
    EXPECT_EQ(rich->get().kind, Kind::rich);
    EXPECT_EQ(rich->get().number, 1) << "the first that the filter accepts";
    ASSERT_TRUE(scope.get<Page>());
    EXPECT_EQ(scope.get<Page>()->get().kind, Kind::rich);
  }
  stop();
}

TEST_F(ScopedTest, DifferentRootsHaveDifferentScopes) {
  struct Connection {
    int number = 0;
  };
  struct Peer {
    int number;
  };
  app_.scoped<Connection>([](Connection& of) { return Peer{of.number}; });
  const inject::Scoped<Connection>* connections = nullptr;
  struct Listener {
    explicit Listener(inject::Scoped<Connection> from) : of(from) {}
    inject::Scoped<Connection> of;
  };
  app_.per_core([&connections](inject::Scoped<Connection> of) {
    auto made = std::make_unique<Listener>(of);
    connections = &made->of;
    return made;
  });
  start_all();
  {
    Request request;
    Connection connection{7};
    auto of_request = web_->requests.open(request);
    auto of_connection = connections->open(connection);
    EXPECT_EQ(of_request.get<Peer>().error(), Errc::not_found);
    EXPECT_EQ(of_connection.get<Session>().error(), Errc::not_found);
    EXPECT_EQ(of_connection.get<Peer>()->get().number, 7);
  }
  stop();
}

struct Cache {};

TEST_F(ScopedTest, AnInstanceTakesHandlesAndTheLoop) {
  struct View {
    Loop* loop;
    App* app;
    std::size_t caches;
    bool cached;
    inject::Lazy<Cache> lazy;
  };
  app_.scoped<Request>(
      [](Loop& loop, App& app, inject::All<Cache> all, inject::Optional<Cache> one,
         inject::Lazy<Cache> lazy) { return View{&loop, &app, all.size(), bool(one), lazy}; });
  const ServiceId cache = app_.per_core<Cache>();
  start_all();
  const auto look = [&](std::size_t caches) {
    Request request;
    auto scope = web_->requests.open(request);
    const auto view = scope.get<View>();
    ASSERT_TRUE(view);
    EXPECT_EQ(view->get().loop, loop_.get());
    EXPECT_EQ(view->get().app, &app_);
    EXPECT_EQ(view->get().caches, caches);
    EXPECT_EQ(view->get().cached, caches != 0);
  };
  look(0);  // no service has requested the cache
  const auto request_cache = [&]() -> Task<> {
    Request request;
    auto scope = web_->requests.open(request);
    const auto view = scope.get<View>();
    EXPECT_TRUE(view);
    EXPECT_TRUE(co_await view->get().lazy.get());
  };
  run(request_cache());
  look(1);
  ASSERT_TRUE(run(app_.remove(cache)));
  {
    Request request;
    auto scope = web_->requests.open(request);
    EXPECT_EQ(scope.get<View>().error(), Errc::not_found) << "it has used the cache";
  }
  stop();
}

// --- changes of services -------------------------------------------------------------------------

TEST_F(ScopedTest, DependenciesStopAfterTheScopesThatUseThem) {
  start_all();
  const auto body = [&](Scope& tasks) -> Task<> {
    Request request{"/long"};
    {
      auto scope = web_->requests.open(request);
      auto unconcerned = web_->requests.open(request);
      EXPECT_TRUE(scope.get<Session>());
      tasks.spawn(app_.stop(database_));
      std::ignore = co_await sleep(1h);
      EXPECT_FALSE(has_line("database stopping"));
      EXPECT_TRUE(scope.get<Session>()) << "it has an instance already";
      EXPECT_EQ(unconcerned.get<Session>().error(), Errc::not_found);
      EXPECT_TRUE(unconcerned.get<Trace>()) << "which does not need the database";
    }
    co_await yield();
    EXPECT_TRUE(has_line("database stopping"));
    expect_order({"session of /long gone", "database stopping"});
  };
  ASSERT_TRUE(run(with_scope(body)));
  EXPECT_TRUE(app_.running());
  ASSERT_TRUE(run(app_.start(database_)));
  {
    Request request{"/again"};
    auto scope = web_->requests.open(request);
    EXPECT_TRUE(scope.get<Session>());
  }
  stop();
}

TEST_F(ScopedTest, ACallbackReportsAStopThatWaitsForAScope) {
  start_all();
  int changes = 0;
  web_->requests.on_change([&changes] { ++changes; });
  const auto body = [&](Scope& tasks) -> Task<> {
    Request request;
    {
      auto scope = web_->requests.open(request);
      EXPECT_TRUE(scope.get<Session>());
      tasks.spawn(app_.stop(database_));
      std::ignore = co_await sleep(1s);
      EXPECT_EQ(changes, 1);
      EXPECT_FALSE(has_line("database stopping"));
    }
    co_await yield();
    EXPECT_TRUE(has_line("database stopping"));
  };
  ASSERT_TRUE(run(with_scope(body)));
  EXPECT_EQ(changes, 1) << "once for each departure";
  ASSERT_TRUE(run(app_.start(database_)));
  EXPECT_EQ(changes, 2);
  stop();
}

TEST_F(ScopedTest, ScopedServicesAreAddedReplacedAndRemoved) {
  start_all();
  struct Late {
    int number;
  };
  const auto number = [&]() -> Result<int> {
    Request request;
    auto scope = web_->requests.open(request);
    WEIR_TRY(const auto late, scope.get<Late>());
    return late.get().number;
  };
  EXPECT_EQ(number().error(), Errc::not_found);
  const ServiceId one = app_.scoped<Request>([] { return Late{1}; });
  ASSERT_TRUE(run(app_.apply()));
  EXPECT_EQ(number().value(), 1);
  const ServiceId two = app_.scoped<Request>([](Trace&) { return Late{2}; });
  ASSERT_TRUE(run(app_.replace(one, two)));
  EXPECT_EQ(number().value(), 2);
  ASSERT_TRUE(run(app_.remove(two)));
  EXPECT_EQ(number().error(), Errc::not_found);
  stop();
}

TEST_F(ScopedTest, OpenScopesKeepAReplacedDependency) {
  start_all();
  const auto body = [&](Scope& tasks) -> Task<> {
    Request request;
    {
      auto scope = web_->requests.open(request);
      Database* const old = &scope.get<Session>()->get().database;
      const ServiceId fresh = app_.per_core<Database>();
      const auto replace = [](App& app, ServiceId from, ServiceId to) -> Task<> {
        EXPECT_TRUE(co_await app.replace(from, to));
      };
      tasks.spawn(replace(app_, database_, fresh));
      std::ignore = co_await sleep(1h);
      auto next = web_->requests.open(request);
      EXPECT_NE(&next.get<Session>()->get().database, old);
      EXPECT_EQ(&scope.get<Session>()->get().database, old);
      EXPECT_FALSE(has_line("database stopping"));
    }
  };
  ASSERT_TRUE(run(with_scope(body)));
  EXPECT_TRUE(has_line("database stopping"));
  stop();
}

// --- errors --------------------------------------------------------------------------------------

TEST_F(ScopedTest, OtherServicesMayNotTakeScopedOnes) {
  struct Outsider {};
  app_.per_core([](Trace&) { return Outsider(); });
  app_.scoped<Request, Trace>();
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  const std::string problem = app_.errors().front();
  EXPECT_NE(problem.find("Outsider requires "), problem.npos) << problem;
  EXPECT_NE(problem.find("Trace, which is created for each "), problem.npos) << problem;
  EXPECT_NE(problem.find("Request (open scopes with "), problem.npos) << problem;
}

TEST_F(ScopedTest, ScopedServicesOfOtherRootsMayNotTakeThem) {
  struct Connection {};
  struct Peer {};
  app_.scoped<Connection>([](Trace&) { return Peer(); });
  app_.scoped<Request, Trace>();
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("Peer requires "), std::string::npos);
}

struct Chicken;
struct Egg {
  explicit Egg(Chicken&) {}
};
struct Chicken {
  explicit Chicken(Egg&) {}
};

TEST_F(ScopedTest, AnOptionalDoesNotTakeServicesOfItsOwnScope) {
  struct Page {
    Page(inject::Optional<Trace> of, inject::All<Trace> every) : trace(of), traces(every) {}
    inject::Optional<Trace> trace;
    inject::All<Trace> traces;
  };
  app_.scoped<Request, Trace>();
  app_.scoped<Request, Page>();
  add_web();
  ASSERT_TRUE(start());
  Request request;
  {
    auto scope = web_->requests.open(request);
    ASSERT_TRUE(scope.get<Trace>());
    const auto page = scope.get<Page>();
    ASSERT_TRUE(page);
    EXPECT_FALSE(page->get().trace);
    EXPECT_TRUE(page->get().traces.empty());
  }
  stop();
}

TEST_F(ScopedTest, ALazyMayNotTakeServicesOfItsOwnScope) {
  struct Page {
    explicit Page(inject::Lazy<Trace> of) : trace(of) {}
    inject::Lazy<Trace> trace;
  };
  app_.scoped<Request, Trace>();
  app_.scoped<Request, Page>();
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  ASSERT_EQ(app_.errors().size(), 1U);
  EXPECT_NE(app_.errors().front().find("which is created for each"), std::string::npos)
      << app_.errors().front();
}

TEST_F(ScopedTest, MissingDependenciesAreReported) {
  app_.scoped<Request, Session>();
  app_.scoped<Request, Chicken>();
  app_.scoped<Request, Egg>();
  EXPECT_EQ(start().error(), Errc::bad_configuration);
  EXPECT_EQ(app_.errors().size(), 3U);
  const auto reported = [&](std::string_view of) {
    return std::ranges::any_of(app_.errors(), [&](auto& each) { return each.contains(of); });
  };
  EXPECT_TRUE(reported("Database, but no service provides it"));
  EXPECT_TRUE(reported("Trace, but no service provides it"));
  EXPECT_TRUE(reported("dependency cycle: "));
}

struct Waits {
  Task<Result<>> start() { co_return {}; }
};
struct WaitsAtItsEnd {
  Task<> stop() { co_return; }
};

TEST(Scoped, ServicesHaveNoStartAndNoStop) {
  static_assert(inject::detail::has_start_or_stop<Waits>);
  static_assert(inject::detail::has_start_or_stop<WaitsAtItsEnd>);
  static_assert(!inject::detail::has_start_or_stop<Session>);
}

TEST(Scoped, IsNotAllowedInSharedServices) {
  static_assert(!inject::has_only_const_dependencies(Parameters<inject::Scoped<Request>>()));
}

// --- all cores -----------------------------------------------------------------------------------

struct PerCore {
  explicit PerCore(Loop& on) : loop(on) {}
  Loop& loop;
};
struct Handler {
  Handler(Request& of, PerCore& on) : request(of), core(on) {}
  ~Handler() { EXPECT_EQ(Loop::current(), &core.loop); }
  Request& request;
  PerCore& core;
};
struct Opener {
  Opener(inject::Scoped<Request> of, Scope& scope) : requests(of), tasks(scope) {}
  Task<Result<>> start() {
    for (int i = 0; i < 3; ++i) tasks.spawn(open());
    co_return {};
  }
  Task<> open() {
    while (!tasks.cancelled()) {
      Request request{"/x"};
      auto scope = requests.open(request);
      const auto handler = scope.get<Handler>();
      if (handler) {
        EXPECT_EQ(Loop::current(), &handler->get().core.loop);
      }
      std::ignore = co_await sleep(50us);  // leaves processor time to the other cores
      if (handler) {
        EXPECT_EQ(handler->get().request.path, "/x");
      }
    }
  }
  inject::Scoped<Request> requests;
  Scope& tasks;
};

TEST(ScopedOnThreads, ScopesStayOnTheirCoreWhileServicesAreReplaced) {
  RuntimeOptions options;
  options.cores = 3;
  options.pin = false;
  options.announce = false;
  Runtime runtime(options);
  App app;
  const auto body = [](App& of) -> Task<> {
    of.per_core<Opener>();
    of.scoped<Request, Handler>();
    ServiceId below = of.per_core<PerCore>();
    EXPECT_TRUE(co_await of.start());
    for (int i = 0; i < 6; ++i) {
      const ServiceId fresh = of.per_core<PerCore>();
      EXPECT_TRUE(co_await of.replace(below, fresh));
      below = fresh;
      EXPECT_TRUE(co_await of.stop(below));
      EXPECT_TRUE(co_await of.start(below));
    }
    co_await of.stop();
  };
  const auto on_first = [&](Scope& scope) -> Task<> {
    if (scope.loop().core() == 0) co_await body(app);
  };
  EXPECT_EQ(runtime.run_on_each_core(on_first), 0);
}

}  // namespace
}  // namespace weir::scoped_test

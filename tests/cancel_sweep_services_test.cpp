// What HTTP handlers and services wait for, cancelled at any time on every real backend; see
// tests/cancel_sweep.hpp.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/cancel_sweep.hpp"
#include "weir/app/app.hpp"
#include "weir/config/config.hpp"
#include "weir/app/config_live.hpp"
#include "weir/event/bus.hpp"
#include "weir/app/handles/detail/lazy.hpp"
#include "weir/app/handles/detail/remote.hpp"
#include "weir/runtime/per_core.hpp"
#include "weir/http.hpp"
#include "weir/http/h1/connection.hpp"
#include "weir/task/timeout.hpp"

namespace weir::tests {
namespace {

/// The servers of a router, one on each core.
class Servers {
 public:
  explicit Servers(const http::Router& router) : router_(&router) {}
  Task<> open() {
    auto make = [router = router_](std::optional<http::ServerCore>& server) {
      server.emplace(*Loop::current(), *router, http::Limits());
    };
    co_await servers_.map(make);
  }
  Task<> close() {
    auto end = [](std::optional<http::ServerCore>& server) { server.reset(); };
    co_await servers_.map(end);
  }

 private:
  const http::Router* router_;
  PerCore<std::optional<http::ServerCore>> servers_{
      2, [](unsigned) { return std::optional<http::ServerCore>(); }};
};

http::Response hello() {
  return http::text("hello");
}

Task<> adding_a_route(Blow& blow, Stage&) {
  http::Router router;
  Servers servers(router);
  co_await servers.open();
  {
    http::LiveRoutes live(router);
    auto adding = live.get("/", hello);
    const auto id = co_await blow.strike(std::move(adding));
    if (!succeeded(id)) {
      auto again = live.get("/", hello);
      EXPECT_TRUE(co_await std::move(again)) << "it was added all the same";
    }
  }
  co_await servers.close();
}

Task<> replacing_a_route(Blow& blow, Stage&) {
  http::Router router;
  Servers servers(router);
  co_await servers.open();
  {
    http::LiveRoutes live(router);
    auto adding = live.get("/", hello);
    const auto id = co_await std::move(adding);
    auto replacing = live.replace(*id, hello);
    static_cast<void>(succeeded(co_await blow.strike(std::move(replacing))));
    EXPECT_TRUE(co_await live.remove(*id));
  }
  co_await servers.close();
}

Task<> removing_a_route(Blow& blow, Stage&) {
  http::Router router;
  Servers servers(router);
  co_await servers.open();
  {
    http::LiveRoutes live(router);
    auto adding = live.get("/", hello);
    const auto id = co_await std::move(adding);
    EXPECT_TRUE(co_await blow.strike(live.remove(*id))) << "it goes all the same";
  }
  co_await servers.close();
}

Task<> serve_one(http::ServerCore* server, tcp::Stream* stream) {
  auto place = server->admit();
  co_await http::serve_connection(std::move(*place), std::move(*stream));
}

/// What a server says to a head and what comes a little later, until it closes.
Task<std::string> ask(Stage& stage, const http::Router& router, std::string_view head,
                      std::string_view later) {
  http::ServerCore server(stage.loop(), router, {});
  Pair pair = co_await connect_pair();
  stage.spawn(serve_one(&server, &pair.far));
  EXPECT_TRUE(co_await pair.near.write(head));
  for (int round = 0; round < 4; ++round) co_await yield();
  if (!later.empty()) static_cast<void>(co_await pair.near.write(later));
  std::string said;
  for (;;) {
    const auto bytes = co_await pair.near.read();
    if (!bytes) break;
    said += bytes->text();
  }
  pair.near.close();
  co_await stage.quiet();
  co_return said;
}

constexpr std::string_view post =
    "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

Task<http::Response> take_body(http::Request& request, Blow* blow) {
  auto body = co_await blow->strike(request.body());
  if (!succeeded(body)) body = co_await request.body();
  co_return http::text(*body);
}

Task<> the_body_of_a_request(Blow& blow, Stage& stage) {
  http::Router router;
  router.post("/", [&blow](http::Request& request) { return take_body(request, &blow); });
  const std::string said = co_await ask(stage, router, post, "late");
  EXPECT_TRUE(said.ends_with("\r\n\r\nlate")) << said;
}

Task<http::Response> look_at_body(http::Request& request, Blow* blow) {
  auto body = co_await blow->strike(request.body_view());
  if (!succeeded(body)) body = co_await request.body_view();
  co_return http::text(std::string(*body));
}

Task<> the_view_of_a_body(Blow& blow, Stage& stage) {
  http::Router router;
  router.post("/", [&blow](http::Request& request) { return look_at_body(request, &blow); });
  const std::string said = co_await ask(stage, router, post, "late");
  EXPECT_TRUE(said.ends_with("\r\n\r\nlate")) << said;
}

Task<http::Response> take_piece(http::Request& request, Blow* blow) {
  auto piece = co_await blow->strike(request.read());
  std::string whole(succeeded(piece) ? to_text(*piece) : "");
  while (whole.size() < 4) {
    piece = co_await request.read();
    EXPECT_TRUE(piece && !piece->empty()) << "of " << whole;
    if (!piece || piece->empty()) break;
    whole += to_text(*piece);
  }
  co_return http::text(whole);
}

Task<> a_piece_of_a_body(Blow& blow, Stage& stage) {
  http::Router router;
  router.post("/", [&blow](http::Request& request) { return take_piece(request, &blow); });
  const std::string said = co_await ask(stage, router, post, "late");
  EXPECT_TRUE(said.ends_with("\r\n\r\nlate")) << said;
}

Task<Result<>> write_much(http::BodySink& sink, Blow* blow, bool* whole) {
  const std::string much(2'000'000, 'x');
  auto written = co_await blow->strike(sink.write(much));
  *whole = succeeded(written);
  co_return written;
}

Task<> a_piece_of_an_answer(Blow& blow, Stage& stage) {
  http::Router router;
  bool whole = false;
  router.get("/", [&] { return http::stream(http::text_type, write_much, &blow, &whole); });
  const std::string said = co_await ask(stage, router, get, {});
  EXPECT_EQ(said.ends_with("\r\n0\r\n\r\n"), whole) << said.size();
}

Task<http::Response> pass_on(http::Request& request, http::Next next, Blow* blow) {
  auto response = co_await blow->strike(next(request));
  co_return response;
}

Task<http::Response> answer_later() {
  const auto slept = co_await sleep(moment);
  co_return slept ? http::text("slept") : http::status(503);
}

Task<> the_answer_behind_middleware(Blow& blow, Stage& stage) {
  http::Router router;
  router.use(
      [&blow](http::Request& request, http::Next next) { return pass_on(request, next, &blow); });
  router.get("/", answer_later);
  const std::string said = co_await ask(stage, router, get, {});
  EXPECT_TRUE(said.ends_with("slept") || (blow.fell() && said.starts_with("HTTP/1.1 503 ")))
      << said;
}

Task<> serving(Blow& blow, Stage& stage) {
  http::Router router;
  router.get("/", hello);
  http::ServerCore server(stage.loop(), router, {});
  auto served =
      with_scope(OnFailure::supervise, http::serve_on, std::ref(server), Endpoint::loopback(0));
  expect_ended(co_await blow.strike(timeout(moment, std::move(served))));
}

constexpr std::array of_http = {
    SweepCase{"http::LiveRoutes::get", adding_a_route},
    SweepCase{"http::LiveRoutes::replace", replacing_a_route},
    SweepCase{"http::LiveRoutes::remove", removing_a_route},
    SweepCase{"http::Request::body", the_body_of_a_request},
    SweepCase{"http::Request::body_view", the_view_of_a_body},
    SweepCase{"http::Request::read", a_piece_of_a_body},
    SweepCase{"http::BodySink::write", a_piece_of_an_answer},
    SweepCase{"http::Next::operator()", the_answer_behind_middleware},
    SweepCase{"http::serve_on", serving},
};

class CancelSweepOfServices : public CancelSweep {};

TEST_P(CancelSweepOfServices, Http) {
  sweep_all(of_http);
}
TEST(CancelSweepInTheWorld, Http) {
  sweep_all_in_a_world(of_http);
}

/// Services that are there, on all cores.
struct Counted {
  Counted() { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  static inline std::atomic<int> alive{0};
};

struct Database : Counted {
  static Task<Result<>> start() { return as_task(sleep(moment)); }
  static Task<> stop() { static_cast<void>(co_await sleep(moment)); }
};
struct Web : Counted {
  explicit Web(Database&) {}
};

/// An app of two services on each core, one of which needs the other.
struct TwoServices {
  ServiceId register_another() { return app.per_core<Database>(); }
  Task<> start() { EXPECT_TRUE(co_await app.start()); }
  /// All is gone then.
  Task<> end() {
    co_await app.stop();
    EXPECT_EQ(Counted::alive, 0);
  }
  App app;
  ServiceId database = app.per_core<Database>();
  ServiceId web = app.per_core<Web>();
};

Task<> starting_an_app(Blow& blow, Stage&) {
  TwoServices services;
  const bool started = succeeded(co_await blow.strike(services.app.start()));
  EXPECT_EQ(services.app.running(), started);
  EXPECT_EQ(Counted::alive, started ? 4 : 0);
  co_await services.end();
}

Task<> stopping_an_app(Blow& blow, Stage&) {
  TwoServices services;
  co_await services.start();
  co_await blow.strike(services.app.stop());
  EXPECT_FALSE(services.app.running());
  co_await services.end();
}

Task<> stopping_a_service(Blow& blow, Stage&) {
  TwoServices services;
  co_await services.start();
  static_cast<void>(succeeded(co_await blow.strike(services.app.stop(services.database))));
  EXPECT_TRUE(co_await services.app.start(services.database)) << "it stops all the same";
  EXPECT_EQ(Counted::alive, 4);
  co_await services.end();
}

Task<> starting_a_service(Blow& blow, Stage&) {
  TwoServices services;
  co_await services.start();
  EXPECT_TRUE(co_await services.app.stop(services.web));
  static_cast<void>(succeeded(co_await blow.strike(services.app.start(services.web))));
  EXPECT_TRUE(co_await services.app.start(services.web)) << "it starts all the same";
  EXPECT_EQ(Counted::alive, 4);
  co_await services.end();
}

Task<> adding_a_service(Blow& blow, Stage&) {
  TwoServices services;
  co_await services.start();
  const ServiceId more = services.app.on_core<Counted>(1);
  static_cast<void>(succeeded(co_await blow.strike(services.app.apply())));
  EXPECT_TRUE(co_await services.app.remove(more)) << "it takes part all the same";
  co_await services.end();
}

Task<> replacing_a_service(Blow& blow, Stage&) {
  TwoServices services;
  co_await services.start();
  const ServiceId fresh = services.register_another();
  auto replacing = services.app.replace(services.database, fresh);
  static_cast<void>(succeeded(co_await blow.strike(std::move(replacing))));
  EXPECT_TRUE(co_await services.app.stop(fresh)) << "it is replaced all the same";
  EXPECT_EQ(Counted::alive, 0);
  co_await services.end();
}

Task<> removing_a_service(Blow& blow, Stage&) {
  TwoServices services;
  co_await services.start();
  static_cast<void>(succeeded(co_await blow.strike(services.app.remove(services.web))));
  const auto again = co_await services.app.remove(services.web);
  EXPECT_EQ(again.error(), Errc::not_found) << "it goes all the same";
  EXPECT_EQ(Counted::alive, 2);
  co_await services.end();
}

Task<> explaining_an_app(Blow& blow, Stage&) {
  TwoServices services;
  co_await services.start();
  const Explanation explained = co_await blow.strike(services.app.explained());
  EXPECT_EQ(explained.services.size(), 4U);
  co_await services.end();
}

struct Reports : Counted {
  explicit Reports(Lazy<Database> from) : database(from) { now = this; }
  static inline Reports* now = nullptr;
  Lazy<Database> database;
};

Task<> a_lazy_service(Blow& blow, Stage&) {
  App app;
  app.on_core<Database>(0);
  app.on_core<Reports>(0);
  EXPECT_TRUE(co_await app.start());
  const auto database = Reports::now->database;
  static_cast<void>(succeeded(co_await blow.strike(as_task(database.get()))));
  EXPECT_TRUE(co_await database.get());
  co_await app.stop();
  EXPECT_EQ(Counted::alive, 0);
}

struct Ledger : Counted {
  Task<Result<int>> add(int amount) {
    if (auto slept = co_await sleep(moment); !slept) co_return fail(slept.error());
    co_return total += amount;
  }
  int total = 0;
};
struct Caller : Counted {
  explicit Caller(Remote<Ledger> of) : ledger(of) { now = this; }
  static inline Caller* now = nullptr;
  Remote<Ledger> ledger;
};

Task<> calling_a_remote_service(Blow& blow, Stage&) {
  App app;
  app.on_core<Ledger>(1);
  app.on_core<Caller>(0);
  EXPECT_TRUE(co_await app.start());
  const Remote<Ledger> ledger = Caller::now->ledger;
  auto calling = ledger.call(&Ledger::add, 2);
  const bool added = succeeded(co_await blow.strike(std::move(calling)));
  auto again = ledger.call(&Ledger::add, 1);
  const auto total = co_await std::move(again);
  EXPECT_TRUE(total) << "it is there for the next";
  EXPECT_TRUE(total && *total == (added ? 3 : 1));
  co_await app.stop();
  EXPECT_EQ(Counted::alive, 0);
}

Task<> stopping_the_events(Blow& blow, Stage& stage) {
  EventBus bus(2);
  Events& events = bus.local(stage.loop());
  int handled = 0;
  auto registration = events.on([&handled](const int& number) { handled += number; });
  EXPECT_TRUE(events.publish_to_all(7));
  co_await blow.strike(bus.stop());
  EXPECT_EQ(handled, 7) << "all that was published is handled";
  EXPECT_EQ(events.publish_to_all(7).error(), Errc::closed);
}

struct Settings {
  int number = 1;
};

/// A configuration whose file has changed since it was read.
class ChangedFile {
 public:
  explicit ChangedFile(const Stage& stage) : folder_(stage) {
    sources_.file = folder_.path("settings");
    folder_.write("settings", "number = 2");
    live.emplace(*config::load<Settings>(stage.loop().host().files(), sources_), sources_,
                 config::LiveOptions{.settling = moment});
    folder_.write("settings", "number = 3");
    subscription_ = live->on_change(&Settings::number, &ChangedFile::take);
  }
  std::optional<config::Live<Settings>> live;

 private:
  static Task<> take(const int&) { static_cast<void>(co_await sleep(moment)); }
  Folder folder_;
  config::Sources sources_;
  config::Subscription subscription_;
};

Task<> looking_at_a_configuration(Blow& blow, Stage& stage) {
  ChangedFile file(stage);
  const auto said = co_await blow.strike(file.live->reload());
  EXPECT_EQ(said == config::Reload::changed, file.live->now()->number == 3);
  static_cast<void>(co_await file.live->reload());
  EXPECT_EQ(file.live->now()->number, 3);
}

Task<> watching_a_configuration(Blow& blow, Stage& stage) {
  ChangedFile file(stage);
  expect_ended(co_await blow.strike(timeout(4 * moment, file.live->watch())));
}

constexpr std::array of_apps = {
    SweepCase{"App::start", starting_an_app},
    SweepCase{"App::stop", stopping_an_app},
    SweepCase{"App::stop of a service", stopping_a_service},
    SweepCase{"App::start of a service", starting_a_service},
    SweepCase{"App::apply", adding_a_service},
    SweepCase{"App::replace", replacing_a_service},
    SweepCase{"App::remove", removing_a_service},
    SweepCase{"App::explained", explaining_an_app},
    SweepCase{"Lazy::get", a_lazy_service},
    SweepCase{"Remote::call", calling_a_remote_service},
    SweepCase{"EventBus::stop", stopping_the_events},
    SweepCase{"config::Live::reload", looking_at_a_configuration},
    SweepCase{"config::Live::watch", watching_a_configuration},
};

TEST_P(CancelSweepOfServices, Apps) {
  sweep_all(of_apps);
}
TEST(CancelSweepInTheWorld, Apps) {
  sweep_all_in_a_world(of_apps);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfServices, testing::ValuesIn(every_backend), name_of);

}  // namespace
}  // namespace weir::tests

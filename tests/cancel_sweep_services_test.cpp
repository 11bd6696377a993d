// Cancels the waits of HTTP handlers and services at any time on every real backend; see
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
#include "weir/app/handles/lazy.hpp"
#include "weir/app/handles/remote.hpp"
#include "weir/config/config.hpp"
#include "weir/config/reload.hpp"
#include "weir/event/bus.hpp"
#include "weir/http.hpp"
#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/runtime/per_core.hpp"
#include "weir/task/timeout.hpp"
#include "weir/web/middleware/idempotency_keys.hpp"

namespace weir::tests::cancel_sweep_services_test {
namespace {

/// Servers holds one server of a router on each core.
class Servers {
 public:
  explicit Servers(const http::Router& router) : router_(&router) {}
  Task<> open() {
    auto make = [router = router_](std::optional<http::ServerState>& server) {
      server.emplace(*Loop::current(), *router, http::ServeOptions());
    };
    co_await servers_.map(make);
  }
  Task<> close() {
    auto end = [](std::optional<http::ServerState>& server) { server.reset(); };
    co_await servers_.map(end);
  }

 private:
  const http::Router* router_;
  PerCore<std::optional<http::ServerState>> servers_{
      2, [](unsigned) { return std::optional<http::ServerState>(); }};
};

http::Response hello() {
  return http::text("hello");
}

Task<> adding_a_route(CancelInjector& injector, SweepEnvironment&) {
  http::Router router;
  Servers servers(router);
  co_await servers.open();
  {
    http::LiveRoutes live(router);
    auto adding = live.get("/", hello);
    const auto id = co_await injector.run_with_cancel(std::move(adding));
    if (!succeeded(id)) {
      auto again = live.get("/", hello);
      EXPECT_TRUE(co_await std::move(again)) << "the cancelled call added the route";
    }
  }
  co_await servers.close();
}

Task<> replacing_a_route(CancelInjector& injector, SweepEnvironment&) {
  http::Router router;
  Servers servers(router);
  co_await servers.open();
  {
    http::LiveRoutes live(router);
    auto adding = live.get("/", hello);
    const auto id = co_await std::move(adding);
    auto replacing = live.replace(*id, hello);
    std::ignore = succeeded(co_await injector.run_with_cancel(std::move(replacing)));
    EXPECT_TRUE(co_await live.remove(*id));
  }
  co_await servers.close();
}

Task<> removing_a_route(CancelInjector& injector, SweepEnvironment&) {
  http::Router router;
  Servers servers(router);
  co_await servers.open();
  {
    http::LiveRoutes live(router);
    auto adding = live.get("/", hello);
    const auto id = co_await std::move(adding);
    EXPECT_TRUE(co_await injector.run_with_cancel(live.remove(*id)))
        << "a cancelled removal is completed";
  }
  co_await servers.close();
}

Task<> serve_one(http::ServerState* server, tcp::Stream* stream) {
  auto place = server->connections().try_acquire_permit();
  co_await http::serve_connection(std::move(*place), std::move(*stream));
}

/// Sends `head`, and `later` a few loop turns later. Returns all that the server sends until it
/// closes.
Task<std::string> ask(SweepEnvironment& env, const http::Router& router, std::string_view head,
                      std::string_view later) {
  http::ServerState server(env.loop(), router, {});
  Pair pair = co_await connect_pair();
  env.spawn(serve_one(&server, &pair.far));
  EXPECT_TRUE(co_await pair.near.write(head));
  for (int round = 0; round < 4; ++round) co_await yield();
  if (!later.empty()) std::ignore = co_await pair.near.write(later);
  std::string said;
  for (;;) {
    const auto bytes = co_await pair.near.read();
    if (!bytes) break;
    said += bytes->text();
  }
  pair.near.close();
  co_await env.wait_until_idle();
  co_return said;
}

constexpr std::string_view post =
    "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
constexpr std::string_view post_with_key =
    "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIdempotency-Key: a\r\n"
    "Authorization: Bearer a\r\n"
    "Content-Length: 4\r\n\r\n";
constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

Task<http::Response> take_body(http::Request& request, CancelInjector* injector) {
  auto body = co_await injector->run_with_cancel(request.body());
  if (!succeeded(body)) body = co_await request.body();
  co_return http::text(*body);
}

Task<> the_body_of_a_request(CancelInjector& injector, SweepEnvironment& env) {
  http::Router router;
  router.post("/", [&injector](http::Request& request) { return take_body(request, &injector); });
  const std::string said = co_await ask(env, router, post, "late");
  EXPECT_TRUE(said.ends_with("\r\n\r\nlate")) << said;
}

Task<http::Response> look_at_body(http::Request& request, CancelInjector* injector) {
  auto body = co_await injector->run_with_cancel(request.body_view());
  if (!succeeded(body)) body = co_await request.body_view();
  co_return http::text(std::string(*body));
}

Task<> the_view_of_a_body(CancelInjector& injector, SweepEnvironment& env) {
  http::Router router;
  router.post("/",
              [&injector](http::Request& request) { return look_at_body(request, &injector); });
  const std::string said = co_await ask(env, router, post, "late");
  EXPECT_TRUE(said.ends_with("\r\n\r\nlate")) << said;
}

Task<http::Response> take_piece(http::Request& request, CancelInjector* injector) {
  auto piece = co_await injector->run_with_cancel(request.read());
  std::string whole(succeeded(piece) ? to_text(*piece) : "");
  while (whole.size() < 4) {
    piece = co_await request.read();
    EXPECT_TRUE(piece && !piece->empty()) << "of " << whole;
    if (!piece || piece->empty()) break;
    whole += to_text(*piece);
  }
  co_return http::text(whole);
}

Task<> a_piece_of_a_body(CancelInjector& injector, SweepEnvironment& env) {
  http::Router router;
  router.post("/", [&injector](http::Request& request) { return take_piece(request, &injector); });
  const std::string said = co_await ask(env, router, post, "late");
  EXPECT_TRUE(said.ends_with("\r\n\r\nlate")) << said;
}

Task<Result<>> write_much(http::BodySink& sink, CancelInjector* injector, bool* whole) {
  const std::string much(2'000'000, 'x');
  auto written = co_await injector->run_with_cancel(sink.write(much));
  *whole = succeeded(written);
  co_return written;
}

Task<> a_piece_of_an_answer(CancelInjector& injector, SweepEnvironment& env) {
  http::Router router;
  bool whole = false;
  router.get("/", [&] { return http::stream(http::text_type, write_much, &injector, &whole); });
  const std::string said = co_await ask(env, router, get, {});
  EXPECT_EQ(said.ends_with("\r\n0\r\n\r\n"), whole) << said.size();
}

Task<http::Response> hint(http::Request& request, CancelInjector* injector) {
  http::Headers links;
  std::ignore = links.add("Link", "</a.css>; rel=preload");
  auto sending = request.send_interim(http::Status::early_hints, links);
  const auto sent = co_await injector->run_with_cancel(std::move(sending));
  EXPECT_TRUE(sent) << "a cancellation does not affect it";
  co_return http::text("hinted");
}

Task<> an_interim_response(CancelInjector& injector, SweepEnvironment& env) {
  http::Router router;
  router.get("/", [&](http::Request& request) { return hint(request, &injector); });
  const std::string said = co_await ask(env, router, get, {});
  EXPECT_TRUE(said.starts_with("HTTP/1.1 103 ") && said.ends_with("hinted")) << said;
}

Task<http::Response> pass_on(http::Request& request, http::Next next, CancelInjector* injector) {
  auto response = co_await injector->run_with_cancel(next(request));
  co_return response;
}

Task<http::Response> answer_later() {
  const auto slept = co_await sleep(short_delay);
  co_return slept ? http::text("slept") : http::Response(http::Status::service_unavailable);
}

Task<> the_answer_behind_middleware(CancelInjector& injector, SweepEnvironment& env) {
  http::Router router;
  router.use([&injector](http::Request& request, http::Next next) {
    return pass_on(request, next, &injector);
  });
  router.get("/", answer_later);
  const std::string said = co_await ask(env, router, get, {});
  EXPECT_TRUE(said.ends_with("slept") || (injector.fired() && said.starts_with("HTTP/1.1 503 ")))
      << said;
}

Task<http::Response> pass_on_with_key(http::Request& request, http::Next next,
                                      CancelInjector* injector, const http::IdempotencyKeys* keys) {
  auto response = co_await injector->run_with_cancel((*keys)(request, next));
  co_return response;
}

Task<> the_answer_to_an_idempotency_key(CancelInjector& injector, SweepEnvironment& env) {
  http::Router router;
  const auto keys = http::idempotency_keys({.required = true, .entries_max = 1});
  router.use([&](http::Request& request, http::Next next) {
    return pass_on_with_key(request, next, &injector, &keys);
  });
  router.post("/", [](http::Request& request) -> Task<http::Response> {
    const auto body = co_await request.body();
    const auto slept = co_await sleep(short_delay);
    co_return slept ? http::text(*body) : http::Response(http::Status::service_unavailable);
  });
  const std::string said = co_await ask(env, router, post_with_key, "late");
  EXPECT_TRUE(said.ends_with("late") || (injector.fired() && said.starts_with("HTTP/1.1 503 ")))
      << said;
}

Task<> serving(CancelInjector& injector, SweepEnvironment& env) {
  http::Router router;
  router.get("/", hello);
  http::ServerState server(env.loop(), router, {});
  auto served = with_scope(OnFailure::isolate, http::listen_and_serve, std::ref(server),
                           Endpoint::loopback(0));
  expect_ended(co_await injector.run_with_cancel(timeout(short_delay, std::move(served))));
}

constexpr std::array of_http = {
    SweepCase{"http::LiveRoutes::get", adding_a_route},
    SweepCase{"http::LiveRoutes::replace", replacing_a_route},
    SweepCase{"http::LiveRoutes::remove", removing_a_route},
    SweepCase{"http::Request::body", the_body_of_a_request},
    SweepCase{"http::Request::body_view", the_view_of_a_body},
    SweepCase{"http::Request::read", a_piece_of_a_body},
    SweepCase{"http::BodySink::write", a_piece_of_an_answer},
    SweepCase{"http::Request::send_interim", an_interim_response},
    SweepCase{"http::Next::operator()", the_answer_behind_middleware},
    SweepCase{"http::IdempotencyKeys::operator()", the_answer_to_an_idempotency_key},
    SweepCase{"http::listen_and_serve", serving},
};

class CancelSweepOfServices : public CancelSweep {};

TEST_P(CancelSweepOfServices, Http) {
  sweep_all(of_http);
}
TEST(CancelSweepInTheWorld, Http) {
  sweep_all_in_world(of_http);
}

/// Counted counts the service instances that exist on all cores.
struct Counted {
  Counted() { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  static inline std::atomic<int> alive{0};
};

struct Database : Counted {
  static Task<Result<>> start() { return as_task(sleep(short_delay)); }
  static Task<> stop() { std::ignore = co_await sleep(short_delay); }
};
struct Web : Counted {
  explicit Web(Database&) {}
};

/// TwoServices is an app with two services on each core, one of which needs the other.
struct TwoServices {
  ServiceId register_another() { return app.per_core<Database>(); }
  Task<> start() { EXPECT_TRUE(co_await app.start()); }
  /// Stops the app. No instance exists afterwards.
  Task<> end() {
    co_await app.stop();
    EXPECT_EQ(Counted::alive, 0);
  }
  App app;
  ServiceId database = app.per_core<Database>();
  ServiceId web = app.per_core<Web>();
};

Task<> starting_an_app(CancelInjector& injector, SweepEnvironment&) {
  TwoServices services;
  const bool started = succeeded(co_await injector.run_with_cancel(services.app.start()));
  EXPECT_EQ(services.app.running(), started);
  EXPECT_EQ(Counted::alive, started ? 4 : 0);
  co_await services.end();
}

Task<> stopping_an_app(CancelInjector& injector, SweepEnvironment&) {
  TwoServices services;
  co_await services.start();
  co_await injector.run_with_cancel(services.app.stop());
  EXPECT_FALSE(services.app.running());
  co_await services.end();
}

Task<> stopping_a_service(CancelInjector& injector, SweepEnvironment&) {
  TwoServices services;
  co_await services.start();
  std::ignore = succeeded(co_await injector.run_with_cancel(services.app.stop(services.database)));
  EXPECT_TRUE(co_await services.app.start(services.database)) << "a cancelled stop is completed";
  EXPECT_EQ(Counted::alive, 4);
  co_await services.end();
}

Task<> starting_a_service(CancelInjector& injector, SweepEnvironment&) {
  TwoServices services;
  co_await services.start();
  EXPECT_TRUE(co_await services.app.stop(services.web));
  std::ignore = succeeded(co_await injector.run_with_cancel(services.app.start(services.web)));
  EXPECT_TRUE(co_await services.app.start(services.web)) << "a cancelled start is completed";
  EXPECT_EQ(Counted::alive, 4);
  co_await services.end();
}

Task<> adding_a_service(CancelInjector& injector, SweepEnvironment&) {
  TwoServices services;
  co_await services.start();
  const ServiceId more = services.app.on_core<Counted>(1);
  std::ignore = succeeded(co_await injector.run_with_cancel(services.app.apply()));
  EXPECT_TRUE(co_await services.app.remove(more)) << "a cancelled change is completed";
  co_await services.end();
}

Task<> replacing_a_service(CancelInjector& injector, SweepEnvironment&) {
  TwoServices services;
  co_await services.start();
  const ServiceId fresh = services.register_another();
  auto replacing = services.app.replace(services.database, fresh);
  std::ignore = succeeded(co_await injector.run_with_cancel(std::move(replacing)));
  EXPECT_TRUE(co_await services.app.stop(fresh)) << "a cancelled replacement is completed";
  EXPECT_EQ(Counted::alive, 0);
  co_await services.end();
}

Task<> removing_a_service(CancelInjector& injector, SweepEnvironment&) {
  TwoServices services;
  co_await services.start();
  std::ignore = succeeded(co_await injector.run_with_cancel(services.app.remove(services.web)));
  const auto again = co_await services.app.remove(services.web);
  EXPECT_EQ(again.error(), Errc::not_found) << "a cancelled removal is completed";
  EXPECT_EQ(Counted::alive, 2);
  co_await services.end();
}

Task<> explaining_an_app(CancelInjector& injector, SweepEnvironment&) {
  TwoServices services;
  co_await services.start();
  const Explanation explained = co_await injector.run_with_cancel(services.app.explain_async());
  EXPECT_EQ(explained.services.size(), 4U);
  co_await services.end();
}

struct Reports : Counted {
  explicit Reports(inject::Lazy<Database> from) : database(from) { now = this; }
  static inline Reports* now = nullptr;
  inject::Lazy<Database> database;
};

Task<> a_lazy_service(CancelInjector& injector, SweepEnvironment&) {
  App app;
  app.on_core<Database>(0);
  app.on_core<Reports>(0);
  EXPECT_TRUE(co_await app.start());
  const auto database = Reports::now->database;
  std::ignore = succeeded(co_await injector.run_with_cancel(as_task(database.get())));
  EXPECT_TRUE(co_await database.get());
  co_await app.stop();
  EXPECT_EQ(Counted::alive, 0);
}

struct Ledger : Counted {
  Task<Result<int>> add(int amount) {
    WEIR_CO_TRY(co_await sleep(short_delay));
    co_return total += amount;
  }
  int total = 0;
};
struct Caller : Counted {
  explicit Caller(inject::Remote<Ledger> of) : ledger(of) { now = this; }
  static inline Caller* now = nullptr;
  inject::Remote<Ledger> ledger;
};

Task<> calling_a_remote_service(CancelInjector& injector, SweepEnvironment&) {
  App app;
  app.on_core<Ledger>(1);
  app.on_core<Caller>(0);
  EXPECT_TRUE(co_await app.start());
  const inject::Remote<Ledger> ledger = Caller::now->ledger;
  auto calling = ledger.call(&Ledger::add, 2);
  const bool added = succeeded(co_await injector.run_with_cancel(std::move(calling)));
  auto again = ledger.call(&Ledger::add, 1);
  const auto total = co_await std::move(again);
  EXPECT_TRUE(total) << "the ledger serves the next call";
  EXPECT_TRUE(total && *total == (added ? 3 : 1));
  co_await app.stop();
  EXPECT_EQ(Counted::alive, 0);
}

Task<> stopping_the_events(CancelInjector& injector, SweepEnvironment& env) {
  EventBus bus(2);
  CoreEvents& events = bus.local(env.loop());
  int handled = 0;
  auto registration = events.on([&handled](const int& number) { handled += number; });
  EXPECT_TRUE(events.publish_to_all(7));
  co_await injector.run_with_cancel(bus.stop());
  EXPECT_EQ(handled, 7) << "all that was published is handled";
  EXPECT_EQ(events.publish_to_all(7).error(), Errc::closed);
}

struct Settings {
  int number = 1;
};

/// A configuration that was read before its file changed.
class ChangedFile {
 public:
  explicit ChangedFile(const SweepEnvironment& env) : folder_(env) {
    sources_.file = folder_.path("settings");
    folder_.write("settings", "number = 2");
    reloadable.emplace(*config::load<Settings>(env.loop().platform().files(), sources_), sources_,
                       config::ReloadOptions{.debounce_time = short_delay});
    folder_.write("settings", "number = 3");
    subscription_ = reloadable->on_change(&Settings::number, &ChangedFile::take);
  }
  std::optional<config::Reloadable<Settings>> reloadable;

 private:
  static Task<> take(const int&) { std::ignore = co_await sleep(short_delay); }
  TempDirectory folder_;
  config::Sources sources_;
  config::Subscription subscription_;
};

Task<> looking_at_a_configuration(CancelInjector& injector, SweepEnvironment& env) {
  ChangedFile file(env);
  const auto said = co_await injector.run_with_cancel(file.reloadable->reload());
  EXPECT_EQ(said == config::ReloadResult::changed, file.reloadable->current()->number == 3);
  std::ignore = co_await file.reloadable->reload();
  EXPECT_EQ(file.reloadable->current()->number, 3);
}

Task<> watching_a_configuration(CancelInjector& injector, SweepEnvironment& env) {
  ChangedFile file(env);
  expect_ended(
      co_await injector.run_with_cancel(timeout(4 * short_delay, file.reloadable->watch())));
}

constexpr std::array of_apps = {
    SweepCase{"App::start", starting_an_app},
    SweepCase{"App::stop", stopping_an_app},
    SweepCase{"App::stop of a service", stopping_a_service},
    SweepCase{"App::start of a service", starting_a_service},
    SweepCase{"App::apply", adding_a_service},
    SweepCase{"App::replace", replacing_a_service},
    SweepCase{"App::remove", removing_a_service},
    SweepCase{"App::explain_async", explaining_an_app},
    SweepCase{"Lazy::get", a_lazy_service},
    SweepCase{"Remote::call", calling_a_remote_service},
    SweepCase{"EventBus::stop", stopping_the_events},
    SweepCase{"config::Reloadable::reload", looking_at_a_configuration},
    SweepCase{"config::Reloadable::watch", watching_a_configuration},
};

TEST_P(CancelSweepOfServices, Apps) {
  sweep_all(of_apps);
}
TEST(CancelSweepInTheWorld, Apps) {
  sweep_all_in_world(of_apps);
}

INSTANTIATE_TEST_SUITE_P(On, CancelSweepOfServices, testing::ValuesIn(all_backends), name_of);

}  // namespace
}  // namespace weir::tests::cancel_sweep_services_test

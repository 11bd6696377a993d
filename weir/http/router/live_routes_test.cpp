#include "weir/http/router/live_routes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/http/test/live_routes_fixture.hpp"
#include "weir/runtime/on_core.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/timeout.hpp"

namespace weir::http::live_routes_test {
namespace {

using namespace std::chrono_literals;

Response hello() {
  return text("hello");
}
Response named(std::string_view name) {
  return text(name);
}

Response two(std::string_view, std::string_view) {
  return Status::ok;
}

TEST_F(LiveRoutesTest, AddedRouteIsServedByEveryCoreOnReturn) {
  routes_.get("/old", hello);
  start_all();
  EXPECT_EQ(ask_all("/new/x"), "404");
  const auto added = run_on(1, live_.get("/new/{name}", named));
  ASSERT_TRUE(added);
  EXPECT_EQ(ask_all("/new/x"), "200 x");
  EXPECT_EQ(ask_all("/old"), "200 hello");
}

TEST_F(LiveRoutesTest, RemovingTaskDestroysTheHandlerOnItsCore) {
  HandlerLog& log = logs_.emplace_back();
  start_all();
  const auto added = run_on(1, live_.get("/a", TextHandler(log, "a")));
  ASSERT_TRUE(added);
  EXPECT_EQ(ask_all("/a"), "200 a0");
  ASSERT_TRUE(run_on(2, live_.remove(*added)));
  EXPECT_EQ(log.destroyed, 1U);
  EXPECT_EQ(log.on_core, 2U);
  EXPECT_EQ(ask_all("/a"), "404");
  EXPECT_EQ(run_on(2, live_.remove(*added)).error(), Errc::not_found);
}

TEST_F(LiveRoutesTest, RouteFromBeforeServingCanBeRemoved) {
  HandlerLog& log = logs_.emplace_back();
  const RouteId id = routes_.get("/a", TextHandler(log, "a"));
  routes_.get("/b", hello);
  start_all();
  ASSERT_TRUE(run_on(0, live_.remove(id)));
  EXPECT_EQ(log.destroyed, 1U);
  EXPECT_EQ(ask_all("/a"), "404");
  EXPECT_EQ(ask_all("/b"), "200 hello");
}

TEST_F(LiveRoutesTest, ARemovalWaitsForTheLastRequestOnEveryCore) {
  HandlerLog& log = logs_.emplace_back();
  start_all();
  const auto added = run_on(0, live_.get("/wait", WaitingHandler(log, gates_, "waited")));
  ASSERT_TRUE(added);
  MemoryPeer& first = send_get(1, "/wait");
  MemoryPeer& second = send_get(2, "/wait");
  MemoryPeer& third = send_get(2, "/wait");
  EXPECT_EQ(log.inside, 3U);
  Running<Result<>> removal(loop(0), live_.remove(*added));
  settle();
  EXPECT_FALSE(removal.done());
  EXPECT_EQ(ask_all("/wait"), "404") << "no new request finds it";
  gates_[2].set();
  settle();
  EXPECT_EQ(said(second), "200 waited");
  EXPECT_EQ(said(third), "200 waited");
  EXPECT_FALSE(removal.done());
  EXPECT_EQ(log.destroyed, 0U);
  gates_[1].set();
  settle();
  EXPECT_EQ(said(first), "200 waited");
  ASSERT_TRUE(removal.done() && removal.value());
  EXPECT_EQ(log.destroyed, 1U);
  EXPECT_EQ(log.on_core, 0U);
}

TEST_F(LiveRoutesTest, ARemovalWaitsForAnswersThatAreStreamed) {
  HandlerLog& log = logs_.emplace_back();
  start_all();
  const auto added = run_on(0, live_.get("/stream", StreamingHandler(log, gates_, "part ")));
  ASSERT_TRUE(added);
  MemoryPeer& peer = send_get(1, "/stream");
  EXPECT_EQ(said(peer), "200 part -");
  Running<Result<>> removal(loop(0), live_.remove(*added));
  settle();
  EXPECT_FALSE(removal.done());
  gates_[1].set();
  settle();
  EXPECT_TRUE(peer.received().ends_with("part \r\n0\r\n\r\n")) << peer.received();
  EXPECT_TRUE(removal.done());
  EXPECT_EQ(log.destroyed, 1U);
}

TEST_F(LiveRoutesTest, ARemovalWaitsForARequestWithAnIncompleteBody) {
  HandlerLog& log = logs_.emplace_back();
  start_all();
  const auto added = run_on(0, live_.post("/upload", TextHandler(log, "thanks")));
  ASSERT_TRUE(added);
  MemoryPeer& peer = send(1, "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
  Running<Result<>> removal(loop(0), live_.remove(*added));
  settle();
  EXPECT_FALSE(removal.done());
  peer.send("cd");
  settle();
  EXPECT_EQ(said(peer), "200 thanks0");
  EXPECT_TRUE(removal.done());
}

TEST_F(LiveRoutesTest, ARemovalDoesNotWaitForOtherRoutes) {
  HandlerLog& log = logs_.emplace_back();
  HandlerLog& other = logs_.emplace_back();
  routes_.get("/other", WaitingHandler(other, gates_, "other"));
  start_all();
  const auto added = run_on(0, live_.get("/a", TextHandler(log, "a")));
  ASSERT_TRUE(added);
  MemoryPeer& peer = send_get(1, "/other");
  EXPECT_TRUE(run_on(0, live_.remove(*added)));
  EXPECT_EQ(log.destroyed, 1U);
  EXPECT_EQ(said(peer), "");
  gates_[1].set();
  settle();
  EXPECT_EQ(said(peer), "200 other");
}

TEST_F(LiveRoutesTest, PipelineFinishesItsStartedRequestAndUsesNewRoutesForTheRest) {
  HandlerLog& log = logs_.emplace_back();
  start_all();
  const auto added = run_on(0, live_.get("/wait", WaitingHandler(log, gates_, "waited")));
  ASSERT_TRUE(added);
  MemoryPeer& peer = send(1, get("/wait") + get("/wait") + get("/wait"));
  EXPECT_EQ(log.inside, 1U);
  Running<Result<>> removal(loop(0), live_.remove(*added));
  settle();
  gates_[1].set();
  settle();
  EXPECT_EQ(said(peer), "200 waited|404|404");
  EXPECT_TRUE(removal.done());
}

TEST_F(LiveRoutesTest, RoutersOwnLateAnswerNeedsNoRoute) {
  routes_.use([this](Request& request, Next next) -> Task<Response> {
    const Context context = co_await this_context();
    std::ignore = co_await gates_[context.loop->core()].wait();
    co_return co_await next(request);
  });
  routes_.post("/a", hello);
  const RouteId odd = routes_.add("BREW", "/a", hello);
  start_all();
  MemoryPeer& peer = send_get(1, "/a");
  EXPECT_TRUE(run_on(0, live_.remove(odd)));
  EXPECT_TRUE(run_on(0, live_.put("/a", hello)));
  gates_[1].set();
  settle();
  EXPECT_TRUE(peer.received().contains("405 ")) << peer.received();
  EXPECT_TRUE(peer.received().contains("Allow: BREW, OPTIONS, POST\r\n")) << peer.received();
}

// The table that found the answer is freed while the client sends its body.
TEST_F(LiveRoutesTest, RoutersOwnAnswerMayWaitForABody) {
  routes_.get("/a", hello);
  const RouteId odd = routes_.add("BREW", "/a", hello);
  start_all();
  MemoryPeer& peer = send(1, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
  EXPECT_TRUE(run_on(0, live_.remove(odd)));
  peer.send("cd");
  settle();
  EXPECT_TRUE(peer.received().contains("405 ")) << peer.received();
  EXPECT_TRUE(peer.received().contains("Allow: BREW, GET, HEAD, OPTIONS\r\n")) << peer.received();
}

TEST_F(LiveRoutesTest, ReplacedHandlerFinishesItsRequests) {
  HandlerLog& before = logs_.emplace_back();
  HandlerLog& after = logs_.emplace_back();
  start_all();
  const auto added = run_on(0, live_.get("/a", WaitingHandler(before, gates_, "old")));
  ASSERT_TRUE(added);
  MemoryPeer& peer = send_get(1, "/a");
  Running<Result<>> change(loop(2), live_.replace(*added, TextHandler(after, "new")));
  settle();
  EXPECT_FALSE(change.done());
  EXPECT_EQ(ask_all("/a"), "200 new0");
  gates_[1].set();
  settle();
  EXPECT_EQ(said(peer), "200 old");
  EXPECT_TRUE(change.done() && change.value());
  EXPECT_EQ(before.destroyed, 1U);
  EXPECT_EQ(before.on_core, 2U);
  EXPECT_EQ(after.destroyed, 0U);
  ASSERT_TRUE(run_on(0, live_.remove(*added))) << "it has kept its id";
  EXPECT_EQ(after.destroyed, 1U);
  EXPECT_EQ(ask_all("/a"), "404");
}

TEST_F(LiveRoutesTest, AReplacedRouteKeepsItsPlaceAndItsOptions) {
  const auto letters = routes_.get(Pattern::parse("/{x:[a-z]+}").value(), named);
  routes_.get("/{x:[a-z0-9]+}", [](std::string_view) { return text("any"); });
  const RouteId upload = routes_.post("/upload", hello, {.body_max = 2});
  start_all();
  const auto still = [](std::string_view) { return text("still first"); };
  ASSERT_TRUE(run_on(0, live_.replace(*letters, still)));
  EXPECT_EQ(ask_all("/abc"), "200 still first");
  const std::string post = "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  ASSERT_TRUE(run_on(0, live_.replace(upload, hello)));
  EXPECT_EQ(said(send(0, post)), "413");
  ASSERT_TRUE(run_on(0, live_.replace(upload, hello, RouteOptions{.body_max = 3})));
  EXPECT_EQ(said(send(0, post)), "200 hello");
}

TEST_F(LiveRoutesTest, FailedChangeLeavesTheRoutesUnchanged) {
  HandlerLog& log = logs_.emplace_back();
  const RouteId id = routes_.get("/a/{x}", named);
  start_all();
  EXPECT_EQ(run_on(0, live_.get("/a/{y}", named)).error(), Errc::conflict);
  EXPECT_EQ(run_on(0, live_.add("CONNECT", "/b", hello)).error(), Errc::bad_input);
  EXPECT_EQ(run_on(0, live_.get("/b/{x:(}", two)).error(), PatternError::bad_regex);
  const Pattern made = Pattern::parse("/b/{x}/{y}").value();
  EXPECT_EQ(run_on(0, live_.get(made, named)).error(), PatternError::wrong_param_count);
  EXPECT_EQ(run_on(0, live_.replace(id, TextHandler(log, "a"))).error(),
            PatternError::wrong_param_count);
  EXPECT_EQ(log.destroyed, 1U);
  EXPECT_EQ(run_on(0, live_.replace(RouteId(), hello)).error(), Errc::not_found);
  EXPECT_EQ(run_on(0, live_.remove(RouteId{7})).error(), Errc::not_found);
  EXPECT_EQ(ask_all("/a/x"), "200 x");
  EXPECT_EQ(ask_all("/b/x"), "404");
  EXPECT_EQ(said(send(0, "BREW /b/x HTTP/1.1\r\nHost: a\r\n\r\n")), "501");
}

TEST_F(LiveRoutesTest, ConcurrentChangesAreAllMade) {
  HandlerLog& log = logs_.emplace_back();
  start_all();
  const auto old = run_on(0, live_.get("/a", TextHandler(log, "a")));
  ASSERT_TRUE(old);
  Running<Result<>> first(loop(0), live_.remove(*old));
  Running<Result<>> again(loop(1), live_.remove(*old));
  Running<Result<RouteId>> added(loop(2), live_.get("/a", hello));
  Running<Result<RouteId>> other(loop(1), live_.get("/b", hello));
  settle();
  EXPECT_NE(first.value().has_value(), again.value().has_value()) << "one of them removed it";
  EXPECT_EQ(log.destroyed, 1U);
  EXPECT_EQ(ask_all("/b"), "200 hello");
  ASSERT_TRUE(other.value());
  EXPECT_EQ(ask_all("/a"), added.value() ? "200 hello" : "404");
}

TEST_F(LiveRoutesTest, RemovalMakesRoomForAnAdditionOfTheSameTime) {
  HandlerLog& log = logs_.emplace_back();
  start_all();
  const auto old = run_on(0, live_.get("/a", TextHandler(log, "a")));
  ASSERT_TRUE(old);
  Running<Result<RouteId>> adding(loop(0), live_.get("/a", hello));
  Running<Result<>> removing(loop(0), live_.remove(*old));
  settle();
  ASSERT_TRUE(adding.done() && removing.done());
  EXPECT_TRUE(adding.value());
  EXPECT_TRUE(removing.value());
  EXPECT_EQ(log.destroyed, 1U);
  EXPECT_EQ(ask_all("/a"), "200 hello");
}

/// A handler that removes routes, also its own.
class Removing {
 public:
  Removing(LiveRoutes live, const RouteId& id, Gates& gates)
      : live_(live), id_(&id), gates_(&gates) {}
  Task<Response> operator()(Request& request) const {
    const Context context = co_await this_context();
    std::ignore = co_await (*gates_)[context.loop->core()].wait();
    auto live = live_;
    const bool elsewhere = request.query("core").has_value();
    auto removal = elsewhere ? on_core(2, &Removing::remove, live, *id_) : remove(live, *id_);
    const auto removed = co_await std::move(removal);
    co_return removed ? Status::ok : to_status(removed.error());
  }

 private:
  static Task<Result<>> remove(LiveRoutes live, RouteId id) { co_return co_await live.remove(id); }
  LiveRoutes live_;
  const RouteId* id_;
  Gates* gates_;
};

TEST_F(LiveRoutesTest, ARequestCannotRemoveItsOwnRoute) {
  RouteId own;
  own = routes_.get("/own", Removing(live_, own, gates_));
  start_all();
  for (auto& gate : gates_) gate.set();
  const int conflict = code_of(to_status(make_error_code(Errc::conflict)));
  EXPECT_EQ(ask(0, "/own"), std::to_string(conflict));
  EXPECT_EQ(ask(1, "/own?core=other"), std::to_string(conflict))
      << "not through another core either";
  EXPECT_TRUE(run_on(0, live_.remove(own))) << "a task outside the request can";
}

/// A handler that replaces the handler of a route, also its own.
class Replacing {
 public:
  Replacing(LiveRoutes live, const RouteId& id) : live_(live), id_(&id) {}
  Task<Response> operator()(Request&) const {
    auto live = live_;
    const auto replaced = co_await live.replace(*id_, hello);
    co_return replaced ? Status::ok : to_status(replaced.error());
  }

 private:
  LiveRoutes live_;
  const RouteId* id_;
};

TEST_F(LiveRoutesTest, ARequestCannotReplaceItsOwnHandler) {
  RouteId own;
  RouteId other;
  own = routes_.get("/own", Replacing(live_, own));
  other = routes_.get("/other", [] { return text("not yet"); });
  routes_.get("/replace/other", Replacing(live_, other));
  start_all();
  EXPECT_EQ(ask(0, "/own"), "409");
  EXPECT_EQ(ask(1, "/own"), "409") << "the handler is unchanged";
  EXPECT_EQ(ask(1, "/replace/other"), "200 ");
  EXPECT_EQ(ask_all("/other"), "200 hello");
  EXPECT_TRUE(run_on(0, live_.replace(own, hello))) << "a task outside the request can";
  EXPECT_EQ(ask_all("/own"), "200 hello");
}

TEST_F(LiveRoutesTest, MiddlewareStaysWhenRoutesChange) {
  routes_.use([](Request& request, Next next) -> Task<Response> {
    Response response = co_await next(request);
    response.set_status(Status::accepted);
    co_return response;
  });
  const RouteId old = routes_.get("/old", hello);
  start_all();
  EXPECT_EQ(ask_all("/old"), "202");
  const auto added = run_on(1, live_.get("/new", hello));
  ASSERT_TRUE(added);
  EXPECT_EQ(ask_all("/new"), "202");
  ASSERT_TRUE(run_on(1, live_.replace(*added, hello)));
  EXPECT_EQ(ask_all("/new"), "202");
  ASSERT_TRUE(run_on(2, live_.remove(old)));
  EXPECT_EQ(ask_all("/new"), "202");
  EXPECT_EQ(ask_all("/old"), "202") << "the router's own answer";
}

TEST_F(LiveRoutesTest, ARequestMayRemoveAnotherRouteButNotInACycle) {
  RouteId left;
  RouteId right;
  left = routes_.get("/left", Removing(live_, right, gates_));
  right = routes_.get("/right", Removing(live_, left, gates_));
  start_all();
  MemoryPeer& first = send_get(0, "/left");
  MemoryPeer& second = send_get(1, "/right");
  gates_[0].set();
  settle();
  EXPECT_EQ(said(first), "") << "it waits for the other request";
  gates_[1].set();
  settle();
  const int conflict = code_of(to_status(make_error_code(Errc::conflict)));
  EXPECT_EQ(said(second), std::to_string(conflict));
  EXPECT_EQ(said(first), "200 ");
  EXPECT_EQ(ask_all("/right"), "404");
}

TEST_F(LiveRoutesTest, ACancelledRemovalStopsTheRequestsAndWaitsForThem) {
  HandlerLog& log = logs_.emplace_back();
  HandlerLog& streaming = logs_.emplace_back();
  start_all();
  const auto wait = run_on(0, live_.get("/wait", WaitingHandler(log, gates_, "waited")));
  const auto streamed =
      run_on(0, live_.get("/stream", StreamingHandler(streaming, gates_, "part ")));
  ASSERT_TRUE(wait && streamed);
  MemoryPeer& waiting = send_get(1, "/wait");
  MemoryPeer& cut = send_get(2, "/stream");
  Running<Result<>> first(loop(0), timeout(1s, live_.remove(*wait)));
  Running<Result<>> second(loop(0), timeout(1s, live_.remove(*streamed)));
  settle();
  EXPECT_FALSE(first.done() || second.done());
  platform_.advance(loops(), 1s);
  EXPECT_EQ(said(waiting), "503");
  EXPECT_EQ(said(cut), "200 part -");
  EXPECT_TRUE(first.done() && first.value()) << "it is removed all the same";
  EXPECT_TRUE(second.done() && second.value());
  EXPECT_EQ(log.stopped, 1U);
  EXPECT_EQ(streaming.stopped, 1U);
  EXPECT_EQ(log.destroyed + streaming.destroyed, 2U);
  EXPECT_EQ(ask_all("/wait"), "404");
}

TEST_F(LiveRoutesTest, ACancelledRemovalStopsOnlyTheRequestsOfItsRoute) {
  HandlerLog& one = logs_.emplace_back();
  HandlerLog& two = logs_.emplace_back();
  start_all();
  const auto first = run_on(0, live_.get("/one", WaitingHandler(one, gates_, "one")));
  const auto second = run_on(0, live_.get("/two", WaitingHandler(two, gates_, "two")));
  ASSERT_TRUE(first && second);
  MemoryPeer& stopped = send_get(1, "/one");
  MemoryPeer& waiting = send_get(1, "/two");
  CancelSource cancel;
  Running<Result<>> cancelled(loop(0), under(cancel, live_.remove(*first)));
  Running<Result<>> patient(loop(0), live_.remove(*second));
  settle();
  cancel.cancel();
  settle();
  EXPECT_TRUE(cancelled.done() && cancelled.value());
  EXPECT_EQ(said(stopped), "503");
  EXPECT_FALSE(patient.done());
  EXPECT_EQ(two.stopped, 0U);
  gates_[1].set();
  settle();
  EXPECT_EQ(said(waiting), "200 two");
  EXPECT_TRUE(patient.done() && patient.value());
}

TEST_F(LiveRoutesTest, AlreadyCancelledTaskAddsNothingButRemoves) {
  HandlerLog& log = logs_.emplace_back();
  HandlerLog& never = logs_.emplace_back();
  start_all();
  const auto added = run_on(0, live_.get("/wait", WaitingHandler(log, gates_, "waited")));
  ASSERT_TRUE(added);
  MemoryPeer& waiting = send_get(1, "/wait");
  CancelSource cancel;
  cancel.cancel();
  const auto other = run_on(0, under(cancel, live_.get("/other", TextHandler(never, "other"))));
  EXPECT_EQ(other.error(), Errc::cancelled);
  const auto swapped = run_on(0, under(cancel, live_.replace(*added, TextHandler(never, "other"))));
  EXPECT_EQ(swapped.error(), Errc::cancelled);
  EXPECT_EQ(never.destroyed, 2U);
  EXPECT_TRUE(run_on(0, under(cancel, live_.remove(*added))));
  EXPECT_EQ(said(waiting), "503");
  EXPECT_EQ(log.destroyed, 1U);
}

TEST_F(LiveRoutesTest, ChangesWithoutServersCompleteImmediately) {
  HandlerLog& log = logs_.emplace_back();
  const auto added = run_on(0, live_.get("/a", TextHandler(log, "a")));
  const auto kept = run_on(1, live_.get("/b", hello));
  ASSERT_TRUE(added && kept);
  EXPECT_TRUE(run_on(2, live_.remove(*added)));
  EXPECT_EQ(log.destroyed, 1U);
  EXPECT_EQ(log.on_core, 2U);
  start(1);
  EXPECT_EQ(ask(1, "/b"), "200 hello");
  EXPECT_EQ(ask(1, "/a"), "404");
  stop(1);
  routes_.get("/c", hello);  // a router that is not served may be changed directly
  start(2);
  EXPECT_EQ(ask(2, "/c"), "200 hello");
}

TEST_F(LiveRoutesTest, CoresMayStartAndStopDuringARemoval) {
  HandlerLog& log = logs_.emplace_back();
  start(0);
  start(1);
  const auto added = run_on(0, live_.get("/wait", WaitingHandler(log, gates_, "waited")));
  ASSERT_TRUE(added);
  MemoryPeer& first = send_get(0, "/wait");
  MemoryPeer& second = send_get(1, "/wait");
  Running<Result<>> removal(loop(2), live_.remove(*added));
  settle();
  start(2);
  EXPECT_EQ(ask(2, "/wait"), "404");
  gates_[1].set();
  stop(1);
  EXPECT_EQ(said(second), "200 waited");
  EXPECT_FALSE(removal.done());
  EXPECT_TRUE(run_on(2, live_.get("/new", hello))) << "a stopped core is not waited for";
  EXPECT_EQ(ask(2, "/new"), "200 hello");
  loop(0).drain();
  settle();
  EXPECT_FALSE(removal.done());
  gates_[0].set();
  settle();
  EXPECT_EQ(said(first), "200 waited");
  EXPECT_TRUE(removal.done());
  EXPECT_EQ(log.on_core, 2U);
}

TEST_F(LiveRoutesTest, EachMethodHasItsOwnFunction) {
  start_all();
  const auto say = [](const char* what) { return [what] { return text(std::string(what)); }; };
  ASSERT_TRUE(run_on(0, live_.get("/m", say("get"))));
  ASSERT_TRUE(run_on(0, live_.head("/h", say("head"))));
  ASSERT_TRUE(run_on(0, live_.post("/m", say("post"))));
  ASSERT_TRUE(run_on(0, live_.put("/m", say("put"))));
  ASSERT_TRUE(run_on(0, live_.patch("/m", say("patch"))));
  ASSERT_TRUE(run_on(0, live_.del("/m", say("del"))));
  ASSERT_TRUE(run_on(0, live_.options("/m", say("options"))));
  ASSERT_TRUE(run_on(0, live_.add("BREW", "/m", say("brew"))));
  for (const auto& [method, answer] :
       std::vector<std::pair<std::string, std::string>>{{"GET", "get"},
                                                        {"POST", "post"},
                                                        {"PUT", "put"},
                                                        {"PATCH", "patch"},
                                                        {"DELETE", "del"},
                                                        {"OPTIONS", "options"},
                                                        {"BREW", "brew"}}) {
    EXPECT_EQ(said(send(1, method + " /m HTTP/1.1\r\nHost: a\r\n\r\n")), "200 " + answer);
  }
  EXPECT_EQ(said(send(1, "GET /h HTTP/1.1\r\nHost: a\r\n\r\n")), "405");
  const std::string head = send(1, "HEAD /h HTTP/1.1\r\nHost: a\r\n\r\n").received();
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 ")) << head;
}

// Both requests are on one core and end at different times.
TEST_F(LiveRoutesTest, ARemovalWaitsForTheSecondRequestOfACoreToo) {
  HandlerLog& log = logs_.emplace_back();
  start_all();
  const auto added = run_on(0, live_.get("/wait", WaitingHandler(log, gates_, "waited")));
  ASSERT_TRUE(added);
  MemoryPeer& leaving = send_get(1, "/wait");
  MemoryPeer& staying = send_get(1, "/wait");
  Running<Result<>> removal(loop(0), live_.remove(*added));
  settle();
  leaving.reset();
  settle();
  EXPECT_EQ(log.stopped, 1U);
  EXPECT_EQ(log.inside, 1U);
  EXPECT_FALSE(removal.done());
  EXPECT_EQ(log.destroyed, 0U);
  gates_[1].set();
  settle();
  EXPECT_EQ(said(staying), "200 waited");
  EXPECT_TRUE(removal.done() && removal.value());
  EXPECT_EQ(log.destroyed, 1U);
}

// The cancellation meets the change while it is queued, published, and waiting for requests.
TEST_F(LiveRoutesTest, RemovalMayBeCancelledAtAnyStage) {
  start_all();
  for (int turns = 0; turns < 12; ++turns) {
    for (const unsigned first : {0U, 1U}) {
      SCOPED_TRACE(std::to_string(turns) + " turns, first of core " + std::to_string(first));
      HandlerLog& log = logs_.emplace_back();
      const auto added = run_on(0, live_.get("/wait", WaitingHandler(log, gates_, "waited")));
      ASSERT_TRUE(added);
      MemoryPeer& same_core = send_get(0, "/wait");
      MemoryPeer& other_core = send_get(1, "/wait");
      CancelSource cancel;
      Running<Result<>> removal(loop(0), under(cancel, live_.remove(*added)));
      for (int turn = 0; turn < turns; ++turn) {
        loop(turn < 6 ? 0 : first).turn(platform_.now());
      }
      EXPECT_EQ(log.stopped, 0U);
      cancel.cancel();
      settle();
      EXPECT_TRUE(removal.done() && removal.value());
      EXPECT_EQ(said(same_core), "503");
      EXPECT_EQ(said(other_core), "503");
      EXPECT_EQ(log.stopped, 2U);
      EXPECT_EQ(log.destroyed, 1U);
      EXPECT_EQ(ask_all("/wait"), "404");
    }
  }
}

TEST_F(LiveRoutesTest, CancelledReplacementStopsTheRequestsOfTheOldHandler) {
  HandlerLog& before = logs_.emplace_back();
  HandlerLog& after = logs_.emplace_back();
  start_all();
  const auto added = run_on(0, live_.get("/a", WaitingHandler(before, gates_, "old")));
  ASSERT_TRUE(added);
  MemoryPeer& old_request = send_get(1, "/a");
  CancelSource cancel;
  Running<Result<>> change(
      loop(0), under(cancel, live_.replace(*added, WaitingHandler(after, gates_, "new"))));
  settle();
  MemoryPeer& new_request = send_get(1, "/a");
  EXPECT_FALSE(change.done());
  cancel.cancel();
  settle();
  EXPECT_TRUE(change.done() && change.value());
  EXPECT_EQ(said(old_request), "503");
  EXPECT_EQ(said(new_request), "") << "it is a request of the new handler";
  EXPECT_EQ(before.destroyed, 1U);
  gates_[1].set();
  settle();
  EXPECT_EQ(said(new_request), "200 new");
}

TEST_F(LiveRoutesTest, CancelledAdditionStaysIfItHasBegun) {
  start_all();
  for (int turns = 1; turns <= 6; ++turns) {
    SCOPED_TRACE(turns);
    CancelSource cancel;
    Running<Result<RouteId>> adding(loop(0), under(cancel, live_.get("/a", hello)));
    for (int turn = 0; turn < turns; ++turn) loop(0).turn(platform_.now());
    cancel.cancel();
    settle();
    ASSERT_TRUE(adding.done() && adding.value());
    EXPECT_EQ(ask_all("/a"), "200 hello");
    ASSERT_TRUE(run_on(1, live_.remove(*adding.value())));
  }
}

// A removal cannot make a client read or send faster; the limits of the server do that.
TEST_F(LiveRoutesTest, ACancelledRemovalWaitsForTheClientsOfItsRoute) {
  const auto large = [] { return text(std::string(200'000, 'x')); };
  start_all();
  const auto page = run_on(0, live_.get("/large", large));
  const auto upload = run_on(0, live_.post("/upload", hello));
  ASSERT_TRUE(page && upload);
  MemoryPeer& reading = send_get(1, "/large");
  MemoryPeer& sending = send(2, "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
  CancelSource cancel;
  Running<Result<>> first(loop(0), under(cancel, live_.remove(*page)));
  Running<Result<>> second(loop(0), under(cancel, live_.remove(*upload)));
  settle();
  EXPECT_FALSE(first.done() || second.done());
  cancel.cancel();
  settle();
  EXPECT_FALSE(first.done() || second.done());
  sending.send("cd");
  settle();
  EXPECT_EQ(said(sending), "200 hello");
  EXPECT_TRUE(second.done() && second.value());
  EXPECT_FALSE(first.done());
  for (int round = 0; round < 10; ++round) {
    reading.received();
    settle();
  }
  const auto answers = sim::parse_http_responses(reading.received());
  ASSERT_EQ(sim::statuses_of(answers), "200");
  EXPECT_EQ(answers[0].body.size(), 200'000U);
  EXPECT_TRUE(first.done() && first.value());
}

// The cancellation finds nothing to cancel, because the client still sends its body.
TEST_F(LiveRoutesTest, ACancelledRemovalBeginsNoStream) {
  HandlerLog& log = logs_.emplace_back();
  start_all();
  const auto added = run_on(0, live_.post("/stream", StreamingHandler(log, gates_, "part ")));
  ASSERT_TRUE(added);
  MemoryPeer& peer = send(1, "POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
  CancelSource cancel;
  Running<Result<>> removal(loop(0), under(cancel, live_.remove(*added)));
  settle();
  cancel.cancel();
  settle();
  EXPECT_FALSE(removal.done());
  peer.send("cd" + get("/none"));
  settle();
  EXPECT_EQ(said(peer), "503|404");
  EXPECT_EQ(log.inside, 0U);
  EXPECT_TRUE(removal.done() && removal.value());
  EXPECT_EQ(log.destroyed, 1U);
}

/// A handler whose streaming function is valid only as long as the handler.
class PartHandler {
 public:
  explicit PartHandler(HandlerLog& log) : probe_(log) {}
  Response operator()() const {
    return stream("text/plain",
                  [part = std::make_shared<Part>(probe_.log())](BodySink& sink) -> Task<Result<>> {
                    co_return co_await sink.write(part->text);
                  });
  }

 private:
  struct Part {
    explicit Part(const HandlerLog& of) noexcept : log(of) {}
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    ~Part() { EXPECT_EQ(log.destroyed, 0U) << "the function outlives its handler"; }
    const HandlerLog& log;
    std::string text = "part";
  };
  HandlerProbe probe_;
};

// The connection stays active behind the response, because the next head is incomplete.
TEST_F(LiveRoutesTest, StreamingFunctionIsDestroyedBeforeItsHandler) {
  start_all();
  for (const std::string method : {"GET", "HEAD"}) {
    SCOPED_TRACE(method);
    HandlerLog& log = logs_.emplace_back();
    const auto added = run_on(0, live_.get("/part", PartHandler(log)));
    ASSERT_TRUE(added);
    MemoryPeer& peer = send(1, method + " /part HTTP/1.1\r\nHost: a\r\n\r\nGET /none HT");
    EXPECT_EQ(peer.received().contains("part"), method == "GET");
    ASSERT_TRUE(run_on(0, live_.remove(*added)));
    EXPECT_EQ(log.destroyed, 1U);
    peer.send("TP/1.1\r\nHost: a\r\n\r\n");
    settle();
    EXPECT_TRUE(peer.received().contains(R"({"title":"Not Found")")) << peer.received();
  }
}

TEST_F(LiveRoutesTest, RequestsMayRemoveOneRouteAfterAnother) {
  RouteId first;
  RouteId second;
  routes_.get("/remove/first", Removing(live_, first, gates_));
  routes_.get("/remove/second", Removing(live_, second, gates_));
  first = routes_.get("/first", hello);
  second = routes_.get("/second", hello);
  start_all();
  for (auto& gate : gates_) gate.set();
  EXPECT_EQ(ask(0, "/remove/first"), "200 ");
  EXPECT_EQ(ask(1, "/remove/second"), "200 ");
  EXPECT_EQ(ask(2, "/remove/second"), "404") << "it is gone already";
  EXPECT_EQ(ask_all("/first"), "404");
  EXPECT_EQ(ask_all("/second"), "404");
}

TEST_F(LiveRoutesTest, ThreeRequestsCannotWaitForEachOther) {
  RouteId a;
  RouteId b;
  RouteId c;
  a = routes_.get("/a", Removing(live_, b, gates_));
  b = routes_.get("/b", Removing(live_, c, gates_));
  c = routes_.get("/c", Removing(live_, a, gates_));
  start_all();
  MemoryPeer& first = send_get(0, "/a");
  MemoryPeer& second = send_get(1, "/b");
  MemoryPeer& third = send_get(2, "/c");
  gates_[0].set();
  settle();
  gates_[1].set();
  settle();
  EXPECT_EQ(said(first) + said(second), "");
  gates_[2].set();
  settle();
  EXPECT_EQ(said(third), "409") << "it would close the cycle";
  EXPECT_EQ(said(second), "200 ");
  EXPECT_EQ(said(first), "200 ");
}

#ifndef NDEBUG
TEST_F(LiveRoutesTest, AssertsThatAServedRouterIsChangedThroughIt) {
  start(0);
  EXPECT_DEATH(routes_.get("/a", hello), "changed through LiveRoutes");
  const auto pass = [](Request& request, Next next) -> Task<Response> { return next(request); };
  EXPECT_DEATH(routes_.use(pass), "middleware is added before a router is served");
}
#endif

}  // namespace
}  // namespace weir::http::live_routes_test

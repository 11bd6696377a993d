#include "weir/http/router/detail/service_route_set.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weir/http/test/live_routes_fixture.hpp"

namespace weir::http::service_route_set_test {
namespace {

using namespace std::chrono_literals;
using Reach = ServiceRouteSet::Reach;

constexpr std::string_view nobody = "503";

class ServiceRouteSetTest : public LiveRoutesTest {
 protected:
  ServiceRouteSetTest() { registry_.open(loop(0), loops()); }
  void TearDown() override {
    for (const auto& each : owners_) withdraw_now(*each);
    registry_.close();
    LiveRoutesTest::TearDown();
    owners_.clear();
  }

  ServiceRouteSet& owner(unsigned core, Reach reach = Reach::own_core) {
    owners_.push_back(std::make_unique<ServiceRouteSet>(registry_, "Owner", loop(core), reach));
    cores_.push_back(core);
    return *owners_.back();
  }
  /// Opens an owner that answers GET /a with `what`.
  ServiceRouteSet& open_with(unsigned core, std::string what, Reach reach = Reach::own_core) {
    ServiceRouteSet& fresh = owner(core, reach);
    fresh.get("/a", TextHandler(logs_.emplace_back(), std::move(what)));
    EXPECT_TRUE(open(fresh));
    return fresh;
  }
  unsigned core_of(const ServiceRouteSet& of) const {
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      if (owners_[i].get() == &of) return cores_[i];
    }
    return 0;
  }
  Result<> open(ServiceRouteSet& of, const ServiceRouteSet* predecessor = nullptr) {
    return run_on(core_of(of), of.open(predecessor));
  }
  static Task<bool> ended(Task<> task) {
    co_await std::move(task);
    co_return true;
  }
  void withdraw_now(ServiceRouteSet& of, WithdrawOptions how = {}) {
    EXPECT_TRUE(run_on(core_of(of), ended(of.withdraw(how))));
  }
  void hand_over(ServiceRouteSet& to) {
    for (Loop* const each : to.loops()) to.hand_over(*each);
  }

  ServiceRouteRegistry registry_{routes_, {.wait_timeout = 5s, .retry_after = 7s}};
  std::vector<std::unique_ptr<ServiceRouteSet>> owners_;
  std::vector<unsigned> cores_;
};

TEST_F(ServiceRouteSetTest, EachInstanceAnswersOnItsCoreUntilItLeaves) {
  start_all();
  EXPECT_EQ(ask_all("/a"), "404");
  ServiceRouteSet& first = open_with(0, "zero ");
  EXPECT_EQ(ask(0, "/a"), "200 zero 0");
  EXPECT_EQ(ask(1, "/a"), nobody);
  ServiceRouteSet& second = open_with(1, "one ");
  EXPECT_EQ(ask(0, "/a"), "200 zero 0");
  EXPECT_EQ(ask(1, "/a"), "200 one 0");
  EXPECT_EQ(ask(2, "/a"), nobody);
  withdraw_now(first);
  EXPECT_EQ(ask(0, "/a"), nobody);
  EXPECT_EQ(ask(1, "/a"), "200 one 0");
  withdraw_now(second);
  EXPECT_EQ(ask_all("/a"), "404");
}

TEST_F(ServiceRouteSetTest, CoreWithoutInstanceAnswers503WithRetryAfter) {
  start_all();
  open_with(0, "zero ");
  const std::string answer = send_get(1, "/a").received();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("\r\nRetry-After: 7\r\n"), std::string::npos) << answer;
}

TEST_F(ServiceRouteSetTest, ASharedOwnerAnswersOnAllCores) {
  start_all();
  ServiceRouteSet& shared = open_with(1, "shared ", Reach::all_cores);
  EXPECT_EQ(ask_all("/a"), "200 shared 0");
  withdraw_now(shared);
  EXPECT_EQ(ask_all("/a"), "404");
}

// Core 2 serves the router too, like a loop of another runtime, but is not one of the registry's.
TEST_F(ServiceRouteSetTest, LoopOutsideOfTheRegistryAnswers503) {
  registry_.close();
  registry_.open(loop(0), loops().first(2));
  start_all();
  open_with(0, "shared ", Reach::all_cores);
  EXPECT_EQ(ask(0, "/a"), "200 shared 0");
  EXPECT_EQ(ask(1, "/a"), "200 shared 0");
  EXPECT_EQ(ask(2, "/a"), nobody);
  EXPECT_EQ(said(send(2, get("/a") + get("/none"))), "503|404");
}

TEST_F(ServiceRouteSetTest, PathParamsBodiesAndMethodsWorkAsInTheRouter) {
  start_all();
  ServiceRouteSet& one = owner(1);
  one.get("/to/{name}/{rest...}", [](std::string_view name, Wildcard rest) {
    return text(std::string(name) + " " + std::string(rest.raw()));
  });
  one.post("/body", [](Request& request) -> Task<Response> {
    auto body = co_await request.body();
    co_return text(body ? *body : "none");
  });
  one.add("BREW", Pattern::parse("/pot/{id:[0-9]+}").value(),
          [](unsigned id) { return text(std::to_string(id)); });
  ASSERT_TRUE(open(one));
  EXPECT_EQ(ask(1, "/to/ann/b/c"), "200 ann b/c");
  EXPECT_EQ(said(send(1, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")),
            "200 abc");
  EXPECT_EQ(said(send(1, "BREW /pot/12 HTTP/1.1\r\nHost: a\r\n\r\n")), "200 12");
  EXPECT_EQ(said(send(1, "BREW /pot/x HTTP/1.1\r\nHost: a\r\n\r\n")), "404");
  EXPECT_EQ(said(send(1, "BREW /body HTTP/1.1\r\nHost: a\r\n\r\n")), "405");
}

TEST_F(ServiceRouteSetTest, OptionsOfARouteHoldForItsRequests) {
  start_all();
  ServiceRouteSet& one = owner(1);
  const auto give_back = [](Request& request) -> Task<Response> {
    auto body = co_await request.body();
    co_return text(body ? *body : "none");
  };
  one.post("/body", give_back, {.body_max = 2});
  one.get("/wait", WaitingHandler(logs_.emplace_back(), gates_, "waited"), {.timeout = 3s});
  ASSERT_TRUE(open(one));
  const std::string post = "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: ";
  EXPECT_EQ(said(send(1, post + "2\r\n\r\nab")), "200 ab");
  EXPECT_EQ(said(send(1, post + "3\r\n\r\nabc")), "413");
  MemoryPeer& peer = send_get(1, "/wait");
  platform_.advance(loops(), 2999ms);
  EXPECT_EQ(said(peer), "");
  platform_.advance(loops(), 1ms);
  EXPECT_EQ(said(peer), "503");
}

TEST_F(ServiceRouteSetTest, LeavingWaitsForTheRequestsOfAllItsCores) {
  start_all();
  HandlerLog& log = logs_.emplace_back();
  ServiceRouteSet& shared = owner(0, Reach::all_cores);
  shared.get("/wait", WaitingHandler(log, gates_, "waited"));
  shared.get("/stream", StreamingHandler(log, gates_, "part "));
  ASSERT_TRUE(open(shared));
  MemoryPeer& first = send_get(1, "/wait");
  MemoryPeer& second = send_get(2, "/stream");
  EXPECT_EQ(log.inside, 2U);
  Running<bool> withdrawing(loop(0), ended(shared.withdraw({})));
  settle();
  EXPECT_FALSE(withdrawing.done());
  EXPECT_EQ(ask_all("/wait"), "404");
  gates_[1].set();
  settle();
  EXPECT_EQ(said(first), "200 waited");
  EXPECT_FALSE(withdrawing.done());
  gates_[2].set();
  settle();
  EXPECT_TRUE(second.received().ends_with("part \r\n0\r\n\r\n")) << second.received();
  EXPECT_TRUE(withdrawing.done());
}

TEST_F(ServiceRouteSetTest, LeavingStopsRequestsAfterTheDrainTimeout) {
  start_all();
  HandlerLog& log = logs_.emplace_back();
  ServiceRouteSet& one = owner(1);
  one.get("/wait", WaitingHandler(log, gates_, "waited"));
  ASSERT_TRUE(open(one));
  MemoryPeer& peer = send_get(1, "/wait");
  Running<bool> withdrawing(loop(1), ended(one.withdraw({.drain_timeout = 3s})));
  platform_.advance(loops(), 2s);
  EXPECT_FALSE(withdrawing.done());
  EXPECT_EQ(said(peer), "");
  platform_.advance(loops(), 2s);
  EXPECT_TRUE(withdrawing.done());
  EXPECT_EQ(log.stopped, 1U);
  EXPECT_EQ(said(peer), "503");
}

TEST_F(ServiceRouteSetTest, LeavingAnswersOrHidesTheRouteInEveryTurn) {
  start_all();
  ServiceRouteSet& shared = open_with(1, "shared ", Reach::all_cores);
  Running<bool> withdrawing(loop(1), ended(shared.withdraw({})));
  std::vector<std::unique_ptr<MemoryPeer>> peers;
  for (int round = 0; round < 20; ++round) {
    for (unsigned core = 0; core < 3; ++core) {
      const auto port = static_cast<std::uint16_t>(80 + core);
      peers.push_back(std::make_unique<MemoryPeer>(platform_, os::Address::loopback(port)));
      peers.back()->send(get("/a"));
    }
    for (unsigned core = 0; core < 3; ++core) loop(core).turn(platform_.now());
  }
  settle();
  EXPECT_TRUE(withdrawing.done());
  std::set<std::string> seen;
  for (const auto& each : peers) seen.insert(said(*each));
  EXPECT_EQ(seen, (std::set<std::string>{"200 shared 0", "404"}));
}

TEST_F(ServiceRouteSetTest, CancelledLeavingStopsRequestsImmediately) {
  start_all();
  HandlerLog& log = logs_.emplace_back();
  ServiceRouteSet& one = owner(1);
  one.get("/wait", WaitingHandler(log, gates_, "waited"));
  ASSERT_TRUE(open(one));
  MemoryPeer& peer = send_get(1, "/wait");
  CancelSource cancel;
  Running<bool> withdrawing(loop(1), under(cancel, ended(one.withdraw({}))));
  settle();
  EXPECT_FALSE(withdrawing.done());
  cancel.cancel();
  settle();
  EXPECT_TRUE(withdrawing.done());
  EXPECT_EQ(said(peer), "503");
}

TEST_F(ServiceRouteSetTest, HandOverSwitchesAllRoutesInOneStep) {
  start_all();
  HandlerLog& log = logs_.emplace_back();
  for (const Reach reach : {Reach::own_core, Reach::all_cores}) {
    ServiceRouteSet& old = owner(1, reach);
    old.get("/a", TextHandler(logs_.emplace_back(), "old "));
    old.get("/wait", WaitingHandler(log, gates_, "old"));
    old.get("/only-old", TextHandler(logs_.emplace_back(), "old "));
    ASSERT_TRUE(open(old));
    MemoryPeer& waiting = send_get(1, "/wait");
    ServiceRouteSet& fresh = owner(1, reach);
    fresh.get("/a", TextHandler(logs_.emplace_back(), "new "));
    fresh.get("/wait", TextHandler(logs_.emplace_back(), "new "));
    fresh.get("/only-new", TextHandler(logs_.emplace_back(), "new "));
    ASSERT_TRUE(open(fresh, &old));
    EXPECT_EQ(ask(1, "/a"), "200 old 0");
    EXPECT_EQ(ask(1, "/only-new"), "200 new 0");
    hand_over(fresh);
    EXPECT_EQ(ask(1, "/a"), "200 new 0");
    EXPECT_EQ(ask(1, "/wait"), "200 new 0");
    Running<bool> withdrawing(loop(1), ended(old.withdraw({})));
    settle();
    EXPECT_FALSE(withdrawing.done());
    EXPECT_EQ(ask(1, "/a"), "200 new 0");
    EXPECT_EQ(ask(1, "/only-old"), "404");
    gates_[1].set();
    settle();
    EXPECT_TRUE(withdrawing.done());
    EXPECT_EQ(said(waiting), "200 old");
    gates_[1].reset();
    withdraw_now(fresh);
    EXPECT_EQ(ask_all("/a"), "404");
  }
}

TEST_F(ServiceRouteSetTest, ReplacementMayLeaveBeforeTheHandOver) {
  start_all();
  ServiceRouteSet& old = open_with(1, "old ");
  ServiceRouteSet& fresh = owner(1);
  fresh.get("/a", TextHandler(logs_.emplace_back(), "new "));
  fresh.get("/b", TextHandler(logs_.emplace_back(), "new "));
  ASSERT_TRUE(open(fresh, &old));
  withdraw_now(fresh);
  EXPECT_EQ(ask(1, "/a"), "200 old 0");
  EXPECT_EQ(ask(1, "/b"), "404");
}

TEST_F(ServiceRouteSetTest, RequestsWaitForAnExpectedReplacement) {
  start_all();
  ServiceRouteSet& old = open_with(1, "old ", Reach::all_cores);
  withdraw_now(old, {.replacement_expected = true});
  MemoryPeer& first = send_get(0, "/a");
  MemoryPeer& second = send(1, "GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx");
  MemoryPeer& pipeline = send(2, get("/a") + get("/none") + get("/a"));
  platform_.advance(loops(), 1s);
  EXPECT_EQ(said(first) + said(second) + said(pipeline), "");
  second.send("y");
  open_with(1, "new ", Reach::all_cores);
  EXPECT_EQ(said(first), "200 new 0");
  EXPECT_EQ(said(second), "200 new 0");
  EXPECT_EQ(said(pipeline), "200 new 0|404|200 new 0");
  EXPECT_TRUE(run_on(0, ended(registry_.release_retained())));
  EXPECT_EQ(ask_all("/a"), "200 new 0");
}

// The registry releases the old owner while the request still runs. Only the new owner waits for
// that request.
TEST_F(ServiceRouteSetTest, RequestThatHasWaitedBelongsToItsNewOwnerOnly) {
  start_all();
  HandlerLog& log = logs_.emplace_back();
  ServiceRouteSet& old = open_with(1, "old ");
  withdraw_now(old, {.replacement_expected = true});
  MemoryPeer& peer = send_get(1, "/a");
  ServiceRouteSet& fresh = owner(1);
  fresh.get("/a", WaitingHandler(log, gates_, "new"));
  ASSERT_TRUE(open(fresh));
  EXPECT_TRUE(run_on(0, ended(registry_.release_retained())));
  EXPECT_EQ(log.inside, 1U);
  Running<bool> withdrawing(loop(1), ended(fresh.withdraw({.drain_timeout = 3s})));
  platform_.advance(loops(), 2999ms);
  EXPECT_FALSE(withdrawing.done());
  platform_.advance(loops(), 1ms);
  EXPECT_TRUE(withdrawing.done());
  EXPECT_EQ(log.stopped, 1U);
  EXPECT_EQ(said(peer), "503");
}

TEST_F(ServiceRouteSetTest, WaitForAReplacementEndsWith503) {
  start_all();
  ServiceRouteSet& old = open_with(1, "old ");
  withdraw_now(old, {.replacement_expected = true});
  MemoryPeer& early = send_get(1, "/a");
  platform_.advance(loops(), 3s);
  MemoryPeer& late = send_get(1, "/a");
  platform_.advance(loops(), 2s);
  EXPECT_EQ(said(early), "503");
  EXPECT_EQ(said(late), "");
  EXPECT_TRUE(run_on(0, ended(registry_.release_retained())));
  EXPECT_EQ(said(late), "503");
  EXPECT_EQ(ask_all("/a"), "404");
}

TEST_F(ServiceRouteSetTest, ClientMayLeaveWhileItWaitsForAReplacement) {
  start_all();
  ServiceRouteSet& old = open_with(1, "old ");
  withdraw_now(old, {.replacement_expected = true});
  send_get(1, "/a").close();
  send_get(1, "/a").reset();
  settle();
  open_with(1, "new ");
  settle();
  EXPECT_TRUE(run_on(0, ended(registry_.release_retained())));
  EXPECT_EQ(ask(1, "/a"), "200 new 0");
}

TEST_F(ServiceRouteSetTest, ReleasedRouteStaysForRequestsThatWaitedForAReplacement) {
  routes_.get("/fill/{size}", [](unsigned size) { return text(std::string(size, 'x')); });
  start_all();
  ServiceRouteSet& old = owner(1);
  old.post("/page", [] { return text("old"); });
  ASSERT_TRUE(open(old));
  withdraw_now(old, {.replacement_expected = true});
  // The client does not read, until its connection has room for a few bytes and no whole answer.
  constexpr std::size_t first_body = 60'000;
  MemoryPeer& slow = send_get(1, "/fill/" + std::to_string(first_body));
  const std::size_t head = slow.unread() - first_body;
  const std::size_t left = MemoryPlatformOptions().buffer_bytes - slow.unread();
  slow.send(get("/fill/" + std::to_string(left - head - 10)));
  settle();
  slow.send(get("/none") + "POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
  settle();
  ASSERT_EQ(slow.unread(), MemoryPlatformOptions().buffer_bytes);
  // No replacement comes. The route goes when its last request is answered, which waits for its
  // client to read...
  Running<bool> releasing(loop(0), ended(registry_.release_retained()));
  settle();
  EXPECT_FALSE(releasing.done());
  // ... and not for its own body.
  static_cast<void>(slow.received());
  settle();
  EXPECT_TRUE(releasing.done());
  EXPECT_NE(slow.received().find("HTTP/1.1 503 "), std::string::npos);
  slow.send("hello" + get("/fill/1"));
  settle();
  EXPECT_TRUE(slow.received().ends_with("\r\n\r\nx"));
}

TEST_F(ServiceRouteSetTest, ARejectedHeadBehindTheLastRequestDoesNotUseItsOwner) {
  routes_.get("/fill/{size}", [](unsigned size) { return text(std::string(size, 'x')); });
  start_all();
  ServiceRouteSet& one = owner(1);
  // The output has room for this response, and not for another one.
  one.get("/wait", WaitingHandler(logs_.emplace_back(), gates_, std::string(16'384 - 200, 'w')));
  ASSERT_TRUE(open(one));
  // The client does not read, until its connection has room for a few bytes.
  constexpr std::size_t first_body = 60'000;
  MemoryPeer& slow = send_get(1, "/fill/" + std::to_string(first_body));
  const std::size_t head = slow.unread() - first_body;
  const std::size_t left = MemoryPlatformOptions().buffer_bytes - slow.unread();
  slow.send(get("/fill/" + std::to_string(left - head - 10)));
  slow.send(get("/wait") + "broken\r\n\r\n");
  settle();
  Running<bool> withdrawing(loop(1), ended(one.withdraw({})));
  settle();
  EXPECT_FALSE(withdrawing.done());
  gates_[1].set();
  settle();
  EXPECT_TRUE(withdrawing.done());
  owners_.clear();
  std::string received = slow.received();
  settle();
  received += slow.received();
  EXPECT_NE(received.find("HTTP/1.1 400 "), std::string::npos);
}

TEST_F(ServiceRouteSetTest, TwoOwnersCannotHaveTheSameRoute) {
  start_all();
  open_with(1, "first ");
  ServiceRouteSet& other = owner(1);
  other.get("/b", TextHandler(logs_.emplace_back(), "b "));
  other.get("/a", TextHandler(logs_.emplace_back(), "other "));
  EXPECT_EQ(open(other).error(), Errc::conflict);
  EXPECT_EQ(other.error_text(), "GET /a: already registered by Owner");
  EXPECT_EQ(ask(1, "/a"), "200 first 0");
  EXPECT_EQ(ask(1, "/b"), "404");
}

TEST_F(ServiceRouteSetTest, OpenServesNothingIfOneCoreIsTaken) {
  start_all();
  open_with(2, "single ");
  ServiceRouteSet& shared = owner(0, Reach::all_cores);
  shared.get("/a", TextHandler(logs_.emplace_back(), "shared "));
  shared.get("/b", TextHandler(logs_.emplace_back(), "shared "));
  EXPECT_EQ(open(shared).error(), Errc::conflict);
  EXPECT_EQ(shared.error_text(), "GET /a: already registered by Owner");
  EXPECT_EQ(ask(0, "/a"), nobody);
  EXPECT_EQ(ask(1, "/a"), nobody);
  EXPECT_EQ(ask(2, "/a"), "200 single 0");
  EXPECT_EQ(ask_all("/b"), "404");
}

// The opening meets the removal of the route at each of its steps.
TEST_F(ServiceRouteSetTest, AnOwnerMayOpenWhileTheLastOneLeaves) {
  start_all();
  for (int turns = 0; turns < 16; ++turns) {
    SCOPED_TRACE(turns);
    ServiceRouteSet& last = open_with(1, "last ");
    Running<bool> leaving(loop(1), ended(last.withdraw({})));
    for (int turn = 0; turn < turns; ++turn) {
      for (Loop* const each : loops()) each->turn(platform_.now());
    }
    ServiceRouteSet& next = owner(2);
    next.get("/a", TextHandler(logs_.emplace_back(), "next "));
    Running<Result<>> opening(loop(2), next.open(nullptr));
    settle();
    ASSERT_TRUE(leaving.done() && opening.done());
    EXPECT_TRUE(opening.value());
    ServiceRouteSet& third = open_with(0, "third ");
    EXPECT_EQ(ask(0, "/a"), "200 third 0");
    EXPECT_EQ(ask(1, "/a"), nobody);
    EXPECT_EQ(ask(2, "/a"), "200 next 0");
    withdraw_now(next);
    EXPECT_EQ(ask(0, "/a"), "200 third 0");
    EXPECT_EQ(ask(2, "/a"), nobody);
    withdraw_now(third);
    EXPECT_EQ(ask_all("/a"), "404");
  }
}

TEST_F(ServiceRouteSetTest, OwnerCannotHaveARouteOfTheRouter) {
  routes_.get("/x/{id}", [](unsigned) { return text("router"); });
  start_all();
  ServiceRouteSet& other = owner(1);
  other.get("/b", TextHandler(logs_.emplace_back(), "b "));
  other.get("/x/{name}", [](std::string_view) { return text("owner"); });
  EXPECT_EQ(open(other).error(), Errc::conflict);
  EXPECT_EQ(other.error_text(), "GET /x/{name}: route already exists");
  EXPECT_EQ(ask(1, "/x/1"), "200 router");
  EXPECT_EQ(ask(1, "/b"), "404");
}

TEST_F(ServiceRouteSetTest, OpenReportsInvalidRegistrations) {
  ServiceRouteSet& one = owner(1);
  one.get("/a/{x}", [](std::string_view) { return text("first"); });
  one.get("/a/{y}", [](std::string_view) { return text("second"); });
  one.get(Pattern::parse("/b/{x}").value(), [] { return text("no param"); });
  EXPECT_EQ(open(one).error(), Errc::bad_configuration);
  EXPECT_TRUE(one.error_text().starts_with("GET /a/{y}: conflicts with /a/{x}; GET /b/{x}: "))
      << one.error_text();
  ServiceRouteSet& other = owner(1);
  other.get(Pattern::parse("/c/{x:(}").value(), [](std::string_view) { return text("bad"); });
  EXPECT_FALSE(open(other));
  EXPECT_TRUE(other.error_text().starts_with("GET /c/{x:(}: ")) << other.error_text();
}

TEST_F(ServiceRouteSetTest, OwnersOpenAndLeaveConcurrentlyOnAllCores) {
  start_all();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Running<bool>>> running;
    const auto life = [](ServiceRouteSet& of) -> Task<bool> {
      const Result<> opened = co_await of.open(nullptr);
      const WithdrawOptions how;
      co_await of.withdraw(how);
      co_return opened.has_value();
    };
    for (unsigned core = 0; core < 3; ++core) {
      ServiceRouteSet& each = owner(core);
      each.get("/a", TextHandler(logs_.emplace_back(), "a "));
      running.push_back(std::make_unique<Running<bool>>(loop(core), life(each)));
      if (core < static_cast<unsigned>(round) % 3) settle();
    }
    settle();
    for (const auto& each : running) EXPECT_TRUE(each->done() && each->value());
    EXPECT_EQ(ask_all("/a"), "404");
  }
}

TEST_F(ServiceRouteSetTest, ServerOfAnotherRuntimeFindsNoHandler) {
  loop::LoopGroup elsewhere;
  const auto foreign = Loop::make(platform_, {.core = 1, .group = &elsewhere}).value();
  CoreHandlers core_handlers(loops(), 1s);
  EXPECT_EQ(core_handlers.on(*foreign), nullptr);
  EXPECT_NE(core_handlers.on(loop(1)), nullptr);
}

TEST_F(ServiceRouteSetTest, CoreOutsideTheGroupHasNoHandler) {
  CoreHandlers core_handlers(loops().first(2), 1s);
  EXPECT_NE(core_handlers.on(loop(0)), nullptr);
  EXPECT_NE(core_handlers.on(loop(1)), nullptr);
  EXPECT_EQ(core_handlers.on(loop(2)), nullptr);
}

TEST_F(ServiceRouteSetTest, EachMethodHasItsOwnFunction) {
  start_all();
  ServiceRouteSet& one = owner(1);
  one.get("/m", [] { return text("get"); });
  one.head("/h", [] { return text("head"); });
  one.post("/m", [] { return text("post"); });
  one.put("/m", [] { return text("put"); });
  one.patch("/m", [] { return text("patch"); });
  one.del("/m", [] { return text("del"); });
  one.options("/m", [] { return text("options"); });
  ASSERT_TRUE(open(one));
  for (const auto& [method, answer] :
       std::vector<std::pair<std::string, std::string>>{{"GET", "get"},
                                                        {"POST", "post"},
                                                        {"PUT", "put"},
                                                        {"PATCH", "patch"},
                                                        {"DELETE", "del"},
                                                        {"OPTIONS", "options"}}) {
    EXPECT_EQ(said(send(1, method + " /m HTTP/1.1\r\nHost: a\r\n\r\n")), "200 " + answer);
  }
  EXPECT_EQ(said(send(1, "GET /h HTTP/1.1\r\nHost: a\r\n\r\n")), "405");
  const std::string head = send(1, "HEAD /h HTTP/1.1\r\nHost: a\r\n\r\n").received();
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 ")) << head;
}

TEST_F(ServiceRouteSetTest, RoutesOfDifferentShapeDoNotConflict) {
  start_all();
  ServiceRouteSet& one = owner(1);
  one.get("/", [] { return text("root"); });
  one.get("/{x}", [](std::string_view) { return text("param"); });
  one.get("/{x:[0-9]+}", [](std::string_view) { return text("regex"); });
  one.get("/%5B0-9%5D+", [] { return text("literal"); });
  one.get("/{x...}", [](std::string_view) { return text("wildcard"); });
  one.post("/{x}", [](std::string_view) { return text("post"); });
  ASSERT_TRUE(open(one)) << one.error_text();
  EXPECT_EQ(ask(1, "/"), "200 root");
  EXPECT_EQ(ask(1, "/a"), "200 param");
  EXPECT_EQ(ask(1, "/12"), "200 regex");
  EXPECT_EQ(ask(1, "/a/b"), "200 wildcard");
}

TEST_F(ServiceRouteSetTest, OpenNamesTheFirstRouteThatTheRouterHas) {
  routes_.get("/x", [] { return text("router"); });
  routes_.get("/y", [] { return text("router"); });
  start_all();
  ServiceRouteSet& one = owner(1);
  one.get("/x", [] { return text("owner"); });
  one.get("/y", [] { return text("owner"); });
  EXPECT_EQ(open(one).error(), Errc::conflict);
  EXPECT_EQ(one.error_text(), "GET /x: route already exists");
  ServiceRouteSet& odd = owner(1);
  odd.add("CONNECT", "/z", [] { return text("owner"); });
  EXPECT_EQ(open(odd).error(), Errc::bad_input);
  EXPECT_EQ(odd.error_text(), "CONNECT /z: " + make_error_code(Errc::bad_input).message());
}

TEST_F(ServiceRouteSetTest, CancelledOpeningServesNothingAndBlamesNoRoute) {
  start_all();
  ServiceRouteSet& one = owner(1);
  one.get("/a", TextHandler(logs_.emplace_back(), "one "));
  CancelSource cancel;
  cancel.cancel();
  EXPECT_EQ(run_on(1, under(cancel, one.open(nullptr))).error(), Errc::cancelled);
  EXPECT_EQ(one.error_text(), "");
  EXPECT_EQ(ask_all("/a"), "404");
}

TEST_F(ServiceRouteSetTest, ReplacementCannotTakeARouteOfAThirdOwner) {
  start_all();
  ServiceRouteSet& old = open_with(1, "old ");
  ServiceRouteSet& third = owner(1);
  third.get("/c", TextHandler(logs_.emplace_back(), "third "));
  ASSERT_TRUE(open(third));
  ServiceRouteSet& fresh = owner(1);
  fresh.get("/a", TextHandler(logs_.emplace_back(), "new "));
  fresh.get("/c", TextHandler(logs_.emplace_back(), "new "));
  EXPECT_EQ(open(fresh, &old).error(), Errc::conflict);
  EXPECT_EQ(fresh.error_text(), "GET /c: already registered by Owner");
  EXPECT_EQ(ask(1, "/a"), "200 old 0");
  EXPECT_EQ(ask(1, "/c"), "200 third 0");
}

TEST_F(ServiceRouteSetTest, EndOfTheWaitForAReplacementReachesAllCores) {
  start_all();
  ServiceRouteSet& old = open_with(1, "old ", Reach::all_cores);
  withdraw_now(old, {.replacement_expected = true});
  std::vector<MemoryPeer*> waiting;
  for (unsigned core = 0; core < 3; ++core) waiting.push_back(&send_get(core, "/a"));
  for (MemoryPeer* const each : waiting) EXPECT_EQ(said(*each), "");
  EXPECT_TRUE(run_on(0, ended(registry_.release_retained())));
  for (MemoryPeer* const each : waiting) EXPECT_EQ(said(*each), "503");
  EXPECT_EQ(ask_all("/a"), "404");
  EXPECT_TRUE(run_on(0, ended(registry_.release_retained()))) << "nothing is left to release";
}

TEST_F(ServiceRouteSetTest, WaitForAReplacementKeepsTheHeadAndHoldsNoBuffer) {
  start_all();
  const auto greet = [](std::string what) {
    return [what](Request& request, std::string_view name) {
      return text(what + " " + std::string(name) + " " + std::string(request.path_text()));
    };
  };
  ServiceRouteSet& old = owner(1);
  old.get("/to/{name}", greet("old"));
  ASSERT_TRUE(open(old));
  withdraw_now(old, {.replacement_expected = true});
  const std::size_t before = loop(1).blocks().blocks_in_use(BlockUse::buffer);
  MemoryPeer& peer = send(1, get("/none") + get("/to/%61nn"));
  EXPECT_EQ(said(peer), "404") << "the earlier answer does not wait";
  loop(1).blocks().collect();
  EXPECT_EQ(loop(1).blocks().blocks_in_use(BlockUse::buffer), before);
  ServiceRouteSet& fresh = owner(1);
  fresh.get("/to/{name}", greet("new"));
  ASSERT_TRUE(open(fresh));
  EXPECT_EQ(said(peer), "200 new ann /to/%61nn");
  EXPECT_TRUE(run_on(0, ended(registry_.release_retained())));
}

TEST_F(ServiceRouteSetTest, ServersAreAllowedOnAllCoresUntilTheRegistryIsReopened) {
  for (unsigned core = 0; core < 3; ++core) {
    EXPECT_FALSE(registry_.serving_allowed(loop(core)).is_set());
  }
  EXPECT_TRUE(run_on(0, ended(registry_.allow_serving())));
  for (unsigned core = 0; core < 3; ++core) {
    EXPECT_TRUE(registry_.serving_allowed(loop(core)).is_set());
  }
  registry_.close();
  registry_.open(loop(2), loops());
  EXPECT_EQ(&registry_.owner_loop(), &loop(2));
  for (unsigned core = 0; core < 3; ++core) {
    EXPECT_FALSE(registry_.serving_allowed(loop(core)).is_set());
  }
}

TEST_F(ServiceRouteSetTest, LeavingAfterServersWaitsForAllOfThem) {
  start_all();
  ServiceRouteSet& shared = open_with(1, "shared ", Reach::all_cores);
  ServiceRouteSet& single = owner(2);
  single.get("/single", TextHandler(logs_.emplace_back(), "single "));
  ASSERT_TRUE(open(single));
  registry_.on_server_started(loop(0));
  registry_.on_server_started(loop(1));
  registry_.on_server_started(loop(1));
  EXPECT_TRUE(run_on(2, ended(single.withdraw({.after_servers = true})))) << "its core has none";
  CancelSource cancel;
  Running<bool> withdrawing(loop(1),
                            under(cancel, ended(shared.withdraw({.after_servers = true}))));
  settle();
  cancel.cancel();  // the servers end nevertheless first
  settle();
  EXPECT_FALSE(withdrawing.done());
  EXPECT_EQ(ask_all("/a"), "200 shared 0");
  registry_.on_server_stopped(loop(1));
  settle();
  registry_.on_server_stopped(loop(0));
  settle();
  EXPECT_FALSE(withdrawing.done()) << "core 1 still has a server";
  EXPECT_EQ(ask_all("/a"), "200 shared 0");
  registry_.on_server_stopped(loop(1));
  settle();
  EXPECT_TRUE(withdrawing.done());
  EXPECT_EQ(ask_all("/a"), "404");
}

TEST_F(ServiceRouteSetTest, OptionsHaveTheirDefaults) {
  EXPECT_EQ(ServiceRouteOptions().wait_timeout, 10s);
  EXPECT_EQ(ServiceRouteOptions().retry_after, 1s);
  const WithdrawOptions options;
  EXPECT_EQ(options.drain_timeout, 10s);
  EXPECT_FALSE(options.replacement_expected);
  EXPECT_FALSE(options.after_servers);
}

TEST_F(ServiceRouteSetTest, DrainTimeoutCountsOnceForAllCores) {
  start_all();
  HandlerLog& log = logs_.emplace_back();
  ServiceRouteSet& shared = owner(0, Reach::all_cores);
  shared.get("/wait", WaitingHandler(log, gates_, "waited"));
  ASSERT_TRUE(open(shared));
  std::vector<MemoryPeer*> peers;
  for (unsigned core = 0; core < 3; ++core) peers.push_back(&send_get(core, "/wait"));
  Running<bool> withdrawing(loop(0), ended(shared.withdraw({.drain_timeout = 3s})));
  platform_.advance(loops(), 2999ms);
  EXPECT_EQ(log.stopped, 0U);
  platform_.advance(loops(), 1ms);
  EXPECT_TRUE(withdrawing.done());
  EXPECT_EQ(log.stopped, 3U);
  for (MemoryPeer* const each : peers) EXPECT_EQ(said(*each), "503");
}

#ifndef NDEBUG
TEST_F(ServiceRouteSetTest, AssertsThatRoutesAreRegisteredBeforeItOpens) {
  ServiceRouteSet& one = open_with(1, "one ");
  EXPECT_DEATH(one.get("/late", [] { return text("late"); }),
               "routes are registered before their owner has started");
}

TEST_F(ServiceRouteSetTest, AssertsThatItIsWithdrawnBeforeItIsDestroyed) {
  open_with(1, "one ");
  EXPECT_DEATH(owners_.clear(), "must come before the destruction of open routes");
}
#endif

/// Owners on two cores, one of them for all cores, open, hand over and leave. One of them is
/// cancelled.
struct Relay {
  explicit Relay(CancelInjector& of) : injector(of) {}

  Task<> on(unsigned core) {
    const Context context = co_await this_context();
    if (core == 0) registry.open(*context.loop, context.loop->group().loops());
    is_open = is_open || core == 0;
    while (!is_open) std::ignore = co_await sleep(0s);
    if (core < 2) co_await relay(core, *context.loop);
    ++over;
  }
  Task<> relay(unsigned core, Loop& loop) {
    const Reach reach = core == 0 ? Reach::all_cores : Reach::own_core;
    ServiceRouteSet old(registry, "Old", loop, reach);
    add_routes(old, core);
    auto opening = old.open(nullptr);
    const Result<> opened = co_await injector.as_target(core, std::move(opening));
    injector.checkpoint();
    EXPECT_TRUE(opened || opened.error() == Errc::cancelled);
    ServiceRouteSet fresh(registry, "Fresh", loop, reach);
    add_routes(fresh, core);
    auto opening_beside = fresh.open(&old);
    const Result<> opened_beside = co_await injector.as_target(core, std::move(opening_beside));
    EXPECT_TRUE(opened_beside || opened_beside.error() == Errc::cancelled);
    const WithdrawOptions how;
    auto withdrawing = old.withdraw(how);
    co_await injector.as_target(core, std::move(withdrawing));
    auto withdrawing_too = fresh.withdraw(how);
    co_await injector.as_target(core, std::move(withdrawing_too));
  }
  static void add_routes(ServiceRouteSet& to, unsigned core) {
    to.get(Pattern::parse("/of/" + std::to_string(core)).value(), [] { return text("a"); });
    to.get(Pattern::parse("/too/" + std::to_string(core)).value(), [] { return text("b"); });
  }
  bool outside() const { return false; }
  void check() {
    EXPECT_EQ(over, 3);
    EXPECT_EQ(routes.size(), 0U);
    registry.close();
  }

  CancelInjector& injector;
  Router routes;
  ServiceRouteRegistry registry{routes};
  bool is_open = false;
  int over = 0;
};

using ServiceRouteSetSteps = MultiCoreTest;

TEST_F(ServiceRouteSetSteps, SurvivesCancellationAtEveryStep) {
  EXPECT_GT(sweep<Relay>(2), 40U);
}

}  // namespace
}  // namespace weir::http::service_route_set_test
